/*
 * test_rvm_map.c - regions of librvm-perseas: what they hold, where they are, how parts of segments
 * that are cut otherwise than before come to be, and what is refused.
 */
#include "rvm_rig.h"

#include <stddef.h>

struct unit_fixture unit_fixture = { rvm_rig_setup, rvm_rig_teardown };

enum { P = RVM_PAGE };

static void *const elsewhere = (void *)0x5c0000000000;

/* Bytes as they were in the file at first. */
static void assert_first(const char *at, size_t offset, size_t length)
{
	for (size_t i = 0; i < length; i++)
		assert_int_equal((uint8_t)at[i], rvm_first(offset + i));
}

static void put(char *at, int value)
{
	rvm_tid_t tid = rvm_rig_begin();

	assert_rvm(rvm_set_range(&tid, at, 1));
	*at = (char)value;
	assert_rvm(rvm_end_transaction(&tid, flush));
}

static rvm_region_t map(struct rvm_rig *rig, rvm_length_t offset, rvm_length_t length)
{
	return rvm_rig_map_part(rig, offset, length, NULL);
}

static rvm_return_t try_map(struct rvm_rig *rig, rvm_length_t offset, rvm_length_t length, void *at)
{
	rvm_region_t region = rvm_rig_part(rig, offset, length, at), before = region;
	const rvm_return_t code = rvm_map(&region, NULL);

	if (code != RVM_SUCCESS)
		assert_memory_equal(&region, &before, sizeof(region));
	return code;
}

/* Maps a page of another segment, whose data is in the file of this path. */
static rvm_return_t map_page(struct rvm_rig *rig, char *path, rvm_length_t page)
{
	rvm_region_t region = rvm_rig_part(rig, page * P, P, NULL);

	region.data_dev = path;
	return rvm_map(&region, NULL);
}

static unsigned segments(void)
{
	struct perseas_segment_info info;
	unsigned count = 0;

	while (!perseas_segment_at(ps_rvm.store, count, &info))
		count++;
	return count;
}

/* --- what they hold --- */

TEST(the_first_map_reads_the_file_and_later_ones_the_store, struct rvm_rig *rig)
{
	rvm_rig_map(rig);
	assert_int_equal(rig->region.length, RVM_FILE);
	assert_first(rig->region.vmaddr, 0, RVM_FILE);
	put(rig->region.vmaddr + 5, 99);
	/* On another node there may be no such file, or any. */
	assert_int_equal(unlink(rig->data), 0);
	rvm_rig_open_mapped(rig, 0);
	assert_int_equal(rig->region.vmaddr[5], 99);
	assert_first(rig->region.vmaddr + 6, 6, RVM_FILE - 6);
}

/* A file that is shorter than its segment goes on with zeros. */
TEST(a_segment_may_be_longer_than_its_file, struct rvm_rig *rig)
{
	rvm_region_t region = rvm_rig_part(rig, 15 * P, 0, NULL);

	region.dev_length = RVM_LENGTH_TO_OFFSET(20 * P + 100);
	assert_rvm(rvm_map(&region, NULL));
	assert_int_equal(region.length, 5 * P + 100);
	assert_first(region.vmaddr, 15 * P, P);
	for (size_t i = P; i < region.length; i++)
		assert_int_equal(region.vmaddr[i], 0);
	put(region.vmaddr + 5 * P + 99, 7);
	/* The store knows how long it is. */
	rvm_rig_open(rig, 0);
	region = map(rig, 15 * P, 0);
	assert_int_equal(region.length, 5 * P + 100);
	assert_int_equal(region.vmaddr[5 * P + 99], 7);
}

TEST(offsets_and_lengths_are_rounded_to_pages, struct rvm_rig *rig)
{
	rvm_region_t region = map(rig, P + 100, 10);

	assert_int_equal(RVM_OFFSET_TO_LENGTH(region.offset), P);
	assert_int_equal(region.length, P);
	assert_first(region.vmaddr, P, P);
	region = map(rig, 3 * P - 1, 2);
	assert_int_equal(RVM_OFFSET_TO_LENGTH(region.offset), 2 * P);
	assert_int_equal(region.length, 2 * P);
	region = map(rig, 14 * P, 100 * P);
	assert_int_equal(region.length, 2 * P);
}

