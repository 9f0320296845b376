/*
 * perseas_segments.h - segments that are mapped elsewhere than where the store has recorded them,
 * segments that grow, segments that are destroyed, the transactions that are open, and memory
 * without what these changed. perseas.h includes it; what that says of return values and sentences
 * holds here, too.
 *
 * The store records an address for every segment when it is made, and perseas_map maps it there and
 * nowhere else: so pointers into segments may be kept in segments. perseas_map_at maps it at
 * another address, as where the recorded one is taken, or where two stores of which one is a copy
 * are to be open in one process. The record stays as it is. Ranges, commits, mirrors and heaps know
 * segments by offsets, and work as usual there; only pointers that are kept in segments are wrong.
 * They stay as they were stored, and it is for the program to do one of these:
 * - It keeps no pointers in segments, but offsets from the beginning of one.
 * - What it keeps are pointers as the record has them. It uses what perseas_here makes of one, and
 *   stores what perseas_recorded makes of one. Where all segments are where the record has them,
 *   both change nothing.
 * - It keeps pointers into one segment only, and adds what perseas_map_at calls *moved to each that
 *   it reads from there, and takes it from each that it stores.
 * A pointer that was stored as it was found here would be wrong for the next owner, who may map the
 * segment at another address, or at the recorded one.
 */
#ifndef PERSEAS_SEGMENTS_H
#define PERSEAS_SEGMENTS_H

#include "perseas.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Maps a segment as perseas_map does, but at address `at`, wherever the store has recorded it. at
 * is a multiple of 4096, and of the size of the system's pages. NULL: where it is recorded, if
 * nothing else is there, and elsewhere if not. No other mapping is ever replaced. In *moved, which
 * may be NULL, is what *addr is above (or, negative, below) the recorded address, in bytes; 0 on an
 * error. *addr is valid as that of perseas_map.
 *
 * A segment that does not exist is made with `at` as its recorded address; with NULL, as by
 * perseas_map. One that is mapped already gives its address again, if that is `at`, or at is NULL.
 * After perseas_unmap it can be mapped at another address. For a segment that is mapped elsewhere
 * than recorded perseas_map returns EADDRESS, and perseas_heap_open does, too, unless its options
 * have PERSEAS_HEAP_MOVED.
 *
 * Errors: those of perseas_map; EINVAL (also: at is no multiple of 4096, or the segment would end
 * beyond the last address), EADDRESS (something is there, which the message names as far as it is
 * known; the kernel gives nobody this address; the segment is mapped at another one; or it is new,
 * and another segment of the store is recorded there).
 */
int perseas_map_at(perseas_t *p, const char *segment, size_t size, void *at, void **addr,
                   ptrdiff_t *moved);

/*
 * Where the byte lies in this process that the store has recorded at this address. NULL if
 * `recorded` is NULL, or is no address in a segment that is mapped; the end of a segment is not in
 * it. It takes no lock. Any thread, while p is open and nobody unmaps the segment.
 */
void *perseas_here(const perseas_t *p, const void *recorded);

/* The reverse: the recorded address of the byte that lies here. NULL if `here` is NULL, or is in no
 * segment that is mapped. */
void *perseas_recorded(const perseas_t *p, const void *here);

