/*
 * test_epoch.c - epochs near their limits: what a mirror grants above its promise (I5), and how a
 * claimer comes to an epoch that is far above one.
 */
#include "owner.h"
#include "store_rig.h"

enum { FAR_LEVEL = 30, STEPS = 3 };

static int setup_three(void **state)
{
	return owner_setup(state, 3, 2);
}

struct unit_fixture unit_fixture = { setup_three, owner_teardown };

/* While the daemon of the mirror is away its image gets this promise, as an older version, which
 * granted any epoch, could have left it. */
static void spoil(struct owner *o, unsigned mirror, uint64_t epoch)
{
	struct memory *memory = o->d->mirrors[mirror].memory;
	Perseas__Header *header;
	const char *why = NULL;
	uint8_t *bytes;
	size_t len;

	direct_crash(o->d, mirror);
	assert_int_equal(memory->ops->load(memory, STORE, "header", &bytes, &len), 0);
	header = ps_header_unpack(bytes, len, &why);
	assert_non_null(header);
	free(bytes);
	header->promised_epoch = epoch;
	assert_int_equal(ps_header_pack(header, &bytes, &len), 0);
	assert_int_equal(memory->ops->replace(memory, STORE, "header", bytes, len), 0);
	free(bytes);
	perseas__header__free_unpacked(header, NULL);
	direct_start(o->d, mirror);
}

/* The image of a mirror is gone, as after perseas drop. */
static void drop(struct owner *o, unsigned mirror)
{
	direct_crash(o->d, mirror);
	memory_heap_lose(o->d->mirrors[mirror].memory, STORE);
	direct_start(o->d, mirror);
}

/* Somebody with a right to claim asks for epochs that nobody needs. */
TEST_WITH(a_mirror_grants_no_jump_that_nobody_needs, setup, teardown, struct mirror *mirror)
{
	static const uint64_t too_high[] = {
		BANK_EPOCH + PS_EPOCH_STEP + 1, PS_EPOCH_MAX - 1,   PS_EPOCH_MAX, PS_EPOCH_MAX + 1,
		PS_PROMISE_RETIRED - 1,         PS_PROMISE_RETIRED,
	};
	struct peer first, second;

	mirror_bank(mirror, &first, false);
	peer_init(&second);
	for (unsigned i = 0; i < sizeof(too_high) / sizeof(*too_high); i++) {
		assert_int_equal(mirror_takeover(mirror, &second, "bank", too_high[i], 2, NULL),
		                 -STATUS(LIMIT));
		assert_int_equal(mirror->why.promised_epoch, BANK_EPOCH);
		assert_int_equal(mirror_header(mirror, "bank")->promised_epoch, BANK_EPOCH);
	}
	assert_int_equal(first.cuts, 0);
	assert_int_equal(mirror_takeover(mirror, &second, "bank", BANK_EPOCH + PS_EPOCH_STEP, 2,
	                                 NULL),
	                 0);
}

/* A roster of an epoch that its owner does not have would be the newest for good. */
TEST_WITH(an_owner_records_no_roster_of_a_later_epoch, setup, teardown, struct mirror *mirror)
{
	Perseas__RosterRequest request = PERSEAS__ROSTER_REQUEST__INIT;
	struct peer peer;

	mirror_bank(mirror, &peer, false);
	request.settled = true;
	request.roster = ps_roster_copy(mirror_header(mirror, "bank")->roster);
	assert_non_null(request.roster);
	request.roster->version++;
	request.roster->epoch = BANK_EPOCH + 1;
	assert_int_equal(store_roster(&peer.session, &request, &mirror->why), -STATUS(BAD_REQUEST));
	request.roster->epoch = BANK_EPOCH;
	assert_int_equal(store_roster(&peer.session, &request, &mirror->why), 0);
	perseas__roster__free_unpacked(request.roster, NULL);
}

/* One of three images has an epoch that no owner can have. The other two are enough; the spoiled
 * image is dropped and made anew while the owner runs. */
TEST(one_spoilt_mirror_does_not_stop_a_store, struct owner *o)
{
	static const uint64_t spoilt[] = { PS_PROMISE_RETIRED, PS_PROMISE_RETIRED - 1, PS_EPOCH_MAX,
		                           PS_EPOCH_MAX - 1, (uint64_t)1 << 40 };

	for (unsigned i = 0; i < sizeof(spoilt) / sizeof(*spoilt); i++) {
		assert_int_equal(owner_put(o, i, 1, (uint8_t)(0x40 + i)), 0);
		owner_die(o);
		spoil(o, i % 3, spoilt[i]);
		owner_reopen(o);
		assert_int_equal(owner_stat(o).live, 2);
		assert_true(owner_stat(o).epoch < 1000);
		assert_int_equal(o->bytes[i], 0x40 + i);
		if (!strstr(perseas_report(o->p), "drop this image"))
			fail_msg("%s", perseas_report(o->p));
		drop(o, i % 3);
		/* An epoch that could be a later owner's is noticed by the next open only. */
		if (spoilt[i] < PS_EPOCH_MAX)
			owner_reopen(o);
		owner_keep(o, i % 3, PERSEAS_MIRROR_LIVE);
	}
}

/* The only one has it: nobody can open the store, and the message says where to read on. */
TEST_WITH(a_store_without_another_mirror_says_how_it_is_saved, owner_setup_one, owner_teardown,
          struct owner *o)
{
	owner_die(o);
	spoil(o, 0, PS_PROMISE_RETIRED - 1);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER), PERSEAS_ELIMIT);
	assert_error_says(o, "perseas recover --help");
	assert_true(memory_heap_pieces(o->d->mirrors[0].memory) > 0);
}

/* While one was away the others were claimed more often than one step: it comes after them. */
TEST(a_mirror_that_missed_many_claims_follows, struct owner *o)
{
	owner_die(o);
	for (unsigned i = 1; i < 3; i++)
		spoil(o, i, STEPS * PS_EPOCH_STEP + 17);
	owner_reopen(o);
	assert_int_equal(owner_stat(o).live, 3);
	assert_int_equal(owner_stat(o).epoch, STEPS * PS_EPOCH_STEP + 18);
	/* The mirror returns while the owner runs. */
	owner_die(o);
	direct_crash(o->d, 0);
	for (unsigned i = 1; i < 3; i++)
		spoil(o, i, 2 * STEPS * PS_EPOCH_STEP + 17);
	owner_reopen(o);
	assert_int_equal(owner_stat(o).live, 2);
	direct_start(o->d, 0);
	owner_keep(o, 0, PERSEAS_MIRROR_LIVE);
	assert_int_equal(owner_put(o, 0, 1, FAR_LEVEL), 0);
}

/* A mirror that is further behind than all steps together is left out like one that is down; the
 * majority goes on. */
TEST(a_mirror_out_of_reach_takes_nobody_with_it, struct owner *o)
{
	owner_die(o);
	for (unsigned i = 1; i < 3; i++)
		spoil(o, i, 2 * PS_EPOCH_REACH);
	owner_reopen(o);
	assert_int_equal(owner_stat(o).live, 2);
	assert_int_equal(owner_stat(o).epoch, 2 * PS_EPOCH_REACH + 1);
	drop(o, 0);
	owner_keep(o, 0, PERSEAS_MIRROR_LIVE);
}
