/*
 * test_contract_demand.c - has recovery on demand (client/core/demand.h) keep its contract with the
 * real pager (pager_uffd.c). test_contract_demand_sim.c does the same with the simulator's.
 */
#include "../support/contract_demand.h"
#include "large_pages.h"
#include "../support/unit.h"

#include <dirent.h>
#include <limits.h>
#include <semaphore.h>

static sigjmp_buf way_out;

static void on_bus(int number)
{
	(void)number;
	siglongjmp(way_out, 1);
}

static int look(struct perseas *p, const uint8_t *at)
{
	const struct sigaction action = { .sa_handler = on_bus }, usual = { .sa_handler = SIG_DFL };
	volatile int found = -1;

	(void)p;
	sigaction(SIGBUS, &action, NULL);
	if (!sigsetjmp(way_out, 1))
		found = *(const volatile uint8_t *)at;
	sigaction(SIGBUS, &usual, NULL);
	return found;
}

TEST(the_real_pager_keeps_the_contract)
{
	struct demand_stage stage = { .address = "unix:///nobody",
		                      .short_ns = 300000000,
		                      .look = look };

	/* Far more than it takes: a clause that waits for ever ends. */
	alarm(600);
	for (unsigned i = 0; i < demand_clause_count; i++) {
		stage.env = ps_env_posix(NULL, NULL);
		assert_non_null(stage.env);
		demand_clauses[i].check(&stage);
		if (clause_broken[0])
			fail_msg("%s: %s", demand_clauses[i].name, clause_broken);
		stage.env->ops->free(stage.env);
	}
	alarm(0);
}

/* How many userfaultfds the table of a thread has. */
static unsigned count_uffds(const char *table)
{
	char path[PATH_MAX], to[64];
	struct dirent *entry;
	unsigned count = 0;
	DIR *folder = opendir(table);

	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		ssize_t n;

		snprintf(path, sizeof(path), "%s/%s", table, entry->d_name);
		n = readlink(path, to, sizeof(to) - 1);
		to[n > 0 ? n : 0] = 0;
		count += strstr(to, "userfaultfd") != NULL;
	}
	closedir(folder);
	return count;
}

struct tables {
	unsigned own;
	sem_t counted, over;
};

static void do_nothing(void *arg)
{
	(void)arg;
}

static void count_own(void *arg)
{
	struct tables *tables = arg;

	tables->own = count_uffds("/proc/thread-self/fd");
	sem_post(&tables->counted);
	while (sem_wait(&tables->over))
		;
}

/* When a process is killed the thread may be gone while another is in a system call: what is
 * missing becomes zeros with the last one of these. */
TEST(the_applications_table_has_it_too)
{
	struct ps_env *env = ps_env_posix(NULL, NULL);
	struct ps_error error = { 0 };
	struct tables tables = { 0 };
	struct ps_pager *pager;

	sem_init(&tables.counted, 0, 0);
	sem_init(&tables.over, 0, 0);
	pager = ps_pager_uffd.begin(env, (void (*[])(void *)){ count_own, do_nothing }, &tables,
	                            &error);
	if (!pager)
		fail_msg("%s", error.text);
	while (sem_wait(&tables.counted))
		;
	assert_int_equal(tables.own, 1);
	assert_int_equal(count_uffds("/proc/self/fd"), 1);
	sem_post(&tables.over);
	ps_pager_uffd.end(pager);
	assert_int_equal(count_uffds("/proc/self/fd"), 0);
	env->ops->free(env);
	sem_destroy(&tables.counted);
	sem_destroy(&tables.over);
}

enum { PIECE = 128 << 10, BYTE = 0x5a };

struct room {
	struct ps_pager *pager;
	sem_t begun, over;
	uint8_t *base, *bytes;
	bool covered, filled;
};

/* A large page's worth at once, and the rest in pieces, but for the last piece. */
static void fill_room(void *arg)
{
	struct room *room = arg;
	uint32_t length;

	while (sem_wait(&room->begun))
		;
	room->covered = !ps_pager_uffd.cover(room->pager, room->base, 4 * LARGE, false);
	room->filled = room->covered;
	for (uint64_t at = 0; room->filled && at < 4 * LARGE - PIECE; at += length) {
		length = at == 0 ? LARGE : PIECE;
		memset(room->bytes, BYTE, length); /* the fill before may have moved them away */
		room->filled = ps_pager_uffd.fill(room->pager, room->base + at, room->bytes, length,
		                                  false);
	}
	ps_pager_uffd.collapse(room->pager, room->base, 4 * LARGE);
	sem_post(&room->over);
}

static uint8_t *map_room(uint8_t **mapping)
{
	uint8_t *at = mmap(NULL, 6 * LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *base;

	assert_ptr_not_equal(at, MAP_FAILED);
	*mapping = at;
	base = (uint8_t *)(((uintptr_t)at + LARGE) & ~(uintptr_t)(LARGE - 1));
	assert_int_equal(mprotect(base, 4 * LARGE, PROT_READ | PROT_WRITE), 0);
	return base;
}

/* A range that is whole gets large pages, one with a hole stays as it is, and the hole stays one:
 * it must not become zeros. */
TEST(small_pages_are_gathered)
{
	struct room room = { .bytes = aligned_alloc(LARGE, LARGE) };
	struct ps_env *env = ps_env_posix(NULL, NULL);
	const unsigned long refused = count_refused();
	struct ps_error error = { 0 };
	uint8_t *mapping;

	room.base = map_room(&mapping);
	sem_init(&room.begun, 0, 0);
	sem_init(&room.over, 0, 0);
	room.pager = ps_pager_uffd.begin(env, (void (*[])(void *)){ fill_room, do_nothing }, &room,
	                                 &error);
	if (!room.pager)
		fail_msg("%s", error.text);
	sem_post(&room.begun);
	while (sem_wait(&room.over))
		;
	assert_true(room.covered && room.filled);
	if (can_be_large() && count_large(room.base) != 3 * LARGE)
		assert_int_not_equal(count_refused(), refused);
	for (uint64_t i = 0; i < 4 * LARGE - PIECE; i++)
		if (room.base[i] != BYTE)
			fail_msg("byte 0x%llx is 0x%x", (unsigned long long)i, room.base[i]);
	ps_pager_uffd.poison(room.pager, room.base + 4 * LARGE - PIECE, PIECE);
	assert_int_equal(look(NULL, room.base + 4 * LARGE - 1), -1);
	munmap(mapping, 6 * LARGE);
	ps_pager_uffd.end(room.pager);
	env->ops->free(env);
	sem_destroy(&room.begun);
	sem_destroy(&room.over);
	free(room.bytes);
}
