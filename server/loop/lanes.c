/*
 * lanes.c - the threads of data connections, and the lock between them and the loop. Each polls its
 * connections, and serves one at a time inside the lock, through target_tcp.c. A thread must never
 * close a connection, call the log, or touch what is libevent's: all that is the loop's.
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
	EVENTS = 64,      /* that one poll gives */
	POLL_ROUNDS = 32, /* looks at the links that moved, for each poll of all */
};

struct lanes {
	pthread_rwlock_t lock;
	bool entered;  /* by the loop */
	bool stopping; /* written inside */
	int ended_fd;  /* an eventfd: a link of a lane has ended */
	struct event *ended;
	unsigned running; /* the loop's */
	unsigned count;
	struct lane *lanes[THREADS_MAX];
};

/* --- the loop's side --- */

void daemon_enter(struct daemon *daemon)
{
	struct lanes *lanes = daemon->lanes;

	if (!lanes_run(daemon))
		return;
	pthread_rwlock_wrlock(&lanes->lock);
	assert(!lanes->entered);
	lanes->entered = true;
}

void daemon_leave(struct daemon *daemon)
{
	struct lanes *lanes = daemon->lanes;

	if (!lanes_run(daemon))
		return;
	assert(lanes->entered);
	lanes->entered = false;
	pthread_rwlock_unlock(&lanes->lock);
}

bool daemon_is_inside(const struct daemon *daemon)
{
	return !lanes_run(daemon) || daemon->lanes->entered;
}

struct lane *daemon_lane(struct daemon *daemon, unsigned index)
{
	if (index == 0)
		return &daemon->lane;
	return daemon->lanes && index <= daemon->lanes->count ? daemon->lanes->lanes[index - 1]
	                                                      : NULL;
}

struct traffic daemon_traffic(struct daemon *daemon)
{
	struct traffic sum = { 0 };
	const struct lane *lane;

	for (unsigned i = 0; (lane = daemon_lane(daemon, i)); i++) {
		sum.bytes += lane->traffic.bytes;
		sum.chains += lane->traffic.chains;
	}
	return sum;
}

uint64_t daemon_spins(struct daemon *daemon)
{
	uint64_t sum = 0;
	const struct lane *lane;

	for (unsigned i = 0; (lane = daemon_lane(daemon, i)); i++)
		sum += lane->spins - 1;
	return sum;
}

uint64_t daemon_data_ns(struct daemon *daemon)
{
	uint64_t last = 0;
	const struct lane *lane;

	for (unsigned i = 0; (lane = daemon_lane(daemon, i)); i++)
		last = lane->data_ns > last ? lane->data_ns : last;
	return last;
}

bool lanes_run(const struct daemon *daemon)
{
	return daemon->lanes && daemon->lanes->running > 0;
}

struct lane *lanes_pick(struct daemon *daemon)
{
	struct lane *pick = NULL, *lane;

	if (!lanes_run(daemon))
		return NULL;
	for (unsigned i = 1; (lane = daemon_lane(daemon, i)); i++)
		if (!pick || lane->count < pick->count)
			pick = lane;
	return pick;
}

static void tell(int fd)
{
	const uint64_t one = 1;

	/* It fails only when 2^64 - 2 are unread. */
	(void)!write(fd, &one, sizeof(one));
}

static void hear(int fd)
{
	uint64_t times;

	(void)!read(fd, &times, sizeof(times));
}

void lane_wake(const struct lane *lane)
{
	tell(lane->wake);
}

static void on_ended(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;

	(void)what;
	hear(fd);
	daemon_enter(daemon);
	data_links_end(daemon);
	daemon_leave(daemon);
}

/* --- a lane's thread --- */

static void lock(const struct lane *lane)
{
	pthread_rwlock_rdlock(&lane->daemon->lanes->lock);
}

static void unlock(const struct lane *lane)
{
	pthread_rwlock_unlock(&lane->daemon->lanes->lock);
}

void lane_tell_ended(const struct lane *lane)
{
	tell(lane->daemon->lanes->ended_fd);
}

/* Lets the loop in. False: it has taken links from the lane, and pointers to them count no more. */
static bool let_in(const struct lane *lane)
{
	unlock(lane);
	lock(lane);
	return lane->changes == lane->seen;
}

/* Inside: the links that have decrypted bytes. */
static void serve_again(struct lane *lane)
{
	lane->again = false;
	for (struct data_link *link = lane->links; link; link = data_link_next(link)) {
		if (!data_link_again(link))
			continue;
		data_link_serve(link);
		if (!let_in(lane)) {
			lane->again = true;
			return;
		}
	}
}

