/*
 * watch_loop.c - requests that wait until a store gains or loses its owner (Watch). jobs_loop.c
 * asks whether a request must wait, and reports events. A waiting request costs an entry in a table
 * of bounded size and a timer. If the table is full, the request that has waited longest, of the
 * origin with the most, is answered. A Watch is never refused and never answered with a stale
 * state: one that is answered early gets the present state.
 */
#include "connection.h"

#include <assert.h>
#include <event2/event.h>
#include <string.h>

/* Returns in how many nanoseconds the Watch must be checked again, or 0 if it must be answered
 * now. */
static uint64_t watch_wait_ns(struct connection *connection)
{
	const uint64_t now_ns = daemon_now_ns();
	uint64_t left_ns, ms = UINT64_MAX;
	uint32_t length;

	memcpy(&length, connection->input, sizeof(length));
	if (now_ns >= connection->watch_until_ns ||
	    !control_must_wait(connection->daemon->stores, &connection->session,
	                       connection->input + sizeof(length), length, &ms))
		return 0;
	left_ns = connection->watch_until_ns - now_ns;
	return ms < left_ns / 1000000 ? ms * 1000000 : left_ns;
}

void connection_leave_watchers(struct connection *connection)
{
	struct daemon *daemon = connection->daemon;

	if (!connection->watch_link)
		return;
	*connection->watch_link = connection->watch_next;
	if (connection->watch_next)
		connection->watch_next->watch_link = connection->watch_link;
	else
		daemon->watchers_last = connection->watch_link;
	connection->watch_link = NULL;
	assert(daemon->watcher_count > 0 && connection->admitted.origin->watching_count > 0);
	daemon->watcher_count--;
	connection->admitted.origin->watching_count--;
}

/* Lets the connection's timer answer the Watch, because answering here could begin other requests
 * before the caller is done. */
static void answer_watch_by_timer(struct connection *connection)
{
	connection_leave_watchers(connection);
	connection->watch_until_ns = 0;
	connection_stop_timer(connection, DUE_WATCH);
	connection_start_timer(connection, DUE_WATCH, 0);
}

/* Answers a Watch early, because the table is full. */
static void answer_watch_of_busiest_origin(struct daemon *daemon)
{
	struct connection *busiest = daemon->watchers;

	assert(busiest);
	for (struct connection *at = busiest; at; at = at->watch_next)
		if (at->admitted.origin->watching_count > busiest->admitted.origin->watching_count)
			busiest = at;
	answer_watch_by_timer(busiest);
}

/* Returns the longest wait of the connection's Watch, which may ask for a shorter one than
 * usual. */
static uint64_t longest_wait_ns(const struct connection *connection)
{
	const uint64_t ns = (uint64_t)connection->subject.within_ms * 1000000;

	return ns && ns < connection->daemon->longest_watch_ns
	               ? ns
	               : connection->daemon->longest_watch_ns;
}

bool connection_wait_in_watch(struct connection *connection)
{
	struct daemon *daemon = connection->daemon;
	uint64_t ns;

	if (connection->subject.course != CONTROL_WATCHES || daemon->phase == DAEMON_ENDING)
		return false;
	connection->watch_until_ns = daemon_now_ns() + longest_wait_ns(connection);
	ns = watch_wait_ns(connection);
	if (ns == 0)
		return false;
	if (daemon->watcher_count >= daemon->watchers_max)
		answer_watch_of_busiest_origin(daemon);
	assert(!connection->watch_link);
	connection->watch_next = NULL;
	connection->watch_link = daemon->watchers_last;
	*daemon->watchers_last = connection;
	daemon->watchers_last = &connection->watch_next;
	daemon->watcher_count++;
	connection->admitted.origin->watching_count++;
	event_del(connection->readable);
	event_add(connection->hangup_event, NULL);
	connection_start_timer(connection, DUE_WATCH, ns);
	return true;
}

void connection_recheck_watch(struct connection *connection)
{
	const uint64_t ns = watch_wait_ns(connection);
	struct daemon *daemon = connection->daemon;

	if (ns > 0) {
		connection_start_timer(connection, DUE_WATCH, ns);
		return;
	}
	connection_leave_watchers(connection);
	event_del(connection->hangup_event);
	event_add(connection->readable, NULL);
	/* Answers with the present state, whether it has changed or not. */
	daemon->connection_to_resume = connection;
	connection_read(connection);
	/* The connection may have been parked or closed; no other one may take its place. */
	daemon->connection_to_resume = NULL;
}

/* Wakes the watchers if an owner returns after it counted as dead, because no event of the store
 * does. */
void connection_note_received(struct connection *connection)
{
	struct daemon *daemon = connection->daemon;
	const uint64_t now_ms = connection_now_ms();
	const uint64_t silent_ms = now_ms - connection->admitted.last_heard_ms;

	connection->admitted.last_heard_ms = now_ms;
	if (!daemon->watchers || !session_silence_exceeds_limit(&connection->session, silent_ms))
		return;
	daemon->has_news = true;
	daemon_wake(daemon);
}

void daemon_answer_watchers(struct daemon *daemon)
{
	struct connection *next;

	daemon->has_news = false;
	for (struct connection *at = daemon->watchers; at; at = next) {
		next = at->watch_next;
		if (watch_wait_ns(at) == 0)
			answer_watch_by_timer(at);
	}
}
