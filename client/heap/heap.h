/*
 * heap.h - the in-memory state of an open heap, for the files of this room.
 *
 * The metadata in memory always shows the committed state: it changes only at a commit, by deferred
 * stores (core/deferred_stores.h). Objects that open transactions have allocated or mean to free
 * are recorded next to it, in runs. A run is built from the metadata of its chunk when the chunk is
 * first needed.
 *
 * Locks: the heap's own lock guards all of this state; it costs little while a single thread
 * allocates (core/biased.h). At a commit and at the end of a transaction it is taken inside of
 * p->lock, never the other way round. So the holder of the heap's lock takes no other lock, and
 * touches no metadata that may still be missing from memory (core/demand.h): a function that needs
 * such metadata returns PS_HEAP_FETCH, and its caller brings the metadata without the lock and
 * calls the function again.
 */
#ifndef PERSEAS_CLIENT_HEAP_H
#define PERSEAS_CLIENT_HEAP_H

#include "format.h"
#include "../core/biased.h"
#include "../core/handle.h"
#include "../core/deferred_stores.h"

/* Positive results of functions that are called with the heap's lock. Each says what the function
 * needs before it can continue: the caller calls ps_heap_provide, and then the function again. 0 is
 * success; negative results are PERSEAS_E… codes. */
enum {
	PS_HEAP_FETCH = 1,   /* metadata that is not in memory yet (struct ps_heap_need) */
	PS_HEAP_YIELD = 2,   /* nothing: the function only lets other threads have the lock */
	PS_HEAP_GROW = 3,    /* free chunks: the heap must grow */
	PS_HEAP_RESERVE = 4, /* record space for all changes that the function may make */
};

/* The contents of a chunk as far as this process knows them, with the changes of open
 * transactions. */
enum ps_known {
	PS_KNOWN_NOTHING, /* its entry and bitmap have not been read yet */
	PS_KNOWN_FREE,
	PS_KNOWN_RUN,     /* a run of objects, described by a struct ps_run */
	PS_KNOWN_LARGE,   /* first chunk of a large object, allocated or committed */
	PS_KNOWN_TAIL,    /* another chunk of a large object */
	PS_KNOWN_FREEING, /* first chunk of a large object that an open transaction frees */
};

/* All runs of one size class and one type. */
struct ps_bin {
	struct ps_bin *next; /* next bin in the same hash bucket */
	uint64_t type;
	unsigned class;           /* size class: an index in ps_class_sizes */
	struct ps_run *open_runs; /* runs with free objects, the most recently listed first */
};

/* A chunk of small objects, as open transactions see it. */
struct ps_run {
	struct ps_run *next, *previous; /* neighbors in bin->open_runs; unused while it is full */
	struct ps_bin *bin;
	struct ps_extent *extent;
	uint32_t chunk;                    /* its index in the extent */
	uint16_t object_count, word_count; /* objects; words of each bitmap below */
	uint16_t free_count;               /* objects that are free to allocate */
	uint16_t first_free_word;          /* no word before this one has a free object */
	bool recorded;                     /* the chunk's committed entry describes this run */
	uint64_t *freeing; /* a bit for each object that an open transaction frees */
	/* A bit for each object that is committed or allocated by an open transaction. */
	uint64_t taken[];
};

/* One extent of a heap: its two segments, and the state of its chunks in this process. */
struct ps_extent {
	struct perseas_heap *heap;
	unsigned index;  /* index in heap->extents, and K in the names of its segments */
	uint64_t chunks; /* number of chunks */
	uint8_t *data;   /* the memory of its objects in this process */
	struct ps_heap_entry *entries; /* the entry of each chunk, in the metadata */
	uint64_t *bitmaps;             /* the bitmap of each chunk, in the metadata */
	struct ps_mapped_extent meta;  /* segment of the metadata, for deferred stores */
	uint32_t segment;              /* id of the segment of the objects */
	bool is_present;      /* set once all metadata of the extent is known to be in memory */
	uint8_t *known;       /* enum ps_known of each chunk */
	struct ps_run **runs; /* for each chunk: its run, if PS_KNOWN_RUN */
	/* For the first chunk of each large object: its number of chunks. */
	uint32_t *spans;
	uint64_t *types;            /* for the first chunk of each large object: its type */
	uint64_t lowest_free_chunk; /* no chunk before this one is PS_KNOWN_FREE */
	uint64_t free_count;        /* number of chunks that are PS_KNOWN_FREE */
	/* Entries of chunks before this one have been scanned for free chunks. */
	uint64_t scanned;
	uint64_t examined; /* all chunks before this one are known */
};

