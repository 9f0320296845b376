/*
 * test_store_damage.c - a flipped bit anywhere in header, slots or log of an image: it is refused
 * by name, or the state is the last one or the one before, and never another.
 */
#include "../support/mirror.h"
#include "../support/unit.h"

/* A bank after three transactions, the last of them as far as `steps`. */
static void make_bank(struct mirror *mirror, int steps)
{
	struct writer writer;
	struct peer owner;

	mirror_open(mirror);
	mirror_bank(mirror, &owner, false);
	writer_init(&writer, &owner.session);
	writer_write(&writer, 0, 0, "two.", 4, WRITE_ALL);
	writer_write(&writer, 0, 0, "last", 4, steps);
	store_session_ended(&owner.session);
}

/* A file with a higher format may be a later version's: it is refused, and not called damaged. */
static bool is_of_later_format(const char *piece, const uint8_t *bytes)
{
	struct ps_header_file head;

	if (strcmp(piece, "header"))
		return false;
	memcpy(&head, bytes, sizeof(head));
	return head.format > PS_HEADER_FORMAT;
}

/* Starts a daemon on a copy of `from` with one bit of a piece flipped. Returns the seq of the state
 * that the next owner gets, or -1 if it is refused. The data must be that state's. */
static int seq_of(const struct mirror *from, const char *piece, size_t byte, int bit)
{
	static const char *const texts[] = { "", "made", "two.", "last" };
	struct mirror mirror = { .memory = memory_heap_copy(from->memory) };
	Perseas__ClaimReply reply;
	struct peer peer;
	uint8_t *bytes;
	uint64_t size;
	int ret, seq = -1;
	bool later;

	mirror.stores = stores_new(mirror.memory);
	bytes = memory_heap_piece(mirror.memory, "bank", piece, &size);
	assert_true(byte < size);
	bytes[byte] ^= (uint8_t)(1 << bit);
	later = is_of_later_format(piece, bytes);
	mirror_restart(&mirror);
	peer_init(&peer);
	ret = mirror_claim(&mirror, &peer, "bank", 9, 2, &reply);
	if (ret == 0) {
		seq = (int)reply.slot->seq;
		assert_in_range(seq, 1, 3);
		assert_int_equal(reply.slot->epoch, BANK_EPOCH);
		assert_memory_equal(session_memory(&peer.session, 16, 0, 4, false), texts[seq], 4);
	} else {
		assert_int_equal(ret, later ? -STATUS(BAD_VERSION) : -STATUS(DAMAGED));
		assert_non_null(
			strstr(mirror.why.text, later ? "a later version of Perseas wrote it"
		                                      : "store bank is damaged"));
	}
	mirror_close(&mirror);
	return seq;
}

/* Nothing of it can be trusted: not its name, not its promise. */
TEST(a_flipped_header_is_refused)
{
	struct mirror mirror;
	uint64_t size;

	make_bank(&mirror, WRITE_ALL);
	memory_heap_piece(mirror.memory, "bank", "header", &size);
	for (size_t i = 0; i < size; i++)
		for (int bit = 0; bit < 8; bit++)
			assert_int_equal(seq_of(&mirror, "header", i, bit), -1);
	mirror_close(&mirror);
}

/* The slot before counts then, and what came after it is undone from its record. */
TEST(a_flipped_slot_gives_the_state_before_it)
{
	struct mirror mirror;
	struct ps_slot slot;
	unsigned before = 0;
	uint8_t *log;
	int last;

	make_bank(&mirror, WRITE_ALL);
	log = memory_heap_piece(mirror.memory, "bank", "log.1", NULL);
	last = ps_slot_choose(log, &slot);
	assert_int_equal(slot.seq, 3);
	for (size_t i = 0; i < PS_SLOT_STRIDE + sizeof(slot) + 8; i++) {
		bool hit = i >= ps_slot_offset(last) && i < ps_slot_offset(last) + sizeof(slot);

		for (int bit = 0; bit < 8; bit++)
			assert_int_equal(seq_of(&mirror, "log.1", i, bit), hit ? 2 : 3);
		before += hit;
	}
	assert_int_equal(before, sizeof(slot));
	mirror_close(&mirror);
}

/* Records of the past, and of a transaction that has changed nothing yet. */
TEST(a_flipped_record_changes_no_state)
{
	static const int steps[] = { WRITE_ALL, WRITE_RECORD };

	for (int i = 0; i < 2; i++) {
		struct mirror mirror;

		make_bank(&mirror, steps[i]);
		for (size_t at = 0; at < 512; at++)
			assert_int_equal(seq_of(&mirror, "log.1", PS_RING_OFFSET + at,
			                        (int)(at % 8)),
			                 i == 0 ? 3 : 2);
		mirror_close(&mirror);
	}
}

/* A Status says so before an owner claims the store. */
TEST(an_image_without_a_valid_slot_is_damaged_from_the_start)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	struct mirror mirror;
	uint64_t size;

	make_bank(&mirror, WRITE_ALL);
	memset(memory_heap_piece(mirror.memory, "bank", "log.1", &size), 0x5a, PS_RING_OFFSET);
	mirror_restart(&mirror);
	assert_int_equal(store_status(mirror.stores, "bank", &status, &mirror.why),
	                 -STATUS(DAMAGED));
	mirror_close(&mirror);
}