/* RVM_MAP_PRIVATE: memory comes when it is touched. */
TEST(private_regions_come_on_demand, struct rvm_rig *rig)
{
	rvm_options_t got;

	rvm_rig_map(rig);
	put(rig->region.vmaddr + 3 * P, 99);
	rvm_rig_open_mapped(rig, RVM_MAP_PRIVATE);
	rvm_init_options(&got);
	assert_rvm(rvm_query(&got, NULL));
	assert_int_equal(got.flags, RVM_MAP_PRIVATE | RVM_COALESCE_RANGES);
	assert_int_equal(rig->region.vmaddr[3 * P], 99);
	put(rig->region.vmaddr + 2, 98);
	assert_first(rig->region.vmaddr + 4 * P, 4 * P, 12 * P);
	assert_rvm(rvm_truncate());
	rvm_rig_open_mapped(rig, 0);
	assert_int_equal(rig->region.vmaddr[2], 98);
}

/* --- where they are --- */

TEST(a_region_is_where_the_program_wants_it, struct rvm_rig *rig)
{
	char *at = elsewhere;

	for (unsigned i = 0; i < 3; i++, at += 64 * P) {
		rig->region = rvm_rig_map_part(rig, 0, 0, at);
		assert_ptr_equal(rig->region.vmaddr, at);
		assert_int_equal(at[1], i ? 10 + (int)i - 1 : rvm_first(1));
		put(at + 1, 10 + (int)i);
		if (i)
			rvm_rig_open(rig, 0);
		else
			assert_rvm(rvm_unmap(&rig->region));
	}
}

/* RVM's loader allocates memory and maps over it. After an unmap the memory is there again. */
TEST(memory_of_the_program_gives_way, struct rvm_rig *rig)
{
	char *at = mmap(NULL, RVM_FILE + P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	                0);

	assert_ptr_not_equal(at, MAP_FAILED);
	memset(at, 0x5a, RVM_FILE + P);
	rig->region = rvm_rig_map_part(rig, 0, 0, at);
	assert_ptr_equal(rig->region.vmaddr, at);
	assert_first(at, 0, RVM_FILE);
	assert_int_equal(at[RVM_FILE], 0x5a);
	assert_rvm(rvm_unmap(&rig->region));
	assert_int_equal(at[0], 0);
	memset(at, 1, RVM_FILE);
	rig->region = rvm_rig_map_part(rig, 0, 0, at);
	assert_first(at, 0, RVM_FILE);
	assert_rvm(rvm_terminate());
	assert_int_equal(at[0], 0);
	memset(at, 1, RVM_FILE);
	munmap(at, RVM_FILE + P);
}

/* The library's own memory does not: the table of segments is one of the store's. */
TEST(the_table_does_not_give_way, struct rvm_rig *rig)
{
	void *const table = ps_rvm.table;
	rvm_region_t region = map(rig, 0, P);

	put(region.vmaddr, 7);
	assert_rvm(rvm_unmap(&region));
	assert_int_equal(try_map(rig, 0, P, table), RVM_ERANGE);
	assert_int_equal(try_map(rig, 2 * P, P, (char *)table + P), RVM_ERANGE);
	region = map(rig, 0, P);
	assert_int_equal(region.vmaddr[0], 7);
	rvm_rig_open(rig, 0);
	region = map(rig, 0, P);
	assert_int_equal(region.vmaddr[0], 7);
}

