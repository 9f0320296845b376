/*
 * demand_shadow_rig.h - what the tests of memory that is fetched on demand and has a shadow share:
 * owners that find what was written by pages, or by all that is here, and ways in which memory
 * comes.
 */
#ifndef PERSEAS_TESTS_DEMAND_SHADOW_RIG_H
#define PERSEAS_TESTS_DEMAND_SHADOW_RIG_H

#include "demand_rig.h"

#include "../../client/core/shadow.h"
#include "../../client/demand/demand.h"

enum { FAR = SIZE - 5000, VALUE = 0xa5, LENGTH = 9 };

static const char *const ways[] = { "pages", "all memory" };

static bool by_pages; /* the way of this test */

static struct perseas *asks; /* whose memory it is */

/* --- how memory is filled --- */

/* How what has the byte `stored_to` comes. AT_ONCE: as everything else. SEEN_BEFORE: it can be
 * seen, and the committer goes on, before it counts as here. TORN: this host has memory for its
 * pages up to that of the byte, and until this changes for no more of the byte's granule. */
static _Atomic enum { AT_ONCE, SEEN_BEFORE, TORN } fills;
static const uint8_t *stored_to;
static atomic_bool committed;

/* Returns when the committer waits for what is being filled, or has gone past it. */
static void let_it_commit(void)
{
	RIG_UNTIL(atomic_load(&rig_waited) || atomic_load(&committed));
}

static uint32_t fill(struct ps_pager *pager, uint8_t *to, const uint8_t *bytes, uint32_t length,
                     bool watched)
{
	const bool is_it = fills != AT_ONCE && stored_to >= to && stored_to < to + length;
	const uint32_t granule = ps_pager_uffd.granule;
	uint32_t came;

	if (is_it && fills == TORN)
		return rig_fill_part(pager, to, bytes,
		                     (uint32_t)((stored_to - to) / PS_PAGE + 1) * PS_PAGE, length,
		                     watched);
	if (fills == TORN && to > stored_to && (uint64_t)(to - stored_to) < granule)
		return 0;
	came = ps_pager_uffd.fill(pager, to, bytes, length, watched);
	if (is_it)
		let_it_commit();
	return came;
}

/* An answer is kept back if it has the granule of `stored_to`, and at least so many granules.
 * 0: none is, and those that were kept back are given. */
static _Atomic unsigned holds;
static _Atomic unsigned held; /* answers that were kept back so far */
/* Only the lane of the source uses these. */
static struct ps_fetch_answer kept[PS_SOURCES];
static bool has_kept[PS_SOURCES];

static bool is_to_be_held(unsigned which)
{
	const struct ps_fetching *f;
	uint64_t granule;

	if (!holds)
		return false;
	f = &asks->demand->fetching[which];
	granule = (uint64_t)(stored_to - asks->segments[0].base) / ps_pager_uffd.granule;
	return f->granule_count >= holds && granule >= f->granule &&
	       granule < f->granule + f->granule_count;
}

static int answer(struct ps_pager *pager, unsigned which, struct ps_fetch_answer *fetched)
{
	if (!has_kept[which]) {
		const int rc = ps_pager_uffd.answer(pager, which, fetched);

		if (rc <= 0 || !is_to_be_held(which))
			return rc;
		kept[which] = *fetched;
		has_kept[which] = true;
		held++;
	}
	if (holds)
		return 0;
	*fetched = kept[which];
	has_kept[which] = false;
	return 1;
}

static void watch(struct ps_env_ops *ops)
{
	(void)ops;
	rig_pager.fill = fill;
	rig_pager.answer = answer;
	/* So that no second mirror is asked while an answer is kept back. */
	rig_pager.second_request_after_ns = PS_NEVER;
	memset(has_kept, 0, sizeof(has_kept));
	held = 0;
}

/* --- what is asked about --- */

static _Atomic unsigned in_vain; /* looks at memory that is missing; one fails the test */

static int take(struct ps_written *written, const uint8_t *base, uint64_t offset, uint64_t length,
                uint64_t *set)
{
	bool here;

	in_vain += ps_demand_uniform_run(asks, &asks->segments[0], offset, length, &here) !=
	                   length ||
	           !here;
	return ps_written_pages.take(written, base, offset, length, set);
}

