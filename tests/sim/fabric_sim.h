/*
 * fabric_sim.h - the simulated fabrics. `stream` is staged as tcp is: bytes are read from their
 * sources as they are sent, in pieces, and arrive in order, until the connection breaks, at any
 * byte. `shared` is the mirror's memory itself: the process can be stopped between any two
 * stores to it.
 */
#ifndef PERSEAS_SIM_FABRIC_SIM_H
#define PERSEAS_SIM_FABRIC_SIM_H

#include "../../server/store/memory.h"
#include "env_sim.h"

extern const struct ps_fabric sim_fabric_stream, sim_fabric_shared;

/* Memory of an image that was given to a process: its own mappings of the pieces. */
struct sim_memory {
	struct sim_memory *next; /* of the mirror */
	struct memory *memory;
	struct piece pieces[PS_REGIONS_MAX];
	int number; /* its first descriptor's */
	unsigned count;
	bool open;
};

/* The descriptors that stand for it; how many. memory may be NULL. */
unsigned sim_memory_numbers(const struct sim_memory *memory, int *fds);
void sim_memory_close(struct sim_memory *memory);

/* A queued write; its bytes are read when it is sent. */
struct sim_queued {
	const uint8_t *src;
	uint32_t region, length;
	uint64_t offset;
	bool last; /* of its chain */
};

/* The header of a SIM_DATA or SIM_READ message. */
struct sim_extent {
	uint32_t region, length;
	uint64_t offset;
};

struct ps_link {
	struct sim_endpoint endpoint;
	struct sim_owner *owner;
	struct sim_mirror *mirror;
	struct ps_link *next; /* of the owner */
	uint64_t epoch;
	int fd;
	bool broken, detached;
	bool direct;        /* over a cable (cable.h) */
	bool asks;          /* only asks whether the cable works */
	int code;           /* shared: PS_LINK_…, for good */
	unsigned completed; /* chains, since the last poll */

	/* stream: this end */
	struct sim_pipe out, in;
	struct sim_queued *queue;
	unsigned first, count, room;
	uint64_t under_way; /* bytes sent and not acknowledged */
	uint64_t window;    /* how much under_way may be */
	uint64_t packet;    /* bytes of one, at most */
	unsigned due;       /* chains posted and not completed */
	unsigned ahead;     /* for a mistake: told before they were completed */
	bool greeted;       /* the hello was answered */
	bool accepted;
	bool up;       /* the library was told that it is */
	bool answered; /* the read was answered, or the link is broken */
	const struct sim_message *answer;

	/* stream: the mirror's end */
	struct sim_session *session; /* NULL: not connected */

	struct sim_memory *memory; /* shared */

	unsigned peeks; /* so many threads read by it now */
};

/* Sends what the socket takes. */
void sim_link_flush(struct ps_link *link);

/* The data connection breaks. */
void sim_link_reset(struct ps_link *link);

/* The mirror's host is gone: this end learns of it late. */
void sim_link_lost(struct ps_link *link);

void sim_links_died(struct sim_owner *o, bool silent);

#endif
