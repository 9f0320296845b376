/*
 * rds.h - a recoverable heap (RDS) in a segment of RVM, on mirrored memory.
 *
 * Programs written for RDS compile against this header and link with librds-perseas, unchanged.
 * Names, members and values of codes are those of RDS; the text and the code are not. A program
 * includes rvm.h, calls rvm_initialize, and has one heap at a time.
 *
 * The heap. It consists of blocks of whole chunks. A free block is in the list for its length in
 * chunks, or in the list of large blocks. Free neighbors are joined when a request cannot be
 * satisfied otherwise. All of the heap's state, including its counters, lies in the region, and
 * changes only by transactions: after a crash, or on another node, the heap is as the last
 * transaction left it. The heap refers to its blocks relative to its own beginning; the program's
 * pointers need the heap at the same address each time. Blocks are aligned to 8 bytes. Both ends of
 * a block have guards: if a program writes past a block, it gets an error when that block is freed
 * or allocated.
 *
 * Transactions. A function that takes a transaction either gets one of the caller's, begun with
 * restore: then its change commits and aborts with that transaction. Or it gets NULL and uses a
 * transaction of its own, which it commits with no_flush before it returns; aborting the caller's
 * work then does not take the change back. RVM does not isolate transactions, so only one open
 * transaction may have changed the heap: until that one ends, others get RVM_EUNCOMMIT, also those
 * with NULL.
 *
 * Errors. *err is SUCCESS, a code below, which is negative, or a code of RVM, which is positive;
 * rds_message returns the sentence. err may be NULL. An error changes nothing, except that free
 * blocks may have been joined in the caller's transaction. All functions but those that initialize
 * may return EHEAP_INIT. All that change the heap may return, as in rvm.h: RVM_EUNCOMMIT, RVM_ETID,
 * RVM_ETOO_BIG (the transaction is too large), RVM_EIO, RVM_ETERMINATED.
 *
 * Threads. Any number of threads may call these functions with NULL for a transaction. Threads with
 * transactions of their own must take turns: while one of these is open, others get RVM_EUNCOMMIT.
 * Functions that start, stop, load or unload a heap must be called while no other thread uses it.
 *
 * Old programs. rds_private.h declares internal names of RDS that Coda's rvm_basher and rdsinit
 * use: RegionDefs and NRegionDefs, the regions of the loaded heap; rds_testsw, which is ignored;
 * and the types from which rdsinit computes the smallest chunk.
 *
 * Differences from RDS:
 * - Two open transactions cannot both have changed the heap: RVM_EUNCOMMIT. RDS lets the second
 *   one see what the first may take back.
 * - The variables rds_tracing and rds_tracing_file, and RDS_LOG, do not exist: use rds_trace_on.
 * - Heaps that another RDS has written cannot be used: EHEAP_VERSION_SKEW. Their layout is
 *   different.
 * - rds_do_free cannot be part of the caller's transaction: it uses one of its own, as in RDS.
 *   To make both permanent together, call rds_free within the caller's.
 */
#ifndef PERSEAS_RDS_H
#define PERSEAS_RDS_H

#include <stdio.h>

#include "rvm.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SUCCESS 0
#define ERVM_FAILED (-1)        /* never returned: functions return RVM's code instead */
#define EBAD_LIST (-2)          /* the number of lists is 0, or the list of intentions is NULL */
#define EBAD_SEGMENT_HDR (-3)   /* the segment does not have the two regions of a heap */
#define EHEAP_VERSION_SKEW (-4) /* no heap of this version at that address */
#define EHEAP_INIT (-5)         /* no heap is started, or another one is */
#define EBAD_ARGS (-6)          /* an argument is invalid */
#define ECORRUPT (-7)           /* the heap's own data, or a guard, was overwritten */
#define EFREED_TWICE (-8)       /* the block is free already */
#define ENO_ROOM (-9)           /* the heap has no room */
/* The manual uses these names for EBAD_ARGS and EBAD_LIST. */
#define EBAD_CHUNK_SIZE EBAD_ARGS
#define EBAD_LIST_LENGTH EBAD_LIST

