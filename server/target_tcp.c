/*
 * target_tcp.c - data connections. Bytes go from the socket through one buffer into the image;
 * answers go out by direct sends. A peer that does not take its answers is not read from.
 */
#include "daemon.h"

#include "../proto/frame.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	BUFFER_SIZE = 128 << 10,
	ROUNDS = 8, /* buffers that one link gets before the others' turn */
	/* No frame that is answered is shorter than a read's: a feed gives no more answers. */
	ANSWERS_MAX = BUFFER_SIZE / (sizeof(struct ps_frame) + sizeof(struct ps_extent)) + 2,
	ANSWERS_FIRST = 64,
	PARTS_MAX = 64, /* of one sendmsg */
};

/* An answer that is not sent yet. What a read asked for is looked up again when it is sent:
 * the image may have changed. */
struct pending {
	struct ps_answer answer;
	struct ps_extent extent;
};

struct data_link {
	struct guest guest; /* first: its functions find the link by it */
	struct data_link *next;
	struct data_link **link;
	struct daemon *daemon;
	struct session *session; /* NULL: the hello has not come yet */
	struct ps_stream stream;
	struct event *readable;
	struct event *writable;
	struct event *deadline; /* of the hello */
	struct ps_hello hello;
	uint32_t hello_have;
	struct ps_decoder decoder;
	struct ps_extent asked; /* the extent that the decoder asked for last */
	struct pending *queue;  /* answers first .. first + count - 1 are to be sent */
	unsigned first, count, room;
	uint64_t sent;  /* bytes of the first one that are gone */
	bool paused;    /* daemon_owners_pause() */
	bool failed;    /* an answer found no memory: the link is of no more use */
	uint64_t moved; /* daemon->spins when data came last */
	char peer[128];
	char identity[IDENTITY_MAX + 1]; /* the name of whose connection it is */
};

static void data_close(struct data_link *link)
{
	if (ps_stream_fault(&link->stream))
		log_event(LOG_LEVEL_WARNING, "tls-broken",
		          &(struct log_fields){ .peer = link->peer },
		          "the data connection from %s is over: %s", link->peer,
		          ps_stream_why(&link->stream));
	if (link->session)
		link->session->fabric = NULL;
	if (link->next)
		link->next->link = link->link;
	*link->link = link->next;
	if (link->readable)
		event_free(link->readable);
	if (link->writable)
		event_free(link->writable);
	if (link->deadline)
		event_free(link->deadline);
	ps_stream_close(&link->stream);
	crowd_leave(&link->guest);
	free(link->queue);
	free(link);
}

static uint8_t *data_where(void *ctx, const struct ps_extent *extent, bool write)
{
	struct data_link *link = ctx;

	link->asked = *extent;
	return session_memory(link->session, extent->region, extent->offset, extent->length, write);
}

static struct pending *queue_slot(struct data_link *link)
{
	unsigned room = link->room ? 2 * link->room : ANSWERS_FIRST;
	struct pending *queue;

	if (link->first + link->count < link->room)
		return &link->queue[link->first + link->count++];
	assert(link->first == 0 && link->count <= ANSWERS_MAX);
	queue = realloc(link->queue, room * sizeof(*queue));
	if (!queue)
		return NULL;
	link->queue = queue;
	link->room = room;
	return &queue[link->count++];
}

static void data_answer(void *ctx, const struct ps_answer *answer, const uint8_t *bytes)
{
	struct data_link *link = ctx;
	struct pending *pending = queue_slot(link);

	if (!pending) {
		link->failed = true;
		return;
	}
	pending->answer = *answer;
	link->daemon->counters.tcp_chains += answer->op == PS_OP_WRITE &&
	                                     answer->status == PS_ANSWER_OK;
	if (bytes)
		pending->extent = link->asked;
}

static const struct ps_decoder_ops data_ops = {
	.where = data_where,
	.answer = data_answer,
};

static uint64_t pending_size(const struct pending *pending)
{
	return sizeof(pending->answer) + pending->answer.length;
}

/* Adds what is unsent of one answer to the parts. False: its memory is gone. */
static bool add_parts(struct data_link *link, struct pending *pending, uint64_t sent,
                      struct iovec *parts, int *count)
{
	const uint64_t head = sizeof(pending->answer);
	const struct ps_extent *extent = &pending->extent;
	uint8_t *bytes;
	uint64_t skip;

