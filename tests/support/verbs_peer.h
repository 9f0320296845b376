/*
 * verbs_peer.h - an RDMA connection made by hand over the fake devices, in either direction:
 * what an owner does, or what a mirror does, and also what neither of them should.
 */
#ifndef PERSEAS_TESTS_VERBS_PEER_H
#define PERSEAS_TESTS_VERBS_PEER_H

#include "verbs_fake.h"

enum { PEER_BYTES = 1 << 16 };

struct verbs_peer {
	struct rdma_event_channel *channel; /* non-blocking */
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *completions; /* non-blocking */
	struct ibv_cq *cq;
	struct ibv_mr *mr; /* of bytes, for everything */
	uint8_t *bytes;    /* PEER_BYTES, page-aligned */
	/* From the last event: */
	int status;
	struct rdma_conn_param param; /* private_data is NULL */
	uint8_t given[256];           /* its private data */
};

/* Opens an end with a queue pair that is routed to the address and ready to connect. */
void peer_open(struct verbs_peer *peer, const char *address, unsigned port);
/* Opens an end that listens. Returns the port. */
unsigned peer_listen(struct verbs_peer *peer, const char *address);
/* Frees what there is. */
void peer_close(struct verbs_peer *peer);

/* Asks for the connection; one RDMA read at a time. 0 or -1, as rdma_connect. */
int peer_connect(struct verbs_peer *peer, const void *hello, unsigned length);
/* Returns the type of the next event, or -1 if there is none. Sets *id, unless `id` is NULL, to the
 * event's id. */
int peer_event(struct verbs_peer *peer, struct rdma_cm_id **id);
/* Makes a queue pair for a request's id and accepts with the answer. Returns 0 or -1. */
int peer_accept(struct verbs_peer *peer, struct rdma_cm_id *id, const void *answer,
                unsigned length);
/* Takes an id's queue pair and the id apart. */
void peer_drop(struct rdma_cm_id *id);

/* Post one signalled request, of `length` of the peer's bytes from `from` on. 0 or an errno. */
int peer_write(struct verbs_peer *peer, unsigned from, unsigned length, uint64_t to, uint32_t key);
int peer_read(struct verbs_peer *peer, unsigned into, unsigned length, uint64_t from, uint32_t key);
int peer_send(struct verbs_peer *peer, unsigned from, unsigned length);
/* Returns the status of the next completion, or -1 if there is none. */
int peer_done(struct verbs_peer *peer);
/* Carries out everything possible, and returns the status of the only completion. */
int peer_settle(struct verbs_peer *peer);

#endif
