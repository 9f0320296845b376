/*
 * test_mend.c - mirrors that are behind, ahead, or empty when a store is opened (I6 to I9).
 */
#include "mend_rig.h"

struct unit_fixture unit_fixture = { owner_setup_three, owner_teardown };

/* The store has three mirrors, W = 1, and a small log. */
static int setup_lone_acks(void **state)
{
	struct owner *o = owner_new(3);

	o->options.acks = 1;
	o->options.log_size = 4096;
	return owner_setup_of(state, o);
}

static int setup_small_log(void **state)
{
	struct owner *o = owner_new(3);

	o->options.log_size = 4096;
	return owner_setup_of(state, o);
}

/* Mirror `absent` misses transactions of this owner, and all of the next one's. */
static void miss_an_owner(struct owner *o, unsigned absent)
{
	direct_crash(o->d, absent);
	put_many(o, 5, 1);
	owner_next(o);
	put_many(o, 5, 0x30);
	direct_start(o->d, absent);
}

/* The mirror missed an owner: the logs of both show where its own history ends. */
TEST(test_behind_is_mended_by_delta, struct owner *o)
{
	miss_an_owner(o, 2);
	owner_next(o);
	assert_mended(o, 0, 1, 0);
	assert_int_equal(owner_stat(o).live, 3);
	assert_non_null(strstr(perseas_report(o->p), "sim://2: mended from the logs"));
	assert_carries(o, 2, 0);
}

/* A mirror that was mended by a delta has the log for the delta of a mirror that comes later. */
TEST(test_delta_from_a_mended_mirror, struct owner *o)
{
	owner_free(o);
	*unit_state = o = owner_new(5);
	owner_begin(o);
	direct_crash(o->d, 4);
	miss_an_owner(o, 0);
	owner_next(o);
	assert_int_equal(owner_stat(o).mended_delta, 1);
	put_many(o, 10, 0x70);
	come_back(o, 4);
	assert_mended(o, 0, 1, 0);
	assert_mirrored(o, 4);
}

/* The mirror missed more than the log holds, and W others hold the state: the open leaves it to the
 * keeper. */
TEST_WITH(test_far_behind_is_left_to_the_keeper, setup_small_log, owner_teardown, struct owner *o)
{
	direct_crash(o->d, 2);
	put_many(o, 60, 1);
	assert_true(owner_stat(o).log_laps > 1);
	come_back(o, 2);
	assert_mended(o, 0, 0, 0);
	assert_int_equal(owner_state(o, 2), PERSEAS_MIRROR_STALE);
	owner_keep_all(o);
	assert_carries(o, 2, 1);
}

/* An owner with W = 1 may copy to a mirror only if all others hold the state (I9). So if two of
 * three mirrors missed more than the log holds, the open copies one of them whole, and leaves the
 * other one to the keeper. */
TEST_WITH(test_a_copy_that_the_keeper_may_not_make, setup_lone_acks, owner_teardown,
          struct owner *o)
{
	direct_crash(o->d, 0);
	direct_crash(o->d, 1);
	put_many(o, 60, 1);
	owner_die(o);
	direct_start(o->d, 0);
	come_back(o, 1);
	assert_mended(o, 0, 0, 1);
	assert_mirrored(o, 0);
	assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_STALE);
	owner_keep_all(o);
	assert_mirrored(o, 1);
}

/* With W = n no other mirror holds everything: the one that is behind is copied whole. */
TEST_WITH(test_no_delta_where_it_could_harm, setup_two, owner_teardown, struct owner *o)
{
	o->d->mirrors[1].writes_left = 0;
	for (unsigned i = 0; i < 65; i++)
		put_in_doubt(o, i, 10, (uint8_t)i);
	owner_next(o);
	assert_int_equal(o->bytes[64], 64);
	assert_mended(o, 0, 0, 1);
	assert_mirrored(o, 1);
}

/* Mirror 0 is ahead by `more` transactions of a dead owner, and lacks `since` of the next one. */
static void part(struct owner *o, unsigned more, unsigned since)
{
	for (unsigned i = 1; i < 3; i++)
		o->d->mirrors[i].hold = DIRECT_HOLD_WRITES;
	for (unsigned i = 0; i < more; i++)
		put_in_doubt(o, 1000 + 100 * i, 100, 0xee);
	owner_die(o);
	direct_crash(o->d, 0);
	owner_reopen(o);
	put_many(o, since, 0x20);
	come_back(o, 0);
	assert_int_equal(owner_stat(o).live, 3);
	assert_memory_not_equal(o->bytes + 1000, "\xee\xee\xee\xee", 4);
}

