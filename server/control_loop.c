/*
 * control_loop.c - control connections over libevent. A connection reads no more than the
 * message that is due, and no request before the reply to the last one is sent, so that
 * neither buffer grows beyond one message.
 */
#include "daemon.h"

#include "../proto/frame.h"
#include "control.h"
#include "status.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	ROUNDS = 16,               /* messages that one connection gets before the others' turn */
	INPUT_FIRST = 4096,
	INPUT_KEEP = 64 << 10,     /* bytes of input buffer that are kept between messages */
};

/*
 *   SNIFF --control magic--> HELLO --good version--> OPEN
 *     |                        |                       |
 *     +--data magic--> (data_accept takes the socket)  +--too long--> LAST
 *                              +--bad version--> LAST
 */
enum stage {
	STAGE_SNIFF,               /* the magic is due */
	STAGE_HELLO,               /* the rest of the hello is due */
	STAGE_OPEN,                /* requests */
	STAGE_LAST,                /* what is unsent is sent, then it is closed */
};

struct connection {
	struct session session;    /* first: its functions find the connection by it */
	struct daemon *daemon;
	struct connection *next;
	struct connection **link;
	int fd;
	int process;               /* pidfd of a peer on this host, else -1 */
	enum stage stage;
	struct event *readable;
	struct event *writable;
	struct event *deadline;    /* of the hello */
	uint8_t *input;
	size_t have, room;
	struct control_reply output;
	size_t sent;
	uint64_t heard_ms;         /* when bytes last came */
	bool own_fds;              /* the descriptors of the output are copies */
};

static struct connection *connection_of(struct session *session)
{
	return (struct connection *)session;
}

static void session_cut(struct session *session)
{
	daemon_cut(connection_of(session)->daemon, session);
}

static bool session_may_write(struct session *session)
{
	return session->shared && shm_lives(connection_of(session)->process);
}

static struct holder *session_keep(struct session *session)
{
	return shm_holder(connection_of(session)->process);
}

static uint64_t now_ms(void)
{
	return daemon_now_ns() / 1000000;
}

/* Bytes that lie in the socket were heard: it is this daemon that had no time for them. But not
 * when it waits for the other end to take an answer. */
