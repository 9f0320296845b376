/*
 * spill_rig.h - a mirror with a spill directory, for tests: it ends, crashes, loses its memory and
 * starts again.
 */
#ifndef PERSEAS_TESTS_SPILL_RIG_H
#define PERSEAS_TESTS_SPILL_RIG_H

#include "../support/mirror.h"
#include "../support/spill_heap.h"
#include "../support/unit.h"

struct rig {
	struct mirror mirror;
	struct spill *spill;
	struct peer owner;
	unsigned complaints;
	char complaint[1024]; /* the last one */
	unsigned loaded;
	/* The memory and spills that a crash at each change would leave. */
	struct memory *memories[128];
	struct spill *spills[128];
	unsigned crashes;
};

static void complain(void *arg, const char *text)
{
	struct rig *rig = arg;

	rig->complaints++;
	snprintf(rig->complaint, sizeof(rig->complaint), "%s", text);
}

/* A daemon starts over this memory and these spills. */
static void start(struct rig *rig, struct memory *memory, struct spill *spill)
{
	rig->mirror.memory = memory;
	rig->spill = spill;
	rig->mirror.stores = stores_new(memory);
	stores_set_spill(rig->mirror.stores, spill);
	rig->complaints = 0;
	stores_load(rig->mirror.stores, complain, rig);
	rig->loaded = stores_load_spills(rig->mirror.stores, complain, rig);
}

/* Ends the daemon, in a crash or in order. */
static void stop(struct rig *rig)
{
	stores_free(rig->mirror.stores);
	rig->mirror.stores = NULL;
}

static inline void restart(struct rig *rig)
{
	stop(rig);
	start(rig, rig->mirror.memory, rig->spill);
}

/* Returns the bank's header, or NULL if the mirror has no bank. */
static inline const Perseas__Header *bank(struct rig *rig)
{
	return mirror_header(&rig->mirror, "bank");
}

static inline void lose_memory(struct rig *rig)
{
	stop(rig);
	memory_heap_lose(rig->mirror.memory, NULL);
	start(rig, rig->mirror.memory, rig->spill);
}

/* Loses the memory, and loads so many stores from spills. */
static inline void lose_memory_and_load(struct rig *rig, unsigned loaded)
{
	lose_memory(rig);
	assert_int_equal(rig->loaded, loaded);
}

static int setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	start(rig, memory_heap_new(0, 1), spill_heap_new());
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	stop(rig);
	spill_heap_free(rig->spill);
	memory_heap_free(rig->mirror.memory);
	for (unsigned i = 0; i < rig->crashes; i++) {
		memory_heap_free(rig->memories[i]);
		spill_heap_free(rig->spills[i]);
	}
	free(rig);
	return 0;
}

static inline struct spill_sum end(struct rig *rig)
{
	struct spill_sum sum;

	assert_true(stores_spill(rig->mirror.stores, &sum, complain, rig));
	return sum;
}

/* A mirror with a bank, which has been spilled. */
static inline void spill_bank(struct rig *rig)
{
	mirror_bank(&rig->mirror, &rig->owner, false);
	end(rig);
}

/* The next owner finds the state of (BANK_EPOCH, seq), with this at the beginning. */
static inline void assert_bank(struct rig *rig, uint64_t seq, const char *text)
{
	Perseas__ClaimReply reply;
	struct peer peer;

	peer_init(&peer);
	assert_int_equal(mirror_claim(&rig->mirror, &peer, "bank", BANK_EPOCH, 99, NULL),
	                 -STATUS(STALE_EPOCH));
	assert_int_equal(mirror_takeover(&rig->mirror, &peer, "bank", BANK_EPOCH + 1, 9, &reply),
	                 0);
	assert_int_equal(reply.slot->epoch, BANK_EPOCH);
	assert_int_equal(reply.slot->seq, seq);
	assert_int_equal(reply.header->n_segments, 1);
	assert_memory_equal(session_memory(&peer.session, 16, 0, 4, false), text, 4);
	store_session_ended(&peer.session);
}

#endif
