/*
 * connection_loop.c - control connections: accepts and identifies them, runs their timers, and
 * applies rate limits and priorities.
 */
#include "connection.h"

#include <arpa/inet.h>
#include <assert.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	/* Bytes of large messages of all connections together; above it, connections without a
	 * claim must wait. */
	LARGE_BYTES_MAX = 64 << 20,
	LARGE_WAIT_MS = 100,
	/* Requests per second that every holder of a claim may send; up to 40 of them are
	 * heartbeats. */
	OWNER_REQUESTS = 100,
	MESSAGES_PER_TURN = 16,
	/* For this long after data has come, owners wait for at most one message of other
	 * clients. */
	BUSY_MS = 2,
	/* While threads move data, other clients get 1 / OTHERS_PART of the loop's time. They wait
	 * when they are OTHERS_AHEAD_MS ahead of that share, but at most OTHERS_WAIT_MAX_MS; so
	 * many clients together may exceed the share by one message each in that time. */
	OTHERS_PART = 4,
	OTHERS_AHEAD_MS = 2,
	OTHERS_WAIT_MAX_MS = 100,
};

uint64_t connection_now_ms(void)
{
	return daemon_now_ns() / 1000000;
}

void connection_update_large_bytes(struct connection *connection)
{
	const bool owner = connection->session.store;
	size_t large = 0;

	if (!owner && connection->input_capacity > INPUT_FIRST)
		large += connection->input_capacity;
	if (!owner && connection->output.len > INPUT_FIRST)
		large += connection->output.len;
	assert(connection->daemon->large_bytes >= connection->large_bytes);
	connection->daemon->large_bytes += large - connection->large_bytes;
	connection->large_bytes = large;
}

void connection_start_timer(struct connection *connection, enum due due, uint64_t ns)
{
	const struct timeval limit = { (time_t)(ns / 1000000000u),
		                       (suseconds_t)(ns % 1000000000u / 1000) };

	if (connection->due == due)
		return;
	connection->due = due;
	event_add(connection->due_timer, &limit);
}

void connection_stop_timer(struct connection *connection, enum due due)
{
	if (connection->due != due)
		return;
	connection->due = DUE_NOTHING;
	event_del(connection->due_timer);
}

/* Returns the rate limit in requests per second; LIMIT_NONE: unlimited. */
static uint64_t requests_per_second_limit(const struct connection *connection)
{
	const struct session *session = &connection->session;
	uint64_t rate = access_limit(stores_access(connection->daemon->stores),
	                             session->identity.name, LIMIT_REQUESTS);

	return session->store && rate < OWNER_REQUESTS ? OWNER_REQUESTS : rate;
}

/* Returns the bucket of the connection's rate limit. Each connection with a claim has its own, so
 * that other connections of its identity do not delay it. */
static struct bucket *request_bucket_of(struct connection *connection)
{
	return connection->session.store ? &connection->bucket
	                                 : &connection->admitted.origin->bucket;
}

bool connection_exceeds_large_bytes(const struct connection *connection)
{
	return connection->daemon->large_bytes > LARGE_BYTES_MAX && !connection->session.store;
}

/* Returns true if data has come just now. */
static bool is_data_moving(struct daemon *daemon)
{
	return daemon_now_ns() < daemon_last_data_ns(daemon) + BUSY_MS * 1000000ull;
}

/* Returns how long a client without priority must wait. Otherwise the loop would spend a whole
 * processor on a client that floods it, and the data threads would lack that processor. Time that
 * these clients use is followed by a time in which they wait; a few messages are served at once. */
static uint64_t unprioritized_wait_ns(const struct connection *connection)
{
	struct daemon *daemon = connection->daemon;
	const uint64_t now_ns = daemon_now_ns();

	if (connection->has_priority ||
	    daemon->unprioritized_wait_until_ns < now_ns + OTHERS_AHEAD_MS * 1000000ull)
		return 0;
	return lanes_are_running(daemon) && is_data_moving(daemon)
	               ? daemon->unprioritized_wait_until_ns - now_ns
	               : 0;
}

/* Charges the time since began_ns to the clients without priority (unprioritized_wait_ns()). */
static void charge_time_to_unprioritized(struct daemon *daemon, uint64_t began_ns)
{
	const uint64_t now_ns = daemon_now_ns(), cost_ns = OTHERS_PART * (now_ns - began_ns);
	const uint64_t most_ns = now_ns + OTHERS_WAIT_MAX_MS * 1000000ull;
	uint64_t *until_ns = &daemon->unprioritized_wait_until_ns;

	if (*until_ns < now_ns)
		*until_ns = now_ns;
	if (*until_ns < most_ns)
		*until_ns += cost_ns < most_ns - *until_ns ? cost_ns : most_ns - *until_ns;
}

