/*
 * init.c - creates, starts and stops the heap of a process, and loads it with its segment.
 */
#include "../rvm/cancel.h"
#include "fail.h"
#include "heap.h"
#include "load_map.h"
#include "rds_private.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(free_block_t) + sizeof(guard_t) == RDS_MIN_CHUNK_SIZE,
               "programs compute the smallest chunk from these types");

rvm_region_def_t *RegionDefs;
unsigned long NRegionDefs;
rvm_bool_t rds_testsw;

/* Name of the segment that RegionDefs belongs to. RVM refuses longer names. */
static char loaded_name[1024];

/* --- checks --- */

static int check_shape(uint64_t length, uint64_t chunk, uint64_t nlists)
{
	if (chunk < RDS_MIN_CHUNK_SIZE || chunk % sizeof(char *))
		return ps_rds_fail(EBAD_ARGS, "a chunk has %d bytes or more, and a multiple of %zu",
		                   RDS_MIN_CHUNK_SIZE, sizeof(char *));
	if (nlists < RDS_MIN_FREE_LISTS)
		return ps_rds_fail(EBAD_LIST, "a heap has at least one list");
	if (length / chunk > UINT32_MAX)
		return ps_rds_fail(EBAD_ARGS, "a heap has 2^32 chunks at most");
	if (length < sizeof(struct ps_rds_head) || nlists >= length / sizeof(uint64_t) ||
	    length - sizeof(struct ps_rds_head) < (nlists + 1) * sizeof(uint64_t) + chunk)
		return ps_rds_fail(ENO_ROOM, "%llu bytes do not hold the lists and one block",
		                   (unsigned long long)length);
	return SUCCESS;
}

static int check_no_other_heap(const char *base)
{
	if (ps_rds.base && ps_rds.base != base)
		return ps_rds_fail(EHEAP_INIT, "another heap is started: call rds_stop_heap, or "
		                               "rds_unload_heap, first");
	return SUCCESS;
}

static void start_heap(char *base, uint64_t length, uint64_t chunk, uint64_t nlists)
{
	ps_rds.base = base;
	ps_rds.length = length;
	ps_rds.chunk = chunk;
	ps_rds.nlists = nlists;
	ps_rds.first = sizeof(struct ps_rds_head) + (nlists + 1) * sizeof(uint64_t);
	ps_rds.end = length - (length - ps_rds.first) % chunk;
	memset(&ps_rds.user, 0, sizeof(ps_rds.user));
}

/* --- making a heap --- */

/* Writes an empty heap. Declares everything before it changes anything. */
static int format_heap(rvm_tid_t *tid)
{
	struct ps_rds_head *head = ps_rds_head();
	const uint64_t chunks = (ps_rds.end - ps_rds.first) / ps_rds.chunk;
	struct ps_rds_change change = { .tid = tid };
	const rvm_return_t code = rvm_set_range(tid, head, ps_rds.first);
	int rc;

	if (code != RVM_SUCCESS)
		return ps_rds_fail_rvm(code, "the heap's head cannot be declared");
	for (uint64_t i = 0; i < PS_RDS_COUNTS; i++)
		ps_rds_write_word(&change,
		                  offsetof(struct ps_rds_head, counts) + i * sizeof(uint64_t), 0);
	ps_rds_write_word(&change,
	                  offsetof(struct ps_rds_head, counts) +
	                          PS_RDS_FREE_BYTES * sizeof(uint64_t),
	                  ps_rds.end - ps_rds.first);
	ps_rds_write_word(&change, ps_rds_list_place(chunks), 0);
	ps_rds_link_block(&change, ps_rds.first, chunks);
	rc = ps_rds_apply_change(&change);
	if (rc != SUCCESS)
		return rc;
	for (uint64_t i = 1; i <= ps_rds.nlists + 1; i++)
		if (ps_rds_list_place(i) != ps_rds_list_place(chunks))
			*ps_rds_word_at(ps_rds_list_place(i)) = 0;
	memcpy(head->magic, PS_RDS_MAGIC, sizeof(head->magic));
	head->length = ps_rds.length;
	head->chunk = ps_rds.chunk;
	head->nlists = ps_rds.nlists;
	return SUCCESS;
}

