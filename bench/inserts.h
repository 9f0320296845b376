/*
 * inserts.h - a table that threads insert into, each key in a transaction of its own: the hash
 * table of doc/examples/, or that of another system (peers/inserts_*.c). The value of a key is the
 * number that the key was made of.
 */
#ifndef PERSEAS_BENCH_INSERTS_H
#define PERSEAS_BENCH_INSERTS_H

#include <stdint.h>
#include <string.h>

enum { INSERTS_WHY = 512, INSERTS_VALUE = 8 }; /* bytes of a reason, and of a value */
enum { INSERTS_THREADS = 256 };                /* at most */

/* Keys are in no order, each once: every step can be undone. */
static inline uint64_t inserts_key(uint64_t number)
{
	number *= 0x9e3779b97f4a7c15u;
	number ^= number >> 32;
	number *= 0xd6e8feb86659fd93u;
	return number ^ number >> 32;
}

/* A pair's part of a table's digest, which is the sum of these. */
static inline uint64_t inserts_pair(uint64_t key, uint64_t value)
{
	return inserts_key(key ^ inserts_key(value + 1));
}

/* What a table holds. */
struct inserts_content {
	uint64_t keys, digest;
};

/* Adds a pair, each of 8 bytes. */
static inline void inserts_add(struct inserts_content *content, const void *key, const void *value)
{
	uint64_t numbers[2];

	memcpy(&numbers[0], key, sizeof(numbers[0]));
	memcpy(&numbers[1], value, sizeof(numbers[1]));
	content->keys++;
	content->digest += inserts_pair(numbers[0], numbers[1]);
}

struct inserts_place {
	const char *mirrors, *store; /* of Perseas */
	const char *dir;             /* of others: an empty folder */
	uint64_t spin_us;            /* of Perseas; 0: the library's */
	uint64_t bulk;               /* keys of the largest transaction; 0: one */
};

/* What returns a number returns 0, or -1 and the reason in `why` of INSERTS_WHY bytes. */
struct inserts {
	const char *name;
	int (*open)(const struct inserts_place *place, char *why);
	/* Of any thread. When it returns, the key is there, in the system's own terms: `does`. */
	int (*insert)(uint64_t key, const void *value, char *why);
	/* The keys of so many numbers from the first on, in one transaction; NULL: it has none. */
	int (*bulk)(uint64_t first, uint64_t count, char *why);
	int (*settle)(char *why); /* what was not waited for; may be NULL */
	/* What the table holds, pair by pair. A way that keeps none leaves the digest as it is. */
	int (*content)(struct inserts_content *content, char *why);
	void (*close)(void);
	const char *does; /* at a commit, in a sentence */
};

extern const struct inserts inserts_hash, inserts_hash_nowait, inserts_bare;

/* NULL where the drivers of peers/ are not linked. */
extern const struct inserts inserts_bdb __attribute__((weak));
extern const struct inserts inserts_bdb_tree __attribute__((weak));
extern const struct inserts inserts_lmdb __attribute__((weak));

#endif
