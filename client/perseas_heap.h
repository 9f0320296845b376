/*
 * perseas_heap.h - objects in a store that transactions allocate and free. perseas.h includes it;
 * what that says of return values, strings and sentences holds here, too.
 *
 * What a transaction allocates and frees is a part of it: it counts once the transaction is
 * committed, and an abort undoes it. A heap whose owner was killed is whole, and has just the
 * objects of the transactions that counted. Objects have a type, which is a number of the
 * application's, and named roots lead to them. They never move: pointers to objects of the same
 * store may be kept in objects.
 *
 * perseas_rollback_to takes back what was allocated and freed since the savepoint. Memory of
 * objects that it takes back, as of those that a transaction allocates and frees itself, is used
 * again when the transaction has ended. A savepoint copies what the transaction has allocated and
 * freed so far, and also what was taken back of it: a large object takes more of this than a small
 * one beside others of its type and size. So very many savepoints in a transaction that allocates
 * much take memory by the square of their number.
 *
 * A heap grows when it is full, by further segments of the store, and gives them back when it is
 * told to (perseas_heap_trim). Which objects there are is kept apart from them, so that a store
 * past the end of one cannot damage it.
 *
 * Threads: many threads may use a heap at once, each with a transaction of its own. Transactions
 * need not be kept apart for what the heap itself keeps; the bytes of objects are the application's
 * to isolate, as are all ranges.
 */
#ifndef PERSEAS_HEAP_H
#define PERSEAS_HEAP_H

#include "perseas.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct perseas_heap perseas_heap_t;

/* Limits. */
enum {
	PERSEAS_HEAP_NAME_MAX = 48, /* bytes in a heap's name */
	PERSEAS_HEAP_ROOTS = 64,    /* roots of a heap */
	PERSEAS_ROOT_NAME_MAX = 39, /* bytes in a root's name */
	PERSEAS_HEAP_EXTENTS = 32   /* pairs of segments of a heap: it begins with one */
};

/* Every type, for perseas_heap_walk. No object can be of it. */
#define PERSEAS_ANY_TYPE UINT64_MAX

/* Bits of perseas_heap_options.flags. */
enum perseas_heap_flag {
	PERSEAS_HEAP_CREATE = 1, /* make the heap if the store has none of that name */
	PERSEAS_HEAP_MOVED = 2   /* open it also where segments of it are mapped elsewhere than the
	                            store has recorded them, or must be, since something else is
	                            there (perseas_map_at): pointers that are kept in objects are
	                            for the program to relocate (perseas_here) */
};

/* Options of perseas_heap_open. Initialise with PERSEAS_HEAP_OPTIONS_INIT. 0 takes the default. */
struct perseas_heap_options {
	size_t size;    /* sizeof(struct perseas_heap_options), for later versions */
	uint32_t flags; /* of enum perseas_heap_flag */
	uint64_t first; /* create: bytes for objects to begin with, rounded up to 64 KiB, at
	                       most 1 TiB; 0: 16 MiB, or `most` if that is less */
	uint64_t most;  /* bytes for objects up to which the heap grows while it is open here, at
	                       least 64 KiB and `first`; 0: no limit. It grows by as much as it
	                       has. */
};

#define PERSEAS_HEAP_OPTIONS_INIT                            \
	{                                                    \
		sizeof(struct perseas_heap_options), 0, 0, 0 \
	}

/*
 * Opens a heap of the store, and maps its segments, NAME.heap.0, NAME.meta.0 and so on. name is as
 * a store's, up to 48 bytes. options may be NULL. *heap is valid until perseas_close of the
 * store, and the same for each call with this name. It reads two pages of each NAME.meta.K: what
 * else is needed is read later. With PERSEAS_RECOVERY_ON_DEMAND a large heap can be used at once.
 *
 * Roots and the functions of this header tell of objects where they are here. A heap that was
 * opened with PERSEAS_HEAP_MOVED, and has a segment elsewhere, is not given to who opens it
 * without.
 *
 * A heap is made by publishing its segments. Other segments that are mapped and not yet published
 * stay so. While the heap is not open, nothing keeps perseas_segment_destroy from one of its
 * segments, and nothing warns: that shortens the heap, or breaks it.
 *
 * Errors: EINVAL, ENOSEGMENT (the store has no such heap, and PERSEAS_HEAP_CREATE is not given),
 * EHEAP (it is damaged, or of another version, or the application has a segment of a name that it
 * is to be made with), EADDRESS (also: a segment of it is mapped elsewhere than recorded, and
 * PERSEAS_HEAP_MOVED is not given), those of perseas_map and perseas_publish. After EINDOUBT the
 * heap is made: open it again.
 */
