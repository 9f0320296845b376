/*
 * greeting.c - establishes a data connection over TCP (greeting.h). proto/data/frame.h defines a
 * mirror's answers to the hello.
 */
#include "greeting.h"

#include "../host/secure.h"
#include "../host/socket.h"
#include "../../proto/data/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ps_greeting {
	struct ps_dial dial;
	struct ps_tls *tls; /* owned by the env; NULL for plain text */
	bool shaken, greeted;
	struct ps_hello hello;
	struct ps_answer answer; /* the answer to the hello, of which `have` bytes have arrived */
	size_t have;
};

static int check_answer(const struct ps_address *address, const struct ps_answer *answer,
                        struct ps_error *error)
{
	if (!ps_answer_valid(answer) ||
	    (answer->status == PS_ANSWER_OK && answer->op != PS_OP_HELLO))
		return ps_error_set(error, PERSEAS_EPROTOCOL,
		                    "%s did not greet as a perseasd does; check the address",
		                    address->text);
	switch ((enum ps_answer_status)answer->status) {
	case PS_ANSWER_OK:
		return 0;
	case PS_ANSWER_BAD_VERSION:
		return ps_error_set(error, PERSEAS_EVERSION,
		                    "%s does not speak version %d of the data protocol; upgrade "
		                    "the older of the two",
		                    address->text, PS_DATA_VERSION);
	case PS_ANSWER_BAD_TOKEN:
		return ps_error_set(error, PERSEAS_EUNREACHABLE,
		                    "%s no longer knows the session; it was restarted, or another "
		                    "owner has claimed the store",
		                    address->text);
	case PS_ANSWER_OTHER_IDENTITY:
		return ps_error_set(error, PERSEAS_ETLS,
		                    "%s says that the session is another's: the data connection "
		                    "must show the certificate that claimed the store",
		                    address->text);
	case PS_ANSWER_BAD_FRAME:
	case PS_ANSWER_USED_TOKEN:
	case PS_ANSWER_OTHER_DEVICE:
	case PS_ANSWER_NO_RESOURCES:
		break;
	}
	return ps_error_set(error, PERSEAS_EPROTOCOL,
	                    "%s did not understand the data protocol's greeting", address->text);
}

/* Fails because the mirror closed the connection before its answer was complete. */
static int fail_closed_by_mirror(const struct ps_stream *stream, const struct ps_address *address,
                                 const struct ps_answer *answer, struct ps_error *error)
{
	int code = ps_secure_check_failure(stream, address, error);

	if (!code)
		code = ps_secure_peer_wants_tls((const uint8_t *)answer, address, error);
	return code ? code
	            : ps_error_set(error, PERSEAS_EUNREACHABLE,
	                           "%s ended the data connection; see its log", address->text);
}

/* Takes the next step of dialing. Once connected, begins TLS if it is used. */
static int step_dial(struct ps_greeting *g, struct ps_stream *stream, uint64_t until_ns,
                     struct ps_error *error)
{
	int code = ps_dial_step(&g->dial, until_ns, error);

	if (code <= 0)
		return code;
	stream->fd = g->dial.fd;
	g->dial.fd = -1;
	code = ps_secure_begin(stream, g->tls, &g->dial.address, error);
	return code ? code : 1;
}

static int step_handshake(struct ps_greeting *g, struct ps_stream *stream, struct ps_error *error)
{
	int code = g->shaken ? 1 : ps_secure_step(stream, &g->dial.address, error);

	g->shaken = code > 0;
	return code;
}

/* Sends the hello and receives its answer. */
static int step_hello(struct ps_greeting *g, struct ps_stream *stream, struct ps_error *error)
{
	struct iovec part = { &g->hello, sizeof(g->hello) };
	ssize_t n = 1;
	int code;

	/* A new socket has space for the whole hello, so a partial send means that it failed. */
	if (!g->greeted)
		n = ps_stream_send(stream, &part, 1) == sizeof(g->hello);
	g->greeted = true;
	while (n > 0 && g->have < sizeof(g->answer)) {
		n = ps_stream_recv(stream, (uint8_t *)&g->answer + g->have,
		                   sizeof(g->answer) - g->have);
		if (n > 0)
			g->have += (size_t)n;
	}
	if (n < 0 && ps_would_block(errno))
		return 0;
	if (g->have < sizeof(g->answer))
		return fail_closed_by_mirror(stream, &g->dial.address, &g->answer, error);
	code = check_answer(&g->dial.address, &g->answer, error);
	return code ? code : 1;
}

static int fail_timed_out(const struct ps_greeting *g, const struct ps_stream *stream,
                          struct ps_error *error)
{
	if (stream->fd < 0)
		return ps_dial_fail_timeout(&g->dial, error);
	if (!g->shaken)
		return ps_secure_fail_timeout(&g->dial.address, error);
	return ps_error_set(error, PERSEAS_EUNREACHABLE,
	                    "%s took the data connection and did not answer in time; is its "
	                    "perseasd stuck?",
	                    g->dial.address.text);
}

int ps_greeting_step(struct ps_greeting *g, struct ps_stream *stream, uint64_t until_ns,
                     struct ps_error *error)
{
	int code = stream->fd < 0 ? step_dial(g, stream, until_ns, error) : 1;

	if (code > 0)
		code = step_handshake(g, stream, error);
	if (code > 0)
		code = step_hello(g, stream, error);
	if (code == 0 && ps_monotonic() >= until_ns)
		return fail_timed_out(g, stream, error);
	return code;
}

bool ps_greeting_get_pollfd(const struct ps_greeting *g, const struct ps_stream *stream,
                            struct pollfd *fd)
{
	if (stream->fd < 0)
		return ps_dial_poll_fd(&g->dial, fd);
	*fd = (struct pollfd){ stream->fd, ps_stream_events(stream, false), 0 };
	return true;
}

void ps_greeting_await(const struct ps_greeting *g, const struct ps_stream *stream,
                       uint64_t until_ns)
{
	struct pollfd fd;
	const bool waits = ps_greeting_get_pollfd(g, stream, &fd);

	if (stream->fd < 0 && g->dial.until < until_ns)
		until_ns = g->dial.until;
	ps_poll(&fd, waits, until_ns);
}

struct ps_greeting *ps_greeting_new(struct ps_tls *tls, const struct ps_address *address,
                                    const Perseas__Grant *grant, struct ps_error *error)
{
	struct ps_greeting *g;

	if (grant->token.len != PS_ID_SIZE) {
		ps_error_set(error, PERSEAS_EPROTOCOL,
		             "%s gave no token for the data connection; "
		             "is it a perseasd of this version?",
		             address->text);
		return NULL;
	}
	g = calloc(1, sizeof(*g));
	if (!g) {
		ps_error_set(error, PERSEAS_ENOMEM, "no memory for a connection to %s",
		             address->text);
		return NULL;
	}
	g->tls = tls;
	g->hello = (struct ps_hello){ .magic = PS_DATA_MAGIC, .version = PS_DATA_VERSION };
	memcpy(g->hello.token, grant->token.data, PS_ID_SIZE);
	/* Connect to the address that the control connection used. */
	if (ps_dial_begin_known(&g->dial, address, error) == 0)
		return g;
	free(g);
	return NULL;
}

void ps_greeting_free(struct ps_greeting *g)
{
	if (g)
		ps_dial_end(&g->dial);
	free(g);
}