int rds_init_heap(char *base, rvm_length_t length, unsigned long chunkSize, unsigned long nlists,
                  rvm_tid_t *tid, int *err)
{
	PS_RVM_UNCANCELLED;
	int code = SUCCESS;

	pthread_mutex_lock(&ps_rds.lock);
	if (!base || (uintptr_t)base % sizeof(uint64_t) || !tid)
		code = ps_rds_fail(EBAD_ARGS,
		                   "a heap needs a base that is a multiple of %zu, and "
		                   "a transaction",
		                   sizeof(uint64_t));
	if (code == SUCCESS)
		code = check_no_other_heap(base);
	if (code == SUCCESS)
		code = check_shape(length, chunkSize, nlists);
	if (code == SUCCESS) {
		const struct ps_rds before = ps_rds;

		start_heap(base, length, chunkSize, nlists);
		code = format_heap(tid);
		if (code != SUCCESS)
			start_heap(before.base, before.length, before.chunk, before.nlists);
		else
			ps_rds.user = *tid;
	}
	pthread_mutex_unlock(&ps_rds.lock);
	return ps_rds_set_err(code, err);
}

/* --- starting and stopping a heap --- */

/* Fails unless `length` bytes from `base` on lie in a mapped region. */
static int check_mapped(char *base, uint64_t length)
{
	rvm_options_t options;
	rvm_region_t region;
	rvm_return_t code;

	rvm_init_options(&options);
	rvm_init_region(&region);
	region.vmaddr = base;
	region.length = length;
	code = rvm_query(&options, &region);
	rvm_free_options(&options);
	return code == RVM_SUCCESS ? SUCCESS : ps_rds_fail_rvm(code, "no heap can be there");
}

static int start_heap_locked(char *base)
{
	const struct ps_rds_head *head = (struct ps_rds_head *)base;
	int code = check_no_other_heap(base);

	if (code == SUCCESS && (uintptr_t)base % sizeof(uint64_t))
		code = ps_rds_fail(EHEAP_VERSION_SKEW, "no heap begins at %p", (void *)base);
	if (code == SUCCESS)
		code = check_mapped(base, sizeof(*head));
	if (code == SUCCESS && memcmp(head->magic, PS_RDS_MAGIC, sizeof(head->magic)) != 0)
		code = ps_rds_fail(EHEAP_VERSION_SKEW,
		                   "no heap of this version is at %p: make one "
		                   "with rds_zap_heap or rds_init_heap",
		                   (void *)base);
	if (code == SUCCESS && check_shape(head->length, head->chunk, head->nlists) != SUCCESS)
		code = ps_rds_fail(ECORRUPT, "the heap's head was overwritten");
	if (code == SUCCESS)
		code = check_mapped(base, head->length);
	if (code == SUCCESS && !ps_rds.base)
		start_heap(base, head->length, head->chunk, head->nlists);
	return code;
}

int rds_start_heap(char *startAddr, int *err)
{
	PS_RVM_UNCANCELLED;
	int code;

	pthread_mutex_lock(&ps_rds.lock);
	code = start_heap_locked(startAddr);
	pthread_mutex_unlock(&ps_rds.lock);
	return ps_rds_set_err(code, err);
}

static int check_started(void)
{
	return ps_rds.base ? SUCCESS : ps_rds_fail(EHEAP_INIT, "no heap is started");
}

static int stop_heap(void)
{
	int code;

	pthread_mutex_lock(&ps_rds.lock);
	code = check_started();
	ps_rds.base = NULL;
	pthread_mutex_unlock(&ps_rds.lock);
	return code;
}

int rds_stop_heap(int *err)
{
	PS_RVM_UNCANCELLED;
	return ps_rds_set_err(stop_heap(), err);
}

/* --- loading a heap with its segment --- */

static int load_regions(char *name, rvm_offset_t length)
{
	unsigned long count;
	rvm_region_def_t *regions;
	const rvm_return_t code = rvm_load_segment(name, length, NULL, &count, &regions);

	if (code != RVM_SUCCESS)
		return code;
	if (count != 2) {
		rvm_release_segment(count, &regions);
		return ps_rds_fail(EBAD_SEGMENT_HDR,
		                   "segment '%.200s' has %lu regions, and one with a heap has two",
		                   name, count);
	}
	RegionDefs = regions;
	NRegionDefs = count;
	snprintf(loaded_name, sizeof(loaded_name), "%s", name);
	return SUCCESS;
}

static rvm_return_t release_regions(void)
{
	const rvm_return_t code = rvm_release_segment(NRegionDefs, &RegionDefs);

	if (code == RVM_SUCCESS)
		NRegionDefs = 0;
	return code;
}

/* Returns how many of the loaded regions are still mapped. Caller holds ps_rds.lock. */
static unsigned long count_mapped(void)
{
	unsigned long count = 0;

	for (unsigned long i = 0; RegionDefs && i < NRegionDefs; i++)
		count += check_mapped(RegionDefs[i].vmaddr, RegionDefs[i].length) == SUCCESS;
	return count;
}