/* A root, as open transactions see it. */
struct ps_root_state {
	/* The edits of the open transaction that sets the root, or NULL. */
	const struct ps_deferred_stores *setter;
	char name[PS_ROOT_NAME + 1]; /* the root's name, while a transaction sets it */
	/* Place of the object that the root will lead to; 0 if the root will be removed. */
	uint64_t place;
	unsigned edit; /* index of the root's edit in the setter's list */
};

enum { PS_BIN_HASHES = 256 };

struct perseas_heap {
	struct ps_handle_attachment attachment; /* must be the first member */
	struct perseas *p;
	char name[PS_HEAP_NAME + 1];
	uint64_t max_size; /* bytes that the heap may grow to; 0 for no limit */
	/* PERSEAS_HEAP_MOVED: segments may be mapped at other addresses than recorded. */
	bool may_move;
	bool has_moved; /* at least one segment is mapped at another address than recorded */
	struct ps_biased lock;
	struct ps_extent *extents[PS_HEAP_EXTENTS];
	_Atomic unsigned extent_count;
	struct ps_bin *bins[PS_BIN_HASHES];
	struct ps_bin *recent_bin; /* bin of the last allocation; NULL before the first */
	/* For each size, in units of PS_UNIT bytes: the smallest class with objects of that
	 * size. */
	uint8_t classes[PS_CLASS_MAX / PS_UNIT + 1];
	/* The PS_ROOTS roots in the metadata of extent 0. */
	struct ps_heap_root *roots;
	struct ps_root_state known_roots[PS_ROOTS];
	unsigned setter_count; /* number of known_roots that have a setter */
	/* Number of surveys (survey.c) in progress. While it is not 0, no extent is given back. */
	unsigned survey_count;
	uint64_t pending_edits; /* number of edits that open transactions have */
	/* Numbers of objects that committed transactions have allocated and freed since the
	 * open. */
	uint64_t allocated, freed;
};

/* What a function that returned PS_HEAP_FETCH or PS_HEAP_GROW needs before it can continue. */
struct ps_heap_need {
	uint64_t start, end;   /* PS_HEAP_FETCH: addresses of the metadata that must be in memory */
	uint64_t chunks;       /* PS_HEAP_GROW: consecutive free chunks that the heap must get */
	unsigned extent_count; /* PS_HEAP_GROW: extents that the function searched */
};

enum ps_edit_kind {
	PS_EDIT_WORD, /* allocates and frees objects in one word of a run's bitmap */
	/* Allocates or frees a large object; exactly one of `set`, `clear`, `dropped` is 1. */
	PS_EDIT_LARGE,
	PS_EDIT_ROOT, /* sets or removes the root with index `word` */
};

/* One change that a transaction makes to the heap's metadata when it commits. */
struct ps_edit {
	enum ps_edit_kind kind;
	unsigned change_count; /* number of deferred stores that are reserved for this edit */
	/* PS_EDIT_WORD: index of the word in the run's bitmap; PS_EDIT_LARGE: number of chunks of
	 * the object; PS_EDIT_ROOT: index of the root. */
	uint32_t word;
	struct ps_extent *extent; /* WORD, LARGE */
	uint64_t chunk;
	uint64_t set;   /* bits of the objects that the transaction allocates */
	uint64_t clear; /* bits of the committed objects that the transaction frees */
	/* Bits of objects that the transaction allocated and freed again: the commit stores nothing
	 * for them, and no transaction may allocate their memory before this one has ended. */
	uint64_t dropped;
	uint64_t type;            /* LARGE: type of the object */
	struct ps_heap_root root; /* ROOT: its new contents */
};

/* A copy of a transaction's edits, made at a savepoint. */
struct ps_edits_savepoint {
	struct ps_edits_savepoint *older; /* the copy of the savepoint before this one */
	uint64_t savepoint;               /* name of the savepoint */
	unsigned count;                   /* number of edits */
	struct ps_edit list[];
};

/* All edits of one transaction in one heap. A transaction object keeps this structure for reuse. */
struct ps_edits {
	struct ps_deferred_stores late; /* must be the first member */
	struct perseas_heap *heap;
	struct ps_edit *list;
	unsigned count, capacity;
	/* Copies made at savepoints, the newest first. Guarded by the heap's lock, because other
	 * transactions look here for roots that a roll-back may restore. */
	struct ps_edits_savepoint *savepoints;
	/* Numbers of deferred stores that are reserved in the transaction, and that the edits have
	 * taken of these. */
	unsigned stores_reserved, stores_used;
};

/* --- chunks.c: the caller holds the heap's lock --- */