/* Reads from a connection. If it has no priority, charges the time to the share of clients without
 * priority (unprioritized_wait_ns()). */
static void read_and_charge_time(struct connection *connection)
{
	struct daemon *daemon = connection->daemon;
	const bool other = !connection->has_priority;
	const uint64_t began_ns = daemon_now_ns();

	if (other)
		daemon_note_non_owner_event(daemon);
	connection_read(connection);
	if (other)
		charge_time_to_unprioritized(daemon, began_ns);
}

/* Stops reading and resumes after wait_ns. Extends the time limit for the hello by wait_ns. */
static void pause_reading(struct connection *connection, uint64_t wait_ns)
{
	connection->hello_until_ns += wait_ns;
	connection_stop_timer(connection, connection->due);
	connection_start_timer(connection, DUE_RESUME, wait_ns);
	event_del(connection->readable);
}

/* Returns how long the request must wait, by the connection's rate limit and by
 * unprioritized_wait_ns(). */
static uint64_t take_token_and_get_wait_ns(struct connection *connection)
{
	const uint64_t rate = requests_per_second_limit(connection);
	uint64_t wait = 0;

	if (rate != LIMIT_NONE)
		wait = bucket_take_token(request_bucket_of(connection), rate,
		                         connection_now_ms() * 1000000u);
	return wait ? wait : unprioritized_wait_ns(connection);
}

/* A request that exceeds the rate limit waits, and no further request is read, which slows its
 * sender down. A step of a TLS handshake waits like a request, because it costs more than most. */
bool connection_pause_if_limited(struct connection *connection)
{
	uint64_t wait = 0;

	if (connection->stage != STAGE_OPEN && connection->stage != STAGE_TLS)
		return false;
	if (connection->stage == STAGE_OPEN && connection_exceeds_large_bytes(connection)) {
		wait = LARGE_WAIT_MS * 1000000ull;
	} else if (!connection->passed_rate_limit) {
		wait = connection->stage == STAGE_TLS ? unprioritized_wait_ns(connection)
		                                      : take_token_and_get_wait_ns(connection);
		connection->passed_rate_limit = true;
	}
	if (wait == 0)
		return false;
	pause_reading(connection, wait);
	return true;
}

void connection_return_token(struct connection *connection)
{
	const uint64_t rate = requests_per_second_limit(connection);

	if (connection->passed_rate_limit && connection->due == DUE_RESUME &&
	    connection->stage == STAGE_OPEN && rate != LIMIT_NONE)
		bucket_return_token(request_bucket_of(connection), rate);
}

/* Owners have priority for as many requests as they normally send, so that an owner that floods the
 * daemon does not delay the commits of others. */
void connection_set_priority(struct connection *connection)
{
	const uint64_t now_ns = daemon_now_ns();

	connection->has_priority = connection->session.store &&
	                           bucket_take_token(&connection->priority_bucket, OWNER_REQUESTS,
	                                             now_ns) == 0;
	if (connection->session.store && !connection->has_priority)
		bucket_return_token(&connection->priority_bucket, OWNER_REQUESTS);
	event_priority_set(connection->readable,
	                   connection->has_priority ? PRIORITY_OWNERS : PRIORITY_NON_OWNERS);
}

unsigned connection_message_budget(const struct connection *connection)
{
	return connection->has_priority || !is_data_moving(connection->daemon) ? MESSAGES_PER_TURN
	                                                                       : 1;
}

struct connection *connection_of_ended_lifeline(const struct connection *connection)
{
	if (!connection->has_hung_up)
		return NULL;
	/* The session is the first member of its connection. */
	return (struct connection *)stores_find_lifeline_session(connection->daemon->stores,
	                                                         &connection->session);
}

DAEMON_CALLBACK(on_readable, struct connection, daemon, read_and_charge_time)
DAEMON_CALLBACK(on_writable, struct connection, daemon, connection_write)