/* Only a part of the range is the program's. */
TEST(what_is_half_taken_is_refused, struct rvm_rig *rig)
{
	char *at = mmap((char *)elsewhere + 512 * P, P, PROT_READ | PROT_WRITE,
	                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	*at = 5;
	assert_int_equal(try_map(rig, 0, 0, at - P), RVM_ERANGE);
	assert_int_equal(try_map(rig, 0, 0, at), RVM_ERANGE);
	assert_int_equal(*at, 5);
	assert_int_equal(try_map(rig, 0, 0, at + 1), RVM_ERANGE);
	assert_int_equal(try_map(rig, 0, 0, (void *)~(uintptr_t)(P - 1)), RVM_ERANGE);
	munmap(at, P);
}

/* --- parts --- */

TEST(regions_are_parts_of_segments, struct rvm_rig *rig)
{
	rvm_region_t one = map(rig, 0, 4 * P), two = map(rig, 8 * P, 4 * P), three;

	put(one.vmaddr, 1);
	put(two.vmaddr, 2);
	three = map(rig, 4 * P, 4 * P);
	assert_first(three.vmaddr, 4 * P, 4 * P);
	put(three.vmaddr, 3);
	rvm_rig_open(rig, 0);
	two = map(rig, 8 * P, 4 * P);
	assert_int_equal(two.vmaddr[0], 2);
	one = map(rig, 0, 4 * P);
	assert_int_equal(one.vmaddr[0], 1);
	assert_int_equal(segments(), 4);
}

/* Next time it is mapped in other parts: what was committed is in these. */
TEST(parts_may_be_cut_anew, struct rvm_rig *rig)
{
	rvm_region_t one = map(rig, P, 4 * P), two = map(rig, 8 * P, 4 * P), cut;

	put(one.vmaddr, 1);             /* page 1 */
	put(one.vmaddr + 3 * P, 2);     /* page 4 */
	put(two.vmaddr, 3);             /* page 8 */
	put(two.vmaddr + 3 * P + 9, 4); /* page 11 */
	assert_int_equal(try_map(rig, 3 * P, 7 * P, NULL), RVM_EOVERLAP);
	assert_rvm(rvm_unmap(&one));
	assert_int_equal(try_map(rig, 3 * P, 7 * P, NULL), RVM_EOVERLAP);
	assert_rvm(rvm_unmap(&two));
	cut = map(rig, 3 * P, 7 * P); /* pages 3 to 9 */
	assert_first(cut.vmaddr, 3 * P, P);
	assert_int_equal(cut.vmaddr[P], 2);
	assert_first(cut.vmaddr + 2 * P, 5 * P, 3 * P);
	assert_int_equal(cut.vmaddr[5 * P], 3);
	put(cut.vmaddr + 6 * P, 5); /* page 9 */
	/* The table, this one, and what is left of the two. */
	assert_int_equal(segments(), 4);
	rvm_rig_open_mapped(rig, 0);
	assert_int_equal(segments(), 2);
	assert_first(rig->region.vmaddr, 0, P);
	assert_int_equal(rig->region.vmaddr[P], 1);
	assert_int_equal(rig->region.vmaddr[4 * P], 2);
	assert_int_equal(rig->region.vmaddr[8 * P], 3);
	assert_int_equal(rig->region.vmaddr[9 * P], 5);
	assert_int_equal(rig->region.vmaddr[11 * P + 9], 4);
	assert_first(rig->region.vmaddr + 12 * P, 12 * P, 4 * P);
}

/* A crash in the middle of making a part leaves a segment that no row names; it is removed. */
TEST(what_no_row_names_goes, struct rvm_rig *rig)
{
	void *addr;

	rvm_rig_map(rig);
	assert_int_equal(perseas_map(ps_rvm.store, "rvm.77", 100, &addr), 0);
	assert_int_equal(perseas_map(ps_rvm.store, "own", 100, &addr), 0);
	assert_int_equal(perseas_map(ps_rvm.store, "rvm.", 100, &addr), 0);
	assert_int_equal(perseas_map(ps_rvm.store, "rvm.1x", 100, &addr), 0);
	assert_int_equal(perseas_publish(ps_rvm.store), 0);
	assert_int_equal(segments(), 6);
	rvm_rig_open(rig, 0);
	assert_int_equal(segments(), 5);
	rvm_rig_map(rig);
	assert_first(rig->region.vmaddr, 0, RVM_FILE);
}

/* A number that is in use by what could not be destroyed is passed over. */
TEST(leftovers_are_in_nobodys_way, struct rvm_rig *rig)
{
	rvm_region_t region;
	void *addr;

	assert_int_equal(perseas_map(ps_rvm.store, "rvm.1", 100, &addr), 0);
	assert_int_equal(perseas_publish(ps_rvm.store), 0);
	region = map(rig, 0, 0);
	assert_first(region.vmaddr, 0, RVM_FILE);
	put(region.vmaddr, 1);
	rvm_rig_open(rig, 0);
	region = map(rig, 0, 0);
	assert_int_equal(region.vmaddr[0], 1);
}

TEST(segments_have_names_and_limits, struct rvm_rig *rig)
{
	char paths[PS_RVM_SEGMENTS][200];
	unsigned pieces = PS_RVM_SEGMENTS;

	for (unsigned i = 0; i < PS_RVM_SEGMENTS; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s.%u", rig->data, i);
		rvm_rig_make_data(paths[i]);
		assert_rvm(map_page(rig, paths[i], 0));
	}
	assert_int_equal(try_map(rig, 0, 0, NULL), RVM_ETOO_BIG);
	for (unsigned i = 0; pieces < PS_RVM_PIECES; i++, pieces++)
		assert_rvm(map_page(rig, paths[i / 15], 1 + i % 15));
	assert_int_equal(map_page(rig, paths[PS_RVM_SEGMENTS - 1], 15), RVM_ETOO_BIG);
	assert_int_equal(ps_rvm_table_free_piece(ps_rvm.table), -1);
}

/* --- what is refused --- */

TEST(bad_regions_are_refused, struct rvm_rig *rig)
{
	rvm_region_t region, big;
	rvm_options_t options;
	char name[1100];

	memset(&region, 0, sizeof(region));
	region.data_dev = rig->data;
	assert_int_equal(rvm_map(&region, NULL), RVM_EREGION);
	assert_int_equal(rvm_map(NULL, NULL), RVM_EREGION);
	assert_int_equal(rvm_unmap(&region), RVM_EREGION);
	assert_int_equal(rvm_unmap(NULL), RVM_EREGION);
	rvm_init_region(&region);
	assert_int_equal(rvm_map(&region, NULL), RVM_EREGION);
	memset(name, 'x', sizeof(name));
	name[1024] = '\0';
	region.data_dev = name;
	assert_int_equal(rvm_map(&region, NULL), RVM_ENAME_TOO_LONG);
	region = rvm_rig_part(rig, 0, 0, NULL);
	region.data_dev = (char *)"/nonexistent/data";
	assert_rvm_eio(rvm_map(&region, NULL), ENOENT);
	region.dev_length = RVM_LENGTH_TO_OFFSET(4096);
	assert_int_equal(rvm_map(&region, NULL), RVM_EIO);
	snprintf(name, sizeof(name), "%s-pipe", rig->data);
	assert_int_equal(mkfifo(name, 0600), 0);
	region.data_dev = name;
	assert_int_equal(rvm_map(&region, NULL), RVM_EIO);
	region.dev_length = RVM_LENGTH_TO_OFFSET(0);
	assert_int_equal(rvm_map(&region, NULL), RVM_EIO);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(try_map(rig, RVM_FILE, 0, NULL), RVM_EOFFSET);
	assert_int_equal(try_map(rig, P, ~0ul, NULL), RVM_EOFFSET);
	region = rvm_rig_part(rig, 0, 0, NULL);
	region.offset = RVM_MK_OFFSET(1, 0);
	assert_int_equal(rvm_map(&region, NULL), RVM_EOFFSET);
	big = rvm_rig_part(rig, 0, 0, NULL);
	big.dev_length = RVM_MK_OFFSET(1, 0);
	assert_int_equal(rvm_map(&big, NULL), RVM_EOFFSET);
	big.dev_length = RVM_LENGTH_TO_OFFSET(1ul << 41);
	assert_int_equal(rvm_map(&big, NULL), RVM_ETOO_BIG);
	memset(&options, 0, sizeof(options));
	assert_int_equal(rvm_map(&big, &options), RVM_EOPTIONS);
	rvm_init_options(&options);
	options.pager = name;
	assert_int_equal(rvm_map(&big, &options), RVM_EPAGER);
	assert_int_equal(segments(), 1);
}

TEST(overlaps_are_refused, struct rvm_rig *rig)
{
	rvm_rig_map_part(rig, 4 * P, 4 * P, elsewhere);
	assert_int_equal(try_map(rig, 0, 5 * P, NULL), RVM_EOVERLAP);
	assert_int_equal(try_map(rig, 7 * P, P, NULL), RVM_EOVERLAP);
	assert_int_equal(try_map(rig, 4 * P, 4 * P, NULL), RVM_EOVERLAP);
	assert_int_equal(try_map(rig, 8 * P, P, (char *)elsewhere + 3 * P), RVM_EVM_OVERLAP);
	assert_int_equal(try_map(rig, 8 * P, 2 * P, (char *)elsewhere - P), RVM_EVM_OVERLAP);
	assert_rvm(try_map(rig, 8 * P, P, (char *)elsewhere + 4 * P));
	assert_rvm(try_map(rig, 9 * P, 2 * P, (char *)elsewhere - 2 * P));
}

TEST(only_what_is_quiet_is_unmapped, struct rvm_rig *rig)
{
	rvm_region_t region = map(rig, 0, 4 * P), other = map(rig, 4 * P, 4 * P);
	rvm_region_t wrong[] = { other, other, other };
	rvm_tid_t tid = rvm_rig_begin();

	assert_rvm(rvm_set_range(&tid, region.vmaddr, 1));
	assert_int_equal(rvm_unmap(&region), RVM_EUNCOMMIT);
	assert_rvm(rvm_set_range(&tid, region.vmaddr + 1, 1));
	wrong[0].length -= P;
	wrong[1].offset.low = 0;
	wrong[2].vmaddr += P;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rvm_unmap(&wrong[i]), RVM_ENOT_MAPPED);
	assert_rvm(rvm_unmap(&other));
	assert_int_equal(rvm_unmap(&other), RVM_ENOT_MAPPED);
	assert_int_equal(rvm_set_range(&tid, other.vmaddr, 1), RVM_ENOT_MAPPED);
	assert_rvm(rvm_end_transaction(&tid, flush));
	assert_rvm(rvm_unmap(&region));
}