int perseas_heap_open(perseas_t *p, const char *name, const struct perseas_heap_options *options,
                      perseas_heap_t **heap);

/*
 * Allocates an object of at least `size` bytes, aligned to 16, and declares all of it to the
 * transaction: it may be written at once, up to its usable size, without perseas_set_range. Its
 * contents are any. type is 0 to PERSEAS_ANY_TYPE - 1. NULL in *addr on an error.
 *
 * Up to 8 KiB, an object takes at most a seventh more than `size`, or up to 15 bytes more if that
 * is more. Up to 32 KiB it takes up to about half more, and above that, whole chunks of 64 KiB.
 *
 * If the heap is full it grows, which takes as long as perseas_map and perseas_publish; other
 * commits wait meanwhile.
 *
 * Errors: EINVAL, EENDED, ETOOBIG (the object does not fit into the log with what the transaction
 * has already: perseas_reserve is for large ones), ENOMEM, ELIMIT (options.most is reached, or the
 * heap or the store has as many segments as it can have), EHEAP (also: the heap is full, and the
 * application has a segment of a name that it is to grow by), and if it has to grow those of
 * perseas_map and perseas_publish but for EINDOUBT. After an error the transaction is as it was.
 */
int perseas_alloc(perseas_tx_t *tx, perseas_heap_t *heap, size_t size, uint64_t type, void **addr);

/* The same, and stores zeros in all of the object. */
int perseas_zalloc(perseas_tx_t *tx, perseas_heap_t *heap, size_t size, uint64_t type, void **addr);

/* As perseas_alloc, but declares nothing: what is written must be declared by perseas_set_range,
 * and may be by later transactions. For objects that are larger than a transaction can be. */
int perseas_reserve(perseas_tx_t *tx, perseas_heap_t *heap, size_t size, uint64_t type,
                    void **addr);

/*
 * Frees an object: once the transaction is committed its memory is used again. Until then the
 * object is as it was, for others, too. addr NULL does nothing. An object that this transaction
 * allocated may be freed by it.
 *
 * That a root leads to the object does not keep it: an application frees it only where it may set
 * the root, too, and takes the root away or sets it anew in the same transaction or before. A root
 * whose object was freed leads nowhere: perseas_root says EOBJECT, and perseas_heap_check EHEAP.
 *
 * Errors: EINVAL, EENDED, EOBJECT (no object begins there: a wild address, or the object is freed
 * already, by a transaction that is open or has ended; or it is allocated by another transaction
 * that is open), ECONFLICT (another open transaction has a root lead to it, or did when it made a
 * savepoint that it can roll back to), ETOOBIG, ENOMEM, EHEAP, EFENCED (memory is missing:
 * PERSEAS_RECOVERY_ON_DEMAND).
 * After an error the transaction is as it was.
 */
int perseas_free(perseas_tx_t *tx, perseas_heap_t *heap, void *addr);

/*
 * Gives an object room for `size` bytes: the same object where it has about as much; else a new
 * one, with its bytes copied as far as they fit, and the old one is freed. The object is declared,
 * all of it. type must be that of the object; addr NULL: as perseas_alloc. NULL in *to on an error.
 *
 * Errors: those of perseas_alloc and perseas_free, and EOBJECT for an object of another type. After
 * an error the object and the transaction are as they were.
 */
int perseas_realloc(perseas_tx_t *tx, perseas_heap_t *heap, void *addr, size_t size, uint64_t type,
                    void **to);

struct perseas_object {
	void *addr;
	size_t size; /* usable bytes */
	uint64_t type;
};

/* Fills in *object for an object of the heap, also one that an open transaction allocated. Errors:
 * EINVAL, EOBJECT (no object begins at addr), EHEAP, EFENCED. */
int perseas_object(perseas_heap_t *heap, const void *addr, struct perseas_object *object);

/*
 * Has the root `name` lead to an object of this type, once the transaction is committed; addr NULL:
 * takes the root away. name is 1 to 39 bytes. Until then perseas_root tells of the root as it was.
 *
 * Errors: EINVAL, EENDED, EOBJECT (no object begins at addr, or it is of another type, or an open
 * transaction frees it or, if another, allocated it), ECONFLICT (another open transaction sets this
 * root), ELIMIT (the heap has 64 roots), ETOOBIG, ENOMEM, EHEAP, EFENCED.
 */
int perseas_root_set(perseas_tx_t *tx, perseas_heap_t *heap, const char *name, uint64_t type,
                     void *addr);