static void log_timeout(const struct connection *connection, enum due due)
{
	const char *peer = connection->session.peer, *who = connection->session.identity.name;
	const struct log_fields fields = { .peer = peer };

	if (due == DUE_HELLO)
		log_limited(daemon_count_refusal(connection->daemon, REFUSED_HELLO), LOG_LEVEL_INFO,
		            "hello-late", &fields,
		            "connection from %s, %s, is closed: it did not say hello in time", peer,
		            *who ? who : "in the handshake of TLS");
	else
		log_event(LOG_LEVEL_INFO, "too-slow", &fields,
		          "connection from %s, %s, is closed: it %s", peer, who,
		          due == DUE_REQUEST ? "sent half of a request, and not the rest in time"
		                             : "did not take its reply in time");
}

static void expect_hello(struct connection *connection)
{
	const uint64_t now_ns = daemon_now_ns(), until_ns = connection->hello_until_ns;

	connection_start_timer(connection, DUE_HELLO, until_ns > now_ns ? until_ns - now_ns : 0);
}

static void handle_due_timer(struct connection *connection)
{
	const enum due due = connection->due;

	connection->due = DUE_NOTHING;
	if (due == DUE_RESUME) {
		event_add(connection->readable, NULL);
		if (connection->stage == STAGE_TLS)
			expect_hello(connection);
		read_and_charge_time(connection);
		return;
	}
	if (due == DUE_PROGRESS) {
		connection_send_progress(connection);
		return;
	}
	if (due == DUE_WATCH) {
		connection_recheck_watch(connection);
		return;
	}
	log_timeout(connection, due);
	connection_close(connection);
}

DAEMON_CALLBACK(on_timer, struct connection, daemon, handle_due_timer)

/* Detects a host that died within about ten seconds. */
static void set_keepalive(int fd)
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

static void format_peer(struct connection *connection, const struct sockaddr *from)
{
	const struct sockaddr_in *v4 = (const void *)from;
	const struct sockaddr_in6 *v6 = (const void *)from;
	char *peer = connection->session.peer;
	const size_t size = sizeof(connection->session.peer);
	char number[INET6_ADDRSTRLEN] = "?";
	struct ucred cred = { .pid = 0 };
	socklen_t len = sizeof(cred);

	if (connection->session.local) {
		(void)getsockopt(connection->stream.fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
		snprintf(peer, size, "process %d on this host", (int)cred.pid);
	} else if (from->sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &v6->sin6_addr, number, sizeof(number));
		snprintf(peer, size, "[%s]:%u", number, ntohs(v6->sin6_port));
	} else {
		inet_ntop(AF_INET, &v4->sin_addr, number, sizeof(number));
		snprintf(peer, size, "%s:%u", number, ntohs(v4->sin_port));
	}
}

/* An IPv6 network counts as one origin, because a host usually has all of its addresses. */
static void format_origin(const struct sockaddr *from, bool local, char origin[ORIGIN_MAX])
{
	struct in6_addr net;
	char number[INET6_ADDRSTRLEN] = "?";

	if (!local && from->sa_family == AF_INET6) {
		net = ((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;
		if (!IN6_IS_ADDR_V4MAPPED(&net) && !IN6_IS_ADDR_LINKLOCAL(&net) &&
		    !IN6_IS_ADDR_LOOPBACK(&net))
			memset(&net.s6_addr[8], 0, 8);
		inet_ntop(AF_INET6, &net, number, sizeof(number));
	} else if (!local) {
		inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)from)->sin_addr,
		          number, sizeof(number));
	}
	snprintf(origin, ORIGIN_MAX, "%s %s", local ? "unix" : "address", number);
}

static struct connection *connection_of_admitted(const struct admitted *admitted)
{
	return (struct connection *)((char *)(uintptr_t)admitted -
	                             offsetof(struct connection, admitted));
}

/* A connection whose request runs as a job counts as an owner's here, because it cannot be closed
 * at once. */
static bool is_owner_connection(const struct admitted *admitted)
{
	const struct connection *connection = connection_of_admitted(admitted);

	return connection->session.store || connection->runs_as_job;
}

static void evict_connection(struct admitted *admitted)
{
	struct connection *connection = connection_of_admitted(admitted);

	daemon_log_too_many_connections(connection->daemon, connection->session.peer);
	connection_close(connection);
}

