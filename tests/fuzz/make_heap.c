/*
 * make_heap.c - writes the seeds of fuzz_heap: metadata of sound heaps, and what to do to them.
 *
 *     make_heap tests/fuzz/corpus
 */
#include "../../client/heap/format.h"
#include "seed_file.h"

#include <string.h>

enum { CHUNKS = 6, ROOTS = 3, LARGE_SPAN = 2 };

struct seed {
	char steps[32]; /* a string of bytes, as fuzz_heap.c says */
	struct ps_heap_root roots[ROOTS];
	struct ps_heap_entry entries[CHUNKS];
	uint64_t bits[CHUNKS][PS_CHUNK_WORDS];
};

static void save(const char *name, const struct seed *seed, uint8_t flags)
{
	FILE *file = seed_open("heap", name);

	seed_add(file, &flags, 1);
	seed_add(file, seed->steps, strlen(seed->steps) + 1);
	if (!(flags & 2))
		seed_add(file, seed->roots, sizeof(seed->roots));
	seed_add(file, seed->entries, sizeof(seed->entries));
	seed_add(file, seed->bits, sizeof(seed->bits));
	seed_close(file);
}

int main(int argc, char **argv)
{
	static struct seed seed;

	corpus_take(argc, argv);
	save("empty", &seed, 3);
	strcpy(seed.steps, "\x04\x07\x22\x05\x09\x06\x08\x22");
	save("worked", &seed, 3);
	seed.entries[0] = (struct ps_heap_entry){ PS_CHUNK_RUN, 1, 0, 1, 0 };
	seed.entries[1] = (struct ps_heap_entry){ PS_CHUNK_LARGE, 0, 0, LARGE_SPAN, 1 };
	seed.entries[3] = (struct ps_heap_entry){ PS_CHUNK_RUN, PS_CLASSES - 1, 0, 1, 2 };
	seed.bits[0][0] = 0x8000000000000ff7;
	seed.bits[0][31] = 1;
	seed.bits[3][0] = 2;
	save("used", &seed, 3);
	for (unsigned i = 0; i < ROOTS; i++) {
		seed.roots[i].name[0] = (char)('a' + i);
		seed.roots[i].type = i;
		seed.roots[i].place = ps_heap_place(0, (uint64_t)i * PS_CHUNK);
	}
	seed.roots[2].place = ps_heap_place(0, 3 * PS_CHUNK + 32768);
	seed.steps[0] = '\0';
	save("rooted", &seed, 1);
	return 0;
}
