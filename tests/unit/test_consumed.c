/*
 * test_consumed.c - spills that were used up, and are put back: with a state directory none of them
 * is loaded a second time, and what was never loaded is.
 */
#include "spill_rig.h"

#include "../../server/store/consumed.h"
#include "../support/memory_folder.h"

#include <unistd.h>

struct state {
	struct rig *rig;
	struct consumed *consumed;
	char directory[64];
};

static void run(const struct state *state, const char *command)
{
	char line[200];

	snprintf(line, sizeof(line), "cd '%s' && %s", state->directory, command);
	assert_int_equal(system(line), 0);
}

static void open_state(struct state *state)
{
	const char *why = NULL;

	state->consumed = consumed_file_new(state->directory, &why);
	if (!state->consumed)
		fail_msg("%s", why);
}

static int setup_state(void **of)
{
	struct state *state = calloc(1, sizeof(*state));

	assert_non_null(state);
	memory_folder(state->directory, sizeof(state->directory), "state");
	open_state(state);
	setup((void **)&state->rig);
	*of = state;
	return 0;
}

static int teardown_state(void **of)
{
	struct state *state = *of;
	void *rig = state->rig;
	char command[96];

	teardown(&rig);
	consumed_file_free(state->consumed);
	snprintf(command, sizeof(command), "rm -rf '%s'", state->directory);
	free(state);
	return system(command);
}

struct unit_fixture unit_fixture = { setup_state, teardown_state };

/* As start(), with the state directory. */
static void start_noting(struct state *state)
{
	struct rig *rig = state->rig;

	rig->mirror.stores = stores_new(rig->mirror.memory);
	stores_set_spill(rig->mirror.stores, rig->spill);
	stores_set_consumed(rig->mirror.stores, state->consumed);
	rig->complaints = 0;
	stores_load(rig->mirror.stores, complain, rig);
	rig->loaded = stores_load_spills(rig->mirror.stores, complain, rig);
}

/* The daemon ends on purpose, and its memory is lost. */
static void end_host(struct state *state)
{
	assert_int_equal(end(state->rig).stores, 1);
	stop(state->rig);
	memory_heap_lose(state->rig->mirror.memory, NULL);
}

/* The spill that is there now, for a backup. */
static uint8_t *back_up(struct state *state, size_t *len)
{
	uint8_t *bytes = spill_heap_bytes(state->rig->spill, "bank", len), *copy = malloc(*len);

	assert_non_null(bytes);
	assert_non_null(copy);
	memcpy(copy, bytes, *len);
	return copy;
}

static void put_back(struct state *state, uint8_t *backup, size_t len)
{
	spill_heap_put(state->rig->spill, "bank", backup, len);
	free(backup);
}

static void assert_set_aside(struct state *state)
{
	assert_int_equal(state->rig->loaded, 0);
	assert_int_equal(state->rig->complaints, 1);
	assert_non_null(strstr(state->rig->complaint, "somebody put it back"));
	assert_null(mirror_header(&state->rig->mirror, "bank"));
	assert_int_equal(spill_heap_count(state->rig->spill), 0);
	assert_int_equal(spill_heap_aside(state->rig->spill), 1);
}

/* It was loaded, the memory is lost, and the spill comes from a backup. */
TEST(a_spill_that_was_loaded_is_not_loaded_again, struct state *state)
{
	uint8_t *backup;
	size_t len;

	mirror_bank(&state->rig->mirror, &state->rig->owner, false);
	end_host(state);
	backup = back_up(state, &len);
	start_noting(state);
	assert_int_equal(state->rig->loaded, 1);
	stop(state->rig);
	memory_heap_lose(state->rig->mirror.memory, NULL);
	put_back(state, backup, len);
	start_noting(state);
	assert_set_aside(state);
}

/* Another daemon reads the same directory. */
TEST(a_note_outlives_the_daemon, struct state *state)
{
	uint8_t *backup;
	size_t len;

	mirror_bank(&state->rig->mirror, &state->rig->owner, false);
	end_host(state);
	backup = back_up(state, &len);
	start_noting(state);
	stop(state->rig);
	memory_heap_lose(state->rig->mirror.memory, NULL);
	consumed_file_free(state->consumed);
	open_state(state);
	put_back(state, backup, len);
	start_noting(state);
	assert_set_aside(state);
}

/* The daemon was only started again: memory won, and the spill was removed. */
TEST(a_spill_that_lost_to_memory_is_not_loaded_later, struct state *state)
{
	uint8_t *backup;
	size_t len;

	mirror_bank(&state->rig->mirror, &state->rig->owner, false);
	assert_int_equal(end(state->rig).stores, 1);
	stop(state->rig);
	backup = back_up(state, &len);
	start_noting(state);
	assert_int_equal(state->rig->loaded, 0);
	assert_int_equal(spill_heap_count(state->rig->spill), 0);
	stop(state->rig);
	memory_heap_lose(state->rig->mirror.memory, NULL);
	put_back(state, backup, len);
	start_noting(state);
	assert_set_aside(state);
}

/* No owner came in between, so that the image says the same each time: every spill is another one,
 * whether it was loaded or memory won, and whether it got an id of its own or kept one. */
