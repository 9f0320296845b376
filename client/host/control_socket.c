/*
 * control_socket.c - control connections: greeting, requests out, replies in, descriptors.
 *
 *     dialling --connected--> shaking --TLS, or none--> greeting --hello--> up
 *         \_____________________\__________________________\________________\__ error
 *
 * Requests are queued from the start and leave as soon as the socket takes them; the mirror's hello
 * is checked before its first reply. A reply that answers no request, or a request that timed out,
 * ends the connection: otherwise a later message could be taken for the answer to a newer request.
 */
#include "control_private.h"
#include "../core/mirror.h"
#include "secure.h"
#include "socket.h"
#include "control_errors.h"
#include "../../proto/control/envelope.h"
#include "../../proto/control/version.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WATCHED_MAX = 2 * PS_MIRRORS_MAX }; /* connections that one call of receive polls at most */

/* The addresses of a host share this time if no caller gives a deadline. */
#define DIAL_WITHIN_NS (1000 * (uint64_t)1000000)

/* --- sending --- */

static int fail_ended(struct ps_control *control, int number);

static void close_stream(struct ps_control *control)
{
	ps_stream_close(&control->stream);
	control->stream.fd = -1;
	control->handshake_done = false;
}

/* Continues to connect. Returns true if there is a stream. */
static bool connect_stream(struct ps_control *control, uint64_t until_ns)
{
	if (control->stream.fd >= 0)
		return true;
	if (ps_dial_step(&control->dial, until_ns, &control->error) <= 0)
		return false;
	control->stream.fd = control->dial.fd;
	control->dial.fd = -1;
	return !ps_secure_begin(&control->stream, control->tls, &control->dial.address,
	                        &control->error);
}

/* Continues to connect and to shake hands. Returns true if the stream takes messages. */
static bool finish_connecting(struct ps_control *control, uint64_t until_ns)
{
	int shaken = -1;

	while (shaken < 0) {
		if (!connect_stream(control, until_ns))
			return false;
		shaken = ps_stream_handshake(&control->stream);
		if (shaken < 0 && !ps_dial_distrust(&control->dial)) {
			fail_ended(control, errno);
			return false;
		}
		if (shaken < 0)
			close_stream(control);
	}
	control->handshake_done = shaken > 0;
	if (control->handshake_done)
		ps_stream_peer_expiries(&control->stream, &control->expiries);
	return control->handshake_done;
}

void ps_control_push(struct ps_control *control, uint64_t until_ns)
{
	assert(pthread_mutex_trylock(&control->all->lock) == EBUSY);
	if (!control->error.code &&
	    (control->handshake_done || finish_connecting(control, until_ns)))
		ps_outbox_send(&control->out, &control->stream);
}

/* Returns true if the connection can proceed without an answer: it is being made, or has something
 * to send. */
static bool is_pushing(const struct ps_control *control)
{
	return !control->error.code &&
	       (!control->handshake_done || !ps_outbox_empty(&control->out));
}

/* Returns the descriptor and events to poll for. */
static struct pollfd poll_target(const struct ps_control *control)
{
	struct pollfd fd;

	/* A reply that has arrived counts only if the name service leads to this mirror. */
	if (control->stream.fd < 0 || (control->reply && control->dial.lookup))
		(void)ps_dial_poll_fd(&control->dial, &fd);
	else
		fd = (struct pollfd){ control->stream.fd,
			              ps_stream_events(&control->stream, is_pushing(control)), 0 };
	return fd;
}

/* --- receiving --- */

static int fail_ended(struct ps_control *control, int number)
{
	const struct ps_address *address = &control->dial.address;
	struct ps_error *error = &control->error;

	if (ps_secure_check_failure(&control->stream, address, error) ||
	    (!control->greeted &&
	     ps_secure_peer_wants_tls((const uint8_t *)&control->greeting.answer, address, error)))
		return error->code;
	return ps_control_error_ended(error, ps_control_name(control), control->greeted, number);
}

/* As recv(). Keeps the descriptors that arrive with the bytes. */
static ssize_t receive_some(struct ps_control *control, void *to, size_t len)
{
	if (control->stream.tls)
		return ps_stream_recv(&control->stream, to, len);
	return ps_descriptors_recv(&control->descriptors, control->stream.fd, to, len);
}

