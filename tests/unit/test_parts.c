/*
 * test_parts.c - which segments of a table are parts of others: by name and address together.
 */
#include "../../proto/control/segment_parts.h"
#include "../../proto/image/layout.h"
#include "../support/unit.h"

TEST(names_of_parts_have_one_form)
{
	static const char *const parts[] = { "a.grown.1", "a.grown.10", "a.grown.127",
		                             "a.grown.2.grown.3", "grown.grown.9" };
	static const char *const others[] = {
		"a",          "a.grown.0",    "a.grown.01", "a.grown.", "a.grown",
		"a.grown.1x", "a.grown.-1",   "a.grown.1.", "grown.1",  ".grown.1",
		"a.grow.1",   "a.grown.1000", "agrown.1",   ""
	};

	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		assert_true(ps_segment_part_is_name(parts[i]));
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(ps_segment_part_is_name(others[i]));
}

TEST(a_part_is_the_next_one_where_the_last_one_ends)
{
	assert_true(ps_segment_part_follows("a.grown.1", 8192, "a", 8192));
	assert_true(ps_segment_part_follows("a.grown.2", 8192, "a.grown.1", 8192));
	assert_false(ps_segment_part_follows("a.grown.1", 8192, "a", 4096));
	assert_false(ps_segment_part_follows("a.grown.2", 8192, "a", 8192));
	assert_false(ps_segment_part_follows("a.grown.1", 8192, "b", 8192));
	assert_false(ps_segment_part_follows("a.grown.1", 8192, "ab", 8192));
	assert_false(ps_segment_part_follows("ab.grown.1", 8192, "a", 8192));
	assert_false(ps_segment_part_follows("a.grown.3", 8192, "a.grown.1", 8192));
	assert_false(ps_segment_part_follows("a.grown.2", 8192, "a.grown.2", 8192));
	assert_false(ps_segment_part_follows("a.grown.2", 8192, "b.grown.1", 8192));
	assert_false(ps_segment_part_follows("a", 8192, "b", 8192));
}

TEST(a_name_may_be_too_long)
{
	char longest[PS_NAME_MAX + 1], name[PS_NAME_MAX + 1] = "as it was";

	memset(longest, 'n', sizeof(longest));
	longest[PS_NAME_MAX] = '\0';
	assert_false(ps_segment_part_name(name, sizeof(name), longest, 1));
	longest[55] = '\0';
	assert_false(ps_segment_part_name(name, sizeof(name), longest, 10));
	assert_string_equal(name, "as it was");
	assert_true(ps_segment_part_name(name, sizeof(name), longest, 9));
	assert_int_equal(strlen(name), PS_NAME_MAX);
	assert_true(ps_segment_part_name(name, sizeof(name), "a", 127));
	assert_string_equal(name, "a.grown.127");
	assert_false(ps_segment_part_name(name, 11, "a", 127));
}

/* In any order of the table; one that lies elsewhere is no part. */
TEST(a_table_has_wholes_and_parts)
{
	static const struct {
		char name[16];
		uint64_t address;
	} rows[] = { { "a.grown.2", 12288 },
		     { "b", 81920 },
		     { "a", 4096 },
		     { "a.grown.1", 8192 },
		     { "b.grown.1", 4096 } };
	Perseas__Segment segments[5], *list[5];
	Perseas__Header header = PERSEAS__HEADER__INIT;

	for (unsigned i = 0; i < 5; i++) {
		perseas__segment__init(&segments[i]);
		segments[i].name = (char *)(uintptr_t)rows[i].name;
		segments[i].address = rows[i].address;
		segments[i].size = 4096;
		list[i] = &segments[i];
	}
	header.n_segments = 5;
	header.segments = list;
	assert_int_equal(ps_count_segments_without_parts(&header), 3);
	assert_ptr_equal(ps_segment_part_next(&header, list[2]), list[3]);
	assert_ptr_equal(ps_segment_part_next(&header, list[3]), list[0]);
	assert_null(ps_segment_part_next(&header, list[0]));
	assert_null(ps_segment_part_next(&header, list[1]));
	assert_ptr_equal(ps_segment_part_before(&header, list[0]), list[3]);
	assert_null(ps_segment_part_before(&header, list[2]));
	assert_null(ps_segment_part_before(&header, list[4]));
}
