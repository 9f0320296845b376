/*
 * watch_loop.c - requests that wait until a store gets or loses its owner (Watch). jobs_loop.c asks
 * whether a request is one to wait, and says when something happened. Whoever waits costs a place
 * in a table of bounded size and a timer: who needs a place that nobody has free gets that of the
 * one that has waited longest, of the origin that has most. It must never refuse, or answer what is
 * not so: whoever is let go is answered by what is so then.
 */
#include "connection.h"

#include <assert.h>
#include <event2/event.h>
#include <string.h>

/* Nothing new to it for so long: 0, or in how many nanoseconds that must be looked at again. */
static uint64_t wait_ns(struct connection *connection)
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

void connection_unwatch(struct connection *connection)
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
	daemon->watcher_count--;
	connection->guest.origin->watching--;
}

/* Its timer lets it go: here, requests behind this one could begin before the caller is done. */
static void let_go_soon(struct connection *connection)
{
	connection_unwatch(connection);
	connection->watch_until_ns = 0;
	connection_wait_no_more(connection, DUE_WATCH);
	connection_wait(connection, DUE_WATCH, 0);
}

static void make_room(struct daemon *daemon)
{
	struct connection *longest = daemon->watchers;

	assert(longest);
	for (struct connection *at = longest; at; at = at->watch_next)
		if (at->guest.origin->watching > longest->guest.origin->watching)
			longest = at;
	let_go_soon(longest);
}

/* Some want to say something again sooner than others. */
static uint64_t patience_ns(const struct connection *connection)
{
	const uint64_t ns = (uint64_t)connection->subject.within_ms * 1000000;

	return ns && ns < connection->daemon->watch_ns ? ns : connection->daemon->watch_ns;
}

bool connection_watches(struct connection *connection)
{
	struct daemon *daemon = connection->daemon;
	uint64_t ns;

	if (connection->subject.course != CONTROL_WATCHES || daemon->phase == DAEMON_ENDING)
		return false;
	connection->watch_until_ns = daemon_now_ns() + patience_ns(connection);
	ns = wait_ns(connection);
	if (ns == 0)
		return false;
	if (daemon->watcher_count >= daemon->watchers_max)
		make_room(daemon);
	connection->watch_next = NULL;
	connection->watch_link = daemon->watchers_last;
	*daemon->watchers_last = connection;
	daemon->watchers_last = &connection->watch_next;
	daemon->watcher_count++;
	connection->guest.origin->watching++;
	event_del(connection->readable);
	event_add(connection->hangup, NULL);
	connection_wait(connection, DUE_WATCH, ns);
	return true;
}

void connection_watch(struct connection *connection)
{
	const uint64_t ns = wait_ns(connection);
	struct daemon *daemon = connection->daemon;

	if (ns > 0) {
		connection_wait(connection, DUE_WATCH, ns);
		return;
	}
	connection_unwatch(connection);
	event_del(connection->hangup);
	event_add(connection->readable, NULL);
	/* Answered by what is so now, new to it or not. */
	daemon->released = connection;
	connection_read(connection);
	/* It may have had to wait all the same, or be gone: nobody else is meant. */
	daemon->released = NULL;
}

/* Nothing else tells of it: its session never ended. */
void connection_heard(struct connection *connection)
{
	struct daemon *daemon = connection->daemon;
	const uint64_t now_ms = connection_now_ms();
	const uint64_t silent_ms = now_ms - connection->guest.heard_ms;

	connection->guest.heard_ms = now_ms;
	if (!daemon->watchers || !session_silence_kills(&connection->session, silent_ms))
		return;
	daemon->stirred = true;
	daemon_wake(daemon);
}

void daemon_tell_watchers(struct daemon *daemon)
{
	struct connection *next;

	daemon->stirred = false;
	for (struct connection *at = daemon->watchers; at; at = next) {
		next = at->watch_next;
		if (wait_ns(at) == 0)
			let_go_soon(at);
	}
}
