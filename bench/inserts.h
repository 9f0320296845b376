/*
 * inserts.h - a table that threads insert into, each key in its own transaction: the hash table of
 * doc/examples/, or a table of another system (peers/inserts_*.c). Keys are derived from numbers;
 * the value of a key is the number that it was derived from.
 */
#ifndef PERSEAS_BENCH_INSERTS_H
#define PERSEAS_BENCH_INSERTS_H

#include <stdint.h>
#include <string.h>

enum { INSERTS_WHY = 512, INSERTS_VALUE = 8 }; /* bytes of a reason; bytes of a value */
enum { INSERTS_THREADS = 256 };                /* upper bound */

/* Scrambles a number into a key. Every step is invertible, so no key occurs twice. */
static inline uint64_t inserts_key(uint64_t number)
{
	number *= 0x9e3779b97f4a7c15u;
	number ^= number >> 32;
	number *= 0xd6e8feb86659fd93u;
	return number ^ number >> 32;
}

/* Hashes a pair. The digest of a table is the sum of the hashes of its pairs. */
static inline uint64_t inserts_pair(uint64_t key, uint64_t value)
{
	return inserts_key(key ^ inserts_key(value + 1));
}

/* What a table contains: the number of keys, and a digest of its pairs. */
struct inserts_content {
	uint64_t keys, digest;
};

/* Adds a pair to the content. Key and value are 8 bytes each. */
static inline void inserts_add(struct inserts_content *content, const void *key, const void *value)
{
	uint64_t numbers[2];

	memcpy(&numbers[0], key, sizeof(numbers[0]));
	memcpy(&numbers[1], value, sizeof(numbers[1]));
	content->keys++;
	content->digest += inserts_pair(numbers[0], numbers[1]);
}

struct inserts_place {
	const char *mirrors, *store; /* for Perseas */
	const char *dir;             /* for other systems: an empty folder */
	uint64_t spin_us;            /* for Perseas; 0: the library's default */
	uint64_t bulk;               /* keys of the largest transaction; 0: one */
};

/* Functions that return an int return 0, or -1 with the reason in `why` of INSERTS_WHY bytes. */
struct inserts {
	const char *name;
	int (*open)(const struct inserts_place *place, char *why);
	/* Inserts one key and commits; any thread may call it. `does` says what the commit
	 * guarantees when it returns. */
	int (*insert)(uint64_t key, const void *value, char *why);
	/* Inserts the keys of `count` numbers from `first` on in one transaction. NULL if the table
	 * has no bulk insert. */
	int (*bulk)(uint64_t first, uint64_t count, char *why);
	int (*settle)(char *why); /* waits for the commits that `insert` did not wait for; may be
	                             NULL */
	/* Reads all pairs of the table. A table that stores nothing leaves the digest unchanged. */
	int (*content)(struct inserts_content *content, char *why);
	void (*close)(void);
	const char *does; /* what a commit does, as a sentence */
};

extern const struct inserts inserts_hash, inserts_hash_nowait, inserts_bare;

/* NULL if the drivers in peers/ are not linked in. */
extern const struct inserts inserts_bdb __attribute__((weak));
extern const struct inserts inserts_bdb_tree __attribute__((weak));
extern const struct inserts inserts_lmdb __attribute__((weak));

#endif
