/*
 * test_known_store.c - what a standby remembers of its store from one thread to the next.
 */
#include "owner.h"

#include "../../client/core/quorum.h"
#include "../../client/open/open.h"
#include "../../client/standby/known_store.h"

static struct ps_known_store *known;

/* The standby knows this version of the roster of a store, which is then at mirror 4 alone. */
static void put(const uint8_t *store_id, uint64_t version)
{
	struct ps_roster_places places = { .epoch = 1, .version = version, .count = 1 };
	struct ps_settled_store settled = { .roster = calloc(1, sizeof(*settled.roster)) };
	struct ps_error error;

	assert_non_null(settled.roster);
	perseas__roster__init(settled.roster);
	settled.roster->level = 1;
	settled.roster->epoch = 1;
	settled.roster->version = version;
	memcpy(settled.id, store_id, PS_ID_SIZE);
	assert_int_equal(ps_address_parse("sim://4", &places.addresses[0], &error), 0);
	ps_known_store_put(known, &places, &settled);
	assert_null(settled.roster);
}

static int setup(void **state)
{
	(void)state;
	known = ps_known_store_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ps_known_store_release(known);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

/* Takes what is known. */
static void expect(const uint8_t *store_id, uint64_t version, unsigned count, const char *first)
{
	struct ps_roster_places places;
	struct ps_settled_store settled;

	ps_known_store_take(known, &places, &settled);
	assert_non_null(settled.roster);
	assert_memory_equal(settled.id, store_id, PS_ID_SIZE);
	assert_int_equal(settled.roster->version, version);
	assert_int_equal(places.version, version);
	assert_int_equal(places.count, count);
	assert_string_equal(places.addresses[0].text, first);
	ps_roster_free(&settled.roster);
	ps_known_store_take(known, &places, &settled);
	assert_null(settled.roster);
	assert_int_equal(places.count, 0);
}

static const uint8_t other_store[PS_ID_SIZE] = { 1 };

/* The handle was the owner, so its roster is the best knowledge. */
TEST(an_owner_tells_of_its_roster)
{
	struct owner *o = owner_new(3);
	uint8_t id[PS_ID_SIZE];

	put(other_store, 9);
	assert_int_equal(owner_open(o, PERSEAS_CREATE), 0);
	memcpy(id, o->p->store_id, PS_ID_SIZE);
	ps_known_store_learn_from(known, o->p);
	owner_free(o);
	expect(id, 1, 3, "sim://0");
}

/* The application closes the handle after the standby saw what another owner did. */
TEST(an_owner_that_is_closed_late_tells_nothing_old)
{
	struct owner *o = owner_new(3);
	uint8_t id[PS_ID_SIZE];

	assert_int_equal(owner_open(o, PERSEAS_CREATE), 0);
	memcpy(id, o->p->store_id, PS_ID_SIZE);
	put(id, 9);
	ps_known_store_learn_from(known, o->p);
	owner_free(o);
	expect(id, 9, 1, "sim://4");
}

/* The mirrors may have shown an older roster to a handle that could not open, for instance if those
 * of the newer one ended just then. */
TEST(who_never_was_the_owner_tells_nothing)
{
	struct owner *o = owner_new(3);
	struct perseas *p;

	put(other_store, 9);
	assert_int_equal(owner_open(o, PERSEAS_CREATE), 0);
	p = ps_handle_new(direct_env(o->d), STORE, direct_list(o->d), &o->options, &o->error);
	assert_non_null(p);
	ps_known_store_learn_from(known, p);
	assert_int_equal(ps_open_handle(p, &p, &o->error), PERSEAS_EBUSY);
	owner_free(o);
	expect(other_store, 9, 1, "sim://4");
}

/* A thread that saw no store does not hide what a handle told meanwhile. */
TEST(who_saw_no_store_tells_nothing)
{
	struct ps_roster_places places = { 0 };
	struct ps_settled_store settled = { 0 };

	put(other_store, 9);
	ps_known_store_put(known, &places, &settled);
	expect(other_store, 9, 1, "sim://4");
}
