/*
 * perseas_segments.h - segments at other addresses than the recorded ones, growing and destroying
 * segments, the list of open transactions, and copies of committed memory. perseas.h includes this
 * header. Its rules for return values and sentences apply here, too.
 *
 * The store records an address for each new segment, and perseas_map maps the segment at that
 * address only, so that segments may contain pointers into segments. perseas_map_at maps a segment
 * at another address: for example because the recorded address is taken, or because a store and a
 * copy of it are open in one process. The recorded address does not change. Ranges, commits,
 * mirrors and heaps work with offsets and are not affected. Only pointers inside segments no longer
 * fit, and the program must do one of the following:
 * - Keep offsets from the beginning of a segment, and no pointers.
 * - Keep pointers as the record has them: translate each pointer that it reads by perseas_here, and
 *   each pointer that it stores by perseas_recorded. If all segments are at their recorded
 *   addresses, these functions return their argument.
 * - Keep pointers into one segment only: add *moved of perseas_map_at to each pointer that it
 *   reads, and subtract it from each pointer that it stores.
 * A pointer that is stored without translation is wrong for the next owner, who may map the segment
 * at yet another address, or at the recorded one.
 */
#ifndef PERSEAS_SEGMENTS_H
#define PERSEAS_SEGMENTS_H

#include "perseas.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Maps a segment at a given address: like perseas_map, but at `at` instead of the recorded address.
 * at must be a multiple of 4096 and of the system's page size. NULL means the recorded address if
 * that is free, and any other address if not. No other mapping is ever replaced. Sets *moved, if
 * moved is not NULL, to *addr minus the recorded address, in bytes; 0 on an error. *addr is valid
 * as long as that of perseas_map.
 *
 * A segment that does not exist is created, with `at` as its recorded address, or with NULL as
 * perseas_map does it. For a segment that is mapped already the call returns the present address if
 * `at` is that address or NULL. After perseas_unmap the segment can be mapped at another address.
 * While a segment is not at its recorded address, perseas_map returns EADDRESS for it, and so does
 * perseas_heap_open without PERSEAS_HEAP_MOVED.
 *
 * Errors: those of perseas_map; EINVAL (also: at is not such a multiple, or the segment would end
 * beyond the last address), EADDRESS (something else is at this address, which the message names if
 * it can; the kernel does not give out this address; the segment is mapped at another address; or
 * the segment is new, and another segment of the store has this recorded address).
 */
int perseas_map_at(perseas_t *p, const char *segment, size_t size, void *at, void **addr,
                   ptrdiff_t *moved);

/*
 * Returns the address in this process of the byte whose recorded address is `recorded`. Returns
 * NULL if `recorded` is NULL or not inside a mapped segment; the end of a segment is outside. Takes
 * no lock. Any thread may call this while p is open and no thread unmaps the segment.
 */
void *perseas_here(const perseas_t *p, const void *recorded);

/* Returns the recorded address of the byte that is at `here` in this process. Returns NULL if
 * `here` is NULL or not inside a mapped segment. */
void *perseas_recorded(const perseas_t *p, const void *here);

/*
 * Makes a segment larger while transactions go on: afterwards it has `size` bytes at its present
 * address, and the new bytes are zeros on every mirror. A segment never moves. Like
 * perseas_publish, growing is a transaction of its own: an owner that opens the store later finds
 * the segment with the old size or with the new one. Other threads may have transactions open in
 * the segment. A range may begin in the old part and end in the new one.
 *
 * Both the old and the new size must be multiples of 4096, and the new one at most 1 TiB. The
 * segment must be published, and mapped here. If it has this size already, because another thread
 * made it so large for example, the call only waits until W mirrors hold that.
 * The addresses behind the segment must be free in this process. perseas_map_reserve keeps them
 * free; without it, anything that was mapped in the meantime may be in the way.
 *
 * Each mirror makes memory for the new part as for a new segment, and receives its contents;
 * commits wait until every mirror has it. If pauses matter, let a large segment grow in several
 * smaller steps. A mirror that is away meanwhile is copied whole.
 *
 * In the store each growth is a segment, called a part: NAME.grown.1, NAME.grown.2 and so on.
 * perseas_map, perseas_unmap and perseas_segment_destroy handle the parts with the segment, by its
 * name. perseas_segment, perseas_segment_at and perseas_map use the size of all parts together, and
 * the recorded address of the first byte. No other call makes segments with such names. Each part
 * counts as one of the store's 128 segments until the whole segment is destroyed; a segment that
 * doubles each time needs few. A store that is restored from a snapshot, or recovered onto other
 * mirrors, has one segment instead of the parts.
 *
 * Errors: EINVAL (also: the old or new size is not a multiple of 4096; the segment is not mapped;
 * its name has more than 55 bytes, or more than 54 or 53 if the part's number has two or three
 * digits), ENOSEGMENT, EUNPUBLISHED, ESIZE (it is larger already), EEXIST (another segment has the
 * part's name), EADDRESS (something else is behind it in this process, which the message names if
 * it can, or another segment of the store has a recorded address there), ECONFLICT (the segment
 * belongs to a heap, which grows by itself), EMIRRORMEM (a mirror's memory or a quota), ELIMIT (128
 * segments), EUNREACHABLE (fewer than W mirrors made or received the part), EBLOCKED (a commit is
 * in doubt), EFENCED, ENOMEM, ESALVAGE: the segment is unchanged.
 * EINDOUBT: the segment is larger here, but fewer than W mirrors hold that so far, as with
 * perseas_commit; perseas_flush waits for it. EFENCED may also come at this point: then the next
 * owner decides.
 */
