/*
 * The stage of shared memory: files that stand for a mirror's. Its process takes no part; to be
 * looked at in the midst of a post, the sources are barred, and each fault is a moment to look.
 */
#include "contract_fabric.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { FILES = 3, EPOCH = 7 };

struct shm_stage {
	struct fabric_stage stage; /* first */
	int files[FILES];          /* log, promise, segment 0 */
	uint8_t *memory[FILES];
	struct stage_grant grant;
	struct sigaction before;
};

static const uint32_t ids[FILES] = { PS_REGION_LOG, PS_REGION_PROMISE, PS_REGION_SEGMENT };
static const uint64_t sizes[FILES] = { STAGE_LOG, PS_PAGE, STAGE_SEGMENT };

static struct shm_stage *of(struct fabric_stage *stage)
{
	return (struct shm_stage *)stage;
}

static struct ps_promise *promise(struct fabric_stage *stage)
{
	return (struct ps_promise *)(void *)of(stage)->memory[1];
}

static const Perseas__Grant *grant(struct fabric_stage *stage, int *fds, uint64_t *epoch)
{
	struct shm_stage *s = of(stage);

	promise(stage)->epoch = EPOCH;
	*epoch = EPOCH;
	for (unsigned i = 0; i < FILES; i++) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/self/fd/%d", s->files[i]);
		fds[i] = open(path, (i == 1 ? O_RDONLY : O_RDWR) | O_CLOEXEC);
		assert_true(fds[i] >= 0);
	}
	return &s->grant.grant;
}

static unsigned left(struct fabric_stage *stage)
{
	(void)stage;
	return stage_files() - FILES;
}

static uint8_t *memory(struct fabric_stage *stage, uint32_t region)
{
	return of(stage)->memory[region == PS_REGION_LOG ? 0 : 2];
}

static void cut(struct fabric_stage *stage)
{
	promise(stage)->epoch = PS_PROMISE_RETIRED;
}

static void fence(struct fabric_stage *stage)
{
	promise(stage)->epoch = EPOCH + 1;
}

/* --- a look at each first touch of a source --- */

static struct {
	struct shm_stage *stage;
	void (*look)(void *arg);
	void *arg;
} watched;

static void on_touch(int number, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr, ring = (uintptr_t)watched.stage->stage.ring;

	(void)number;
	(void)context;
	if (at < ring || at >= ring + STAGE_RING) {
		sigaction(SIGSEGV, &watched.stage->before, NULL);
		return;
	}
	watched.look(watched.arg);
	mprotect((void *)(at & ~(uintptr_t)(PS_PAGE - 1)), PS_PAGE, PROT_READ | PROT_WRITE);
}

static void watch(struct fabric_stage *stage, void (*look)(void *arg), void *arg)
{
	struct sigaction action = { .sa_sigaction = on_touch, .sa_flags = SA_SIGINFO };

	watched.stage = of(stage);
	watched.look = look;
	watched.arg = arg;
	assert_int_equal(sigaction(SIGSEGV, &action, &of(stage)->before), 0);
	assert_int_equal(mprotect(stage->ring, STAGE_RING, PROT_NONE), 0);
}

/* --- life --- */

struct fabric_stage *fabric_stage_shm(void)
{
	struct shm_stage *s = calloc(1, sizeof(*s));

	s->stage = (struct fabric_stage){
		.fabric = &ps_fabric_shm,
		.short_ns = 10000000,
		.flood = 8,
		.now = stage_now,
		.pause = stage_pause,
		.grant = grant,
		.left = left,
		.memory = memory,
		.watch = watch,
		.cut = cut,
		.fence = fence,
	};
	s->stage.ring = mmap(NULL, STAGE_RING, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
	                     -1, 0);
	assert_true(s->stage.ring != MAP_FAILED);
	assert_int_equal(ps_address_parse("unix:///mirror", &s->stage.address, NULL), 0);
	stage_grant_init(&s->grant);
	for (unsigned i = 0; i < FILES; i++) {
		s->files[i] = stage_file(sizes[i]);
		s->memory[i] = mmap(NULL, sizes[i], PROT_READ | PROT_WRITE, MAP_SHARED, s->files[i],
		                    0);
		assert_true(s->memory[i] != MAP_FAILED);
		stage_add_region(&s->grant, ids[i], sizes[i]);
	}
	s->grant.grant.descriptors = FILES;
	sigaction(SIGSEGV, NULL, &s->before);
	return &s->stage;
}

void fabric_stage_shm_end(struct fabric_stage *stage)
{
	struct shm_stage *s = of(stage);

	sigaction(SIGSEGV, &s->before, NULL);
	munmap(stage->ring, STAGE_RING);
	for (unsigned i = 0; i < FILES; i++) {
		munmap(s->memory[i], sizes[i]);
		close(s->files[i]);
	}
	free(s);
}
