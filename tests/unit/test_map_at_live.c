/*
 * test_map_at_live.c - segments that are mapped elsewhere than recorded, with real mirrors over tcp
 * and shared memory: read first and on demand, and mapped again elsewhere while something is still
 * being fetched.
 */
#include "demand_rig.h"

enum { ROOM = 8 << 20, THERE = 5 << 20, AT = 300000 };

static int setup_tcp(void **state)
{
	return rig_setup(state, false);
}

static int setup_shm(void **state)
{
	return rig_setup(state, true);
}

struct unit_fixture unit_fixture = { setup_tcp, rig_teardown };
struct unit_fixture unit_fixture_too = { setup_shm, rig_teardown };

/* No multiple of a large page, and far from where the kernel puts the library's memory. */
static uint8_t *find_room(void)
{
	static uintptr_t next = 0x5a0000000000 + PS_PAGE;
	uint8_t *room = mmap((void *)next, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_equal(room, (void *)next);
	assert_int_equal(munmap(room, ROOM), 0);
	next += ((uintptr_t)4 << 20) + (ROOM & ~(uintptr_t)((2 << 20) - 1));
	return room;
}

static void map_elsewhere(struct rig *rig)
{
	uint8_t *at = find_room();
	ptrdiff_t moved;
	void *addr;

	assert_int_equal(perseas_map_at(rig->p, "accounts", 0, at, &addr, &moved), 0);
	assert_ptr_equal(addr, at);
	assert_ptr_equal(perseas_recorded(rig->p, at), at - moved);
	rig->bytes = addr;
}

/* A byte that is looked at once, also if a compiler knew better. */
static uint8_t look(const uint8_t *at)
{
	return *(const volatile uint8_t *)at;
}

static void assert_bytes(struct rig *rig, uint8_t put)
{
	for (uint64_t i = 0; i < SIZE; i++)
		if (look(rig->bytes + i) != (i >= AT && i < AT + 300 ? put : rig_byte(i)))
			fail_msg("byte %llu is wrong", (unsigned long long)i);
}

/* An owner puts something in from elsewhere; the next one finds it where the record is. */
TEST(test_commits_reach_the_next_owner, struct rig *rig)
{
	void *addr;

	assert_int_equal(rig_open(rig, PERSEAS_TAKEOVER, 0), 0);
	map_elsewhere(rig);
	assert_int_equal(rig_put(rig, AT, 300, 33), 0);
	assert_bytes(rig, 33);
	perseas_close(rig->p);
	rig->p = NULL;
	assert_int_equal(rig_open(rig, PERSEAS_TAKEOVER, 0), 0);
	assert_int_equal(rig_map(rig), 0);
	assert_bytes(rig, 33);
	assert_int_equal(perseas_map_at(rig->p, "more", 5000, NULL, &addr, NULL), 0);
	assert_int_equal(perseas_publish(rig->p), 0);
}

/* Pages come when they are touched, by set_range, and when they are asked for. */
TEST(test_pages_come_there, struct rig *rig)
{
	atomic_store(&rig_shut, true);
	assert_int_equal(rig_open(rig, PERSEAS_TAKEOVER, PERSEAS_RECOVERY_ON_DEMAND), 0);
	map_elsewhere(rig);
	assert_int_equal(perseas_wait_whole(rig->p, 0), PERSEAS_EUNREACHABLE);
	assert_int_equal(perseas_prefetch(rig->p, rig->bytes + SIZE - 10, 10), 0);
	atomic_store(&rig_shut, false);
	assert_int_equal(look(rig->bytes + SIZE - 1), rig_byte(SIZE - 1));
	assert_int_equal(rig_put(rig, AT, 300, 44), 0);
	assert_int_equal(perseas_wait_whole(rig->p, -1), 0);
	assert_bytes(rig, 44);
}

static void *look_far(void *arg)
{
	struct rig *rig = arg;

	return (void *)(intptr_t)ps_demand_await(rig->p, (uint64_t)(uintptr_t)rig->bytes + AT,
	                                         (uint64_t)(uintptr_t)rig->bytes + AT + 1);
}

/* Bytes of a late fetch reach neither the new address nor whatever is at the old one. */
TEST(test_an_answer_that_is_late_finds_nobody, struct rig *rig)
{
	uint8_t *was, *there;
	pthread_t thread;
	void *rc;

	atomic_store(&rig_shut, true);
	assert_int_equal(rig_open(rig, PERSEAS_TAKEOVER, PERSEAS_RECOVERY_ON_DEMAND), 0);
	for (unsigned round = 0; round < 20; round++) {
		map_elsewhere(rig);
		was = rig->bytes;
		atomic_store(&rig_shut, false);
		/* Some of it is on its way now, at any stage. */
		pthread_create(&thread, NULL, look_far, rig);
		assert_int_equal(rig_put(rig, AT, 300, (uint8_t)round), 0);
		pthread_join(thread, &rc);
		assert_int_equal((intptr_t)rc, 0);
		assert_int_equal(perseas_unmap(rig->p, was), 0);
		there = mmap(was, THERE, PROT_READ | PROT_WRITE,
		             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		assert_ptr_equal(there, was);
		memset(there, 0x5a, SIZE);
		map_elsewhere(rig);
		assert_int_equal(look(rig->bytes + AT), round);
		for (uint64_t i = 0; i < SIZE; i += 777)
			assert_int_equal(there[i], 0x5a);
		assert_int_equal(munmap(there, THERE), 0);
		assert_int_equal(perseas_unmap(rig->p, rig->bytes), 0);
	}
	map_elsewhere(rig);
	assert_int_equal(perseas_wait_whole(rig->p, -1), 0);
	assert_bytes(rig, 19);
}

/* Missing bytes would never arrive after the store is closed. */
TEST(test_only_what_is_here_is_retained, struct rig *rig)
{
	atomic_store(&rig_shut, true);
	assert_int_equal(rig_open(rig, PERSEAS_TAKEOVER, PERSEAS_RECOVERY_ON_DEMAND), 0);
	map_elsewhere(rig);
	assert_int_equal(perseas_retain(rig->p, rig->bytes), PERSEAS_EAGAIN);
	atomic_store(&rig_shut, false);
	assert_int_equal(perseas_wait_whole(rig->p, -1), 0);
	assert_int_equal(perseas_retain(rig->p, rig->bytes), 0);
	assert_int_equal(perseas_close(rig->p), 0);
	rig->p = NULL;
	assert_int_equal(rig_wrong(rig), 0);
	assert_int_equal(munmap(rig->bytes, SIZE), 0);
}
