/*
 * survey.c - visits all chunks of a heap: to walk its objects, to count them, and to check that the
 * metadata is consistent, in itself and with the runs that this process built from it. The heap's
 * lock is held for one chunk at a time.
 */
#include "heap.h"
#include "../core/cancel.h"

#include <stdlib.h>

/* The committed state of a chunk. */
struct chunk_seen {
	struct ps_extent *extent;
	uint64_t chunk;
	struct ps_heap_entry entry; /* PS_CHUNK_FREE also for a run without objects */
	uint64_t bits[PS_CHUNK_WORDS];
};

/* Inspects a chunk that begins an object or a run, or is free. Called with the heap's lock. Returns
 * 0, a PS_HEAP_… result or an error code. */
typedef int inspect_fn(const struct chunk_seen *seen, struct ps_heap_need *need, void *arg);

/* Reports a chunk to the caller of the survey. Called without the lock. Any result but 0 ends the
 * survey. */
typedef int report_fn(const struct chunk_seen *seen, void *arg);

/* Reads the committed state of chunk seen->chunk, and sets *next to the chunk after it. Returns 0,
 * PS_HEAP_FETCH or EHEAP. */
static int read_chunk(struct chunk_seen *seen, uint64_t *next, struct ps_heap_need *need)
{
	struct ps_extent *extent = seen->extent;
	const uint64_t chunk = seen->chunk;
	const uint64_t *bits = ps_chunk_bits(extent, chunk);
	const char *fault;
	int rc = ps_heap_require(extent, &extent->entries[chunk], sizeof(seen->entry), need);

	if (!rc)
		rc = ps_heap_require(extent, bits, sizeof(seen->bits), need);
	if (rc)
		return rc;
	seen->entry = extent->entries[chunk];
	memcpy(seen->bits, bits, sizeof(seen->bits));
	/* The entry of a chunk that a large object covers does not count. The object may be
	 * uncommitted, or newer than this survey's visit of its first chunk. */
	if (extent->known[chunk] == PS_KNOWN_TAIL)
		seen->entry = (struct ps_heap_entry){ 0 };
	fault = ps_heap_entry_fault(&seen->entry, chunk, extent->chunks);
	if (!fault)
		fault = ps_heap_bits_fault(&seen->entry, seen->bits);
	if (fault)
		return ps_heap_fail_damaged_chunk(extent, chunk, fault);
	*next = chunk + (seen->entry.state == PS_CHUNK_LARGE ? seen->entry.span : 1);
	if (seen->entry.state == PS_CHUNK_RUN && !ps_bits_any(seen->bits, PS_CHUNK_WORDS))
		seen->entry.state = PS_CHUNK_FREE;
	return 0;
}

static int survey_chunk(struct perseas_heap *heap, struct chunk_seen *seen, uint64_t *next,
                        inspect_fn *inspect, void *arg)
{
	struct ps_heap_need need;
	int rc;

	do {
		ps_biased_lock(&heap->lock);
		rc = read_chunk(seen, next, &need);
		if (!rc && inspect)
			rc = inspect(seen, &need, arg);
		ps_biased_unlock(&heap->lock);
		rc = ps_heap_provide(heap, rc, &need);
	} while (rc > 0);
	return rc;
}

static int survey_extent(struct perseas_heap *heap, struct ps_extent *extent, inspect_fn *inspect,
                         report_fn *report, void *arg)
{
	struct chunk_seen seen = { .extent = extent };
	uint64_t next = 0;
	int rc = 0;

	for (seen.chunk = 0; seen.chunk < seen.extent->chunks && !rc; seen.chunk = next) {
		rc = survey_chunk(heap, &seen, &next, inspect, arg);
		if (!rc && report)
			rc = report(&seen, arg);
	}
	return rc;
}

static void count_survey(struct perseas_heap *heap, int more)
{
	ps_biased_lock(&heap->lock);
	heap->survey_count += (unsigned)more;
	ps_biased_unlock(&heap->lock);
}

