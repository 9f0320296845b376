/*
 * pager_uffd.c - the real pager (struct ps_pager_ops), by userfaultfd(2), for every fabric. Missing
 * pages become zeros when the last descriptor of the userfaultfd is closed, so there are two. The
 * lanes have one in a table of their own, which no closefrom() of the application can close. The
 * application's table has the other: in a killed process the lanes may end while another thread is
 * still in a system call. The lanes must never wait for a thread that waits for a page.
 */
#include "../../proto/base/large_page.h"
#include "../core/env.h"
#include "../host/page_calls.h"
#include "../host/socket.h"
#include "descriptor_table.h"
#include "pages.h"
#include "direct_reader.h"
#include "fetch_connection.h"
#include "tunnel.h"
#include "../../proto/base/standard_streams.h"
#include "../core/cancel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	GRANULE = PS_REACH_PIECE,
	BLOCK = PS_REACH_BLOCK,
	LATE_MS = 20,
	TICK_MS = 100, /* longest sleep: the application may have closed the descriptor of wake() */
	EVENTS = 16,
	KEPT = PS_SLEEPERS + PS_LANES + 1,
};

static_assert(BLOCK == PS_LARGE_PAGE, "a run is one large page");
static_assert(GRANULE / PS_PAGE <= UINT8_MAX, "so many pages can be here of a granule");

/* Some kernel headers lack these (Linux 5.18, 6.6 and 6.8). */
#define DONTNEED_LOCKED 24
#define FEATURE_POISON ((uint64_t)1 << 14)
#define FEATURE_MOVE ((uint64_t)1 << 16)

/* A lane's thread, and the thread for the TLS of its connections. */
struct lane {
	pthread_t thread, tunneller;
	bool begun, tunnels; /* the threads were created, and must be joined */
	int wake_fd;
	struct ps_tunnel *tunnel; /* NULL: connections are plain text */
};

struct ps_pager {
	struct ps_env *env;
	void (*fns[PS_LANES])(void *arg);
	void *arg;
	struct lane lanes[PS_LANES];
	sem_t begun, bulk_begun;
	struct ps_error error; /* why the pager did not begin; code 0: it began */
	int uffd;
	int pages;      /* the fault lane's: for ps_pages_are_large; -1: none */
	bool user_only; /* the userfaultfd reports no faults of the kernel itself */
	bool moves;     /* pages can be moved into missing memory */
	bool watches;   /* the kernel can track stores to pages that were filled */
	struct uffd_msg events[EVENTS];
	unsigned event_count, event_at;
	uint8_t *page; /* room for an answer whose length is no multiple of a page */
	struct ps_fetch_connection reaches[PS_SOURCES];
	struct ps_direct_reader peekers[PS_SOURCES];
	/* Threads that read mirrors through links for the bulk lane. */
	pthread_t direct_read_threads[PS_MIRRORS_MAX];
	bool has_direct_reader[PS_MIRRORS_MAX];
	pthread_t hirer; /* creates these threads, so that they share the lanes' descriptors */
	bool hires, ending;
	sem_t order, hire_done;
	unsigned ordered; /* the mirror whose thread the hirer must create */
};

#define NO_DESCRIPTORS "the threads that fetch memory got no descriptors of their own"

static void set_failure(struct ps_pager *pager, const char *what, int error)
{
	ps_error_set(&pager->error, PERSEAS_ESYSTEM, "%s (%s)", what, strerror(error));
}

/* --- the means of the kernel --- */

/* Gives the calling thread a table with only the descriptors that the lanes need. */
static bool unshare_descriptor_table(struct ps_pager *pager)
{
	int kept[KEPT] = { pager->lanes[PS_FAULT_LANE].wake_fd, pager->lanes[PS_BULK_LANE].wake_fd,
		           pager->uffd };

	memcpy(kept + PS_LANES + 1, pager->env->wake_fds, sizeof(pager->env->wake_fds));
	return ps_unshare_descriptor_table(kept, KEPT);
}

