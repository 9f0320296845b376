/*
 * test_store_copy.c - what an owner does at a chosen moment of the copy of its image: a page of the
 * image faults where the copy comes to it, and the owner's transactions happen there. So what
 * threads show by chance (test_store_share.c) is shown for each order of steps.
 */
#include "store_rig.h"

struct unit_fixture unit_fixture = { setup, teardown };

enum { WIDE_SIZE = 64 << 10, LAST_PAGE = WIDE_SIZE - PS_PAGE };

/* What an owner does when the copy reaches the last page of segment 1. */
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
static void arm(struct mirror *mirror, struct peer *owner, struct moment *now)
{
	struct sigaction action = { .sa_handler = on_fault };

	mirror_bank(mirror, owner, true);
	assert_int_equal(peer_add(owner, &mirror->why, 1, "wide", WIDE_SIZE), 0);
	assert_int_equal(peer_publish(owner, &mirror->why, 1, 1), 0);
	writer_init(&now->writer, &owner->session);
	memory_heap_keep_removed(mirror->memory, true);
	now->page = now->writer.data[1] + LAST_PAGE;
	moment = now;
	assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
	assert_int_equal(mprotect(now->page, PS_PAGE, PROT_NONE), 0);
}

static const uint8_t *copied(struct mirror *mirror, struct peer *next, Perseas__ClaimReply *reply)
{
	peer_init(next);
	assert_int_equal(mirror_takeover(mirror, next, "bank", 9, 2, reply), 0);
	assert_int_equal(signal(SIGSEGV, SIG_DFL) != SIG_ERR, 1);
	assert_true(moment->count > 0);
	assert_true(reply->copied);
	return session_memory(&next->session, PS_REGION_SEGMENT + 1, 0, WIDE_SIZE, false);
}

/* All that comes after the slot that was read is undone, whole or not. */
TEST(what_comes_during_the_copy_is_undone, struct mirror *mirror)
{
	static const int steps[] = { 0, WRITE_RECORD, WRITE_RECORD | WRITE_DATA };

	for (unsigned i = 0; i < 3; i++) {
		struct moment now = { .whole = 1, .steps = steps[i] };
		static const uint8_t zeros[WIDE_SIZE];
		struct peer owner, next;
		Perseas__ClaimReply reply;

		arm(mirror, &owner, &now);
		assert_memory_equal(copied(mirror, &next, &reply), zeros, WIDE_SIZE);
		assert_int_equal(reply.slot->seq, 1);
		assert_true(reply.undone);
		mirror = unit_begin_again();
	}
}

/* Where the owner may have written over records of the past, beyond the slot of the copy, the copy
 * has zeros. It has zeros, too, where the next record is looked for. */
TEST(the_copy_has_no_past_that_was_overwritten, struct mirror *mirror)
{
	struct moment now = { .whole = 1 };
	uint64_t from, low, high, kept = 0;
	struct peer owner, next;
	Perseas__ClaimReply reply;
	const uint8_t *ring;

	arm(mirror, &owner, &now);
	while (now.writer.slot.next < PS_LOG_MIN + PS_PAGE / 8)
		writer_write(&now.writer, 0, 0, "fill", 4, WRITE_ALL);
	copied(mirror, &next, &reply);
	from = reply.slot->next;
	low = ps_record_bound(from, PS_LOG_MIN);
	high = ps_record_bound(now.writer.slot.next, PS_LOG_MIN);
	assert_true(from < now.writer.slot.next && low > 0 && high < PS_LOG_MIN);
	ring = session_memory(&next.session, PS_REGION_LOG, PS_RING_OFFSET, PS_LOG_MIN, false);
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
	struct peer owner, next;
	Perseas__ClaimReply reply;

	memset(expected, 8, 1000);
	memset(expected + LAST_PAGE, 8, 8);
	arm(mirror, &owner, &now);
	assert_memory_equal(copied(mirror, &next, &reply), expected, WIDE_SIZE);
	assert_int_equal(reply.slot->seq, 1 + 2 * now.whole);
}

/* The files of the image that was copied go, though its owner has them mapped. */
TEST(the_image_that_was_copied_away_goes, struct mirror *mirror)
{
	struct peer owner, next;
	Perseas__ClaimReply reply;
	unsigned pieces;

	mirror_bank(mirror, &owner, true);
	pieces = memory_heap_pieces(mirror->memory);
	peer_init(&next);
	assert_int_equal(mirror_takeover(mirror, &next, "bank", 9, 2, &reply), 0);
	assert_true(reply.copied);
	assert_int_equal(memory_heap_pieces(mirror->memory), pieces);
	assert_null(memory_heap_piece(mirror->memory, "bank", "log.1", NULL));
}

/* A daemon died between the header with a new promise and its page: whoever has the memory must not
 * find its own promise there. */
TEST(a_page_behind_its_header_is_settled_at_the_start, struct mirror *mirror)
{
	for (int shared = 0; shared < 2; shared++) {
		struct ps_promise *page;
		struct peer owner;

		mirror_bank(mirror, &owner, shared);
		page = (void *)memory_heap_piece(mirror->memory, "bank", "promise.1", NULL);
		page->epoch = BANK_EPOCH - 1;
		mirror_restart(mirror);
		page = (void *)memory_heap_piece(mirror->memory, "bank", "promise.1", NULL);
		assert_int_equal(page->epoch, shared ? PS_PROMISE_RETIRED : BANK_EPOCH);
		mirror = unit_begin_again();
	}
}
