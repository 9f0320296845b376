/*
 * commit.h - the one round trip of a commit: sending a transaction, and waiting for W mirrors.
 */
#ifndef PERSEAS_CLIENT_COMMIT_H
#define PERSEAS_CLIENT_COMMIT_H

#include "handle.h"

/* A complete undo record, and the changed memory that follows it to the mirrors. */
struct ps_outgoing {
	struct ps_record *record; /* followed by PS_RECORD_SLACK bytes of space */
	uint64_t record_length;   /* bytes of the record */
	uint32_t range_count;
	uint32_t record_kind;        /* enum ps_record_kind */
	const struct ps_span *spans; /* the changed memory */
	unsigned span_count;
	uint64_t changed_bytes; /* sum of the lengths of the spans */
	uint64_t entry_length;  /* bytes of the ring entry, if transactions go through the ring */
};

/* Returns the bytes of a ring entry with an undo record of `length` bytes that changes `bytes`
 * bytes of memory in `spans` spans. */
static inline uint64_t ps_entry_length(uint64_t length, uint64_t spans, uint64_t bytes)
{
	return ps_align64(sizeof(struct ps_ring_entry) + (spans + 1) * sizeof(struct ps_write) +
	                  ps_align64(length) + PS_TERMINATOR + ps_align8(bytes));
}

/* Reserves space for the chain of writes that ps_commit_send builds for this record, so that
 * sending cannot fail. Returns 0, or ENOMEM. Caller holds p->lock. */
int ps_commit_reserve_chain(struct perseas *p, const struct ps_outgoing *out);

/* Reserves space for a chain of `writes` writes, even if transactions go through the ring at
 * present, which needs no such space. Returns 0, or ENOMEM. Caller holds p->lock. */
int ps_commit_reserve_writes(struct perseas *p, unsigned writes);

/* Seals the record as the next transaction and posts it to every active mirror. The ring must have
 * room. Returns 0, or ENOMEM and nothing was sent. Caller holds p->lock. */
int ps_commit_send(struct perseas *p, const struct ps_outgoing *out);

/* Waits until W mirrors hold transaction `seq`. If it has to wait and *since is 0, sets *since to
 * when the wait began. Returns 0, EINDOUBT or EFENCED. Caller holds p->lock, which is released
 * meanwhile. */
int ps_commit_await_w_mirrors(struct perseas *p, uint64_t seq, uint64_t *since);

/* Fails with EINDOUBT: says which mirrors hold transaction `seq`, and what to do. Returns the
 * code. */
int ps_fail_in_doubt(const struct perseas *p, uint64_t seq);

/* Fails with EBLOCKED, since the owner holds no claims at present. Returns the code. */
int ps_fail_renewing(const struct perseas *p);

/* Sleeps until a link has something to report, or until_ns. Caller holds p->lock, which is released
 * meanwhile. */
void ps_commit_sleep_on_links(struct perseas *p, uint64_t until_ns);

/* How long a thread waits for a transaction to be held by W mirrors. */
struct ps_wait_limits {
	uint64_t seq;
	uint64_t spin_until; /* a thread that waits alone spins until then */
	uint64_t give_up_at; /* when the thread gives up */
};

/* Returns true if another thread polls or sleeps on the links for all waiting threads. Caller holds
 * p->lock. */
static inline bool ps_wait_line_has_leader(const struct perseas *p)
{
	return p->commit.wait_line.has_leader || p->commit.wait_line.is_spinning;
}

/* Returns true if the calling thread should poll the links itself: no other thread does, or
 * transactions go to fabrics that copy at once, so that results are there at once. Caller holds
 * p->lock. */
static inline bool ps_commit_should_poll(const struct perseas *p)
{
	return !p->commit.uses_ring || !ps_wait_line_has_leader(p);
}

/* Waits until W mirrors may hold transaction rest->seq, or until rest->until. May return early: the
 * caller then checks, and polls the links if ps_commit_should_poll says so. A caller that stops
 * waiting calls ps_wait_line_leave. Caller holds p->lock, which is released meanwhile. */
void ps_commit_wait_once(struct perseas *p, const struct ps_wait_limits *rest, uint64_t now);

#endif
