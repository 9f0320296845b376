/*
 * format.c - the size classes of a heap, and the checks of its metadata. The owner calls them for
 * what it reads, and the command for what a mirror sent. They must accept any bytes: a mirror may
 * be hostile.
 */
#include "format.h"

#include "../../proto/image/crc32c.h"

/* PERSEAS_ANY_TYPE, which only perseas_heap_walk accepts; no object can have it. */
static const uint64_t NO_TYPE = UINT64_MAX;

/* Steps of 16 bytes up to 224. Larger classes grow by a seventh at most, and waste at most 1.2 % of
 * a run. Above 8 KiB the sizes are chosen so that a run holds 7, 6, 5 and fewer objects. */
const uint16_t ps_class_sizes[PS_CLASSES] = {
	16,   32,   48,   64,   80,   96,   112,  128,  144,   160,   176,   192,   208,
	224,  256,  288,  320,  352,  400,  448,  512,  576,   656,   736,   832,   944,
	1072, 1200, 1360, 1552, 1760, 1984, 2256, 2512, 2848,  3120,  3440,  3840,  4368,
	4672, 5040, 5456, 5952, 6544, 7280, 8192, 9360, 10912, 13104, 16384, 21840, 32768,
};

void ps_heap_head_seal(struct ps_heap_head *head, unsigned extent, uint64_t chunks)
{
	memset(head, 0, sizeof(*head));
	head->magic = PS_HEAP_MAGIC;
	head->version = PS_HEAP_VERSION;
	head->extent = extent;
	head->chunks = chunks;
	head->crc = ps_crc32c(0, head, offsetof(struct ps_heap_head, crc));
}

const char *ps_heap_head_fault(const struct ps_heap_head *head, unsigned extent, uint64_t meta_size,
                               uint64_t data_size)
{
	if (head->magic != PS_HEAP_MAGIC)
		return "is not the metadata of a heap";
	if (head->version != PS_HEAP_VERSION)
		return "is of another version: use the library that made it";
	if (head->crc != ps_crc32c(0, head, offsetof(struct ps_heap_head, crc)))
		return "has a head whose checksum is wrong";
	if (head->extent != extent)
		return "has the head of another extent";
	if (!head->chunks || head->chunks > PS_EXTENT_MAX / PS_CHUNK ||
	    data_size != head->chunks * PS_CHUNK || meta_size != ps_heap_meta_size(head->chunks))
		return "does not fit the sizes of its segments";
	return NULL;
}

const char *ps_heap_entry_fault(const struct ps_heap_entry *entry, uint64_t chunk, uint64_t chunks)
{
	if (entry->zero)
		return "has an entry with bits that mean nothing";
	if (entry->state != PS_CHUNK_FREE && entry->type == NO_TYPE)
		return "is of a type that no object can be of";
	switch (entry->state) {
	case PS_CHUNK_FREE:
		return NULL;
	case PS_CHUNK_RUN:
		return entry->class < PS_CLASSES && entry->span == 1 ? NULL
		                                                     : "is of no known class";
	case PS_CHUNK_LARGE:
		return entry->span && entry->span <= chunks - chunk ? NULL
		                                                    : "goes beyond the extent";
	default:
		return "is in no known state";
	}
}

const char *ps_heap_bits_fault(const struct ps_heap_entry *entry, const uint64_t *bits)
{
	const unsigned objects = entry->state == PS_CHUNK_RUN ? ps_objects_per_run(entry->class)
	                                                      : 0;
	const unsigned word = objects / 64;

	if (word < PS_CHUNK_WORDS &&
	    (bits[word] >> objects % 64 || ps_bits_any(bits + word + 1, PS_CHUNK_WORDS - word - 1)))
		return "has objects where none can be";
	return NULL;
}

const char *ps_heap_covered_fault(const struct ps_heap_entry *entries, const uint64_t *bits,
                                  uint64_t first, uint64_t chunk, uint64_t chunks)
{
	if (ps_bits_any(bits, PS_CHUNK_WORDS))
		return "has objects inside of a large one";
	if (chunk == first)
		return NULL;
	if (entries[chunk].state == PS_CHUNK_LARGE)
		return "begins a large object inside of another one";
	return ps_heap_entry_fault(&entries[chunk], chunk, chunks);
}

const char *ps_heap_root_fault(const struct ps_heap_root *root)
{
	size_t length;

	if (root->zero)
		return "has bits that mean nothing";
	if (root->name[PS_ROOT_NAME])
		return "has a name without an end";
	length = strlen(root->name);
	for (size_t i = length; i < sizeof(root->name); i++)
		if (root->name[i])
			return "has a name that is not padded with zeros";
	if (!length != !root->place || (!length && root->type))
		return "has no name, or no object";
	return NULL;
}