static bool open_uffd(struct ps_pager *pager)
{
	static const uint64_t more[] = { FEATURE_MOVE | PS_UFFD_WP_ASYNC, PS_UFFD_WP_ASYNC,
		                         FEATURE_MOVE, 0 };
	const long page = sysconf(_SC_PAGESIZE);
	bool agreed = false;

	if (page != PS_PAGE) {
		ps_error_set(&pager->error, PERSEAS_ESYSTEM,
		             "this kernel's pages have %ld bytes, and memory comes in pages of %d",
		             page, PS_PAGE);
		return false;
	}
	pager->uffd = ps_above_standard((int)syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK));
	if (pager->uffd < 0) {
		pager->user_only = true;
		pager->uffd = ps_above_standard(
			(int)syscall(__NR_userfaultfd,
		                     O_CLOEXEC | O_NONBLOCK | PS_UFFD_USER_MODE_ONLY));
	}
	if (pager->uffd < 0) {
		set_failure(pager, "this process may not use userfaultfd(2)", errno);
		return false;
	}
	for (unsigned i = 0; !agreed && i < sizeof(more) / sizeof(more[0]); i++) {
		struct uffdio_api api = { .api = UFFD_API, .features = FEATURE_POISON | more[i] };

		agreed = !ioctl(pager->uffd, UFFDIO_API, &api);
		pager->moves = more[i] & FEATURE_MOVE;
		pager->watches = more[i] & PS_UFFD_WP_ASYNC;
	}
	if (!agreed) {
		set_failure(pager, "this kernel cannot refuse missing memory: it takes Linux 6.6",
		            errno);
		return false;
	}
	return true;
}

