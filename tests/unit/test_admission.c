/*
 * test_admission.c - who gets in, who goes, and whose turn it is.
 */
#include "../../server/loop/admission.h"
#include "../support/unit.h"

enum { MAX = 8, KEPT = 2, MANY = 64 };

struct one {
	struct admitted admitted;
	bool is_owner, gone;
};

struct rig {
	struct admission admission;
	struct one ones[MANY];
	unsigned count;
};

static bool owns(const struct admitted *admitted)
{
	return ((const struct one *)admitted)->is_owner;
}

static void evict(struct admitted *admitted)
{
	((struct one *)admitted)->gone = true;
	admission_remove(admitted);
}

static int setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	rig->admission.max_connections = MAX;
	rig->admission.reserved_for_owners_and_unix = KEPT;
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	for (unsigned i = 0; i < rig->count; i++)
		admission_remove(&rig->ones[i].admitted);
	assert_int_equal(rig->admission.connection_count, 0);
	admission_free_origins(&rig->admission);
	assert_null(rig->admission.origins);
	free(rig);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

/* Returns the new connection, or NULL if it was refused. Later guests were heard later. */
static struct one *come(struct rig *rig, const char *origin, bool local)
{
	struct one *one = &rig->ones[rig->count];

	one->admitted.is_unix_socket = local;
	one->admitted.last_heard_ms = rig->count;
	one->admitted.is_owner = owns;
	one->admitted.evict = evict;
	if (!admission_admit(&rig->admission, &one->admitted, origin))
		return NULL;
	rig->count++;
	return one;
}

/* One address takes all places; then another comes, and the first again. */
TEST(the_longest_silent_of_the_most_goes, struct rig *rig)
{
	struct one *other = come(rig, "b", false), *first = come(rig, "a", false), *later;

	for (int i = 0; i < MAX - KEPT - 2; i++)
		later = come(rig, "a", false);
	first->admitted.last_heard_ms = 100;
	assert_int_equal(rig->admission.connection_count, MAX - KEPT);
	assert_non_null(come(rig, "b", false));
	assert_true(rig->ones[2].gone);
	assert_non_null(come(rig, "a", false));
	assert_true(rig->ones[3].gone);
	assert_false(other->gone || first->gone || later->gone);
	assert_int_equal(rig->admission.connection_count, MAX - KEPT);
	assert_int_equal(rig->admission.evicted_count, 2);
}

/* All within one millisecond: who came last has had no time to speak. */
TEST(of_those_as_silent_the_first_goes, struct rig *rig)
{
	for (unsigned i = 0; i < MAX - KEPT; i++)
		come(rig, "a", false)->admitted.last_heard_ms = 7;
	for (unsigned i = 0; i < 3; i++) {
		assert_true(admission_evict_one(&rig->admission));
		assert_true(rig->ones[i].gone);
		assert_int_equal(rig->admission.evicted_count, i + 1);
	}
}

/* Places that plain TCP may not use are there for Unix sockets and owners. */
TEST(a_part_is_kept_from_plain_tcp, struct rig *rig)
{
	struct one *owner;

	for (int i = 0; i < MAX; i++)
		assert_non_null(come(rig, "a", false));
	assert_int_equal(rig->admission.connection_count, MAX - KEPT);
	owner = come(rig, "a", false);
	owner->is_owner = true;
	assert_non_null(come(rig, "a", false));
	assert_int_equal(rig->admission.connection_count, MAX - KEPT + 1);
	assert_non_null(come(rig, "unix", true));
	assert_int_equal(rig->admission.connection_count, MAX);
	assert_non_null(come(rig, "unix", true));
	assert_int_equal(rig->admission.connection_count, MAX);
	assert_false(owner->gone);
}

/* Connections over Unix sockets take all that there is, and then others come over TCP, or the other
 * way. Those that come later get half of what owners leave, and no more. */
TEST(neither_kind_keeps_the_other_out, struct rig *rig)
{
	for (int local = 0; local < 2; local++) {
		unsigned late = 0;

		rig->count = 0;
		come(rig, "o", false)->is_owner = true;
		come(rig, "o", true)->is_owner = true;
		for (int i = 0; i < 2 * MAX; i++)
			assert_non_null(come(rig, "a", local));
		assert_int_equal(rig->admission.connection_count, local ? MAX : MAX - KEPT + 2);
		for (int i = 0; i < 2 * MAX; i++)
			assert_non_null(come(rig, i % 2 ? "b" : "c", !local));
		assert_int_equal(rig->admission.connection_count, MAX);
		for (unsigned i = 2; i < rig->count; i++)
			late += !rig->ones[i].gone && rig->ones[i].admitted.is_unix_socket != local;
		assert_int_equal(late, (MAX - 2) / 2);
		for (unsigned i = 0; i < rig->count; i++) {
			admission_remove(&rig->ones[i].admitted);
			rig->ones[i] = (struct one){ 0 };
		}
	}
}

/* All places are taken by owners and one user's silent connections: a data path still finds its
 * own. The last one of all is not for TCP. */
