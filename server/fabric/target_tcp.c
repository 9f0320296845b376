/*
 * target_tcp.c - data connections. Bytes go from the socket through one buffer into the image, and
 * answers are sent directly. While a peer does not take its answers, nothing is read from it.
 *
 * The loop reads a connection until its session is known, then the thread of its lane, if there is
 * one (lanes.h). A thread never closes a connection: it sets close_reason, and the loop closes it.
 */
#include "target_tcp.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { ROUNDS = 8 }; /* buffers that one link may receive before others have their turn */

static bool is_threaded(const struct data_link *link)
{
	return link->lane->epoll_fd >= 0;
}

static void lane_add_link(struct data_link *link, struct lane *lane)
{
	link->lane = lane;
	link->next = lane->links;
	link->link = &lane->links;
	if (link->next)
		link->next->link = &link->next;
	lane->links = link;
	lane->count++;
}

static void lane_remove_link(struct data_link *link)
{
	if (link->next)
		link->next->link = link->link;
	*link->link = link->next;
	assert(link->lane->count > 0);
	link->lane->count--;
	link->lane->links_taken++;
}

/* Closes the link. Called by the loop, inside the lock. */
static void data_close(struct data_link *link)
{
	assert(daemon_has_lock(link->daemon));
	if (ps_stream_fault(&link->stream))
		log_event(LOG_LEVEL_WARNING, "tls-broken",
		          &(struct log_fields){ .peer = link->peer },
		          "the data connection from %s is over: %s", link->peer,
		          ps_stream_fault_text(&link->stream));
	if (link->session)
		link->session->fabric = NULL;
	lane_remove_link(link);
	if (is_threaded(link) && link->polled_events)
		epoll_ctl(link->lane->epoll_fd, EPOLL_CTL_DEL, link->stream.fd, NULL);
	if (link->readable)
		event_free(link->readable);
	if (link->writable)
		event_free(link->writable);
	if (link->deadline)
		event_free(link->deadline);
	ps_stream_close(&link->stream);
	admission_remove(&link->admitted);
	free(link->queue);
	free(link);
}

/* Does what data_update_events() does, for a link in a lane with a thread. */
static void lane_update_events(struct data_link *link)
{
	struct epoll_event event = { .events = link->count > 0 ? EPOLLOUT : EPOLLIN,
		                     .data.ptr = link };
	const int how = link->polled_events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (event.events != link->polled_events &&
	    epoll_ctl(link->lane->epoll_fd, how, link->stream.fd, &event) < 0) {
		link->close_reason = CLOSE_FAILED;
		return;
	}
	link->polled_events = event.events;
	link->has_pending = link->count == 0 && ps_stream_pending(&link->stream);
	link->lane->has_unreported_bytes |= link->has_pending;
}

/* Has the link polled for reading or, while answers are unsent, for writing only. If decrypted
 * bytes are waiting, has them read after other connections had their turn. */
static void data_update_events(struct data_link *link)
{
	if (is_threaded(link)) {
		lane_update_events(link);
	} else if (link->count > 0) {
		event_del(link->readable);
		event_add(link->writable, NULL);
	} else {
		event_del(link->writable);
		event_add(link->readable, NULL);
		if (ps_stream_pending(&link->stream))
			daemon_rerun_event(link->daemon, link->readable);
	}
}

static void answer_hello(struct data_link *link, enum ps_answer_status status)
{
	struct ps_answer answer = { .op = PS_OP_HELLO, .status = (uint8_t)status };

	data_queue_answer(link, &answer, NULL);
}

static void free_event(struct event **event)
{
	event_free(*event);
	*event = NULL;
}

/* Moves a link from the loop to a thread, which serves it when the loop leaves the lock. */
static void move_to_lane(struct data_link *link, struct lane *lane)
{
	free_event(&link->readable);
	free_event(&link->writable);
	lane_remove_link(link);
	lane_add_link(link, lane);
	link->moved = 0;
	lane_update_events(link);
}

/* Makes the link the data path of the session. First cuts an earlier path, because bytes that are
 * buffered in it must not arrive later. */
