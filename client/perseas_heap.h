/*
 * perseas_heap.h - a heap in a store: transactions allocate and free objects. perseas.h includes
 * this header. Its rules for return values, strings and sentences apply here, too.
 *
 * Allocating and freeing are part of the transaction: they take effect when it commits, and an
 * abort undoes them. After its owner was killed a heap is intact: it has exactly the objects of the
 * transactions that survived. Each object has a type, which is a number that the application
 * chooses. Named roots lead to objects. Objects never move, so objects may contain pointers to
 * other objects of the same store.
 *
 * perseas_rollback_to undoes what was allocated and freed since the savepoint. Memory that such a
 * rollback releases, or that one transaction both allocates and frees, is reused only after the
 * transaction has ended. A savepoint copies the list of what the transaction has allocated and
 * freed so far, also of what was rolled back. In this list a large object takes more than a small
 * object that lies among others of its type and size. So the memory for savepoints grows with the
 * square of their number if a transaction with very many savepoints allocates much.
 *
 * A full heap grows by further segments of the store, and perseas_heap_trim gives them back. The
 * record of which objects exist is kept in other segments than the objects, so that a store past
 * the end of an object cannot damage it.
 *
 * Threads: many threads may use a heap at once, each with a transaction of its own. The heap
 * isolates its own records. The application isolates the bytes of its objects, as it does with all
 * ranges.
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
	PERSEAS_HEAP_EXTENTS = 32   /* pairs of segments of a heap; a new heap has one */
};

/* Stands for every type in perseas_heap_walk. No object can have this type. */
#define PERSEAS_ANY_TYPE UINT64_MAX

/* Bits of perseas_heap_options.flags. */
enum perseas_heap_flag {
	PERSEAS_HEAP_CREATE = 1, /* create the heap if the store has none of this name */
	PERSEAS_HEAP_MOVED =
		2 /* open the heap even if some of its segments are, or must be, mapped at another
	             address than the recorded one (perseas_map_at). The program then relocates the
	             pointers that it keeps in objects (perseas_here). */
};

/* Options of perseas_heap_open. Initialise with PERSEAS_HEAP_OPTIONS_INIT. 0 means the default. */
struct perseas_heap_options {
	size_t size;    /* sizeof(struct perseas_heap_options), for later versions */
	uint32_t flags; /* of enum perseas_heap_flag */
	uint64_t first; /* create: initial bytes for objects, rounded up to 64 KiB, at most 1 TiB;
	                   0: 16 MiB, or `most` if that is less */
	uint64_t most;  /* bytes for objects that the heap may grow to while it is open here, at
	                   least 64 KiB and `first`; 0: no limit. Each time the heap grows, it
	                   doubles. */
};

#define PERSEAS_HEAP_OPTIONS_INIT                            \
	{                                                    \
		sizeof(struct perseas_heap_options), 0, 0, 0 \
	}

/*
 * Opens a heap of the store, and maps its segments: NAME.heap.0, NAME.meta.0 and so on. The rules
 * for name are those for a store's name, with at most 48 bytes. options may be NULL. *heap is valid
 * until perseas_close of the store; each call with the same name returns the same heap. The call
 * reads two pages of each NAME.meta.K and leaves the rest for later, so that with
 * PERSEAS_RECOVERY_ON_DEMAND a large heap can be used at once.
 *
 * All functions of this header take and return addresses as they are in this process. If a heap was
 * opened with PERSEAS_HEAP_MOVED and a segment of it is not at its recorded address, opening it
 * again without this flag is refused.
 *
 * A heap is created by publishing its segments. Other segments that are mapped but not yet
 * published remain unpublished. While a heap is not open, perseas_segment_destroy does not protect
 * its segments: destroying one shortens the heap or breaks it, without a warning.
 *
 * Errors: EINVAL, ENOSEGMENT (the store has no such heap, and PERSEAS_HEAP_CREATE is not given),
 * EHEAP (the heap is damaged, or has another version, or the application has a segment of a name
 * that a new heap needs), EADDRESS (also: a segment of the heap is not mapped at its recorded
 * address, and PERSEAS_HEAP_MOVED is not given), those of perseas_map and perseas_publish. After
 * EINDOUBT the heap exists: open it again.
 */
int perseas_heap_open(perseas_t *p, const char *name, const struct perseas_heap_options *options,
                      perseas_heap_t **heap);

