/*
 * lanes.c - the threads of data connections, and the lock between them and the loop. Each thread
 * polls its connections and serves one at a time inside the lock, through target_tcp.c. A lane's
 * thread must never close a connection, write to the log, or use libevent: only the loop may.
 */
#include "daemon.h"
#include "../host/thread.h"

#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	EVENTS = 64,      /* maximum number of events that one poll returns */
	POLL_ROUNDS = 32, /* polls of the links that moved, for each poll of all links */
};

struct lanes {
	pthread_rwlock_t lock;
	bool loop_has_lock; /* the loop is inside the lock */
	bool is_stopping;   /* the threads must end; changed inside the lock */
	int ended_fd;       /* eventfd, written when a link of any lane has ended */
	struct event *ended;
	unsigned running_count; /* used by the loop only */
	unsigned count;
	struct lane *lanes[THREADS_MAX];
};

/* --- called by the loop --- */

void daemon_lock(struct daemon *daemon)
{
	struct lanes *lanes = daemon->lanes;

	if (!lanes_are_running(daemon))
		return;
	pthread_rwlock_wrlock(&lanes->lock);
	assert(!lanes->loop_has_lock);
	lanes->loop_has_lock = true;
}

void daemon_unlock(struct daemon *daemon)
{
	struct lanes *lanes = daemon->lanes;

	if (!lanes_are_running(daemon))
		return;
	assert(lanes->loop_has_lock);
	lanes->loop_has_lock = false;
	pthread_rwlock_unlock(&lanes->lock);
}

bool daemon_has_lock(const struct daemon *daemon)
{
	return !lanes_are_running(daemon) || daemon->lanes->loop_has_lock;
}

struct lane *daemon_get_lane(struct daemon *daemon, unsigned index)
{
	if (index == 0)
		return &daemon->loop_lane;
	return daemon->lanes && index <= daemon->lanes->count ? daemon->lanes->lanes[index - 1]
	                                                      : NULL;
}

struct traffic daemon_sum_traffic(struct daemon *daemon)
{
	struct traffic sum = { 0 };
	const struct lane *lane;

	for (unsigned i = 0; (lane = daemon_get_lane(daemon, i)); i++) {
		sum.received_bytes += lane->traffic.received_bytes;
		sum.acknowledged_chains += lane->traffic.acknowledged_chains;
	}
	return sum;
}

uint64_t daemon_spin_count(struct daemon *daemon)
{
	uint64_t sum = 0;
	const struct lane *lane;

	for (unsigned i = 0; (lane = daemon_get_lane(daemon, i)); i++)
		sum += lane->spin_count - 1;
	return sum;
}

uint64_t daemon_last_data_ns(struct daemon *daemon)
{
	uint64_t last = 0;
	const struct lane *lane;

	for (unsigned i = 0; (lane = daemon_get_lane(daemon, i)); i++)
		last = lane->last_data_ns > last ? lane->last_data_ns : last;
	return last;
}

bool lanes_are_running(const struct daemon *daemon)
{
	return daemon->lanes && daemon->lanes->running_count > 0;
}

struct lane *lanes_least_loaded(struct daemon *daemon)
{
	struct lane *pick = NULL, *lane;

	if (!lanes_are_running(daemon))
		return NULL;
	for (unsigned i = 1; (lane = daemon_get_lane(daemon, i)); i++)
		if (!pick || lane->count < pick->count)
			pick = lane;
	return pick;
}

static void signal_eventfd(int fd)
{
	const uint64_t one = 1;

	/* The write fails only if the counter would exceed 2^64 - 2. */
	(void)!write(fd, &one, sizeof(one));
}

static void drain_eventfd(int fd)
{
	uint64_t times;

	(void)!read(fd, &times, sizeof(times));
}

void lane_wake(const struct lane *lane)
{
	signal_eventfd(lane->wake_fd);
}

static void on_link_ended(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;

	(void)what;
	drain_eventfd(fd);
	daemon_lock(daemon);
	data_links_close_ended(daemon);
	daemon_unlock(daemon);
}

/* --- a lane's thread --- */

static void lane_read_lock(const struct lane *lane)
{
	pthread_rwlock_rdlock(&lane->daemon->lanes->lock);
}

