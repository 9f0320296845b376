/*
 * test_renew_demand.c - the owner claims its mirrors again under a higher epoch (a renewal) while
 * memory is missing: what was fetched before stays, nothing is fetched meanwhile, and afterwards
 * only from mirrors that have a slot of the new epoch.
 */
#include "demand_direct_rig.h"

static int setup_all_three(void **state)
{
	return setup_on_demand(state, 3, 3);
}

static int setup_two_of_three(void **state)
{
	return setup_on_demand(state, 3, 2);
}

struct unit_fixture unit_fixture = { setup_two_of_three, teardown };

/* The other owner needs no memory. */
static void claim_all_and_die(struct owner *o)
{
	const struct ps_pager_ops *pager = o->d->pager;
	const struct perseas_options options = o->options;

	o->options.recovery = 0;
	o->d->pager = NULL;
	owner_claimed_and_left(o);
	o->d->pager = pager;
	o->options = options;
}

/* The thread that fetches has a turn whenever a mirror is asked something, or written to. */
static struct beside {
	struct owner *o;
	bool fetches; /* it has turns */
	bool inside;
	unsigned turns, asks; /* while the owner is renewing its claims */
} beside;

static void go_beside(void)
{
	const unsigned asks = pager_gate.asks;

	if (beside.inside || !beside.fetches)
		return;
	beside.inside = true;
	pager_direct_turns(beside.o->d, 1);
	if (beside.o->p->is_renewing) {
		beside.turns++;
		beside.asks += pager_gate.asks - asks;
	}
	beside.inside = false;
}

static void on_request(void *arg, unsigned mirror, unsigned session, const uint8_t *bytes,
                       size_t len)
{
	(void)arg;
	(void)mirror;
	(void)session;
	(void)bytes;
	(void)len;
	go_beside();
}

static void on_write(void *arg, const struct direct_write *write)
{
	(void)arg;
	(void)write;
	go_beside();
}

static const struct direct_tap tap = { .request = on_request, .write = on_write };

/* The keeper's rounds until the claims are renewed. `fetches`: so does the thread for that, all the
 * while. */
static void renew(struct fixture *f, bool fetches)
{
	struct owner *o = f->o;
	const uint64_t epoch = o->p->epoch;

	beside = (struct beside){ .o = o, .fetches = fetches };
	o->d->tap = &tap;
	for (unsigned i = 0; i < 30 && !owner_stat(o).renewals; i++)
		direct_keep(o->d, o->p);
	o->d->tap = NULL;
	assert_int_equal(owner_stat(o).renewals, 1);
	assert_true(o->p->epoch > epoch);
}

/* Fetched before, and changed since; fetched afterwards. */
TEST(test_memory_comes_before_and_after, struct fixture *f)
{
	fetch_some(f, 7);
	assert_int_equal(put_big(f, 10, 500, 77), 0);
	claim_all_and_die(f->o);
	renew(f, false);
	assert_int_equal(pager_gate.asks, 2);
	fetch_all(f, 7);
	assert_int_equal(pager_gate.fills, 1 + GRANULES);
	assert_int_equal(put_big(f, BIG - 600, 500, 78), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_image(f, i);
}

/* All mirrors would answer, at every step of the renewal. */
TEST(test_nothing_is_fetched_meanwhile, struct fixture *f)
{
	fetch_some(f, 7);
	claim_all_and_die(f->o);
	pager_gate.mirrors = 7;
	renew(f, true);
	assert_true(beside.turns > 10);
	assert_int_equal(beside.asks, 0);
	fetch_all(f, 7);
}

/* Asked under the epoch before, and answered when the mirror is promised to this owner again: the
 * promise of another owner was in between. */
static void span_a_renewal(struct fixture *f, enum ps_lane lane)
{
	fetch_some(f, 7);
	pager_gate.mirrors = pager_gate.held = 1;
	pager_gate.lanes = 1U << lane;
	assert_false(ps_demand_request(f->o->p, &f->o->p->segments[1], BIG - 1, 1));
	pager_direct_turns(f->o->d, 600);
	assert_int_equal(pager_gate.asks, 3);
	pager_gate.mirrors = 0;
	claim_all_and_die(f->o);
	renew(f, false);
	pager_gate.held = 0;
	pager_direct_turns(f->o->d, 600);
	assert_int_equal(pager_gate.fills, 2);
	pager_gate.lanes = ~0U;
	fetch_all(f, 7);
	assert_int_equal(pager_gate.fills, 1 + GRANULES);
}

TEST(test_bulk_that_spans_a_renewal_counts_for_nothing, struct fixture *f)
{
	span_a_renewal(f, PS_BULK_LANE);
}

TEST(test_a_wait_that_spans_a_renewal_gets_nothing, struct fixture *f)
{
	span_a_renewal(f, PS_FAULT_LANE);
}

/* The mirror missed more than the ring holds, and W is reached without it: it is claimed but not
 * adopted on, so its slot has the previous epoch. */
TEST(test_a_mirror_without_a_slot_of_the_epoch_is_no_source, struct fixture *f)
{
	Perseas__Header *header;

	fetch_some(f, 7);
	direct_crash(f->o->d, 2);
	assert_int_equal(put_big(f, 10, 500, 77), 0);
	come_back_late(f, 2);
	claim_all_and_die(f->o);
	renew(f, false);
	header = header_of(f, 2);
	assert_int_equal(header->promised_epoch, f->o->p->epoch);
	assert_int_equal(header->state, PERSEAS__STATE__STATE_CONSISTENT);
	perseas__header__free_unpacked(header, NULL);
	pager_gate.mirrors = 4;
	pager_direct_turns(f->o->d, 1000);
	assert_true(pager_gate.asks > 2);
	assert_int_equal(pager_gate.fills, 2);
	fetch_all(f, 2);
	assert_catches_up(f, 2);
}

/* W cannot be had without a mirror that missed what the ring does not hold any more, so the renewal
 * copies all of it there: what is missing here from a mirror that has it. */
TEST_WITH(test_what_is_missing_is_copied_from_a_mirror, setup_all_three, teardown,
          struct fixture *f)
{
	struct owner *o = f->o;

	fetch_some(f, 7);
	direct_crash(o->d, 2);
	assert_int_equal(owner_put(o, 0, 100, 7), PERSEAS_EINDOUBT);
	memset(f->ledger->accounts, 7, 100);
	come_back_late(f, 2);
	claim_all_and_die(o);
	renew(f, false);
	assert_int_equal(pager_gate.fills, 2);
	assert_int_equal(perseas_flush(o->p), 0);
	for (unsigned i = 0; i < 3; i++) {
		owner_keep(o, i, PERSEAS_MIRROR_LIVE);
		assert_image(f, i);
	}
	/* And from there it comes. */
	fetch_all(f, 4);
}