static void bind_session(struct data_link *link, struct session *session)
{
	struct lane *lane;

	daemon_cut_data_paths(link->daemon, session);
	assert(!link->session && !session->fabric);
	link->session = session;
	session->fabric = target_tcp.name;
	free_event(&link->deadline);
	lane = lanes_least_loaded(link->daemon);
	if (lane)
		move_to_lane(link, lane);
	else
		event_priority_set(link->readable, PRIORITY_OWNERS);
}

/* Handles a complete hello. Returns 0, or -1 if the peer is refused and the link must end. */
static int handle_hello(struct data_link *link)
{
	struct session *session;

	if (link->hello.version != PS_DATA_VERSION) {
		(void)daemon_count_refusal(link->daemon, REFUSED_HELLO);
		answer_hello(link, PS_ANSWER_BAD_VERSION);
		return -1;
	}
	session = link->hello.zero ? NULL
	                           : stores_find_session(link->daemon->stores, link->hello.token);
	if (!session) {
		log_limited(daemon_count_refusal(link->daemon, REFUSED_TOKEN), LOG_LEVEL_INFO,
		            "data-refused", &(struct log_fields){ .peer = link->peer },
		            "data connection from %s has the token of no session", link->peer);
		answer_hello(link, PS_ANSWER_BAD_TOKEN);
		return -1;
	}
	if (strcmp(link->identity, session->identity.name) != 0) {
		/* The token belongs to another identity, so it was stolen: always log that. */
		(void)daemon_count_refusal(link->daemon, REFUSED_TOKEN);
		log_event(LOG_LEVEL_WARNING, "data-refused",
		          &(struct log_fields){ .peer = link->peer },
		          "data connection from %s (%s) has the token of %s (%s): it is refused",
		          link->peer, link->identity, session->peer, session->identity.name);
		answer_hello(link, PS_ANSWER_OTHER_IDENTITY);
		return -1;
	}
	bind_session(link, session);
	answer_hello(link, PS_ANSWER_OK);
	return 0;
}

/* Consumes received bytes. Returns 0, or -1 if the link must end after its answers are sent. */
static int consume_bytes(struct data_link *link, const uint8_t *bytes, size_t len)
{
	if (!link->session) {
		size_t want = sizeof(link->hello) - link->hello_have;
		size_t part = len < want ? len : want;

		memcpy((uint8_t *)&link->hello + link->hello_have, bytes, part);
		link->hello_have += (uint32_t)part;
		if (link->hello_have < sizeof(link->hello))
			return 0;
		if (handle_hello(link) < 0)
			return -1;
		bytes += part;
		len -= part;
	}
	return ps_decoder_feed(&link->decoder, bytes, len);
}

/* Returns why the link must be closed after the decoder consumed bytes with the result `fed`, or
 * CLOSE_NOT. */
static enum close_reason close_reason_after(struct data_link *link, int fed)
{
	if (link->session && session_is_torn(link->session))
		return CLOSE_TORN;
	if (fed < 0) {
		(void)data_flush(link);
		return CLOSE_REFUSED;
	}
	return data_flush(link) < 0 || link->failed ? CLOSE_FAILED : link->close_reason;
}

/* Receives and applies bytes. Returns their number, 0 if the link must be closed, or -1 if no bytes
 * have arrived. */
static ssize_t data_receive(struct data_link *link)
{
	uint8_t *buffer = link->lane->buffer;
	ssize_t n = ps_stream_recv(&link->stream, buffer, DATA_BUFFER_SIZE);

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return -1;
	if (n <= 0) {
		link->close_reason = CLOSE_ENDED;
		return 0;
	}
	link->lane->has_new_data = true;
	link->lane->last_data_ns = daemon_now_ns();
	link->lane->traffic.received_bytes += (uint64_t)n;
	link->moved = link->lane->spin_count;
	link->close_reason = close_reason_after(link, consume_bytes(link, buffer, (size_t)n));
	return link->close_reason ? 0 : n;
}

/* Reads the bytes that have arrived. Returns true if any data moved. Sets link->close_reason if the
 * link must be closed. */