static int create_thread(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
	sigset_t all, before;
	int error;

	/* Signals of the application must reach its own threads only. */
	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

/* Creates reader threads when uffd_start_direct_reader asks for one. A thread gets its creator's
 * table of descriptors: with the keeper's, the lanes' numbers might be other files. */
static void *run_thread_starter(void *arg)
{
	struct ps_pager *pager = arg;

	for (;;) {
		while (sem_wait(&pager->order))
			;
		if (pager->ending)
			return NULL;
		pager->has_direct_reader[pager->ordered] = !create_thread(
			&pager->direct_read_threads[pager->ordered], ps_direct_reader_run,
			&pager->peekers[ps_source_number(PS_BULK_LANE, pager->ordered)]);
		sem_post(&pager->hire_done);
	}
}

/* Begins the lane's tunnel, if it has one, while no memory is missing: creating a thread may wait
 * for malloc. Returns false with errno set on failure. */
static bool begin_tunnel(struct lane *lane)
{
	if (!lane->tunnel)
		return true;
	if (ps_tunnel_open(lane->tunnel))
		return false;
	errno = create_thread(&lane->tunneller, ps_tunnel_run, lane->tunnel);
	lane->tunnels = !errno;
	return lane->tunnels;
}

static void run_lane(struct ps_pager *pager, enum ps_lane lane)
{
	pager->fns[lane](pager->arg);
	if (pager->lanes[lane].tunnel)
		ps_tunnel_quit(pager->lanes[lane].tunnel);
}

/* Runs the bulk lane, at ordinary priority: with a lower one memory comes later on busy processors,
 * and the application waits for more page faults. */
static void *run_bulk(void *arg)
{
	struct ps_pager *pager = arg;
	const bool ready = begin_tunnel(&pager->lanes[PS_BULK_LANE]);

	if (!ready)
		set_failure(pager, NO_DESCRIPTORS, errno);
	pager->hires = ready && !create_thread(&pager->hirer, run_thread_starter, pager);
	sem_post(&pager->bulk_begun);
	if (ready)
		run_lane(pager, PS_BULK_LANE);
	return NULL;
}

static void *run_faults(void *arg)
{
	struct ps_pager *pager = arg;
	struct lane *bulk = &pager->lanes[PS_BULK_LANE];
	bool ready;

	if (!unshare_descriptor_table(pager) || !begin_tunnel(&pager->lanes[PS_FAULT_LANE]) ||
	    (errno = create_thread(&bulk->thread, run_bulk, pager)))
		set_failure(pager, NO_DESCRIPTORS, errno);
	else
		bulk->begun = true;
	while (bulk->begun && sem_wait(&pager->bulk_begun))
		;
	ready = !pager->error.code;
	pager->pages = ready && pager->moves ? ps_pages_open() : -1;
	sem_post(&pager->begun);
	if (ready)
		run_lane(pager, PS_FAULT_LANE);
	else if (pager->lanes[PS_FAULT_LANE].tunnels)
		ps_tunnel_quit(pager->lanes[PS_FAULT_LANE].tunnel);
	/* The table of descriptors ends with its last thread. No memory is covered any more. */
	return NULL;
}

/* --- life --- */

static void lane_free(struct lane *lane)
{
	if (lane->wake_fd >= 0)
		close(lane->wake_fd);
	ps_tunnel_free(lane->tunnel);
}

static void pager_free(struct ps_pager *pager)
{
	for (unsigned i = 0; i < PS_SOURCES; i++) {
		ps_direct_reader_free(&pager->peekers[i]);
		ps_fetch_connection_free(&pager->reaches[i]);
	}
	for (unsigned i = 0; i < PS_LANES; i++)
		lane_free(&pager->lanes[i]);
	if (pager->uffd >= 0)
		close(pager->uffd);
	sem_destroy(&pager->begun);
	sem_destroy(&pager->bulk_begun);
	sem_destroy(&pager->order);
	sem_destroy(&pager->hire_done);
	free(pager->page);
	free(pager);
}

static void uffd_wake(struct ps_pager *pager, enum ps_lane lane)
{
	PS_UNCANCELLED;
	const uint64_t one = 1;

	(void)!write(pager->lanes[lane].wake_fd, &one, sizeof(one));
}

static void wake_by_direct_reader(void *arg)
{
	uffd_wake(arg, PS_BULK_LANE);
}

static bool lane_init_descriptors(struct lane *lane, struct ps_env *env)
{
	lane->tunnel = env->tls ? ps_tunnel_new(env->tls) : NULL;
	lane->wake_fd = ps_above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	return lane->wake_fd >= 0 && (lane->tunnel || !env->tls);
}

static struct ps_pager *pager_new(struct ps_env *env, struct ps_error *error)
{
	struct ps_pager *pager = calloc(1, sizeof(*pager));
	bool all = true;

	if (!pager)
		return NULL;
	sem_init(&pager->begun, 0, 0);
	sem_init(&pager->bulk_begun, 0, 0);
	sem_init(&pager->order, 0, 0);
	sem_init(&pager->hire_done, 0, 0);
	pager->env = env;
	pager->uffd = pager->pages = -1;
	pager->page = malloc(BLOCK);
	for (unsigned i = 0; i < PS_LANES; i++)
		all &= lane_init_descriptors(&pager->lanes[i], env);
	for (unsigned i = 0; i < PS_SOURCES; i++) {
		all &= ps_fetch_connection_init(&pager->reaches[i]);
		pager->reaches[i].tunnel = pager->lanes[ps_source_lane(i)].tunnel;
		ps_direct_reader_init(&pager->peekers[i], wake_by_direct_reader, pager);
	}
	if (all && pager->page)
		return pager;
	ps_error_set(error, PERSEAS_ESYSTEM,
	             "no memory or no descriptor for the threads that fetch memory");
	pager_free(pager);
	return NULL;
}

/* Waits until every thread of the pager has ended, and tells those to end that would not. */
static void join_all_threads(struct ps_pager *pager)
{
	for (unsigned i = 0; i < PS_LANES; i++)
		if (pager->lanes[i].begun)
			pthread_join(pager->lanes[i].thread, NULL);
	for (unsigned i = 0; i < PS_LANES; i++)
		if (pager->lanes[i].tunnels)
			pthread_join(pager->lanes[i].tunneller, NULL);
	if (pager->hires) {
		pager->ending = true;
		sem_post(&pager->order);
		pthread_join(pager->hirer, NULL);
	}
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++) {
		if (!pager->has_direct_reader[i])
			continue;
		ps_direct_reader_quit(&pager->peekers[ps_source_number(PS_BULK_LANE, i)]);
		pthread_join(pager->direct_read_threads[i], NULL);
	}
}

static void uffd_end(struct ps_pager *pager)
{
	join_all_threads(pager);
	pager_free(pager);
}

static struct ps_pager *uffd_begin(struct ps_env *env, void (*const lanes[PS_LANES])(void *arg),
                                   void *arg, struct ps_error *error)
{
	struct ps_pager *pager = pager_new(env, error);
	struct lane *first;

	if (!pager)
		return NULL;
	memcpy(pager->fns, lanes, sizeof(pager->fns));
	pager->arg = arg;
	first = &pager->lanes[PS_FAULT_LANE];
	if (open_uffd(pager)) {
		first->begun = !create_thread(&first->thread, run_faults, pager);
		if (!first->begun)
			ps_error_set(&pager->error, PERSEAS_ESYSTEM,
			             "the threads that fetch memory did not start");
	}
	while (first->begun && sem_wait(&pager->begun))
		;
	if (!pager->error.code)
		return pager;
	*error = pager->error;
	uffd_end(pager);
	return NULL;
}