/*
 * Makes a segment larger, while transactions go on: it has `size` bytes then, where it is mapped,
 * and the new ones are zeros, on every mirror. It never moves. As with perseas_publish, the growth
 * is a transaction of its own: whoever opens the store finds the segment as it was, or larger by
 * all of it. Other threads may have transactions open in the segment, and ranges may begin in what
 * there was and end in what is new.
 *
 * size is a multiple of 4096, up to 1 TiB; so is the size of a segment that can grow. The segment
 * is published, and mapped here. If it has that size already, nothing is done, and 0 is returned as
 * soon as W mirrors hold that, as where another thread makes it so large at the same time.
 * The addresses behind it must be free here: perseas_map_reserve has them kept, and without it what
 * else is mapped in the meantime may be in the way.
 *
 * A mirror makes memory for what is new as for a new segment, and is sent it; commits wait until
 * every mirror has it. So a large segment grows by several smaller steps if pauses matter. A mirror
 * that was away meanwhile is copied whole.
 *
 * In the store, what a segment grows by is a segment, its part: NAME.grown.1, NAME.grown.2 and so
 * on. perseas_map maps them, perseas_unmap unmaps them and perseas_segment_destroy destroys them
 * with the segment, by its name; perseas_segment, perseas_segment_at and perseas_map tell and take
 * the size of all together, and the recorded address of the first byte. Segments of such names are
 * made by nobody else. Each part is one of the 128 segments of the store, until the whole segment
 * is destroyed: a segment that doubles each time takes few of them. A store that is restored from a
 * snapshot, or recovered onto other mirrors, has one segment for all parts of each.
 *
 * Errors: EINVAL (also: the size is no multiple of 4096, that of the segment or the one that is
 * asked for; it is not mapped; its name has more than 55 bytes, or 54 or 53 where the number of the
 * part has two or three digits), ENOSEGMENT, EUNPUBLISHED, ESIZE (it has more bytes already),
 * EEXIST (a segment has the part's name, and is no part of it), EADDRESS (something else is behind
 * it here, which the message names as far as it is known, or another segment of the store is
 * recorded there), ECONFLICT (it is a heap's, which grows by itself), EMIRRORMEM (a mirror's memory
 * or a quota), ELIMIT (128 segments), EUNREACHABLE (fewer than W mirrors could make it, or took
 * it), EBLOCKED (a commit is in doubt), EFENCED, ENOMEM, ESALVAGE: the segment is as it was.
 * EINDOUBT: it is larger here, but fewer than W mirrors hold that so far, as with perseas_commit:
 * perseas_flush waits for it. EFENCED may come then as well: another owner decides.
 */
int perseas_segment_grow(perseas_t *p, const char *segment, size_t size);

/*
 * Maps a segment as perseas_map does, and keeps addresses for it to grow: those from its first byte
 * up to `most` bytes on. Nothing else is mapped there then, by this process or the library, until
 * the segment is unmapped. Kept addresses take no memory, here or on mirrors; an access to them is
 * a SIGSEGV. most is a multiple of 4096 up to 1 TiB; 0: as many as the segment has.
 *
 * A segment that does not exist is made with `size` bytes, a multiple of 4096, at an address with
 * so much room. One that exists is mapped as it is, whatever size says, and no smaller most takes
 * addresses from it. In *whole, which may be NULL, is how many bytes it has; 0 on an error.
 *
 * The store does not record what was kept: every owner calls this again, before it maps or makes
 * other segments. One that is mapped already stays where it is, and keeps the addresses from then
 * on.
 *
 * Errors: those of perseas_map, but ESIZE; EINVAL (also: size or most is no multiple of 4096, or
 * size is above most; or the segment exists, and its size is no multiple of 4096), EADDRESS (also:
 * something is behind it, which the message names).
 */
int perseas_map_reserve(perseas_t *p, const char *segment, size_t size, size_t most, void **addr,
                        size_t *whole);

/*
 * Has perseas_close leave the memory of a segment where it is, for whoever still has pointers into
 * it, as a runtime that collects garbage. addr is the segment's address, and from perseas_close on
 * its `size` bytes, rounded up to pages, are the caller's to give back by munmap. They have what
 * they had then, also what an open transaction had changed: abort it before. What is stored there
 * afterwards reaches no mirror. While the memory is there the segment cannot be mapped at this
 * address by another handle (EADDRESS), but by perseas_map_over. perseas_unmap of the segment takes
 * it back. Waits for transactions that are under way; other commits wait meanwhile.
 *
 * Errors: EINVAL, ERANGE (addr is not the address of a mapped segment), EAGAIN (memory of it is
 * missing: PERSEAS_RECOVERY_ON_DEMAND). After an error nothing is left.
 */
int perseas_retain(perseas_t *p, void *addr);

/*
 * Maps a segment of the store at its recorded address, over the memory that perseas_retain has left
 * there for an earlier handle of this process: whoever has pointers into it finds the segment there
 * again. All of that memory must be the caller's, and is the handle's afterwards, as that of any
 * segment that is mapped; it is replaced in one step, so that other threads may read it meanwhile.
 * After an error it is the caller's as before, with any contents.
 *
 * Nothing else is replaced: where another owner has made the segment larger meanwhile, there is no
 * room for what is new, and perseas_map maps it once the retained memory is given back.
 *
 * Errors: those of perseas_map for a segment that exists; EINVAL (also: retained is NULL), EADDRESS
 * (also: the segment is recorded at another address, takes memory that perseas_retain did not
 * leave, or this handle has mapped another segment there, or keeps addresses there for one to
 * grow).
 */
int perseas_map_over(perseas_t *p, const char *segment, void *retained);