static bool data_read(struct data_link *link)
{
	ssize_t n = data_receive(link);
	bool moved = n >= 0;

	for (int round = 1; n == DATA_BUFFER_SIZE && link->count == 0 && round < ROUNDS; round++)
		n = data_receive(link);
	if (n != 0 && (link->count > 0 || ps_stream_pending(&link->stream)))
		data_update_events(link);
	return moved;
}

/* Closes the link in the way that its close_reason requires. Called by the loop, inside the
 * lock. */
static void data_close_by_reason(struct data_link *link)
{
	struct stores *stores = link->daemon->stores;
	const enum close_reason close_reason = link->close_reason;

	if (close_reason == CLOSE_REFUSED)
		log_event(LOG_LEVEL_DEBUG, "data-refused",
		          &(struct log_fields){ .peer = link->peer },
		          "data connection from %s is refused", link->peer);
	if (close_reason == CLOSE_REFUSED || close_reason == CLOSE_FAILED)
		shutdown(link->stream.fd, SHUT_WR);
	data_close(link);
	if (close_reason == CLOSE_TORN)
		(void)stores_notice_torn(stores);
}

/* Closes a link that the loop has served, if it must be closed. If it has moved to a lane and has
 * decrypted bytes, wakes the lane's thread. */
static void data_close_or_wake(struct data_link *link)
{
	if (link->close_reason)
		data_close_by_reason(link);
	else if (link->has_pending)
		lane_wake(link->lane);
}

static void link_readable(struct data_link *link)
{
	link->paused = link->session && daemon_must_pause_owners(link->daemon);
	if (link->paused) {
		event_del(link->readable);
	} else {
		data_read(link);
		data_close_or_wake(link);
	}
}

DAEMON_CALLBACK(on_readable, struct data_link, daemon, link_readable)

/* Sends more answers. */
static void data_write(struct data_link *link)
{
	if (data_flush(link) < 0)
		link->close_reason = CLOSE_ENDED;
	else if (link->count == 0)
		data_update_events(link);
}

static void link_writable(struct data_link *link)
{
	data_write(link);
	data_close_or_wake(link);
}

DAEMON_CALLBACK(on_writable, struct data_link, daemon, link_writable)

static void link_timed_out(struct data_link *link)
{
	log_limited(daemon_count_refusal(link->daemon, REFUSED_HELLO), LOG_LEVEL_INFO, "hello-late",
	            &(struct log_fields){ .peer = link->peer },
	            "data connection from %s did not say hello in time", link->peer);
	data_close(link);
}

DAEMON_CALLBACK(on_deadline, struct data_link, daemon, link_timed_out)

/* --- called by a lane's thread, inside the lock --- */

struct data_link *data_link_next(const struct data_link *link)
{
	return link->next;
}

bool data_link_has_pending(const struct data_link *link)
{
	return link->has_pending && !link->close_reason;
}

bool data_link_moved(const struct data_link *link)
{
	return link->moved == link->lane->spin_count && link->count == 0 && !link->close_reason;
}

bool data_link_serve(struct data_link *link)
{
	bool moved = false;

	link->has_pending = false;
	if (link->close_reason)
		return false;
	if (link->count > 0)
		data_write(link);
	else
		moved = data_read(link);
	if (link->close_reason) {
		epoll_ctl(link->lane->epoll_fd, EPOLL_CTL_DEL, link->stream.fd, NULL);
		link->polled_events = 0;
		lane_report_ended(link->lane);
	}
	return moved;
}

/* --- start and end --- */

static bool make_events(struct data_link *link)
{
	const struct timeval limit = { .tv_sec = (time_t)(link->daemon->handshake_ns / 1000000000),
		                       .tv_usec = (long)(link->daemon->handshake_ns / 1000 %
		                                         1000000) };
	struct event_base *base = link->daemon->base;

	link->readable = event_new(base, link->stream.fd, EV_READ | EV_PERSIST, on_readable, link);
	link->writable = event_new(base, link->stream.fd, EV_WRITE | EV_PERSIST, on_writable, link);
	link->deadline = evtimer_new(base, on_deadline, link);
	return link->readable && link->writable && link->deadline &&
	       event_add(link->readable, NULL) == 0 && event_add(link->deadline, &limit) == 0;
}