#define RDS_MIN_CHUNK_SIZE 32 /* bytes */
#define RDS_MIN_FREE_LISTS 1

/* Returns the sentence for the last error of the calling thread, or "". Never NULL; valid until the
 * thread's next call. RDS has no such function. */
extern const char *rds_message(void);

/* --- beginning and end --- */

/*
 * Creates a segment of two regions (rvm_create_segment): a new heap at startAddr, and behind it the
 * program's static data. Maps both regions and starts the heap, which is permanent when the
 * function returns. The old contents of the heap's region are lost; the static region keeps its
 * contents. startAddr and both lengths, in bytes, are multiples of the page size. DevLength 0 means
 * as long as necessary. Unlike RDS, which unmaps both regions, this library leaves them mapped: a
 * program may still call rds_load_heap, and must call rds_unload_heap before it maps the regions
 * itself.
 *
 * Errors: those of rds_init_heap and rvm_load_segment, EHEAP_INIT (a heap is started, or the
 * segment of a stopped heap is still loaded). An error after the load map was written leaves that
 * in place: call the function again.
 */
extern int rds_zap_heap(char *DevName, rvm_offset_t DevLength, char *startAddr,
                        rvm_length_t staticLength, rvm_length_t heapLength, unsigned long nlists,
                        unsigned long chunkSize, int *err);

/*
 * Creates a heap in length bytes from base on, within one mapped region, and starts it. The heap
 * exists once tid, which may not be NULL, has committed; after an abort call rds_stop_heap. base is
 * a multiple of 8. chunkSize is a multiple of 8 and at least RDS_MIN_CHUNK_SIZE. nlists is at least
 * RDS_MIN_FREE_LISTS.
 *
 * Errors: EBAD_ARGS (chunkSize, base, or more than 2^32 chunks), EBAD_LIST (nlists), ENO_ROOM
 * (length does not hold the lists and one block), EHEAP_INIT (another heap is started).
 */
extern int rds_init_heap(char *base, rvm_length_t length, unsigned long chunkSize,
                         unsigned long nlists, rvm_tid_t *tid, int *err);

/*
 * Maps the regions of a segment that rds_zap_heap created, starts the heap, and sets *staticAddr to
 * the address of the static region. An error leaves *staticAddr unchanged. If this segment's heap
 * is loaded already, also by rds_zap_heap, the call only sets *staticAddr; if rds_stop_heap stopped
 * the heap, the call starts it again.
 *
 * Errors: those of rvm_load_segment and rds_start_heap, EBAD_SEGMENT_HDR, EHEAP_INIT (another heap
 * is started, another segment is still loaded, or a region of this one is no longer mapped).
 */
extern int rds_load_heap(char *DevName, rvm_offset_t DevLength, char **staticAddr, int *err);

/* Stops the heap, and unmaps the regions that rds_load_heap or rds_zap_heap mapped. Errors:
 * RVM_EUNCOMMIT (an open transaction declared bytes there; the heap stays started: call the
 * function again). */
extern int rds_unload_heap(int *err);

/* Starts the heap at startAddr, in a region that the program has mapped. Errors:
 * EHEAP_VERSION_SKEW, EHEAP_INIT (another heap is started), ECORRUPT, RVM_ENOT_MAPPED. */
extern int rds_start_heap(char *startAddr, int *err);

/* Stops the heap. Its memory is unchanged. */
extern int rds_stop_heap(int *err);

/* --- blocks --- */

/*
 * Splits nblocks free blocks of this size off larger ones, for later requests. With NULL for a
 * transaction it splits all or none. With the caller's transaction it splits as many as it can; an
 * abort of that transaction undoes this.
 *
 * Errors: ENO_ROOM, ECORRUPT.
 */
extern int rds_prealloc(unsigned long size, unsigned long nblocks, rvm_tid_t *tid, int *err);

