/*
 * owner.h - an owner for drills: opens a store, writes the books of content.h in it, and records in
 * a page outside of the store which transactions were acknowledged to it.
 */
#ifndef PERSEAS_DRILLS_OWNER_H
#define PERSEAS_DRILLS_OWNER_H

#include "content.h"
#include "../../client/perseas.h"

#include <stdatomic.h>

enum owner_phase { OWNER_IDLE, OWNER_RUNS, OWNER_FLUSHES, OWNER_ENDED };

/* The page, mapped shared from a file, so that it outlives the process. Drills read it and set
 * `stop`. test_*.py use these offsets. */
struct page {
	_Atomic uint64_t acked;     /* last acknowledged transaction */
	_Atomic uint64_t attempted; /* last transaction that was begun */
	_Atomic int64_t error;      /* the last nonzero code */
	_Atomic uint64_t phase;     /* enum owner_phase */
	_Atomic uint64_t stop;      /* set by the drill: end after this transaction */
	_Atomic uint64_t in_doubt;  /* commits that returned EINDOUBT */
	_Atomic uint64_t slowest;   /* longest commit, ns */
	_Atomic uint64_t found;     /* transactions in the store when it was opened last */
	_Atomic uint64_t missing;   /* bytes missing after the last transaction (large.h) */
	/* When the first and the last transaction since the open were acknowledged, in ns of the
	 * host's monotonic clock; 0: none yet. */
	_Atomic uint64_t first_at, last_at;
};

struct owner {
	perseas_t *p;          /* NULL: no store is open */
	uint8_t *books[BOOKS]; /* mapped */
	uint64_t k;            /* number of the last transaction in the books */
	bool unwaited;         /* no commit waits; counts as acknowledged what W mirrors have */
	struct page *page;
	char store[64];
	char message[1024]; /* of the last error */
};

/* Maps the page from a file, which it creates if needed. Returns 0, or -1 with errno set. */
int owner_init(struct owner *owner, const char *file);

/* Opens the store. Returns 0 or PERSEAS_E…, like the functions below. */
int owner_open(struct owner *owner, const char *store, const char *mirrors,
               const struct perseas_options *options);
void owner_close(struct owner *owner);

/* Maps the books, creates and publishes them if needed, and reads their counter. */
int owner_books(struct owner *owner);

/* Runs transactions until `count` are done or the page says stop. Flushes after a commit in doubt,
 * or with owner->unwaited once at the end. */
int owner_run(struct owner *owner, uint64_t count);

/* Returns true if every byte is as the counter implies. Otherwise returns false, with the place in
 * owner->message. */
bool owner_check(struct owner *owner);

/* Stores the message of a failed call. Returns `code`. */
int owner_fail(struct owner *owner, int code);

#endif
