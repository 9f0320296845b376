/*
 * test_warm_pages.c - the pages of a standby's copy: which must be read, which are right, and what
 * another process inherits of them. There are no mirrors here.
 */
#include "../../client/demand/warm.h"
#include "../support/unit.h"

/* --- pages --- */

/* A segment of two pages. */
static bool add(struct ps_warm_copy *warm, uint32_t id)
{
	const struct ps_segment_key key = ps_segment_key_of(id, "s", PS_WARM_PAGE + 100, 4096, 1,
	                                                    NULL);

	return ps_warm_add_segment(warm, &key, 5);
}

static struct ps_warm_copy *two_pages(void)
{
	const uint8_t id[PS_ID_SIZE] = { 1 };
	struct ps_warm_copy *warm = ps_warm_new(id);

	assert_non_null(warm);
	assert_true(add(warm, 3));
	return warm;
}

static void change_page(struct ps_warm_copy *warm, uint64_t seq, uint64_t offset)
{
	_Alignas(8) uint8_t bytes[sizeof(struct ps_record) + sizeof(struct ps_range) + 8] = { 0 };
	struct ps_record *record = (void *)bytes;
	struct ps_range *range = (void *)(bytes + sizeof(*record));

	*record = (struct ps_record){ .magic = PS_RECORD_MAGIC,
		                      .kind = PS_RECORD_TRANSACTION,
		                      .seq = seq,
		                      .length = sizeof(bytes),
		                      .ranges = 1 };
	*range = (struct ps_range){ 3, 8, offset };
	ps_warm_note_changes(warm, record);
}

/* Before that, what is read may be rolled back. */
TEST(a_page_is_read_when_a_slot_covers_it)
{
	struct ps_warm_copy *warm = two_pages();
	struct ps_range range;

	assert_false(ps_warm_next_to_read(warm, 4, 9, &range));
	assert_true(ps_warm_next_to_read(warm, 5, 9, &range));
	assert_int_equal(range.offset, 0);
	assert_int_equal(range.length, PS_WARM_PAGE + 100);
	assert_false(ps_warm_next_to_read(warm, 5, 9, &range));
	change_page(warm, 7, PS_WARM_PAGE);
	change_page(warm, 6, PS_WARM_PAGE);
	assert_false(ps_warm_next_to_read(warm, 6, 9, &range));
	assert_true(ps_warm_next_to_read(warm, 7, 9, &range));
	assert_int_equal(range.offset, PS_WARM_PAGE);
	assert_int_equal(range.length, 100);
	ps_warm_free(warm);
}

TEST(a_page_that_changed_meanwhile_is_not_right)
{
	struct ps_warm_copy *warm = two_pages();
	uint8_t bytes[2 * PS_WARM_PAGE] = { 0 };
	struct ps_range range;
	uint64_t here, total;

	assert_true(ps_warm_next_to_read(warm, 5, 9, &range));
	change_page(warm, 6, 8);
	assert_true(ps_warm_store_read(warm, &range, bytes));
	ps_warm_count_bytes(warm, &here, &total);
	assert_int_equal(total, PS_WARM_PAGE + 100);
	assert_int_equal(here, 100);
	assert_false(ps_warm_part_has_bytes(&warm->parts[0], 0, 1));
	assert_true(ps_warm_part_has_bytes(&warm->parts[0], PS_WARM_PAGE, 100));
	assert_false(ps_warm_part_has_bytes(&warm->parts[0], PS_WARM_PAGE - 1, 2));
	ps_warm_stop_using_segment(warm, 3);
	assert_false(ps_warm_part_has_bytes(&warm->parts[0], PS_WARM_PAGE, 100));
	ps_warm_free(warm);
}

/* --- from process to process --- */

static const uint8_t store_id[PS_ID_SIZE] = { 1 };

/* A copy of two pages that are right, shared: the descriptor that another process inherits. */
static int share_pages(void)
{
	struct ps_warm_copy *warm = two_pages();
	uint8_t bytes[2 * PS_WARM_PAGE];
	struct ps_range range;
	int fd;

	memset(bytes, 8, sizeof(bytes));
	warm->point = (struct ps_warm_point){ 2, 5, 64, 7 };
	assert_true(ps_warm_next_to_read(warm, 5, 9, &range));
	assert_true(ps_warm_store_read(warm, &range, bytes));
	assert_int_equal(ps_warm_hand_on(warm), 0);
	fd = dup(warm->fd);
	ps_warm_free(warm);
	return fd;
}

TEST(a_copy_is_inherited_once)
{
	const uint8_t other[PS_ID_SIZE] = { 2 };
	const int fd = share_pages(), again = dup(fd);
	struct ps_warm_copy *warm;
	uint64_t here, total;

	assert_null(ps_warm_inherit(fd, other));
	warm = ps_warm_inherit(fd, store_id);
	assert_non_null(warm);
	assert_int_equal(warm->point.epoch, 2);
	assert_int_equal(warm->point.seq, 5);
	assert_int_equal(warm->point.position, 64);
	assert_int_equal(warm->point.crc, 7);
	assert_int_equal(warm->count, 1);
	assert_int_equal(warm->parts[0].segment, 3);
	assert_int_equal(warm->parts[0].key.born, 1);
	assert_int_equal(warm->parts[0].size, PS_WARM_PAGE + 100);
	assert_true(ps_warm_part_has_bytes(&warm->parts[0], 0, PS_WARM_PAGE + 100));
	ps_warm_count_bytes(warm, &here, &total);
	assert_int_equal(here, total);
	change_page(warm, 9, 8);
	change_page(warm, 9, 8);
	ps_warm_count_bytes(warm, &here, &total);
	assert_int_equal(here, 100);
	assert_int_equal(warm->parts[0].bytes[PS_WARM_PAGE + 99], 8);
	/* The descriptor is closed, and of two processes that have it one gets the copy. */
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_null(ps_warm_inherit(again, store_id));
	assert_int_equal(close(again), 0);
	ps_warm_free(warm);
}

