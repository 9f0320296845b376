/*
 * map.c - rvm_map and rvm_unmap: maps regions at addresses that the program may choose, and keeps
 * the state of each piece (struct ps_rvm_piece).
 */
#include "cancel.h"
#include "cut.h"
#include "data_file.h"
#include "fail.h"
#include "state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* --- the state of pieces --- */

static uint64_t count_bitmap_words(uint64_t length)
{
	const uint64_t grain = (uint64_t)PS_RVM_PAGE * PS_RVM_WORD;

	return (length + grain - 1) / grain;
}

bool ps_rvm_piece_init(unsigned row, uint64_t length, bool dirty)
{
	struct ps_rvm_piece *piece = &ps_rvm.pieces[row];

	ps_rvm_assert_locked();
	assert(!piece->dirty);
	piece->dirty = calloc(count_bitmap_words(length), sizeof(*piece->dirty));
	if (!piece->dirty)
		return false;
	atomic_store(&piece->length, length);
	for (uint64_t page = 0; dirty && page < (length + PS_RVM_PAGE - 1) / PS_RVM_PAGE; page++)
		atomic_fetch_or_explicit(&piece->dirty[page / PS_RVM_WORD],
		                         (uint64_t)1 << page % PS_RVM_WORD, memory_order_relaxed);
	return true;
}

void ps_rvm_piece_free(unsigned row)
{
	struct ps_rvm_piece *piece = &ps_rvm.pieces[row];

	ps_rvm_assert_locked();
	atomic_store(&piece->base, NULL);
	free(piece->dirty);
	piece->dirty = NULL;
	piece->replaces_memory = false;
}

bool ps_rvm_has_dirty_pages(void)
{
	for (unsigned i = 0; i < PS_RVM_PIECES; i++) {
		const struct ps_rvm_piece *piece = &ps_rvm.pieces[i];

		for (uint64_t word = 0; piece->dirty && word < count_bitmap_words(piece->length);
		     word++)
			if (atomic_load(&piece->dirty[word]))
				return true;
	}
	return false;
}

int ps_rvm_find_region(const void *addr, rvm_length_t length)
{
	for (int i = 0; i < PS_RVM_PIECES; i++)
		if (ps_rvm_piece_has(&ps_rvm.pieces[i], addr, length))
			return i;
	return -1;
}