/*
 * Allocates an object of at least `size` bytes, aligned to 16, and declares all of it to the
 * transaction: up to its usable size it may be written at once, without perseas_set_range. Its
 * contents are undefined. type is 0 to PERSEAS_ANY_TYPE - 1. Sets *addr to NULL on an error.
 *
 * Up to 8 KiB, an object takes at most a seventh more than `size`, or up to 15 bytes more if that
 * is larger. Up to 32 KiB it takes up to about half more, and above that, whole chunks of 64 KiB.
 *
 * A full heap grows, which takes as long as perseas_map and perseas_publish; other commits wait
 * meanwhile.
 *
 * Errors: EINVAL, EENDED, ETOOBIG (the log has no room for the object and what the transaction has
 * declared so far: use perseas_reserve for large objects), ENOMEM, ELIMIT (options.most is reached,
 * or the heap or the store has as many segments as it can have), EHEAP (also: the heap is full, and
 * the application has a segment of a name that the heap needs to grow), and if the heap has to
 * grow, those of perseas_map and perseas_publish except EINDOUBT. An error leaves the transaction
 * unchanged.
 */
int perseas_alloc(perseas_tx_t *tx, perseas_heap_t *heap, size_t size, uint64_t type, void **addr);

/* Like perseas_alloc, and stores zeros in all of the object. */
int perseas_zalloc(perseas_tx_t *tx, perseas_heap_t *heap, size_t size, uint64_t type, void **addr);

/* Like perseas_alloc, but declares nothing: declare what you write by perseas_set_range, in this
 * or in later transactions. For objects that are larger than one transaction can be. */
int perseas_reserve(perseas_tx_t *tx, perseas_heap_t *heap, size_t size, uint64_t type,
                    void **addr);

/*
 * Frees an object. Its memory is reused after the transaction has committed. Until then the object
 * remains as it was, also for other transactions. Does nothing if addr is NULL. A transaction may
 * free an object that it allocated itself.
 *
 * A root that leads to the object does not protect it. So free such an object only in a transaction
 * that may also set the root, and remove the root, or set it to another object, in this transaction
 * or before. A root whose object was freed leads nowhere: perseas_root returns EOBJECT, and
 * perseas_heap_check EHEAP.
 *
 * Errors: EINVAL, EENDED, EOBJECT (no object begins at addr, or an open or committed transaction
 * freed it already, or another open transaction allocated it), ECONFLICT (in another open
 * transaction a root leads to the object, or did at a savepoint that it can still roll back to),
 * ETOOBIG, ENOMEM, EHEAP, EFENCED (memory is missing: PERSEAS_RECOVERY_ON_DEMAND). An error leaves
 * the transaction unchanged.
 */
int perseas_free(perseas_tx_t *tx, perseas_heap_t *heap, void *addr);

/*
 * Resizes an object to `size` bytes and declares all of it. The object stays where it is if its
 * memory fits about that size. Otherwise the call allocates a new object, copies as many bytes as
 * fit, and frees the old object. type must be the object's type. With addr NULL the call does what
 * perseas_alloc does. Sets *to to NULL on an error.
 *
 * Errors: those of perseas_alloc and perseas_free, and EOBJECT if the object has another type. An
 * error leaves the object and the transaction unchanged.
 */
int perseas_realloc(perseas_tx_t *tx, perseas_heap_t *heap, void *addr, size_t size, uint64_t type,
                    void **to);

struct perseas_object {
	void *addr;
	size_t size; /* usable bytes */
	uint64_t type;
};

/* Fills in *object for an object of the heap, which may be one that an open transaction allocated.
 * Errors: EINVAL, EOBJECT (no object begins at addr), EHEAP, EFENCED. */
int perseas_object(perseas_heap_t *heap, const void *addr, struct perseas_object *object);

/*
 * Makes the root `name` lead to an object of this type when the transaction commits; until then
 * perseas_root returns the old object. If addr is NULL, removes the root. name has 1 to 39 bytes.
 *
 * Errors: EINVAL, EENDED, EOBJECT (no object begins at addr, or it has another type, or an open
 * transaction frees it, or another open transaction allocated it), ECONFLICT (another open
 * transaction sets this root), ELIMIT (the heap has 64 roots), ETOOBIG, ENOMEM, EHEAP, EFENCED.
 */
int perseas_root_set(perseas_tx_t *tx, perseas_heap_t *heap, const char *name, uint64_t type,
                     void *addr);

/* Sets *addr to the object that the root leads to, or to NULL if there is no such root. Errors:
 * EINVAL, EOBJECT (the object has another type, or was freed), EHEAP, EFENCED. */
