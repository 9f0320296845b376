/*
 * test_forged.c - bytes that a user stored are never taken for an undo record.
 */
#include "../support/forge.h"
#include "../support/spill_heap.h"
#include "../../proto/image/log_reader.h"
#include "mend_rig.h"

enum {
	RING = 4096,
	LARGE = 1024,  /* the bytes that are stored and become a before-image */
	SMALL = 10,    /* the bytes of each transaction after that */
	PARTED = 400,  /* the bytes of a transaction that one mirror alone has */
	VICTIM = 2000, /* what a forged record names: no transaction ever changed it */
};

static int setup_of(void **state, unsigned mirrors)
{
	struct owner *o = owner_new(mirrors);

	o->options.log_size = RING;
	return owner_setup_of(state, o);
}

static int setup_one(void **state)
{
	return setup_of(state, 1);
}

static int setup_three(void **state)
{
	return setup_of(state, 3);
}

struct unit_fixture unit_fixture = { setup_three, owner_teardown };

static struct forge_log log_of(const struct owner *o)
{
	return (struct forge_log){ o->p->commit.next_position, o->p->commit.seq,
		                   o->p->commit.last_position, RING };
}

/* Returns what the commit of a transaction returns that stores these bytes at `offset`. */
static int put_range(struct owner *o, uint64_t offset, const void *bytes, uint64_t length)
{
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, o->bytes + offset, length), 0);
	memcpy(o->bytes + offset, bytes, length);
	return perseas_commit(tx, 0);
}

static void put_bytes(struct owner *o, const void *bytes, unsigned length)
{
	assert_int_equal(put_range(o, 0, bytes, length), 0);
}

/*
 * Stores a record as data, and has it lie where the next record may begin: the bytes are stored,
 * then overwritten, so that the log has them as a before-image, and then small transactions follow
 * until `next` of the following lap is there, but for the last `left` of them.
 */
static void forge_but(struct owner *o, unsigned left)
{
	uint8_t bytes[LARGE] = { 0 };
	struct forge_log log = log_of(o);
	uint64_t position, at;

	forge_commit(&log, LARGE);
	position = forge_commit(&log, LARGE);
	at = forge_find(&log, position, LARGE, SMALL);
	assert_true(at < LARGE);
	forge_record(bytes + at, &log, o->p->epoch, 0, VICTIM);
	put_bytes(o, bytes, LARGE);
	memset(bytes, 0, LARGE);
	put_bytes(o, bytes, LARGE);
	while (o->p->commit.seq + left < log.seq)
		assert_int_equal(owner_put(o, 0, SMALL, 1), 0);
}

static void forge(struct owner *o)
{
	forge_but(o, 0);
}

static uint8_t *log_memory(struct owner *o, unsigned mirror)
{
	Perseas__Header *header = header_of(o, mirror);
	char name[40];
	uint8_t *log;

	snprintf(name, sizeof(name), "log.%llu", (unsigned long long)header->generation);
	perseas__header__free_unpacked(header, NULL);
	log = memory_heap_piece(o->d->mirrors[mirror].memory, STORE, name, NULL);
	assert_non_null(log);
	return log;
}

static void assert_untouched(struct owner *o)
{
	for (unsigned i = 0; i < FORGED_LENGTH; i++)
		assert_int_equal(o->bytes[VICTIM + i], (uint8_t)((VICTIM + i) * 7));
}

/* After each record, zeros reach 64 bytes beyond the place of the next, or the end of the ring. */
static void assert_terminated(struct owner *o)
{
	const uint8_t *ring = log_memory(o, 0) + PS_RING_OFFSET;

	for (unsigned i = 0; i < SIZE; i++)
		o->bytes[i] = 0xff;
	for (unsigned k = 0; k < 200; k++) {
		const struct ps_record *record;
		uint64_t at, end;

		assert_int_equal(owner_put(o, 0, 1 + k * 7919 % 700, 0xff), 0);
		record = (const void *)(ring + o->p->commit.last_position % RING);
		at = o->p->commit.last_position % RING + record->length;
		end = o->p->commit.next_position % RING;
		for (end = end ? end + PS_TERMINATOR : RING; at < end; at++)
			assert_int_equal(ring[at], 0);
	}
}

