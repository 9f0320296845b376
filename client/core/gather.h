/*
 * gather.h - group commit of unawaited commits: they are held back for a while and sent as one
 * record (options.gather_us; RVM, section 5.2). The record has each byte's value before the first
 * and after the last of them. It has one seq, the next one, so nothing else can be posted before
 * it.
 *
 * A gathered commit counts as committed: memory has its changes, and it cannot be rolled back. For
 * tokens, for doubt and for flush_within_ms it counts as posted. But no mirror has it: a thread
 * that waits for it, or posts anything else, must post the group first.
 */
#ifndef PERSEAS_CLIENT_GATHER_H
#define PERSEAS_CLIENT_GATHER_H

#include "handle.h"
#include "../../proto/image/undo.h"

enum {
	PS_GATHER_LINE = 64, /* bytes of a line */
	/* The maximum number of lines, which bounds the entries of a group. Repairing a mirror
	 * forward can handle 4096 entries in all the records that it missed. */
	PS_GATHER_LINES = 1024,
	PS_GATHER_PLACES = 2 * PS_GATHER_LINES,
};

struct ps_gather_line {
	uint64_t line_number;  /* offset in the segment, in lines */
	uint64_t changed_bits; /* a bit for each byte that was changed */
	uint32_t segment_id;   /* the segment's id */
	uint32_t index_place;  /* position in hash_index */
};

struct ps_gather {
	uint64_t entry_limit_bytes; /* maximum bytes of the group's ring entry */
	uint64_t max_hold_ns;       /* how long the first commit of a group is held back */
	uint64_t must_post_at;      /* when the group must be posted */
	uint64_t last_added_at;     /* when the last commit was added */
	uint64_t declared_bytes;    /* sum of the bytes that each transaction changed */
	uint64_t changed_bytes;     /* different bytes that the group changes */
	unsigned entry_count_limit; /* upper bound for the number of entries in the record */
	unsigned line_count;        /* number of lines in use */
	struct ps_gather_line lines[PS_GATHER_LINES];
	uint32_t hash_index[PS_GATHER_PLACES]; /* hash index: number of a line plus 1; 0: empty */
	/* Images of the lines, adjacent in memory: a run may continue in the next line. */
	uint8_t before_images[PS_GATHER_LINES][PS_GATHER_LINE],
		after_images[PS_GATHER_LINES][PS_GATHER_LINE];
	struct ps_span
		spans[PS_GATHER_LINES]; /* the changed memory of the record, while it is posted */
	struct ps_record *record;       /* the group's record, of entry_limit_bytes bytes */
};

/* A flag of a commit, in addition to those of perseas_nowait.h: the commit may join a group. */
enum { PS_MAY_GATHER = 1 << 30 };

/* Returns the seq of the last committed transaction, posted or gathered. Caller holds p->lock. */
static inline uint64_t ps_last_committed_seq(const struct perseas *p)
{
	return p->commit.seq + p->commit.has_gathered;
}

/* ps_gather_allocate allocates p->commit.gather, the group of held-back commits, on first use.
 * Returns false if out of memory. Caller holds p->lock. */
bool ps_gather_allocate(struct perseas *p);
void ps_gather_free(struct perseas *p);

/* Posts the group, unless the transaction is going to join it. The group must not be empty. Caller
 * holds p->lock. */
void ps_gather_send_unless_tx_joins(const struct perseas_tx *tx, unsigned flags);

/* Returns true if the transaction is small enough for a group. Otherwise it is posted alone. Caller
 * holds p->lock. */
bool ps_gather_can_hold(const struct perseas_tx *tx);

/* Returns how many bytes of the ring the group takes together with the transaction; or the
 * transaction alone, if it is too large for a group. Call ps_gather_send_unless_tx_joins first.
 * Caller holds p->lock. */
uint64_t ps_gather_entry_length(const struct perseas_tx *tx);

/* Adds the transaction's changes to the group; the caller then ends the transaction. Caller holds
 * p->lock, and has reserved ring space. */
void ps_gather_add_tx(struct perseas_tx *tx);

/* Posts the group, which cannot fail. Caller holds p->lock. */
void ps_gather_send(struct perseas *p);

static inline void ps_gather_send_if_any(struct perseas *p)
{
	if (p->commit.has_gathered)
		ps_gather_send(p);
}

/* Returns when the group must be posted, or PS_NEVER if it is empty. Caller holds p->lock. */
uint64_t ps_gather_due_at(const struct perseas *p);

/* Puts the bytes of `window` back to what they were before the group's transactions changed them.
 * Call it after the changes of open transactions, which are newer, were put back. Caller holds
 * p->lock. */
void ps_gather_restore_window(const struct perseas *p, const struct ps_window *window);

#endif
