/*
 * test_unfilled_joining.c - a filler ends while it copies to a mirror: the half-made image shows
 * nothing of the transaction that fills the store.
 */
#include "owner.h"

#include "../../client/open/open.h"
#include "../../client/open/unfilled.h"
#include "../../server/store/store_private.h"

enum { ROUNDS = 100 };

static int setup_three(void **state)
{
	*state = owner_new(3);
	return 0;
}

struct unit_fixture unit_fixture = { setup_three, owner_teardown };

static const Perseas__Header *header_at(struct owner *o, unsigned mirror)
{
	const struct store *store = store_find(o->d->mirrors[mirror].stores, STORE);

	return store ? store->header : NULL;
}

static bool is_joining(struct owner *o, unsigned mirror)
{
	const Perseas__Header *header = header_at(o, mirror);

	return header && header->state == PERSEAS__STATE__STATE_JOINING;
}

static void begin_filling(struct owner *o)
{
	uint8_t id[PS_ID_SIZE];

	assert_int_equal(ps_open_filling(direct_env(o->d), STORE, direct_list(o->d), &o->options,
	                                 id, &o->p, &o->error),
	                 0);
}

static int remove_unfilled(struct owner *o)
{
	return ps_unfilled_store_remove(direct_env(o->d), STORE, direct_list(o->d), &o->options,
	                                NULL, &o->error);
}

/* The owner dies while mirror 1, which lost its memory, is copied to. */
static void die_in_a_copy(struct owner *o)
{
	owner_lose(o, 1);
	for (unsigned i = 0; i < ROUNDS && !is_joining(o, 1); i++)
		direct_keep(o->d, o->p);
	assert_true(is_joining(o, 1));
	owner_die(o);
	assert_true(is_joining(o, 1));
}

TEST(a_copy_that_did_not_end_keeps_no_unfinished_store, struct owner *o)
{
	begin_filling(o);
	die_in_a_copy(o);
	assert_int_equal(remove_unfilled(o), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_null(header_at(o, i));
}

/* The two others hold the transaction. With one of them down, the other one shows it. */
TEST(a_copy_that_did_not_end_hides_no_filled_store, struct owner *o)
{
	void *addr;

	begin_filling(o);
	assert_int_equal(perseas_map(o->p, "accounts", SIZE, &addr), 0);
	memset(addr, 7, SIZE);
	assert_int_equal(perseas_publish(o->p), 0);
	die_in_a_copy(o);
	assert_int_equal(remove_unfilled(o), PERSEAS_EEXIST);
	direct_crash(o->d, 0);
	assert_int_equal(remove_unfilled(o), PERSEAS_EEXIST);
}
