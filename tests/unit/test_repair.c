/*
 * test_repair.c - an operator orders a repair: mirrors are compared with the owner's memory while
 * transactions go on, and what is wrong on one of them is sent. Every repaired image is compared
 * with the ledger, byte for byte.
 */
#include "resync_rig.h"

#include "../../client/core/unsent_granules.h"
#include "../../client/keeper/repair.h"

struct unit_fixture unit_fixture = { setup, teardown };

static const uint8_t order_id[PS_ID_SIZE] = "an order's id";

static struct ps_order_result *result_of(struct fixture *f)
{
	for (unsigned i = 0; i < PS_ORDERS_SAVED; i++)
		if (!memcmp(f->o->p->upkeep.orders.results[i].id, order_id, PS_ID_SIZE))
			return &f->o->p->upkeep.orders.results[i];
	fail_msg("the order has no result");
	return NULL;
}

static void order_repair(struct fixture *f)
{
	ps_admin_enter(f->o->p);
	memset(&f->o->p->upkeep.orders, 0, sizeof(f->o->p->upkeep.orders));
	ps_repair_begin(f->o->p, order_id);
	ps_admin_leave(f->o->p);
}

static void assert_ends(struct fixture *f, int code, const char *text)
{
	OWNER_KEEP_UNTIL(f->o, result_of(f)->is_done);
	assert_int_equal(f->o->p->upkeep.repair.state, PS_REPAIR_NONE);
	if (!strstr(result_of(f)->text, text))
		fail_msg("%s", result_of(f)->text);
	assert_int_equal(result_of(f)->code, code);
}

static void repair(struct fixture *f, int code, const char *text)
{
	order_repair(f);
	assert_ends(f, code, text);
}

/* Spoils a byte of a mirror's image, as memory that fails does. */
static void spoil(struct fixture *f, unsigned mirror, unsigned offset)
{
	((uint8_t *)(uintptr_t)big_of(f, mirror))[offset] ^= 0x10;
}

static void assert_nothing_was_sent(struct fixture *f)
{
	assert_int_equal(owner_stat(f->o).resyncs, 0);
	assert_int_equal(owner_stat(f->o).reconnects, 0);
	for (unsigned i = 0; i < f->o->p->mirror_count; i++)
		assert_null(f->o->p->mirrors[i].unsent_granules);
}

TEST(nothing_differs, struct fixture *f)
{
	repair(f, 0, "no mirror differs from the owner");
	assert_nothing_was_sent(f);
}

/* Only the spoiled pieces are sent, in place. */
TEST(what_is_wrong_is_sent, struct fixture *f)
{
	put_all_over(f, 3);
	spoil(f, 1, 5);
	spoil(f, 1, 4 * GRANULE);
	spoil(f, 1, BIG - 1);
	order_repair(f);
	assert_being_sent(f, 1, "being repaired: it differed from the others",
	                  2 * GRANULE + BIG % GRANULE);
	assert_ends(f, 0, "repaired 3 pieces of 64 KiB on 1 mirror");
	for (unsigned i = 0; i < 3; i++)
		assert_image(f, i);
	assert_carries(f, 0);
}
TEST_ALSO(what_is_wrong_is_sent, setup_direct, teardown);

/* If W is 1, it suffices that one other mirror agrees with the owner. */
TEST_WITH(one_other_mirror_is_w, setup_lone_acks, teardown, struct fixture *f)
{
	spoil(f, 0, 9);
	repair(f, 0, "repaired 1 piece of 64 KiB on 1 mirror");
	assert_image(f, 0);
	assert_image(f, 1);
}

