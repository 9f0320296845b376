/*
 * asked.h - the requests in flight on a control connection, and which of them a reply answers.
 * Every client of control connections uses it: control_socket.c, and what tests put in its place.
 * No I/O.
 *
 * A reply answers the oldest request that is not answered, if it has that request's id and kind.
 * Any other reply is a violation of the protocol, and the connection must end (PROTOCOL.md,
 * "Control connections").
 */
#ifndef PERSEAS_CLIENT_ASKED_H
#define PERSEAS_CLIENT_ASKED_H

#include "control.pb-c.h"
#include "../core/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { PS_ASKED_MAX = 16 }; /* requests in flight on one connection */

/* Zeroed for a new connection. */
struct ps_asked {
	uint64_t last; /* the id of the newest request */
	unsigned due;  /* unanswered requests, which have the newest `due` ids */
	/* Progress of the oldest one, as its last sign of progress reported. */
	uint64_t done;
	/* For each unanswered id, modulo PS_ASKED_MAX: the request's body case. */
	uint8_t bodies[PS_ASKED_MAX];
};

/* Notes a request that will be sent, and returns its id. Fewer than PS_ASKED_MAX may be due. */
uint64_t ps_asked_add(struct ps_asked *asked, Perseas__Request__BodyCase body);

enum ps_match {
	PS_MATCH_NONE,    /* the reply answers no request */
	PS_MATCH_WORKING, /* a sign of progress: the answer to the oldest request will come */
	PS_MATCH_ANSWER,  /* the answer to the oldest request, which is no longer due */
};

enum ps_match ps_asked_match(struct ps_asked *asked, const Perseas__Reply *reply);

/* Returns 0 if the mirror at this address carried the request out. Otherwise returns the code of
 * its refusal, with *error set (which may be NULL). */
int ps_asked_refusal(const Perseas__Reply *reply, const char *address, struct ps_error *error);

#endif
