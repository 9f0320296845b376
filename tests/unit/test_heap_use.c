/*
 * test_heap_use.c - what client/heap/use.h counts from the bytes of a heap's metadata: the same as
 * its owner does, and a sentence for bytes that contradict themselves.
 */
#include "heap_rig.h"

#include "../../client/heap/use.h"

enum { CHUNKS = 8 };

static int setup(void **state)
{
	return setup_heap(state, 1, 0, false);
}

/* Returns the extent's committed state, from the owner's memory. */
static struct ps_usage_extent extent_of(struct owner *o, unsigned index)
{
	struct perseas_segment_info meta, data;
	char name[16];
	void *at;

	snprintf(name, sizeof(name), "h.meta.%u", index);
	assert_int_equal(perseas_segment(o->p, name, &meta), 0);
	assert_int_equal(perseas_map(o->p, name, 0, &at), 0);
	snprintf(name, sizeof(name), "h.heap.%u", index);
	assert_int_equal(perseas_segment(o->p, name, &data), 0);
	return (struct ps_usage_extent){ at, meta.size, data.size };
}

static void assert_row(const struct ps_usage_row *row, unsigned size, uint64_t type,
                       uint64_t chunks, uint64_t objects)
{
	assert_int_equal(row->class == PS_USAGE_LARGE ? 0 : ps_class_sizes[row->class], size);
	assert_true(row->type == type && row->chunks == chunks && row->objects == objects);
}

/* Several extents: small objects of two sizes and types, large ones, a free one, and a root. */
TEST_WITH(test_the_figures_are_those_of_the_owner, setup, owner_teardown, struct owner *o)
{
	struct ps_usage_extent extents[4];
	struct perseas_heap_stat stat;
	struct ps_heap_usage use;
	uint8_t *gone;

	put_root(o, "first", POINT, made(o, 100, POINT));
	made(o, 100, LINE);
	gone = made(o, 100000, POINT);
	made(o, 200000, LINE);
	for (unsigned i = 0; i < 3; i++)
		made(o, 32768, POINT);
	drop(o, gone);
	stat = figures(o);
	assert_int_equal(stat.extents, 4);
	for (unsigned i = 0; i < 4; i++)
		extents[i] = extent_of(o, i);
	assert_true(ps_heap_usage_count(&use, "h", extents, 4));
	assert_true(use.extents == stat.extents && use.roots == stat.roots);
	assert_true(use.size == stat.size && use.objects == stat.objects && use.used == stat.used);
	assert_true(use.free == stat.free && use.gaps == stat.gaps && use.large == stat.large);
	assert_int_equal(use.count, 4);
	assert_row(&use.rows[0], 112, POINT, 1, 1);
	assert_row(&use.rows[1], 112, LINE, 1, 1);
	assert_row(&use.rows[2], 32768, POINT, 2, 3);
	assert_row(&use.rows[3], 0, LINE, 4, 1);
	ps_heap_usage_free(&use);
}

/* --- bytes that nobody's heap has --- */

struct bytes {
	struct ps_heap_head *head;
	struct ps_heap_root *roots;
	struct ps_heap_entry *entries;
	uint64_t *bits; /* of chunk 0 */
	struct ps_usage_extent extent;
};

static struct bytes bytes_new(uint64_t chunks)
{
	const uint64_t size = ps_heap_meta_size(chunks);
	uint8_t *meta = aligned_alloc(4096, size);
	struct bytes bytes = { .extent = { meta, size, chunks * PS_CHUNK } };

	assert_non_null(meta);
	memset(meta, 0, size);
	bytes.head = (void *)meta;
	bytes.roots = (void *)(meta + PS_HEAP_ROOTS);
	bytes.entries = (void *)(meta + PS_HEAP_ENTRIES);
	bytes.bits = (void *)(meta + ps_heap_bitmaps_offset(chunks));
	ps_heap_head_seal(bytes.head, 0, chunks);
	return bytes;
}

/* A run with one object in chunk 0, and a large object in chunks 2 to 4. */
static struct bytes bytes_sound(void)
{
	struct bytes bytes = bytes_new(CHUNKS);

	bytes.entries[0] = (struct ps_heap_entry){ PS_CHUNK_RUN, 3, 0, 1, POINT };
	bytes.bits[0] = 2;
	bytes.entries[2] = (struct ps_heap_entry){ PS_CHUNK_LARGE, 0, 0, 3, LINE };
	/* Chunk 3 was a run before the large object covered it. */
	bytes.entries[3] = (struct ps_heap_entry){ PS_CHUNK_RUN, 9, 0, 1, POINT };
	return bytes;
}