static void lane_read_unlock(const struct lane *lane)
{
	pthread_rwlock_unlock(&lane->daemon->lanes->lock);
}

void lane_report_ended(const struct lane *lane)
{
	signal_eventfd(lane->daemon->lanes->ended_fd);
}

/* Releases the lock for a moment, so that the loop can take it. Returns false if the loop has taken
 * links from the lane; pointers to links are then invalid. */
static bool let_loop_take_links(const struct lane *lane)
{
	lane_read_unlock(lane);
	lane_read_lock(lane);
	return lane->links_taken == lane->links_taken_seen;
}

/* Serves the links that have decrypted bytes. Call inside the lock. */
static void serve_links_with_pending_bytes(struct lane *lane)
{
	lane->has_unreported_bytes = false;
	for (struct data_link *link = lane->links; link; link = data_link_next(link)) {
		if (!data_link_has_pending(link))
			continue;
		data_link_serve(link);
		if (!let_loop_take_links(lane)) {
			lane->has_unreported_bytes = true;
			return;
		}
	}
}

/* A copy of the lane's state, for its thread to use outside of the lock. */
struct lane_state {
	bool has_pending, moved, is_stopping;
};

/* Reads and resets the state of the lane. Call inside the lock. */
static struct lane_state take_lane_state(struct lane *lane)
{
	struct lane_state lane_state = { lane->has_unreported_bytes, lane->has_new_data,
		                         lane->daemon->lanes->is_stopping };

	lane->has_new_data = false;
	return lane_state;
}

/* Polls the lane and serves the links with events. An event may be of a link that was closed before
 * the lock was taken. In that case all events are ignored, and the next poll reports those of other
 * links again. */
static struct lane_state wait_and_serve_links(struct lane *lane, bool wait)
{
	struct epoll_event events[EVENTS];
	int count = epoll_wait(lane->epoll_fd, events, EVENTS, wait ? -1 : 0);
	struct lane_state lane_state;

	lane_read_lock(lane);
	if (lane->links_taken != lane->links_taken_seen)
		count = 0;
	lane->links_taken_seen = lane->links_taken;
	for (int i = 0; i < count; i++) {
		if (!events[i].data.ptr) {
			drain_eventfd(lane->wake_fd);
			continue;
		}
		data_link_serve(events[i].data.ptr);
		if (!let_loop_take_links(lane))
			break;
	}
	lane->links_taken_seen = lane->links_taken;
	if (lane->has_unreported_bytes)
		serve_links_with_pending_bytes(lane);
	lane->links_taken_seen = lane->links_taken;
	lane_state = take_lane_state(lane);
	lane_read_unlock(lane);
	return lane_state;
}

/* Serves the links that moved since the lane last slept, without polling. */
static bool serve_moved_links(struct lane *lane)
{
	bool moved = false;

	lane_read_lock(lane);
	lane->links_taken_seen = lane->links_taken;
	for (struct data_link *link = lane->links; link; link = data_link_next(link)) {
		if (!data_link_moved(link))
			continue;
		moved |= data_link_serve(link);
		if (!let_loop_take_links(lane))
			break;
	}
	lane->links_taken_seen = lane->links_taken;
	lane_read_unlock(lane);
	return moved;
}

/* Serves links until none has moved for spin_ns. */
static struct lane_state serve_links_while_busy(struct lane *lane)
{
	const uint64_t spin_ns = lane->daemon->spin_ns;
	uint64_t now = daemon_now_ns(), until = now + spin_ns;
	struct lane_state lane_state = { 0 };

	for (unsigned round = 1; !lane_state.is_stopping; round++) {
		if (round % POLL_ROUNDS == 0)
			lane_state = wait_and_serve_links(lane, false);
		now = daemon_now_ns();
		if (serve_moved_links(lane))
			until = now + spin_ns;
		else if (now >= until)
			break;
	}
	lane_read_lock(lane);
	lane->spin_count++;
	lane_state = take_lane_state(lane);
	lane_read_unlock(lane);
	return lane_state;
}

