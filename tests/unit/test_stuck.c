/*
 * test_stuck.c - an owner lives and enough mirrors for an open answer, but none that comes back may
 * be copied to, since too few others hold this owner's claim (I9). The owner claims all mirrors
 * again under a higher epoch. It copies nothing that cannot count.
 */
#include "resync_rig.h"

struct unit_fixture unit_fixture = { setup, teardown };

enum { TEN_SECONDS = 500 }; /* in rounds of 20 ms */

/* Counts the images that the owner asked for: second ones, or joining in place. */
struct asked {
	struct direct_tap tap;
	unsigned images;
	struct direct_mirror *broken; /* the link to this mirror breaks under each copy, or NULL */
};

static void note_request(void *arg, unsigned mirror, unsigned session, const uint8_t *bytes,
                         size_t len)
{
	struct asked *asked = arg;
	const char *why;
	Perseas__Request *request = ps_request_unpack(bytes, len, &why);

	(void)mirror;
	(void)session;
	asked->images += request->body_case == PERSEAS__REQUEST__BODY_REBUILD ||
	                 request->body_case == PERSEAS__REQUEST__BODY_JOINING;
	perseas__request__free_unpacked(request, NULL);
}

static void break_copies(void *arg, const struct direct_write *write)
{
	struct asked *asked = arg;

	if (asked->broken && write->region >= PS_REGION_SEGMENT)
		asked->broken->writes_left = 0;
}

static void count_images(struct fixture *f, struct asked *asked)
{
	*asked = (struct asked){
		.tap = { .arg = asked, .request = note_request, .write = break_copies }
	};
	f->o->d->tap = &asked->tap;
}

static void keep(struct fixture *f, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		direct_keep(f->o->d, f->o->p);
}

/* Another owner opened the store while `away` was down. */
static void change_owner_without(struct fixture *f, unsigned away)
{
	direct_crash(f->o->d, away);
	assert_int_equal(put_big(f, 10, 500, 1), 0);
	owner_die(f->o);
	owner_reopen(f->o);
	map_big(f);
	assert_int_equal(put_big(f, 700, 500, 2), 0);
}

/* Three mirrors, W = 2. The owner opened the store without the last one. The second one dies, and
 * the last one comes back as it was: the first one alone may not let it vote. */
TEST(an_owner_without_w_claims_again_when_an_open_would_do, struct fixture *f)
{
	struct asked asked;
	uint64_t epoch;

	change_owner_without(f, 2);
	epoch = owner_stat(f->o).epoch;
	count_images(f, &asked);
	direct_crash(f->o->d, 1);
	direct_start(f->o->d, 2);
	assert_int_equal(put_big(f, 20, 50, 3), PERSEAS_EINDOUBT);
	keep(f, 300);
	assert_int_equal(perseas_flush(f->o->p), 0);
	assert_int_equal(put_big(f, 30, 50, 4), 0);
	assert_int_equal(owner_stat(f->o).renewals, 1);
	assert_true(owner_stat(f->o).epoch > epoch);
	assert_int_equal(asked.images, 1);
	f->o->d->tap = NULL;
	direct_start(f->o->d, 1);
	assert_catches_up(f, 1);
	assert_carries(f, 0);
}
TEST_ALSO(an_owner_without_w_claims_again_when_an_open_would_do, setup_direct, teardown);

/* The last mirror and the owner die while the owner copies to this mirror in place. The mirror
 * comes back, and has no room for a second image. */
static void break_a_copy_in_place(struct fixture *f)
{
	struct asked asked;

	change_owner_without(f, 2);
	memory_heap_set_limit(f->o->d->mirrors[2].memory, BIG + BIG / 2);
	count_images(f, &asked);
	direct_start(f->o->d, 2);
	OWNER_KEEP_UNTIL(f->o, asked.images);
	f->o->d->tap = NULL;
	direct_crash(f->o->d, 2);
	owner_die(f->o);
	direct_start(f->o->d, 2);
}

/* The last mirror died while an earlier owner copied to it in place, and the second one dies under
 * this owner. The half-made image is no candidate, but counts towards R (I6), so an open would
 * succeed, and the owner claims again. */
