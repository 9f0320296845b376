/*
 * test_store_copy.c - what an owner does at a chosen moment of the copy of its image: a page of the
 * image faults where the copy comes to it, and the owner's transactions happen there. So what
 * threads show by chance (test_store_share.c) is shown for each order of steps.
 */
#include "bank_rig.h"

struct unit_fixture unit_fixture = { setup_shared_bank, teardown };

enum { WIDE_SIZE = 64 << 10, LAST_PAGE = WIDE_SIZE - PS_PAGE };

/* An owner's action when the copy reaches the last page of segment 1. */
struct moment {
	struct writer writer;
	uint8_t *page;
	unsigned whole; /* transactions, of 1000 bytes at the start and 8 on the last page */
	int steps;      /* of one more; 0: none */
	unsigned count; /* how often the copy came here */
};

static struct moment *moment;

static void write_transaction(struct writer *writer, uint8_t byte, int steps)
{
	uint8_t bytes[1000];

	memset(bytes, byte, sizeof(bytes));
	writer_write(writer, 1, 0, bytes, sizeof(bytes), steps);
	if (steps == WRITE_ALL)
		writer_write(writer, 1, LAST_PAGE, bytes, 8, WRITE_ALL);
}

static void on_fault(int number)
{
	(void)number;
	if (mprotect(moment->page, PS_PAGE, PROT_READ | PROT_WRITE))
		abort();
	moment->count++;
	for (unsigned i = 1; i <= moment->whole; i++)
		write_transaction(&moment->writer, (uint8_t)i, WRITE_ALL);
	if (moment->steps)
		write_transaction(&moment->writer, 99, moment->steps);
}

/* A store with a segment 1 of zeros, whose owner waits for the copy. */
static void arm(struct mirror *mirror, struct moment *now)
{
	struct sigaction action = { .sa_handler = on_fault };

	assert_int_equal(peer_add(&holder, &mirror->why, 1, "wide", WIDE_SIZE), 0);
	assert_int_equal(peer_publish(&holder, &mirror->why, 1, 1), 0);
	writer_init(&now->writer, &holder.session);
	memory_heap_keep_removed(mirror->memory, true);
	now->page = now->writer.data[1] + LAST_PAGE;
	moment = now;
	assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
	assert_int_equal(mprotect(now->page, PS_PAGE, PROT_NONE), 0);
}

static const uint8_t *copied(struct mirror *mirror)
{
	assert_int_equal(mirror_takeover(mirror, &rival, "bank", 9, 2, &granted), 0);
	assert_int_equal(signal(SIGSEGV, SIG_DFL) != SIG_ERR, 1);
	assert_true(moment->count > 0);
	assert_true(granted.copied);
	return session_memory(&rival.session, PS_REGION_SEGMENT + 1, 0, WIDE_SIZE, false);
}

/* All that comes after the slot that was read is undone, whole or not. */
TEST(what_comes_during_the_copy_is_undone, struct mirror *mirror)
{
	static const int steps[] = { 0, WRITE_RECORD, WRITE_RECORD | WRITE_DATA };

	for (unsigned i = 0; i < 3; i++) {
		struct moment now = { .whole = 1, .steps = steps[i] };
		static const uint8_t zeros[WIDE_SIZE];

		arm(mirror, &now);
		assert_memory_equal(copied(mirror), zeros, WIDE_SIZE);
		assert_int_equal(granted.slot->seq, 1);
		assert_true(granted.undone);
		mirror = unit_begin_again();
	}
}

/* Where the owner may have written over records of the past, beyond the slot of the copy, the copy
 * has zeros. It has zeros, too, where the next record is looked for. */
TEST(the_copy_has_no_past_that_was_overwritten, struct mirror *mirror)
{
	struct moment now = { .whole = 1 };
	uint64_t from, low, high, kept = 0;
	const uint8_t *ring;

	arm(mirror, &now);
	while (now.writer.slot.next < PS_LOG_MIN + PS_PAGE / 8)
		writer_write(&now.writer, 0, 0, "fill", 4, WRITE_ALL);
	copied(mirror);
	from = granted.slot->next;
	low = ps_lowest_intact_position(from, PS_LOG_MIN);
	high = ps_lowest_intact_position(now.writer.slot.next, PS_LOG_MIN);
	assert_true(from < now.writer.slot.next && low > 0 && high < PS_LOG_MIN);
	ring = session_memory(&rival.session, PS_REGION_LOG, PS_RING_OFFSET, PS_LOG_MIN, false);
	for (uint64_t at = low; at < high; at++)
		assert_int_equal(ring[at], 0);
	for (uint64_t at = from; at < from + PS_TERMINATOR; at++)
		assert_int_equal(ring[at % PS_LOG_MIN], 0);
	for (uint64_t at = high; at < PS_LOG_MIN; at++)
		kept += ring[at] != 0;
	assert_true(kept > 0);
}

/* The log laps, and what would undo the changes is overwritten: the copy begins again, and is of a
 * later state. */
TEST(a_log_that_laps_during_the_copy_is_noticed, struct mirror *mirror)
{
	struct moment now = { .whole = 8 };
	uint8_t expected[WIDE_SIZE] = { 0 };

	memset(expected, 8, 1000);
	memset(expected + LAST_PAGE, 8, 8);
	arm(mirror, &now);
	assert_memory_equal(copied(mirror), expected, WIDE_SIZE);
	assert_int_equal(granted.slot->seq, 1 + 2 * now.whole);
}

/* The files of the image that was copied go, though its owner has them mapped. */
TEST(the_image_that_was_copied_away_goes, struct mirror *mirror)
{
	assert_int_equal(mirror_takeover(mirror, &rival, "bank", 9, 2, &granted), 0);
	assert_true(granted.copied);
	assert_int_equal(memory_heap_pieces(mirror->memory), bank_pieces);
	assert_null(memory_heap_piece(mirror->memory, "bank", "log.1", NULL));
}

/* A daemon died between writing a header with a new promise and its page: an owner that has the
 * memory must not find its own promise there. */
static void assert_page_is_settled(struct mirror *mirror, uint64_t epoch)
{
	promise_of_bank(mirror)->epoch = BANK_EPOCH - 1;
	mirror_restart(mirror);
	assert_int_equal(promise_of_bank(mirror)->epoch, epoch);
}

TEST(a_page_behind_its_header_is_settled_at_the_start, struct mirror *mirror)
{
	assert_page_is_settled(mirror, PS_PROMISE_RETIRED);
}

TEST_WITH(so_is_the_page_of_memory_that_is_not_shared, setup_bank, teardown, struct mirror *mirror)
{
	assert_page_is_settled(mirror, BANK_EPOCH);
}
