/*
 * test_hidden_roster.c - a roster that an owner recorded on fewer than W mirrors, and that the next
 * owner does not see: it must not take the mirrors of what that owner commits out of the count.
 */
#include "owner.h"

#include "../../server/store/store_private.h"

struct unit_fixture unit_fixture = { owner_setup_three, owner_teardown };

static const Perseas__Header *header_on(struct owner *o, unsigned mirror)
{
	return store_find(o->d->mirrors[mirror].stores, STORE)->header;
}

/* Mirror 1 starts without its image, and its owner dies before it makes that anew, when mirror 0
 * alone has the roster with the new id. Then mirror 1 has its image, and mirror 0 is away. */
static void hide_roster(struct owner *o)
{
	const uint64_t version = header_on(o, 0)->roster->version;
	struct direct_mirror *m = &o->d->mirrors[1];
	struct memory *image;

	direct_crash(o->d, 1);
	image = memory_heap_copy(m->memory);
	assert_non_null(image);
	memory_heap_lose(m->memory, NULL);
	direct_start(o->d, 1);
	o->d->mirrors[2].break_at = PERSEAS__REQUEST__BODY_ROSTER;
	m->break_at = PERSEAS__REQUEST__BODY_REBUILD;
	for (unsigned rounds = 0; header_on(o, 0)->roster->version == version; rounds++) {
		assert_true(rounds < 1000);
		direct_keep(o->d, o->p);
	}
	assert_int_equal(header_on(o, 2)->roster->version, version);
	owner_die(o);
	m->break_at = o->d->mirrors[2].break_at = 0;
	direct_crash(o->d, 1);
	memory_heap_free(m->memory);
	m->memory = image;
	direct_start(o->d, 1);
	direct_crash(o->d, 0);
}

/* Mirror 2 is lost then: what was committed is on mirror 1, which mirror 0 does not list. */
static void assert_survives_on_mirror_1(struct owner *o)
{
	assert_int_equal(owner_put(o, 0, 10, 0x77), 0);
	owner_die(o);
	direct_crash(o->d, 2);
	memory_heap_lose(o->d->mirrors[2].memory, NULL);
	direct_start(o->d, 0);
	owner_reopen(o);
	assert_int_equal(o->bytes[0], 0x77);
	assert_int_equal(owner_stat(o).live, 2);
}

TEST(an_open_that_does_not_see_it_replaces_it, struct owner *o)
{
	hide_roster(o);
	owner_reopen(o);
	assert_int_equal(owner_stat(o).live, 2);
	assert_survives_on_mirror_1(o);
}

/* An open that claimed all members has seen every roster that there is. */
TEST(an_open_that_sees_all_records_none, struct owner *o)
{
	const uint64_t version = header_on(o, 0)->roster->version;

	owner_next(o);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(header_on(o, i)->roster->version, version);
}