/*
 * Returns a block of at least size bytes, or NULL with *err set. Its first 16 bytes are zeros, even
 * if size is less; the others are undefined. The program must declare what it writes there.
 *
 * Errors: ENO_ROOM, ECORRUPT.
 */
extern char *rds_malloc(unsigned long size, rvm_tid_t *tid, int *err);

/* Frees a block. Returns 0, or -1 with *err set: EBAD_ARGS (no block can begin there),
 * EFREED_TWICE, ECORRUPT (the block stays as it is, for inspection). */
extern int rds_free(char *addr, rvm_tid_t *tid, int *err);

/* Returns 1 if the heap has a free block for `size` bytes, or 0 if not or if no heap is started.
 * Does not count free neighbors that could be joined. */
extern int rds_maxblock(unsigned long size);

/* --- intentions --- */

/*
 * A list of blocks that a transaction means to free. The program provides the record, with table
 * NULL; the library allocates the table. A list is used by one thread at a time. If the transaction
 * aborts, the blocks stay allocated: the program calls free(table) and sets it to NULL.
 */
typedef struct intlist {
	unsigned long size;  /* entries that the table has room for */
	unsigned long count; /* number of blocks */
	char **table;
} intentionList_t;

#define STARTSIZE 128 /* entries of a new table */

/* Adds a block to the list. Returns SUCCESS, EBAD_LIST (list is NULL), RVM_ENO_MEMORY, or a code of
 * rds_free. */
extern int rds_fake_free(char *addr, intentionList_t *list);

/*
 * Frees the blocks of the list in a transaction of its own, which ends with mode (flush or
 * no_flush), and empties the list. The program calls it right before it commits. Frees all blocks
 * or none; an error leaves the list as it is. Returns SUCCESS, EBAD_LIST, RVM_EMODE, or a code of
 * rds_free. With flush, if mirrors do not answer in time, it returns RVM_EIO with errno ETIMEDOUT:
 * the blocks are then freed, the list is empty, and rvm_flush waits for the mirrors.
 */
extern int rds_do_free(intentionList_t *list, rvm_mode_t mode);

/* --- statistics and traces --- */

/* Counters since rds_init_heap or rds_clear_stats; UINT_MAX stands for that or more. */
typedef struct {
	unsigned malloc;       /* blocks that rds_malloc returned */
	unsigned prealloc;     /* blocks that rds_prealloc made */
	unsigned free;         /* blocks that were freed */
	unsigned coalesce;     /* passes over the heap that joined free neighbors */
	unsigned hits;         /* requests served by a block of the exact length */
	unsigned misses;       /* requests served by splitting a longer block */
	unsigned large_list;   /* times that the head of the list of large blocks changed */
	unsigned large_hits;   /* requests served by a whole large block */
	unsigned large_misses; /* requests served by splitting a large block */
	unsigned merged;       /* blocks joined to a neighbor */
	unsigned unmerged;     /* free blocks without a free neighbor that such passes found */
	unsigned freebytes;    /* bytes in free blocks, with their guards; never cleared */
	unsigned mallocbytes;  /* bytes in allocated blocks, with their guards; never cleared */
} rds_stats_t;

/* rds_print_stats prints the counters to stdout. rds_get_stats copies them: EBAD_ARGS (stats is
 * NULL). rds_clear_stats clears them in a transaction of its own, and returns 0, or -1 with *err
 * set. The others return SUCCESS or a code. */
extern int rds_print_stats(void);
extern int rds_get_stats(rds_stats_t *stats);
extern int rds_clear_stats(int *err);

/* rds_trace_on makes each call that changes the heap print a line to the file, which the program
 * owns; rds_trace_off ends that. They return SUCCESS or EBAD_ARGS (file is NULL). */
extern int rds_trace_on(FILE *file);
extern int rds_trace_off(void);

/* Prints every block, in the order of addresses, to the file of rds_trace_on. Returns SUCCESS,
 * EBAD_ARGS (tracing is off), or ECORRUPT, after printing the blocks before the damage. */
extern int rds_trace_dump_heap(void);

#ifdef __cplusplus
}
#endif

#endif
