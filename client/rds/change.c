/*
 * change.c - words of a heap that change together (heap.h).
 */
#include "fail.h"
#include "heap.h"

#include <assert.h>
#include <stddef.h>

uint64_t ps_rds_read_word(const struct ps_rds_change *change, uint64_t place)
{
	for (unsigned i = 0; i < change->count; i++)
		if (change->words[i].place == place)
			return change->words[i].value;
	return *ps_rds_word_at(place);
}

void ps_rds_write_word(struct ps_rds_change *change, uint64_t place, uint64_t value)
{
	unsigned i = 0;

	while (i < change->count && change->words[i].place != place)
		i++;
	assert(i < PS_RDS_WORDS);
	change->words[i].place = place;
	change->words[i].value = value;
	if (i == change->count)
		change->count++;
}

static uint64_t count_word_place(enum ps_rds_count count)
{
	return offsetof(struct ps_rds_head, counts) + (uint64_t)count * sizeof(uint64_t);
}

void ps_rds_add_to_count(struct ps_rds_change *change, enum ps_rds_count count, uint64_t more)
{
	const uint64_t place = count_word_place(count);

	ps_rds_write_word(change, place, ps_rds_read_word(change, place) + more);
}

void ps_rds_subtract_from_count(struct ps_rds_change *change, enum ps_rds_count count,
                                uint64_t less)
{
	ps_rds_add_to_count(change, count, -less);
}

int ps_rds_apply_change(struct ps_rds_change *change)
{
	for (unsigned i = 0; i < change->count; i++) {
		const rvm_return_t code = rvm_set_range(change->tid,
		                                        ps_rds_word_at(change->words[i].place),
		                                        sizeof(uint64_t));

		if (code != RVM_SUCCESS)
			return ps_rds_fail_rvm(code, "a change of the heap cannot be declared");
	}
	for (unsigned i = 0; i < change->count; i++)
		*ps_rds_word_at(change->words[i].place) = change->words[i].value;
	return SUCCESS;
}
