/*
 * control_private.h - the struct of a control connection, for the two files that share it:
 * control_socket.c (connecting, requests, replies) and control_heartbeat.c (heartbeats and
 * silence).
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
	struct ps_controls *all; /* the connections of the same env */
	struct ps_control *next; /* next connection in all->first */
	struct ps_dial dial;
	struct ps_tls *tls;      /* belongs to the env; NULL: plain text */
	struct ps_stream stream; /* stream.fd is -1 while there is no connection */
	bool handshake_done;     /* the TLS handshake is complete, or there is no TLS */
	/* When the certificates expire that the mirror presented; set with handshake_done. */
	struct ps_expiries expiries;
	struct ps_error error; /* why the connection is over; code 0: it is not */
	struct ps_asked asked; /* requests not yet answered */

	struct ps_outbox out; /* the hello and requests that are not sent yet */

	/* The hello is received first, then a length and a message in turn. */
	bool greeted; /* the hello is complete, and a version was agreed on */
	struct ps_control_greeting greeting;
	uint32_t length; /* length of the message that is received next */
	/* A buffer of `length` bytes; NULL while the length is being received. */
	uint8_t *message;
	size_t received; /* bytes received of the current part */
	/* The answer to the oldest request, until the caller takes it; or NULL. */
	Perseas__Reply *reply;
	uint64_t asked_at;         /* when the newest request was sent */
	uint64_t heartbeat_ns;     /* interval of heartbeats; 0: none are sent */
	uint64_t heartbeat_at;     /* when the last heartbeat or request was sent */
	uint64_t last_progress_at; /* when the last sign of progress arrived */
	struct ps_liveness liveness;
	bool silent;        /* the connection was ended because nothing arrived for too long */
	uint64_t entrusted; /* number under which the vault keeps the stream; 0: it does not */

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

/* Sends the heartbeats that are due on all connections (arg: a struct ps_controls), and ends
 * connections on which nothing arrived for too long. Returns when to call it next. The caller holds
 * the lock. */
uint64_t ps_controls_send_heartbeats(void *arg);

#endif