/* Receives a part of `want` bytes. Returns 1 if it is complete, 0 if not yet, or an error code. */
static int receive_part(struct ps_control *control, void *to, size_t want)
{
	while (control->received < want) {
		ssize_t n = receive_some(control, (uint8_t *)to + control->received,
		                         want - control->received);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && ps_would_block(errno))
			return 0;
		if (n <= 0)
			return fail_ended(control, n < 0 ? errno : 0);
		control->received += (size_t)n;
		control->liveness.heard = true;
	}
	control->received = 0;
	return 1;
}

static int check_hello(struct ps_control *control)
{
	if (ps_secure_peer_wants_tls((const uint8_t *)&control->greeting.answer,
	                             &control->dial.address, &control->error))
		return control->error.code;
	if (ps_control_greeting_end(&control->greeting, ps_control_name(control), &control->error))
		return control->error.code;
	control->greeted = true;
	return 0;
}

/* Allocates the message whose length was received. A heartbeat has length 0. */
static int begin_message(struct ps_control *control)
{
	if (control->length == 0)
		return 0;
	if (control->length > PS_MESSAGE_MAX)
		return ps_control_error_too_long(&control->error, ps_control_name(control),
		                                 control->length);
	control->message = malloc(control->length);
	if (!control->message)
		return ps_error_set(&control->error, PERSEAS_ENOMEM,
		                    "no memory for a message of %u bytes from %s", control->length,
		                    ps_control_name(control));
	return 0;
}

/* Takes a complete message: the answer to the oldest request, or a sign of its progress. Returns 0
 * or an error code. */
static int take_message(struct ps_control *control)
{
	const char *why;
	Perseas__Reply *reply = ps_reply_unpack(control->message, control->length, &why);
	enum ps_match match;

	free(control->message);
	control->message = NULL;
	if (!reply)
		return ps_control_error_bad_reply(&control->error, ps_control_name(control), why);
	match = ps_asked_match(&control->asked, reply);
	if (match == PS_MATCH_ANSWER) {
		control->reply = reply;
		return 0;
	}
	perseas__reply__free_unpacked(reply, NULL);
	if (match == PS_MATCH_NONE)
		return ps_control_error_bad_reply(&control->error, ps_control_name(control),
		                                  "it answers nothing that was asked");
	control->last_progress_at = ps_monotonic();
	return 0;
}

/* Receives the hello, a length, or a message, without waiting. Returns 1 if that part is complete,
 * 0 if not yet, or an error code. */
static int receive_next_part(struct ps_control *control)
{
	int got;

	if (!control->greeted) {
		got = receive_part(control, &control->greeting.answer,
		                   sizeof(control->greeting.answer));
		if (got > 0 && check_hello(control))
			return control->error.code;
		return control->handshake_done ? got : 0;
	}
	if (!control->message) {
		got = receive_part(control, &control->length, sizeof(control->length));
		return got > 0 && begin_message(control) ? control->error.code : got;
	}
	got = receive_part(control, control->message, control->length);
	return got > 0 && take_message(control) ? control->error.code : got;
}

/* Checks the daemon that sent the reply. Returns 1 if it is the mirror's, 0 if that is not known
 * yet, or an error code. */
static int accept_daemon(struct ps_control *control)
{
	const ProtobufCBinaryData *daemon = &control->reply->daemon;

	return ps_dial_accept(&control->dial, daemon->len == PS_ID_SIZE ? daemon->data : NULL,
	                      &control->error);
}

/* Receives without waiting. Returns 1 if a reply has arrived, 0 if not yet, or an error code. */
static int receive_reply(struct ps_control *control)
{
	int got = 1;

	if (control->error.code)
		return control->error.code;
	if (!control->handshake_done)
		return 0;
	while (!control->reply && got > 0)
		got = receive_next_part(control);
	return got > 0 ? accept_daemon(control) : got;
}

/* Waits, without the lock, until a connection can proceed, or until until_ns. */
static void wait_ready(struct ps_control *control, uint64_t until_ns)
{
	struct pollfd fds[WATCHED_MAX];
	struct ps_controls *all = control->all;
	struct ps_control *at;
	unsigned count = 0;

	for (at = all->first; at && count < WATCHED_MAX - 1; at = at->next) {
		if (at == control || !is_pushing(at))
			continue;
		/* The thread that waits for an answer on `at` receives it. */
		fds[count++] = at->handshake_done ? (struct pollfd){ at->stream.fd, POLLOUT, 0 }
		                                  : poll_target(at);
		if (at->stream.fd < 0)
			until_ns = ps_earlier(until_ns, at->dial.until);
	}
	fds[count] = poll_target(control);
	if (control->stream.fd < 0)
		until_ns = ps_earlier(until_ns, control->dial.until);
	pthread_mutex_unlock(&all->lock);
	ps_poll(fds, count + 1, until_ns);
	pthread_mutex_lock(&all->lock);
}