/* Returns 0 if `length` bytes of metadata from `at` on are in memory. Otherwise sets *need to the
 * bytes to fetch and returns PS_HEAP_FETCH. */
int ps_heap_require(struct ps_extent *extent, const void *at, uint64_t length,
                    struct ps_heap_need *need);

/* Sets extent->known of a chunk from its metadata. A chunk without objects stays PS_KNOWN_NOTHING.
 * Returns 0,
 * PS_HEAP_FETCH, EHEAP or ENOMEM. */
int ps_chunk_examine(struct ps_extent *extent, uint64_t chunk, struct ps_heap_need *need);

/* Examines a chunk that is PS_KNOWN_NOTHING. Returns like ps_chunk_examine. */
static inline int ps_chunk_ensure_known(struct ps_extent *extent, uint64_t chunk,
                                        struct ps_heap_need *need)
{
	return extent->known[chunk] == PS_KNOWN_NOTHING ? ps_chunk_examine(extent, chunk, need) : 0;
}

/* Sets *run to a run of the bin that has a free object. Returns 0, a PS_HEAP_… result, EHEAP or
 * ENOMEM. */
int ps_run_find_free(struct perseas_heap *heap, struct ps_bin *bin, struct ps_run **run,
                     struct ps_heap_need *need);

/* Allocates `span` consecutive free chunks to a large object. Returns 0, a PS_HEAP_… result or
 * EHEAP. */
int ps_large_allocate(struct perseas_heap *heap, uint64_t span, uint64_t type,
                      struct ps_extent **extent, uint64_t *chunk, struct ps_heap_need *need);

/* Sets *is_empty to whether the extent has no object, not even one that an open transaction
 * allocates or frees. Examines some unknown chunks each time; the caller sets *looked to 0 before
 * the first call and keeps it between calls. Returns 0, a PS_HEAP_… result, EHEAP or ENOMEM. */
int ps_extent_check_empty(struct ps_extent *extent, uint64_t *looked, bool *is_empty,
                          struct ps_heap_need *need);

/* Returns true if all chunks of the extent are known and free. */
bool ps_extent_is_empty(const struct ps_extent *extent);

/* Returns the bin of a class and a type, or NULL if out of memory. */
struct ps_bin *ps_bin_get(struct perseas_heap *heap, unsigned class, uint64_t type);

/* ps_run_first_free returns the index of the first free object of a run, which must have one;
 * ps_run_allocate marks that object as allocated. */
unsigned ps_run_first_free(struct ps_run *run);
void ps_run_allocate(struct ps_run *run, unsigned index);

/* Marks the objects `bits` of a bitmap word as free. Frees the run itself if no object is left. */
void ps_run_release(struct ps_run *run, unsigned word, uint64_t bits);
void ps_large_release(struct ps_extent *extent, uint64_t chunk);

static inline const uint64_t *ps_chunk_bits(const struct ps_extent *extent, uint64_t chunk)
{
	return extent->bitmaps + chunk * PS_CHUNK_WORDS;
}

/* Returns the extent that contains an address, or NULL. */
static inline struct ps_extent *ps_heap_find_extent(struct perseas_heap *heap, const void *addr)
{
	const unsigned count = atomic_load_explicit(&heap->extent_count, memory_order_relaxed);

	for (unsigned i = 0; i < count; i++) {
		struct ps_extent *extent = heap->extents[i];

		if ((uintptr_t)addr - (uintptr_t)extent->data < extent->chunks * PS_CHUNK)
			return extent;
	}
	return NULL;
}

/* Fails with EHEAP. The message names the chunk and continues with `fault`. */
int ps_heap_fail_damaged_chunk(const struct ps_extent *extent, uint64_t chunk, const char *fault);

/* An object of the heap, as ps_object_find found it. */
struct ps_found_object {
	struct ps_extent *extent;
	uint64_t chunk;
	struct ps_run *run; /* NULL for a large object */
	unsigned index;     /* number of the object in the run */
	bool is_committed;
	bool is_being_freed; /* an open transaction frees the object */
	struct perseas_object object;
};

/* --- edits.c --- */

/* Returns the transaction's edits of this heap, with space for another edit and `changes` deferred
 * stores reserved, or NULL with *rc set. Caller holds no lock. */
struct ps_edits *ps_edits_prepare(struct perseas_tx *tx, struct perseas_heap *heap,
                                  unsigned changes, int *rc);

/* Returns like ps_edits_prepare, which it does not call if `least` deferred stores are reserved
 * already: an edit usually needs no more. */
