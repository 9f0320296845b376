/*
 * verbs_refuse.h - reasons why an RDMA connection failed, as sentences: what the connection manager
 * reported, and what the mirror answered.
 */
#ifndef PERSEAS_CLIENT_VERBS_REFUSE_H
#define PERSEAS_CLIENT_VERBS_REFUSE_H

#include "../core/address.h"
#include "../host/resolver.h"
#include "verbs_connect.h"
#include "../../proto/data/frame.h"

/* The event that an attempt waits for: a device, a route to the mirror, or the mirror's answer. */
enum ps_attempt_step { PS_STEP_DEVICE, PS_STEP_ROUTE, PS_STEP_GREETING };

/* An attempt to connect, which tries the addresses of the mirror's host in turn. */
struct ps_attempt {
	struct ps_connection *c;
	struct ps_env *env;
	struct ps_address address;
	uint32_t port; /* port and token are those of the grant */
	uint8_t token[PS_ID_SIZE];
	bool only_asks; /* only asks whether the mirror answers */
	bool taken;     /* the mirror accepted the token, but the session already has a data path */
	struct ps_addresses list; /* addresses of the mirror's host, with the grant's port */
	unsigned at;              /* number of addresses tried so far, including the current one */
	enum ps_attempt_step step;
	unsigned tries;         /* number of devices that were created for this address */
	uint64_t until_ns;      /* instant at which the attempt at this address times out */
	struct ps_error *error; /* the `error` argument of the current step */
};

/* A copy of an event of the connection manager. */
struct ps_verbs_event {
	enum rdma_cm_event_type type;
	int status;
	bool answered; /* the event carried enough bytes for an answer */
	struct ps_answer answer;
};

/* Fails with PERSEAS_ERDMA; the message begins with the mirror's address. */
int ps_attempt_fail(struct ps_attempt *attempt, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Handles an event other than the awaited one. Returns a code with the error set if the attempt has
 * failed by it, or 0 if the event can be ignored. */
int ps_attempt_event_code(struct ps_attempt *attempt, const struct ps_verbs_event *event);

/* Returns 0 if the answer that came with the mirror's acceptance is PS_ANSWER_OK, or else a code
 * with the error set. */
int ps_attempt_answer_code(struct ps_attempt *attempt, const struct ps_verbs_event *event);

#endif