static int uffd_start_direct_reader(struct ps_pager *pager, unsigned mirror)
{
	if (!pager->hires)
		return -1;
	pager->ordered = mirror;
	sem_post(&pager->order);
	while (sem_wait(&pager->hire_done))
		;
	return pager->has_direct_reader[mirror] ? 0 : -1;
}

static const char *uffd_limitation_text(const struct ps_pager *pager)
{
	return pager->user_only
	               ? "system calls that are given missing memory fail with EFAULT, since this "
	                 "process may not handle faults of the kernel: give it CAP_SYS_PTRACE, or "
	                 "set vm.unprivileged_userfaultfd=1"
	               : NULL;
}

static int uffd_look_up(struct ps_pager *pager, const struct ps_address *address,
                        struct ps_known_addresses *way, struct ps_error *error)
{
	struct ps_dial dial;
	int rc = ps_dial_begin_known(&dial, address, error);

	(void)pager;
	if (rc)
		return rc;
	memset(way, 0, sizeof(*way));
	way->address = *address;
	for (; way->count < dial.list.count && way->count < PS_WAYS_MAX; way->count++) {
		static_assert(sizeof(way->to[0]) == sizeof(dial.list.to[0]), "any address");
		memcpy(way->to[way->count], &dial.list.to[way->count], sizeof(way->to[0]));
		way->lengths[way->count] = dial.list.len[way->count];
	}
	ps_dial_end(&dial);
	return 0;
}

/* --- memory --- */

static uint64_t round_to_pages(uint64_t length)
{
	return (length + PS_PAGE - 1) & ~(uint64_t)(PS_PAGE - 1);
}

static struct uffdio_range range_of(const uint8_t *at, uint64_t length)
{
	return (struct uffdio_range){ (uint64_t)(uintptr_t)at, round_to_pages(length) };
}

static bool uffd_can_track_stores(const struct ps_pager *pager)
{
	return pager->watches;
}

static int uffd_cover(struct ps_pager *pager, uint8_t *base, uint64_t size, bool watch)
{
	struct uffdio_register covered = { .range = range_of(base, size),
		                           .mode = UFFDIO_REGISTER_MODE_MISSING };

	if (watch)
		covered.mode |= UFFDIO_REGISTER_MODE_WP;
	if (ioctl(pager->uffd, UFFDIO_REGISTER, &covered))
		return -1;
	/* Pages that are there already (locked, or touched before) are zeros, and would count as
	 * fetched. */
	if (!madvise(base, covered.range.len, DONTNEED_LOCKED))
		return 0;
	(void)ioctl(pager->uffd, UFFDIO_UNREGISTER, &covered.range);
	return -1;
}

static bool uffd_fault(struct ps_pager *pager, uint64_t *address)
{
	ssize_t n;

	if (pager->event_at == pager->event_count) {
		pager->event_at = pager->event_count = 0;
		n = read(pager->uffd, pager->events, sizeof(pager->events));
		if (n <= 0)
			return false;
		pager->event_count = (unsigned)((size_t)n / sizeof(pager->events[0]));
	}
	*address = pager->events[pager->event_at++].arg.pagefault.address;
	return true;
}

/* Moved pages are not write-protected, and would count as written. */
static bool uffd_can_move(const struct ps_pager *pager, const uint8_t *to, uint32_t length,
                          bool watched)
{
	return pager->moves && !watched && length == BLOCK && (uintptr_t)to % BLOCK == 0;
}

static uint32_t uffd_fill(struct ps_pager *pager, uint8_t *to, const uint8_t *bytes,
                          uint32_t length, bool watched)
{
	const uint64_t whole = round_to_pages(length);
	uint64_t done = 0;

	if (uffd_can_move(pager, to, length, watched))
		done = ps_pages_move(pager->uffd, to, bytes, BLOCK);
	if (done == BLOCK)
		return length;
	if (whole != length) {
		memcpy(pager->page, bytes, length);
		memset(pager->page + length, 0, whole - length);
		bytes = pager->page;
	}
	done += ps_pages_copy(pager->uffd, to + done, bytes + done, whole - done, watched);
	return done < length ? (uint32_t)done : length;
}

