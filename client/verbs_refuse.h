/*
 * verbs_refuse.h - why there is no RDMA connection, in sentences: what the connection manager
 * reported, and what the mirror answered.
 */
#ifndef PERSEAS_CLIENT_VERBS_REFUSE_H
#define PERSEAS_CLIENT_VERBS_REFUSE_H

#include "verbs_connect.h"
#include "../proto/frame.h"

/* One address of the mirror's host that is tried. */
struct ps_attempt {
	struct ps_connection *c;
	struct ps_env *env;
	const struct ps_address *address;
	const Perseas__Grant *grant;
	struct sockaddr *to;
	uint64_t until_ns;
	struct ps_error *error;
};

/* An event of the connection manager, copied. */
struct ps_cm_event {
	enum rdma_cm_event_type type;
	int status;
	bool answered; /* it came with bytes enough for an answer */
	struct ps_answer answer;
};

/* PERSEAS_ERDMA, with the mirror's address before the sentence. */
int ps_refuse(const struct ps_attempt *attempt, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* What an event means that is not the one waited for; 0: nothing. */
int ps_refuse_event(const struct ps_attempt *attempt, const struct ps_cm_event *event);

/* What the mirror answered with its acceptance; 0: that all is well. */
int ps_refuse_answer(const struct ps_attempt *attempt, const struct ps_cm_event *event);

#endif