TEST(users_of_this_host_leave_a_place_to_tcp, struct rig *rig)
{
	for (int i = 0; i < MAX - 2; i++)
		come(rig, "a", true)->is_owner = true;
	assert_non_null(come(rig, "b", true));
	assert_non_null(come(rig, "b", true));
	assert_non_null(come(rig, "c", false));
	assert_true(rig->ones[MAX - 2].gone);
	rig->ones[MAX].is_owner = true;
	assert_null(come(rig, "c", false));
	assert_false(rig->ones[MAX - 1].gone);
}

/* Fills every place with owners. */
TEST(an_owner_never_goes, struct rig *rig)
{
	for (int i = 0; i < MAX; i++)
		come(rig, "a", i % 2)->is_owner = true;
	assert_null(come(rig, "b", false));
	assert_null(come(rig, "b", true));
	assert_false(admission_evict_one(&rig->admission));
	assert_int_equal(rig->admission.evicted_count, 0);
	rig->ones[3].is_owner = false;
	assert_null(come(rig, "b", false));
	assert_non_null(come(rig, "b", true));
	assert_true(rig->ones[3].gone);
}

/* The connection's identity becomes known later. */
TEST(who_moves_is_counted_where_it_is, struct rig *rig)
{
	struct one *one = come(rig, "a", false);

	come(rig, "a", false);
	assert_true(admission_change_origin(&one->admitted, "cert:x"));
	assert_string_equal(one->admitted.origin->name, "cert:x");
	assert_int_equal(one->admitted.origin->connection_count, 1);
	assert_int_equal(rig->ones[1].admitted.origin->connection_count, 1);
	assert_true(admission_change_origin(&one->admitted, "a"));
	assert_int_equal(one->admitted.origin->connection_count, 2);
}

/* A second's worth at once, then one after the other at the rate; a rest saves up no more. */
TEST_WITH(a_bucket_gives_a_second_at_once_and_then_the_rate, NULL, NULL)
{
	const uint64_t second = 1000000000, now = 5 * second;
	struct bucket bucket = { 0 };

	for (int i = 0; i < 10; i++)
		assert_int_equal(bucket_take_token(&bucket, 10, now), 0);
	for (unsigned i = 1; i <= 20; i++)
		assert_int_equal(bucket_take_token(&bucket, 10, now), i * second / 10);
	bucket_return_token(&bucket, 10);
	assert_int_equal(bucket_take_token(&bucket, 10, now), 2 * second);
	assert_int_equal(bucket_take_token(&bucket, 10, now + 2 * second), second / 10);
	for (int i = 0; i < 10; i++)
		assert_int_equal(bucket_take_token(&bucket, 10, now + 100 * second), 0);
	assert_int_equal(bucket_take_token(&bucket, 10, now + 100 * second), second / 10);
	assert_int_equal(bucket_take_token(&bucket, 1, 1000 * second), 0);
	assert_int_equal(bucket_take_token(&bucket, 1, 1000 * second), second);
}

/* A client that hangs up after each request is the same client when it returns. */
TEST(who_comes_again_has_used_what_it_used, struct rig *rig)
{
	const uint64_t now = 5000000000;
	struct one *one = come(rig, "a", false);

	assert_int_equal(bucket_take_token(&one->admitted.origin->bucket, 1, now), 0);
	admission_remove(&one->admitted);
	one = come(rig, "a", false);
	assert_true(bucket_take_token(&one->admitted.origin->bucket, 1, now) > 0);
	assert_int_equal(rig->admission.idle_origin_count, 0);
}

/* More clients than can be remembered come once each; the one that used the most is not
 * forgotten. */
TEST(those_that_took_most_are_remembered, struct rig *rig)
{
	const uint64_t now = 5000000000;
	struct one *one = come(rig, "greedy", false);

	for (int i = 0; i < 5; i++)
		bucket_take_token(&one->admitted.origin->bucket, 1, now);
	admission_remove(&one->admitted);
	for (unsigned i = 0; i < 2 * ORIGINS_REMEMBERED_MAX; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%u", i);
		rig->count = 0;
		one = come(rig, name, false);
		bucket_take_token(&one->admitted.origin->bucket, 1, now);
		admission_remove(&one->admitted);
	}
	assert_int_equal(rig->admission.idle_origin_count, ORIGINS_REMEMBERED_MAX);
	one = come(rig, "greedy", false);
	assert_true(bucket_take_token(&one->admitted.origin->bucket, 1, now) > 4000000000);
}

/* Two places each, and some are not theirs; a data path is its owner's second one. */
TEST(owners_leave_places_to_others, struct rig *rig)
{
	rig->admission.reserved_for_operators = 2;
	for (int i = 0; i < (MAX - 2) / 2; i++) {
		assert_true(admission_owner_fits(&rig->admission));
		come(rig, "a", false)->is_owner = true;
		come(rig, "a", false)->is_owner = true;
		rig->ones[2 * i + 1].admitted.is_data_path = true;
	}
	assert_false(admission_owner_fits(&rig->admission));
	for (int i = 0; i < 5; i++)
		assert_non_null(come(rig, "b", false));
	rig->ones[0].is_owner = false;
	assert_true(admission_owner_fits(&rig->admission));
}
