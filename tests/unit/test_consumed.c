/*
 * test_consumed.c - spills that were used up, and are put back: with a state directory none of them
 * is loaded a second time, and what was never loaded is.
 */
#include "spill_rig.h"

#include "../../server/store/used_spills.h"
#include "../support/memory_folder.h"

struct state {
	struct rig *rig;
	struct used_spills *used_spills;
	char directory[64];
	uint8_t *backup; /* of the spill of the bank; or NULL */
	size_t backup_len;
};

static void open_state(struct state *state)
{
	const char *why = NULL;

	state->used_spills = used_spills_file_new(state->directory, &why);
	if (!state->used_spills)
		fail_msg("%s", why);
}

static int setup_state(void **of)
{
	struct state *state = calloc(1, sizeof(*state));

	assert_non_null(state);
	memory_folder(state->directory, sizeof(state->directory), "state");
	open_state(state);
	setup((void **)&state->rig);
	mirror_bank(&state->rig->mirror, &state->rig->owner, false);
	*of = state;
	return 0;
}

static int teardown_state(void **of)
{
	struct state *state = *of;
	void *rig = state->rig;

	teardown(&rig);
	used_spills_file_free(state->used_spills);
	unit_remove_folder(state->directory);
	free(state->backup);
	free(state);
	return 0;
}

struct unit_fixture unit_fixture = { setup_state, teardown_state };

/* Starts with the state directory. Returns how many stores were loaded. */
static unsigned start_noting(struct state *state)
{
	struct rig *rig = state->rig;

	rig->mirror.stores = stores_new(rig->mirror.memory);
	stores_set_spill(rig->mirror.stores, rig->spill);
	stores_set_used_spills(rig->mirror.stores, state->used_spills);
	rig->complaints = 0;
	stores_load(rig->mirror.stores, complain, rig);
	rig->loaded = stores_load_spills(rig->mirror.stores, complain, rig);
	return rig->loaded;
}

/* The daemon ends, and its memory is lost. */
static void lose_host(struct state *state)
{
	stop(state->rig);
	memory_heap_lose(state->rig->mirror.memory, NULL);
}

/* The daemon ends on purpose; a backup is made of its spill. */
static void end_and_back_up(struct state *state)
{
	const uint8_t *bytes;

	assert_int_equal(end(state->rig).stores, 1);
	stop(state->rig);
	bytes = spill_heap_bytes(state->rig->spill, "bank", &state->backup_len);
	assert_non_null(bytes);
	free(state->backup);
	state->backup = malloc(state->backup_len);
	memcpy(state->backup, bytes, state->backup_len);
}

/* Ends the daemon, and loses its memory. */
static void end_host(struct state *state)
{
	end_and_back_up(state);
	memory_heap_lose(state->rig->mirror.memory, NULL);
}