static bool uffd_is_large(struct ps_pager *pager, const uint8_t *at, uint64_t length)
{
	return ps_pages_are_large(pager->pages, at, length);
}

static bool uffd_collapse(struct ps_pager *pager, uint8_t *base, uint64_t size)
{
	(void)pager;
	return !madvise(base, size, PS_MADV_COLLAPSE) || errno != EAGAIN;
}

static void uffd_poison(struct ps_pager *pager, uint8_t *at, uint32_t length)
{
	ps_pages_poison(pager->uffd, at, round_to_pages(length), pager->watches);
}

/* --- mirrors --- */

static void uffd_set_source_address(struct ps_pager *pager, unsigned which,
                                    const struct ps_known_addresses *way)
{
	ps_direct_reader_cancel(&pager->peekers[which]);
	ps_fetch_connection_set_addresses(&pager->reaches[which], way);
}

static void uffd_drop(struct ps_pager *pager, unsigned which)
{
	ps_direct_reader_cancel(&pager->peekers[which]);
	ps_fetch_connection_cancel(&pager->reaches[which]);
}

static bool uffd_is_still_reading(struct ps_pager *pager, unsigned which)
{
	return ps_direct_reader_is_still_reading(&pager->peekers[which]);
}

static bool uffd_ask(struct ps_pager *pager, unsigned which, const struct ps_fetch_request *fetch)
{
	if (!fetch->direct_link.fabric)
		return ps_fetch_connection_ask(&pager->reaches[which], fetch);
	ps_direct_reader_begin(&pager->peekers[which], fetch,
	                       ps_fetch_connection_answer_buffer(&pager->reaches[which],
	                                                         fetch->length),
	                       ps_source_lane(which) == PS_FAULT_LANE ? fetch->length : GRANULE);
	return true;
}

static int uffd_answer(struct ps_pager *pager, unsigned which, struct ps_fetch_answer *fetched)
{
	if (pager->peekers[which].has_request)
		return ps_direct_reader_poll(&pager->peekers[which], fetched);
	return ps_fetch_connection_poll(&pager->reaches[which], fetched);
}

static uint64_t uffd_received_bytes(struct ps_pager *pager, unsigned which)
{
	return pager->peekers[which].has_request
	               ? 0
	               : ps_fetch_connection_received_bytes(&pager->reaches[which]);
}

static void uffd_sleep(struct ps_pager *pager, enum ps_lane lane, uint64_t until_ns)
{
	const uint64_t tick = ps_monotonic() + (uint64_t)TICK_MS * 1000000;
	const int wake_fd = pager->lanes[lane].wake_fd;
	struct pollfd fds[PS_MIRRORS_MAX + 2] = { { wake_fd, POLLIN, 0 },
		                                  { pager->uffd, POLLIN, 0 } };
	unsigned count = lane == PS_FAULT_LANE ? 2 : 1;
	uint64_t drained;

	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
		count += ps_fetch_connection_fill_pollfd(&pager->reaches[ps_source_number(lane, i)],
		                                         &fds[count]);
	ps_poll(fds, count, until_ns < tick ? until_ns : tick);
	if (fds[0].revents)
		(void)!read(wake_fd, &drained, sizeof(drained));
}

const struct ps_pager_ops ps_pager_uffd = {
	.granule = GRANULE,
	.page = PS_PAGE,
	.run = BLOCK / GRANULE,
	.second_request_after_ns = LATE_MS * (uint64_t)1000000,
	.begin = uffd_begin,
	.end = uffd_end,
	.limitation_text = uffd_limitation_text,
	.wake = uffd_wake,
	.look_up = uffd_look_up,
	.start_direct_reader = uffd_start_direct_reader,
	.can_track_stores = uffd_can_track_stores,
	.cover = uffd_cover,
	.fault = uffd_fault,
	.fill = uffd_fill,
	.can_move = uffd_can_move,
	.is_large = uffd_is_large,
	.collapse = uffd_collapse,
	.poison = uffd_poison,
	.set_source_address = uffd_set_source_address,
	.drop = uffd_drop,
	.is_still_reading = uffd_is_still_reading,
	.ask = uffd_ask,
	.answer = uffd_answer,
	.received_bytes = uffd_received_bytes,
	.sleep = uffd_sleep,
};