static uint64_t session_silent_ms(struct session *session)
{
	struct connection *connection = connection_of(session);
	char byte;

	if (session->local && !shm_lives(connection->process))
		return UINT64_MAX;
	if (connection->output.len == 0 &&
	    recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
		return 0;
	return now_ms() - connection->heard_ms;
}

static void session_offer(struct session *session, Perseas__Grant *grant)
{
	daemon_grant(connection_of(session)->daemon, session, grant);
}

bool connection_address(const struct session *session, struct sockaddr_storage *address)
{
	socklen_t len = sizeof(*address);

	return !session->local &&
	       getsockname(((const struct connection *)session)->fd, (struct sockaddr *)address,
	                   &len) == 0;
}

static const struct session_ops session_functions = {
	.cut = session_cut,
	.may_write = session_may_write,
	.keep = session_keep,
	.silent_ms = session_silent_ms,
	.grant = session_offer,
};

/* The output is sent, or never will be. */
static void drop_output(struct connection *connection)
{
	if (connection->output.ends)
		daemon_stop(connection->daemon);
	if (connection->own_fds)
		for (unsigned i = 0; i < connection->output.fd_count; i++)
			close(connection->output.fds[i]);
	free(connection->output.bytes);
	memset(&connection->output, 0, sizeof(connection->output));
	connection->sent = 0;
	connection->own_fds = false;
}

static void free_event(struct event **event)
{
	if (*event)
		event_free(*event);
	*event = NULL;
}

/* Frees all but the socket. */
static void release(struct connection *connection)
{
	store_session_ended(&connection->session);
	if (connection->next)
		connection->next->link = connection->link;
	*connection->link = connection->next;
	connection->daemon->connection_count--;
	free_event(&connection->readable);
	free_event(&connection->writable);
	free_event(&connection->deadline);
	drop_output(connection);
	if (connection->process >= 0)
		close(connection->process);
	free(connection->input);
	free(connection);
}

static void connection_close(struct connection *connection)
{
	int fd = connection->fd;

	release(connection);
	close(fd);
}

/* The store may close its own descriptors before they can be sent. */
static int copy_fds(struct connection *connection)
{
	struct control_reply *output = &connection->output;

	for (unsigned i = 0; i < output->fd_count; i++) {
		int copy = fcntl(output->fds[i], F_DUPFD_CLOEXEC, 0);

		if (copy < 0) {
			while (i-- > 0)
				close(output->fds[i]);
			output->fd_count = 0;
			return -1;
		}
		output->fds[i] = copy;
	}
	connection->own_fds = true;
	return 0;
}

/* The rest has to wait until the peer takes it. */
static int wait_writable(struct connection *connection)
{
	if (!connection->own_fds && connection->sent == 0 && copy_fds(connection) < 0)
		return -1;
	event_del(connection->readable);
	event_add(connection->writable, NULL);
	return 0;
}

/* Sends what the socket takes. -1: the connection is of no more use. */
static int send_output(struct connection *connection)
{
	struct control_reply *output = &connection->output;

	while (connection->sent < output->len) {
		unsigned count = connection->sent == 0 ? output->fd_count : 0;
		ssize_t n = shm_send(connection->fd, output->bytes + connection->sent,
		                     output->len - connection->sent, output->fds, count);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return wait_writable(connection);
		if (n < 0)
			return -1;
		connection->sent += (size_t)n;
	}
	drop_output(connection);
	return connection->stage == STAGE_LAST ? -1 : 0;
}

static int send_hello(struct connection *connection)
{
	const struct ps_control_hello hello = { PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION };

	connection->output.bytes = malloc(sizeof(hello));
	if (!connection->output.bytes)
		return -1;
	memcpy(connection->output.bytes, &hello, sizeof(hello));
	connection->output.len = sizeof(hello);
	return send_output(connection);
}

/* Our hello goes to a peer of another version too, so that it can say what is wrong. */
static int take_hello(struct connection *connection)
{
	struct ps_control_hello hello;

	memcpy(&hello, connection->input, sizeof(hello));
	connection->have = 0;
	connection->stage = STAGE_OPEN;
	if (hello.version != PS_PROTOCOL_VERSION) {
		log_event(LOG_LEVEL_WARNING, "other-version",
		          &(struct log_fields){ .peer = connection->session.peer },
		          "%s speaks version %u of the protocol, this daemon version %d",
		          connection->session.peer, hello.version, PS_PROTOCOL_VERSION);
		connection->stage = STAGE_LAST;
	}
	free_event(&connection->deadline);
	return send_hello(connection);
}

static uint32_t message_length(const struct connection *connection)
{
	uint32_t length;

	memcpy(&length, connection->input, sizeof(length));
	return length;
}

/* Questions are refused all day long. */
static enum log_level refusal_level(const struct control_reply *reply)
{
	switch (reply->request) {
	case PERSEAS__REQUEST__BODY_LIST:
	case PERSEAS__REQUEST__BODY_STATUS:
	case PERSEAS__REQUEST__BODY_CONFIRM:
	case PERSEAS__REQUEST__BODY_DIGEST:
	case PERSEAS__REQUEST__BODY_READ: return LOG_LEVEL_DEBUG;
	default: return LOG_LEVEL_INFO;
	}
}

static void note_reply(struct connection *connection, const struct control_reply *reply,
                       uint64_t took_ns)
{
	struct counters *counters = &connection->daemon->counters;
	const char *peer = connection->session.peer;
	const struct log_fields fields = { .store = reply->store, .epoch = reply->epoch,
	                                   .peer = peer };

	histogram_add(&counters->requests[reply->request], took_ns);
	counters->refusals[reply->status]++;
	if (reply->status != STATUS(OK))
		log_event(refusal_level(reply), "refused", &fields,
		          "%s is refused \"%s\": %s", peer,
		          control_request_name(reply->request), reply->refusal);
	if (reply->ends)
		log_event(LOG_LEVEL_INFO, "spilled", &fields,
		          "ends after a spill that %s asked for", peer);
}

/* A request is whole, or says that it will be longer than it may. */
static int take_request(struct connection *connection)
{
	uint32_t length = message_length(connection);
	uint64_t began = daemon_now_ns();

	if (length > PS_MESSAGE_MAX)
		connection->stage = STAGE_LAST;
	if (control_handle(connection->daemon->stores, &connection->session, PERSEAS_VERSION,
	                   connection->input + sizeof(length), length, &connection->output) < 0)
		return -1;
	if (connection->output.fd_count > 0)
		connection->session.fabric = target_shm.name;
	note_reply(connection, &connection->output, daemon_now_ns() - began);
	connection->have = 0;
	if (connection->room > INPUT_KEEP) {
		free(connection->input);
		connection->input = NULL;
		connection->room = 0;
	}
	return send_output(connection);
}

/* Bytes of input that are needed before the next step. */
static size_t wanted(const struct connection *connection)
{
	const size_t head = sizeof(uint32_t);

	if (connection->stage == STAGE_HELLO)
		return sizeof(struct ps_control_hello);
	if (connection->stage == STAGE_SNIFF || connection->have < head ||
	    message_length(connection) > PS_MESSAGE_MAX)
		return head;
	return head + message_length(connection);
}

enum taken { TAKEN, TAKEN_CLOSE, TAKEN_AWAY };

static enum taken sniff(struct connection *connection)
{
	struct daemon *daemon = connection->daemon;
	uint32_t magic = message_length(connection);
	int fd = connection->fd;
	char peer[sizeof(connection->session.peer)];

	if (magic == PS_CONTROL_MAGIC) {
		connection->stage = STAGE_HELLO;
		return TAKEN;
	}
	if (magic != PS_DATA_MAGIC) {
		log_event(LOG_LEVEL_INFO, "not-perseas",
		          &(struct log_fields){ .peer = connection->session.peer },
		          "connection from %s is not of this protocol", connection->session.peer);
		return TAKEN_CLOSE;
	}
	memcpy(peer, connection->session.peer, sizeof(peer));
	release(connection);
	data_accept(daemon, fd, peer);
	return TAKEN_AWAY;
}

/* Does what the input allows, once. */
static enum taken step(struct connection *connection)
{
	int ret;

	if (connection->stage == STAGE_SNIFF)
		return sniff(connection);
	ret = connection->stage == STAGE_HELLO ? take_hello(connection)
	                                       : take_request(connection);
	return ret < 0 ? TAKEN_CLOSE : TAKEN;
}

/* By what has come, not by what was announced. */
static bool grow_input(struct connection *connection)
{
	size_t room = connection->room ? 2 * connection->room : INPUT_FIRST;
	uint8_t *input;

	if (connection->have < connection->room)
		return true;
	input = realloc(connection->input, room);
	if (!input)
		return false;
	connection->input = input;
	connection->room = room;
	return true;
}

/* Reads towards the next step. 1: it can be done; 0: more must come; -1: it is over. */
static int receive(struct connection *connection)
{
	while (connection->have < wanted(connection)) {
		size_t want = wanted(connection), part;
		ssize_t n;

		if (!grow_input(connection))
			return -1;
		part = (want < connection->room ? want : connection->room) - connection->have;
		n = recv(connection->fd, connection->input + connection->have, part, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return 0;
		if (n <= 0)
			return -1;
		connection->have += (size_t)n;
		connection->heard_ms = now_ms();
	}
	return 1;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct connection *connection = arg;

	(void)fd;
	(void)what;
	for (int round = 0; round < ROUNDS && connection->output.len == 0; round++) {
		int ret = receive(connection);
		enum taken taken;

		if (ret == 0)
			return;
		taken = ret < 0 ? TAKEN_CLOSE : step(connection);
		if (taken == TAKEN_CLOSE)
			connection_close(connection);
		if (taken != TAKEN)
			return;
	}
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct connection *connection = arg;

	(void)fd;
	(void)what;
	if (send_output(connection) < 0) {
		connection_close(connection);
	} else if (connection->output.len == 0) {
		event_del(connection->writable);
		event_add(connection->readable, NULL);
	}
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct connection *connection = arg;

	(void)fd;
	(void)what;
	log_event(LOG_LEVEL_INFO, "hello-late",
	          &(struct log_fields){ .peer = connection->session.peer },
	          "connection from %s did not say hello in time", connection->session.peer);
	connection_close(connection);
}

/* A host that died without a word is found out in about ten seconds. */
static void set_options(int fd)
{
	const int on = 1, idle = 4, interval = 2, probes = 3;
	const unsigned limit_ms = 10000;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof(limit_ms));
}

static void name_peer(struct connection *connection, const struct sockaddr *from)
{
	const struct sockaddr_in *v4 = (const void *)from;
	const struct sockaddr_in6 *v6 = (const void *)from;
	char *peer = connection->session.peer;
	const size_t size = sizeof(connection->session.peer);
	char number[INET6_ADDRSTRLEN] = "?";
	struct ucred cred = { .pid = 0 };
	socklen_t len = sizeof(cred);

	if (connection->session.local) {
		getsockopt(connection->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
		snprintf(peer, size, "process %d on this host", (int)cred.pid);
	} else if (from->sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &v6->sin6_addr, number, sizeof(number));
		snprintf(peer, size, "[%s]:%u", number, ntohs(v6->sin6_port));
	} else {
		inet_ntop(AF_INET, &v4->sin_addr, number, sizeof(number));
		snprintf(peer, size, "%s:%u", number, ntohs(v4->sin_port));
	}
}

static bool make_events(struct connection *connection)
{
	const struct timeval limit = { .tv_sec = HANDSHAKE_SECONDS };
	struct event_base *base = connection->daemon->base;
	int fd = connection->fd;

	connection->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, connection);
	connection->writable = event_new(base, fd, EV_WRITE | EV_PERSIST, on_writable, connection);
	connection->deadline = evtimer_new(base, on_deadline, connection);
	return connection->readable && connection->writable && connection->deadline &&
	       event_add(connection->readable, NULL) == 0 &&
	       event_add(connection->deadline, &limit) == 0;
}

