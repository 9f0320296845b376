/*
 * verbs_fake.h - RDMA devices without hardware: a struct ps_verbs whose queue pairs move bytes
 * within this process, as strictly as a device would (keys, bounds, access flags, protection
 * domains, states, capacities), packet by packet, when the test says so.
 *
 * One world a process. verbs_fake_begin() makes it, verbs_fake_end() counts what was left
 * alive, and what was done that a device or librdmacm would punish (a call that would block for
 * ever, a completion queue that overran, relaxed ordering, ...).
 *
 * Descriptors of channels are real ones: poll() and O_NONBLOCK work. All calls may come from any
 * thread.
 *
 * Situations in one thread: verbs_fake_on_request() lets a responder of the test answer from
 * within connect(); `automatic` has work requests done before post_send() returns.
 */
#ifndef PERSEAS_TESTS_VERBS_FAKE_H
#define PERSEAS_TESTS_VERBS_FAKE_H

#include "../../proto/base/verbs.h"

/* The table for env->verbs and for the daemon. */
extern const struct ps_verbs verbs_fake_table;

/* --- the world --- */

void verbs_fake_begin(void);
/* Ends the world. Returns the number of faults: objects still alive, and misuse.
 * verbs_fake_trouble() lists them, one a line. */
unsigned verbs_fake_end(void);
/* Returns the number of misuses so far, without ending the world. */
unsigned verbs_fake_wrong(void);
const char *verbs_fake_trouble(void);

/* How the devices behave from now on. Tests change it between calls. */
struct verbs_fake_mode {
	bool automatic;  /* work is done at once; else by verbs_fake_step and _run */
	bool reorder;    /* writes that are posted overtake each other */
	uint32_t packet; /* bytes; 4096 */
	uint64_t seed;   /* of the reordering */
	bool late_fork;  /* fork_init fails once memory is registered, as the real one */
};

extern struct verbs_fake_mode verbs_fake_mode;

/* --- devices --- */

enum { VERBS_FAKE_ADDRESSES = 8 };

struct verbs_fake_device {
	struct ibv_context context; /* first; id->verbs points here */
	struct ibv_device device;
	struct ibv_device_attr attr; /* of query_device; its limits are kept */
	uint32_t max_inline;         /* bytes that are granted at most; 400 */
	bool inline_strict;          /* create_qp fails for more, instead of granting less */
	uint32_t gid_type;           /* of its addresses; IBV_GID_TYPE_ROCE_V2 */
	bool gid_v1_too;             /* its addresses are there as RoCE v1, too, and first */
	bool exact;                  /* private data as long as it was sent (iWARP); else padded */
	bool dead;                   /* loses everything in both directions without an error */
	bool lost;                   /* unplugged: objects can be destroyed, but that returns EIO */
	uint32_t addresses[VERBS_FAKE_ADDRESSES]; /* network byte order */
	unsigned address_count;
	struct verbs_fake_device *next;
};

/* Makes a device with generous limits and an IPv4 address ("127.0.0.1"). */
struct verbs_fake_device *verbs_fake_device(const char *name, const char *address);
void verbs_fake_address(struct verbs_fake_device *device, const char *address);
/* Sets the device from which unbound ids connect. NULL: the device to which they connect. */
void verbs_fake_source(struct verbs_fake_device *device);
/* The device goes: its ids get DEVICE_REMOVAL, its users DEVICE_FATAL, and nothing gets
 * through any more. */
void verbs_fake_remove(struct verbs_fake_device *device);
/* Raises an asynchronous event of a device. `qp` may be NULL; ports count from 1. */
void verbs_fake_async(struct verbs_fake_device *device, enum ibv_event_type type,
                      struct ibv_qp *qp);

/* --- moving on --- */

/* Carries out up to `packets` packets, of all queue pairs in turn. Returns how many. */
unsigned verbs_fake_step(unsigned packets);
/* Carries out up to `packets` packets of one queue pair. Returns how many. */
unsigned verbs_fake_step_qp(uint32_t qp_num, unsigned packets);
unsigned verbs_fake_run(void); /* all that there is */
/* Lets everything that cannot get through (a dead device, a peer that is gone) run out of
 * retries. */
void verbs_fake_expire(void);
/* Connections that are over leave the time-wait state: TIMEWAIT_EXIT. */
void verbs_fake_timewait(void);

/* Called, without locks, from connect() when a request was queued for a listener. */
void verbs_fake_on_request(void (*call)(void *arg), void *arg);

/* --- what was done --- */

