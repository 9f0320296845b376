/*
 * verbs_queue.h - the send queue of a connection: requests wait here in order, go to the device as
 * linked work requests with one doorbell, and are counted until they complete.
 *
 * Of what is posted together only the last request is signalled, and those that somebody waits
 * for: a completion stands for all requests before it. What does not fit the device's queue waits
 * for completions. A barrier holds back what comes after it until it is complete.
 */
#ifndef PERSEAS_CLIENT_VERBS_QUEUE_H
#define PERSEAS_CLIENT_VERBS_QUEUE_H

#include "verbs_connect.h"

enum {
	PS_REQUEST_READ = 1, /* RDMA read; else write */
	PS_REQUEST_SIGNALLED = 2,
	PS_REQUEST_BARRIER = 4, /* with SIGNALLED: nothing is posted behind it before its end */
	/* What the completion of a signalled request means: */
	PS_REQUEST_CHAIN = 8,  /* a chain is complete */
	PS_REQUEST_PIECE = 16, /* a piece of what is being read has landed */
	PS_REQUEST_BEAT = 32,  /* the mirror lives */
};

struct ps_request {
	uint64_t local; /* address */
	uint64_t remote;
	uint32_t length;
	uint32_t lkey, rkey;
	uint16_t flags; /* PS_REQUEST_… */
	uint16_t pad;   /* bytes of the pad that are free again when it is complete */
};

/* What a signalled request's completion ends. */
struct ps_mark {
	uint32_t requests; /* it, and those before it that were not signalled */
	uint16_t flags;
	uint16_t pad;
};

struct ps_link_counts {
	uint64_t requests;    /* work requests */
	uint64_t doorbells;   /* calls of post_send */
	uint64_t completions; /* signalled, and polled */
};

struct ps_queue {
	struct ps_connection *c;
	struct ps_request *waiting; /* a ring of `room`, a power of two */
	uint32_t room;
	uint32_t head, tail;     /* count on; % room */
	struct ibv_send_wr *wrs; /* c->capacity, each linked to the next and to its sge */
	struct ibv_sge *sges;
	struct ps_mark *marks; /* a ring of `marks_room`, a power of two */
	uint32_t marks_room;
	uint32_t first_mark, next_mark; /* count on; a request's id is its mark's number */
	uint32_t flying;                /* requests at the device */
	uint32_t pad_start, pad_used;   /* of the part of the pad that is sent from */
	bool held;                      /* a barrier is flying */
	bool beating;                   /* a beat is waiting or flying */
	bool broken;                    /* for good: what was flying is unknown */
	unsigned chains;                /* completed, and not yet told */
	unsigned pieces;                /* of a read, completed and not yet told */
	struct ps_link_counts counts;
};

/* 0, or -1: out of memory. Ended by ps_queue_free, also then. */
int ps_queue_init(struct ps_queue *queue, struct ps_connection *c);
void ps_queue_free(struct ps_queue *queue);

/* Puts a request behind the others; the caller then calls ps_queue_pump. False: out of memory. */
bool ps_queue_push(struct ps_queue *queue, const struct ps_request *request);

/* Room in the pad for `length` bytes to be sent from, or NULL. *taken goes to request.pad. */
uint8_t *ps_queue_pad(struct ps_queue *queue, uint32_t length, uint16_t *taken);

/* Posts what may be posted. */
void ps_queue_pump(struct ps_queue *queue);

/* Takes completions in, and pumps. */
void ps_queue_collect(struct ps_queue *queue);

static inline bool ps_queue_idle(const struct ps_queue *queue)
{
	return !queue->flying && queue->head == queue->tail;
}

#endif