/* What a thread has to know, outside of the lock, of how it goes on. */
struct look {
	bool again, moved, stopping;
};

/* Inside. */
static struct look look_at(struct lane *lane)
{
	struct look look = { lane->again, lane->moved, lane->daemon->lanes->stopping };

	lane->moved = false;
	return look;
}

/* Polls, and serves what has come. An event can be of a link that was closed before the lock was
 * taken: then none of them counts, and the next poll tells of the others again. */
static struct look serve(struct lane *lane, bool wait)
{
	struct epoll_event events[EVENTS];
	int count = epoll_wait(lane->epoll, events, EVENTS, wait ? -1 : 0);
	struct look look;

	lock(lane);
	if (lane->changes != lane->seen)
		count = 0;
	lane->seen = lane->changes;
	for (int i = 0; i < count; i++) {
		if (!events[i].data.ptr) {
			hear(lane->wake);
			continue;
		}
		data_link_serve(events[i].data.ptr);
		if (!let_in(lane))
			break;
	}
	lane->seen = lane->changes;
	if (lane->again)
		serve_again(lane);
	lane->seen = lane->changes;
	look = look_at(lane);
	unlock(lane);
	return look;
}

/* Looks at the links that moved since the lane last slept, without asking the kernel which. */
static bool spin_once(struct lane *lane)
{
	bool moved = false;

	lock(lane);
	lane->seen = lane->changes;
	for (struct data_link *link = lane->links; link; link = data_link_next(link)) {
		if (!data_link_moved(link))
			continue;
		moved |= data_link_serve(link);
		if (!let_in(lane))
			break;
	}
	lane->seen = lane->changes;
	unlock(lane);
	return moved;
}

/* Goes on until no link has moved for spin_ns. */
static struct look spin(struct lane *lane)
{
	const uint64_t spin_ns = lane->daemon->spin_ns;
	uint64_t now = daemon_now_ns(), until = now + spin_ns;
	struct look look = { 0 };

	for (unsigned round = 1; !look.stopping; round++) {
		if (round % POLL_ROUNDS == 0)
			look = serve(lane, false);
		now = daemon_now_ns();
		if (spin_once(lane))
			until = now + spin_ns;
		else if (now >= until)
			break;
	}
	lock(lane);
	lane->spins++;
	look = look_at(lane);
	unlock(lane);
	return look;
}

static void *lane_thread(void *arg)
{
	struct lane *lane = arg;
	struct look look = { 0 };

	while (!look.stopping) {
		look = serve(lane, !look.again);
		if (look.moved && lane->daemon->spin_ns > 0)
			look = spin(lane);
	}
	return NULL;
}

/* --- from start to end --- */

static void free_lane(struct lane *lane)
{
	if (lane->epoll >= 0)
		close(lane->epoll);
	if (lane->wake >= 0)
		close(lane->wake);
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
	lane->spins = 1;
	lane->buffer = data_buffer();
	lane->epoll = epoll_create1(EPOLL_CLOEXEC);
	lane->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (lane->buffer && lane->epoll >= 0 && lane->wake >= 0 &&
	    epoll_ctl(lane->epoll, EPOLL_CTL_ADD, lane->wake, &event) == 0 &&
	    thread_start(&lane->thread, lane_thread, lane) == 0)
		return lane;
	free_lane(lane);
	return NULL;
}

/* The usual kind would let readers keep the writer out for ever. */
static int make_lock(pthread_rwlock_t *made)
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
	if (make_lock(&lanes->lock)) {
		free(lanes);
		return NULL;
	}
	lanes->ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (lanes->ended_fd >= 0)
		lanes->ended = event_new(daemon->base, lanes->ended_fd, EV_READ | EV_PERSIST,
		                         on_ended, daemon);
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
	lanes->running = lanes->count;
	if (lanes->count < threads)
		log_event(LOG_LEVEL_WARNING, "few-threads", NULL,
		          "%u threads carry data, not %u: this host gives no more", lanes->count,
		          threads);
	return 0;
}

void lanes_stop(struct daemon *daemon)
{
	struct lanes *lanes = daemon->lanes;

	if (!lanes_run(daemon))
		return;
	daemon_enter(daemon);
	lanes->stopping = true;
	daemon_leave(daemon);
	for (unsigned i = 0; i < lanes->count; i++) {
		lane_wake(lanes->lanes[i]);
		pthread_join(lanes->lanes[i]->thread, NULL);
	}
	lanes->running = 0;
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