/* Different pieces are wrong on each of three mirrors, which are repaired one after the other. */
TEST(each_mirror_is_repaired_in_its_turn, struct fixture *f)
{
	for (unsigned i = 0; i < 3; i++)
		spoil(f, i, i * 2 * GRANULE);
	order_repair(f);
	for (unsigned rounds = 0; !result_of(f)->is_done; rounds++) {
		assert_true(rounds < ROUNDS);
		direct_keep(f->o->d, f->o->p);
		if (f->o->p->upkeep.repair.state == PS_REPAIR_SENDING)
			assert_int_equal(put_big(f, rounds % BIG, 1, (uint8_t)rounds), 0);
	}
	assert_ends(f, 0, "repaired 3 pieces of 64 KiB on 3 mirrors");
	assert_int_equal(perseas_flush(f->o->p), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_image(f, i);
}

/* Somebody stored without set_range, and a mirror differs elsewhere. */
TEST(an_owner_that_differs_changes_nothing, struct fixture *f)
{
	f->big[6 * GRANULE + 1] ^= 1;
	spoil(f, 1, 9);
	repair(f, PERSEAS_EDAMAGED,
	       "nothing was changed: no mirror agrees with the owner's memory");
	assert_non_null(strstr(result_of(f)->text, "at offset 393216 of segment 'big'"));
	assert_nothing_was_sent(f);
}

/* W = 1, and the owner and both mirrors differ from each other: no majority proves anything. */
TEST_WITH(nobody_agrees, setup_lone_acks, teardown, struct fixture *f)
{
	f->big[9] ^= 1;
	spoil(f, 0, 9);
	repair(f, PERSEAS_EDAMAGED, "no mirror agrees");
	assert_nothing_was_sent(f);
}

/* Two mirrors are wrong in the same way, and only the third agrees with the owner. */
TEST(one_mirror_is_less_than_w, struct fixture *f)
{
	spoil(f, 0, 9);
	spoil(f, 1, 9);
	repair(f, PERSEAS_EQUORUM, "fewer than W mirrors agree with the owner's memory");
	assert_nothing_was_sent(f);
}

/* A mirror is away, so that W others do not agree. */
TEST(too_few_mirrors_are_live, struct fixture *f)
{
	direct_crash(f->o->d, 2);
	assert_int_equal(put_big(f, 9, 1, 9), 0);
	spoil(f, 0, 9);
	repair(f, PERSEAS_EQUORUM, "fewer than W mirrors agree with the owner's memory");
}

/* An open transaction is no difference, and is not sent. */
TEST(open_transactions_are_no_difference, struct fixture *f)
{
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(f->o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, f->big + 9, 1), 0);
	f->big[9] ^= 0xff;
	spoil(f, 1, 5 * GRANULE);
	repair(f, 0, "repaired 1 piece of 64 KiB on 1 mirror");
	perseas_abort(tx);
	for (unsigned i = 0; i < 3; i++)
		assert_image(f, i);
}

/* Runs rounds until the mirrors are asked about "big". */
static void ask_about_big(struct fixture *f)
{
	const struct ps_repair *r = &f->o->p->upkeep.repair;

	for (unsigned i = 0; r->piece_segment_id != 1 || !r->piece_bytes; i++) {
		assert_true(i < ROUNDS);
		direct_keep(f->o->d, f->o->p);
	}
}

/* A granule changes between the question and the answers, which are of no use then. */
TEST(what_changes_meanwhile_is_compared_again, struct fixture *f)
{
	order_repair(f);
	ask_about_big(f);
	assert_int_equal(f->o->p->upkeep.repair.piece_offset, 0);
	assert_int_equal(put_big(f, 3 * GRANULE, 5, 77), 0);
	direct_keep(f->o->d, f->o->p);
	assert_int_equal(f->o->p->upkeep.repair.piece_offset, 3 * GRANULE);
	assert_int_equal(f->o->p->upkeep.repair.piece_bytes, GRANULE);
	assert_ends(f, 0, "no mirror differs from the owner");
	assert_nothing_was_sent(f);
}

/* A granule changes each time, and is left out. */
TEST(what_never_stands_still_is_left_out, struct fixture *f)
{
	spoil(f, 1, 3 * GRANULE);
	order_repair(f);
	for (unsigned i = 0; !result_of(f)->is_done; i++) {
		assert_true(i < ROUNDS);
		assert_int_equal(put_big(f, 3 * GRANULE + 9, 5, (uint8_t)i), 0);
		direct_keep(f->o->d, f->o->p);
	}
	assert_ends(f, 0, "no mirror differs from the owner; changing too often to be compared: 1");
	assert_nothing_was_sent(f);
}