void ps_rvm_return_memory(void *base, uint64_t length)
{
	void *back = mmap(base, length, PROT_READ | PROT_WRITE,
	                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	/* A kernel before 4.17 takes the address for a hint. */
	if (back != MAP_FAILED && back != base)
		munmap(back, length);
}

/* --- rvm_map --- */

static rvm_return_t region_fault(const rvm_region_t *region)
{
	if (!region || region->struct_id != rvm_region_id)
		return ps_rvm_fail(RVM_EREGION, "region is not an initialized rvm_region_t: call "
		                                "rvm_init_region first");
	if (!region->data_dev || !*region->data_dev)
		return ps_rvm_fail(RVM_EREGION, "the region names no external data segment "
		                                "(data_dev)");
	if (strlen(region->data_dev) >= PS_RVM_NAME)
		return ps_rvm_fail(RVM_ENAME_TOO_LONG,
		                   "the name of the external data segment has more than %d bytes",
		                   PS_RVM_NAME - 1);
	return RVM_SUCCESS;
}

/* Finds the region's segment in the table, and sets its length: from the region, the table, or the
 * file. */
static rvm_return_t find_segment(const rvm_region_t *region, struct ps_rvm_wanted_part *want)
{
	struct ps_rvm_file file;
	rvm_return_t code;

	want->name = region->data_dev;
	want->segment = ps_rvm_table_find(ps_rvm.table, region->data_dev);
	if (region->dev_length.high)
		return ps_rvm_fail(RVM_EOFFSET, "dev_length is more than 2^64");
	want->segment_length = region->dev_length.low;
	if (want->segment >= 0) {
		if (!want->segment_length)
			want->segment_length = ps_rvm.table->segments[want->segment].length;
		return RVM_SUCCESS;
	}
	code = ps_rvm_file_open(&file, region->data_dev,
	                        want->segment_length ? NULL : &want->segment_length);
	if (code == RVM_SUCCESS)
		ps_rvm_file_close(&file);
	return code;
}

/* Sets the part of the segment to map for the region: whole pages, except at the segment's end. */
static rvm_return_t place_in_segment(const rvm_region_t *region, struct ps_rvm_wanted_part *want)
{
	const uint64_t page = rvm_page_size();
	uint64_t end = region->offset.low + region->length;

	if (region->offset.high || region->offset.low >= want->segment_length ||
	    end < region->offset.low)
		return ps_rvm_fail(RVM_EOFFSET,
		                   "offset %lu and length %lu are not inside of segment '%.200s', "
		                   "which has %llu bytes",
		                   region->offset.low, region->length, want->name,
		                   (unsigned long long)want->segment_length);
	want->offset = region->offset.low & ~(page - 1);
	if (end <= UINT64_MAX - page)
		end = (end + page - 1) & ~(page - 1);
	if (!region->length || end > want->segment_length)
		end = want->segment_length;
	want->length = end - want->offset;
	if (want->length > PS_RVM_LENGTH_MAX)
		return ps_rvm_fail(RVM_ETOO_BIG, "a region has 1 TiB at most");
	return RVM_SUCCESS;
}

static rvm_return_t overlap_fault(const rvm_region_t *region, const struct ps_rvm_wanted_part *want)
{
	const uint64_t start = (uint64_t)(uintptr_t)region->vmaddr;
	const uint64_t table = (uint64_t)(uintptr_t)ps_rvm.table;
	bool there = false, in_segment = false;

	if (start % rvm_page_size() || start + want->length < start)
		return ps_rvm_fail(RVM_ERANGE, "%p is not where a page begins",
		                   (void *)region->vmaddr);
	if (start && start < table + sizeof(*ps_rvm.table) && table < start + want->length)
		return ps_rvm_fail(RVM_ERANGE, "this library has memory of its own at %p",
		                   (void *)region->vmaddr);
	for (unsigned i = 0; i < PS_RVM_PIECES; i++) {
		const struct ps_rvm_piece_row *row = &ps_rvm.table->pieces[i];
		const uint64_t base = (uint64_t)(uintptr_t)ps_rvm.pieces[i].base;

		if (!base)
			continue;
		there |= start && start < base + row->length && base < start + want->length;
		in_segment |= row->segment == (uint32_t)want->segment &&
		              row->offset < want->offset + want->length &&
		              want->offset < row->offset + row->length;
	}
	if (there)
		return ps_rvm_fail(RVM_EVM_OVERLAP, "another region is mapped at %p, or near it",
		                   (void *)region->vmaddr);
	if (in_segment)
		return ps_rvm_fail(RVM_EOVERLAP,
		                   "a part of these bytes of segment '%.200s' is mapped already",
		                   want->name);
	return RVM_SUCCESS;
}

/* Maps a piece at vmaddr, or anywhere if that is NULL. Replaces memory of the caller only if the
 * caller has memory in all of the range; *replaces_memory is then true. */
static rvm_return_t map_piece(perseas_t *store, unsigned row, char *vmaddr, void **base,
                              bool *replaces_memory)
{
	const struct ps_rvm_piece_row *piece = &ps_rvm.table->pieces[row];
	const struct ps_rvm_piece_name name = ps_rvm_piece_name(piece->id);
	int rc = perseas_map_at(store, name.text, 0, vmaddr, base, NULL);

	*replaces_memory = rc == PERSEAS_EADDRESS && vmaddr &&
	                   !msync(vmaddr, piece->length, MS_ASYNC);
	if (*replaces_memory) {
		munmap(vmaddr, piece->length);
		rc = perseas_map_at(store, name.text, 0, vmaddr, base, NULL);
		if (rc)
			ps_rvm_return_memory(vmaddr, piece->length);
	}
	return rc ? ps_rvm_fail_store(store, rc, "the region cannot be mapped") : RVM_SUCCESS;
}

/* Returns the row of the piece that is exactly the wanted part, or -1. */
static int find_exact_piece(const struct ps_rvm_wanted_part *want)
{
	for (int i = 0; i < PS_RVM_PIECES && want->segment >= 0; i++) {
		const struct ps_rvm_piece_row *row = &ps_rvm.table->pieces[i];

		if (row->id && row->segment == (uint32_t)want->segment &&
		    row->offset == want->offset && row->length == want->length)
			return i;
	}
	return -1;
}

/* Maps the wanted part, and makes a piece for it if necessary. A new piece is made at any free
 * address, because the store records that address, and must not record one that another piece may
 * need. It is then moved to vmaddr. */
static rvm_return_t map_wanted(perseas_t *store, const struct ps_rvm_wanted_part *want,
                               char *vmaddr, unsigned *row, void **base)
{
	const int found = find_exact_piece(want);
	rvm_return_t code = RVM_SUCCESS;
	bool replaces_memory = false;
	int rc;

	*base = NULL;
	*row = (unsigned)found;
	if (found < 0)
		code = ps_rvm_make_piece(store, want, row, base);
	if (code != RVM_SUCCESS)
		return code;
	if (*base && vmaddr && *base != vmaddr) {
		rc = perseas_unmap(store, *base);
		if (rc)
			return ps_rvm_fail_store(store, rc, "the region cannot be moved");
		*base = NULL;
	}
	if (!*base)
		code = map_piece(store, *row, vmaddr, base, &replaces_memory);
	ps_rvm.pieces[*row].replaces_memory = replaces_memory && code == RVM_SUCCESS;
	return code;
}

static rvm_return_t map_locked(rvm_region_t *region, rvm_options_t *options)
{
	struct ps_rvm_wanted_part want = { 0 };
	rvm_return_t code;
	perseas_t *store;
	unsigned row;
	void *base;

	if (atomic_load(&ps_rvm.phase) != PS_RVM_PHASE_READY)
		return ps_rvm_fail(RVM_EINIT, "the library is not initialized, or was terminated");
	code = region_fault(region);
	if (code == RVM_SUCCESS && options)
		code = ps_rvm_apply_options(options);
	if (code == RVM_SUCCESS)
		code = ps_rvm_require_store(&store);
	if (code == RVM_SUCCESS)
		code = find_segment(region, &want);
	if (code == RVM_SUCCESS)
		code = place_in_segment(region, &want);
	if (code == RVM_SUCCESS)
		code = overlap_fault(region, &want);
	if (code == RVM_SUCCESS)
		code = map_wanted(store, &want, region->vmaddr, &row, &base);
	if (code != RVM_SUCCESS)
		return code;
	region->offset = rvm_mk_offset(0, want.offset);
	region->length = want.length;
	region->vmaddr = base;
	ps_rvm.named[ps_rvm.table->pieces[row].segment] = true;
	atomic_store_explicit(&ps_rvm.pieces[row].base, base, memory_order_release);
	return RVM_SUCCESS;
}

rvm_return_t rvm_map(rvm_region_t *region, rvm_options_t *options)
{
	PS_RVM_UNCANCELLED;
	rvm_return_t code;

	pthread_mutex_lock(&ps_rvm.lock);
	code = map_locked(region, options);
	pthread_mutex_unlock(&ps_rvm.lock);
	return code;
}

/* --- rvm_unmap --- */

static rvm_return_t unmap_locked(const rvm_region_t *region)
{
	const struct ps_rvm_piece_row *told;
	struct ps_rvm_piece *piece;
	rvm_return_t code;
	perseas_t *store;
	int row, rc;

	code = ps_rvm_require_store(&store);
	if (code != RVM_SUCCESS)
		return code;
	if (!region || region->struct_id != rvm_region_id)
		return ps_rvm_fail(RVM_EREGION, "region is not an initialized rvm_region_t");
	row = ps_rvm_find_region(region->vmaddr, region->length);
	told = row < 0 ? NULL : &ps_rvm.table->pieces[row];
	piece = row < 0 ? NULL : &ps_rvm.pieces[row];
	if (!piece || piece->base != region->vmaddr || told->length != region->length ||
	    told->offset != region->offset.low || region->offset.high)
		return ps_rvm_fail(RVM_ENOT_MAPPED, "no region is mapped as the record says");
	rc = perseas_unmap(store, region->vmaddr);
	if (rc)
		return ps_rvm_fail_store(store, rc, "the region cannot be unmapped");
	atomic_store(&piece->base, NULL);
	if (piece->replaces_memory)
		ps_rvm_return_memory(region->vmaddr, told->length);
	piece->replaces_memory = false;
	return RVM_SUCCESS;
}

rvm_return_t rvm_unmap(rvm_region_t *region)
{
	PS_RVM_UNCANCELLED;
	rvm_return_t code;

	pthread_mutex_lock(&ps_rvm.lock);
	code = unmap_locked(region);
	pthread_mutex_unlock(&ps_rvm.lock);
	return code;
}
