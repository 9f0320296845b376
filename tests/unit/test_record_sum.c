/*
 * test_record_sum.c - the sum that records have at level 1, and not before, as mirrors hold them.
 */
#include "level_rig.h"

/* Commits once. Returns the record of that, as a mirror has it. */
static const struct ps_record *commit_record(struct owner *o)
{
	const uint8_t *log = owner_piece(o, 0, "log");

	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	return (const void *)(log + PS_RING_OFFSET + o->p->commit.last_position % o->p->log_size);
}

TEST(records_of_level_1_have_a_sum)
{
	struct owner *o = begin(3, 2);
	const struct ps_record *record = commit_record(o);

	assert_int_equal(record->seq, o->p->commit.seq);
	assert_int_not_equal(record->sum, 0);
	assert_int_equal(record->sum, ps_record_sum(record));
	owner_free(o);
}

/* A reader of the version before would refuse a record that has one. */
TEST(records_have_a_sum_once_a_store_is_raised)
{
	struct owner *o = begin_low();
	const struct ps_record *record = commit_record(o);

	assert_int_equal(record->seq, o->p->commit.seq);
	assert_int_equal(record->sum, 0);
	raise_level(o);
	record = commit_record(o);
	assert_int_equal(record->seq, o->p->commit.seq);
	assert_int_equal(record->sum, ps_record_sum(record));
	owner_free(o);
}
