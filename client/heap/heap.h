/*
 * heap.h - what an open heap is made of, for the files of this room.
 *
 * The metadata in memory is what is committed, always: it changes only at a commit, by deferred
 * stores (core/deferred_stores.h). Next to it is what open transactions have reserved and mean to
 * free, in runs, which are made of the metadata chunk by chunk, when a chunk is needed first.
 *
 * Locks: the heap's own lock guards all of this; it costs little while one thread allocates
 * (core/biased.h). It is taken with the handle's lock held, at a commit and at the end of a
 * transaction, and never the other way round. So whoever has it takes no other lock, and touches no
 * metadata that may be missing (core/demand.h): a function that would have to returns PS_HEAP_BRING
 * instead, and is called again when that is here.
 */
#ifndef PERSEAS_CLIENT_HEAP_H
#define PERSEAS_CLIENT_HEAP_H

#include "format.h"
#include "../core/biased.h"
#include "../core/handle.h"
#include "../core/deferred_stores.h"

/* What a function with the lock returns besides 0 and codes: it is to be called again. */
enum {
	PS_HEAP_BRING = 1, /* when that metadata is here (struct ps_bring) */
	PS_HEAP_AGAIN = 2, /* at once: it lets others have the lock */
	PS_HEAP_GROW = 3,  /* when the heap has grown */
	PS_HEAP_KEEP = 4,  /* when room is kept for all changes that it may make */
};

/* What this process knows of a chunk. */
enum ps_known {
	PS_KNOWN_NOT, /* its entry and its bits have not been looked at */
	PS_KNOWN_FREE,
	PS_KNOWN_RUN,   /* it has a struct ps_run */
	PS_KNOWN_LARGE, /* the first of a large object, reserved or committed */
	PS_KNOWN_TAIL,  /* another of one */
	PS_KNOWN_FREED, /* as LARGE, and an open transaction frees it */
};

/* The runs of a class and a type. */
struct ps_bin {
	struct ps_bin *next; /* with the same hash */
	uint64_t type;
	unsigned class;
	struct ps_run *runs; /* with room */
};

/* A chunk of objects, as open transactions see it. */
struct ps_run {
	struct ps_run *next, *previous; /* of its bin, while it has room */
	struct ps_bin *bin;
	struct ps_extent *extent;
	uint32_t chunk;
	uint16_t objects, words;
	uint16_t room;     /* objects that are not taken */
	uint16_t first;    /* words before this one have no room */
	bool recorded;     /* the chunk's entry says what this is */
	uint64_t *leaving; /* taken, and an open transaction frees it */
	uint64_t taken[];  /* committed, or reserved by an open transaction */
};

struct ps_extent {
	struct perseas_heap *heap;
	unsigned index;
	uint64_t chunks;
	uint8_t *data;
	struct ps_heap_entry *entries;
	uint64_t *bitmaps;
	struct ps_extent_of meta; /* its segment of metadata, for late changes */
	uint32_t segment;         /* that of its objects */
	bool whole;               /* that is here, all of it */
	uint8_t *known;           /* enum ps_known, of each chunk */
	struct ps_run **runs;     /* of each chunk: RUN */
	uint32_t *spans;          /* of each chunk: LARGE, FREED */
	uint64_t *types;          /* the same */
	uint64_t lowest;          /* no chunk before this one is FREE */
	uint64_t free;            /* chunks that are FREE */
	uint64_t fresh;           /* entries before this chunk were looked at for free ones */
	uint64_t examined;        /* chunks before this one are known */
};

/* A root, as open transactions see it. */
struct ps_root_known {
	const struct ps_late *setter; /* an open transaction sets it; NULL: none does */
	char name[PS_ROOT_NAME + 1];  /* that it means to set */
	uint64_t place;               /* of the object that it is to lead to; 0: none */
	unsigned edit;                /* its number among those of the setter */
};

enum { PS_BIN_HASHES = 256 };

struct perseas_heap {
	struct ps_guest guest; /* first */
	struct perseas *p;
	char name[PS_HEAP_NAME + 1];
	uint64_t most;
	bool moves; /* its segments may be mapped elsewhere than they are recorded */
	bool moved; /* one is, since it was opened */
	struct ps_biased lock;
	struct ps_extent *extents[PS_HEAP_EXTENTS];
	_Atomic unsigned extent_count;
	struct ps_bin *bins[PS_BIN_HASHES];
	struct ps_bin *recent; /* what was allocated last is of this one; NULL: nothing was */
	uint8_t classes[PS_CLASS_MAX / PS_UNIT + 1]; /* of each number of units */
	struct ps_heap_root *roots;                  /* in the metadata of extent 0 */
	struct ps_root_known known_roots[PS_ROOTS];
	unsigned set_roots; /* of them, those that have a setter */
	unsigned surveys;   /* that are under way: no extent leaves the heap */
	uint64_t pending;   /* edits of open transactions */
	uint64_t allocated, freed;
};