static inline struct ps_edits *ps_edits_get(struct perseas_tx *tx, struct perseas_heap *heap,
                                            unsigned least, unsigned changes, int *rc)
{
	struct ps_edits *edits = (struct ps_edits *)tx->deferred;

	if (edits && edits->late.user == heap && edits->count < edits->capacity &&
	    edits->stores_reserved - edits->stores_used >= least)
		return edits;
	return ps_edits_prepare(tx, heap, changes, rc);
}

/* Returns the transaction's edit of a word of the run's bitmap; adds one if necessary. Caller holds
 * the heap's lock and has reserved the deferred stores that one object may need. */
struct ps_edit *ps_edits_word(struct ps_edits *edits, struct ps_run *run, unsigned word);
/* Returns the edit as ps_edits_word does, or NULL, with nothing changed, if too few deferred stores
 * are reserved. Caller holds the heap's lock. */
struct ps_edit *ps_edits_try_word(struct ps_edits *edits, struct ps_run *run, unsigned word);
/* Appends an edit, with `changes` of the reserved deferred stores. Caller holds the heap's lock. */
struct ps_edit *ps_edits_add(struct ps_edits *edits, enum ps_edit_kind kind, unsigned changes);

/* Removes an edit whose object was given back, unless the edit changes something else. It must be
 * the transaction's last edit, made after its last savepoint. Caller holds the heap's lock. */
void ps_edits_withdraw(struct ps_edits *edits, const struct ps_edit *edit);

/* Returns the transaction's edits of this heap, or NULL if it has none. */
struct ps_edits *ps_edits_find(struct perseas_tx *tx, const struct perseas_heap *heap);

/* Returns the edit by which the transaction frees the object; it must have one. Caller holds the
 * heap's lock. */
struct ps_edit *ps_edits_find_free(struct ps_edits *edits, const struct ps_found_object *found);

/* Returns the edit by which the transaction allocated the object, or NULL if it did not. Caller
 * holds the heap's lock. */
struct ps_edit *ps_edits_find_alloc(struct ps_edits *edits, const struct ps_found_object *found);

/* --- open.c --- */

/* Handles `rc`, the result of a function that was called with the heap's lock. If rc > 0, provides
 * what the function needs, and returns 1, after which the caller calls it again. Returns other
 * values of rc unchanged, or an error code. Caller holds no lock. */
int ps_heap_provide_slowly(struct perseas_heap *heap, int rc, const struct ps_heap_need *need);

/* Does the same as ps_heap_provide_slowly. Inline for the usual case that rc is 0. */
static inline int ps_heap_provide(struct perseas_heap *heap, int rc,
                                  const struct ps_heap_need *need)
{
	return rc > 0 ? ps_heap_provide_slowly(heap, rc, need) : rc;
}

/* Frees an extent that the heap no longer has. NULL is allowed. */
void ps_extent_free(struct ps_extent *extent);

/* --- alloc.c --- */

/* Fails with the reason why the transaction may not change this heap: EINVAL or EENDED. Caller
 * holds no lock. */
int ps_heap_refuse_change(struct perseas_tx *tx, const struct perseas_heap *heap);

/* Returns 0 if the transaction may change the heap, or fails with EINVAL or EENDED. */
static inline int ps_heap_may_change(struct perseas_tx *tx, const struct perseas_heap *heap)
{
	return tx && heap && tx->p == heap->p && tx->is_open ? 0 : ps_heap_refuse_change(tx, heap);
}

/* --- roots.c: the caller holds the heap's lock --- */

/* Returns 0 if the transaction may free the object. Fails with ECONFLICT if another open
 * transaction sets a root to the object, or could roll back to a savepoint where it did. */
int ps_roots_check_free(const struct ps_edits *edits, const struct ps_found_object *found);

static inline int ps_roots_may_free(const struct ps_edits *edits,
                                    const struct ps_found_object *found)
{
	return edits->heap->setter_count ? ps_roots_check_free(edits, found) : 0;
}

/* Forgets which transaction sets the root with this index. */
void ps_root_clear_setter(struct perseas_heap *heap, unsigned place);

/* Returns the address of the root's object, or NULL if it lies outside of the heap. */
void *ps_root_address(const struct perseas_heap *heap, const struct ps_heap_root *root);

/* --- find.c --- */

/* Finds the object that begins at `addr`, committed or not. Returns 0, PS_HEAP_FETCH, EOBJECT,
 * EHEAP or ENOMEM. Caller holds the heap's lock. */
int ps_object_find(struct perseas_heap *heap, const void *addr, struct ps_found_object *found,
                   struct ps_heap_need *need);

#endif
