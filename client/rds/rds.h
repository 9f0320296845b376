/*
 * rds.h - a recoverable heap (RDS) in a segment of RVM, on memory that is mirrored.
 *
 * Programs that were written for RDS compile against this header and link with librds-perseas,
 * unchanged. Names, members and values of codes are those of RDS; the text and the code are not. A
 * program includes rvm.h, calls rvm_initialize, and has one heap at a time.
 *
 * The heap. It is made of blocks of whole chunks. A free block is in the list of its length in
 * chunks, or in the list of large ones; free neighbours are joined when a request cannot be
 * satisfied otherwise. Everything that the heap knows, its counts too, lies in the region, and each
 * change of it is a part of a transaction: after a crash, or on another node, it is as the last
 * transaction left it. Places are kept relative to the heap's beginning; pointers of the program's
 * need the heap at one address. Blocks are aligned to 8 bytes. There are guards at both ends of a
 * block: a program that writes past one is told so when the block is freed, or allocated.
 *
 * Transactions. Where a function takes a transaction, it is the caller's, begun with restore: then
 * the change commits and aborts with it. Or it is NULL: the function has one of its own, which is
 * committed with no_flush before it returns; if the caller's work is then aborted, the block stays.
 * As RVM does not keep transactions apart, only one that is open may have changed the heap: until
 * it has ended others get RVM_EUNCOMMIT, also those with NULL.
 *
 * Errors. *err is SUCCESS, a code below, which is negative, or one of RVM's, which is positive;
 * rds_message returns the sentence. err may be NULL. After an error nothing is changed, but that in
 * a transaction of the caller's free blocks may have been joined. All functions but those that
 * initialise: EHEAP_INIT. All that change the heap: RVM_EUNCOMMIT, RVM_ETID, RVM_ETOO_BIG (the
 * transaction is too large), RVM_EIO, RVM_ETERMINATED, as in rvm.h.
 *
 * Threads. Any number of threads may call these functions, with NULL for a transaction. With
 * transactions of their own they take turns until these end. rds_init_heap, rds_load_heap and the
 * others that begin and end are called by one thread while no other uses the heap.
 *
 * Old programs. rds_private.h has names from the inside of RDS that Coda's rvm_basher and rdsinit
 * use: RegionDefs and NRegionDefs, the regions of the heap that is loaded, rds_testsw, which is not
 * read, and the types from which rdsinit computes the smallest chunk.
 *
 * What cannot be had:
 * - Two open transactions that have both changed the heap: RVM_EUNCOMMIT, where RDS lets the second
 *   see what the first may take back.
 * - The variables rds_tracing and rds_tracing_file, and RDS_LOG: rds_trace_on is the way.
 * - Heaps that another RDS has written: EHEAP_VERSION_SKEW. The layout is another one.
 * - rds_do_free as a part of the caller's transaction: it has one of its own, as in RDS. Free with
 *   rds_free in the caller's for both to be permanent together.
 */
#ifndef PERSEAS_RDS_H
#define PERSEAS_RDS_H

#include <stdio.h>

#include "rvm.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SUCCESS 0
#define ERVM_FAILED (-1)          /* never returned: RVM's code is */
#define EBAD_LIST (-2)            /* the number of lists is 0, or there is no list of intentions */
#define EBAD_SEGMENT_HDR (-3)     /* the segment has not the two regions of a heap */
#define EHEAP_VERSION_SKEW (-4)   /* no heap of this version is there */
#define EHEAP_INIT (-5)           /* no heap was started, or one was already */
#define EBAD_ARGS (-6)            /* an argument is none that can be */
#define ECORRUPT (-7)             /* what the heap knows, or a guard, was overwritten */
#define EFREED_TWICE (-8)         /* the block is free */
#define ENO_ROOM (-9)             /* no room in the heap */
#define EBAD_CHUNK_SIZE EBAD_ARGS /* the manual's names of these two */
#define EBAD_LIST_LENGTH EBAD_LIST

#define RDS_MIN_CHUNK_SIZE 32 /* bytes */
#define RDS_MIN_FREE_LISTS 1

/* The sentence of the last error of the calling thread, "" if there was none. Never NULL; valid
 * until the thread's next call. RDS has no such function. */
extern const char *rds_message(void);

/* --- beginning and end --- */

/*
 * Makes a segment of two regions (rvm_create_segment), with a heap in the first, at startAddr, and
 * the program's static data in the second, behind it. Both are mapped afterwards, and the heap is
 * started. What the heap region had is lost; the static region stays as it was. The heap is
 * permanent when it returns. startAddr is a multiple of the page, and so are both lengths, in
 * bytes; DevLength 0 is as long as need be. RDS unmaps both regions instead: so a program may call
 * rds_load_heap now, and calls rds_unload_heap before it maps the regions by itself.
 *
 * Errors: those of rds_init_heap and rvm_load_segment, EHEAP_INIT (a heap is started, or a segment
 * with a stopped one was not unloaded). Once the segment has a load map an error does not take that
 * back: call it again.
 */
extern int rds_zap_heap(char *DevName, rvm_offset_t DevLength, char *startAddr,
                        rvm_length_t staticLength, rvm_length_t heapLength, unsigned long nlists,
                        unsigned long chunkSize, int *err);

/*
 * Makes a heap in length bytes from base on, which lie in one mapped region, and starts it. It is
 * there once tid, which may not be NULL, has committed; after an abort call rds_stop_heap. base is
 * a multiple of 8. chunkSize is a multiple of 8 and RDS_MIN_CHUNK_SIZE at least. nlists is
 * RDS_MIN_FREE_LISTS at least.
 *
 * Errors: EBAD_ARGS (chunkSize, base, or more than 2^32 chunks), EBAD_LIST (nlists), ENO_ROOM
 * (length does not hold lists and one block), EHEAP_INIT (another heap is started).
 */
