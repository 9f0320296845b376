/*
 * fuzz_rds.c - any bytes as what RDS reads back from mirrors: the load map of a segment, and a heap
 * with its head, lists and blocks. A load map is refused, or its regions are as load_map.h says.
 * Whatever a heap's bytes are, starting it, allocating, freeing, joining, counting and telling its
 * blocks end, stay inside of the region, and have errors with names; in a heap that nobody wrote to
 * all of them work.
 *
 * Input: a byte of flags. 1: the rest is the page of a load map. Otherwise a byte for each step, up
 * to a zero, and then the bytes of the region from its beginning on; 2: these are xor those of a
 * sound heap.
 */
#include "../../client/core/handle.h"
#include "../../client/rds/heap.h"
#include "../../client/rds/load_map.h"
#include "../../client/rvm/state.h"
#include "../support/env_direct.h"
#include "target.h"

#include <sys/mman.h>

enum { PAGE = 4096, SIZE = 4 * PAGE, CHUNK = 32, LISTS = 5, LIVE_MAX = 64 };

/* --- load maps --- */

static bool apart(const rvm_region_def_t *a, const rvm_region_def_t *b)
{
	const uintptr_t one = (uintptr_t)a->vmaddr, other = (uintptr_t)b->vmaddr;

	return !one || !other || one + a->length <= other || other + b->length <= one;
}

static void read_load_map(const uint8_t *data, size_t size)
{
	static _Alignas(PAGE) uint8_t page[PAGE];
	static _Alignas(PAGE) uint8_t again[PAGE];
	struct ps_rds_map map;
	uint64_t at = PAGE;

	require(rvm_page_size() == PAGE);
	memset(page, 0, sizeof(page));
	memcpy(page, data, size < PAGE ? size : PAGE);
	if (ps_rds_map_read(page, "data", &map) != RVM_SUCCESS) {
		require(*rds_message() && !map.regions);
		return;
	}
	require(map.count && map.count <= ps_rds_map_max_regions());
	for (uint64_t i = 0; i < map.count; i++) {
		const rvm_region_def_t *region = &map.regions[i];

		require(region->length && region->length % PAGE == 0 && region->offset.low == at);
		require((uintptr_t)region->vmaddr % PAGE == 0);
		at += region->length;
		for (uint64_t j = 0; j < i; j++)
			require(apart(region, &map.regions[j]));
	}
	require(at == map.end && at >= PAGE);
	/* A map that was read is written as the same bytes. */
	ps_rds_map_write(again, map.regions, map.count);
	require(!memcmp(page, again, ps_rds_map_length(map.count)));
	free(map.regions);
}

/* --- heaps --- */

static struct {
	char *base;
	FILE *trace;
} region;

static _Atomic uint64_t dirty[1];

/* A region of a store, with nothing that may be touched behind it. */
static void open_store(void)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct direct *d = direct_new(1, 1);
	struct ps_error error;
	perseas_t *p;
	void *addr;

	options.flags = PERSEAS_CREATE;
	options.log_size = 1 << 20;
	options.ring_size = 8 << 20;
	options.spin_us = UINT32_MAX;
	if (!d || direct_open(d, "rvm", &options, &p, &error) ||
	    perseas_map(p, "heap", SIZE, &addr) || perseas_publish(p))
		abort();
	mmap((char *)addr + SIZE, PAGE, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	region.base = addr;
	region.trace = fopen("/dev/null", "w");
	require(region.trace);
	ps_rvm.pieces[0].dirty = dirty;
	ps_rvm.pieces[0].length = SIZE;
	ps_rvm.pieces[0].base = addr;
	ps_rvm.phase = PS_RVM_PHASE_READY;
	ps_rvm.store = p;
}

static bool is_named(int code)
{
	return code == SUCCESS || (code > rvm_first_code && code < rvm_last_code) ||
	       (code <= EBAD_LIST && code >= ENO_ROOM);
}

static void make_heap(void)
{
	rvm_tid_t tid;
	int err;

	rvm_init_tid(&tid);
	require(rvm_begin_transaction(&tid, restore) == RVM_SUCCESS);
	require(!rds_init_heap(region.base, SIZE, CHUNK, LISTS, &tid, &err));
	require(rvm_end_transaction(&tid, no_flush) == RVM_SUCCESS);
	require(!rds_stop_heap(&err));
}

/* Bytes that the program has, by what rds_malloc gave it. */
struct live {
	char *addr;
	size_t size;
};

static struct live live[LIVE_MAX];

