/*
 * records.c - the records of rvm.h and rvm_statistics.h: malloc, init, copy and free of each type.
 * They know nothing of the store.
 */
#include "rvm_statistics.h"

#include <stdlib.h>
#include <string.h>

/* Returns a copy of a record of `size` bytes in allocated memory, or NULL if out of memory. */
static void *copy_record(const void *record, size_t size)
{
	void *copy = malloc(size);

	if (!copy)
		return NULL;
	memcpy(copy, record, size);
	return copy;
}

/* --- transactions --- */

void rvm_init_tid(rvm_tid_t *tid)
{
	if (!tid)
		return;
	memset(tid, 0, sizeof(*tid));
	tid->struct_id = rvm_tid_id;
}

rvm_tid_t *rvm_malloc_tid(void)
{
	rvm_tid_t *tid = malloc(sizeof(*tid));

	rvm_init_tid(tid);
	if (tid)
		tid->from_heap = rvm_true;
	return tid;
}

rvm_tid_t *rvm_copy_tid(rvm_tid_t *tid)
{
	rvm_tid_t *copy;

	if (!tid || tid->struct_id != rvm_tid_id)
		return NULL;
	copy = copy_record(tid, sizeof(*tid));
	if (copy)
		copy->from_heap = rvm_true;
	return copy;
}

void rvm_free_tid(rvm_tid_t *tid)
{
	if (!tid || tid->struct_id != rvm_tid_id)
		return;
	tid->struct_id = rvm_first_struct_id;
	if (tid->from_heap)
		free(tid);
}

/* --- options --- */

void rvm_init_options(rvm_options_t *options)
{
	if (!options)
		return;
	memset(options, 0, sizeof(*options));
	options->struct_id = rvm_options_id;
	options->truncate = TRUNCATE;
	options->recovery_buf_len = RECOVERY_BUF_LEN;
	options->flush_buf_len = FLUSH_BUF_LEN;
	options->max_read_len = MAX_READ_LEN;
}

rvm_options_t *rvm_malloc_options(void)
{
	rvm_options_t *options = malloc(sizeof(*options));

	rvm_init_options(options);
	if (options)
		options->from_heap = rvm_true;
	return options;
}

rvm_options_t *rvm_copy_options(rvm_options_t *options)
{
	rvm_options_t *copy;
	size_t bytes;

	if (!options || options->struct_id != rvm_options_id || options->n_uncommit < 0)
		return NULL;
	copy = copy_record(options, sizeof(*options));
	if (!copy)
		return NULL;
	copy->from_heap = rvm_true;
	bytes = (size_t)options->n_uncommit * sizeof(rvm_tid_t);
	copy->tid_array = NULL;
	if (options->tid_array && bytes) {
		copy->tid_array = copy_record(options->tid_array, bytes);
		if (!copy->tid_array) {
			free(copy);
			return NULL;
		}
	}
	return copy;
}

void rvm_free_options(rvm_options_t *options)
{
	if (!options || options->struct_id != rvm_options_id)
		return;
	free(options->tid_array);
	options->tid_array = NULL;
	options->struct_id = rvm_first_struct_id;
	if (options->from_heap)
		free(options);
}

/* --- regions --- */

void rvm_init_region(rvm_region_t *region)
{
	if (!region)
		return;
	memset(region, 0, sizeof(*region));
	region->struct_id = rvm_region_id;
}

rvm_region_t *rvm_malloc_region(void)
{
	rvm_region_t *region = malloc(sizeof(*region));

	rvm_init_region(region);
	if (region)
		region->from_heap = rvm_true;
	return region;
}

rvm_region_t *rvm_copy_region(rvm_region_t *region)
{
	rvm_region_t *copy;

	if (!region || region->struct_id != rvm_region_id)
		return NULL;
	copy = copy_record(region, sizeof(*region));
	if (copy)
		copy->from_heap = rvm_true;
	return copy;
}

void rvm_free_region(rvm_region_t *region)
{
	if (!region || region->struct_id != rvm_region_id)
		return;
	region->struct_id = rvm_first_struct_id;
	if (region->from_heap)
		free(region);
}

/* --- statistics --- */

void rvm_init_statistics(rvm_statistics_t *statistics)
{
	if (!statistics)
		return;
	memset(statistics, 0, sizeof(*statistics));
	statistics->struct_id = rvm_statistics_id;
}

rvm_statistics_t *rvm_malloc_statistics(void)
{
	rvm_statistics_t *statistics = malloc(sizeof(*statistics));

	rvm_init_statistics(statistics);
	if (statistics)
		statistics->from_heap = rvm_true;
	return statistics;
}

rvm_statistics_t *rvm_copy_statistics(rvm_statistics_t *statistics)
{
	rvm_statistics_t *copy;

	if (!statistics || statistics->struct_id != rvm_statistics_id)
		return NULL;
	copy = copy_record(statistics, sizeof(*statistics));
	if (copy)
		copy->from_heap = rvm_true;
	return copy;
}

void rvm_free_statistics(rvm_statistics_t *statistics)
{
	if (!statistics || statistics->struct_id != rvm_statistics_id)
		return;
	statistics->struct_id = rvm_first_struct_id;
	if (statistics->from_heap)
		free(statistics);
}
