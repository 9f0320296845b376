/*
 * segment.c - the segment loader (rvm_segment.h): loads segments by their load maps (load_map.h),
 * which may come from anywhere. Regions never replace memory of the program.
 */
#include "rvm_segment.h"

#include "fail.h"
#include "load_map.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

static int fail_rvm(rvm_return_t code, const char *doing)
{
	return code == RVM_SUCCESS ? code : ps_rds_fail_rvm(code, doing);
}

/* --- the load map's page --- */

static rvm_return_t map_page(rvm_region_t *region, char *name, uint64_t segment_length,
                             rvm_options_t *options)
{
	rvm_init_region(region);
	region->data_dev = name;
	region->dev_length = rvm_mk_offset(0, segment_length);
	region->length = rvm_page_size();
	return fail_rvm(rvm_map(region, options), "the load map cannot be mapped");
}

static rvm_return_t write_map(void *map, const rvm_region_def_t *regions, uint64_t count)
{
	rvm_return_t code;
	rvm_tid_t tid;

	rvm_init_tid(&tid);
	code = rvm_begin_transaction(&tid, restore);
	if (code == RVM_SUCCESS)
		code = rvm_set_range(&tid, map, ps_rds_map_length(count));
	if (code == RVM_SUCCESS) {
		ps_rds_map_write(map, regions, count);
		code = rvm_end_transaction(&tid, flush);
	}
	fail_rvm(code, "the load map cannot be written");
	if (code != RVM_SUCCESS)
		rvm_abort_transaction(&tid); /* after some errors it has ended already */
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
	if (nregions > ps_rds_map_max_regions())
		return ps_rds_fail(RVM_ENO_MEMORY, "a load map has room for %llu regions",
		                   (unsigned long long)ps_rds_map_max_regions());
	code = ps_rds_check_regions(region_defs, nregions, &end);
	if (code == RVM_SUCCESS)
		code = map_page(&page, DevName, DevLength.low > end ? DevLength.low : end, options);
	if (code != RVM_SUCCESS)
		return code;
	for (rvm_length_t i = 0; i < nregions; at += region_defs[i++].length)
		region_defs[i].offset = rvm_mk_offset(0, at);
	code = write_map(page.vmaddr, region_defs, nregions);
	rvm_unmap(&page);
	return code;
}

/* --- loading --- */

rvm_return_t ps_rds_unmap_region(rvm_region_def_t *def)
{
	rvm_region_t region;
	rvm_return_t code;

	if (!def->vmaddr)
		return RVM_SUCCESS;
	rvm_init_region(&region);
	region.offset = def->offset;
	region.length = def->length;
	region.vmaddr = def->vmaddr;
	code = fail_rvm(rvm_unmap(&region), "a region cannot be unmapped");
	if (code == RVM_SUCCESS)
		def->vmaddr = NULL;
	return code;
}

/* Returns true if the page lies in a mapped region. */
static bool is_in_region(char *page)
{
	rvm_options_t options;
	rvm_region_t region;
	rvm_return_t code;

	rvm_init_options(&options);
	rvm_init_region(&region);
	region.vmaddr = page;
	region.length = rvm_page_size();
	code = rvm_query(&options, &region);
	rvm_free_options(&options);
	return code == RVM_SUCCESS;
}

/* Fails if the program has memory at the region's address: a load map may name any address, and
 * rvm_map would replace that memory. */
static rvm_return_t check_address(uint64_t number, const rvm_region_def_t *def)
{
	void *place;

	if (!def->vmaddr)
		return RVM_SUCCESS;
	place = mmap(def->vmaddr, def->length, PROT_NONE,
	             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	/* A kernel before 4.17 takes the address for a hint. */
	if (place != MAP_FAILED)
		munmap(place, def->length);
	if (place == def->vmaddr)
		return RVM_SUCCESS;
	if (is_in_region(def->vmaddr) || is_in_region(def->vmaddr + def->length - rvm_page_size()))
		return ps_rds_fail(RVM_EVM_OVERLAP,
		                   "region %llu cannot be mapped at %p: another region is there",
		                   (unsigned long long)number, (void *)def->vmaddr);
	return ps_rds_fail(
		RVM_ERANGE,
		"region %llu cannot be mapped at %p: the program has memory there, or the "
		"address is not usable; the segment's load map contains the address",
		(unsigned long long)number, (void *)def->vmaddr);
}

static rvm_return_t map_region(char *name, uint64_t length, uint64_t number, rvm_region_def_t *def)
{
	rvm_return_t code = check_address(number, def);
	rvm_region_t region;

	if (code != RVM_SUCCESS)
		return code;
	rvm_init_region(&region);
	region.data_dev = name;
	region.dev_length = rvm_mk_offset(0, length);
	region.offset = def->offset;
	region.length = def->length;
	region.vmaddr = def->vmaddr;
	code = fail_rvm(rvm_map(&region, NULL), "a region cannot be mapped");
	if (code == RVM_SUCCESS)
		def->vmaddr = region.vmaddr;
	return code;
}

static rvm_return_t map_regions(char *name, uint64_t length, rvm_region_def_t *regions,
                                uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		const rvm_return_t code = map_region(name, length, i, &regions[i]);

		if (code != RVM_SUCCESS) {
			while (i-- > 0)
				ps_rds_unmap_region(&regions[i]);
			return code;
		}
	}
	return RVM_SUCCESS;
}

rvm_return_t rvm_load_segment(char *DevName, rvm_offset_t DevLength, rvm_options_t *options,
                              unsigned long *nregions, rvm_region_def_t *regions[])
{
	struct ps_rds_map map = { 0 };
	rvm_region_t page;
	rvm_return_t code = map_page(&page, DevName, DevLength.low, options);

	if (code != RVM_SUCCESS)
		return code;
	code = page.length < rvm_page_size()
	               ? ps_rds_fail(RVM_ESEGMENT_HDR, "segment '%.200s' is shorter than a page",
	                             DevName)
	               : ps_rds_map_read(page.vmaddr, DevName, &map);
	rvm_unmap(&page);
	if (code != RVM_SUCCESS)
		return code;
	code = map_regions(DevName, DevLength.low > map.end ? DevLength.low : map.end, map.regions,
	                   map.count);
	if (code != RVM_SUCCESS) {
		free(map.regions);
		return code;
	}
	*nregions = map.count;
	*regions = map.regions;
	return RVM_SUCCESS;
}

rvm_return_t rvm_release_segment(unsigned long nregions, rvm_region_def_t **regions)
{
	rvm_return_t code = RVM_SUCCESS;

	if (!regions || !*regions)
		return ps_rds_fail(
			RVM_EREGION_DEF,
			"regions is NULL: pass the array that rvm_load_segment returned");
	for (unsigned long i = 0; i < nregions; i++) {
		const rvm_return_t one = ps_rds_unmap_region(&(*regions)[i]);

		if (code == RVM_SUCCESS)
			code = one;
	}
	if (code != RVM_SUCCESS)
		return code;
	free(*regions);
	*regions = NULL;
	return RVM_SUCCESS;
}