/* The history that nobody acknowledged gives way, however long it is. */
TEST(test_ahead_is_mended_by_delta, struct owner *o)
{
	static const unsigned lengths[][2] = { { 1, 1 }, { 1, 5 }, { 5, 1 }, { 4, 0 }, { 3, 3 } };

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		put_many(o, 30, (uint8_t)i);
		part(o, lengths[i][0], lengths[i][1]);
		assert_int_equal(owner_stat(o).mended_delta, 1);
		assert_mirrored(o, 0);
	}
	assert_carries(o, 0, 1);
}

/* A claim finds the higher sequence first when it reaches it: then it is the state. */
TEST(test_ahead_is_taken_when_it_is_reached, struct owner *o)
{
	for (unsigned i = 1; i < 3; i++)
		o->d->mirrors[i].hold = DIRECT_HOLD_WRITES;
	assert_int_equal(owner_put(o, 0, 10, 0xee), PERSEAS_EINDOUBT);
	owner_next(o);
	assert_int_equal(o->bytes[0], 0xee);
	for (unsigned i = 0; i < 3; i++)
		assert_mirrored(o, i);
}

/* Segments were published while mirrors were away: a copy of several pieces brings the table. */
TEST_WITH(test_other_tables_are_copied_whole, setup_lone_acks, owner_teardown, struct owner *o)
{
	enum { LARGE = 2 * PS_BOUNCE + 5000 };
	void *addr;

	direct_crash(o->d, 1);
	direct_crash(o->d, 2);
	assert_int_equal(perseas_map(o->p, "new", LARGE, &addr), 0);
	for (unsigned i = 0; i < LARGE; i++)
		((uint8_t *)addr)[i] = (uint8_t)(i % 251);
	assert_int_equal(perseas_publish(o->p), 0);
	owner_die(o);
	direct_start(o->d, 1);
	come_back(o, 2);
	assert_int_equal(owner_stat(o).mended_whole, 1);
	owner_keep_all(o);
	owner_die(o);
	memory_heap_lose(o->d->mirrors[0].memory, NULL);
	owner_reopen(o);
	assert_int_equal(perseas_map(o->p, "new", LARGE, &addr), 0);
	for (unsigned i = 0; i < LARGE; i++)
		assert_int_equal(((uint8_t *)addr)[i], i % 251);
}

static uint64_t roster_version(struct owner *o, unsigned mirror)
{
	Perseas__Header *header = header_of(o, mirror);
	uint64_t version = header->roster->version;

	perseas__header__free_unpacked(header, NULL);
	return version;
}

/* I9: the image is made anew with a new id, and the old one counts for nothing afterwards. */
TEST(test_lost_memory_is_made_anew, struct owner *o)
{
	struct memory *old;

	put_many(o, 3, 1);
	owner_die(o);
	old = memory_heap_copy(o->d->mirrors[2].memory);
	owner_lose(o, 2);
	owner_reopen(o);
	assert_int_equal(owner_state(o, 2), PERSEAS_MIRROR_LOST);
	owner_keep_all(o);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(roster_version(o, i), 3);
		assert_mirrored(o, i);
	}
	put_many(o, 3, 9);
	owner_die(o);
	direct_crash(o->d, 2);
	memory_heap_free(o->d->mirrors[2].memory);
	o->d->mirrors[2].memory = old;
	direct_start(o->d, 2);
	direct_crash(o->d, 0);
	assert_int_equal(owner_open(o, 0), PERSEAS_EQUORUM);
	direct_start(o->d, 0);
	owner_reopen(o);
	assert_non_null(strstr(perseas_report(o->p), "counts for nothing"));
	owner_keep_all(o);
	assert_int_equal(roster_version(o, 1), 5);
	assert_carries(o, 2, 0);
}

/* Two mirrors, both needed: one that lost everything is made anew from the other. */
TEST_WITH(test_lost_memory_with_all_acks, setup_two, owner_teardown, struct owner *o)
{
	put_many(o, 3, 1);
	owner_die(o);
	owner_lose(o, 0);
	owner_reopen(o);
	assert_int_equal(owner_stat(o).live, 2);
	assert_mirrored(o, 0);
	owner_die(o);
	owner_lose(o, 1);
	owner_reopen(o);
	assert_mirrored(o, 1);
}

/* The epoch of the slot that counts on a mirror. */
static uint64_t standing_epoch(struct owner *o, unsigned mirror)
{
	struct ps_slot slot;
	char name[40];
	Perseas__Header *header = header_of(o, mirror);

	snprintf(name, sizeof(name), "log.%llu", (unsigned long long)header->generation);
	perseas__header__free_unpacked(header, NULL);
	assert_in_range(ps_slot_choose(memory_heap_piece(o->d->mirrors[mirror].memory, STORE, name,
	                                                 NULL),
	                               &slot),
	                0, 1);
	return slot.epoch;
}

