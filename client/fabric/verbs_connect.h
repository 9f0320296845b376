/*
 * verbs_connect.h - an RDMA connection to a mirror: its queue pair, its completion queue, its pad,
 * and the events that report its end.
 */
#ifndef PERSEAS_CLIENT_VERBS_CONNECT_H
#define PERSEAS_CLIENT_VERBS_CONNECT_H

#include "verbs_device.h"

struct ps_attempt;

enum {
	PS_INLINE_MAX = 256, /* bytes of a write that may be copied into its work request */
	/* Layout of the pad, a connection's own registered memory. In its first bytes land small
	 * reads, which serve as heartbeats and flushes. The rest holds copies of writes whose
	 * source is not in the ring. */
	PS_PAD_LANDING = 64,
	PS_PAD = 16 << 10,
};

struct ps_connection {
	const struct ps_verbs *verbs;
	struct ps_device *device;
	struct rdma_event_channel *channel; /* events of the connection manager */
	struct rdma_cm_id *id;
	bool established;                     /* the mirror has accepted the connection */
	struct ibv_comp_channel *completions; /* events of `cq` */
	struct ibv_cq *cq;
	unsigned unacked; /* events of the completion channel that have not been acknowledged */
	struct ibv_qp *qp;
	uint32_t capacity;   /* work requests that may be at the device */
	uint32_t inline_max; /* bytes of a write that the queue pair takes inline */
	uint8_t *pad;        /* registered memory of PS_PAD bytes */
	struct ibv_mr *pad_mr;
	int wake; /* epoll descriptor: readable if `channel` or `completions` is; -1 if none */
};

/*
 * Creates an attempt to connect to the mirror that gave `grant`, whose port and token the caller
 * has checked, at the addresses of its host that are known without a lookup. The steps do
 * everything else. asks: the session has a data path over another fabric, which continues; the
 * attempt only asks whether the mirror answers over RDMA. The connection must not move in memory
 * until the attempt is freed. Returns NULL on failure, with *error set.
 */
struct ps_attempt *ps_attempt_new(struct ps_connection *connection, struct ps_env *env,
                                  const struct ps_address *address, const Perseas__Grant *grant,
                                  bool asks, struct ps_error *error);

/*
 * Takes the next step without waiting, except for the first registration with a device, which may
 * take long. Returns 1 if the connection is up (with asks: if the mirror answers; nothing is left
 * to close); 0 if not yet: then wait for connection->channel to be readable; or a code, with *error
 * set and nothing left to close. Never returns 0 once until_ns, plus the time that its own steps
 * took, has passed.
 */
int ps_attempt_step(struct ps_attempt *attempt, uint64_t until_ns, struct ps_error *error);

/* Frees the attempt and leaves the connection as it is. NULL is allowed. */
void ps_attempt_free(struct ps_attempt *attempt);

/* Disconnects. After it returns, the device reads and writes no memory for this connection, and
 * reports no completion of requests in flight. The connection must still be closed. */
void ps_connection_disconnect(struct ps_connection *connection);

/* Disconnects, and frees everything that the connection has. */
void ps_connection_close(struct ps_connection *connection);

/* Handles an event that made `wake` readable. Returns false if the connection has ended. */
bool ps_connection_handle_event(struct ps_connection *connection);

#endif
