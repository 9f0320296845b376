/*
 * commit.h - the one round trip: what a transaction sends, and waiting for W mirrors.
 */
#ifndef PERSEAS_CLIENT_COMMIT_H
#define PERSEAS_CLIENT_COMMIT_H

#include "handle.h"

/* A record whose entries are in place, and the memory that follows it to the mirrors. */
struct ps_outgoing {
	struct ps_record *record; /* with PS_RECORD_SLACK bytes of memory behind it */
	uint64_t length;          /* of the record */
	uint32_t ranges;
	uint32_t kind;
	const struct ps_span *spans;
	unsigned span_count;
	uint64_t bytes;        /* of the spans together */
	uint64_t entry_length; /* of its entry in the ring, where transactions go through it */
};

/* Bytes of the ring entry of a record of `length` bytes that changes `bytes` bytes of memory, in so
 * many spans. */
static inline uint64_t ps_entry_length(uint64_t length, uint64_t spans, uint64_t bytes)
{
	return ps_align64(sizeof(struct ps_entry) + (spans + 1) * sizeof(struct ps_write) +
	                  ps_align64(length) + PS_TERMINATOR + ps_align8(bytes));
}

/* Room for the chain of what is to be sent: ps_commit_send cannot fail then. 0, ENOMEM. Locked. */
int ps_commit_reserve(struct perseas *p, const struct ps_outgoing *out);

/* The same for a chain of so many writes, whatever is staged when it is sent. */
int ps_commit_grow(struct perseas *p, unsigned writes);

/* Seals the record as the next transaction, and posts it to every mirror that is connected. The
 * ring has room for it. 0, or a code and nothing was sent. Locked. */
int ps_commit_send(struct perseas *p, const struct ps_outgoing *out);

/* Waits until W mirrors hold seq: 0, EINDOUBT, EFENCED. *since, where it is 0, becomes the time
 * from which it had to wait, and stays 0 when it had not. Locked; lets go of the lock. */
int ps_commit_await(struct perseas *p, uint64_t seq, uint64_t *since);

/* EINDOUBT, with what there is to say of a transaction that W do not hold. */
int ps_fail_in_doubt(const struct perseas *p, uint64_t seq);

/* EBLOCKED, for an owner that holds no claims now. */
int ps_fail_renewing(const struct perseas *p);

/* Lets go of the lock and sleeps until a link has something, or until_ns. */
void ps_commit_sleep(struct perseas *p, uint64_t until_ns);

/* What one waits for until W mirrors hold it. */
struct ps_rest {
	uint64_t seq;
	uint64_t spin_until; /* until then it only lets others have the lock, if it waits alone */
	uint64_t until;
};

/* Does somebody look at the links for all who wait? Locked. */
static inline bool ps_is_led(const struct perseas *p)
{
	return p->commit.line.leader || p->commit.line.spins;
}

/* Is the caller to look at the links himself? What fabrics take at once is seen at once. Locked. */
static inline bool ps_commit_looks(const struct perseas *p)
{
	return !p->commit.staged || !ps_is_led(p);
}

/* Lets go of the lock until W may hold it, or until rest->until. It may return early, and then the
 * caller looks at the links (ps_commit_looks). Whoever waits no more says so (ps_line_leave). */
void ps_commit_rest(struct perseas *p, const struct ps_rest *rest, uint64_t now);

#endif