TEST(a_copy_that_was_harmless_when_it_broke_counts, struct fixture *f)
{
	break_a_copy_in_place(f);
	owner_reopen(f->o);
	map_big(f);
	direct_crash(f->o->d, 1);
	assert_int_equal(put_big(f, 20, 50, 3), PERSEAS_EINDOUBT);
	keep(f, 300);
	assert_int_equal(perseas_flush(f->o->p), 0);
	assert_int_equal(owner_stat(f->o).renewals, 1);
	direct_start(f->o->d, 1);
	assert_catches_up(f, 1);
	assert_carries(f, 0);
}
TEST_ALSO(a_copy_that_was_harmless_when_it_broke_counts, setup_direct, teardown);

/* The second mirror is dead before the next open, which needs the last mirror for W: the open
 * finishes the copy in place. */
TEST(an_open_needs_no_room_beside_a_copy_that_broke, struct fixture *f)
{
	break_a_copy_in_place(f);
	direct_crash(f->o->d, 1);
	owner_reopen(f->o);
	map_big(f);
	assert_int_equal(owner_stat(f->o).mended_whole, 1);
	assert_int_equal(put_big(f, 20, 50, 3), 0);
	assert_memory_equal(f->big, owner_piece(f->o, 2, "segment-1"), BIG);
	direct_start(f->o->d, 1);
	assert_catches_up(f, 1);
	assert_carries(f, 0);
}

/* The second mirror dies while this owner copies to the last one in place. */
TEST(a_copy_that_may_not_end_counts_in_a_renewal, struct fixture *f)
{
	struct asked asked;

	change_owner_without(f, 2);
	count_images(f, &asked);
	asked.broken = &f->o->d->mirrors[1];
	direct_start(f->o->d, 2);
	OWNER_KEEP_UNTIL(f->o, asked.images);
	direct_crash(f->o->d, 1);
	asked.broken = NULL;
	assert_int_equal(put_big(f, 20, 50, 3), PERSEAS_EINDOUBT);
	keep(f, 300);
	f->o->d->tap = NULL;
	assert_int_equal(perseas_flush(f->o->p), 0);
	assert_int_equal(owner_stat(f->o).renewals, 1);
	direct_start(f->o->d, 1);
	assert_catches_up(f, 1);
	assert_carries(f, 0);
}

/* The second mirror only lost its connections, and answers slowly: it is taken up again, and
 * nothing is claimed. */
