/*
 * load_map.c - writes, reads and checks load maps of segments (load_map.h).
 */
#include "load_map.h"

#include "fail.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "PSRVMSEG"
#define VERSION 1

struct row {
	uint64_t offset, length, vmaddr;
};

/* The first page of a segment. */
struct load_map {
	char magic[8];
	uint64_t version, count;
	struct row rows[];
};

uint64_t ps_rds_map_max_regions(void)
{
	return (rvm_page_size() - sizeof(struct load_map)) / sizeof(struct row);
}

uint64_t ps_rds_map_length(uint64_t count)
{
	return sizeof(struct load_map) + count * sizeof(struct row);
}

/* --- checks --- */

static bool regions_overlap(const rvm_region_def_t *a, const rvm_region_def_t *b)
{
	return a->vmaddr && b->vmaddr && a->vmaddr < b->vmaddr + b->length &&
	       b->vmaddr < a->vmaddr + a->length;
}

rvm_return_t ps_rds_check_regions(const rvm_region_def_t *regions, uint64_t count, uint64_t *end)
{
	const uint64_t page = rvm_page_size();

	*end = page;
	for (uint64_t i = 0; i < count; i++) {
		const uint64_t length = regions[i].length, at = (uintptr_t)regions[i].vmaddr;

		if (!length || length % page || at % page || at + length < at ||
		    *end + length < *end)
			return ps_rds_fail(RVM_ERANGE,
			                   "region %llu: length and address are multiples of %llu, "
			                   "and the length is not 0",
			                   (unsigned long long)i, (unsigned long long)page);
		*end += length;
		for (uint64_t j = 0; j < i; j++)
			if (regions_overlap(&regions[i], &regions[j]))
				return ps_rds_fail(RVM_EVM_OVERLAP,
				                   "regions %llu and %llu overlap in memory",
				                   (unsigned long long)j, (unsigned long long)i);
	}
	return RVM_SUCCESS;
}

/* --- the page --- */

void ps_rds_map_write(void *page, const rvm_region_def_t *regions, uint64_t count)
{
	struct load_map *map = page;

	memcpy(map->magic, MAGIC, sizeof(map->magic));
	map->version = VERSION;
	map->count = count;
	for (uint64_t i = 0; i < count; i++)
		map->rows[i] = (struct row){ regions[i].offset.low, regions[i].length,
			                     (uintptr_t)regions[i].vmaddr };
}

static rvm_return_t map_fault(const struct load_map *map, const char *name)
{
	if (memcmp(map->magic, MAGIC, sizeof(map->magic)) != 0 || !map->count ||
	    map->count > ps_rds_map_max_regions())
		return ps_rds_fail(RVM_ESEGMENT_HDR,
		                   "segment '%.200s' has no load map: make one with "
		                   "rvm_create_segment",
		                   name);
	if (map->version != VERSION)
		return ps_rds_fail(RVM_EVERSION_SKEW,
		                   "the load map of segment '%.200s' is of version %llu, and this "
		                   "is %d",
		                   name, (unsigned long long)map->version, VERSION);
	return RVM_SUCCESS;
}

/* Reads the regions. Each must begin where the one before it ends. */
static rvm_return_t read_region_rows(const struct load_map *map, const char *name,
                                     struct ps_rds_map *read)
{
	uint64_t at = rvm_page_size();

	for (uint64_t i = 0; i < read->count; at += map->rows[i++].length) {
		rvm_region_def_t *region = &read->regions[i];

		region->offset = rvm_mk_offset(0, map->rows[i].offset);
		region->length = map->rows[i].length;
		region->vmaddr = (char *)(uintptr_t)map->rows[i].vmaddr;
		if (map->rows[i].offset != at)
			return ps_rds_fail(RVM_EOVERLAP,
			                   "the regions of segment '%.200s' do not follow each "
			                   "other",
			                   name);
	}
	return ps_rds_check_regions(read->regions, read->count, &read->end);
}

rvm_return_t ps_rds_map_read(const void *page, const char *name, struct ps_rds_map *read)
{
	rvm_return_t code = map_fault(page, name);

	*read = (struct ps_rds_map){ 0 };
	if (code != RVM_SUCCESS)
		return code;
	read->count = ((const struct load_map *)page)->count;
	read->regions = calloc(read->count, sizeof(*read->regions));
	if (!read->regions)
		return ps_rds_fail(RVM_ENO_MEMORY, "no memory for the regions");
	code = read_region_rows(page, name, read);
	if (code != RVM_SUCCESS) {
		free(read->regions);
		*read = (struct ps_rds_map){ 0 };
	}
	return code;
}