/* The mirror's daemon is killed during its repair. The order ends, and the mirror is repaired when
 * it comes back. */
TEST(a_mirror_dies_while_it_is_repaired, struct fixture *f)
{
	spoil(f, 1, 9);
	order_repair(f);
	owner_keep(f->o, 1, PERSEAS_MIRROR_RESYNCING);
	direct_crash(f->o->d, 1);
	OWNER_KEEP_UNTIL(f->o, result_of(f)->is_done);
	assert_ends(f, PERSEAS_EUNREACHABLE,
	            "sim://1 went away; it is repaired when it comes back");
	direct_start(f->o->d, 1);
	assert_catches_up(f, 1);
}

/* Lets the owner find that a granule of mirror 1 is wrong, and the mirror die before the repair. */
static void die_before_the_repair(struct fixture *f)
{
	((uint8_t *)(uintptr_t)image_of(f, 1, "segment-0"))[7] ^= 1;
	order_repair(f);
	ask_about_big(f);
	direct_crash(f->o->d, 1);
	assert_int_equal(put_big(f, 5 * GRANULE, 5, 77), 0);
	assert_ends(f, PERSEAS_EUNREACHABLE, "it is repaired when it comes back");
}

/* A mirror dies after the owner found that its image is wrong. It comes back with an image that
 * the ring alone would bring up to date. */
TEST(a_mirror_dies_before_it_is_repaired, struct fixture *f)
{
	die_before_the_repair(f);
	direct_start(f->o->d, 1);
	assert_being_sent(f, 1, "being repaired", SIZE + GRANULE);
	assert_catches_up(f, 1);
}

/* Starts mirror 1, and lets a renewal be the first to ask those that are down. */
static void renew_with_mirror_1(struct fixture *f)
{
	for (unsigned i = 0; i < f->o->p->mirror_count; i++)
		f->o->p->mirrors[i].retry.next_try_at = PS_NEVER;
	direct_start(f->o->d, 1);
	renew_claims(f);
}

/* The ring has all that a wrong image misses. W others hold the store, so a renewal leaves the
 * image alone, and the wrong granule is sent afterwards. */
TEST(a_renewal_does_not_adopt_what_is_wrong, struct fixture *f)
{
	die_before_the_repair(f);
	renew_with_mirror_1(f);
	assert_being_sent(f, 1, "being repaired", SIZE + GRANULE);
	assert_catches_up(f, 1);
}

/* W cannot be had without the wrong image: a renewal copies the memory there, and nothing is left
 * to be sent. */
TEST(a_renewal_copies_over_what_is_wrong, struct fixture *f)
{
	die_before_the_repair(f);
	direct_crash(f->o->d, 2);
	renew_with_mirror_1(f);
	assert_int_equal(owner_state(f->o, 1), PERSEAS_MIRROR_LIVE);
	assert_image(f, 1);
	assert_null(f->o->p->mirrors[1].unsent_granules);
}

/* A renewal copies what the owner has not mapped from a mirror that is right. */
TEST_WITH(a_renewal_reads_from_no_wrong_image, setup_five, teardown, struct fixture *f)
{
	void *addr;

	/* The repair still compares this segment when it has found what is wrong in another one. */
	assert_int_equal(perseas_map(f->o->p, "last", 100, &addr), 0);
	assert_int_equal(perseas_publish(f->o->p), 0);
	spoil(f, 1, 5);
	order_repair(f);
	OWNER_KEEP_UNTIL(f->o, ps_unsent_has_wrong_granules(&f->o->p->mirrors[1]));
	direct_crash(f->o->d, 1);
	assert_ends(f, PERSEAS_EUNREACHABLE, "it is repaired when it comes back");
	assert_int_equal(perseas_unmap(f->o->p, f->big), 0);
	direct_crash(f->o->d, 0);
	assert_int_equal(owner_put(f->o, 0, 100, 8), 0);
	memset(f->ledger->accounts, 8, 100);
	come_back_late(f, 0);
	direct_crash(f->o->d, 3);
	direct_crash(f->o->d, 4);
	renew_with_mirror_1(f);
	assert_int_equal(owner_state(f->o, 0), PERSEAS_MIRROR_LIVE);
	assert_image(f, 0);
}

