/*
 * control_private.h - a control connection, for the files that share it: control_socket.c, which
 * has its life, requests and replies, and control_signs.c, which has its signs of life.
 */
#ifndef PERSEAS_CLIENT_CONTROL_PRIVATE_H
#define PERSEAS_CLIENT_CONTROL_PRIVATE_H

#include "control_socket.h"
#include "asked.h"
#include "descriptors.h"
#include "hearing.h"
#include "hello.h"
#include "outbox.h"
#include "socket.h"

struct ps_control {
	struct ps_controls *all;
	struct ps_control *next;
	struct ps_dial dial;
	struct ps_tls *tls;      /* the env's */
	struct ps_stream stream; /* fd -1: dialling */
	bool shaken;
	struct ps_expiries shown; /* by the mirror, once it has been shaken */
	struct ps_error trouble;  /* code 0: none */
	struct ps_asked asked;    /* requests not yet answered */

	struct ps_outbox out; /* hello and requests that are not sent yet */

	/* What is being received: the hello, then in turn a length and a message. */
	bool greeted;
	struct ps_meeting meeting;
	uint32_t length;
	uint8_t *message;      /* length bytes; NULL: the length is being received */
	size_t have;           /* bytes of it that are there */
	Perseas__Reply *reply; /* the answer to the oldest request, until it is taken; or NULL */
	uint64_t asked_at;     /* when the last request was sent */
	uint64_t beat_ns;      /* how often a sign of life is due; 0: never */
	uint64_t beat_at;      /* when the last one, or a request after it, was sent */
	uint64_t worked_at;    /* when the last sign of progress came */
	struct ps_hearing hearing;
	bool silent;        /* it is over since nothing was heard */
	uint64_t entrusted; /* the vault's number of it; 0: it is here */

	/* That came with the message. Reading never goes beyond a message's end, so they
	 * cannot be another's. */
	struct ps_descriptors descriptors;
};

static inline const char *ps_control_name(const struct ps_control *control)
{
	return control->dial.address.text;
}

/* Dials and sends as far as that goes without waiting. Locked. */
void ps_control_push(struct ps_control *control, uint64_t until_ns);

/* control_signs.c: sends the signs that are due on all connections (arg: a struct ps_controls), and
 * says when there is something to do next. Locked. */
uint64_t ps_controls_beat(void *arg);

#endif