/* What is to be done before a function can go on. */
struct ps_bring {
	uint64_t start, end; /* BRING: metadata that must be here */
	uint64_t chunks;     /* GROW: free ones in a row that are needed */
	unsigned had;        /* GROW: extents that there were */
};

enum ps_edit_kind {
	PS_EDIT_WORD,  /* objects of a run */
	PS_EDIT_LARGE, /* a large object: `set` or `clear` or `back` is 1 */
	PS_EDIT_ROOT,  /* `word` is its place among the roots */
};

/* What a transaction means to change. */
struct ps_edit {
	enum ps_edit_kind kind;
	unsigned changes;         /* that room is taken for */
	uint32_t word;            /* of the run's bitmap; LARGE: span */
	struct ps_extent *extent; /* not of ROOT */
	uint64_t chunk;
	uint64_t set;   /* objects that it allocates */
	uint64_t clear; /* objects that it frees */
	uint64_t back;  /* objects that it allocated and freed: nothing is sent, and nobody else
	                   gets them before it is over */
	uint64_t type;  /* LARGE */
	struct ps_heap_root root; /* ROOT */
};

/* The edits as they were when a savepoint was made. */
struct ps_edits_mark {
	struct ps_edits_mark *older;
	uint64_t savepoint;
	unsigned count;
	struct ps_edit list[];
};

/* The edits of a transaction in one heap. */
struct ps_edits {
	struct ps_late late; /* first */
	struct perseas_heap *heap;
	struct ps_edit *list;
	unsigned count, capacity;
	struct ps_edits_mark *marks; /* the newest savepoint's; with the heap's lock: others look
	                                there for roots that may come back */
	unsigned kept, used; /* changes that room is kept for; that the edits may take at most */
};

/* --- chunks.c: with the heap's lock --- */

/* Is this metadata here? If not, *bring says what to bring: PS_HEAP_BRING. */
int ps_heap_here(struct ps_extent *extent, const void *at, uint64_t length, struct ps_bring *bring);

/* Learns what a chunk is, which is not known. 0, PS_HEAP_BRING, EHEAP, ENOMEM. */
int ps_chunk_learn(struct ps_extent *extent, uint64_t chunk, struct ps_bring *bring);

/* The same of any chunk. */
static inline int ps_chunk_load(struct ps_extent *extent, uint64_t chunk, struct ps_bring *bring)
{
	return extent->known[chunk] == PS_KNOWN_NOT ? ps_chunk_learn(extent, chunk, bring) : 0;
}

/* A run of the bin that has room. 0, or PS_HEAP_…, EHEAP, ENOMEM. */
int ps_run_find(struct perseas_heap *heap, struct ps_bin *bin, struct ps_run **run,
                struct ps_bring *bring);

/* So many free chunks in a row, which are a large object from now on. As above. */
int ps_large_find(struct perseas_heap *heap, uint64_t span, uint64_t type,
                  struct ps_extent **extent, uint64_t *chunk, struct ps_bring *bring);

/* Has the extent no object, not even one that an open transaction allocates or frees? Learns what
 * its chunks are, some of them at a time: *looked is 0 at first, and the caller's. 0, or as above.
 */
int ps_extent_look(struct ps_extent *extent, uint64_t *looked, bool *empty, struct ps_bring *bring);

/* The same of what is known: so only if all of it is. */
bool ps_extent_is_empty(const struct ps_extent *extent);

/* NULL: out of memory. */
struct ps_bin *ps_bin_get(struct perseas_heap *heap, unsigned class, uint64_t type);

/* The first object of a run that has room; its number. Then it is taken. */
unsigned ps_run_first(struct ps_run *run);
void ps_run_take(struct ps_run *run, unsigned index);

/* Objects of one word are no longer taken. The run may be gone after that. */
void ps_run_release(struct ps_run *run, unsigned word, uint64_t bits);
void ps_large_release(struct ps_extent *extent, uint64_t chunk);

static inline const uint64_t *ps_chunk_bits(const struct ps_extent *extent, uint64_t chunk)
{
	return extent->bitmaps + chunk * PS_CHUNK_WORDS;
}

/* The extent that an address lies in, or NULL. */
static inline struct ps_extent *ps_heap_extent(struct perseas_heap *heap, const void *addr)
{
	const unsigned count = atomic_load_explicit(&heap->extent_count, memory_order_relaxed);

	for (unsigned i = 0; i < count; i++) {
		struct ps_extent *extent = heap->extents[i];

		if ((uintptr_t)addr - (uintptr_t)extent->data < extent->chunks * PS_CHUNK)
			return extent;
	}
	return NULL;
}