int perseas_root(perseas_heap_t *heap, const char *name, uint64_t type, void **addr);

/*
 * Gives empty segments of the heap back, as malloc_trim does with memory. This is a transaction of
 * its own that destroys them (perseas_segment_destroy says what that costs), and returns their
 * memory to the mirrors. The heap keeps room for at least `keep` bytes of objects, used and free
 * together; with 0 it gives back as much as it can. Sets *given, if given is not NULL, to the
 * number of bytes for objects that were given back. If nothing can be given back, the call returns
 * 0 and sets *given to 0.
 *
 * Segments go in pairs, NAME.heap.K and NAME.meta.K, from the last pair backwards; an object in a
 * pair keeps this pair and all before it. The first pair always stays. Objects never move. New
 * objects are placed in the first segments that have room, so that the last segments become empty
 * in time if objects come and go. The number of free bytes does not tell how much can be given
 * back.
 *
 * Transactions may be open. A pair, and all before it, stays while an open transaction of any
 * thread has allocated, freed or declared anything in it, and while another thread walks, checks or
 * counts the heap; call again when they have ended. If a commit is in doubt, the call returns
 * EBLOCKED.
 *
 * Reading at an address in a segment that was given back kills the process, as after perseas_unmap,
 * and a later segment may be mapped there. So no thread may still use an object that was freed. The
 * heap can grow again at once, by segments of the same names.
 *
 * The call first reads the metadata of the last segments while other threads use the heap. If there
 * is something to give back, it waits for transactions that are being sent, and commits wait until
 * its own transaction is posted. A mirror that is away meanwhile is copied whole when it returns,
 * and a copy that is running begins again. So a heap that will soon grow again is better left
 * alone, or kept at a size with `keep`.
 *
 * After a crash, an owner that opens the store finds either all of these pairs, empty, or none of
 * them, and then their memory is given back when the store is opened.
 *
 * Errors: EINVAL, EHEAP, ENOMEM, EFENCED, EBLOCKED, ESALVAGE, EUNREACHABLE: the heap is unchanged.
 * EINDOUBT, and EFENCED with *given other than 0: the pairs are gone here, but perhaps not for
 * another owner, as with perseas_segment_destroy. After EINDOUBT, perseas_flush waits until W
 * mirrors hold the change, and the heap does not grow before that. The mirrors then get their
 * memory back with the next call of perseas_heap_trim, even one that gives nothing back, or when a
 * segment is made or destroyed.
 */
int perseas_heap_trim(perseas_heap_t *heap, uint64_t keep, uint64_t *given);

/*
 * Calls `each` for every committed object of the type, or of all types with PERSEAS_ANY_TYPE, in
 * the order of their addresses within the heap's segments. `each` may allocate and free. If it
 * returns anything but 0, the walk ends and returns that value. The walk may or may not see what
 * other threads commit meanwhile. perseas_heap_trim gives nothing back during a walk; if `each`
 * leaves the walk by longjmp, an exception or pthread_exit, that lasts until the store is closed.
 * The walk reads all of the heap's metadata, 0.8 % of its size.
 *
 * Errors: EINVAL, EHEAP, EFENCED.
 */
int perseas_heap_walk(perseas_heap_t *heap, uint64_t type,
                      int (*each)(void *arg, const struct perseas_object *object), void *arg);

/* Checks all of the heap's metadata: it must be consistent in itself and with this process's own
 * records. Errors: EINVAL, EHEAP (the message names the first fault; a root whose
 * object was freed is a fault), EFENCED. */
int perseas_heap_check(perseas_heap_t *heap);

struct perseas_heap_stat {
	uint32_t extents; /* pairs of segments */
	uint32_t roots;
	uint64_t size;    /* bytes for objects */
	uint64_t objects; /* committed objects */
	uint64_t used;    /* usable bytes of these objects (perseas_object) */
	uint64_t free;    /* bytes of empty chunks */
	uint64_t gaps;    /* free bytes in partly used chunks: only for objects of the same size and
	                     type */
	uint64_t large;   /* objects that take whole chunks; counted in objects, too */
	uint64_t allocated; /* committed allocations since the heap was opened here */
	uint64_t freed;     /* committed frees since then */
};

/* Fills in *stat with the heap's figures. Reads all of the heap's metadata. Errors: EINVAL, EHEAP,
 * EFENCED. */
int perseas_heap_stat(perseas_heap_t *heap, struct perseas_heap_stat *stat);

#ifdef __cplusplus
}
#endif

#endif