TEST_WITH(test_zeros_follow_each_record, setup_one, owner_teardown, struct owner *o)
{
	assert_terminated(o);
	o->d->staged = false;
	owner_reopen(o);
	assert_terminated(o);
}

/* The owner dies where a stored record lies at `next`: no claim rolls it back. */
TEST_WITH(test_a_claim_rolls_no_stored_record_back, setup_one, owner_teardown, struct owner *o)
{
	forge(o);
	owner_next(o);
	assert_untouched(o);
	owner_close(o);
	owner_reopen(o);
	assert_untouched(o);
}

/* One mirror restarts while the owner lives, and is claimed again: it stays equal to the others. */
TEST(test_a_mirror_that_restarts_alone_stays_the_same, struct owner *o)
{
	forge(o);
	direct_crash(o->d, 2);
	owner_keep(o, 2, PERSEAS_MIRROR_DOWN);
	direct_start(o->d, 2);
	owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
	assert_mirrored(o, 2);
}

static void fail_of(void *arg, const char *text)
{
	(void)arg;
	fail_msg("%s", text);
}

/* The mirror's daemon ends in order, loses its memory, and loads its spill. */
static void spill_and_load(struct owner *o, unsigned mirror)
{
	struct direct_mirror *m = &o->d->mirrors[mirror];
	struct spill *spill = spill_heap_new();
	struct spill_sum sum;

	stores_set_spill(m->stores, spill);
	assert_true(stores_spill(m->stores, &sum, fail_of, NULL));
	direct_crash(o->d, mirror);
	memory_heap_lose(m->memory, NULL);
	direct_start(o->d, mirror);
	stores_set_spill(m->stores, spill);
	assert_int_equal(stores_load_spills(m->stores, fail_of, NULL), 1);
	stores_set_spill(m->stores, NULL);
	spill_heap_free(spill);
}

/* A spill has the whole ring, so the zeros are where they were in the image that is loaded. */
TEST_WITH(test_no_stored_record_is_rolled_back_after_a_spill, setup_one, owner_teardown,
          struct owner *o)
{
	forge(o);
	owner_die(o);
	spill_and_load(o, 0);
	owner_reopen(o);
	assert_untouched(o);
}

/* For snapshot, verify and standbys the log ends at the slot. */
TEST_WITH(test_a_reader_follows_no_stored_record, setup_one, owner_teardown, struct owner *o)
{
	uint8_t *ring = calloc(1, PS_RING_OFFSET + RING);
	struct ps_log_reader reader;

	assert_non_null(ring);
	forge(o);
	ps_log_init(&reader, &ps_log_memory, log_memory(o, 0), ring, RING);
	assert_int_equal(ps_log_read_state(&reader), PS_LOG_OK);
	assert_int_equal(reader.from.seq, o->p->commit.seq);
	assert_int_equal(ps_log_read_tail(&reader), PS_LOG_OK);
	assert_int_equal(reader.seq, o->p->commit.seq);
	free(ring);
}

/* --- the past --- */

enum {
	MISSED = 1200, /* bytes of the transaction that mirror 2 misses first */
	FILLS = 1400,  /* bytes of the next one, behind which the third does not fit the lap */
	FILLS_AT = 1500,
	UNDER_WAY =
		/* bytes of the third transaction, of which mirrors 0 and 1 get only the record */
	1100,
};

/*
 * Mirror 2 misses two transactions. The record of a third one, which was never finished, lies over
 * that of the first and the one before it, and stored records are there in their places: the first
 * names 8 bytes instead of 1200. `another`: the second transaction is another owner's.
 */
static void miss_and_forge(struct owner *o, bool another)
{
	struct forge_log log = log_of(o);
	uint8_t bytes[FILLS] = { 0 };

	forge_record(bytes + log.next - FORGE_HEAD, &log, o->p->epoch, 0, VICTIM);
	forge_commit(&log, SMALL);
	forge_record(bytes + log.next - FORGE_HEAD, &log, o->p->epoch, 0, VICTIM);
	assert_int_equal(owner_put(o, 0, SMALL, 0x11), 0);
	direct_crash(o->d, 2);
	assert_int_equal(owner_put(o, 0, MISSED, 0x22), 0);
	if (another) {
		owner_next(o);
	}
	assert_int_equal(put_range(o, FILLS_AT, bytes, FILLS), 0);
	o->d->mirrors[0].writes_left = o->d->mirrors[1].writes_left = 1;
	memset(bytes, 0x33, FILLS);
	assert_true(put_range(o, FILLS_AT, bytes, UNDER_WAY) < 0);
	assert_int_equal(o->p->commit.last_position, RING);
	owner_die(o);
	direct_start(o->d, 2);
	owner_reopen(o);
	assert_int_equal(owner_stat(o).mended_forward + owner_stat(o).mended_delta, 0);
	owner_keep_all(o);
	assert_mirrored(o, 0);
	assert_mirrored(o, 2);
}

