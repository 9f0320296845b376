/*
 * jobs_loop.c - runs long requests as jobs: which may begin, which must wait, and what happens if
 * the client has gone. The control connections and the loop call it. Requests for one store are
 * handled in the order in which they came, one at a time; two of them must never be in progress at
 * once.
 */
#include "connection.h"

#include <assert.h>
#include <event2/event.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { PROGRESS_MS = 50 }; /* time between signs of progress; shorter than any timeout of a peer */

static struct connection *connection_of_job(struct job *job)
{
	return (struct connection *)((char *)job - offsetof(struct connection, job));
}

/* --- which requests must wait --- */

/* Returns true if the connection's request must wait for the request of `other`, which came before
 * it. */
static bool must_wait_for_request_of(const struct connection *connection,
                                     const struct connection *other)
{
	const struct control_subject *mine = &connection->subject, *theirs = &other->subject;

	if (mine->course == CONTROL_ALONE || theirs->course == CONTROL_ALONE)
		return true;
	if (mine->store[0] && strcmp(mine->store, theirs->store) == 0)
		return true;
	/* Digests of many stores must not take all threads. */
	if (mine->course == CONTROL_HASHES && theirs->course == CONTROL_HASHES)
		return true;
	/* Two requests that allocate memory at once could each find room in the same quota. */
	return mine->course == CONTROL_GROWS && theirs->course == CONTROL_GROWS &&
	       stores_access(connection->daemon->stores) &&
	       strcmp(connection->session.identity.name, other->session.identity.name) == 0;
}

/* Returns true if the request goes before the waiting request of `other`, which came before it. A
 * Claim waits for the Digest that is being computed, and for no other one. */
static bool may_overtake(const struct connection *connection, const struct connection *other)
{
	return other->subject.course == CONTROL_HASHES &&
	       connection->subject.course != CONTROL_HASHES &&
	       connection->subject.course != CONTROL_ALONE;
}

/* Returns true if the request must wait because memory of its store is being freed. */
static bool waits_for_memory(const struct connection *connection)
{
	const struct control_subject *subject = &connection->subject;

	return stores_are_freeing(connection->daemon->stores,
	                          subject->course == CONTROL_ALONE ? NULL : subject->store);
}

static bool must_park_request(const struct connection *connection)
{
	const struct daemon *daemon = connection->daemon;

	if (connection->subject.course <= CONTROL_WATCHES)
		return false;
	if (daemon->exclusive_job || waits_for_memory(connection))
		return true;
	for (const struct connection *other = daemon->parked; other && other != connection;
	     other = other->parked_next)
		if (must_wait_for_request_of(connection, other) && !may_overtake(connection, other))
			return true;
	if (connection->subject.course >= CONTROL_LONG &&
	    (daemon->event_after_jobs || daemon->phase == DAEMON_ENDING ||
	     !jobs_can_start(daemon->jobs)))
		return true;
	if (jobs_count(daemon->jobs) == 0)
		return false;
	for (const struct connection *other = daemon->connections; other; other = other->next)
		if (other->runs_as_job && must_wait_for_request_of(connection, other))
			return true;
	return false;
}

/* Stops reading from the connection, and only detects a hangup of the peer. */
static void watch_hangup(struct connection *connection)
{
	event_del(connection->readable);
	event_add(connection->hangup_event, NULL);
	connection_start_timer(connection, DUE_PROGRESS, PROGRESS_MS * 1000000ull);
}

static void unwatch_hangup(struct connection *connection)
{
	event_del(connection->hangup_event);
	connection_stop_timer(connection, DUE_PROGRESS);
}

static void park_request(struct connection *connection)
{
	struct daemon *daemon = connection->daemon;

	assert(!connection->is_parked && !connection->runs_as_job);
	connection->is_parked = true;
	connection->parked_next = NULL;
	*daemon->parked_last = connection;
	daemon->parked_last = &connection->parked_next;
	watch_hangup(connection);
}

