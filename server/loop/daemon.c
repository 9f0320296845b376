/*
 * daemon.c - the event loop, its priorities for owners and other clients, and state that its parts
 * share. main.c creates and runs it. Nothing in the loop may block: long work runs as a job
 * (jobs_loop.c).
 */
#include "daemon.h"

#include "../../proto/base/text.h"

#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	LOOP_ROUNDS = 32, /* polls of data connections for each poll of everything else */
	/* Time between two tries to write log lines that the reader of standard error did not
	 * take. */
	FLUSH_US = 100000,
};

#define TARGET(name) &target_##name,
static const struct target *const all_targets[] = { TARGETS(TARGET) NULL };
#undef TARGET

uint64_t daemon_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void daemon_cut_data_paths(struct daemon *daemon, struct session *session)
{
	assert(daemon_has_lock(daemon));
	for (const struct target *const *target = all_targets; *target; target++)
		if ((*target)->cut)
			(*target)->cut(daemon, session);
	session->fabric = NULL;
}

void daemon_fill_grant(struct daemon *daemon, struct session *session, Perseas__Grant *grant)
{
	for (const struct target *const *target = all_targets; *target; target++)
		if ((*target)->grant)
			(*target)->grant(daemon, session, grant);
}

bool daemon_offers_rdma(struct daemon *daemon, struct session *session, char *why, size_t size)
{
	char trouble[512] = "its perseasd was built without RDMA";

	for (const struct target *const *target = all_targets; *target; target++)
		if ((*target)->offers &&
		    (*target)->offers(daemon, session, trouble, sizeof(trouble)))
			return true;
	ps_text_format(why, size, "it offers no RDMA: %s. Over TCP its address begins with tcp://",
	               trouble);
	return false;
}

/* Makes events of owners wait for at most one event of other clients. */
static struct event_base *make_event_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base;

	if (!config)
		return NULL;
	event_config_set_max_dispatch_interval(config, NULL, 1, PRIORITY_NON_OWNERS);
	base = event_base_new_with_config(config);
	event_config_free(config);
	if (base && event_base_priority_init(base, PRIORITIES) == 0)
		return base;
	if (base)
		event_base_free(base);
	return NULL;
}

bool daemon_must_pause_owners(struct daemon *daemon)
{
	const uint64_t now = daemon_now_ns(), wait = NON_OWNERS_WAIT_MS * 1000000ull;

	if (daemon->lowest_priority_event_since_ns)
		return now - daemon->lowest_priority_event_since_ns >= wait;
	if (now - daemon->last_non_owner_event_ns < wait)
		return false;
	/* Libevent does not tell whether events of lower priority are waiting, so this activates
	 * one that runs behind them. */
	daemon->lowest_priority_event_since_ns = now;
	event_active(daemon->lowest_priority_event, EV_TIMEOUT, 0);
	return false;
}

void daemon_note_non_owner_event(struct daemon *daemon)
{
	daemon->last_non_owner_event_ns = daemon_now_ns();
	if (!daemon->lowest_priority_event_since_ns)
		return;
	daemon->lowest_priority_event_since_ns = daemon->last_non_owner_event_ns;
	for (const struct target *const *target = all_targets; *target; target++)
		if ((*target)->resume)
			(*target)->resume(daemon);
}

/* Logs the event. Watchers are woken later, when the function that caused the event has
 * returned. */
static void on_store_event(void *arg, const struct store_event_info *news)
{
	struct daemon *daemon = arg;

	journal_log_event(NULL, news);
	if (!daemon->watchers)
		return;
	daemon->has_news = true;
	daemon_wake(daemon);
}

static void on_log_flush_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	if (!log_flush())
		evtimer_add(((struct daemon *)arg)->log_flush_timer,
		            &(struct timeval){ .tv_usec = FLUSH_US });
}

static void on_log_stall(void *arg)
{
	struct daemon *daemon = arg;

	if (!evtimer_pending(daemon->log_flush_timer, NULL))
		evtimer_add(daemon->log_flush_timer, &(struct timeval){ .tv_usec = FLUSH_US });
}

static void on_lowest_priority_event(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;

	(void)fd;
	(void)what;
	daemon_note_non_owner_event(daemon);
	daemon->lowest_priority_event_since_ns = 0;
}

void daemon_set_max_connections(struct daemon *daemon, unsigned max)
{
	daemon->admission.max_connections = max;
	daemon->admission.reserved_for_owners_and_unix = max / CONNECTIONS_RESERVED_PART;
	daemon->admission.reserved_for_operators = max / OPERATORS_RESERVED_PART;
}

struct daemon *daemon_new(struct stores *stores, uint64_t spin_us)
{
	struct daemon *daemon = calloc(1, sizeof(*daemon));

	if (!daemon)
		return NULL;
	daemon->base = make_event_base();
	if (daemon->base)
		daemon->lowest_priority_event = event_new(daemon->base, -1, 0,
		                                          on_lowest_priority_event, daemon);
	if (daemon->base)
		daemon->log_flush_timer = evtimer_new(daemon->base, on_log_flush_timer, daemon);
	if (!daemon->lowest_priority_event || !daemon->log_flush_timer ||
	    daemon_open_excess_check(daemon) < 0 || daemon_open_expiry_timer(daemon) < 0 ||
	    daemon_open_jobs(daemon) < 0) {
		daemon_close_expiry_timer(daemon);
		daemon_close_excess_check(daemon);
		if (daemon->log_flush_timer)
			event_free(daemon->log_flush_timer);
		if (daemon->lowest_priority_event)
			event_free(daemon->lowest_priority_event);
		if (daemon->base)
			event_base_free(daemon->base);
		free(daemon);
		return NULL;
	}
	daemon->stores = stores;
	stores_on_event(stores, on_store_event, daemon);
	stores_set_clock(stores, daemon_now_ns);
	log_on_stall(on_log_stall, daemon);
	daemon->spin_ns = spin_us * 1000;
	daemon->watchers_last = &daemon->watchers;
	daemon->watchers_max = WATCHERS_MAX;
	daemon->longest_watch_ns = PS_WATCH_MS * 1000000ull;
	daemon->spill_requester_fd = -1;
	daemon->loop_lane.epoll_fd = -1;
	daemon->loop_lane.wake_fd = -1;
	daemon->loop_lane.spin_count = 1;
	daemon->began_ns = daemon_now_ns();
	daemon->handshake_ns = HANDSHAKE_SECONDS * 1000000000ull;
	daemon->message_ns = MESSAGE_SECONDS * 1000000000ull;
	daemon_set_max_connections(daemon, CONNECTIONS_MAX);
	return daemon;
}

