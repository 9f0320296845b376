/*
 * test_shadow.c - PERSEAS_CHECK_WRITES by the pages that were written and by all memory, over
 * fabrics that copy at once and over the ring: what was not declared is found, whatever comes
 * between.
 */
#include "track_rig.h"

#define CHECKED(name) EACH_WAY_OF(1, PERSEAS_CHECK_WRITES, name)

/* A transaction without ranges. */
static int commit_nothing(void)
{
	perseas_tx_t *tx = owner_tx(o);
	const int rc = perseas_commit(tx, 0);

	if (rc)
		assert_int_equal(perseas_abort(tx), 0);
	return rc;
}

/* --- how it is done is chosen, and said --- */

CHECKED(the_report_says_how)
{
	const bool pages = o->d->written != NULL;

	assert_non_null(strstr(perseas_report(o->p), pages ? "compare the pages that were written"
	                                                   : "compare all memory"));
	assert_true((o->p->written != NULL) == pages);
}

static struct ps_written *begin_fails(struct ps_env *env, struct ps_error *error)
{
	(void)env;
	ps_error_set(error, PERSEAS_ESYSTEM, "no such thing here");
	return NULL;
}

/* Without the means all memory is compared, and the report has the reason. */
TEST(without_the_means_all_is_compared)
{
	static const struct ps_written_ops none = { .begin = begin_fails };

	begin_store(&ways[0], 1, PERSEAS_CHECK_WRITES);
	o->d->written = &none;
	assert_int_equal(owner_open(o, PERSEAS_CHECK_WRITES), 0);
	owner_map(o);
	assert_non_null(strstr(perseas_report(o->p), "no such thing here"));
	o->bytes[77] ^= 1;
	assert_int_equal(commit_nothing(), PERSEAS_EUNDECLARED);
	assert_says(o, "byte 77 of");
	owner_free(o);
}

/* --- what was not declared is found --- */

/* The store is found until it is put back: a commit that was refused forgets nothing. */
CHECKED(it_is_found_until_it_is_put_back)
{
	large[FAR + 5] ^= 1;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(commit_nothing(), PERSEAS_EUNDECLARED);
		assert_says(o, "byte 135173 of segment 'large'");
	}
	large[FAR + 5] ^= 1;
	assert_int_equal(commit_nothing(), 0);
	large[LARGE - 1] ^= 1;
	assert_int_equal(commit_nothing(), PERSEAS_EUNDECLARED);
	assert_says(o, "byte 163939 of segment 'large'");
	large[LARGE - 1] ^= 1;
	assert_int_equal(commit_nothing(), 0);
}

/* A commit in doubt refuses others; what was looked at meanwhile is still found afterwards. */
CHECKED(it_is_found_after_a_commit_in_doubt)
{
	perseas_tx_t *tx, *other;

	if (!o->d->staged)
		return;
	tx = owner_tx(o);
	other = owner_tx(o);
	large[FAR] ^= 1;
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EUNDECLARED);
	large[FAR] ^= 1;
	assert_int_equal(perseas_set_range(other, large + FAR, 1), 0);
	large[FAR]++;
	o->d->mirrors[0].hold = DIRECT_HOLD_WRITES;
	assert_int_equal(perseas_commit(other, 0), PERSEAS_EINDOUBT);
	large[FAR + 1]++;
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EBLOCKED);
	o->d->mirrors[0].hold = DIRECT_HOLD_NOTHING;
	direct_release(o->d, 0, 100);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EUNDECLARED);
	assert_says(o, "byte 135169 of");
	large[FAR + 1]--;
	assert_int_equal(perseas_commit(tx, 0), 0);
}

/* The store is in a page in which another transaction declared a range. */
CHECKED(it_is_found_beside_what_is_declared)
{
	perseas_tx_t *one = owner_tx(o), *other = owner_tx(o);

	assert_int_equal(perseas_set_range(other, large + FAR + 10, 10), 0);
	assert_int_equal(perseas_set_range(other, large + FAR + 30, 2 * PAGE), 0);
	memset(large + FAR + 10, 5, 10);
	memset(large + FAR + 30, 5, 2 * PAGE);
	assert_int_equal(perseas_commit(one, 0), 0);
	/* The page was looked at, and differs in what is declared alone. */
	one = owner_tx(o);
	large[FAR + 25] = 5;
	assert_int_equal(perseas_commit(one, 0), PERSEAS_EUNDECLARED);
	assert_says(o, "byte 135193 of");
	assert_int_equal(perseas_set_range(one, large + FAR + 20, 10), 0);
	assert_int_equal(perseas_commit(one, 0), 0);
	assert_int_equal(perseas_commit(other, 0), 0);
	assert_int_equal(commit_nothing(), 0);
}