static void assert_fault(struct bytes *bytes, const char *words)
{
	struct ps_heap_usage use;

	assert_false(ps_heap_usage_count(&use, "h", &bytes->extent, 1));
	if (!strstr(use.fault, words))
		fail_msg("'%s' does not say '%s'", use.fault, words);
	ps_heap_usage_free(&use);
	free(bytes->head);
	*bytes = bytes_sound();
}

/* The figures stand, but a root leads nowhere. */
static void assert_dangling(struct bytes *bytes, const char *words)
{
	struct ps_heap_usage use;

	if (!ps_heap_usage_count(&use, "h", &bytes->extent, 1))
		fail_msg("%s", use.fault);
	assert_string_equal(use.fault, words);
	assert_true(use.objects == 2 && use.count == 2 && use.roots == 2);
	ps_heap_usage_free(&use);
	free(bytes->head);
	*bytes = bytes_sound();
}

static void set_root(struct bytes *bytes, unsigned i, const char *name, uint64_t type,
                     uint64_t place)
{
	snprintf(bytes->roots[i].name, sizeof(bytes->roots[i].name), "%s", name);
	bytes->roots[i].type = type;
	bytes->roots[i].place = place;
}

TEST(test_sound_bytes_are_counted)
{
	struct bytes bytes = bytes_sound();
	struct ps_heap_usage use;

	set_root(&bytes, 5, "small", POINT, ps_heap_place(0, 64));
	set_root(&bytes, 63, "large", LINE, ps_heap_place(0, 2 * PS_CHUNK));
	if (!ps_heap_usage_count(&use, "h", &bytes.extent, 1))
		fail_msg("%s", use.fault);
	assert_true(use.objects == 2 && use.large == 1 && use.roots == 2);
	assert_int_equal(use.free, 4 * PS_CHUNK);
	/* Chunk 1, and those behind the large object. */
	assert_int_equal(use.longest, 3 * PS_CHUNK);
	ps_heap_usage_free(&use);
	free(bytes.head);
}

TEST(test_what_contradicts_itself_is_named)
{
	struct bytes bytes = bytes_sound();

	bytes.head->crc++;
	assert_fault(&bytes, "segment 'h.meta.0' of heap 'h' has a head whose checksum is wrong");
	bytes.extent.meta_size = 4096;
	assert_fault(&bytes, "is not the metadata of a heap");
	bytes.extent.data_size++;
	assert_fault(&bytes, "does not fit");
	bytes.entries[1].state = 3;
	assert_fault(&bytes, "chunk 1 of heap 'h', extent 0, is in no known state");
	bytes.entries[5] = (struct ps_heap_entry){ PS_CHUNK_LARGE, 0, 0, 4, LINE };
	assert_fault(&bytes, "chunk 5 of heap 'h', extent 0, goes beyond the extent");
	bytes.bits[PS_CHUNK_WORDS] = 1;
	assert_fault(&bytes, "chunk 1 of heap 'h', extent 0, has objects where none can be");
	bytes.bits[4 * PS_CHUNK_WORDS + 63] = 1;
	assert_fault(&bytes, "chunk 4 of heap 'h', extent 0, has objects inside of a large one");
	bytes.entries[4].zero = 1;
	assert_fault(&bytes, "chunk 4 of heap 'h', extent 0, has an entry with bits that mean");
	bytes.entries[4] = (struct ps_heap_entry){ PS_CHUNK_LARGE, 0, 0, 1, LINE };
	assert_fault(&bytes, "chunk 4 of heap 'h', extent 0, begins a large object inside");
	bytes.roots[2].zero = 1;
	assert_fault(&bytes, "root 2 of heap 'h' has bits that mean nothing");
	free(bytes.head);
}