/* The object that the root leads to; NULL if there is no such root. Errors: EINVAL, EOBJECT (its
 * object is of another type, or was freed), EHEAP, EFENCED. */
int perseas_root(perseas_heap_t *heap, const char *name, uint64_t type, void **addr);

/*
 * Gives segments back in which no object is, as malloc_trim does with memory: by one transaction of
 * its own, which destroys them (perseas_segment_destroy says what that costs, and the mirrors have
 * their memory back). At least `keep` bytes for objects stay with the heap, of those that are used
 * and those that are free; 0: as few as can be. In *given, which may be NULL, is how many bytes for
 * objects it gave back. That none can be given back is no error: 0, and *given is 0.
 *
 * Only whole pairs of segments go, NAME.heap.K and NAME.meta.K, and the last ones first: what lies
 * in one holds all before it. The first pair stays. Objects never move. New ones get chunks of the
 * first segments that have some free, so that the last ones become empty in time where objects come
 * and go; how many bytes a heap has free does not say how many it can give back.
 *
 * Transactions may be open. A pair stays, with all before it, in which one of them has allocated,
 * freed or declared something, whichever thread has it; and while another thread walks, checks or
 * counts the heap. Call it again when they have ended. What was committed may be in doubt: then it
 * returns EBLOCKED.
 *
 * Addresses in a segment that was given back are dead: reading there kills the process, as after
 * perseas_unmap, and a segment that is made later may lie there. So nobody may still use an object
 * that was freed. The heap may grow again at once, by segments of the same names.
 *
 * It reads metadata of the last segments first, while others use the heap. If there is something to
 * give back, it waits for what is under way, and commits wait while it is posted. A mirror that is
 * away meanwhile is copied whole when it comes back, and a copy that goes on begins again: a heap
 * that is to grow again soon is better left as it is, or kept at a size by `keep`.
 *
 * It is all or nothing for whoever opens the store after a crash: the heap has the pairs, with
 * nothing in them, or has them not, and their memory goes back when the store is opened.
 *
 * Errors: EINVAL, EHEAP, ENOMEM, EFENCED, EBLOCKED, ESALVAGE, EUNREACHABLE: the heap is as it was.
 * EINDOUBT, and EFENCED with *given not 0: as with perseas_segment_destroy they are gone here, but
 * perhaps not for another owner. After EINDOUBT perseas_flush waits until W mirrors hold that, and
 * the heap does not grow before. Mirrors have their memory back with the next call after that, also
 * one that has nothing to give, or when a segment is made or destroyed.
 */
int perseas_heap_trim(perseas_heap_t *heap, uint64_t keep, uint64_t *given);

/*
 * Calls the function for each object of the type, or of all with PERSEAS_ANY_TYPE, that is
 * committed, in the order of their places. It may allocate and free. Meanwhile perseas_heap_trim
 * gives nothing back; a function that leaves the walk by longjmp, an exception or pthread_exit
 * keeps it from doing so as long as the store is open. A result of its that is not 0 ends the walk,
 * and is returned. What others commit meanwhile may be seen or not. Reads all of the heap's
 * metadata, 0.8 % of its size.
 *
 * Errors: EINVAL, EHEAP, EFENCED.
 */
int perseas_heap_walk(perseas_heap_t *heap, uint64_t type,
                      int (*each)(void *arg, const struct perseas_object *object), void *arg);

/* Reads all of the heap's metadata, and holds it against itself and against what this process
 * has made of it. Errors: EINVAL, EHEAP (the message names the first fault; a root whose object
 * was freed is one), EFENCED. */
int perseas_heap_check(perseas_heap_t *heap);

struct perseas_heap_stat {
	uint32_t extents; /* pairs of segments that it consists of */
	uint32_t roots;
	uint64_t size;    /* bytes for objects */
	uint64_t objects; /* that are committed */
	uint64_t used;    /* bytes that these take, as perseas_object says it */
	uint64_t free;    /* bytes of chunks that nothing is in */
	uint64_t gaps;    /* bytes in chunks that are partly used: for objects of the same size and
	                     type only */
	uint64_t large;   /* of the objects, those of whole chunks */
	uint64_t allocated; /* objects that were committed since it was opened here */
	uint64_t freed;     /* the same, freed */
};

/* Fills in *stat. Reads all of the heap's metadata. Errors: EINVAL, EHEAP, EFENCED. */
int perseas_heap_stat(perseas_heap_t *heap, struct perseas_heap_stat *stat);

#ifdef __cplusplus
}
#endif

#endif