int perseas_segment_grow(perseas_t *p, const char *segment, size_t size);

/*
 * Maps a segment and keeps addresses free for it to grow: like perseas_map, with `most` bytes of
 * addresses from its first byte on. Until the segment is unmapped, nothing else in this process is
 * mapped there. These addresses take no memory, here or on mirrors, and an access to them is a
 * SIGSEGV. most is a multiple of 4096 up to 1 TiB; 0 means the segment's size.
 *
 * A segment that does not exist is created with `size` bytes, a multiple of 4096, at an address
 * with `most` free bytes. A segment that exists is mapped with the size that it has, whatever size
 * is given. A smaller `most` than in an earlier call changes nothing. Sets *whole, if whole is not
 * NULL, to the segment's size; 0 on an error.
 *
 * The store does not record what was kept free. Every owner makes this call again before it maps or
 * makes other segments. For a segment that is mapped already, the call keeps the addresses behind
 * it free from then on.
 *
 * Errors: those of perseas_map except ESIZE; EINVAL (also: size or most is not a multiple of 4096,
 * or size is above most; or the segment exists, and its size is not a multiple of 4096), EADDRESS
 * (also: something is behind the segment, which the message names).
 */
int perseas_map_reserve(perseas_t *p, const char *segment, size_t size, size_t most, void **addr,
                        size_t *whole);

/*
 * Makes perseas_close leave a segment's memory mapped, for code that still has pointers into it,
 * such as a runtime with garbage collection. addr is the segment's address. After perseas_close its
 * `size` bytes, rounded up to pages, belong to the caller, who gives them back by munmap. They keep
 * the contents that they had at the close, including changes of open transactions: abort these
 * first. Later stores there reach no mirror. As long as the memory is mapped, another handle cannot
 * map the segment at this address (EADDRESS), except by perseas_map_over. perseas_unmap of the
 * segment cancels this call. Waits for transactions that are being sent; other commits wait
 * meanwhile.
 *
 * Errors: EINVAL, ERANGE (addr is not the address of a mapped segment), EAGAIN (memory of it is
 * missing: PERSEAS_RECOVERY_ON_DEMAND). After an error no memory is left mapped.
 */
int perseas_retain(perseas_t *p, void *addr);

/*
 * Maps a segment over the memory that perseas_retain left for an earlier handle of this process, at
 * its recorded address, so that pointers into it are valid again. The caller must own all
 * of that memory; afterwards it belongs to the handle, like that of any mapped segment. The memory
 * is replaced in one step, so that other threads may read it meanwhile. After an error it still
 * belongs to the caller, with undefined contents.
 *
 * No other mapping is replaced. If another owner has made the segment larger in the meantime, the
 * new part does not fit: give the retained memory back, and use perseas_map.
 *
 * Errors: those of perseas_map for a segment that exists; EINVAL (also: retained is NULL), EADDRESS
 * (also: the segment's recorded address is another one, the segment would cover memory that
 * perseas_retain did not leave, or this handle has mapped another segment there or keeps these
 * addresses free for one to grow).
 */
int perseas_map_over(perseas_t *p, const char *segment, void *retained);

