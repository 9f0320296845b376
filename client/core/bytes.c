/*
 * bytes.c - copies of many bytes, where memcpy is not the fastest way.
 */
#include "bytes.h"
#include "cancel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

enum {
	PAGE = 4096,
	STEP = 64, /* bytes copied at once */
	/* A long memcpy is slow if its target lies up to this many bytes behind its source, modulo
	 * a page. */
	ALIASING_DISTANCE = 32,
	ALIASING_MIN = 1024, /* shorter copies are not slowed down by that */
	GLIBC_UNCACHED_MIN =
		0x4040,         /* below this length, glibc's memcpy never bypasses the caches */
	THREADS_MAX = 4,        /* maximum number of threads for one copy */
	THREAD_BYTES = 2 << 20, /* a thread copies at least this many bytes */
};

/* 16 bytes at any address. */
typedef uint64_t lane __attribute__((vector_size(16), aligned(1), may_alias));

static void copy_descending(uint8_t *to, const uint8_t *from, size_t len)
{
	while (len >= STEP) {
		lane parts[STEP / sizeof(lane)];

		len -= STEP;
		for (unsigned i = 0; i < STEP / sizeof(lane); i++)
			parts[i] = ((const lane *)(const void *)(from + len))[i];
		for (unsigned i = 0; i < STEP / sizeof(lane); i++)
			((lane *)(void *)(to + len))[i] = parts[i];
	}
	ps_copy_short(to, from, len);
}

/* Processors match loads with pending stores by their offset in the page. If the copy lies a few
 * bytes behind its source, modulo a page, each load of an ascending copy seems to depend on the
 * store just before it, and waits: some copies take ten times as long. A descending copy has no
 * such loads. */
void ps_copy_long(void *to, const void *from, size_t len)
{
	size_t behind = ((uintptr_t)to - (uintptr_t)from) % PAGE;

	if (len >= ALIASING_MIN && behind > 0 && behind < ALIASING_DISTANCE)
		copy_descending(to, from, len);
	else
		memcpy(to, from, len);
}

#if defined(__x86_64__)
/* Copies past the caches, so that the target's cache lines need not be fetched before they are
 * written. */
static void copy_around_caches(uint8_t *to, const uint8_t *from, size_t len)
{
	for (size_t at = 0; at < len; at += STEP) {
		const __m128i *source = (const void *)(from + at);
		__m128i *target = (void *)(to + at);
		__m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
		__m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);

		_mm_stream_si128(target, a);
		_mm_stream_si128(target + 1, b);
		_mm_stream_si128(target + 2, c);
		_mm_stream_si128(target + 3, d);
	}
}

/* Stores that bypass the caches are not ordered with others: they pass earlier stores that wait for
 * their line, and later stores pass them. The C library puts a fence only after its own. */
void ps_copy_uncached(void *to_bytes, const void *from_bytes, size_t len)
{
	const uint8_t *from = from_bytes;
	uint8_t *to = to_bytes;
	size_t head = -(uintptr_t)to % STEP, body;

	if (len >= GLIBC_UNCACHED_MIN)
		_mm_sfence();
	if (len < PS_COPY_UNCACHED_MIN) {
		ps_copy(to, from, len);
		return;
	}
	body = (len - head) / STEP * STEP;
	ps_copy_short(to, from, head);
	copy_around_caches(to + head, from + head, body);
	ps_copy_short(to + head + body, from + head + body, len - head - body);
	_mm_sfence();
}
#else
void ps_copy_uncached(void *to, const void *from, size_t len)
{
	ps_copy(to, from, len);
}
#endif

struct part {
	pthread_t thread;
	uint8_t *to;
	const uint8_t *from;
	size_t len;
	bool started;
};

static void *run_copy_thread(void *arg)
{
	struct part *part = arg;

	memcpy(part->to, part->from, part->len);
	return NULL;
}

/* Starts a thread that blocks the application's signals, except SIGBUS: the bytes copied may be a
 * mirror's memory (proto/image/sigbus_guard.h). */
static bool start_copy_thread(struct part *part)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&part->thread, NULL, run_copy_thread, part);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error == 0;
}

static unsigned choose_copy_thread_count(size_t len)
{
	size_t most = len / THREAD_BYTES < THREADS_MAX ? len / THREAD_BYTES : THREADS_MAX;
	cpu_set_t cpus;

	if (most < 2 || sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		return 1;
	return CPU_COUNT(&cpus) < (int)most ? (unsigned)CPU_COUNT(&cpus) : (unsigned)most;
}

void ps_copy_parallel(void *to, const void *from, size_t len)
{
	PS_UNCANCELLED;
	struct part parts[THREADS_MAX];
	unsigned count = choose_copy_thread_count(len);
	/* `each` is a multiple of a large page, so that two threads never write to the same one. */
	size_t each = len / count / THREAD_BYTES * THREAD_BYTES;

	for (unsigned i = 0; i < count; i++) {
		size_t at = i * each;

		parts[i] = (struct part){ .to = (uint8_t *)to + at,
			                  .from = (const uint8_t *)from + at,
			                  .len = i + 1 < count ? each : len - at };
		parts[i].started = i > 0 && start_copy_thread(&parts[i]);
	}
	for (unsigned i = 0; i < count; i++)
		if (!parts[i].started)
			run_copy_thread(&parts[i]);
	for (unsigned i = 0; i < count; i++)
		if (parts[i].started)
			pthread_join(parts[i].thread, NULL);
}
