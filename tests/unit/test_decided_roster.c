/*
 * test_decided_roster.c - an open that finds a change of the roster decided. If it cannot end, what
 * it leaves on the mirror that leaves the roster must not count for more than what the owner
 * before, which has settled the change, acknowledges afterwards.
 */
#include "roster_rig.h"

#include "../../client/core/mirror.h"
#include "../../server/store/store_private.h"

static const Perseas__Header *header_on(struct owner *o, unsigned mirror)
{
	return store_find(o->d->mirrors[mirror].stores, STORE)->header;
}

/* The last mirror leaves the roster, and W stays while it fits. All have the mark, so the new
 * roster counts alone for the owner, which could not record that yet. */
static struct owner *begin_decided(unsigned members, unsigned acks, const char *last)
{
	const struct perseas_roster_change leaves = { .kind = PERSEAS_ROSTER_REMOVE,
		                                      .address = last,
		                                      .acks = acks < members ? acks : 0 };
	struct owner *o = begin(members, acks);

	assert_int_equal(owner_change(o, &leaves), 0);
	for (unsigned i = 0; i < members; i++) {
		o->d->mirrors[i].break_at = PERSEAS__REQUEST__BODY_ROSTER;
		o->d->mirrors[i].break_skip = 2;
	}
	owner_keep_stage(o, PS_CHANGE_SETTLING);
	for (unsigned i = 0; i < members; i++) {
		o->d->mirrors[i].break_at = 0;
		assert_true(header_on(o, i)->marked);
	}
	return o;
}

/* Another owner does not reach mirror 1. The owner before stays as it is. */
static void open_without_1(struct owner *o)
{
	struct perseas *before = o->p;
	uint8_t *bytes = o->bytes;

	o->p = NULL;
	o->d->mirrors[1].break_at = PERSEAS__REQUEST__BODY_STATUS;
	o->d->mirrors[1].break_skip = 0;
	assert_int_equal(open_with(o, 0, 3, PERSEAS_TAKEOVER), PERSEAS_EQUORUM);
	o->d->mirrors[1].break_at = 0;
	o->p = before;
	o->bytes = bytes;
}

/* Mirror 0 loses its memory, and the owner before, which has nobody but mirror 1, makes it anew. */
static void make_0_anew(struct owner *o)
{
	owner_lose(o, 0);
	OWNER_KEEP_UNTIL(o, store_find(o->d->mirrors[0].stores, STORE));
	owner_keep(o, 0, PERSEAS_MIRROR_LIVE);
}

/* The open that failed has fenced the owner before on mirror 0, which loses its memory. By the new
 * roster mirror 1 alone lets that owner make mirror 0 anew, and go on. Mirror 0 then has every
 * acknowledged transaction, so that mirror 1 may lose its memory, too. */
TEST(what_is_acknowledged_after_an_open_that_failed_is_found)
{
	for (unsigned lost = 0; lost < 2; lost++) {
		struct owner *o = begin_decided(3, 2, "sim://2");

		open_without_1(o);
		make_0_anew(o);
		assert_int_equal(owner_put(o, 0, 100, 3), 0);
		assert_int_equal(o->p->member_count, 2);
		owner_die(o);
		if (lost)
			owner_lose(o, 1);
		reopen_with(o, 0, 3, PERSEAS_TAKEOVER);
		assert_int_equal(o->bytes[99], 3);
		owner_free(o);
	}
}

/* Neither its slot nor its roster: the mirror that leaves is promised to it, and that is all. */
TEST(a_mirror_that_leaves_is_not_written_to)
{
	struct owner *o = begin_decided(3, 2, "sim://2");
	const Perseas__Header *leaves = header_on(o, 2);
	const uint64_t version = leaves->next_roster->version, epoch = leaves->next_roster->epoch;

	open_without_1(o);
	leaves = header_on(o, 2);
	assert_int_equal(leaves->promised_epoch, o->p->epoch + 1);
	assert_int_equal(leaves->next_roster->epoch, epoch);
	assert_int_equal(leaves->next_roster->version, version);
	owner_free(o);
}

/* By the new roster W is 3 and R is 1. An open that claimed one mirror could adopt there without
 * seeing the next change, by which W may be less. So it claims nothing. */
TEST(t_of_the_new_roster_must_be_there)
{
	struct owner *o = begin_decided(4, 3, "sim://3");
	const uint64_t epoch = o->p->epoch;

	owner_die(o);
	direct_crash(o->d, 1);
	direct_crash(o->d, 2);
	assert_int_equal(open_with(o, 0, 4, PERSEAS_TAKEOVER), PERSEAS_EQUORUM);
	assert_error_says(o, "of 3 mirrors hold the newest state of store 'bank', and 3 must");
	assert_int_equal(header_on(o, 0)->promised_epoch, epoch);
	assert_int_equal(header_on(o, 3)->promised_epoch, epoch);
	direct_start(o->d, 1);
	direct_start(o->d, 2);
	reopen_with(o, 0, 4, PERSEAS_TAKEOVER);
	assert_int_equal(o->p->member_count, 3);
	owner_free(o);
}

/* The newest transaction, which is in doubt, is only on the mirror that leaves the roster: the
 * others get it from there. */
TEST(a_mirror_that_leaves_may_have_the_state)
{
	struct owner *o = begin(3, 2);

	begin_removal(o, "sim://2");
	o->d->mirrors[1].break_at = PERSEAS__REQUEST__BODY_ROSTER;
	o->d->mirrors[1].break_skip = 1;
	OWNER_KEEP_UNTIL(o, header_on(o, 0)->marked);
	assert_int_equal(o->p->upkeep.change.stage, PS_CHANGE_MARKED);
	o->d->mirrors[0].writes_left = o->d->mirrors[1].writes_left = 0;
	assert_int_equal(owner_put(o, 0, 100, 3), PERSEAS_EINDOUBT);
	owner_die(o);
	o->d->mirrors[1].break_at = 0;
	reopen_with(o, 0, 3, PERSEAS_TAKEOVER);
	assert_int_equal(o->bytes[99], 3);
	assert_int_equal(o->p->member_count, 2);
	owner_free(o);
}

/* Mirror 1, which stays in the roster, lost its memory. Mirror 0 alone may make it anew, although
 * the roster before the change had W = 3. */
TEST(one_that_stays_is_made_anew)
{
	struct owner *o = begin_decided(3, 3, "sim://2");

	owner_die(o);
	owner_lose(o, 1);
	reopen_with(o, 0, 3, PERSEAS_TAKEOVER);
	assert_int_equal(o->bytes[99], 2);
	assert_int_equal(o->p->member_count, 2);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	owner_free(o);
}