	if (sent < head) {
		parts[*count].iov_base = (uint8_t *)&pending->answer + sent;
		parts[(*count)++].iov_len = head - sent;
	}
	if (pending->answer.length == 0)
		return true;
	bytes = session_memory(link->session, extent->region, extent->offset, extent->length,
	                       false);
	if (!bytes)
		return false;
	skip = sent > head ? sent - head : 0;
	parts[*count].iov_base = bytes + skip;
	parts[(*count)++].iov_len = pending->answer.length - skip;
	return true;
}

static void drop_sent(struct data_link *link, uint64_t sent)
{
	link->sent += sent;
	while (link->count > 0 && link->sent >= pending_size(&link->queue[link->first])) {
		link->sent -= pending_size(&link->queue[link->first]);
		link->first++;
		link->count--;
	}
	if (link->count == 0)
		link->first = 0;
}

/* Sends what the socket takes. -1: the link is of no more use. */
static int data_flush(struct data_link *link)
{
	while (link->count > 0) {
		struct iovec parts[PARTS_MAX];
		uint64_t skip = link->sent;
		int count = 0;
		ssize_t n;

		for (unsigned i = 0; i < link->count && count < PARTS_MAX - 1; i++, skip = 0)
			if (!add_parts(link, &link->queue[link->first + i], skip, parts, &count))
				return -1;
		n = ps_stream_send(&link->stream, parts, (size_t)count);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
		drop_sent(link, (uint64_t)n);
	}
	return 0;
}

/* Reads only while nothing is to be sent. Bytes that are decrypted already wait with the others. */
static void data_watch(struct data_link *link)
{
	if (link->count > 0) {
		event_del(link->readable);
		event_add(link->writable, NULL);
	} else {
		event_del(link->writable);
		event_add(link->readable, NULL);
		if (ps_stream_pending(&link->stream))
			daemon_run_again(link->daemon, link->readable);
	}
}

static void answer_hello(struct data_link *link, enum ps_answer_status status)
{
	struct ps_answer answer = { .op = PS_OP_HELLO, .status = (uint8_t)status };

	data_answer(link, &answer, NULL);
}

/* One data path a session: what an earlier one still has buffered must not come later. */
static void bind_session(struct data_link *link, struct session *session)
{
	daemon_cut(link->daemon, session);
	link->session = session;
	session->fabric = target_tcp.name;
	event_priority_set(link->readable, PRIORITY_OWNERS);
	event_free(link->deadline);
	link->deadline = NULL;
}

