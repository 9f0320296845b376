/*
 * test_demand_order.c - how fast memory comes that nobody waits for: options.fetch_rate is kept.
 * And from when on its lack counts.
 */
#include "demand_rig.h"

#include "../../client/demand/demand.h"

enum { GRANULES = (SIZE + (64 << 10) - 1) / (64 << 10) };

struct unit_fixture unit_fixture = { rig_setup_tcp, rig_teardown };

/* A mirror that gave nothing, when another one had given all that was missing, starves nobody. */
TEST(test_what_is_mapped_next_does_not_starve_yet, struct rig *rig)
{
	uint64_t starved_at;

	rig_begin(rig);
	rig_fetch(rig);
	assert_int_equal(perseas_unmap(rig->p, rig->bytes), 0);
	pthread_mutex_lock(&rig->p->demand->lock);
	rig->p->demand->starved_at = 1;
	pthread_mutex_unlock(&rig->p->demand->lock);
	atomic_store(&rig_shut, true);
	assert_int_equal(rig_map(rig), 0);
	pthread_mutex_lock(&rig->p->demand->lock);
	starved_at = rig->p->demand->starved_at;
	pthread_mutex_unlock(&rig->p->demand->lock);
	assert_int_not_equal(starved_at, 1);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The first comes by itself, and the next after 18 hours; what is touched comes at once. */
TEST(test_who_waits_is_not_held_up_by_the_rate, struct rig *rig)
{
	rig->rate = 1;
	rig_begin(rig);
	atomic_store(&rig_shut, false);
	for (uint64_t i = SIZE / 2; i < SIZE; i += 4001)
		assert_int_equal(rig_look(rig->bytes + i), rig_byte(i));
	assert_int_equal(perseas_wait_whole(rig->p, 10), PERSEAS_EUNREACHABLE);
}

TEST(test_the_rate_is_kept, struct rig *rig)
{
	uint64_t begin;

	rig->rate = 1 << 20; /* a granule in 62.5 ms */
	begin = now_ms();
	rig_begin(rig);
	rig_fetch(rig);
	assert_true(now_ms() - begin >= (GRANULES - 1) * 125 / 2);
	assert_int_equal(rig_wrong(rig), 0);
}