/* Sets the error of a connection whose request timed out. Returns its code. */
static int fail_timeout(struct ps_control *control)
{
	struct ps_error *error = &control->error;

	if (control->stream.fd < 0 || control->reply)
		return ps_dial_fail_timeout(&control->dial, error);
	if (!control->handshake_done)
		return ps_secure_fail_timeout(&control->dial.address, error);
	return ps_control_error_timeout(error, ps_control_name(control), control->greeted);
}

/* Returns when to stop waiting for an answer: each sign of progress allows `patience` more. */
static uint64_t extended_deadline(const struct ps_control *control, uint64_t until_ns,
                                  uint64_t patience)
{
	uint64_t again = control->last_progress_at + patience;

	return again > until_ns ? again : until_ns;
}

/* Waits for an answer. Returns 0 or an error code. The caller may have waited for another mirror
 * first, so `patience` is counted from when the request was sent. */
static int await_reply(struct ps_control *control, uint64_t until_ns)
{
	const uint64_t since = ps_earlier(ps_monotonic(), control->asked_at);
	const uint64_t patience = until_ns > since && until_ns != PS_NEVER ? until_ns - since : 0;
	struct ps_control *at;
	uint64_t until;
	int got;

	control->last_progress_at = since;
	for (;;) {
		until = extended_deadline(control, until_ns, patience);
		for (at = control->all->first; at; at = at->next)
			ps_control_push(at, until);
		got = receive_reply(control);
		if (got)
			return got > 0 ? 0 : got;
		/* Checked last: an answer that came in time counts, however late it is taken. */
		if (ps_monotonic() >= extended_deadline(control, until_ns, patience))
			return fail_timeout(control);
		wait_ready(control, extended_deadline(control, until_ns, patience));
	}
}

/* --- replies --- */

/* Returns the code of the connection's error, with its sentence in *error. */
static int copy_error(const struct ps_control *control, struct ps_error *error)
{
	if (error)
		*error = control->error;
	return control->error.code;
}

int ps_control_receive(struct ps_control *control, uint64_t until_ns, Perseas__Reply **reply,
                       int *fds, unsigned *count, struct ps_error *error)
{
	int code;

	*reply = NULL;
	if (count)
		*count = 0;
	pthread_mutex_lock(&control->all->lock);
	assert(control->reply || control->asked.due > 0 || control->error.code);
	code = await_reply(control, until_ns);
	if (!code)
		code = ps_descriptors_give(&control->descriptors,
		                           ps_descriptors_due(control->reply), fds, count,
		                           ps_control_name(control), &control->error);
	if (!code) {
		*reply = control->reply;
		control->reply = NULL;
	} else {
		copy_error(control, error);
	}
	pthread_mutex_unlock(&control->all->lock);
	return code;
}

int ps_control_send(struct ps_control *control, const Perseas__Request *request,
                    struct ps_error *error)
{
	Perseas__Request numbered = *request;
	const unsigned version = ps_version_needed_by(&request->base);
	uint8_t *bytes;
	size_t len;
	int code = 0;

	/* No other thread sends on this connection, so this id is still free. */
	numbered.id = control->asked.last + 1;
	if (ps_request_pack(&numbered, &bytes, &len))
		return ps_error_set(error, PERSEAS_ENOMEM,
		                    "no memory for a request to %s, or it is longer than %u bytes",
		                    ps_control_name(control), PS_MESSAGE_MAX);
	pthread_mutex_lock(&control->all->lock);
	if (control->greeted && version > control->greeting.version && !control->error.code)
		ps_control_error_old_version(&control->error, ps_control_name(control),
		                             control->greeting.version, version);
	if (control->error.code) {
		code = copy_error(control, error);
	} else if (!ps_control_greeting_add(&control->greeting, &control->out, version, bytes,
	                                    len)) {
		code = ps_error_set(error, PERSEAS_ENOMEM, "no memory for a request to %s",
		                    ps_control_name(control));
	} else {
		ps_asked_add(&control->asked, request->body_case);
		control->asked_at = control->heartbeat_at = ps_monotonic();
		/* ps_control_receive reports what fails here. */
		ps_control_push(control, PS_NEVER);
	}
	pthread_mutex_unlock(&control->all->lock);
	free(bytes);
	return code;
}

