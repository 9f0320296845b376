/*
 * test_demand_parts.c - transactions at random on memory that is fetched on demand and has a
 * shadow, while this host has memory for a part of what comes, of any length. What is here, in
 * memory and in the shadow, is what was committed, and another owner finds all of that.
 */
#include "demand_shadow_rig.h"

enum { ROUNDS = 40, MAPPED_FOR = 15, STORES = 4, CLOSE = 3 * PS_PAGE, STORED_MAX = 40 };

static uint8_t *committed_bytes; /* other owners see it, too */
static uint8_t stored[SIZE];
static unsigned chance, parts; /* parts: the thread's that fetches, which has a chance of its own */

static unsigned below(unsigned n)
{
	return (unsigned)rand_r(&chance) % n;
}

/* Whole pages of it, perhaps none; sometimes all of it. */
static uint32_t fill_some(struct ps_pager *pager, uint8_t *to, const uint8_t *bytes,
                          uint32_t length, bool watched)
{
	const uint32_t pages = (length + PS_PAGE - 1) / PS_PAGE;
	const uint32_t part = (uint32_t)rand_r(&parts) % pages * PS_PAGE;

	if (rand_r(&parts) % 3 == 0)
		return ps_pager_uffd.fill(pager, to, bytes, length, watched);
	return part ? rig_fill_part(pager, to, bytes, part, length, watched) : 0;
}

static void be_poor(struct ps_env_ops *ops)
{
	(void)ops;
	rig_pager.fill = fill_some;
}

static void begin_poor(struct rig *rig)
{
	chance = parts = 20261127;
	for (uint64_t i = 0; i < SIZE; i++)
		stored[i] = committed_bytes[i] = rig_byte(i);
	rig->change = be_poor;
	begin_at_gate(rig, PERSEAS_TRACKED, false);
	/* However busy this machine is, no commit is in doubt. */
	rig->p->options.commit_timeout_ms = UINT32_MAX;
}

/* Near each other: in pages that came, in those behind them, and in other granules. */
static void store(struct rig *rig)
{
	const unsigned around = below(SIZE - CLOSE - STORED_MAX);

	for (unsigned n = below(STORES) + 1; n > 0; n--) {
		const unsigned at = around + below(CLOSE);

		for (unsigned i = at, end = at + below(STORED_MAX); i < end; i++)
			rig->bytes[i] = stored[i] = (uint8_t)below(256);
	}
}

static void is_as_committed(struct rig *rig)
{
	const struct ps_segment *segment = &rig->p->segments[0];
	bool here;

	for (uint64_t at = 0, run; at < SIZE; at += run) {
		run = ps_demand_uniform_run(rig->p, segment, at, SIZE - at, &here);
		if (!here)
			continue;
		assert_memory_equal(rig->bytes + at, committed_bytes + at, run);
		assert_memory_equal(segment->shadow + at, committed_bytes + at, run);
	}
}

static void keep_stored(void)
{
	memcpy(committed_bytes, stored, SIZE);
}

static void take_back(void)
{
	memcpy(stored, committed_bytes, SIZE);
}

/* One transaction: it ends in one of its ways. */
static void go_through_one(struct rig *rig)
{
	struct perseas_token token;
	perseas_tx_t *tx = track(rig);

	store(rig);
	switch (below(4)) {
	case 0:
		assert_int_equal(perseas_abort(tx), 0);
		take_back();
		return;
	case 1:
		assert_int_equal(perseas_retry(tx), 0);
		take_back();
		store(rig);
		break;
	case 2:
		assert_int_equal(perseas_commit_token(tx, PERSEAS_NOWAIT, &token), 0);
		keep_stored();
		return;
	default:
		break;
	}
	assert_int_equal(perseas_commit(tx, 0), 0);
	keep_stored();
}

static int find_all(struct rig *rig)
{
	if (rig_open(rig, PERSEAS_TAKEOVER, 0) || rig_map(rig))
		return 1;
	return memcmp(rig->bytes, committed_bytes, SIZE) ? 2 : 0;
}

/* Mapped anew, all of it is missing once more. */
static void map_anew(struct rig *rig)
{
	assert_int_equal(perseas_unmap(rig->p, rig->bytes), 0);
	assert_int_equal(rig_map(rig), 0);
}

/* Before there is any process that is to see it. */
static int share(void **state)
{
	(void)state;
	committed_bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	                       0);
	return committed_bytes == MAP_FAILED;
}

static int share_no_more(void **state)
{
	(void)state;
	return munmap(committed_bytes, SIZE);
}

struct unit_fixture unit_fixture = { setup_pages, teardown };
struct unit_fixture unit_fixture_too = { setup_all, teardown };
struct unit_fixture unit_group = { share, share_no_more };

TEST(test_transactions_go_on_while_memory_comes_in_parts, struct rig *rig)
{
	begin_poor(rig);
	for (unsigned round = 1; round <= ROUNDS; round++) {
		go_through_one(rig);
		is_as_committed(rig);
		if (round % MAPPED_FOR == 0)
			map_anew(rig);
	}
	assert_int_equal(rig_by_another(rig, find_all), 0);
}