void daemon_end_sessions(struct daemon *daemon)
{
	daemon->phase = DAEMON_ENDING;
	lanes_stop(daemon);
	daemon_close_listeners(daemon);
	connections_close(daemon);
	names_loop_close(daemon);
	for (const struct target *const *target = all_targets; *target; target++)
		if ((*target)->stop)
			(*target)->stop(daemon);
}

void daemon_free(struct daemon *daemon)
{
	if (!daemon)
		return;
	daemon_end_sessions(daemon);
	if (daemon->spill_requester_fd >= 0)
		close(daemon->spill_requester_fd);
	http_close(daemon);
	stores_on_event(daemon->stores, NULL, NULL);
	lanes_close(daemon);
	daemon_close_jobs(daemon);
	daemon_close_expiry_timer(daemon);
	daemon_close_excess_check(daemon);
	log_on_stall(NULL, NULL);
	event_free(daemon->log_flush_timer);
	event_free(daemon->lowest_priority_event);
	event_base_free(daemon->base);
	ps_tls_free(daemon->tls);
	admission_free_origins(&daemon->admission);
	free(daemon);
}

struct log_limit *daemon_count_refusal(struct daemon *daemon, enum refusal refusal)
{
	daemon->counters.connections_refused[refusal]++;
	return &daemon->refusal_log_limits[refusal];
}

void daemon_log_too_many_connections(struct daemon *daemon, const char *peer)
{
	const struct admission *admission = &daemon->admission;

	log_limited(
		daemon_count_refusal(daemon, REFUSED_FULL), LOG_LEVEL_WARNING, "crowded",
		&(struct log_fields){ .peer = peer },
		"there is no room for more than %u connections, and %u are open: the connection "
		"of %s is closed; since the start, %llu had to make room for others",
		admission->max_connections, admission->connection_count, peer,
		(unsigned long long)admission->evicted_count);
}

/* Warns if others can read the key, with which they could impersonate this mirror. The daemon's own
 * group may read it, because root gives the key to the daemon that way. */
static void check_key_mode(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return;
	if ((st.st_mode & S_IROTH) || ((st.st_mode & S_IRGRP) && st.st_gid != getegid()))
		log_event(LOG_LEVEL_WARNING, "tls-key-readable", NULL,
		          "others may read the key %s (its mode is %o): make another one, with a "
		          "certificate of its own, that only this daemon's user can read",
		          path, (unsigned)(st.st_mode & 07777));
}

struct ps_tls *daemon_read_tls(const struct ps_tls_files *files, char *why, size_t size)
{
	struct ps_tls *tls = ps_tls_new(files, why, size);

	if (tls)
		check_key_mode(files->key);
	return tls;
}

int daemon_load_tls(struct daemon *daemon, const struct ps_tls_files *files, char *why, size_t size)
{
	struct ps_tls *tls = daemon_read_tls(files, why, size);

	if (!tls)
		return -1;
	ps_tls_free(daemon->tls);
	daemon->tls = tls;
	daemon_check_expiry_dates(daemon);
	return 0;
}

/* Other events run first, and the loop polls all sockets before it runs this event. */
void daemon_rerun_event(struct daemon *daemon, struct event *readable)
{
	event_active(readable, EV_READ, 0);
	event_base_loopcontinue(daemon->base);
}

void daemon_stop(struct daemon *daemon)
{
	daemon->is_stopping = true;
	event_base_loopbreak(daemon->base);
}

static bool spin_targets(struct daemon *daemon)
{
	bool moved = false;

	for (const struct target *const *target = all_targets; *target; target++)
		if ((*target)->spin)
			moved |= (*target)->spin(daemon);
	return moved;
}

/* Polls until no data connection has moved for spin_ns. */
static void spin_paths(struct daemon *daemon)
{
	uint64_t until = daemon_now_ns() + daemon->spin_ns;

	for (unsigned round = 1; !daemon->is_stopping; round++) {
		uint64_t now;

		if (round % LOOP_ROUNDS == 0)
			event_base_loop(daemon->base, EVLOOP_NONBLOCK);
		now = daemon_now_ns();
		if (spin_targets(daemon))
			until = now + daemon->spin_ns;
		else if (now >= until)
			break;
	}
	daemon->loop_lane.spin_count++;
}

void daemon_serve_http(struct daemon *daemon)
{
	if (!daemon->is_loop_running && daemon->http)
		event_base_loop(daemon->base, EVLOOP_NONBLOCK);
}

void daemon_run(struct daemon *daemon)
{
	daemon->is_loop_running = true;
	while (!daemon->is_stopping) {
		daemon->loop_lane.has_new_data = false;
		event_base_loop(daemon->base, EVLOOP_ONCE);
		if (daemon->loop_lane.has_new_data && daemon->spin_ns > 0)
			spin_paths(daemon);
	}
	daemon->is_loop_running = false;
}
