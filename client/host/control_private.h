/*
 * control_private.h - a control connection, for the files that share it: control_socket.c, which
 * has its life, requests and replies, and control_heartbeat.c, which has its signs of life.
 */
#ifndef PERSEAS_CLIENT_CONTROL_PRIVATE_H
#define PERSEAS_CLIENT_CONTROL_PRIVATE_H

#include "control_socket.h"
#include "asked.h"
#include "descriptors.h"
#include "liveness.h"
#include "control_greeting.h"
#include "outbox.h"
#include "socket.h"

struct ps_control {
	struct ps_controls *all;
	struct ps_control *next;
	struct ps_dial dial;
	struct ps_tls *tls;       /* the env's */
	struct ps_stream stream;  /* fd -1: not connected yet */
	bool shaken;              /* the TLS handshake is over, or there is no TLS */
	struct ps_expiries shown; /* of the mirror's certificates, with `shaken` */
	struct ps_error error;    /* code 0: none */
	struct ps_asked asked;    /* requests not yet answered */

	struct ps_outbox out; /* hello and requests that are not sent yet */

	/* The connection receives the hello, then in turn a length and a message. */
	bool greeted; /* the hello is complete, and a version was agreed on */
	struct ps_control_greeting greeting;
	uint32_t length;
	uint8_t *message;      /* length bytes; NULL: the length is being received */
	size_t have;           /* bytes received of the current part */
	Perseas__Reply *reply; /* the answer to the oldest request, until it is taken; or NULL */
	uint64_t asked_at;     /* when the newest request was sent */
	uint64_t heartbeat_ns; /* how often a sign of life is due; 0: never */
	uint64_t heartbeat_at; /* when the last one, or a request after it, was sent */
	uint64_t worked_at;    /* when the last sign of progress came */
	struct ps_liveness liveness;
	bool silent;        /* the connection is over because nothing was heard */
	uint64_t entrusted; /* the vault's number for the stream; 0: the stream is here */

	/* Descriptors that came with the message. Reading never goes beyond a message's end, so
	 * they cannot belong to another one. */
	struct ps_descriptors descriptors;
};

static inline const char *ps_control_name(const struct ps_control *control)
{
	return control->dial.address.text;
}

static inline uint64_t ps_earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Connects and sends as far as possible without waiting. The caller holds the lock. */
void ps_control_push(struct ps_control *control, uint64_t until_ns);

/* Sends the heartbeats that are due on all connections (arg: a struct ps_controls), and looks
 * whether the mirrors are heard. Returns when it must be called next. The caller holds the lock. */
uint64_t ps_controls_send_heartbeats(void *arg);

#endif
