/*
 * ring.h - the owner's ring of sent transactions. Staged fabrics send from here, never from live
 * memory, so that a slow mirror cannot pick up bytes of a later, uncommitted transaction. A mirror
 * that missed transactions in a short break gets them from here (replay).
 *
 * The ring drops its oldest entries when a new one needs the space. The caller must make sure that
 * no link still sends from them (ps_ring_bytes_from_entry).
 */
#ifndef PERSEAS_CLIENT_RING_H
#define PERSEAS_CLIENT_RING_H

#include "fabric.h"

#include <stdbool.h>
#include <stdint.h>

/* A transaction as it was sent: the writes of its chain, followed by the bytes that they send. */
struct ps_ring_entry {
	uint64_t seq;
	uint64_t length;                /* bytes of the whole entry, a multiple of 64 */
	uint32_t write_count;           /* number of writes; the first is the undo record */
	uint32_t record_kind;           /* enum ps_record_kind */
	uint64_t fabric_bytes_of_entry; /* bytes that the entry sends over a fabric */
	struct ps_slot slot;
	uint64_t zero;            /* padding */
	struct ps_write writes[]; /* the sources follow the last one */
};
static_assert(sizeof(struct ps_ring_entry) % 8 == 0, "entries are aligned");

enum {
	PS_RING_ENTRIES = 1 << 16, /* maximum number of entries */
	PS_BOUNCE = 1 << 20,       /* bytes behind the ring, for copies that are not transactions */
};

struct ps_ring {
	uint8_t *base; /* size + PS_BOUNCE bytes in one mapping */
	uint64_t size;
	uint64_t append_position; /* position of the next entry: counts bytes, never wraps */
	uint64_t first_seq,
		last_seq;    /* seqs of the entries in the ring; last < first: it is empty */
	uint64_t *positions; /* position of each seq, at index seq % PS_RING_ENTRIES */
	/* the first bytes, this many, that ps_ring_make_large_pages has processed */
	uint64_t bytes_made_large_pages;
};

/* Allocates the ring. `size` must be a multiple of 4096. Returns 0, or -1 if out of memory. */
int ps_ring_init(struct ps_ring *ring, uint64_t size);
void ps_ring_free(struct ps_ring *ring);

/* Drops every entry. The next entry will have the seq `next_seq`. */
void ps_ring_drop_all(struct ps_ring *ring, uint64_t next_seq);

/* Drops the entries that an entry of up to `length` bytes will overwrite, so that no mirror is
 * replayed from them any more. */
void ps_ring_drop_overwritten(struct ps_ring *ring, uint64_t length);

/* Returns space for the entry of seq last_seq + 1. `length` is at most half of the ring. */
struct ps_ring_entry *ps_ring_append_entry(struct ps_ring *ring, uint64_t length);

static inline uint8_t *ps_ring_bounce_buffer(const struct ps_ring *ring)
{
	return ring->base + ring->size;
}

/* Returns the entry of `seq`, or NULL if the ring does not have it. */
struct ps_ring_entry *ps_ring_find_entry(const struct ps_ring *ring, uint64_t seq);

/* Returns true if the ring can bring a mirror from transaction `from` to `to`. A publish in between
 * cannot be replayed, since its contents did not go through the ring. */
bool ps_ring_can_replay(const struct ps_ring *ring, uint64_t from, uint64_t to);

/* Returns the bytes from the entry of `seq` to the head, which must stay while `seq` is the oldest
 * transaction that some mirror has not completed. Returns 0 if `seq` is past the last entry,
 * UINT64_MAX if the ring no longer has it. */
uint64_t ps_ring_bytes_from_entry(const struct ps_ring *ring, uint64_t seq);

/* Asks the kernel to turn the small pages before `head` into large ones, a few megabytes per call.
 * At exit the kernel frees small pages one by one, which dominates the time to exit if the process
 * has little other memory. Large pages from the start would make a commit wait while one is
 * cleared. One thread calls it; others may append and send meanwhile. Returns true if there is more
 * to do. */
bool ps_ring_make_large_pages(struct ps_ring *ring, uint64_t head);

#endif
