/*
 * owner.h - an owner for drills: opens a store, keeps the books of content.h in it, and notes in a
 * page outside of the system what it was promised.
 */
#ifndef PERSEAS_DRILLS_OWNER_H
#define PERSEAS_DRILLS_OWNER_H

#include "content.h"
#include "../../client/perseas.h"

#include <stdatomic.h>

enum owner_phase { OWNER_IDLE, OWNER_RUNS, OWNER_FLUSHES, OWNER_ENDED };

/* The page: mapped shared from a file, so that it outlives the process. Drills read it, and set
 * `stop`; test_*.py know these offsets. */
struct page {
	_Atomic uint64_t acked;     /* transactions that were acknowledged */
	_Atomic uint64_t attempted; /* transactions that were begun */
	_Atomic int64_t error;      /* the last code that was not 0 */
	_Atomic uint64_t phase;     /* enum owner_phase */
	_Atomic uint64_t stop;      /* set from outside: end after this transaction */
	_Atomic uint64_t in_doubt;  /* commits that returned EINDOUBT */
	_Atomic uint64_t slowest;   /* of all commits, ns */
	_Atomic uint64_t found;     /* transactions that were there when it was opened last */
	_Atomic uint64_t missing;   /* bytes, when the last transaction had ended (large.h) */
	/* When the first one since then was acknowledged, 0: none was; ns by the host's monotonic
	 * clock. And the last one. */
	_Atomic uint64_t first_at, last_at;
};

struct owner {
	perseas_t *p;          /* NULL: not open */
	uint8_t *books[BOOKS]; /* mapped */
	uint64_t k;            /* transactions that the books hold here */
	bool unwaited;         /* no commit waits: acknowledged is what W are said to hold */
	struct page *page;
	char store[64];
	char message[1024]; /* of the last error */
};

/* Maps the page of the file, which is made when missing. 0 or -1, with errno set. */
int owner_init(struct owner *owner, const char *file);

/* Opens. 0 or PERSEAS_E…, like all below. */
int owner_open(struct owner *owner, const char *store, const char *mirrors,
               const struct perseas_options *options);
void owner_close(struct owner *owner);

/* Maps the books, makes and publishes them where they are new, and reads their counter. */
int owner_books(struct owner *owner);

/* Runs transactions until `count` are done or the page says stop. One that is in doubt is waited
 * for; where none is waited for, all of them are at the end. */
int owner_run(struct owner *owner, uint64_t count);

/* Does every byte stand as the counter says it must? False: the message says where not. */
bool owner_check(struct owner *owner);

/* Keeps the message of a call that failed. Returns code. */
int owner_fail(struct owner *owner, int code);

#endif