/* Returns true if both regions of this segment are mapped, whether its heap is started or not. */
static bool is_loaded(const char *name)
{
	bool loaded;

	pthread_mutex_lock(&ps_rds.lock);
	loaded = name && strcmp(name, loaded_name) == 0 && count_mapped() == 2;
	pthread_mutex_unlock(&ps_rds.lock);
	return loaded;
}

/* Fails if a heap is started, or if the regions of a stopped heap are still mapped. */
static int check_nothing_loaded(void)
{
	pthread_mutex_lock(&ps_rds.lock);
	int code = check_no_other_heap(NULL);
	if (code == SUCCESS && count_mapped())
		code = ps_rds_fail(EHEAP_INIT,
		                   "segment '%.200s' is loaded, and its heap is stopped: call "
		                   "rds_unload_heap",
		                   loaded_name);
	pthread_mutex_unlock(&ps_rds.lock);
	return code;
}

static int load_heap(char *name, rvm_offset_t length)
{
	int code = check_nothing_loaded();

	if (code == SUCCESS)
		code = load_regions(name, length);
	if (code == SUCCESS && rds_start_heap(RegionDefs[0].vmaddr, &code))
		release_regions();
	return code;
}

int rds_load_heap(char *DevName, rvm_offset_t DevLength, char **staticAddr, int *err)
{
	PS_RVM_UNCANCELLED;
	int code;

	if (is_loaded(DevName))
		rds_start_heap(RegionDefs[0].vmaddr, &code);
	else
		code = load_heap(DevName, DevLength);
	if (code == SUCCESS && staticAddr)
		*staticAddr = RegionDefs[1].vmaddr;
	return ps_rds_set_err(code, err);
}

int rds_unload_heap(int *err)
{
	PS_RVM_UNCANCELLED;
	rvm_return_t code;

	if (!RegionDefs)
		return ps_rds_set_err(ps_rds_fail(EHEAP_INIT,
		                                  "no heap was loaded with its segment"),
		                      err);
	/* Unmap the heap's region last: the heap stays usable if an open transaction prevents
	 * unmapping the static region. */
	code = ps_rds_unmap_region(&RegionDefs[1]);
	if (code == RVM_SUCCESS)
		code = release_regions();
	if (code == RVM_SUCCESS)
		stop_heap();
	return ps_rds_set_err(code, err);
}

/* --- a segment with a new heap --- */

static int make_heap(rvm_length_t length, unsigned long chunk, unsigned long nlists)
{
	rvm_tid_t tid;
	rvm_return_t done;
	int code;

	rvm_init_tid(&tid);
	done = rvm_begin_transaction(&tid, restore);
	if (done != RVM_SUCCESS)
		return ps_rds_fail_rvm(done, "the heap cannot be made");
	rds_init_heap(RegionDefs[0].vmaddr, length, chunk, nlists, &tid, &code);
	if (code == SUCCESS) {
		done = rvm_end_transaction(&tid, flush);
		if (done != RVM_SUCCESS)
			code = ps_rds_fail_rvm(done, "the heap is not permanent");
	}
	if (code != SUCCESS) {
		rvm_abort_transaction(&tid);
		rds_stop_heap(NULL);
	}
	return code;
}

int rds_zap_heap(char *DevName, rvm_offset_t DevLength, char *startAddr, rvm_length_t staticLength,
                 rvm_length_t heapLength, unsigned long nlists, unsigned long chunkSize, int *err)
{
	PS_RVM_UNCANCELLED;
	rvm_region_def_t regions[2] = { { .length = heapLength, .vmaddr = startAddr },
		                        { .length = staticLength } };
	int code = check_nothing_loaded();

	if (code == SUCCESS && !startAddr)
		code = ps_rds_fail(EBAD_ARGS, "a heap needs an address");
	if (code == SUCCESS)
		code = check_shape(heapLength, chunkSize, nlists);
	if (code == SUCCESS) {
		regions[1].vmaddr = startAddr + heapLength;
		code = rvm_create_segment(DevName, DevLength, NULL, 2, regions);
	}
	if (code == SUCCESS)
		code = load_regions(DevName, DevLength);
	if (code != SUCCESS)
		return ps_rds_set_err(code, err);
	code = make_heap(heapLength, chunkSize, nlists);
	if (code != SUCCESS)
		release_regions();
	return ps_rds_set_err(code, err);
}
