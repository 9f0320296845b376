/*
 * target_verbs.h - declarations shared by the files of the rdma target.
 *
 *   target_verbs.c    grants, the connection manager's events, ports to connect to
 *   domain_verbs.c    devices, protection domains and registered memory
 *   link_verbs.c      the queue pair of a session
 *
 * Devices are opened when an owner asks for keys, because they may come after the daemon. Owners
 * read and write memory by themselves; this end only accepts connections and cuts them.
 */
#ifndef PERSEAS_SERVER_TARGET_VERBS_H
#define PERSEAS_SERVER_TARGET_VERBS_H

#include "../loop/daemon.h"

#include "../../proto/data/frame.h"
#include "../../proto/base/verbs.h"

enum {
	VERBS_TEXT = 320,
	GRANT_TEXT = 256, /* size of the trouble text in a grant, with the terminating zero */
};

/* An address of this host at which owners connect, and its device. */
struct verbs_port {
	struct verbs_port *next;
	struct sockaddr_storage address; /* its port is 0 */
	struct rdma_cm_id *id;
	struct verbs_device *device;
	unsigned number; /* port number */
};

struct verbs_device {
	struct verbs_device *next;
	struct verbs_target *target;
	struct ibv_context *context;
	struct ibv_comp_channel *channel; /* channel for the completions of all links */
	struct event *completion_event;
	struct event *async_event; /* an asynchronous event of the device */
	int reads_max; /* RDMA reads that the device answers concurrently for a queue pair */
	bool gone;     /* the device was removed with all its resources */
};

/* The protection domain of a store. Each store has its own, so that a key is useless on the queue
 * pair of another store's owner. */
struct verbs_domain {
	struct verbs_domain *next;
	struct verbs_device *device;
	const struct store *store;
	struct ibv_pd *pd;
	unsigned links;      /* number of links in the domain */
	unsigned work_count; /* work in progress that registers or deregisters memory */
	unsigned count;
	/* Registered memory of the image and of the rebuilt image. */
	struct ibv_mr *memory[2 * PS_REGIONS_MAX];
};

/* The data path of a session. */
struct verbs_link {
	struct admitted admitted;
	struct verbs_link *next;
	struct verbs_target *target;
	struct verbs_domain *domain;
	struct session *session;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	char peer[128];
};

struct verbs_work;

struct verbs_target {
	struct daemon *daemon;
	const struct ps_verbs *verbs;
	struct rdma_event_channel *channel; /* NULL: not open */
	struct event *readable;
	struct verbs_port *ports;
	struct verbs_device *devices;
	struct verbs_domain *domains;
	struct verbs_link *links;
	struct verbs_work *works; /* work outside of the loop */
	struct rdma_options options;
	char trouble[VERBS_TEXT]; /* why the last grant does not offer RDMA */
};

/* domain_verbs.c. Functions that return a pointer return NULL with the reason in target->trouble on
 * failure. */
struct verbs_device *verbs_device_open(struct verbs_target *target, struct ibv_context *context);
/* Closes the device with its domains. It must have no links and ports. */
void verbs_device_close(struct verbs_device *device);
/* Returns the domain of a store. Closes a domain on another device, whose owner was cut before. */
struct verbs_domain *verbs_domain_open(struct verbs_target *target, const struct store *store,
                                       struct verbs_device *device);
struct verbs_domain *verbs_domain_find(struct verbs_target *target, const struct store *store);
/* Registers the memory of a region with the domain, outside of the loop, unless it is registered
 * already. Returns the registered memory. If it returns NULL, the domain may be gone with its
 * device. */
struct ibv_mr *verbs_domain_register(struct verbs_domain *domain, uint32_t region, uint8_t *base,
                                     uint64_t length);
/* Deregisters the memory of a piece. A callback for stores_on_unmap(). */
void verbs_domain_unmap(void *target, const struct piece *piece);
/* Counts one link less, and closes the domain if it is no longer used. */
void verbs_domain_remove_link(struct verbs_domain *domain);

/* link_verbs.c */
/* A connection request of an owner. */
struct verbs_request {
	struct rdma_cm_id *id; /* belongs to the receiver of the call */
	struct ps_hello hello;
	unsigned length; /* number of bytes of the hello that came */
	unsigned reads;  /* concurrent RDMA reads that the owner wants */
};

/* Answers a connection request: with a queue pair for the session of its token, or a refusal. */
void verbs_link_answer_request(struct verbs_target *target, const struct verbs_request *request);
/* Closes the link, its queue pair first. Exits the process if the queue pair cannot be
 * destroyed. */
void verbs_link_close(struct verbs_link *link);
/* Closes links of the device whose queue pairs have failed, or whose owners sent a message. */
void verbs_link_handle_completions(struct verbs_device *device);
struct verbs_link *verbs_link_find(struct verbs_target *target, const struct rdma_cm_id *id);

#endif
