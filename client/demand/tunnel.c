/*
 * tunnel.c - see tunnel.h. fetch_connection.c opens connections, and pager_uffd.c begins and ends
 * the thread. Bytes of either side are passed on unchanged, and fetch_connection.c checks them. The
 * thread must never touch memory of a segment, or hold a lock that the lane may need.
 */
#include "tunnel.h"

#include "fetch_connection.h"

#include "../host/socket.h"
#include "../../proto/base/stream.h"
#include "../../proto/base/standard_streams.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	LINES = 2 * PS_MIRRORS_MAX, /* a connection that the lane closed may last a moment longer */
	UP = 8 << 10,               /* more than the requests that a lane sends at once */
	DOWN = 64 << 10,
	TURN = 8, /* pieces that are passed on before other connections have their turn */
};

/* A connection that the lane asks for, sent through the pair `orders`. */
struct order {
	int near;
	uint32_t length;
	char host[sizeof(((struct ps_address *)NULL)->host)];
	_Alignas(8) uint8_t to[128];
};

enum state { FREE, CONNECTING, SHAKING, CARRYING };

/* Bytes received from one side, and how many of them were sent to the other side. */
struct carried {
	size_t have, gone;
};

struct line {
	enum state state;
	int near;
	struct ps_stream stream;
	struct order order;
	struct carried up, down;
	uint8_t up_bytes[UP], down_bytes[DOWN];
};

struct ps_tunnel {
	struct ps_tls *tls;
	int orders[2]; /* the lane's end, and the tunnel's; -1: none */
	struct line lines[LINES];
};

struct ps_tunnel *ps_tunnel_new(struct ps_tls *tls)
{
	struct ps_tunnel *tunnel = calloc(1, sizeof(*tunnel));

	if (!tunnel)
		return NULL;
	tunnel->tls = tls;
	tunnel->orders[0] = tunnel->orders[1] = -1;
	return tunnel;
}

void ps_tunnel_free(struct ps_tunnel *tunnel)
{
	free(tunnel);
}

/* --- the lane --- */

int ps_tunnel_open(struct ps_tunnel *tunnel)
{
	return ps_pair_above_standard(socketpair(AF_UNIX,
	                                         SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
	                                         tunnel->orders),
	                              tunnel->orders);
}

void ps_tunnel_quit(struct ps_tunnel *tunnel)
{
	close(tunnel->orders[0]);
}

int ps_tunnel_dial(struct ps_tunnel *tunnel, const struct ps_known_addresses *way, unsigned at)
{
	struct order order = { .length = way->lengths[at] };
	int pair[2];

	static_assert(sizeof(order.to) == sizeof(way->to[0]), "any address");
	if (ps_pair_above_standard(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
	                                      0, pair),
	                           pair))
		return -1;
	order.near = pair[1];
	memcpy(order.to, way->to[at], sizeof(order.to));
	memcpy(order.host, way->address.host, sizeof(order.host));
	if (send(tunnel->orders[0], &order, sizeof(order), MSG_NOSIGNAL) == sizeof(order))
		return pair[0];
	close(pair[0]);
	close(pair[1]);
	return -1;
}

/* --- lines --- */

static void end_tls_connection(struct line *line)
{
	if (line->stream.fd >= 0)
		ps_stream_close(&line->stream);
	close(line->near);
	line->state = FREE;
}

static void begin_tls_connection(struct ps_tunnel *tunnel, const struct order *order)
{
	struct line *line = tunnel->lines;

	while (line < tunnel->lines + LINES && line->state != FREE)
		line++;
	if (line == tunnel->lines + LINES) {
		close(order->near);
		return;
	}
	line->order = *order;
	line->near = order->near;
	line->up = line->down = (struct carried){ 0, 0 };
	line->state = CONNECTING;
	line->stream = (struct ps_stream){ .fd = ps_fetch_connect(order->to, order->length) };
	if (line->stream.fd < 0)
		end_tls_connection(line);
}

/* Notes what a receive returned. Returns false if that side has ended. Sets *stuck if no bytes had
 * arrived. */
static bool note_received(struct carried *carried, ssize_t got, bool *stuck)
{
	if (got > 0)
		*carried = (struct carried){ (size_t)got, 0 };
	*stuck = got < 0;
	return got > 0 || (got < 0 && ps_would_block(errno));
}

static bool note_sent(struct carried *carried, ssize_t gone, bool *stuck)
{
	if (gone > 0)
		carried->gone += (size_t)gone;
	*stuck = carried->gone < carried->have;
	return gone >= 0 || ps_would_block(errno);
}