static struct ps_written_ops written;

/* --- owners --- */

static int setup_of(void **state, bool pages, bool shared)
{
	struct rig *rig;
	int rc;

	/* First, for other owners begin in a process that has this as it is now. */
	by_pages = pages;
	fills = AT_ONCE;
	atomic_store(&committed, false);
	atomic_store(&rig_waited, false);
	atomic_store(&rig_watched, NULL);
	assert_int_equal(setenv("PERSEAS_WRITTEN_PAGES", pages ? "on" : "off", 1), 0);
	rc = rig_setup(state, shared);
	rig = *state;
	rig->change = watch;
	/* What nobody waits for comes once, and then not for days. */
	rig->rate = 1;
	return rc;
}

static inline int setup_pages(void **state)
{
	return setup_of(state, true, false);
}

static inline int setup_all(void **state)
{
	return setup_of(state, false, false);
}

static inline int setup_pages_shared(void **state)
{
	return setup_of(state, true, true);
}

static inline int setup_all_shared(void **state)
{
	return setup_of(state, false, true);
}

static int teardown(void **state)
{
	/* Also where a test has failed. */
	atomic_store(&committed, true);
	holds = 0;
	unsetenv("PERSEAS_WRITTEN_PAGES");
	atomic_store(&rig_watched, NULL);
	assert_int_equal(rig_teardown(state), 0);
	return (int)atomic_exchange(&in_vain, 0);
}

/* The test is skipped where this kernel tells no pages. */
static inline void begin_at_gate(struct rig *rig, uint32_t flags, bool shut)
{
	atomic_store(&rig_shut, shut);
	assert_int_equal(rig_open(rig, flags | PERSEAS_TAKEOVER, PERSEAS_RECOVERY_ON_DEMAND), 0);
	if (strstr(perseas_report(rig->p), "read first") ||
	    (by_pages && !strstr(perseas_report(rig->p), "compare the pages")))
		skip();
	assert_true(by_pages == !strstr(perseas_report(rig->p), ways[1]));
	assert_int_equal(rig_map(rig), 0);
	assert_true(rig->p->demand && rig->p->segments[0].shadow);
	assert_true(by_pages == (rig->p->segments[0].pages_may_differ != NULL));
	written = ps_written_pages;
	written.take = take;
	asks = rig->p;
	if (by_pages)
		rig->p->env->written = &written;
}

/* With the gate shut: nothing is here. */
static inline void begin(struct rig *rig, uint32_t flags)
{
	begin_at_gate(rig, flags, true);
}

static inline perseas_tx_t *track(struct rig *rig)
{
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(rig->p, PERSEAS_TRACK, &tx), 0);
	return tx;
}

/* Another owner finds the beginning, but for what was committed. */
static inline int find_committed(struct rig *rig)
{
	if (rig_open(rig, PERSEAS_TAKEOVER, 0) || rig_map(rig))
		return 1;
	for (uint64_t i = 0; i < SIZE; i++)
		if (rig->bytes[i] != (i >= FAR && i - FAR < LENGTH ? VALUE : rig_byte(i)))
			return 2;
	perseas_close(rig->p);
	return 0;
}

static inline int find_nothing(struct rig *rig)
{
	if (rig_open(rig, PERSEAS_TAKEOVER, 0) || rig_map(rig))
		return 1;
	return rig_wrong(rig) ? 2 : 0;
}

/* Opens the gate; what has the byte at the offset comes in this way, see `fills`. */
static inline void come(struct rig *rig, int way, uint64_t offset)
{
	stored_to = rig->bytes + offset;
	fills = way;
	atomic_store(&rig_watched, &rig->p->demand->changed);
	atomic_store(&rig_shut, false);
}

static inline int commit_nothing(struct rig *rig)
{
	perseas_tx_t *tx;
	int rc;

	assert_int_equal(perseas_begin(rig->p, 0, &tx), 0);
	rc = perseas_commit(tx, 0);
	if (rc)
		assert_int_equal(perseas_abort(tx), 0);
	return rc;
}

#endif
