/*
 * gather.h - commits that nobody waits for, held back for a while and sent as one record
 * (options.gather_us; RVM, section 5.2): of each byte the value before the first and after the last
 * of them. The record has one seq, which is the next one, so nothing else can be posted before it.
 *
 * What is held counts as committed: it is in memory here, and nobody can take it back. It counts as
 * posted for tokens, for doubt and for flush_within_ms. But no mirror has it: whoever is to wait
 * for it, or posts something else, posts it first.
 */
#ifndef PERSEAS_CLIENT_GATHER_H
#define PERSEAS_CLIENT_GATHER_H

#include "handle.h"
#include "../../proto/image/undo.h"

enum {
	PS_GATHER_LINE = 64, /* bytes */
	/* Whoever mends a mirror forward takes 4096 entries of all that it missed. */
	PS_GATHER_LINES = 1024,
	PS_GATHER_PLACES = 2 * PS_GATHER_LINES,
};

struct ps_line {
	uint64_t number;  /* its offset in the segment, in lines */
	uint64_t covered; /* a bit for each byte that was changed */
	uint32_t segment; /* id */
	uint32_t place;   /* in the index */
};

struct ps_gather {
	uint64_t limit;    /* bytes that its entry may take of the ring */
	uint64_t hold_ns;  /* how long the first one waits */
	uint64_t due;      /* when that is over */
	uint64_t added_at; /* when the last one was added */
	uint64_t declared; /* bytes that its transactions changed, each on its own */
	uint64_t bytes;    /* all of them together */
	unsigned pieces;   /* no more entries than this can come of it */
	unsigned count;    /* of the lines: */
	struct ps_line lines[PS_GATHER_LINES];
	uint32_t index[PS_GATHER_PLACES]; /* a line's number, and 1; 0: none */
	/* What goes on in the next line goes on in memory. */
	uint8_t before[PS_GATHER_LINES][PS_GATHER_LINE], after[PS_GATHER_LINES][PS_GATHER_LINE];
	struct ps_span spans[PS_GATHER_LINES];
	struct ps_record *record; /* of `limit` bytes */
};

/* A bit of commit's flags, beside those of perseas_nowait.h: it may be held back. */
enum { PS_GATHERS = 1 << 30 };

/* The last transaction that was committed here: it was posted, or it is held. Locked. */
static inline uint64_t ps_last(const struct perseas *p)
{
	return p->commit.seq + p->commit.gathering;
}

/* Commits may be held back from now on; false: there is no memory for that. Locked. */
bool ps_gather_start(struct perseas *p);
void ps_gather_free(struct perseas *p);

/* A transaction is about to take its place: what is held is posted, unless the transaction may be
 * held with it. Something is. Locked. */
void ps_gather_before(const struct perseas_tx *tx, unsigned flags);

/* Can it be held at all? One that cannot is posted alone. Locked. */
bool ps_gather_takes(const struct perseas_tx *tx);

/* Bytes of the ring for what is held and the transaction; or, where that cannot be held, for it
 * alone. After ps_gather_before. Locked. */
uint64_t ps_gather_length(const struct perseas_tx *tx);

/* Adds what the transaction changed to the current group, after which the caller ends the
 * transaction. The caller holds p->lock, and has reserved ring space. */
void ps_gather_add(struct perseas_tx *tx);

/* Posts what is held, which cannot fail. Locked. */
void ps_gather_send(struct perseas *p);

static inline void ps_gather_post(struct perseas *p)
{
	if (p->commit.gathering)
		ps_gather_send(p);
}

/* By when what is held is to be posted, or PS_NEVER. Locked. */
uint64_t ps_gather_due(const struct perseas *p);

/* Puts back, in these bytes, what the transactions that are held have changed. Those that are open
 * are put back before, since they came later. Locked. */
void ps_gather_put_back(const struct perseas *p, const struct ps_window *window);

#endif
