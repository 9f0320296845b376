/*
 * make_rds.c - writes the seeds of fuzz_rds: load maps, sound heaps with what to do to them, and
 * the bytes of a heap of one block.
 *
 *     make_rds tests/fuzz/corpus
 */
#include "../../client/rds/heap.h"
#include "../../client/rds/load_map.h"
#include "seed_file.h"

#include <string.h>

enum { SIZE = 16384, CHUNK = 32, LISTS = 5, BEGIN = 256 };

static void save(const char *name, uint8_t flags, const char *steps, const void *bytes,
                 size_t length)
{
	FILE *file = seed_open("rds", name);

	seed_add(file, &flags, 1);
	if (steps)
		seed_add(file, steps, strlen(steps) + 1);
	seed_add(file, bytes, length);
	seed_close(file);
}

static void save_map(const char *name, rvm_region_def_t *regions, uint64_t count)
{
	static _Alignas(8) uint8_t page[SIZE];
	uint64_t at = rvm_page_size();

	for (uint64_t i = 0; i < count; at += regions[i++].length)
		regions[i].offset = rvm_mk_offset(0, at);
	ps_rds_map_write(page, regions, count);
	save(name, 1, NULL, page, ps_rds_map_length(count));
}

static void save_maps(void)
{
	static rvm_region_def_t many[169];
	rvm_region_def_t two[2] = { { .length = 65536, .vmaddr = (char *)0x7e0000000000 },
		                    { .length = 4096, .vmaddr = (char *)0x7e0000010000 } };

	for (unsigned i = 0; i < 169; i++)
		many[i].length = 4096;
	save_map("map_two", two, 2);
	save_map("map_full", many, 169);
}

/* Writes a heap that is one free block. */
static void save_heap(void)
{
	static union {
		uint8_t bytes[BEGIN];
		struct ps_rds_head head;
	} heap;
	const uint64_t first = sizeof(struct ps_rds_head) + (LISTS + 1) * sizeof(uint64_t);
	const struct ps_rds_block block = { PS_RDS_FREED | (SIZE - first) / CHUNK, 0, 0 };

	memcpy(heap.head.magic, PS_RDS_MAGIC, sizeof(heap.head.magic));
	heap.head.length = SIZE;
	heap.head.chunk = CHUNK;
	heap.head.nlists = LISTS;
	memcpy(heap.bytes + first - sizeof(uint64_t), &first, sizeof(first));
	memcpy(heap.bytes + first, &block, sizeof(block));
	save("heap_raw", 0, "\x08\x48\x05", heap.bytes, BEGIN);
}

int main(int argc, char **argv)
{
	static const uint8_t zeros[BEGIN], place[BEGIN] = { [BEGIN - 1] = 1 };

	corpus_take(argc, argv);
	save_maps();
	save_heap();
	save("heap_sound", 2, "\x08\x10\x18\x0b\x13\x48\x05\x50\x88\x8b\x07\x1e", zeros, 1);
	save("heap_full", 2, "\x7a\x79\x78\x72\x71\x70\x6a\x69\x3b\x33\x2b\x7a", zeros, 1);
	save("heap_overwritten", 2, "\x08\x10\x0b\x48\x13\x7a\x07", place, BEGIN);
	return 0;
}
