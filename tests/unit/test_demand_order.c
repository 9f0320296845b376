/*
 * test_demand_order.c - in which order memory comes that nobody waits for, and how fast: what the
 * newest transactions changed comes first, and options.fetch_rate is kept.
 */
#include "demand_rig.h"

#include "../../client/demand/demand.h"

enum { HOT = 3000000, LARGE = 2 << 20, GRANULES = (SIZE + (128 << 10) - 1) / (128 << 10) };

struct unit_fixture unit_fixture = { rig_setup_tcp, rig_teardown };

/* Commits at a place of its own, and dies with the store open. */
static int put_and_die(struct rig *rig)
{
	return rig_open(rig, 0, 0) || rig_map(rig) || rig_put(rig, HOT, 300, 77);
}

TEST(test_what_changed_last_comes_first, struct rig *rig)
{
	assert_int_equal(rig_by_another(rig, put_and_die), 0);
	rig_begin(rig);
	rig_fetch(rig);
	/* With the large page that it lies in. */
	assert_int_equal(rig_first, HOT / LARGE * LARGE);
	assert_int_equal(rig_look(rig->bytes + HOT + 299), 77);
}

/* A log of transactions that went on for longer than what is read of it. */
static int put_much_and_die(struct rig *rig)
{
	int rc = rig_open(rig, 0, 0) || rig_map(rig);

	for (int i = 0; i < 40 && !rc; i++)
		rc = rig_put(rig, 0, 100000, (uint8_t)i);
	return rc || rig_put(rig, HOT, 300, 77);
}

TEST(test_a_long_log_is_read_from_its_end, struct rig *rig)
{
	assert_int_equal(rig_by_another(rig, put_much_and_die), 0);
	assert_int_equal(rig_open(rig, PERSEAS_TAKEOVER, PERSEAS_RECOVERY_ON_DEMAND), 0);
	/* The newest, and as many of the others as 256 KiB hold. */
	assert_int_equal(rig->p->demand->hot_count, 3);
	assert_int_equal(rig->p->demand->hot[0].offset, HOT);
	assert_int_equal(rig->p->demand->hot[2].offset, 0);
}

static const struct ps_fabric *(*real_fabric)(struct ps_env *env, const struct ps_address *address,
                                              const Perseas__Grant *grant, unsigned tried);
static struct ps_fabric breaking;
static unsigned breaks;

static int break_once(struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
                      uint64_t length, uint64_t patience_ns)
{
	return !breaks++ ? PS_LINK_BROKEN
	                 : ps_fabric_tcp.read(link, region, offset, bytes, length, patience_ns);
}

static const struct ps_fabric *choose_breaking(struct ps_env *env, const struct ps_address *address,
                                               const Perseas__Grant *grant, unsigned tried)
{
	const struct ps_fabric *fabric = real_fabric(env, address, grant, tried);

	return fabric == &ps_fabric_tcp ? &breaking : fabric;
}

static void break_reads(struct ps_env_ops *ops)
{
	real_fabric = ops->fabric;
	breaking = ps_fabric_tcp;
	breaking.read = break_once;
	ops->fabric = choose_breaking;
}

/* The log that is read is that of a mirror without which nothing commits. */
TEST(test_a_mirror_that_breaks_meanwhile_comes_back, struct rig *rig)
{
	assert_int_equal(rig_by_another(rig, put_and_die), 0);
	rig->change = break_reads;
	breaks = 0;
	rig_begin(rig);
	atomic_store(&rig_shut, false);
	assert_int_equal(breaks, 1);
	assert_int_equal(rig_put(rig, 0, 100, 5), 0);
	assert_int_equal(perseas_wait_whole(rig->p, -1), 0);
	assert_int_equal(rig_look(rig->bytes + HOT), 77);
}

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

/* The first comes by itself, and the next after 36 hours; what is touched comes at once. */
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

	rig->rate = 1 << 20; /* a granule in 125 ms */
	begin = now_ms();
	rig_begin(rig);
	rig_fetch(rig);
	assert_true(now_ms() - begin >= (GRANULES - 1) * 125);
	assert_int_equal(rig_wrong(rig), 0);
}