/* --- connecting and disconnecting --- */

void ps_controls_init(struct ps_controls *all)
{
	pthread_mutex_init(&all->lock, NULL);
	all->first = NULL;
	ps_heartbeats_init(&all->heartbeats, &all->lock, ps_controls_send_heartbeats, all);
	ps_vault_init(&all->vault);
}

void ps_controls_close(struct ps_controls *all)
{
	assert(!all->first);
	ps_heartbeats_end(&all->heartbeats);
	ps_vault_close(&all->vault);
	pthread_mutex_destroy(&all->lock);
}

struct ps_control *ps_control_connect(struct ps_controls *all, struct ps_tls *tls,
                                      const struct ps_address *address, struct ps_error *error)
{
	struct ps_control *control = calloc(1, sizeof(*control));

	if (!control || !ps_control_greeting_begin(&control->greeting, &control->out)) {
		ps_error_set(error, PERSEAS_ENOMEM, "no memory for a connection to %s",
		             address->text);
		free(control);
		return NULL;
	}
	control->stream.fd = -1;
	control->tls = tls;
	control->all = all;
	if (ps_dial_begin(&control->dial, address, error)) {
		ps_outbox_free(&control->out);
		free(control);
		return NULL;
	}
	pthread_mutex_lock(&all->lock);
	control->next = all->first;
	all->first = control;
	ps_control_push(control, PS_NEVER);
	pthread_mutex_unlock(&all->lock);
	return control;
}

bool ps_control_answered(struct ps_control *control)
{
	bool there;

	pthread_mutex_lock(&control->all->lock);
	ps_control_push(control, control->dial.began_at + DIAL_WITHIN_NS);
	there = receive_reply(control) != 0;
	pthread_mutex_unlock(&control->all->lock);
	return there;
}

bool ps_control_ended(struct ps_control *control)
{
	bool over;

	pthread_mutex_lock(&control->all->lock);
	/* Takes heartbeats, and finds messages that answer no request. Otherwise the descriptor
	 * would stay readable. */
	over = receive_reply(control) < 0;
	pthread_mutex_unlock(&control->all->lock);
	return over;
}

bool ps_control_silent(struct ps_control *control)
{
	bool silent;

	pthread_mutex_lock(&control->all->lock);
	silent = control->silent;
	pthread_mutex_unlock(&control->all->lock);
	return silent;
}

void ps_control_shown_expiries(struct ps_control *control, struct ps_expiries *expiries)
{
	pthread_mutex_lock(&control->all->lock);
	*expiries = control->expiries;
	pthread_mutex_unlock(&control->all->lock);
}

int ps_control_fd(struct ps_control *control)
{
	struct pollfd fd;

	return ps_control_waits(control, &fd) && control->stream.fd >= 0 ? fd.fd : -1;
}

bool ps_control_waits(struct ps_control *control, struct pollfd *fd)
{
	pthread_mutex_lock(&control->all->lock);
	*fd = poll_target(control);
	if (control->error.code)
		fd->fd = -1;
	pthread_mutex_unlock(&control->all->lock);
	return fd->fd >= 0;
}

bool ps_control_entrust(struct ps_control *control)
{
	pthread_mutex_lock(&control->all->lock);
	assert(!control->asked.due && !control->error.code);
	control->entrusted = ps_vault_keep_stream(&control->all->vault, &control->stream);
	pthread_mutex_unlock(&control->all->lock);
	return control->entrusted != 0;
}

unsigned ps_control_version(struct ps_control *control)
{
	unsigned version;

	pthread_mutex_lock(&control->all->lock);
	version = control->greeted ? control->greeting.version : 0;
	pthread_mutex_unlock(&control->all->lock);
	return version;
}

uint64_t ps_control_worked_at(struct ps_control *control)
{
	return control->last_progress_at;
}

void ps_control_disconnect(struct ps_control *control)
{
	struct ps_control **link;

	if (!control)
		return;
	pthread_mutex_lock(&control->all->lock);
	for (link = &control->all->first; *link != control; link = &(*link)->next)
		;
	*link = control->next;
	ps_vault_drop(&control->all->vault, control->entrusted);
	pthread_mutex_unlock(&control->all->lock);
	ps_dial_end(&control->dial);
	ps_stream_close(&control->stream);
	ps_descriptors_close(&control->descriptors);
	free(control->message);
	if (control->reply)
		perseas__reply__free_unpacked(control->reply, NULL);
	ps_outbox_free(&control->out);
	free(control);
}