extern int rds_init_heap(char *base, rvm_length_t length, unsigned long chunkSize,
                         unsigned long nlists, rvm_tid_t *tid, int *err);

/*
 * Maps the regions of a segment that rds_zap_heap made, and starts its heap. *staticAddr is where
 * the static region is; untouched after an error. If the heap of this segment is loaded already,
 * also by rds_zap_heap, the call sets *staticAddr and changes nothing; if rds_stop_heap stopped the
 * heap, the call starts it again.
 *
 * Errors: those of rvm_load_segment and rds_start_heap, EBAD_SEGMENT_HDR. EHEAP_INIT: another heap
 * is started, another segment was not unloaded, or a region of this one is mapped no more.
 */
extern int rds_load_heap(char *DevName, rvm_offset_t DevLength, char **staticAddr, int *err);

/* Stops the heap, and unmaps what rds_load_heap or rds_zap_heap mapped. Errors: RVM_EUNCOMMIT (an
 * open transaction declared bytes there: the heap stays; call it again). */
extern int rds_unload_heap(int *err);

/* Starts the heap that is at startAddr, in a region that the program has mapped. Errors:
 * EHEAP_VERSION_SKEW, EHEAP_INIT (another one is started), ECORRUPT, RVM_ENOT_MAPPED. */
extern int rds_start_heap(char *startAddr, int *err);

/* The heap is not used any more. Its memory stays as it is. */
extern int rds_stop_heap(int *err);

/* --- blocks --- */

/*
 * Splits nblocks blocks of this size off larger ones, into the list of that size. With NULL all of
 * them, or none; with a transaction those that there was room for, until that aborts.
 *
 * Errors: ENO_ROOM, ECORRUPT.
 */
extern int rds_prealloc(unsigned long size, unsigned long nblocks, rvm_tid_t *tid, int *err);

/*
 * Returns a block of at least size bytes, or NULL with *err set. Its first 16 bytes are zeros, even
 * if size is less; the others are undefined. Declare what is written there.
 *
 * Errors: ENO_ROOM, ECORRUPT.
 */
extern char *rds_malloc(unsigned long size, rvm_tid_t *tid, int *err);

/* Gives a block back. 0, or -1 and *err: EBAD_ARGS (no block can begin there), EFREED_TWICE,
 * ECORRUPT (the block is left as it is, to be looked at). */
extern int rds_free(char *addr, rvm_tid_t *tid, int *err);

/* 1: a free block for so many bytes is there, as things are; 0: there is none, or no heap. Free
 * neighbours that could be joined are not counted. */
extern int rds_maxblock(unsigned long size);

/* --- intentions --- */

/*
 * Blocks that a transaction means to free. The program provides the record, with table NULL; the
 * library the table. One thread at a time uses a list. A transaction that aborts leaves the blocks
 * as they are: then free(table), and set it to NULL.
 */
typedef struct intlist {
	unsigned long size;  /* room in the table */
	unsigned long count; /* blocks */
	char **table;
} intentionList_t;

#define STARTSIZE 128 /* entries of a new table */

/* Adds a block to the list. Returns SUCCESS, EBAD_LIST (list is NULL), RVM_ENO_MEMORY, or as
 * rds_free. */
extern int rds_fake_free(char *addr, intentionList_t *list);

/*
 * Frees the blocks of the list in a transaction of its own, which ends with mode (flush or
 * no_flush), and empties the list. The program calls it right before it commits. All blocks are
 * freed, or none: after an error the list stays. Returns SUCCESS, EBAD_LIST, RVM_EMODE, or as
 * rds_free. With flush, if mirrors do not answer in time, all are freed and the list is empty: it
 * returns RVM_EIO with errno ETIMEDOUT, and rvm_flush waits for them.
 */
extern int rds_do_free(intentionList_t *list, rvm_mode_t mode);

/* --- what there is to see --- */

/* Counts since rds_init_heap or rds_clear_stats; UINT_MAX stands for more. */
typedef struct {
	unsigned malloc;       /* blocks that were asked for */
	unsigned prealloc;     /* blocks that were allocated ahead */
	unsigned free;         /* blocks that were given back */
	unsigned coalesce;     /* times that free neighbours were joined */
	unsigned hits;         /* a block of the length was there */
	unsigned misses;       /* a longer one was split */
	unsigned large_list;   /* times that the first of the large blocks became another one */
	unsigned large_hits;   /* a large block was taken whole */
	unsigned large_misses; /* a large block was split */
	unsigned merged;       /* blocks that were joined to their neighbour */
	unsigned unmerged;     /* blocks that were looked at, and had no free neighbour */
	unsigned freebytes;    /* in free blocks, with their guards; never cleared */
	unsigned mallocbytes;  /* in allocated blocks, with their guards; never cleared */
} rds_stats_t;

/* Prints them to stdout. Copies them: EBAD_ARGS (stats is NULL). Clears the counts, in a
 * transaction of its own. Each returns SUCCESS or a code; rds_clear_stats 0, or -1 and *err. */
extern int rds_print_stats(void);
extern int rds_get_stats(rds_stats_t *stats);
extern int rds_clear_stats(int *err);

/* From now on each call that changes the heap is told in a line to that file, which stays the
 * caller's; or no more. Returns SUCCESS, EBAD_ARGS (file is NULL). */
extern int rds_trace_on(FILE *file);
extern int rds_trace_off(void);

/* Tells every block, in the order of addresses, to the file of rds_trace_on. Returns SUCCESS,
 * EBAD_ARGS (tracing is off), ECORRUPT (after what it could tell). */
extern int rds_trace_dump_heap(void);

#ifdef __cplusplus
}
#endif

#endif