int connection_set_identity(struct connection *connection, const char *certificate)
{
	struct identity *who = &connection->session.identity;
	const struct access *access = stores_access(connection->daemon->stores);
	bool named = true;

	if (connection->session.local)
		identity_of_process(who, connection->stream.fd);
	else
		named = identity_of_certificate(who, certificate);
	if (strcmp(who->name, "anonymous") != 0 &&
	    !admission_change_origin(&connection->admitted, who->name))
		return -1;
	if (named && connection->admitted.origin->connection_count <=
	                     access_limit(access, who->name, LIMIT_CONNECTIONS))
		return 0;
	log_limited(daemon_count_refusal(connection->daemon, named ? REFUSED_LIMIT : REFUSED_TLS),
	            LOG_LEVEL_WARNING, "connection-refused",
	            &(struct log_fields){ .peer = connection->session.peer },
	            "connection from %s, %s, is refused: %s", connection->session.peer, who->name,
	            named ? "it has all that its limit \"connections\" allows"
	                  : "its certificate names nobody");
	return -1;
}

static void log_no_memory(const struct connection *connection)
{
	log_event(LOG_LEVEL_ERROR, "out-of-memory",
	          &(struct log_fields){ .peer = connection->session.peer },
	          "out of memory for a connection");
}

static bool make_events(struct connection *connection)
{
	struct event_base *base = connection->daemon->base;
	int fd = connection->stream.fd;

	connection->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, connection);
	connection->writable = event_new(base, fd, EV_WRITE | EV_PERSIST, on_writable, connection);
	connection->due_timer = evtimer_new(base, on_timer, connection);
	connection->hangup_event = event_new(base, fd, EV_CLOSED, connection_on_hangup, connection);
	if (!connection->readable || !connection->writable || !connection->due_timer ||
	    !connection->hangup_event || event_add(connection->readable, NULL) < 0)
		return false;
	connection->hello_until_ns = daemon_now_ns() + connection->daemon->handshake_ns;
	expect_hello(connection);
	return true;
}

static struct connection *connection_new(struct daemon *daemon, int fd, const struct sockaddr *from,
                                         bool local)
{
	struct connection *connection = calloc(1, sizeof(*connection));
	char origin[ORIGIN_MAX];

	if (!connection)
		return NULL;
	connection->admitted = (struct admitted){
		.is_unix_socket = local,
		.last_heard_ms = connection_now_ms(),
		.is_owner = is_owner_connection,
		.evict = evict_connection,
	};
	format_origin(from, local, origin);
	if (!admission_admit(&daemon->admission, &connection->admitted, origin)) {
		free(connection);
		return NULL;
	}
	connection->session.ops = &connection_session;
	connection->session.local = local;
	connection->daemon = daemon;
	connection->stream.fd = fd;
	connection->pidfd = local ? shm_peer_pidfd(fd) : -1;
	connection->next = daemon->connections;
	connection->link = &daemon->connections;
	if (connection->next)
		connection->next->link = &connection->next;
	daemon->connections = connection;
	daemon->counters.connections_accepted++;
	format_peer(connection, from);
	return connection;
}

void connection_set_stage(struct connection *connection, enum stage to)
{
	/* The stages from which each stage may be entered. A request that is too long enters LAST
	 * again if it had to wait. */
	static const unsigned entered_from[] = {
		[STAGE_SNIFF] = 1u << STAGE_TLS,
		[STAGE_HELLO] = 1u << STAGE_SNIFF,
		[STAGE_OPEN] = 1u << STAGE_HELLO,
		[STAGE_FLUSHING] = 1u << STAGE_OPEN | 1u << STAGE_FLUSHING,
	};

	assert(entered_from[to] & 1u << connection->stage);
	connection->stage = to;
}

/* With TLS, every byte of a TCP connection is encrypted, and the identity is unknown until the
 * handshake has succeeded. */
static int begin_stream(struct connection *connection)
{
	connection->stage = STAGE_SNIFF;
	if (connection->session.local || !connection->daemon->tls)
		return connection_set_identity(connection, NULL);
	connection->stage = STAGE_TLS;
	if (ps_stream_begin_tls(&connection->stream, connection->daemon->tls, NULL) == 0)
		return 0;
	log_no_memory(connection);
	return -1;
}

void connection_accept(struct daemon *daemon, int fd, const struct sockaddr *from, bool local)
{
	struct connection *connection = connection_new(daemon, fd, from, local);

	assert(daemon_has_lock(daemon));
	daemon_note_non_owner_event(daemon);
	if (!connection) {
		daemon_log_too_many_connections(daemon, "a new client");
		close(fd);
		return;
	}
	if (!local)
		set_keepalive(fd);
	if (!make_events(connection)) {
		log_no_memory(connection);
		connection_close(connection);
	} else if (begin_stream(connection) < 0) {
		connection_close(connection);
	}
}