static int survey_heap(struct perseas_heap *heap, inspect_fn *inspect, report_fn *report, void *arg)
{
	int rc = 0;

	/* While survey_count is not 0, no extent is given back. */
	count_survey(heap, 1);
	for (unsigned i = 0; i < heap->extent_count && !rc; i++)
		rc = survey_extent(heap, heap->extents[i], inspect, report, arg);
	count_survey(heap, -1);
	return rc;
}

/* --- perseas_heap_walk --- */

struct walk {
	uint64_t type;
	int (*each)(void *arg, const struct perseas_object *object);
	void *arg;
};

/* Returns true if the object still exists. While the survey had released the lock, the
 * application's function or another transaction may have freed it. */
static bool is_object_still_there(const struct chunk_seen *seen, unsigned word, uint64_t bit)
{
	const struct ps_heap_entry *entry = &seen->extent->entries[seen->chunk];
	struct perseas_heap *heap = seen->extent->heap;
	bool there;

	ps_biased_lock(&heap->lock);
	there = entry->state == PS_CHUNK_RUN && entry->class == seen->entry.class &&
	        entry->type == seen->entry.type &&
	        ps_chunk_bits(seen->extent, seen->chunk)[word] & bit;
	ps_biased_unlock(&heap->lock);
	return there;
}

static int walk_run(const struct chunk_seen *seen, uint8_t *base, const struct walk *walk)
{
	struct perseas_object object = { NULL, ps_class_sizes[seen->entry.class],
		                         seen->entry.type };
	int rc = 0;

	for (unsigned word = 0; word < PS_CHUNK_WORDS; word++) {
		uint64_t bits = seen->bits[word];

		for (; bits && !rc; bits &= bits - 1) {
			const unsigned bit = (unsigned)__builtin_ctzll(bits);

			if (!is_object_still_there(seen, word, (uint64_t)1 << bit))
				continue;
			object.addr = base + (word * 64 + bit) * object.size;
			rc = walk->each(walk->arg, &object);
		}
	}
	return rc;
}

static int walk_chunk(const struct chunk_seen *seen, void *arg)
{
	const struct walk *walk = arg;
	uint8_t *base = seen->extent->data + seen->chunk * PS_CHUNK;
	const struct perseas_object large = { base, (size_t)seen->entry.span * PS_CHUNK,
		                              seen->entry.type };

	if (seen->entry.state == PS_CHUNK_FREE ||
	    (walk->type != PERSEAS_ANY_TYPE && walk->type != seen->entry.type))
		return 0;
	return seen->entry.state == PS_CHUNK_RUN ? walk_run(seen, base, walk)
	                                         : walk->each(walk->arg, &large);
}

int perseas_heap_walk(perseas_heap_t *heap, uint64_t type,
                      int (*each)(void *arg, const struct perseas_object *object), void *arg)
{
	PS_UNCANCELLED;
	struct walk walk = { type, each, arg };

	if (!heap || !each)
		return ps_fail(heap ? heap->p : NULL, PERSEAS_EINVAL,
		               "a walk needs a heap and a function");
	return survey_heap(heap, NULL, walk_chunk, &walk);
}

/* --- perseas_heap_stat --- */

static unsigned count_bits(const uint64_t *bits)
{
	unsigned count = 0;

	for (unsigned i = 0; i < PS_CHUNK_WORDS; i++)
		count += (unsigned)__builtin_popcountll(bits[i]);
	return count;
}

static int count_chunk(const struct chunk_seen *seen, void *arg)
{
	struct perseas_heap_stat *stat = arg;
	uint64_t objects, bytes;

	switch (seen->entry.state) {
	case PS_CHUNK_RUN:
		objects = count_bits(seen->bits);
		bytes = objects * ps_class_sizes[seen->entry.class];
		stat->objects += objects;
		stat->used += bytes;
		stat->gaps += PS_CHUNK - bytes;
		break;
	case PS_CHUNK_LARGE:
		stat->objects++;
		stat->large++;
		stat->used += (uint64_t)seen->entry.span * PS_CHUNK;
		break;
	default:
		stat->free += PS_CHUNK;
	}
	return 0;
}