void connection_leave_parked(struct connection *connection)
{
	struct daemon *daemon = connection->daemon;
	struct connection **at = &daemon->parked;

	if (!connection->is_parked)
		return;
	while (*at && *at != connection)
		at = &(*at)->parked_next;
	assert(*at);
	*at = connection->parked_next;
	if (!*at)
		daemon->parked_last = at;
	connection->is_parked = false;
	unwatch_hangup(connection);
}

/* Resumes all requests that need not wait any more, in the order in which they came. */
static void resume_parked_requests(struct daemon *daemon)
{
	struct connection *connection = daemon->parked;

	while (connection && daemon->phase != DAEMON_ENDING) {
		if (must_park_request(connection)) {
			connection = connection->parked_next;
			continue;
		}
		connection_leave_parked(connection);
		event_add(connection->readable, NULL);
		daemon->connection_to_resume = connection;
		connection_read(connection);
		daemon->connection_to_resume = NULL;
		connection = daemon->parked;
	}
}

/* --- running jobs --- */

static void handle_request(struct connection *connection)
{
	uint32_t length;

	assert(daemon_has_lock(connection->daemon));
	memcpy(&length, connection->input, sizeof(length));
	connection->handle_result = control_handle(connection->daemon->stores, &connection->session,
	                                           PERSEAS_VERSION,
	                                           connection->input + sizeof(length), length,
	                                           &connection->output);
}

static void run_request_job(struct job *job)
{
	struct connection *connection = connection_of_job(job);

	stores_begin_request(connection->daemon->stores, connection->subject.store);
	handle_request(connection);
	/* The image may change before the reply is sent. */
	assert(connection->output.read.len == 0);
	stores_end_request(connection->daemon->stores, connection->subject.store);
}

static void finish_request_job(struct job *job)
{
	struct connection *connection = connection_of_job(job);

	assert(connection->runs_as_job);
	connection->runs_as_job = false;
	/* Events of the job may be visible only now, so check the watchers. */
	connection->daemon->has_news = true;
	unwatch_hangup(connection);
	if (connection->close_after_job)
		connection_close(connection);
	else
		connection_reply_after_job(connection);
}

bool connection_handle_or_defer_request(struct connection *connection)
{
	struct daemon *daemon = connection->daemon;
	uint32_t length;

	memcpy(&length, connection->input, sizeof(length));
	control_find_subject(&connection->session, connection->input + sizeof(length), length,
	                     &connection->subject);
	connection->progress_base = connection->progress_last;
	if (daemon->connection_to_resume != connection && must_park_request(connection)) {
		park_request(connection);
		return false;
	}
	if (daemon->connection_to_resume != connection && connection_wait_in_watch(connection))
		return false;
	daemon->connection_to_resume = NULL;
	connection->passed_rate_limit = false;
	connection->began_ns = daemon_now_ns();
	if (connection->subject.course < CONTROL_LONG) {
		handle_request(connection);
		return true;
	}
	connection->job.run = run_request_job;
	connection->job.done = finish_request_job;
	if (jobs_start(daemon->jobs, &connection->job))
		return true;
	connection->runs_as_job = true;
	watch_hangup(connection);
	return false;
}

/* `done` grows with the processor time of the job, so a job that hangs shows no progress. The
 * heartbeat says that the daemon itself is alive, although it does not read from the owner now. */
void connection_send_progress(struct connection *connection)
{
	const struct jobs *jobs = connection->daemon->jobs;
	uint64_t done = jobs_spent_us(jobs, connection->runs_as_job ? &connection->job : NULL);
	uint8_t *bytes = NULL;
	struct iovec part = { NULL, 0 };
	ssize_t sent;

	done += connection->runs_as_job ? connection->progress_base : 0;
	if (done > connection->progress_last &&
	    control_pack_progress(connection->subject.id, done, &bytes, &part.iov_len) == 0) {
		part.iov_base = bytes;
		connection->progress_last = done;
		sent = ps_stream_send(&connection->stream, &part, 1);
		free(bytes);
		/* No reply is being sent, so the socket is full only if the peer does not read. */
		if (sent != (ssize_t)part.iov_len) {
			connection_close(connection);
			return;
		}
	}
	if (connection->peer_expects_heartbeats && !connection_send_heartbeat(connection)) {
		connection_close(connection);
		return;
	}
	connection_start_timer(connection, DUE_PROGRESS, PROGRESS_MS * 1000000ull);
}

