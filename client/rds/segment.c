/*
 * segment.c - the segment loader (rvm_segment.h): load maps, written, read and checked. What a load
 * map says is checked before anything is mapped: it may come from anywhere.
 */
#include "rvm_segment.h"

#include "fail.h"

#include <stdbool.h>
#include <stdint.h>
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

static uint64_t most_rows(void)
{
	return (rvm_page_size() - sizeof(struct load_map)) / sizeof(struct row);
}

static int rvm_fault(rvm_return_t code, const char *doing)
{
	return code == RVM_SUCCESS ? code : ps_rds_fail_rvm(code, doing);
}

/* --- what regions may be --- */

static bool overlap(const rvm_region_def_t *a, const rvm_region_def_t *b)
{
	return a->vmaddr && b->vmaddr && a->vmaddr < b->vmaddr + b->length &&
	       b->vmaddr < a->vmaddr + a->length;
}

/* Lengths and addresses, and where the last region ends. */
static rvm_return_t regions_fault(const rvm_region_def_t *regions, uint64_t count, uint64_t *end)
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
			if (overlap(&regions[i], &regions[j]))
				return ps_rds_fail(RVM_EVM_OVERLAP,
				                   "regions %llu and %llu overlap in memory",
				                   (unsigned long long)j, (unsigned long long)i);
	}
	return RVM_SUCCESS;
}

/* --- the load map's page --- */

static rvm_return_t map_page(rvm_region_t *region, char *name, uint64_t segment_length,
                             rvm_options_t *options)
{
	rvm_init_region(region);
	region->data_dev = name;
	region->dev_length = rvm_mk_offset(0, segment_length);
	region->length = rvm_page_size();
	return rvm_fault(rvm_map(region, options), "the load map cannot be mapped");
}

static rvm_return_t write_map(struct load_map *map, const rvm_region_def_t *regions, uint64_t count)
{
	const rvm_length_t length = sizeof(*map) + count * sizeof(struct row);
	rvm_return_t code;
	rvm_tid_t tid;

	rvm_init_tid(&tid);
	code = rvm_begin_transaction(&tid, restore);
	if (code == RVM_SUCCESS)
		code = rvm_set_range(&tid, map, length);
	if (code == RVM_SUCCESS) {
		memcpy(map->magic, MAGIC, sizeof(map->magic));
		map->version = VERSION;
		map->count = count;
		for (uint64_t i = 0; i < count; i++)
			map->rows[i] = (struct row){ regions[i].offset.low, regions[i].length,
				                     (uintptr_t)regions[i].vmaddr };
		code = rvm_end_transaction(&tid, flush);
	}
	rvm_fault(code, "the load map cannot be written");
	if (code != RVM_SUCCESS)
		rvm_abort_transaction(&tid); /* If it has not ended. */
	return code;
}

rvm_return_t rvm_create_segment(char *DevName, rvm_offset_t DevLength, rvm_options_t *options,
                                rvm_length_t nregions, rvm_region_def_t *region_defs)
{
	uint64_t end = 0, at = rvm_page_size();
	rvm_region_t page;
	rvm_return_t code;

	if (!nregions || !region_defs)
		return ps_rds_fail(RVM_EREGION_DEF, "a segment needs a region");
	if (nregions > most_rows())
		return ps_rds_fail(RVM_ENO_MEMORY, "a load map has room for %llu regions",
		                   (unsigned long long)most_rows());
	code = regions_fault(region_defs, nregions, &end);
	if (code == RVM_SUCCESS)
		code = map_page(&page, DevName, DevLength.low > end ? DevLength.low : end, options);
	if (code != RVM_SUCCESS)
		return code;
	for (rvm_length_t i = 0; i < nregions; at += region_defs[i++].length)
		region_defs[i].offset = rvm_mk_offset(0, at);
	code = write_map((struct load_map *)page.vmaddr, region_defs, nregions);
	rvm_unmap(&page);
	return code;
}

/* --- loading --- */