static void put_back(struct state *state)
{
	spill_heap_put(state->rig->spill, "bank", state->backup, state->backup_len);
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

/* The spill was loaded, the memory is lost, and the spill is put back from a backup. */
TEST(a_spill_that_was_loaded_is_not_loaded_again, struct state *state)
{
	end_host(state);
	assert_int_equal(start_noting(state), 1);
	lose_host(state);
	put_back(state);
	start_noting(state);
	assert_set_aside(state);
}

/* Another daemon reads the same directory. */
TEST(a_note_outlives_the_daemon, struct state *state)
{
	end_host(state);
	start_noting(state);
	lose_host(state);
	used_spills_file_free(state->used_spills);
	open_state(state);
	put_back(state);
	start_noting(state);
	assert_set_aside(state);
}

/* The daemon was only started again: memory won, and the spill was removed. */
TEST(a_spill_that_lost_to_memory_is_not_loaded_later, struct state *state)
{
	end_and_back_up(state);
	assert_int_equal(start_noting(state), 0);
	assert_int_equal(spill_heap_count(state->rig->spill), 0);
	lose_host(state);
	put_back(state);
	start_noting(state);
	assert_set_aside(state);
}

/* No owner came in between, so that the image says the same each time: every spill is another one,
 * whether it was loaded or memory won, and whether it got an id of its own or kept one. */
TEST(every_spill_that_follows_is_loaded, struct state *state)
{
	for (unsigned i = 0; i < 4; i++) {
		end_host(state);
		assert_int_equal(start_noting(state), 1);
		assert_int_equal(state->rig->complaints, 0);
		assert_int_equal(end(state->rig).stores, 1);
		stop(state->rig);
		assert_int_equal(start_noting(state), 0);
		assert_int_equal(state->rig->complaints, 0);
	}
	assert_bank(state->rig, 1, "made");
}

/* From the second load on the image keeps its id, which no owner has recorded. */
TEST(every_spill_of_an_image_that_keeps_its_id_is_loaded, struct state *state)
{
	for (unsigned i = 0; i < 4; i++) {
		end_host(state);
		assert_int_equal(start_noting(state), 1);
		assert_int_equal(state->rig->complaints, 0);
	}
	assert_bank(state->rig, 1, "made");
}

/* Without a state directory spills load as they always did. */
TEST(without_a_state_directory_it_is_loaded_again, struct state *state)
{
	end_host(state);
	for (unsigned i = 0; i < 2; i++) {
		start(state->rig, state->rig->mirror.memory, state->rig->spill);
		assert_int_equal(state->rig->loaded, 1);
		if (i)
			break;
		lose_host(state);
		put_back(state);
	}
}

/* --- what cannot be noted, or read --- */

static int fail_add(struct used_spills *used_spills, const char *store, const char *key)
{
	(void)store;
	(void)key;
	snprintf(used_spills->trouble, sizeof(used_spills->trouble), "the disk is full");
	return -1;
}

static int fail_has(struct used_spills *used_spills, const char *store, const char *key)
{
	return fail_add(used_spills, store, key);
}

static int has_not(struct used_spills *used_spills, const char *store, const char *key)
{
	(void)used_spills;
	(void)store;
	(void)key;
	return 0;
}

/* The image is loaded but not served, because its spill could be loaded once more. */
TEST(an_image_whose_spill_cannot_be_noted_is_not_served, struct state *state)
{
	static const struct used_spills_ops full = { has_not, fail_add };
	struct used_spills broken = { .ops = &full }, *real = state->used_spills;
	struct peer peer;

	end_host(state);
	state->used_spills = &broken;
	assert_int_equal(start_noting(state), 0);
	assert_non_null(strstr(state->rig->complaint, "the disk is full"));
	peer_init(&peer);
	assert_int_equal(mirror_takeover(&state->rig->mirror, &peer, "bank", BANK_EPOCH + 1, 9,
	                                 NULL),
	                 -STATUS(DAMAGED));
	/* There is room again: memory has it, and the spill goes. */
	state->used_spills = real;
	stop(state->rig);
	start_noting(state);
	assert_int_equal(spill_heap_count(state->rig->spill), 0);
	assert_bank(state->rig, 1, "made");
}

/* Nobody knows whether the spill was used, so it is kept for another start. */
TEST(without_notes_that_can_be_read_a_spill_is_kept, struct state *state)
{
	static const struct used_spills_ops unreadable = { fail_has, fail_add };
	struct used_spills broken = { .ops = &unreadable }, *real = state->used_spills;

	end_host(state);
	state->used_spills = &broken;
	assert_int_equal(start_noting(state), 0);
	assert_non_null(strstr(state->rig->complaint, "kept, not loaded"));
	assert_int_equal(spill_heap_count(state->rig->spill), 1);
	stop(state->rig);
	state->used_spills = real;
	assert_int_equal(start_noting(state), 1);
}

/* A crash while a line was written leaves a part of it. It is no key, and begins no other. */
TEST(a_line_that_was_cut_short_is_none, struct state *state)
{
	struct used_spills *used_spills = state->used_spills;
	char command[128];

	assert_int_equal(used_spills->ops->has(used_spills, "bank", "one 1 1:1"), 0);
	assert_int_equal(used_spills->ops->add(used_spills, "bank", "one 1 1:1"), 0);
	assert_int_equal(used_spills->ops->has(used_spills, "bank", "one 1 1:1"), 1);
	assert_int_equal(used_spills->ops->has(used_spills, "bank", "one 1 1:"), 0);
	assert_int_equal(used_spills->ops->has(used_spills, "other", "one 1 1:1"), 0);
	snprintf(command, sizeof(command), "printf 'two 2' >> '%s/bank.consumed'",
	         state->directory);
	assert_int_equal(system(command), 0);
	assert_int_equal(used_spills->ops->has(used_spills, "bank", "two 2"), 0);
	assert_int_equal(used_spills->ops->add(used_spills, "bank", "three 3 3:3"), 0);
	assert_int_equal(used_spills->ops->has(used_spills, "bank", "three 3 3:3"), 1);
	assert_int_equal(used_spills->ops->has(used_spills, "bank", "one 1 1:1"), 1);
}