void connection_accept(struct daemon *daemon, int fd, const struct sockaddr *from, bool local)
{
	struct connection *connection;

	if (daemon->connection_count >= CONNECTIONS_MAX ||
	    !(connection = calloc(1, sizeof(*connection)))) {
		daemon->counters.connections_refused++;
		log_event(LOG_LEVEL_WARNING, "connection-refused", NULL,
		          "a connection is refused: %u are open", daemon->connection_count);
		close(fd);
		return;
	}
	connection->session.ops = &session_functions;
	connection->session.local = local;
	connection->daemon = daemon;
	connection->fd = fd;
	connection->process = local ? shm_process(fd) : -1;
	connection->heard_ms = now_ms();
	connection->next = daemon->connections;
	connection->link = &daemon->connections;
	if (connection->next)
		connection->next->link = &connection->next;
	daemon->connections = connection;
	daemon->connection_count++;
	daemon->counters.connections++;
	name_peer(connection, from);
	if (!local)
		set_options(fd);
	if (!make_events(connection)) {
		log_event(LOG_LEVEL_ERROR, "out-of-memory",
		          &(struct log_fields){ .peer = connection->session.peer },
		          "out of memory for a connection");
		connection_close(connection);
	}
}

void connections_close(struct daemon *daemon)
{
	while (daemon->connections)
		connection_close(daemon->connections);
}
