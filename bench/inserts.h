/*
 * inserts.h - a table that threads insert into, each key in a transaction of its own: the hash
 * table of doc/examples/, or that of another system (peers/inserts_*.c).
 */
#ifndef PERSEAS_BENCH_INSERTS_H
#define PERSEAS_BENCH_INSERTS_H

#include <stdint.h>

enum { INSERTS_WHY = 512, INSERTS_VALUE = 8 }; /* bytes of a reason, and of a value */

struct inserts_place {
	const char *mirrors, *store; /* of Perseas */
	const char *dir;             /* of others: an empty folder */
	uint64_t spin_us;            /* of Perseas; 0: the library's */
};

/* What returns a number returns 0, or -1 and the reason in `why` of INSERTS_WHY bytes. */
struct inserts {
	const char *name;
	int (*open)(const struct inserts_place *place, char *why);
	/* Of any thread. When it returns, the key is there, in the system's own terms: `does`. */
	int (*insert)(uint64_t key, const void *value, char *why);
	int (*settle)(char *why); /* what was not waited for; may be NULL */
	int (*count)(uint64_t *keys, char *why);
	void (*close)(void);
	const char *does; /* at a commit, in a sentence */
};

extern const struct inserts inserts_hash, inserts_hash_nowait, inserts_bare;

/* NULL where the drivers of peers/ are not linked. */
extern const struct inserts inserts_bdb __attribute__((weak));
extern const struct inserts inserts_bdb_tree __attribute__((weak));
extern const struct inserts inserts_lmdb __attribute__((weak));

#endif