static rvm_return_t map_fault(const struct load_map *map, const char *name)
{
	if (memcmp(map->magic, MAGIC, sizeof(map->magic)) != 0 || !map->count ||
	    map->count > most_rows())
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

/* The regions, in an array of malloc, and where the last one ends. Places are as they were given:
 * one behind the other. */
static rvm_return_t read_map(const struct load_map *map, const char *name,
                             rvm_region_def_t **regions, uint64_t *end)
{
	uint64_t at = rvm_page_size();
	rvm_return_t code = map_fault(map, name);

	*regions = code == RVM_SUCCESS ? calloc(map->count, sizeof(**regions)) : NULL;
	if (code != RVM_SUCCESS)
		return code;
	if (!*regions)
		return ps_rds_fail(RVM_ENO_MEMORY, "no memory for the regions");
	for (uint64_t i = 0; i < map->count; at += map->rows[i++].length) {
		(*regions)[i].offset = rvm_mk_offset(0, map->rows[i].offset);
		(*regions)[i].length = map->rows[i].length;
		(*regions)[i].vmaddr = (char *)(uintptr_t)map->rows[i].vmaddr;
		if (map->rows[i].offset != at)
			code = ps_rds_fail(RVM_EOVERLAP,
			                   "the regions of segment '%.200s' do not follow each "
			                   "other",
			                   name);
	}
	if (code == RVM_SUCCESS)
		code = regions_fault(*regions, map->count, end);
	if (code != RVM_SUCCESS)
		free(*regions);
	return code;
}

static rvm_return_t unmap(rvm_region_def_t *def)
{
	rvm_region_t region;
	rvm_return_t code;

	if (!def->vmaddr)
		return RVM_SUCCESS;
	rvm_init_region(&region);
	region.offset = def->offset;
	region.length = def->length;
	region.vmaddr = def->vmaddr;
	code = rvm_fault(rvm_unmap(&region), "a region cannot be unmapped");
	if (code == RVM_SUCCESS)
		def->vmaddr = NULL;
	return code;
}

static rvm_return_t map_all(char *name, uint64_t length, rvm_region_def_t *regions, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		rvm_region_t region;
		rvm_return_t code;

		rvm_init_region(&region);
		region.data_dev = name;
		region.dev_length = rvm_mk_offset(0, length);
		region.offset = regions[i].offset;
		region.length = regions[i].length;
		region.vmaddr = regions[i].vmaddr;
		code = rvm_fault(rvm_map(&region, NULL), "a region cannot be mapped");
		if (code != RVM_SUCCESS) {
			while (i-- > 0)
				unmap(&regions[i]);
			return code;
		}
		regions[i].vmaddr = region.vmaddr;
	}
	return RVM_SUCCESS;
}

rvm_return_t rvm_load_segment(char *DevName, rvm_offset_t DevLength, rvm_options_t *options,
                              unsigned long *nregions, rvm_region_def_t *regions[])
{
	rvm_region_def_t *made = NULL;
	rvm_region_t page;
	uint64_t count, end = 0;
	rvm_return_t code = map_page(&page, DevName, DevLength.low, options);

	if (code != RVM_SUCCESS)
		return code;
	code = page.length < rvm_page_size()
	               ? ps_rds_fail(RVM_ESEGMENT_HDR, "segment '%.200s' is shorter than a page",
	                             DevName)
	               : read_map((struct load_map *)page.vmaddr, DevName, &made, &end);
	count = code == RVM_SUCCESS ? ((struct load_map *)page.vmaddr)->count : 0;
	rvm_unmap(&page);
	if (code != RVM_SUCCESS || !made)
		return code;
	code = map_all(DevName, DevLength.low > end ? DevLength.low : end, made, count);
	if (code != RVM_SUCCESS) {
		free(made);
		return code;
	}
	*nregions = count;
	*regions = made;
	return RVM_SUCCESS;
}

rvm_return_t rvm_release_segment(unsigned long nregions, rvm_region_def_t **regions)
{
	rvm_return_t code = RVM_SUCCESS;

	if (!regions || !*regions)
		return ps_rds_fail(RVM_EREGION_DEF, "there is no array of regions");
	for (unsigned long i = 0; i < nregions; i++) {
		const rvm_return_t one = unmap(&(*regions)[i]);

		if (code == RVM_SUCCESS)
			code = one;
	}
	if (code != RVM_SUCCESS)
		return code;
	free(*regions);
	*regions = NULL;
	return RVM_SUCCESS;
}