TEST(every_spill_that_follows_is_loaded, struct state *state)
{
	mirror_bank(&state->rig->mirror, &state->rig->owner, false);
	for (unsigned i = 0; i < 4; i++) {
		end_host(state);
		start_noting(state);
		assert_int_equal(state->rig->loaded, 1);
		assert_int_equal(state->rig->complaints, 0);
		assert_int_equal(end(state->rig).stores, 1);
		stop(state->rig);
		start_noting(state);
		assert_int_equal(state->rig->loaded, 0);
		assert_int_equal(state->rig->complaints, 0);
	}
	assert_bank(state->rig, 1, "made");
}

/* From the second load on the image keeps its id, which no owner has recorded. */
TEST(every_spill_of_an_image_that_keeps_its_id_is_loaded, struct state *state)
{
	mirror_bank(&state->rig->mirror, &state->rig->owner, false);
	for (unsigned i = 0; i < 4; i++) {
		end_host(state);
		start_noting(state);
		assert_int_equal(state->rig->loaded, 1);
		assert_int_equal(state->rig->complaints, 0);
	}
	assert_bank(state->rig, 1, "made");
}

/* Without a state directory spills load as they always did. */
TEST(without_a_state_directory_it_is_loaded_again, struct state *state)
{
	uint8_t *backup;
	size_t len;

	mirror_bank(&state->rig->mirror, &state->rig->owner, false);
	end_host(state);
	backup = back_up(state, &len);
	for (unsigned i = 0; i < 2; i++) {
		start(state->rig, state->rig->mirror.memory, state->rig->spill);
		assert_int_equal(state->rig->loaded, 1);
		if (i)
			break;
		stop(state->rig);
		memory_heap_lose(state->rig->mirror.memory, NULL);
		put_back(state, backup, len);
	}
}

/* --- what cannot be noted, or read --- */

static int fail_add(struct consumed *consumed, const char *store, const char *key)
{
	(void)store;
	(void)key;
	snprintf(consumed->trouble, sizeof(consumed->trouble), "the disk is full");
	return -1;
}

static int fail_has(struct consumed *consumed, const char *store, const char *key)
{
	return fail_add(consumed, store, key);
}

static int has_not(struct consumed *consumed, const char *store, const char *key)
{
	(void)consumed;
	(void)store;
	(void)key;
	return 0;
}

/* It is loaded, but must not be served: the spill could be loaded once more. */
TEST(an_image_whose_spill_cannot_be_noted_is_not_served, struct state *state)
{
	static const struct consumed_ops full = { has_not, fail_add };
	struct consumed broken = { .ops = &full }, *real = state->consumed;
	struct peer peer;

	mirror_bank(&state->rig->mirror, &state->rig->owner, false);
	end_host(state);
	state->consumed = &broken;
	start_noting(state);
	assert_int_equal(state->rig->loaded, 0);
	assert_non_null(strstr(state->rig->complaint, "the disk is full"));
	peer_init(&peer);
	assert_int_equal(mirror_takeover(&state->rig->mirror, &peer, "bank", BANK_EPOCH + 1, 9,
	                                 NULL),
	                 -STATUS(DAMAGED));
	/* There is room again: memory has it, and the spill goes. */
	state->consumed = real;
	stop(state->rig);
	start_noting(state);
	assert_int_equal(spill_heap_count(state->rig->spill), 0);
	assert_bank(state->rig, 1, "made");
}

/* Nobody knows whether it was used up: it stays for another start. */
TEST(without_notes_that_can_be_read_a_spill_is_kept, struct state *state)
{
	static const struct consumed_ops unreadable = { fail_has, fail_add };
	struct consumed broken = { .ops = &unreadable }, *real = state->consumed;

	mirror_bank(&state->rig->mirror, &state->rig->owner, false);
	end_host(state);
	state->consumed = &broken;
	start_noting(state);
	assert_int_equal(state->rig->loaded, 0);
	assert_non_null(strstr(state->rig->complaint, "kept, not loaded"));
	assert_int_equal(spill_heap_count(state->rig->spill), 1);
	stop(state->rig);
	state->consumed = real;
	start_noting(state);
	assert_int_equal(state->rig->loaded, 1);
}

/* A crash while a line was written leaves a part of it. It is no key, and begins no other. */
TEST(a_line_that_was_cut_short_is_none, struct state *state)
{
	struct consumed *consumed = state->consumed;

	assert_int_equal(consumed->ops->has(consumed, "bank", "one 1 1:1"), 0);
	assert_int_equal(consumed->ops->add(consumed, "bank", "one 1 1:1"), 0);
	assert_int_equal(consumed->ops->has(consumed, "bank", "one 1 1:1"), 1);
	assert_int_equal(consumed->ops->has(consumed, "bank", "one 1 1:"), 0);
	assert_int_equal(consumed->ops->has(consumed, "other", "one 1 1:1"), 0);
	run(state, "printf 'two 2' >> bank.consumed");
	assert_int_equal(consumed->ops->has(consumed, "bank", "two 2"), 0);
	assert_int_equal(consumed->ops->add(consumed, "bank", "three 3 3:3"), 0);
	assert_int_equal(consumed->ops->has(consumed, "bank", "three 3 3:3"), 1);
	assert_int_equal(consumed->ops->has(consumed, "bank", "one 1 1:1"), 1);
}