/* Stores of other owners during the unmapping are committed contents. */
CHECKED(it_is_found_in_a_new_mapping)
{
	void *addr;

	assert_int_equal(owner_put(o, 0, 50, 9), 0);
	assert_int_equal(perseas_unmap(o->p, large), 0);
	assert_int_equal(commit_nothing(), 0);
	assert_int_equal(perseas_map(o->p, "large", 0, &addr), 0);
	assert_ptr_equal(addr, large);
	assert_int_equal(commit_nothing(), 0);
	large[FAR] ^= 1;
	assert_int_equal(commit_nothing(), PERSEAS_EUNDECLARED);
	large[FAR] ^= 1;
	assert_int_equal(perseas_map(o->p, "new", LARGE, &addr), 0);
	((uint8_t *)addr)[0] = 1;
	assert_int_equal(commit_nothing(), 0);
	assert_int_equal(perseas_publish(o->p), 0);
	assert_int_equal(commit_nothing(), 0);
	((uint8_t *)addr)[2 * PAGE] = 1;
	assert_int_equal(commit_nothing(), PERSEAS_EUNDECLARED);
	assert_says(o, "byte 8192 of segment 'new'");
}

/* The application takes the means away, by closing what is not its own. */
static int take_fails(struct ps_written *written, const uint8_t *base, uint64_t offset,
                      uint64_t length, uint64_t *set)
{
	(void)written;
	(void)base;
	(void)offset;
	(void)length;
	(void)set;
	return -1;
}

CHECKED(all_is_compared_when_the_means_fail)
{
	static struct ps_written_ops broken;

	if (!o->d->written)
		return;
	assert_int_equal(commit_nothing(), 0);
	broken = ps_written_pages;
	broken.take = take_fails;
	o->p->env->written = &broken;
	large[FAR] ^= 1;
	for (int i = 0; i < 2; i++)
		assert_int_equal(commit_nothing(), PERSEAS_EUNDECLARED);
	o->p->env->written = &ps_written_pages;
	large[FAR] ^= 1;
	large[0] ^= 1;
	assert_int_equal(commit_nothing(), PERSEAS_EUNDECLARED);
}

/* --- what is sent, and what is remembered --- */

/* Another thread stores to what is being sent: the mirrors got the one, memory has the other. */
static void scribble(void *arg, const struct direct_write *write)
{
	(void)arg;
	if (write->part == DIRECT_UNDO)
		large[FAR] = 99;
}

CHECKED(the_shadow_is_what_was_sent)
{
	const struct direct_tap tap = { .write = scribble };
	perseas_tx_t *tx = owner_tx(o);

	assert_int_equal(perseas_set_range(tx, large + FAR, 1), 0);
	large[FAR] = 7;
	o->d->tap = &tap;
	assert_int_equal(perseas_commit(tx, 0), 0);
	o->d->tap = NULL;
	assert_int_equal(large[FAR], 99);
	assert_int_equal(commit_nothing(), PERSEAS_EUNDECLARED);
	large[FAR] = 7;
	assert_int_equal(commit_nothing(), 0);
}

/* Many ranges, which take a longer chain than was made room for; and a large one. */
CHECKED(the_mirrors_get_what_was_changed)
{
	perseas_tx_t *tx = owner_tx(o);

	for (unsigned i = 0; i < 300; i++) {
		assert_int_equal(perseas_set_range(tx, large + i * 400, 3), 0);
		memset(large + i * 400, (int)i, 3);
	}
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(commit_nothing(), 0);
	o->d->written = NULL;
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), 0);
	map_large();
	for (unsigned i = 0; i < 300; i++)
		assert_int_equal(large[i * 400 + 2], (uint8_t)i);
	assert_int_equal(large[3], expected[3]);
}

/* Only what was written is compared. A shadow that differs unseen shows which was. */
TEST(compares_written)
{
	struct ps_segment *segment;

	if (!can(&ways[2]))
		skip();
	begin_store(&ways[2], 1, PERSEAS_CHECK_WRITES);
	segment = ps_segment_by_name(o->p, "large");
	large[FAR] ^= 1;
	assert_int_equal(commit_nothing(), PERSEAS_EUNDECLARED);
	large[FAR] ^= 1;
	assert_int_equal(commit_nothing(), 0);
	segment->shadow[FAR] ^= 1;
	large[2 * PAGE] ^= 1;
	assert_int_equal(commit_nothing(), PERSEAS_EUNDECLARED);
	assert_says(o, "byte 8192 of");
	large[2 * PAGE] ^= 1;
	assert_int_equal(commit_nothing(), 0);
	*(volatile uint8_t *)&large[FAR + 1] = 1;
	assert_int_equal(commit_nothing(), PERSEAS_EUNDECLARED);
	assert_says(o, "byte 135168 of");
	owner_free(o);
}