static bool is_owner_link(const struct admitted *admitted)
{
	return ((const struct data_link *)admitted)->session;
}

static void evict_link(struct admitted *admitted)
{
	struct data_link *link = (struct data_link *)admitted;

	daemon_log_too_many_connections(link->daemon, link->peer);
	data_close(link);
}

void data_accept(struct daemon *daemon, struct ps_stream *stream, const char *peer,
                 const char *identity, const char *origin)
{
	struct data_link *link = calloc(1, sizeof(*link));

	if (!daemon->loop_lane.buffer)
		daemon->loop_lane.buffer = data_buffer();
	if (link)
		link->admitted = (struct admitted){ .is_data_path = true,
			                            .is_owner = is_owner_link,
			                            .evict = evict_link };
	if (!link || !daemon->loop_lane.buffer ||
	    !admission_admit(&daemon->admission, &link->admitted, origin)) {
		log_event(LOG_LEVEL_ERROR, "out-of-memory", &(struct log_fields){ .peer = peer },
		          "out of memory for the data connection from %s", peer);
		free(link);
		ps_stream_close(stream);
		return;
	}
	link->daemon = daemon;
	link->stream = *stream;
	link->hello.magic = PS_DATA_MAGIC;
	link->hello_have = sizeof(link->hello.magic);
	snprintf(link->peer, sizeof(link->peer), "%s", peer);
	snprintf(link->identity, sizeof(link->identity), "%s", identity);
	ps_decoder_init(&link->decoder, &data_ops, link);
	lane_add_link(link, &daemon->loop_lane);
	if (!make_events(link)) {
		log_event(LOG_LEVEL_ERROR, "out-of-memory", &(struct log_fields){ .peer = peer },
		          "out of memory for the data connection from %s", peer);
		data_close(link);
		return;
	}
	/* The rest of the hello may have been decrypted with the magic. */
	if (ps_stream_pending(&link->stream))
		daemon_rerun_event(daemon, link->readable);
}

uint8_t *data_buffer(void)
{
	return malloc(DATA_BUFFER_SIZE);
}

void data_links_close_ended(struct daemon *daemon)
{
	struct lane *lane;

	for (unsigned i = 1; (lane = daemon_get_lane(daemon, i)); i++) {
		struct data_link *link = lane->links;

		/* Closing one link may close others. */
		while (link)
			if (link->close_reason) {
				data_close_by_reason(link);
				link = lane->links;
			} else {
				link = link->next;
			}
	}
}

static void tcp_stop(struct daemon *daemon)
{
	struct lane *lane;

	for (unsigned i = 0; (lane = daemon_get_lane(daemon, i)); i++)
		while (lane->links)
			data_close(lane->links);
	free(daemon->loop_lane.buffer);
	daemon->loop_lane.buffer = NULL;
}

/* Closes the session's links, which drops all buffered bytes: in this process, in TLS and in the
 * kernel. */
static void tcp_cut(struct daemon *daemon, struct session *session)
{
	struct data_link *next;
	struct lane *lane;

	for (unsigned i = 0; (lane = daemon_get_lane(daemon, i)); i++)
		for (struct data_link *link = lane->links; link; link = next) {
			next = link->next;
			if (link->session == session)
				data_close(link);
		}
}

static void tcp_resume(struct daemon *daemon)
{
	for (struct data_link *link = daemon->loop_lane.links; link; link = link->next) {
		if (link->paused)
			data_update_events(link);
		link->paused = false;
	}
}

/* Serves the links that moved since the loop last slept, without polling. */
static bool tcp_spin(struct daemon *daemon)
{
	struct data_link *next;
	bool moved = false;

	for (struct data_link *link = daemon->loop_lane.links; link; link = next) {
		next = link->next;
		if (!data_link_moved(link) || !link->session || link->paused)
			continue;
		moved |= data_read(link);
		/* Closing one link may free the next. */
		if (link->close_reason) {
			data_close_by_reason(link);
			return true;
		}
	}
	return moved;
}

const struct target target_tcp = {
	.name = "tcp",
	.cut = tcp_cut,
	.resume = tcp_resume,
	.spin = tcp_spin,
	.stop = tcp_stop,
};