/* An open transaction. */
struct perseas_transaction {
	const perseas_tx_t *tx; /* for comparing with the caller's own; do not use it */
	uint64_t since;  /* seq of the last transaction that was sent before it began: since then,
	                    perseas_stat.seq minus this were committed. A group that is held back
	                    (gather_us) counts as one, committed after `since`. */
	uint64_t bytes;  /* declared bytes, each counted once; 0 with PERSEAS_TRACK */
	uint32_t ranges; /* declared ranges; adjoining ones count as one */
	uint32_t flags;  /* as given to perseas_begin */
	uint32_t locks;  /* locks that it holds (perseas_lock) */
};

/*
 * Lists the open transactions of this handle, the oldest first, as RVM lists uncommitted
 * transactions. Writes up to `max` of them to list, which the caller owns and which may be NULL if
 * max is 0. Sets *count to the number of open transactions, which may be larger than max; an error
 * leaves *count unchanged.
 *
 * The list shows one moment. Other threads go on: a listed transaction may get more ranges, or may
 * end, and a new one may then have its address. So only the thread that uses a transaction can rely
 * on its row. Commits and aborts wait while the list is made, and perseas_set_range takes a lock.
 *
 * Errors: EINVAL.
 */
int perseas_open_transactions(perseas_t *p, struct perseas_transaction *list, size_t max,
                              size_t *count);

struct perseas_token; /* perseas_nowait.h */

/* One piece of perseas_copy_committed. */
struct perseas_piece {
	const void *from; /* in a mapped and published segment */
	size_t len;       /* bytes; with 0 nothing is copied */
	void *to;         /* the caller's memory, outside of segments */
};

/*
 * Copies committed memory. Instead of bytes that an open transaction declared, or that a group
 * holds back (gather_us), it copies what was there before. So a program can write segments to a
 * file while its threads go on. All pieces are copied at one moment between two transactions. Sets
 * *token, if token is not NULL, to the last transaction in the copy: it was sent, and perseas_wait
 * waits until W mirrors hold it.
 *
 * The call first waits for memory that is missing (PERSEAS_RECOVERY_ON_DEMAND). Commits wait while
 * bytes are copied, and perseas_set_range takes a lock. Any thread may call this.
 *
 * Errors: EINVAL, ERANGE (a piece is not wholly inside one mapped segment), EUNPUBLISHED, EFENCED.
 * After an error nothing was copied.
 */
int perseas_copy_committed(perseas_t *p, const struct perseas_piece *pieces, size_t count,
                           struct perseas_token *token);

/*
 * Destroys a published segment with all its parts. This is a transaction of its own: after it the
 * segment and its contents are gone on every mirror and for every later owner. Only a snapshot can
 * bring it back. A new segment of any size may take the name at once, and the mirrors get the
 * memory back.
 *
 * The segment must not be mapped here. Call perseas_unmap first, which deals with open transactions
 * and with pointers that the program still has; so a destroy that is refused changes nothing. Like
 * perseas_publish, the call waits for transactions that are being sent, and commits wait until its
 * own transaction is posted. A mirror that is away meanwhile is copied whole, and a copy that is
 * running begins again.
 *
 * While a heap is not open, its segments NAME.heap.K and NAME.meta.K are ordinary segments:
 * destroying one of them shortens the heap or breaks it, without a warning.
 *
 * Errors: EINVAL (no name), ENOSEGMENT, ECONFLICT (the segment is mapped), EBLOCKED (a commit is in
 * doubt, or W mirrors do not yet hold an earlier destroy), EFENCED, ENOMEM, ESALVAGE, EUNREACHABLE
 * (fewer than W mirrors are connected): the segment is unchanged.
 * EINDOUBT: the segment is gone here, but fewer than W mirrors hold that so far, as with
 * perseas_commit; perseas_flush waits for it. EFENCED may also come at this point: then the next
 * owner decides whether the segment exists. After EINDOUBT the mirrors get the memory back with the
 * next segment that is made or destroyed here, or when the store is opened again.
 * In one case perseas_flush then returns EINDOUBT for good: no mirror got the transaction before
 * its connection broke, and another published segment is not mapped here, so that a returning
 * mirror cannot be given its contents. Close the store and open it again; no acknowledged commit is
 * lost by that.
 */
int perseas_segment_destroy(perseas_t *p, const char *segment);

#ifdef __cplusplus
}
#endif

#endif
