/*
 * test_known_store.c - which mirrors a standby remembers from one thread to the next.
 */
#include "owner.h"

#include "../../client/open/open.h"
#include "../../client/standby/known_store.h"

/* The standby knows of a roster that is newer than that of the store of the tests. */
static struct ps_known_store *begin(void)
{
	struct ps_known_store *known = ps_known_store_new();
	struct ps_roster_places places = { .epoch = 1, .version = 9, .count = 1 };
	struct ps_error error;

	assert_int_equal(ps_address_parse("sim://4", &places.addresses[0], &error), 0);
	ps_known_store_set(known, &places);
	return known;
}

static void expect(struct ps_known_store *known, uint64_t epoch, unsigned count, const char *first)
{
	struct ps_roster_places places;

	ps_known_store_get(known, &places);
	assert_int_equal(places.epoch, epoch);
	assert_int_equal(places.count, count);
	assert_string_equal(places.addresses[0].text, first);
	ps_known_store_release(known);
}

/* The handle was the owner, so its roster is the best knowledge. */
TEST(an_owner_tells_of_its_roster)
{
	struct ps_known_store *known = begin();
	struct owner *o = owner_new(3);

	assert_int_equal(owner_open(o, PERSEAS_CREATE), 0);
	ps_known_store_learn_from(known, o->p);
	owner_free(o);
	expect(known, 0, 3, "sim://0");
}

/* The mirrors may have shown an older roster to a handle that could not open, for instance if those
 * of the newer one ended just then. */
TEST(who_never_was_the_owner_tells_nothing)
{
	struct ps_known_store *known = begin();
	struct owner *o = owner_new(3);
	struct perseas *p;

	assert_int_equal(owner_open(o, PERSEAS_CREATE), 0);
	p = ps_handle_new(direct_env(o->d), STORE, direct_list(o->d), &o->options, &o->error);
	assert_non_null(p);
	ps_known_store_learn_from(known, p);
	assert_int_equal(ps_open_handle(p, &p, &o->error), PERSEAS_EBUSY);
	owner_free(o);
	expect(known, 1, 1, "sim://4");
}
