/*
 * verbs_connect.h - an RDMA connection to a mirror: its queue pair, completion queue and pad, and
 * the events that tell of its end.
 */
#ifndef PERSEAS_CLIENT_VERBS_CONNECT_H
#define PERSEAS_CLIENT_VERBS_CONNECT_H

#include "verbs_device.h"

struct ps_attempt;

enum {
	PS_INLINE_MOST = 256, /* bytes of a write that go with its request */
	/* A connection's own registered memory: where the reads land that only ask for a sign of
	 * life or flush, then what is sent from elsewhere than the ring. */
	PS_PAD_LANDING = 64,
	PS_PAD = 16 << 10,
};

struct ps_connection {
	const struct ps_verbs *verbs;
	struct ps_device *device;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	bool established;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	unsigned unacked; /* events of the completion channel */
	struct ibv_qp *qp;
	uint32_t capacity;    /* requests that may be under way */
	uint32_t inline_most; /* bytes that the queue pair takes inline */
	uint8_t *pad;         /* PS_PAD bytes */
	struct ibv_mr *pad_mr;
	int wake; /* an epoll of both channels; -1: none */
};

/*
 * Begins to connect to the mirror that gave `grant`, whose port and token have been checked, at the
 * addresses of its host that are known without a lookup. All else is for the steps. asks: the
 * session has a data path over something else, which goes on; it is only asked whether the mirror
 * answers over RDMA. The connection must stay where it is until the attempt is freed. NULL on
 * failure, with *error set.
 */
struct ps_attempt *ps_attempt_new(struct ps_connection *connection, struct ps_env *env,
                                  const struct ps_address *address, const Perseas__Grant *grant,
                                  bool asks, struct ps_error *error);

/*
 * Moves it on without waiting, but for the first registration with a device, which takes as long as
 * it takes. 1: the connection is up (asks: the mirror answers, and nothing is left to close); 0:
 * not yet, and there is something to read on connection->channel; else a code, with *error set and
 * nothing left to close. Once until_ns has passed, and as much time as its steps took themselves,
 * it is not 0.
 */
int ps_attempt_step(struct ps_attempt *attempt, uint64_t until_ns, struct ps_error *error);

/* Leaves the connection as it is. NULL is allowed. */
void ps_attempt_free(struct ps_attempt *attempt);

/* Ends what there is of it. After it returns no memory is read or written for it any more, and of
 * what was under way nothing more is heard. It is still to be closed. */
void ps_connection_end(struct ps_connection *connection);

/* Ends it, and frees what there is. */
void ps_connection_close(struct ps_connection *connection);

/* Takes in an event that `wake` is readable for. False: the connection has ended. */
bool ps_connection_look(struct ps_connection *connection);

#endif