/* I9: an owner that is fenced elsewhere could commit through a mirror that forgot its promise. So
 * one is made anew only while enough others are claimed, also where R of them are few. */
TEST(test_not_made_anew_with_too_few_others, struct owner *o)
{
	owner_free(o);
	*unit_state = o = owner_new(3);
	o->options.acks = 3;
	owner_begin(o);
	put_many(o, 3, 1);
	owner_die(o);
	owner_lose(o, 0);
	direct_crash(o->d, 2);
	assert_int_equal(owner_open(o, 0), PERSEAS_EQUORUM);
	assert_error_says(o, "1 of 3 mirrors hold the newest state of store 'bank', and 3 must");
	assert_int_equal(memory_heap_pieces(o->d->mirrors[0].memory), 0);
	/* And it adopted on none: a change of the roster might go on that it does not see. */
	assert_int_equal(standing_epoch(o, 1), 1);
	direct_start(o->d, 2);
	owner_reopen(o);
	assert_int_equal(owner_stat(o).live, 3);
	assert_int_equal(o->bytes[0], 1);
	assert_mirrored(o, 0);
}

/* Two of three mirrors lost everything, and the third may have missed what they acknowledged. */
TEST(test_most_memory_lost, struct owner *o)
{
	put_many(o, 3, 1);
	owner_die(o);
	owner_lose(o, 0);
	owner_lose(o, 2);
	assert_int_equal(owner_open(o, 0), PERSEAS_EQUORUM);
	assert_error_says(o, "sim://0");
	assert_error_says(o, "the newest state seen is 1:4");
	assert_int_equal(owner_open(o, PERSEAS_SALVAGE), PERSEAS_EQUORUM);
	o->options.accept_epoch = 1;
	o->options.accept_seq = 4;
	assert_int_equal(owner_open(o, PERSEAS_SALVAGE), 0);
	owner_map(o);
	assert_int_equal(o->bytes[0], 1);
}

TEST(test_no_memory_for_a_copy, struct owner *o)
{
	struct memory *memory = o->d->mirrors[2].memory;

	owner_die(o);
	owner_lose(o, 2);
	memory_heap_set_limit(memory, 4096);
	owner_reopen(o);
	for (unsigned rounds = 0; rounds < 20; rounds++)
		direct_keep(o->d, o->p);
	assert_int_equal(owner_stat(o).live, 2);
	assert_int_equal(memory_heap_pieces(memory), 0);
	put_many(o, 3, 1);
	owner_die(o);
	memory_heap_set_limit(memory, 0);
	owner_reopen(o);
	owner_keep_all(o);
	assert_mirrored(o, 2);
}

/* Mending breaks after each of its writes, and at each of its requests: the open goes on or begins
 * again, and all mirrors are mended in the end. spoil() does the damage to mirror 0. */
static void break_mending(struct owner *o, void (*spoil)(struct owner *o))
{
	static const int requests[] = {
		PERSEAS__REQUEST__BODY_JOINING,
		PERSEAS__REQUEST__BODY_FINISH,
		PERSEAS__REQUEST__BODY_REBUILD,
		PERSEAS__REQUEST__BODY_ROSTER,
	};
	uint8_t contents[SIZE];

	for (unsigned i = 0; i < 20 + 2 * 4; i++) {
		struct direct_mirror *m = &o->d->mirrors[0];

		put_many(o, 10, (uint8_t)i);
		spoil(o);
		memcpy(contents, o->bytes, SIZE);
		owner_die(o);
		if (i < 20) {
			m->writes_left = (long)i;
			m->torn = 10 * i;
		} else {
			m->break_at = requests[i % 4];
			m->reply_lost = i >= 24;
		}
		owner_reopen(o);
		m->writes_left = -1;
		m->break_at = 0;
		assert_memory_equal(o->bytes, contents, SIZE);
		assert_true(owner_stat(o).live >= 2);
		owner_keep(o, 0, PERSEAS_MIRROR_LIVE);
		assert_int_equal(owner_stat(o).live, 3);
		for (unsigned k = 0; k < 3; k++)
			assert_mirrored(o, k);
	}
}

static void fall_behind(struct owner *o)
{
	direct_crash(o->d, 0);
	put_many(o, 4, 0x80);
	direct_start(o->d, 0);
}

static void fall_far_behind(struct owner *o)
{
	direct_crash(o->d, 0);
	put_many(o, 60, 0x80);
	direct_start(o->d, 0);
}

static void lose_first(struct owner *o)
{
	owner_lose(o, 0);
}

