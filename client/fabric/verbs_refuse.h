/*
 * verbs_refuse.h - why there is no RDMA connection, in sentences: what the connection manager
 * reported, and what the mirror answered.
 */
#ifndef PERSEAS_CLIENT_VERBS_REFUSE_H
#define PERSEAS_CLIENT_VERBS_REFUSE_H

#include "../core/address.h"
#include "../host/resolver.h"
#include "verbs_connect.h"
#include "../../proto/data/frame.h"

/* What a connection that is being made waits for. */
enum ps_attempt_step { PS_STEP_DEVICE, PS_STEP_ROUTE, PS_STEP_GREETING };

/* A connection that is being made: the host's addresses are tried in turn. */
struct ps_attempt {
	struct ps_connection *c;
	struct ps_env *env;
	struct ps_address address;
	uint32_t port; /* of the grant, as is the token */
	uint8_t token[PS_ID_SIZE];
	bool asks;  /* only whether the mirror answers */
	bool taken; /* it said that all is well, but that the session has a data path */
	struct ps_addresses list; /* of the mirror's host, with the port of the grant */
	unsigned at;              /* so many of them have been tried, or are being tried */
	enum ps_attempt_step step;
	unsigned tries;         /* devices that were made for it */
	uint64_t until_ns;      /* this address must have led there by then */
	struct ps_error *error; /* of the call that moves it on */
};

/* An event of the connection manager, copied. */
struct ps_cm_event {
	enum rdma_cm_event_type type;
	int status;
	bool answered; /* it came with bytes enough for an answer */
	struct ps_answer answer;
};

/* PERSEAS_ERDMA, with the mirror's address before the sentence. */
int ps_refuse(struct ps_attempt *attempt, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* What an event means that is not the one waited for; 0: nothing. */
int ps_refuse_event(struct ps_attempt *attempt, const struct ps_cm_event *event);

/* What the mirror answered with its acceptance; 0: that all is well. */
int ps_refuse_answer(struct ps_attempt *attempt, const struct ps_cm_event *event);

#endif