/* A transaction that is open. */
struct perseas_transaction {
	const perseas_tx_t *tx; /* to compare with those that the caller has, and not to use */
	uint64_t since;         /* seq of the last transaction that was sent when it began:
	                           perseas_stat.seq less this were committed since. What is held
	                           back counts as one, and as committed since (gather_us). */
	uint64_t bytes;         /* that it has declared, each counted once; PERSEAS_TRACK: 0 */
	uint32_t ranges;        /* that these are: those that touch count as one */
	uint32_t flags;         /* of perseas_begin */
	uint32_t locks;         /* that it has (perseas_lock) */
};

/*
 * Lists the transactions that are open with this handle, the oldest first, as RVM lists those that
 * are not committed: up to `max` of them go into list, which is the caller's, and may be NULL where
 * max is 0. In *count is how many are open, which may be more; as it was on an error.
 *
 * All are as they were at one moment. Afterwards other threads go on: a transaction of the list may
 * have more ranges, or have ended, and then another one may have its address. So only the thread
 * that uses a transaction can rely on its row. What commits and aborts in the meantime waits, for
 * about as long as the list is; perseas_set_range takes a lock meanwhile.
 *
 * Errors: EINVAL.
 */
int perseas_open_transactions(perseas_t *p, struct perseas_transaction *list, size_t max,
                              size_t *count);

struct perseas_token; /* perseas_nowait.h */

/* A piece of a copy. */
struct perseas_piece {
	const void *from; /* in a segment that is mapped and published */
	size_t len;       /* bytes; 0: nothing is copied */
	void *to;         /* the caller's memory, outside of segments */
};

/*
 * Copies memory without what is not committed: of every byte that an open transaction declared,
 * what it held before that, and of what is held back (gather_us), what it held before that. So a
 * program can write segments to a file while its threads go on. All pieces are as of one moment,
 * between two transactions. *token, which may be NULL, becomes the last one that the copy has: it
 * is sent, and perseas_wait waits until W mirrors hold it.
 *
 * Memory that is missing (PERSEAS_RECOVERY_ON_DEMAND) is waited for first. Commits wait while bytes
 * are copied, and perseas_set_range takes a lock meanwhile. Any thread.
 *
 * Errors: EINVAL, ERANGE (a piece is not wholly inside one mapped segment), EUNPUBLISHED, EFENCED.
 * After these nothing was copied.
 */
int perseas_copy_committed(perseas_t *p, const struct perseas_piece *pieces, size_t count,
                           struct perseas_token *token);

/*
 * Destroys a segment that is published, as a transaction of its own: it and its contents are there
 * until that transaction, and gone for good from it on, on every mirror and for every later owner.
 * The parts of a segment that has grown go with it.
 * Its name may be given to a new segment at once, of any size, and the memory goes back to the
 * mirrors. Nothing brings it back but a snapshot.
 *
 * The segment must not be mapped here: perseas_unmap it first, which takes care of open
 * transactions, and of pointers that the program still has. So a destroy that is refused changes
 * nothing. A destroy waits for what is under way, as perseas_publish does, and commits wait while
 * it is posted. A mirror that was away meanwhile is copied whole, and a copy that is being made of
 * a mirror begins again.
 *
 * The segments of a heap, NAME.heap.K and NAME.meta.K, are segments as others while the heap is not
 * open: to destroy one of them shortens the heap, or breaks it, and nothing warns of that.
 *
 * Errors: EINVAL (no name), ENOSEGMENT (no such segment), ECONFLICT (it is mapped), EBLOCKED (a
 * commit is in doubt, or W mirrors do not hold yet that another one was destroyed), EFENCED,
 * ENOMEM, ESALVAGE, EUNREACHABLE (fewer than W mirrors are there): the segment is as it was.
 * EINDOUBT: the segment is gone here, but fewer than W mirrors hold that so far, as with
 * perseas_commit: perseas_flush waits for it. EFENCED may come then as well: another owner decides
 * whether the segment is there. After EINDOUBT the memory does not go back when W mirrors hold it,
 * but with the next segment that is made or destroyed here, or when the store is opened again. If
 * not even one mirror had it before its connection broke, and some other segment is published but
 * not mapped here, perseas_flush says EINDOUBT for ever, since nobody has that segment for mirrors
 * that come back to be copied from: close the store and open it again, which loses nothing that
 * was acknowledged.
 */
int perseas_segment_destroy(perseas_t *p, const char *segment);

#ifdef __cplusplus
}
#endif

#endif