struct verbs_fake_write {
	uint32_t qp_num; /* of the requester */
	uint32_t length;
	uint64_t address;     /* in the responder */
	const uint8_t *bytes; /* what was written */
};

/* Takes down every packet that is written from now on (true), or forgets all (false). */
void verbs_fake_journal(bool on);
const struct verbs_fake_write *verbs_fake_writes(unsigned *count);

struct verbs_fake_counts {
	unsigned posts;     /* calls of post_send: doorbells */
	unsigned requests;  /* work requests in them */
	unsigned signalled; /* work requests with IBV_SEND_SIGNALED among them */
	unsigned inlined;   /* of the requests, with IBV_SEND_INLINE */
	unsigned reads, writes, sends;
	unsigned zero;     /* of the requests, of no bytes */
	unsigned notifies; /* calls of req_notify_cq */
	unsigned polls;    /* calls of poll_cq */
	unsigned gets;     /* of get_cq_event and get_cm_event that gave an event */
	unsigned calls;    /* of all members */
};

/* Returns the counts since the beginning or the previous call. */
struct verbs_fake_counts verbs_fake_counts(void);

/* The objects that are alive. */
struct verbs_fake_alive {
	unsigned channels, ids, pds, mrs, comp_channels, cqs, qps;
};

struct verbs_fake_alive verbs_fake_alive(void);

/* The parameters of the last connect(), and the ACK timeout of the id that connected (-1: none). */
struct rdma_conn_param verbs_fake_connected(int *ack_timeout);

/* Returns the newest living queue pair that an id made to connect or accept, or NULL. */
struct ibv_qp *verbs_fake_active_qp(void);
struct ibv_qp *verbs_fake_passive_qp(void);
/* The id of a queue pair. */
struct rdma_cm_id *verbs_fake_id(const struct ibv_qp *qp);
/* Moves the queue pair to IBV_QPS_ERR, as a failing device does. */
void verbs_fake_break(struct ibv_qp *qp);

/* --- faults --- */

/* clang-format off */
#define VERBS_FAKE_MEMBERS(X)                                                                  \
	X(create_event_channel) X(get_cm_event) X(ack_cm_event) X(create_id) X(destroy_id)     \
	X(set_option) X(bind_addr) X(listen) X(resolve_addr) X(resolve_route) X(create_qp)     \
	X(connect) X(accept) X(reject) X(disconnect) X(fork_init) X(query_device)              \
	X(query_gid_table) X(alloc_pd) X(dealloc_pd) X(reg_mr) X(dereg_mr) X(get_async_event)  \
	X(create_comp_channel) X(destroy_comp_channel) X(create_cq) X(destroy_cq)              \
	X(req_notify_cq) X(get_cq_event) X(poll_cq) X(modify_qp) X(destroy_qp) X(post_send)    \
	X(post_recv)

enum verbs_fake_member {
#define VERBS_FAKE_ENUM(name) VERBS_FAKE_##name,
	VERBS_FAKE_MEMBERS(VERBS_FAKE_ENUM)
#undef VERBS_FAKE_ENUM
	VERBS_FAKE_MEMBER_COUNT
};
/* clang-format on */

const char *verbs_fake_name(enum verbs_fake_member member);

/* After `delay` more calls of the member, lets `repeat` calls fail with `error` (an errno) and do
 * nothing. With repeat 0 there is no fault any more. */
void verbs_fake_fail(enum verbs_fake_member member, unsigned delay, unsigned repeat, int error);
/* After `delay` more calls of any member that makes, asks or sends something (not of one that ends
 * something), lets one call fail. */
void verbs_fake_fail_any(unsigned delay, int error);
/* The member that verbs_fake_fail_any made fail; VERBS_FAKE_MEMBER_COUNT: none yet. */
enum verbs_fake_member verbs_fake_failed(void);

/* Lets the work request after `delay` more complete with this status. With `applied` its bytes move
 * all the same. */
void verbs_fake_complete_with(enum ibv_wc_status status, unsigned delay, bool applied);

/* The next event of `type` is `instead`, with this status. */
void verbs_fake_instead(enum rdma_cm_event_type type, enum rdma_cm_event_type instead, int status);
/* Inserts an event `before` in front of the next event of `type`, for the same id. */
void verbs_fake_before(enum rdma_cm_event_type type, enum rdma_cm_event_type before);
/* Events of the type get lost from now on, or do not. */
void verbs_fake_mute(enum rdma_cm_event_type type, bool mute);
/* Raises an event without a cause. */
void verbs_fake_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status);

#endif