TEST(a_connection_that_was_reset_is_no_reason, struct fixture *f)
{
	change_owner_without(f, 2);
	direct_start(f->o->d, 2);
	direct_cut(f->o->d, 1);
	answer_slowly(f->o, 1, PERSEAS__REQUEST__BODY_CLAIM);
	assert_int_equal(put_big(f, 20, 50, 3), PERSEAS_EINDOUBT);
	reach_live(f->o, 2);
	assert_int_equal(perseas_flush(f->o->p), 0);
	assert_int_equal(owner_stat(f->o).renewals, 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(owner_state(f->o, i), PERSEAS_MIRROR_LIVE);
	assert_carries(f, 0);
}

/* The second mirror died, was tried, and is there again when the last one comes back: it has
 * answered, and takes long for the claim. */
TEST(a_mirror_that_has_answered_is_waited_for, struct fixture *f)
{
	const struct ps_mirror *second;

	change_owner_without(f, 2);
	second = &f->o->p->mirrors[1];
	direct_crash(f->o->d, 1);
	for (unsigned rounds = 0; rounds < 20; rounds++)
		direct_keep_after(f->o->d, f->o->p, ROUND);
	answer_slowly(f->o, 1, PERSEAS__REQUEST__BODY_CLAIM);
	direct_start(f->o->d, 1);
	for (unsigned rounds = 0; second->session.state != PS_SESSION_CLAIMING; rounds++) {
		assert_true(rounds < ROUNDS);
		direct_keep_after(f->o->d, f->o->p, ROUND);
	}
	direct_start(f->o->d, 2);
	reach_live(f->o, 2);
	assert_int_equal(owner_stat(f->o).renewals, 0);
	assert_carries(f, 0);
}

/* Five mirrors, W = 3. The owner opened the store without the last one, and then two others hang,
 * one after the other, so that it waits for an answer of one of them at any time. */
TEST_WITH(two_mirrors_that_hang_in_turn_are_tried, setup_five, teardown, struct fixture *f)
{
	change_owner_without(f, 4);
	for (unsigned i = 0; i < 2; i++) {
		direct_hang(f->o->d, i);
		direct_cut(f->o->d, i);
		for (unsigned rounds = 0; rounds < 20; rounds++)
			direct_keep_after(f->o->d, f->o->p, ROUND);
	}
	direct_start(f->o->d, 4);
	for (unsigned i = 0; i < TEN_SECONDS; i++)
		direct_keep_after(f->o->d, f->o->p, ROUND);
	assert_int_equal(owner_stat(f->o).renewals, 1);
	assert_int_equal(put_big(f, 20, 50, 3), 0);
	for (unsigned i = 0; i < 2; i++) {
		direct_unhang(f->o->d, i);
		assert_catches_up(f, i);
	}
	assert_carries(f, 2);
}

/* The second image does not fit into its memory. The owner says so, and tries again with pauses.
 */
TEST(a_mirror_without_room_is_named, struct fixture *f)
{
	struct perseas_mirror_stat stat;
	struct asked asked;

	change_owner_without(f, 2);
	direct_crash(f->o->d, 1);
	memory_heap_set_limit(f->o->d->mirrors[2].memory, BIG + BIG / 2);
	count_images(f, &asked);
	direct_start(f->o->d, 2);
	assert_int_equal(put_big(f, 20, 50, 3), PERSEAS_EINDOUBT);
	for (unsigned i = 0; i < TEN_SECONDS; i++)
		direct_keep_after(f->o->d, f->o->p, ROUND);
	assert_int_equal(perseas_mirror_stat(f->o->p, 2, &stat), 0);
	assert_non_null(strstr(stat.trouble, "memory"));
	assert_in_range(asked.images, 5, 25);
	memory_heap_set_limit(f->o->d->mirrors[2].memory, 0);
	keep(f, 300);
	assert_int_equal(perseas_flush(f->o->p), 0);
	f->o->d->tap = NULL;
	direct_start(f->o->d, 1);
	assert_carries(f, 1);
}

static unsigned broken_copies; /* of which events told */

static void count_broken_copy(void *arg, const struct perseas_event *event)
{
	(void)arg;
	broken_copies += event->kind == PERSEAS_EVENT_RESYNC_BROKEN;
}

/* The link to the last mirror breaks under every copy. Each copy waits longer for the next one, and
 * the owner says so. When the link holds, the copy ends, and nothing is counted any more. */
TEST(a_copy_of_a_renewal_that_breaks_backs_off, struct fixture *f)
{
	struct perseas_mirror_stat stat;
	struct asked asked;

	broken_copies = 0;
	f->o->options.on_event = count_broken_copy;
	change_owner_without(f, 2);
	direct_crash(f->o->d, 1);
	count_images(f, &asked);
	direct_start(f->o->d, 2);
	asked.broken = &f->o->d->mirrors[2];
	assert_int_equal(put_big(f, 20, 50, 3), PERSEAS_EINDOUBT);
	for (unsigned i = 0; i < TEN_SECONDS; i++)
		direct_keep_after(f->o->d, f->o->p, ROUND);
	assert_int_equal(perseas_mirror_stat(f->o->p, 2, &stat), 0);
	assert_non_null(strstr(stat.trouble, "in a row that did not end"));
	assert_in_range(asked.images, 3, 5);
	assert_int_equal(f->o->p->mirrors[2].broken_copies.broken_copy_count, asked.images);
	assert_int_equal(broken_copies, asked.images);
	asked.broken = NULL;
	keep(f, 600);
	assert_int_equal(perseas_flush(f->o->p), 0);
	assert_int_equal(f->o->p->mirrors[2].broken_copies.broken_copy_count, 0);
	f->o->d->tap = NULL;
	direct_start(f->o->d, 1);
	assert_carries(f, 1);
}

/* What the first mirror is told about the last one, and for how long it is told nothing. */
struct told {
	struct direct_tap tap;
	struct direct *d;
	bool without_room;
	uint64_t at, longest;
};

static void note_sign(void *arg, unsigned mirror, unsigned session, const uint8_t *bytes,
                      size_t len)
{
	struct told *told = arg;
	const char *why;
	Perseas__Request *request = ps_request_unpack(bytes, len, &why);
	const bool sign = request->body_case == PERSEAS__REQUEST__BODY_CONFIRM;

	(void)session;
	if (!mirror && sign && request->confirm->n_mirrors)
		told->without_room = strstr(request->confirm->mirrors[2]->trouble, "memory");
	if (!mirror) {
		if (told->at && told->d->now - told->at > told->longest)
			told->longest = told->d->now - told->at;
		told->at = told->d->now;
	}
	perseas__request__free_unpacked(request, NULL);
}

/* Each piece of the copy takes long. */
static void write_slowly(void *arg, const struct direct_write *write)
{
	struct told *told = arg;

	if (write->mirror == 2 && write->region >= PS_REGION_SEGMENT)
		told->d->now += 700 * MS;
}

static void hear_signs(struct fixture *f, struct told *told)
{
	*told = (struct told){ .tap = { .arg = told, .request = note_sign }, .d = f->o->d };
	f->o->d->tap = &told->tap;
}

/* The owner claims again and again in vain, since the last mirror has no room for its copy. What it
 * lacks is told to the mirrors, which tell perseas status. */
TEST(mirrors_hear_why_claiming_again_is_in_vain, struct fixture *f)
{
	struct told told;

	change_owner_without(f, 2);
	direct_crash(f->o->d, 1);
	memory_heap_set_limit(f->o->d->mirrors[2].memory, BIG + BIG / 2);
	direct_start(f->o->d, 2);
	hear_signs(f, &told);
	assert_int_equal(put_big(f, 20, 50, 3), PERSEAS_EINDOUBT);
	keep(f, 300);
	assert_true(told.without_room);
	assert_int_equal(owner_stat(f->o).renewals, 0);
	owner_die(f->o);
	f->o->d->tap = NULL;
}

/* The copy to the last mirror takes some seconds. The first one hears that the owner lives. */
TEST(a_copy_in_a_renewal_delays_no_sign_of_life, struct fixture *f)
{
	struct told told;

	change_owner_without(f, 2);
	direct_crash(f->o->d, 1);
	direct_start(f->o->d, 2);
	hear_signs(f, &told);
	told.tap.write = write_slowly;
	assert_int_equal(put_big(f, 20, 50, 3), PERSEAS_EINDOUBT);
	OWNER_KEEP_UNTIL(f->o, owner_stat(f->o).renewals);
	assert_true(told.longest < 2000 * MS);
	f->o->d->tap = NULL;
	direct_start(f->o->d, 1);
	assert_catches_up(f, 1);
	assert_carries(f, 0);
}

static int setup_four(void **state)
{
	return setup_of(state, 4, 2, true);
}

/* Four mirrors, W = 2, R = 3. Commits go on with two. A third one comes back that this owner did
 * not adopt: I9 asks for three others, so nothing is copied to it until there are three. */
TEST_WITH(nothing_is_copied_that_cannot_count, setup_four, teardown, struct fixture *f)
{
	struct asked asked;

	change_owner_without(f, 3);
	direct_crash(f->o->d, 2);
	count_images(f, &asked);
	direct_start(f->o->d, 3);
	keep(f, 300);
	assert_int_equal(put_big(f, 20, 50, 3), 0);
	assert_int_equal(asked.images, 0);
	assert_int_equal(owner_state(f->o, 3), PERSEAS_MIRROR_STALE);
	assert_int_equal(owner_stat(f->o).renewals, 0);
	direct_start(f->o->d, 2);
	assert_catches_up(f, 3);
	assert_int_equal(asked.images, 1);
	f->o->d->tap = NULL;
}