static void *lane_thread(void *arg)
{
	struct lane *lane = arg;
	struct lane_state lane_state = { 0 };

	while (!lane_state.is_stopping) {
		lane_state = wait_and_serve_links(lane, !lane_state.has_pending);
		if (lane_state.moved && lane->daemon->spin_ns > 0)
			lane_state = serve_links_while_busy(lane);
	}
	return NULL;
}

/* --- starting and stopping --- */

static void free_lane(struct lane *lane)
{
	if (lane->epoll_fd >= 0)
		close(lane->epoll_fd);
	if (lane->wake_fd >= 0)
		close(lane->wake_fd);
	free(lane->buffer);
	free(lane);
}

static struct lane *start_lane(struct daemon *daemon)
{
	struct lane *lane = calloc(1, sizeof(*lane));
	struct epoll_event event = { .events = EPOLLIN };

	if (!lane)
		return NULL;
	lane->daemon = daemon;
	lane->spin_count = 1;
	lane->buffer = data_buffer();
	lane->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	lane->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (lane->buffer && lane->epoll_fd >= 0 && lane->wake_fd >= 0 &&
	    epoll_ctl(lane->epoll_fd, EPOLL_CTL_ADD, lane->wake_fd, &event) == 0 &&
	    thread_start(&lane->thread, lane_thread, lane) == 0)
		return lane;
	free_lane(lane);
	return NULL;
}

/* Makes a lock that prefers writers: with the default kind, readers could keep the writer out
 * forever. */
static int make_rwlock(pthread_rwlock_t *made)
{
	pthread_rwlockattr_t attributes;
	int error = pthread_rwlockattr_init(&attributes);

	if (error)
		return error;
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	error = pthread_rwlock_init(made, &attributes);
	pthread_rwlockattr_destroy(&attributes);
	return error;
}

static struct lanes *make_lanes(struct daemon *daemon)
{
	struct lanes *lanes = calloc(1, sizeof(*lanes));

	if (!lanes)
		return NULL;
	if (make_rwlock(&lanes->lock)) {
		free(lanes);
		return NULL;
	}
	lanes->ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (lanes->ended_fd >= 0)
		lanes->ended = event_new(daemon->base, lanes->ended_fd, EV_READ | EV_PERSIST,
		                         on_link_ended, daemon);
	return lanes;
}

int lanes_open(struct daemon *daemon, unsigned threads)
{
	struct lanes *lanes;

	assert(!daemon->lanes);
	if (threads < 2)
		return 0;
	lanes = make_lanes(daemon);
	if (!lanes)
		return -1;
	daemon->lanes = lanes;
	if (!lanes->ended || event_priority_set(lanes->ended, PRIORITY_OWNERS) < 0 ||
	    event_add(lanes->ended, NULL) < 0) {
		lanes_close(daemon);
		return -1;
	}
	while (lanes->count < threads && lanes->count < THREADS_MAX) {
		struct lane *lane = start_lane(daemon);

		if (!lane)
			break;
		lanes->lanes[lanes->count++] = lane;
	}
	lanes->running_count = lanes->count;
	if (lanes->count < threads)
		log_event(LOG_LEVEL_WARNING, "few-threads", NULL,
		          "%u threads carry data, not %u: this host gives no more", lanes->count,
		          threads);
	return 0;
}

void lanes_stop(struct daemon *daemon)
{
	struct lanes *lanes = daemon->lanes;

	if (!lanes_are_running(daemon))
		return;
	daemon_lock(daemon);
	lanes->is_stopping = true;
	daemon_unlock(daemon);
	for (unsigned i = 0; i < lanes->count; i++) {
		lane_wake(lanes->lanes[i]);
		pthread_join(lanes->lanes[i]->thread, NULL);
	}
	lanes->running_count = 0;
}

void lanes_close(struct daemon *daemon)
{
	struct lanes *lanes = daemon->lanes;

	if (!lanes)
		return;
	lanes_stop(daemon);
	for (unsigned i = 0; i < lanes->count; i++)
		free_lane(lanes->lanes[i]);
	if (lanes->ended)
		event_free(lanes->ended);
	if (lanes->ended_fd >= 0)
		close(lanes->ended_fd);
	pthread_rwlock_destroy(&lanes->lock);
	free(lanes);
	daemon->lanes = NULL;
}