static uint64_t room_of(const char *addr)
{
	const struct ps_rds_change none = { 0 };
	const uint64_t place = (uint64_t)(addr - region.base) - sizeof(uint64_t);

	return ps_rds_block_length(&none, place, PS_RDS_USED) * ps_rds.chunk - PS_RDS_GUARDS;
}

/* In a heap that nobody wrote to, no byte is given twice. */
static void get(uint8_t how, rvm_tid_t *tid, bool sound)
{
	const unsigned long size = how & 64 ? how * 31UL : how;
	int err;
	char *addr = rds_malloc(size, tid, &err);
	uint64_t room;

	require(is_named(err) && (err == SUCCESS) == (addr != NULL));
	if (!addr)
		return;
	room = room_of(addr);
	require(addr > region.base && room >= size && room < SIZE);
	require(addr + room <= region.base + SIZE);
	for (unsigned i = 0; sound && i < LIVE_MAX; i++)
		require(!live[i].addr || addr >= live[i].addr + live[i].size ||
		        live[i].addr >= addr + room);
	/* A transaction declares what it stores, because an abort restores the heap's bytes
	 * there. */
	if (sound && (!tid || rvm_set_range(tid, addr, room) == RVM_SUCCESS))
		memset(addr, how, room);
	live[how % LIVE_MAX] = (struct live){ addr, room };
}

static void forget(const char *addr)
{
	for (unsigned i = 0; i < LIVE_MAX; i++)
		if (live[i].addr == addr)
			live[i].addr = NULL;
}

static void put_back(uint8_t how, rvm_tid_t *tid)
{
	char *given = live[how % LIVE_MAX].addr, *addr = given ? given : region.base + how * 24;
	int err;

	rds_free(addr, tid, &err);
	require(is_named(err));
	forget(addr);
}

static void intend(uint8_t how)
{
	char *addr = region.base + ps_rds.first + how * (unsigned)CHUNK + sizeof(uint64_t);
	intentionList_t list = { 0 };

	require(is_named(rds_fake_free(addr, &list)));
	require(is_named(rds_do_free(&list, no_flush)));
	forget(addr);
	free(list.table);
}

static void look(void)
{
	rds_stats_t stats;
	int code;

	require(rds_get_stats(&stats) == SUCCESS);
	rds_maxblock(stats.freebytes);
	rds_trace_on(region.trace);
	code = rds_trace_dump_heap();
	require(code == SUCCESS || code == ECORRUPT);
	rds_trace_off();
}

/* With a transaction that stays open, or with none: then RDS has one of its own. */
static void step(uint8_t how, rvm_tid_t *tid, bool sound)
{
	rvm_tid_t *with = how & 128 ? tid : NULL;
	int err;

	if (with && tid->tid == NULL)
		require(rvm_begin_transaction(tid, restore) == RVM_SUCCESS);
	switch (how % 8) {
	case 0:
	case 1:
	case 2:
		get(how, with, sound);
		break;
	case 3:
	case 4:
		put_back(how, with);
		break;
	case 5:
		rds_prealloc(how, how % 16, with, &err);
		require(is_named(err));
		break;
	case 6:
		intend(how);
		break;
	default:
		if (tid->tid)
			rvm_abort_transaction(tid);
		memset(live, 0, sizeof(live));
		rds_clear_stats(&err);
		require(is_named(err));
	}
}

static void work_on(const uint8_t *steps, size_t count, bool sound)
{
	rvm_tid_t tid;

	memset(live, 0, sizeof(live));
	rvm_init_tid(&tid);
	look();
	for (size_t i = 0; i < count; i++)
		step(steps[i], &tid, sound);
	look();
	if (tid.tid)
		rvm_abort_transaction(&tid);
	rds_trace_on(region.trace);
	require(!sound || rds_trace_dump_heap() == SUCCESS);
	rds_trace_off();
}

static void read_heap(const uint8_t *data, size_t size, uint8_t flags)
{
	size_t steps = 0;
	bool sound = flags & 2;
	int err;

	if (!region.base)
		open_store();
	while (steps < size && data[steps])
		steps++;
	memset(region.base, 0, SIZE);
	if (flags & 2)
		make_heap();
	for (size_t i = steps + 1, at = 0; i < size && at < SIZE; i++, at++) {
		region.base[at] = (char)(region.base[at] ^ data[i]);
		sound &= !data[i];
	}
	rds_start_heap(region.base, &err);
	require(is_named(err) && (!sound || err == SUCCESS));
	if (err == SUCCESS)
		work_on(data, steps, sound);
	ps_rds.base = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	if (data[0] & 1)
		read_load_map(data + 1, size - 1);
	else
		read_heap(data + 1, size - 1, data[0]);
	return 0;
}
