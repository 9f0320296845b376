/*
 * test_segment_key.c - what tells one segment from another: keys, and the tables of headers.
 */
#include "../../proto/control/segment_table.h"
#include "../support/unit.h"

#include <string.h>

enum { FIELDS = 6 };

static char name_a[] = "a", name_b[] = "b";

static ProtobufCBinaryData random_id(uint8_t last)
{
	static uint8_t ids[3][PS_ID_SIZE];

	ids[last][PS_ID_SIZE - 1] = last;
	return (ProtobufCBinaryData){ PS_ID_SIZE, ids[last] };
}

static Perseas__Segment segment_of(uint32_t id, char *name)
{
	Perseas__Segment segment = PERSEAS__SEGMENT__INIT;

	segment.id = id;
	segment.name = name;
	segment.size = 512;
	segment.address = 0x200000000000;
	segment.born = 1;
	segment.random_id = random_id(1);
	return segment;
}

/* Segments that differ from the first one in one field each. */
static void differ(Perseas__Segment others[FIELDS])
{
	for (unsigned i = 0; i < FIELDS; i++)
		others[i] = segment_of(0, name_a);
	others[0].id = 1;
	others[1].name = name_b;
	others[2].size = 513;
	others[3].address += 4096;
	others[4].born = 2;
	others[5].random_id = random_id(2);
}

TEST(segments_that_differ_in_one_field_are_different_segments)
{
	Perseas__Segment a = segment_of(0, name_a), same = segment_of(0, name_a), others[FIELDS];

	assert_true(ps_is_same_segment(&a, &same));
	differ(others);
	for (unsigned i = 0; i < FIELDS; i++)
		assert_false(ps_is_same_segment(&a, &others[i]));
}

/* A segment never gains a random id: one without was added at level 0, and is another one. */
TEST(a_segment_with_and_one_without_a_random_id_differ)
{
	Perseas__Segment a = segment_of(0, name_a), without = segment_of(0, name_a), other;

	without.random_id = (ProtobufCBinaryData){ 0, NULL };
	other = without;
	assert_false(ps_is_same_segment(&a, &without));
	assert_true(ps_is_same_segment(&without, &other));
}

/* A death that is only announced means nothing to anybody but its session. */
TEST(a_death_does_not_make_it_another_segment)
{
	Perseas__Segment a = segment_of(0, name_a), same = segment_of(0, name_a);

	same.died = 7;
	same.died_epoch = 2;
	assert_true(ps_is_same_segment(&a, &same));
}

static Perseas__Header header_of(Perseas__Segment **segments, size_t count)
{
	Perseas__Header header = PERSEAS__HEADER__INIT;

	header.segments = segments;
	header.n_segments = count;
	return header;
}

TEST(tables_are_equal_in_any_order)
{
	Perseas__Segment a = segment_of(0, name_a), b = segment_of(1, name_b);
	Perseas__Segment *one[] = { &a, &b }, *other[] = { &b, &a };
	Perseas__Header x = header_of(one, 2), y = header_of(other, 2);

	assert_true(ps_segment_tables_equal(&x, &y));
	y.n_segments = 1;
	assert_false(ps_segment_tables_equal(&x, &y));
	assert_false(ps_segment_tables_equal(&y, &x));
}

TEST(tables_with_another_segment_differ)
{
	Perseas__Segment a = segment_of(0, name_a), others[FIELDS];
	Perseas__Segment *one[] = { &a }, *other[1];
	Perseas__Header x = header_of(one, 1), y = header_of(other, 1);

	differ(others);
	for (unsigned i = 0; i < FIELDS; i++) {
		other[0] = &others[i];
		assert_false(ps_segment_tables_equal(&x, &y));
	}
}