TEST(test_a_root_that_leads_to_no_object_is_named)
{
	static const struct {
		uint64_t type, place;
	} wrong[] = {
		{ POINT, (uint64_t)1 << 48 },           /* a place in the run that is free */
		{ LINE, ((uint64_t)1 << 48) + 64 },     /* another type */
		{ POINT, ((uint64_t)1 << 48) + 80 },    /* inside of an object */
		{ LINE, ((uint64_t)1 << 48) + 196608 }, /* inside of a large one */
		{ POINT, ((uint64_t)1 << 48) + 65536 }, /* a chunk that is free */
		{ POINT, ((uint64_t)2 << 48) + 64 },    /* an extent that is not there */
		{ POINT, UINT64_MAX },
	};
	struct bytes bytes = bytes_sound();

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char words[100];

		snprintf(words, sizeof(words),
		         "root 'r' of heap 'h' does not lead to an object of type %llu",
		         (unsigned long long)wrong[i].type);
		set_root(&bytes, 0, "r", wrong[i].type, wrong[i].place);
		set_root(&bytes, 1, "s", POINT, ps_heap_place(0, 64));
		assert_dangling(&bytes, words);
	}
	/* The first of them is named, and others are looked at nevertheless. */
	set_root(&bytes, 0, "r", 5, 1);
	set_root(&bytes, 1, "s", 6, 1);
	assert_dangling(&bytes, "root 'r' of heap 'h' does not lead to an object of type 5");
	set_root(&bytes, 0, "r", 5, 1);
	bytes.roots[1].zero = 1;
	assert_fault(&bytes, "root 1 of heap 'h' has bits that mean nothing");
	set_root(&bytes, 0, "r", POINT, ps_heap_place(0, 64));
	set_root(&bytes, 1, "r", POINT, ps_heap_place(0, 64));
	assert_fault(&bytes, "root 1 of heap 'h' has the same name as another root");
	free(bytes.head);
}

/* A root's name is the application's, and the sentence goes to a terminal. */
TEST(test_a_name_is_made_printable)
{
	struct bytes bytes = bytes_sound();
	struct ps_heap_usage use;

	set_root(&bytes, 0, "\033]0;x\007\nall is \xffwell", POINT, 1);
	assert_true(ps_heap_usage_count(&use, "h", &bytes.extent, 1));
	assert_non_null(strstr(use.fault, "root '?]0;x??all is ?well' of heap 'h'"));
	ps_heap_usage_free(&use);
	free(bytes.head);
}

/* Free chunks are in a row neither beyond a run of objects nor beyond the end of an extent. */
TEST(test_a_row_ends_with_a_run_and_with_its_extent)
{
	struct bytes first = bytes_new(5), second = bytes_new(4);
	struct ps_usage_extent extents[2] = { first.extent, second.extent };
	struct ps_heap_usage use;

	ps_heap_head_seal(second.head, 1, 4);
	assert_true(ps_heap_usage_count(&use, "h", extents, 2));
	assert_int_equal(use.free, 9 * PS_CHUNK);
	assert_int_equal(use.longest, 5 * PS_CHUNK);
	ps_heap_usage_free(&use);
	first.entries[2] = (struct ps_heap_entry){ PS_CHUNK_RUN, 3, 0, 1, POINT };
	first.bits[2 * PS_CHUNK_WORDS] = 1;
	assert_true(ps_heap_usage_count(&use, "h", extents, 1));
	assert_int_equal(use.free, 4 * PS_CHUNK);
	assert_int_equal(use.longest, 2 * PS_CHUNK);
	ps_heap_usage_free(&use);
	free(first.head);
	free(second.head);
}

TEST(test_many_chunks_of_one_type_take_little_memory)
{
	enum { MANY = 1 << 15 };
	struct bytes bytes = bytes_new(MANY);
	struct ps_heap_usage use;

	for (unsigned i = 0; i < MANY; i++) {
		bytes.entries[i] = (struct ps_heap_entry){ PS_CHUNK_RUN, 0, 0, 1, POINT };
		bytes.bits[(uint64_t)i * PS_CHUNK_WORDS] = 1;
	}
	assert_true(ps_heap_usage_count(&use, "h", &bytes.extent, 1));
	assert_int_equal(use.count, 1);
	assert_in_range(use.room, 1, 128);
	assert_int_equal(use.objects, MANY);
	ps_heap_usage_free(&use);
	free(bytes.head);
}

TEST(test_many_types_take_little_time)
{
	enum { MANY = 1 << 15 };
	struct bytes bytes = bytes_new(MANY);
	struct ps_heap_usage use;

	for (unsigned i = 0; i < MANY; i++) {
		bytes.entries[i] = (struct ps_heap_entry){ PS_CHUNK_RUN, 0, 0, 1,
			                                   i % (MANY / 2) * 7919 % 16384 };
		bytes.bits[(uint64_t)i * PS_CHUNK_WORDS] = 1;
	}
	assert_true(ps_heap_usage_count(&use, "h", &bytes.extent, 1));
	assert_int_equal(use.count, MANY / 2);
	for (unsigned i = 0; i < MANY / 2; i++)
		assert_true(use.rows[i].type == i && use.rows[i].objects == 2 &&
		            use.rows[i].chunks == 2);
	ps_heap_usage_free(&use);
	free(bytes.head);
}
