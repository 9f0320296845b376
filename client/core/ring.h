/*
 * ring.h - the owner's ring of sent transactions. What the staged fabrics send is sent from
 * here, never from live memory: a mirror that is slow must not pick up bytes of the next,
 * uncommitted transaction. What a mirror missed in a short break is replayed from here.
 *
 * The ring forgets its oldest entries when a new one needs the room; its user sees to it that
 * no link still sends from them (ps_ring_lag).
 */
#ifndef PERSEAS_CLIENT_RING_H
#define PERSEAS_CLIENT_RING_H

#include "fabric.h"

#include <stdbool.h>
#include <stdint.h>

/* A transaction as it was sent: its chain, whose sources lie in the entry itself. */
struct ps_entry {
	uint64_t seq;
	uint64_t length; /* of the whole entry, a multiple of 64 */
	uint32_t count;  /* writes; the first is the undo record */
	uint32_t kind;   /* enum ps_record_kind */
	uint64_t bytes;  /* that go over the fabric */
	struct ps_slot slot;
	uint64_t zero;
	struct ps_write writes[]; /* then the bytes that they send */
};
static_assert(sizeof(struct ps_entry) % 8 == 0, "entries are aligned");

enum {
	PS_RING_ENTRIES = 1 << 16, /* at most, whatever their size */
	PS_BOUNCE = 1 << 20,       /* bytes behind the ring, for copies that are no transaction */
};

struct ps_ring {
	uint8_t *base; /* size + PS_BOUNCE bytes, one mapping: all that is sent from */
	uint64_t size;
	uint64_t head;        /* where the next entry goes; counts bytes, never wraps */
	uint64_t first, last; /* seqs that are there: first .. last; last < first: none */
	uint64_t *where;      /* position of seq, at seq % PS_RING_ENTRIES */
	uint64_t gathered;    /* bytes from base on, which ps_ring_gather is done with */
};

/* size: a multiple of 4096. 0 or -1. */
int ps_ring_init(struct ps_ring *ring, uint64_t size);
void ps_ring_free(struct ps_ring *ring);

/* Forgets everything; the next entry will be `seq`. */
void ps_ring_reset(struct ps_ring *ring, uint64_t seq);

/* Forgets now what the entry of seq last + 1 will overwrite, if it takes up to `length` bytes: from
 * now on no mirror is replayed to from that. */
void ps_ring_reserve(struct ps_ring *ring, uint64_t length);

/* Room for the entry of seq last + 1; `length` is at most half of the ring. */
struct ps_entry *ps_ring_append(struct ps_ring *ring, uint64_t length);

static inline uint8_t *ps_ring_bounce(const struct ps_ring *ring)
{
	return ring->base + ring->size;
}

/* NULL: it is no longer (or not yet) there. */
struct ps_entry *ps_ring_find(const struct ps_ring *ring, uint64_t seq);

/* Can the ring bring a mirror from transaction `from` to `to`? Publishing cannot be replayed: the
 * contents did not go through the ring. */
bool ps_ring_replays(const struct ps_ring *ring, uint64_t from, uint64_t to);

/* Bytes from the entry of `seq` to the head: what must stay for a mirror whose oldest
 * uncompleted transaction it is. 0 when seq is past the last. */
uint64_t ps_ring_lag(const struct ps_ring *ring, uint64_t seq);

/* Has the kernel gather the small pages that entries before `head` came to lie in, a few megabytes
 * at once, as large ones: they are freed one by one when the process ends, which takes most of that
 * time where it has little other memory. If they were large from the beginning, a commit that comes
 * to the first byte of one would wait until it is cleared. One thread calls it; others may append
 * and send meanwhile. True: there is more. */
bool ps_ring_gather(struct ps_ring *ring, uint64_t head);

#endif
