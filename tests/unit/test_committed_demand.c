/*
 * test_committed_demand.c - perseas_copy_committed of memory that is not here yet, with real
 * mirrors, sockets and pages.
 */
#include "demand_rig.h"

#include "../../client/demand/demand.h"

struct unit_fixture unit_fixture = { rig_setup_tcp, rig_teardown };

static struct rig *rig_remapped; /* unmapped, and mapped again, when a copy begins; or NULL */
static bool (*rig_real_barrier)(struct ps_env *env);

static bool barrier_and_map(struct ps_env *env)
{
	struct rig *rig = rig_remapped;

	rig_remapped = NULL;
	if (rig) {
		atomic_store(&rig_shut, true);
		assert_int_equal(perseas_unmap(rig->p, rig->bytes), 0);
		assert_int_equal(rig_map(rig), 0);
		atomic_store(&rig_waited, false);
		atomic_store(&rig_watched, &rig->p->demand->changed);
	}
	return rig_real_barrier(env);
}

static void watch_barriers(struct ps_env_ops *ops)
{
	rig_real_barrier = ops->barrier;
	ops->barrier = barrier_and_map;
}

static void *copy_away(void *arg)
{
	static uint8_t copy[300000];
	struct rig *rig = arg;
	struct perseas_piece piece = { .from = rig->bytes + 1000000,
		                       .to = copy,
		                       .len = sizeof(copy) };

	if (perseas_copy_committed(rig->p, &piece, 1, NULL))
		return NULL;
	for (uint64_t i = 0; i < sizeof(copy); i++)
		if (copy[i] != rig_byte(1000000 + i))
			return NULL;
	return copy;
}

/* What a copy has waited for is unmapped, and mapped again, before it is copied: it is waited for
 * once more, and not touched with the lock. */
TEST(test_a_copy_waits_for_memory_without_the_lock, struct rig *rig)
{
	pthread_t thread;
	void *copied;

	rig->change = watch_barriers;
	rig_begin(rig);
	atomic_store(&rig_shut, false);
	rig_remapped = rig;
	assert_int_equal(pthread_create(&thread, NULL, copy_away, rig), 0);
	RIG_UNTIL(atomic_load(&rig_waited));
	atomic_store(&rig_shut, false);
	assert_int_equal(pthread_join(thread, &copied), 0);
	assert_non_null(copied);
	assert_int_equal(rig_put(rig, 1000000, 300, 7), 0);
	atomic_store(&rig_watched, NULL);
}