/* The hello is whole. -1: the peer is told why not, and the link ends. */
static int data_greet(struct data_link *link)
{
	struct session *session;

	if (link->hello.version != PS_PROTOCOL_VERSION) {
		(void)daemon_refuse(link->daemon, REFUSED_HELLO);
		answer_hello(link, PS_ANSWER_BAD_VERSION);
		return -1;
	}
	session = link->hello.zero ? NULL : stores_session(link->daemon->stores, link->hello.token);
	if (!session) {
		log_limited(daemon_refuse(link->daemon, REFUSED_TOKEN), LOG_LEVEL_INFO,
		            "data-refused", &(struct log_fields){ .peer = link->peer },
		            "data connection from %s has the token of no session", link->peer);
		answer_hello(link, PS_ANSWER_BAD_TOKEN);
		return -1;
	}
	if (strcmp(link->identity, session->identity.name) != 0) {
		/* Who comes here has stolen something: each is told. */
		(void)daemon_refuse(link->daemon, REFUSED_TOKEN);
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

/* Takes bytes off the stream. -1: the link ends when its answers are sent. */
static int data_take(struct data_link *link, const uint8_t *bytes, size_t len)
{
	if (!link->session) {
		size_t want = sizeof(link->hello) - link->hello_have;
		size_t part = len < want ? len : want;

		memcpy((uint8_t *)&link->hello + link->hello_have, bytes, part);
		link->hello_have += (uint32_t)part;
		if (link->hello_have < sizeof(link->hello))
			return 0;
		if (data_greet(link) < 0)
			return -1;
		bytes += part;
		len -= part;
	}
	return ps_decoder_feed(&link->decoder, bytes, len);
}

/* -1: nothing was there; 0: the link is closed; else bytes. */
static ssize_t data_receive(struct data_link *link)
{
	struct daemon *daemon = link->daemon;
	ssize_t n = ps_stream_recv(&link->stream, daemon->buffer, BUFFER_SIZE);
	int ret;

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return -1;
	if (n <= 0) {
		data_close(link);
		return 0;
	}
	daemon->moved = true;
	daemon->counters.tcp_bytes += (uint64_t)n;
	link->moved = daemon->spins;
	ret = data_take(link, daemon->buffer, (size_t)n);
	if (data_flush(link) < 0 || link->failed || ret < 0) {
		if (ret < 0)
			log_event(LOG_LEVEL_DEBUG, "data-refused",
			          &(struct log_fields){ .peer = link->peer },
			          "data connection from %s is refused", link->peer);
		shutdown(link->stream.fd, SHUT_WR);
		data_close(link);
		return 0;
	}
	return n;
}

/* True: something moved. The link may be closed after it. */
static bool data_read(struct data_link *link)
{
	ssize_t n = data_receive(link);
	bool moved = n >= 0;

	for (int round = 1; n == BUFFER_SIZE && link->count == 0 && round < ROUNDS; round++)
		n = data_receive(link);
	if (n != 0 && (link->count > 0 || ps_stream_pending(&link->stream)))
		data_watch(link);
	return moved;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct data_link *link = arg;

	(void)fd;
	(void)what;
	link->paused = link->session && daemon_owners_pause(link->daemon);
	if (link->paused)
		event_del(link->readable);
	else
		data_read(link);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct data_link *link = arg;

	(void)fd;
	(void)what;
	if (data_flush(link) < 0)
		data_close(link);
	else if (link->count == 0)
		data_watch(link);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct data_link *link = arg;

	(void)fd;
	(void)what;
	log_limited(daemon_refuse(link->daemon, REFUSED_HELLO), LOG_LEVEL_INFO, "hello-late",
	            &(struct log_fields){ .peer = link->peer },
	            "data connection from %s did not say hello in time", link->peer);
	data_close(link);
}

static bool make_events(struct data_link *link)
{
	const struct timeval limit = { .tv_sec = HANDSHAKE_SECONDS };
	struct event_base *base = link->daemon->base;

	link->readable = event_new(base, link->stream.fd, EV_READ | EV_PERSIST, on_readable, link);
	link->writable = event_new(base, link->stream.fd, EV_WRITE | EV_PERSIST, on_writable, link);
	link->deadline = evtimer_new(base, on_deadline, link);
	return link->readable && link->writable && link->deadline &&
	       event_add(link->readable, NULL) == 0 && event_add(link->deadline, &limit) == 0;
}

static bool guest_owns(const struct guest *guest)
{
	return ((const struct data_link *)guest)->session;
}

static void guest_evict(struct guest *guest)
{
	struct data_link *link = (struct data_link *)guest;

	daemon_tell_crowded(link->daemon, link->peer);
	data_close(link);
}

void data_accept(struct daemon *daemon, struct ps_stream *stream, const char *peer,
                 const char *identity, const char *origin)
{
	struct data_link *link = calloc(1, sizeof(*link));

	if (!daemon->buffer)
		daemon->buffer = malloc(BUFFER_SIZE);
	if (link)
		link->guest = (struct guest){ .owns = guest_owns, .evict = guest_evict };
	if (!link || !daemon->buffer || !crowd_enter(&daemon->crowd, &link->guest, origin)) {
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
	link->next = daemon->links;
	link->link = &daemon->links;
	if (link->next)
		link->next->link = &link->next;
	daemon->links = link;
	if (!make_events(link)) {
		log_event(LOG_LEVEL_ERROR, "out-of-memory", &(struct log_fields){ .peer = peer },
		          "out of memory for the data connection from %s", peer);
		data_close(link);
		return;
	}
	/* The rest of the hello may have come with the magic. */
	if (ps_stream_pending(&link->stream))
		daemon_run_again(daemon, link->readable);
}

void data_links_close(struct daemon *daemon)
{
	while (daemon->links)
		data_close(daemon->links);
	free(daemon->buffer);
	daemon->buffer = NULL;
}

/* Closing drops what is buffered: here, in TLS, and in the kernel. */
static void tcp_cut(struct daemon *daemon, struct session *session)
{
	struct data_link *next;

	for (struct data_link *link = daemon->links; link; link = next) {
		next = link->next;
		if (link->session == session)
			data_close(link);
	}
}

static void tcp_resume(struct daemon *daemon)
{
	for (struct data_link *link = daemon->links; link; link = link->next) {
		if (link->paused)
			data_watch(link);
		link->paused = false;
	}
}

/* Looks at the links that moved since the loop last slept, without asking the kernel which. */
static bool tcp_spin(struct daemon *daemon)
{
	struct data_link *next;
	bool moved = false;

	for (struct data_link *link = daemon->links; link; link = next) {
		next = link->next;
		if (link->moved == daemon->spins && link->session && link->count == 0 &&
		    !link->paused)
			moved |= data_read(link);
	}
	return moved;
}

const struct target target_tcp = {
	.name = "tcp",
	.cut = tcp_cut,
	.resume = tcp_resume,
	.spin = tcp_spin,
};