int ps_heap_damaged(const struct ps_extent *extent, uint64_t chunk, const char *fault);

/* An object of the heap. */
struct ps_found_object {
	struct ps_extent *extent;
	uint64_t chunk;
	struct ps_run *run; /* NULL: a large one */
	unsigned index;     /* in the run */
	bool committed;
	bool leaving; /* an open transaction frees it */
	struct perseas_object object;
};

/* --- edits.c --- */

/* The transaction's edits, with room for one more that takes so many changes. NULL: *rc is why. No
 * lock is held. */
struct ps_edits *ps_edits_prepare(struct perseas_tx *tx, struct perseas_heap *heap,
                                  unsigned changes, int *rc);

/* The same, for one who may do with room for `least` of the changes. Most often that is there. */
static inline struct ps_edits *ps_edits_get(struct perseas_tx *tx, struct perseas_heap *heap,
                                            unsigned least, unsigned changes, int *rc)
{
	struct ps_edits *edits = (struct ps_edits *)tx->late;

	if (edits && edits->late.whose == heap && edits->count < edits->capacity &&
	    edits->kept - edits->used >= least)
		return edits;
	return ps_edits_prepare(tx, heap, changes, rc);
}

/* The edit of this word, which may be new. With the heap's lock. */
struct ps_edit *ps_edits_word(struct ps_edits *edits, struct ps_run *run, unsigned word);
/* The same for one who may have kept less room than that takes: NULL, and nothing is changed. */
struct ps_edit *ps_edits_try_word(struct ps_edits *edits, struct ps_run *run, unsigned word);
struct ps_edit *ps_edits_add(struct ps_edits *edits, enum ps_edit_kind kind, unsigned changes);

/* Removes the edit of an object that was refused, and frees its room, if the edit changes nothing
 * else. It is the last edit of the transaction, and no savepoint has it. The caller holds the
 * heap's lock. */
void ps_edits_withdraw(struct ps_edits *edits, const struct ps_edit *edit);

/* Those that it has; it has some. */
struct ps_edits *ps_edits_find(struct perseas_tx *tx, const struct perseas_heap *heap);

/* The edit by which the transaction is to free an object. With the heap's lock. */
struct ps_edit *ps_edits_freeing(struct ps_edits *edits, const struct ps_found_object *found);

/* The edit by which the transaction itself allocated an object, or NULL. With the heap's lock. */
struct ps_edit *ps_edits_owner(struct ps_edits *edits, const struct ps_found_object *found);

/* --- open.c --- */

/* What another function returned with the lock: does what has to be done before that is called
 * again, and returns 1; or passes 0 and codes on. No lock is held. */
int ps_heap_go_on(struct perseas_heap *heap, int rc, const struct ps_bring *bring);

static inline int ps_heap_again(struct perseas_heap *heap, int rc, const struct ps_bring *bring)
{
	return rc > 0 ? ps_heap_go_on(heap, rc, bring) : rc;
}

/* An extent that is no part of the heap any more; or NULL. */
void ps_extent_free(struct ps_extent *extent);

/* --- alloc.c --- */

/* Why the transaction may not change this heap: EINVAL, EENDED. No lock is held. */
int ps_heap_refuse(struct perseas_tx *tx, const struct perseas_heap *heap);

/* May it? 0, or these. */
static inline int ps_heap_may_change(struct perseas_tx *tx, const struct perseas_heap *heap)
{
	return tx && heap && tx->p == heap->p && tx->open ? 0 : ps_heap_refuse(tx, heap);
}

/* --- roots.c: with the heap's lock --- */

/* An object is to be freed by a transaction: does another open one mean a root to lead to it, or
 * can a roll-back of it? 0, ECONFLICT. */
int ps_roots_check_free(const struct ps_edits *edits, const struct ps_found_object *found);

static inline int ps_roots_may_free(const struct ps_edits *edits,
                                    const struct ps_found_object *found)
{
	return edits->heap->set_roots ? ps_roots_check_free(edits, found) : 0;
}

/* No open transaction sets this root any more. */
void ps_root_forget(struct perseas_heap *heap, unsigned place);

/* Where its object is; NULL: nowhere in the heap. */
void *ps_root_address(const struct perseas_heap *heap, const struct ps_heap_root *root);

/* --- find.c --- */

/* 0, PS_HEAP_BRING, EOBJECT, EHEAP, ENOMEM. With the heap's lock. */
int ps_object_find(struct perseas_heap *heap, const void *addr, struct ps_found_object *found,
                   struct ps_bring *bring);

#endif