/* The owner dies meanwhile: the next one repairs when it is ordered to. */
TEST(an_owner_dies_while_it_repairs, struct fixture *f)
{
	spoil(f, 1, 9);
	order_repair(f);
	owner_keep(f->o, 1, PERSEAS_MIRROR_RESYNCING);
	owner_die(f->o);
	owner_reopen(f->o);
	map_big(f);
	for (unsigned i = 0; i < 3; i++)
		owner_keep(f->o, i, PERSEAS_MIRROR_LIVE);
	repair(f, 0, "no mirror differs from the owner");
	for (unsigned i = 0; i < 3; i++)
		assert_image(f, i);
}

/* Mirrors that give no digests agree with nobody. */
TEST(silent_mirrors_do_not_count, struct fixture *f)
{
	assert_int_equal(perseas_unmap(f->o->p, f->o->bytes), 0);
	order_repair(f);
	f->o->d->mirrors[1].break_at = PERSEAS__REQUEST__BODY_DIGEST;
	f->o->d->mirrors[2].break_at = PERSEAS__REQUEST__BODY_DIGEST;
	assert_ends(f, PERSEAS_EQUORUM, "fewer than W mirrors are live and give digests");
}

/* Another mirror goes after the wrong granule was found: the wrong mirror stays as it is. */
TEST(w_others_are_needed_to_the_end, struct fixture *f)
{
	((uint8_t *)(uintptr_t)image_of(f, 0, "segment-0"))[7] ^= 1;
	order_repair(f);
	ask_about_big(f);
	direct_crash(f->o->d, 2);
	assert_int_equal(put_big(f, 8 * GRANULE, 1, 9), 0);
	assert_ends(f, PERSEAS_EQUORUM, "sim://0 differs, and fewer than W others are live");
	assert_int_equal(owner_stat(f->o).resyncs, 0);
	assert_null(f->o->p->mirrors[0].unsent_granules);
	direct_start(f->o->d, 2);
	owner_keep(f->o, 2, PERSEAS_MIRROR_LIVE);
	repair(f, 0, "repaired 1 piece of 64 KiB on 1 mirror");
	assert_image(f, 0);
}

/* A segment is destroyed meanwhile. */
TEST(segments_change_while_mirrors_are_compared, struct fixture *f)
{
	spoil(f, 1, 9);
	order_repair(f);
	ask_about_big(f);
	assert_int_equal(perseas_unmap(f->o->p, f->big), 0);
	assert_int_equal(perseas_segment_destroy(f->o->p, "big"), 0);
	assert_ends(f, PERSEAS_EBUSY, "segments were published or destroyed meanwhile");
	assert_nothing_was_sent(f);
}

/* The owner does not compare segments that it has not mapped, and the result says so. */
TEST(what_is_not_mapped_is_left_out, struct fixture *f)
{
	spoil(f, 1, 9);
	assert_int_equal(perseas_unmap(f->o->p, f->big), 0);
	repair(f, 0, "; the owner has not mapped all segments");
	assert_nothing_was_sent(f);
}

static int setup_before(void **state)
{
	struct owner *o = owner_new(3);

	o->options.acks = 2;
	o->d->mirrors[1].version = 8;
	return setup_owner(state, o);
}

TEST_WITH(an_older_daemon_is_named, setup_before, teardown, struct fixture *f)
{
	spoil(f, 0, 9);
	repair(f, PERSEAS_EVERSION,
	       "sim://1 cannot be compared: its daemon's version gives no digests");
	assert_nothing_was_sent(f);
}

/* Mirrors are not asked for more than resync_rate allows. */
TEST_WITH(digests_keep_to_the_rate, setup, teardown, struct fixture *f)
{
	uint64_t begun;

	f->o->p->options.resync_rate = SIZE / 100;
	order_repair(f);
	OWNER_KEEP_UNTIL(f->o, f->o->p->upkeep.repair.piece_bytes);
	begun = f->o->d->now;
	ask_about_big(f);
	assert_true(f->o->d->now - begun >= ps_ms(100000));
}