int perseas_heap_stat(perseas_heap_t *heap, struct perseas_heap_stat *stat)
{
	PS_UNCANCELLED;
	int rc;

	if (!heap || !stat)
		return ps_fail(heap ? heap->p : NULL, PERSEAS_EINVAL,
		               "statistics need a heap and a place for them");
	memset(stat, 0, sizeof(*stat));
	rc = survey_heap(heap, NULL, count_chunk, stat);
	ps_biased_lock(&heap->lock);
	stat->extents = heap->extent_count;
	for (unsigned i = 0; i < heap->extent_count; i++)
		stat->size += heap->extents[i]->chunks * PS_CHUNK;
	for (unsigned i = 0; i < PS_ROOTS; i++)
		stat->roots += heap->roots[i].name[0] != 0;
	stat->allocated = heap->allocated;
	stat->freed = heap->freed;
	ps_biased_unlock(&heap->lock);
	return rc;
}

/* --- perseas_heap_check --- */

/* Returns what is wrong with a chunk that is PS_KNOWN_RUN, or NULL. `quiet`: no transaction has
 * edits, so the run's bitmap must equal the committed one. */
static const char *run_fault(const struct chunk_seen *seen, bool quiet)
{
	const struct ps_run *run = seen->extent->runs[seen->chunk];
	unsigned room = 0;

	if (seen->entry.state == PS_CHUNK_LARGE)
		return "is a run here, and a large object in its metadata";
	if (seen->entry.state == PS_CHUNK_RUN &&
	    (seen->entry.class != run->bin->class || seen->entry.type != run->bin->type))
		return "is of another class or type here than in its metadata";
	for (unsigned word = 0; word < run->word_count; word++) {
		const uint64_t none = word == run->word_count - 1u && run->object_count % 64
		                              ? ~(uint64_t)0 << run->object_count % 64
		                              : 0;

		room += (unsigned)__builtin_popcountll(~run->taken[word]);
		if (seen->bits[word] & ~run->taken[word])
			return "has an object that counts as free here";
		if (quiet && (run->taken[word] & ~none) != seen->bits[word])
			return "has room that is reserved here, and no transaction is open";
		if (quiet && run->freeing[word])
			return "has an object that is being freed here, and no transaction is open";
	}
	return room == run->free_count ? NULL : "has other room than is counted here";
}

/* Returns how the committed state of a chunk contradicts what this process knows of it, or NULL. */
static const char *known_fault(const struct chunk_seen *seen, bool quiet)
{
	switch (seen->extent->known[seen->chunk]) {
	case PS_KNOWN_RUN:
		return run_fault(seen, quiet);
	case PS_KNOWN_FREE:
		return seen->entry.state == PS_CHUNK_FREE
		               ? NULL
		               : "counts as free here, and has objects in its metadata";
	case PS_KNOWN_LARGE:
	case PS_KNOWN_FREEING:
		if (seen->entry.state == PS_CHUNK_LARGE
		            ? seen->entry.span != seen->extent->spans[seen->chunk]
		            : quiet)
			return "is a large object here, and not in its metadata";
		return quiet && seen->extent->known[seen->chunk] == PS_KNOWN_FREEING
		               ? "is being freed here, and no transaction is open"
		               : NULL;
	default:
		return NULL;
	}
}

/* Chunks of a large object that are checked before other threads may have the lock. */
enum { CHUNKS_PER_SLICE = 64 };

/* State of one perseas_heap_check. */
struct check {
	const struct perseas_heap *heap;
	const struct ps_extent *extent; /* extent of the large object that is being checked */
	uint64_t chunk,
		done; /* the object's first chunk, and how many of its chunks were checked */
};

