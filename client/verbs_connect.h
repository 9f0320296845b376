/*
 * verbs_connect.h - an RDMA connection to a mirror: its queue pair, completion queue and pad, and
 * the events that tell of its end.
 */
#ifndef PERSEAS_CLIENT_VERBS_CONNECT_H
#define PERSEAS_CLIENT_VERBS_CONNECT_H

#include "verbs_device.h"

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

/* Connects to the mirror that gave `grant`, until until_ns at the latest, or by as much later as
 * the first registration with a device takes. 0 or a code; then there is nothing left to close. */
int ps_connection_open(struct ps_connection *connection, struct ps_env *env,
                       const struct ps_address *address, const Perseas__Grant *grant,
                       uint64_t until_ns, struct ps_error *error);

/* Ends it. After it returns no memory is read or written for it any more. */
void ps_connection_close(struct ps_connection *connection);

/* Takes in an event that `wake` is readable for. False: the connection has ended. */
bool ps_connection_look(struct ps_connection *connection);

#endif