TEST(test_a_stored_record_of_the_past_is_not_sent, struct owner *o)
{
	miss_and_forge(o, false);
}

TEST(test_a_stored_record_of_the_past_is_no_delta, struct owner *o)
{
	miss_and_forge(o, true);
}

/* --- slots that are written without their record --- */

/* Mirror 2 alone has a transaction that is not chosen, and a stored record in what that wrote to
 * the log, where the next record begins, of the epoch and seq that the next owner will use. */
TEST(test_a_delta_leaves_no_stored_record_at_its_slot, struct owner *o)
{
	struct forge_log log = log_of(o);
	uint8_t bytes[PARTED] = { 0 };

	forge_commit(&log, PARTED);
	forge_commit(&log, SMALL);
	forge_record(bytes + (log.next - log.last) - FORGE_HEAD, &log, o->p->epoch + 2, 0, VICTIM);
	put_bytes(o, bytes, PARTED);
	o->d->mirrors[0].writes_left = o->d->mirrors[1].writes_left = 0;
	memset(bytes, 0, PARTED);
	assert_true(put_range(o, 0, bytes, PARTED) < 0);
	owner_die(o);
	direct_crash(o->d, 2);
	owner_reopen(o);
	assert_int_equal(owner_put(o, 0, SMALL, 0x44), 0);
	assert_int_equal(o->p->commit.next_position, log.next);
	come_back(o, 2);
	assert_int_equal(owner_stat(o).mended_delta, 1);
	owner_next(o);
	assert_int_equal(owner_stat(o).live, 3);
	assert_mirrored(o, 0);
	assert_mirrored(o, 2);
}

/* Mirror 2 overwrote more of the past than its new slot tells: the delta restores all of it. */
TEST(test_a_delta_brings_the_past_along, struct owner *o)
{
	uint64_t bound;

	while (o->p->commit.next_position < RING)
		assert_int_equal(owner_put(o, 0, SMALL, (uint8_t)o->p->commit.seq), 0);
	o->d->mirrors[0].writes_left = o->d->mirrors[1].writes_left = 0;
	put_in_doubt(o, 0, PARTED, 0x77);
	o->d->mirrors[2].writes_left = 1;
	put_in_doubt(o, 0, 1960, 0x88);
	owner_die(o);
	direct_crash(o->d, 2);
	owner_reopen(o);
	assert_int_equal(owner_put(o, 0, SMALL, 0x44), 0);
	bound = ps_lowest_intact_position(o->p->commit.next_position, RING);
	assert_in_range(bound, RING / 2, RING - 1);
	come_back(o, 2);
	assert_int_equal(owner_stat(o).mended_delta, 1);
	assert_memory_equal(log_memory(o, 2) + PS_RING_OFFSET + bound,
	                    log_memory(o, 0) + PS_RING_OFFSET + bound, RING - bound);
	assert_mirrored(o, 2);
}

/* Mirror 2 missed two transactions, and breaks between them, before a stored record. */
TEST(test_what_is_sent_forward_ends_with_zeros, struct owner *o)
{
	forge_but(o, 1);
	direct_crash(o->d, 2);
	assert_int_equal(owner_put(o, 0, SMALL, 0x55), 0);
	assert_int_equal(owner_put(o, 0, SMALL, 0x66), 0);
	owner_die(o);
	direct_start(o->d, 2);
	o->d->mirrors[2].writes_left = 3; /* record, data, slot */
	owner_reopen(o);
	assert_int_equal(owner_stat(o).mended_forward, 0);
	owner_next(o);
	assert_int_equal(owner_stat(o).live, 3);
	assert_mirrored(o, 0);
	assert_mirrored(o, 2);
}