static int check_covered_chunk(struct ps_extent *extent, uint64_t first, uint64_t chunk,
                               struct ps_heap_need *need)
{
	const uint64_t *bits = ps_chunk_bits(extent, chunk);
	const char *fault;
	int rc = ps_heap_require(extent, &extent->entries[chunk], sizeof(*extent->entries), need);

	if (!rc)
		rc = ps_heap_require(extent, bits, PS_CHUNK_WORDS * sizeof(*bits), need);
	if (rc)
		return rc;
	fault = ps_heap_covered_fault(extent->entries, bits, first, chunk, extent->chunks);
	return fault ? ps_heap_fail_damaged_chunk(extent, chunk, fault) : 0;
}

/* Checks that no other object is in the chunks of a large object. If the object is freed while the
 * check has released the lock, an object found there is a new one, which need not be checked. */
static int check_large(const struct chunk_seen *seen, struct ps_heap_need *need,
                       struct check *check)
{
	struct ps_extent *extent = seen->extent;
	const uint64_t span = seen->entry.span;
	uint64_t end;

	if (check->extent != extent || check->chunk != seen->chunk || check->done > span)
		check->done = 0;
	check->extent = extent;
	check->chunk = seen->chunk;
	end = span - check->done < CHUNKS_PER_SLICE ? span : check->done + CHUNKS_PER_SLICE;
	for (; check->done < end; check->done++) {
		const int rc = check_covered_chunk(extent, seen->chunk, seen->chunk + check->done,
		                                   need);

		if (rc)
			return rc;
	}
	return end < span ? PS_HEAP_YIELD : 0;
}

static int check_chunk(const struct chunk_seen *seen, struct ps_heap_need *need, void *arg)
{
	struct check *check = arg;
	const char *fault = known_fault(seen, check->heap->pending_edits == 0);

	if (fault)
		return ps_heap_fail_damaged_chunk(seen->extent, seen->chunk, fault);
	return seen->entry.state == PS_CHUNK_LARGE ? check_large(seen, need, check) : 0;
}

static int check_root(struct perseas_heap *heap, unsigned place, struct ps_heap_need *need)
{
	const struct ps_heap_root *root = &heap->roots[place];
	const char *fault = ps_heap_root_fault(root);
	struct ps_found_object found;
	void *at;
	int rc;

	for (unsigned i = 0; i < place && !fault; i++)
		if (root->name[0] && !strcmp(root->name, heap->roots[i].name))
			fault = "has the same name as another root";
	if (fault)
		return ps_fail(heap->p, PERSEAS_EHEAP, "root %u of heap '%s' %s", place, heap->name,
		               fault);
	if (!root->name[0])
		return 0;
	at = ps_root_address(heap, root);
	rc = at ? ps_object_find(heap, at, &found, need) : PERSEAS_EOBJECT;
	if (rc == PERSEAS_EOBJECT ||
	    (!rc && (!found.is_committed || found.object.type != root->type)))
		return ps_fail(heap->p, PERSEAS_EHEAP,
		               "root '%s' of heap '%s' does not lead to an object of type %llu",
		               root->name, heap->name, (unsigned long long)root->type);
	return rc;
}

int perseas_heap_check(perseas_heap_t *heap)
{
	PS_UNCANCELLED;
	struct check check = { .heap = heap };
	struct ps_heap_need need;
	int rc;

	if (!heap)
		return ps_fail(NULL, PERSEAS_EINVAL, "heap is NULL");
	rc = survey_heap(heap, check_chunk, NULL, &check);
	for (unsigned i = 0; i < PS_ROOTS && !rc; i++) {
		do {
			ps_biased_lock(&heap->lock);
			rc = check_root(heap, i, &need);
			ps_biased_unlock(&heap->lock);
			rc = ps_heap_provide(heap, rc, &need);
		} while (rc > 0);
	}
	return rc;
}