static bool carry_from_lane(struct line *line)
{
	struct carried *up = &line->up;
	bool stuck = false, goes_on = true;

	for (unsigned turn = 0; goes_on && !stuck && turn < TURN; turn++) {
		if (up->gone == up->have)
			goes_on = note_received(up,
			                        recv(line->near, line->up_bytes, UP, MSG_DONTWAIT),
			                        &stuck);
		if (goes_on && !stuck) {
			const struct iovec part = { line->up_bytes + up->gone,
				                    up->have - up->gone };

			goes_on = note_sent(up, ps_stream_send(&line->stream, &part, 1), &stuck);
		}
	}
	return goes_on;
}

static bool carry_from_mirror(struct line *line)
{
	struct carried *down = &line->down;
	bool stuck = false, goes_on = true;

	for (unsigned turn = 0; goes_on && !stuck && turn < TURN; turn++) {
		if (down->gone == down->have)
			goes_on = note_received(down,
			                        ps_stream_recv(&line->stream, line->down_bytes,
			                                       DOWN),
			                        &stuck);
		if (goes_on && !stuck)
			goes_on = note_sent(down,
			                    send(line->near, line->down_bytes + down->gone,
			                         down->have - down->gone,
			                         MSG_NOSIGNAL | MSG_DONTWAIT),
			                    &stuck);
	}
	return goes_on;
}

/* Returns true if the lane has closed its end. */
static bool has_lane_hung_up(const struct line *line)
{
	struct pollfd fd = { .fd = line->near };

	return poll(&fd, 1, 0) > 0 && fd.revents & (POLLHUP | POLLERR | POLLNVAL);
}

/* Continues a connection without waiting. Returns false if it has ended. */
static bool advance_tls_connection(struct ps_tunnel *tunnel, struct line *line)
{
	int error, connected, shaken;

	if (has_lane_hung_up(line))
		return false;
	if (line->state == CONNECTING) {
		connected = ps_connect_result(line->stream.fd, &error);
		if (connected < 0)
			return false;
		if (connected && ps_stream_begin_tls(&line->stream, tunnel->tls, line->order.host))
			return false;
		if (connected)
			line->state = SHAKING;
	}
	if (line->state == SHAKING) {
		shaken = ps_stream_handshake(&line->stream);
		if (shaken < 0)
			return false;
		if (shaken)
			line->state = CARRYING;
	}
	return line->state != CARRYING || (carry_from_lane(line) && carry_from_mirror(line));
}

/* --- the thread --- */

/* Sets the two events that the connection waits for. Returns true if it need not wait. */
static bool fill_connection_pollfds(const struct line *line, struct pollfd *fds)
{
	const bool sends = line->up.gone < line->up.have, full = line->down.gone < line->down.have;

	fds[0] = (struct pollfd){ .fd = line->near };
	fds[1] = (struct pollfd){ .fd = line->stream.fd, .events = POLLOUT };
	if (line->state == CONNECTING)
		return false;
	fds[1].events = ps_stream_events(&line->stream, sends);
	if (line->state == SHAKING)
		return false;
	fds[0].events = (short)((sends ? 0 : POLLIN) | (full ? POLLOUT : 0));
	/* While bytes for the lane are stuck, no more are received, and an end is noticed later. */
	if (full)
		fds[1] = (struct pollfd){ .fd = sends ? line->stream.fd : -1, .events = POLLOUT };
	return !full && ps_stream_pending(&line->stream);
}

/* Takes the lane's orders. Returns false if the thread must end. */
static bool take_dial_requests(struct ps_tunnel *tunnel)
{
	struct order order;
	ssize_t n;

	while ((n = recv(tunnel->orders[1], &order, sizeof(order), MSG_DONTWAIT)) > 0)
		if (n == sizeof(order))
			begin_tls_connection(tunnel, &order);
	return n < 0 && ps_would_block(errno);
}

static void wait_for_events(const struct ps_tunnel *tunnel)
{
	struct pollfd fds[1 + 2 * LINES] = { { tunnel->orders[1], POLLIN, 0 } };
	unsigned count = 1;
	bool goes_on = false;

	for (unsigned i = 0; i < LINES; i++) {
		if (tunnel->lines[i].state == FREE)
			continue;
		goes_on |= fill_connection_pollfds(&tunnel->lines[i], &fds[count]);
		count += 2;
	}
	(void)poll(fds, count, goes_on ? 0 : -1);
}

void *ps_tunnel_run(void *arg)
{
	struct ps_tunnel *tunnel = arg;

	while (take_dial_requests(tunnel)) {
		for (unsigned i = 0; i < LINES; i++)
			if (tunnel->lines[i].state != FREE &&
			    !advance_tls_connection(tunnel, &tunnel->lines[i]))
				end_tls_connection(&tunnel->lines[i]);
		wait_for_events(tunnel);
	}
	for (unsigned i = 0; i < LINES; i++)
		if (tunnel->lines[i].state != FREE)
			end_tls_connection(&tunnel->lines[i]);
	close(tunnel->orders[1]);
	return NULL;
}
