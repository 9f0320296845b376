/*
 * verbs_queue.h - the send queue of a connection. Requests wait here in order, go to the device as
 * linked work requests with one doorbell, and are counted until they complete.
 *
 * A request is signaled (the device reports its completion) if it is the last of a batch or if its
 * completion has a meaning of its own. A completion stands for all requests before it as well.
 * Requests that do not fit the device's queue wait for completions. A barrier holds back all
 * requests after it until it is complete.
 */
#ifndef PERSEAS_CLIENT_VERBS_QUEUE_H
#define PERSEAS_CLIENT_VERBS_QUEUE_H

#include "verbs_connect.h"

enum {
	PS_REQUEST_READ = 1, /* an RDMA read; without it, an RDMA write */
	PS_REQUEST_SIGNALLED = 2,
	/* With PS_REQUEST_SIGNALLED: no later request is posted before this one is complete. */
	PS_REQUEST_BARRIER = 4,
	/* The meaning of a signaled request's completion: */
	PS_REQUEST_CHAIN = 8,      /* a chain is complete */
	PS_REQUEST_PIECE = 16,     /* a piece of a read has landed */
	PS_REQUEST_HEARTBEAT = 32, /* the mirror is alive */
};

struct ps_request {
	uint64_t local;  /* address in this process */
	uint64_t remote; /* address at the mirror */
	uint32_t length;
	uint32_t lkey, rkey;
	uint16_t flags;     /* PS_REQUEST_… */
	uint16_t pad_bytes; /* bytes of the pad that its completion frees */
};

/* What the completion of a signaled request stands for. */
struct ps_completion_mark {
	uint32_t requests;  /* number of requests: the signaled one and the unsignaled before it */
	uint16_t flags;     /* flags of the signaled request */
	uint16_t pad_bytes; /* bytes of the pad that the requests used */
};

struct ps_link_counts {
	uint64_t requests;    /* work requests posted */
	uint64_t doorbells;   /* calls of post_send */
	uint64_t completions; /* completions polled */
};

struct ps_queue {
	struct ps_connection *c;
	struct ps_request *waiting; /* ring buffer of `room` requests; room is a power of two */
	uint32_t room;
	uint32_t head, tail; /* positions in `waiting`, modulo room; they only grow */
	/* `capacity` work requests, as many as the connection's queue pair holds. Each is linked to
	 * the next one and to its sge. */
	struct ibv_send_wr *wrs;
	struct ibv_sge *sges;
	struct ps_completion_mark
		*marks; /* ring buffer of `marks_room` marks; marks_room is a power of two */
	uint32_t marks_room;
	/* Positions in `marks`; they only grow. A work request's id is its mark's position. */
	uint32_t first_mark, next_mark;
	uint32_t in_flight;           /* requests at the device that have not completed */
	uint32_t pad_start, pad_used; /* bytes in use of the pad's part for copies of writes */
	bool is_blocked;              /* a barrier is at the device */
	bool heartbeat_pending;       /* a heartbeat is waiting or at the device */
	/* A request failed. It stays set, because no completion tells which of the requests at the
	 * device were executed. */
	bool broken;
	unsigned chains; /* completed chains that have not been reported */
	unsigned pieces; /* completed pieces of a read that have not been taken */
	struct ps_link_counts counts;
};

/* Returns 0, or -1 if out of memory. ps_queue_free must be called in either case. */
int ps_queue_init(struct ps_queue *queue, struct ps_connection *c);
void ps_queue_free(struct ps_queue *queue);

/* Appends a request; the caller then calls ps_queue_post. Returns false if out of memory. */
bool ps_queue_push(struct ps_queue *queue, const struct ps_request *request);

/* Reserves space in the pad for a copy of `length` bytes. Returns its address, or NULL if the pad
 * has no such space. The caller stores *taken in request.pad_bytes. */
uint8_t *ps_queue_reserve_pad(struct ps_queue *queue, uint32_t length, uint16_t *taken);

/* Posts all requests that may be posted now. */
void ps_queue_post(struct ps_queue *queue);

/* Handles all completions, then posts what may be posted. */
void ps_queue_collect(struct ps_queue *queue);

/* Returns true if no request is waiting or at the device. */
static inline bool ps_queue_is_idle(const struct ps_queue *queue)
{
	return !queue->in_flight && queue->head == queue->tail;
}

#endif