static void fall_out_of_history(struct owner *o)
{
	miss_an_owner(o, 0);
}

TEST(test_sending_breaks, struct owner *o)
{
	break_mending(o, fall_behind);
}

TEST(test_delta_breaks, struct owner *o)
{
	break_mending(o, fall_out_of_history);
}

TEST_WITH(test_copy_breaks, setup_small_log, owner_teardown, struct owner *o)
{
	break_mending(o, fall_far_behind);
}

TEST(test_making_anew_breaks, struct owner *o)
{
	break_mending(o, lose_first);
}

/* The owner dies while it repairs a mirror in place, and then another mirror dies: the joining one
 * counts towards R with nothing, and is made whole from the last one. */
TEST(test_joining_mirror_counts_with_nothing, struct owner *o)
{
	Perseas__Header *header;
	uint8_t contents[SIZE];

	put_many(o, 5, 1);
	fall_out_of_history(o);
	memcpy(contents, o->bytes, SIZE);
	owner_die(o);
	/* The mirror breaks at its second write, and the owner dies before it repairs the mirror
	 * again. */
	o->d->mirrors[0].writes_left = 1;
	assert_int_equal(owner_open(o, 0), 0);
	owner_die(o);
	header = header_of(o, 0);
	assert_int_equal(header->state, PERSEAS__STATE__STATE_JOINING);
	assert_true(header->harmless);
	perseas__header__free_unpacked(header, NULL);
	direct_crash(o->d, 2);
	owner_reopen(o);
	assert_memory_equal(o->bytes, contents, SIZE);
	assert_mirrored(o, 0);
	assert_mirrored(o, 1);
}

/* Histories of many owners, each with mirrors missing in turns: nothing acknowledged is lost. */
TEST(test_mirrors_missing_in_turns, struct owner *o)
{
	uint8_t contents[SIZE];

	memcpy(contents, o->bytes, SIZE);
	for (unsigned i = 0; i < 40; i++) {
		owner_die(o);
		direct_crash(o->d, i % 3);
		owner_reopen(o);
		assert_memory_equal(o->bytes, contents, SIZE);
		put_many(o, 1 + i % 7, (uint8_t)i);
		if (i % 2) {
			direct_start(o->d, i % 3);
			direct_keep(o->d, o->p);
			assert_int_equal(owner_put(o, i * 10, 10, (uint8_t)i), 0);
		}
		memcpy(contents, o->bytes, SIZE);
		if (i % 2 == 0)
			direct_start(o->d, i % 3);
	}
	owner_reopen(o);
	assert_memory_equal(o->bytes, contents, SIZE);
	for (unsigned i = 0; i < 3; i++)
		assert_mirrored(o, i);
}

/* Changes what a mirror that is not there will say of itself. */
static void put_header(struct owner *o, unsigned mirror, const Perseas__Header *header)
{
	struct memory *memory = o->d->mirrors[mirror].memory;
	uint8_t *bytes;
	size_t len;

	assert_int_equal(ps_header_pack(header, &bytes, &len), 0);
	assert_int_equal(memory->ops->replace(memory, STORE, "header", bytes, len), 0);
	free(bytes);
}

/* A mirror was loaded from a spill, and its owner died when one other had the new id. An owner that
 * does not see that one copies it whole: it keeps the id, and counts by either roster. */
TEST_WITH(test_copied_whole_under_the_id_that_it_has, setup_small_log, owner_teardown,
          struct owner *o)
{
	uint8_t id[PS_ID_SIZE] = "a new image's id";
	Perseas__Header *header;
	ProtobufCBinaryData was;

	direct_crash(o->d, 1);
	put_many(o, 60, 1);
	assert_true(owner_stat(o).log_laps > 1);
	owner_die(o);
	direct_crash(o->d, 2);
	header = header_of(o, 1);
	was = header->image_id;
	header->parent_id = was;
	header->image_id = (ProtobufCBinaryData){ PS_ID_SIZE, id };
	put_header(o, 1, header);
	header->image_id = was;
	header->parent_id = (ProtobufCBinaryData){ 0, NULL };
	perseas__header__free_unpacked(header, NULL);
	header = header_of(o, 2);
	header->roster->version++;
	memcpy(header->roster->members[1]->image_id.data, id, PS_ID_SIZE);
	put_header(o, 2, header);
	perseas__header__free_unpacked(header, NULL);

	direct_start(o->d, 1);
	owner_reopen(o);
	assert_int_equal(owner_stat(o).mended_whole, 1);
	header = header_of(o, 1);
	assert_true(ps_id_equal(header->image_id, id));
	perseas__header__free_unpacked(header, NULL);
	direct_start(o->d, 2);
	assert_carries(o, 1, 0);
}