void connection_on_hangup(evutil_socket_t fd, short what, void *arg)
{
	struct connection *connection = arg;
	struct daemon *daemon = connection->daemon;

	(void)fd;
	(void)what;
	daemon_lock(daemon);
	unwatch_hangup(connection);
	connection_close(connection);
	daemon_unlock(daemon);
}

static void on_job_waits_for_turn(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;
	uint64_t times;

	(void)what;
	if (read(fd, &times, sizeof(times)) < 0)
		return;
	daemon_lock(daemon);
	daemon_note_non_owner_event(daemon);
	jobs_give_turns(daemon->jobs);
	if (daemon->exclusive_job && daemon->exclusive_job->over)
		daemon->exclusive_job = NULL;
	if (daemon->event_after_jobs && jobs_count(daemon->jobs) == 0) {
		event_active(daemon->event_after_jobs, EV_TIMEOUT, 1);
		daemon->event_after_jobs = NULL;
	}
	resume_parked_requests(daemon);
	if (daemon->has_news)
		daemon_answer_watchers(daemon);
	daemon_unlock(daemon);
}

static void wake_loop(void *arg)
{
	daemon_wake(arg);
}

void daemon_wake(const struct daemon *daemon)
{
	const uint64_t one = 1;

	/* The write fails only if the eventfd's counter would exceed 2^64 - 2. */
	(void)!write(daemon->jobs_fd, &one, sizeof(one));
}

bool daemon_defer_event_until_no_jobs(struct daemon *daemon, struct event *event)
{
	if (jobs_count(daemon->jobs) == 0)
		return false;
	daemon->event_after_jobs = event;
	return true;
}

static void ignore_job_end(struct job *job)
{
	(void)job;
}

/* Starts the job. If no thread can be started, runs it in the loop, which answers no client
 * meanwhile. */
static void start_job(struct daemon *daemon, struct job *job)
{
	job->done = ignore_job_end;
	if (jobs_can_start(daemon->jobs)) {
		(void)jobs_start(daemon->jobs, job);
		return;
	}
	job->run(job);
	job->over = true;
}

void daemon_run_exclusive_job(struct daemon *daemon, struct job *job)
{
	assert(!daemon->exclusive_job || daemon->exclusive_job->over);
	daemon->exclusive_job = job;
	start_job(daemon, job);
	if (job->over)
		daemon->exclusive_job = NULL;
}

void daemon_run_job_to_end(struct daemon *daemon, struct job *job)
{
	daemon_lock(daemon);
	start_job(daemon, job);
	daemon_unlock(daemon);
	while (!job->over)
		event_base_loop(daemon->base, EVLOOP_ONCE);
}

int daemon_open_jobs(struct daemon *daemon)
{
	daemon->parked_last = &daemon->parked;
	daemon->jobs_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	daemon->jobs = jobs_new(wake_loop, daemon);
	if (daemon->jobs_fd >= 0)
		daemon->jobs_event = event_new(daemon->base, daemon->jobs_fd, EV_READ | EV_PERSIST,
		                               on_job_waits_for_turn, daemon);
	if (daemon->jobs && daemon->jobs_event && event_add(daemon->jobs_event, NULL) == 0)
		return 0;
	daemon_close_jobs(daemon);
	return -1;
}

void daemon_close_jobs(struct daemon *daemon)
{
	jobs_free(daemon->jobs);
	if (daemon->jobs_event)
		event_free(daemon->jobs_event);
	if (daemon->jobs_fd >= 0)
		close(daemon->jobs_fd);
}