static uint64_t held_by(int fd)
{
	struct stat stat;

	assert_int_equal(fstat(fd, &stat), 0);
	return (uint64_t)stat.st_blocks * 512;
}

enum { HEAD = 32768 };

/* A shell, or whatever else started the program, has the descriptor for as long as it runs. */
TEST(what_others_have_a_descriptor_of_is_given_back)
{
	const int fd = share_pages(), others = dup(fd);
	struct ps_warm_copy *warm;

	assert_true(held_by(others) > HEAD);
	warm = ps_warm_inherit(fd, store_id);
	assert_non_null(warm);
	/* Locks the page, as mlockall does. */
	assert_int_equal(mlock(warm->parts[0].bytes, PS_WARM_PAGE), 0);
	ps_warm_free(warm);
	assert_true(held_by(others) <= HEAD);
	close(others);
}

/* The same within one process, which keeps the rest of the copy. */
TEST(what_is_forgotten_is_given_back)
{
	struct ps_warm_copy *warm = two_pages();

	assert_true(held_by(warm->fd) > 0);
	ps_warm_remove_segment(warm, 3);
	assert_int_equal(held_by(warm->fd), 0);
	ps_warm_free(warm);
}

/* A copy can be taken only once. */
TEST(what_cannot_be_taken_is_given_back)
{
	const int fd = share_pages(), others = dup(fd);
	const uint64_t nothing = 0;

	assert_int_equal(pwrite(fd, &nothing, 8, 64 + 16), 8);
	assert_null(ps_warm_inherit(fd, store_id));
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_true(held_by(others) <= HEAD);
	close(others);
}

/* To touch a page for which there is no memory ends the process. */
TEST(memory_is_there_before_it_is_touched)
{
	struct ps_warm_copy *warm = two_pages();
	const int file = warm->fd, poor = open("/dev/null", O_RDONLY);
	const uint64_t states = held_by(file);
	uint8_t bytes[2 * PS_WARM_PAGE] = { 0 };
	struct ps_range range;
	uint64_t here, total;

	assert_int_equal(states, PS_PAGE);
	ps_warm_count_bytes(warm, &here, &total);
	assert_true(ps_warm_next_to_read(warm, 5, 9, &range));
	warm->fd = poor;
	assert_false(ps_warm_store_read(warm, &range, bytes));
	assert_false(add(warm, 4));
	ps_warm_count_bytes(warm, &here, &total);
	assert_int_equal(here, 0);
	assert_int_equal(held_by(file), states);
	warm->fd = file;
	assert_true(ps_warm_store_read(warm, &range, bytes));
	assert_int_equal(held_by(file), states + sizeof(bytes));
	close(poor);
	ps_warm_free(warm);
}

/* Inherits a copy with one word of its head changed. */
static struct ps_warm_copy *inherit_changed(uint64_t at, uint64_t word)
{
	const int fd = share_pages();
	struct ps_warm_copy *warm;

	assert_int_equal(pwrite(fd, &word, sizeof(word), (off_t)at), sizeof(word));
	warm = ps_warm_inherit(fd, store_id);
	if (!warm)
		close(fd);
	return warm;
}

/* Byte offsets in the head, and within one of its parts. */
enum { HEAD_COUNT = 48, HEAD_PARTS = 64 };
enum { PART_ID = 0, PART_BORN = 8, PART_SIZE = 16, PART_NAME_END = 104, PART_AT = 120 };

TEST(what_is_no_copy_is_not_inherited)
{
	const uint64_t counts = (uint64_t)(PS_SEGMENTS_MAX + 1) << 32;
	struct ps_warm_copy *warm = inherit_changed(HEAD_PARTS + PART_BORN, 1);

	assert_non_null(warm);
	ps_warm_free(warm);
	assert_null(inherit_changed(0, 1));
	assert_null(inherit_changed(HEAD_COUNT, counts | 7));
	assert_null(inherit_changed(HEAD_COUNT, (uint64_t)2 << 32 | 7));
	assert_null(inherit_changed(HEAD_PARTS + PART_ID, PS_SEGMENTS_MAX));
	assert_null(inherit_changed(HEAD_PARTS + PART_SIZE, 0));
	assert_null(inherit_changed(HEAD_PARTS + PART_SIZE, 1 << 20));
	assert_null(inherit_changed(HEAD_PARTS + PART_SIZE, UINT64_MAX - 1));
	/* A name that does not end. */
	assert_null(inherit_changed(HEAD_PARTS + PART_NAME_END, UINT64_MAX));
	assert_null(inherit_changed(HEAD_PARTS + PART_AT, 4096));
}

/* The memory could become shorter while it is read. */
TEST(what_may_be_cut_off_is_not_inherited)
{
	const int fd = share_pages(), loose = memfd_create("loose", MFD_ALLOW_SEALING);
	uint8_t page[4096];

	for (off_t at = 0; pread(fd, page, sizeof(page), at) == sizeof(page); at += 4096)
		assert_int_equal(pwrite(loose, page, sizeof(page), at), sizeof(page));
	assert_null(ps_warm_inherit(loose, store_id));
	assert_null(ps_warm_inherit(-1, store_id));
	assert_int_equal(fcntl(loose, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	ps_warm_free(ps_warm_inherit(loose, store_id));
	assert_int_equal(fcntl(loose, F_GETFD), -1);
	close(fd);
}
