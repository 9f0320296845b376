/*
 * hash.c - linear hashing in a heap (hash.h): when a table has too many keys for its buckets, one
 * bucket is split in two. The code declares every object before it changes it, or has allocated it
 * in the same transaction.
 */
#include "hash.h"

#include <string.h>

enum {
	PARTS = 64,  /* number of locks; more than there are threads */
	LOAD = 2,    /* keys for each bucket */
	FIRST = 16,  /* buckets of the first array */
	ARRAYS = 24, /* each as large as all previous ones together */
};

/* begin types */
struct entry {
	struct entry *next; /* in the bucket */
	uint64_t hash;
	uint32_t key_size, value_size;
	/* The key follows, then the value, each at a multiple of 8. */
};

struct part {
	uint64_t entries, buckets; /* buckets in use */
	struct entry **arrays[ARRAYS];
};

struct hash_table {
	struct part parts[PARTS];
};
/* end types */

static size_t round_up(size_t size)
{
	return (size + 7) & ~(size_t)7;
}

static char *key_of(struct entry *entry)
{
	return (char *)(entry + 1);
}

static char *value_of(struct entry *entry)
{
	return key_of(entry) + round_up(entry->key_size);
}

/* An attacker who can choose the keys can put them all into one bucket. A program that strangers
 * use needs a hash function with a secret instead. */
static uint64_t hash_of(struct hash_bytes key)
{
	const unsigned char *bytes = (const unsigned char *)key.at;
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < key.size; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3u;
	hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93u;
	return hash ^ hash >> 32;
}

/* --- buckets --- */

/* Returns the largest power of two that is at most the number, which must not be 0. */
static uint64_t power_below(uint64_t number)
{
	return (uint64_t)1 << (63 - __builtin_clzll(number));
}

/* Array k > 0 begins with bucket FIRST << (k - 1). */
static struct entry **bucket_at(const struct part *part, uint64_t bucket)
{
	uint64_t first;
	int k;

	if (bucket < FIRST)
		return &part->arrays[0][bucket];
	first = power_below(bucket);
	k = __builtin_ctzll(first / FIRST) + 1;
	return &part->arrays[k][bucket - first];
}

/* For buckets that were split already, and for the new halves, one more bit of the hash counts. */
static struct entry **bucket_of(const struct part *part, uint64_t hash)
{
	uint64_t half = power_below(part->buckets), bucket = hash & (2 * half - 1);

	return bucket_at(part, bucket < part->buckets ? bucket : bucket - half);
}

/* Returns the pointer that leads to the key's entry, or the NULL pointer that ends its bucket.
 * Returns NULL if the bucket does not exist yet. */
static struct entry **find(const struct part *part, uint64_t hash, struct hash_bytes key)
{
	struct entry **at;

	if (!part->buckets)
		return NULL;
	for (at = bucket_of(part, hash); *at; at = &(*at)->next)
		if ((*at)->hash == hash && (*at)->key_size == key.size &&
		    (!key.size || memcmp(key_of(*at), key.at, key.size) == 0))
			break;
	return at;
}

static int set_link(perseas_tx_t *tx, struct entry **at, struct entry *to)
{
	int rc = perseas_set_range(tx, at, sizeof(*at));

	if (!rc)
		*at = to;
	return rc;
}

/* Moves the entries of a bucket whose hash has the bit to the new bucket. */
static int split(perseas_tx_t *tx, struct entry **from, struct entry **to, uint64_t bit)
{
	struct entry *entry = *from;
	int rc = set_link(tx, to, NULL);

	for (; entry && !rc; entry = entry->next) {
		struct entry ***end = entry->hash & bit ? &to : &from;

		if (**end != entry)
			rc = set_link(tx, *end, entry);
		*end = &entry->next;
	}
	if (!rc && *from)
		rc = set_link(tx, from, NULL);
	if (!rc && *to)
		rc = set_link(tx, to, NULL);
	return rc;
}

/* Adds a bucket. Declares the bucket only, not its whole array. The part's numbers are declared
 * already. */
static int add_bucket(perseas_tx_t *tx, perseas_heap_t *heap, struct part *part)
{
	uint64_t bucket = part->buckets, first = bucket ? power_below(bucket) : 0;
	int k = bucket < FIRST ? 0 : __builtin_ctzll(first / FIRST) + 1, rc = 0;
	void *array;

	if (k == ARRAYS)
		return 0; /* the present buckets must do */
	if (bucket == 0 || (k > 0 && bucket == first)) {
		rc = perseas_reserve(tx, heap, (k ? first : FIRST) * sizeof(struct entry *),
		                     HASH_ARRAY, &array);
		if (!rc)
			rc = perseas_set_range(tx, &part->arrays[k], sizeof(part->arrays[k]));
		if (rc)
			return rc;
		part->arrays[k] = (struct entry **)array;
	}
	if (bucket == 0)
		rc = set_link(tx, bucket_at(part, 0), NULL);
	else
		rc = split(tx, bucket_at(part, bucket - first), bucket_at(part, bucket), first);
	if (!rc)
		part->buckets++;
	return rc;
}

/* --- the interface --- */

static int open_part(perseas_tx_t *tx, const struct hash *hash, uint64_t number, int mode,
                     struct part **part)
{
	*part = &hash->table->parts[number >> 58];
	/* Two objects have different addresses, so no other container uses this number for a
	 * lock. */
	return perseas_lock(tx, (uint64_t)(uintptr_t)*part, mode);
}

/* Allocates an entry, which is in no bucket yet. */
static int make_entry(perseas_tx_t *tx, const struct hash *hash, uint64_t number,
                      struct hash_bytes key, struct hash_bytes value, struct entry **entry)
{
	size_t size = sizeof(**entry) + round_up(key.size) + value.size;
	void *object;
	int rc;

	if (key.size > UINT32_MAX || value.size > UINT32_MAX)
		return PERSEAS_ETOOBIG;
	rc = perseas_alloc(tx, hash->heap, size, HASH_ENTRY, &object);
	if (rc)
		return rc;
	*entry = (struct entry *)object;
	(*entry)->next = NULL;
	(*entry)->hash = number;
	(*entry)->key_size = (uint32_t)key.size;
	(*entry)->value_size = (uint32_t)value.size;
	if (key.size)
		memcpy(key_of(*entry), key.at, key.size);
	if (value.size)
		memcpy(value_of(*entry), value.at, value.size);
	return 0;
}

/* Overwrites a value of the same size. A value of another size needs a new entry. */
static int replace(perseas_tx_t *tx, const struct hash *hash, struct entry **at,
                   struct hash_bytes key, struct hash_bytes value)
{
	struct entry *old = *at, *entry;
	int rc;

	if (old->value_size == value.size) {
		rc = perseas_set_range(tx, value_of(old), value.size);
		if (!rc && value.size)
			memmove(value_of(old), value.at, value.size);
		return rc;
	}
	rc = make_entry(tx, hash, old->hash, key, value, &entry);
	if (!rc)
		rc = perseas_free(tx, hash->heap, old);
	if (rc)
		return rc;
	entry->next = old->next;
	return set_link(tx, at, entry);
}

static int store(perseas_tx_t *tx, const struct hash *hash, struct hash_bytes key,
                 struct hash_bytes value, int replaces)
{
	uint64_t number = hash_of(key);
	struct entry **at, *entry;
	struct part *part;
	int rc = open_part(tx, hash, number, PERSEAS_LOCK_EXCLUSIVE, &part);

	if (rc)
		return rc;
	at = find(part, number, key);
	if (at && *at)
		return replaces ? replace(tx, hash, at, key, value) : 1;
	rc = perseas_set_range(tx, &part->entries, 2 * sizeof(part->entries));
	if (!rc && part->entries >= LOAD * part->buckets)
		rc = add_bucket(tx, hash->heap, part);
	if (!rc)
		rc = make_entry(tx, hash, number, key, value, &entry);
	if (rc)
		return rc;
	at = bucket_of(part, number);
	entry->next = *at;
	part->entries++;
	return set_link(tx, at, entry);
}

int hash_insert(perseas_tx_t *tx, const struct hash *hash, struct hash_bytes key,
                struct hash_bytes value)
{
	return store(tx, hash, key, value, 0);
}

int hash_put(perseas_tx_t *tx, const struct hash *hash, struct hash_bytes key,
             struct hash_bytes value)
{
	return store(tx, hash, key, value, 1);
}

int hash_get(perseas_tx_t *tx, const struct hash *hash, struct hash_bytes key,
             struct hash_bytes *value)
{
	uint64_t number = hash_of(key);
	struct entry **at;
	struct part *part;
	int rc = open_part(tx, hash, number, PERSEAS_LOCK_SHARED, &part);

	if (rc)
		return rc;
	at = find(part, number, key);
	if (!at || !*at)
		return 1;
	value->at = value_of(*at);
	value->size = (*at)->value_size;
	return 0;
}

int hash_remove(perseas_tx_t *tx, const struct hash *hash, struct hash_bytes key)
{
	uint64_t number = hash_of(key);
	struct entry **at, *entry;
	struct part *part;
	int rc = open_part(tx, hash, number, PERSEAS_LOCK_EXCLUSIVE, &part);

	if (rc)
		return rc;
	at = find(part, number, key);
	if (!at || !*at)
		return 1;
	entry = *at;
	rc = perseas_set_range(tx, &part->entries, sizeof(part->entries));
	if (!rc)
		rc = perseas_free(tx, hash->heap, entry);
	if (rc)
		return rc;
	part->entries--;
	return set_link(tx, at, entry->next);
}

static int walk_part(const struct part *part,
                     int (*each)(void *arg, struct hash_bytes key, struct hash_bytes value),
                     void *arg)
{
	int rc = 0;

	for (uint64_t i = 0; i < part->buckets && !rc; i++) {
		struct entry *entry = *bucket_at(part, i);

		for (; entry && !rc; entry = entry->next) {
			struct hash_bytes key = { key_of(entry), entry->key_size };
			struct hash_bytes value = { value_of(entry), entry->value_size };

			rc = each(arg, key, value);
		}
	}
	return rc;
}

int hash_walk(perseas_tx_t *tx, const struct hash *hash,
              int (*each)(void *arg, struct hash_bytes key, struct hash_bytes value), void *arg)
{
	struct part *part;
	int rc = 0;

	for (uint64_t i = 0; i < PARTS && !rc; i++) {
		rc = open_part(tx, hash, i << 58, PERSEAS_LOCK_SHARED, &part);
		if (!rc)
			rc = walk_part(part, each, arg);
	}
	return rc;
}

int hash_count(perseas_tx_t *tx, const struct hash *hash, uint64_t *count)
{
	struct part *part;
	int rc = 0;

	*count = 0;
	for (uint64_t i = 0; i < PARTS && !rc; i++) {
		rc = open_part(tx, hash, i << 58, PERSEAS_LOCK_SHARED, &part);
		if (!rc)
			*count += part->entries;
	}
	return rc;
}

/* Commits, or aborts after an error. Only an error of the commit can have ended the transaction. */
static int end(perseas_tx_t *tx, int rc)
{
	if (!rc) {
		rc = perseas_commit(tx, 0);
		if (rc == PERSEAS_EINDOUBT || rc == PERSEAS_EFENCED)
			return rc;
	}
	if (rc)
		perseas_abort(tx);
	return rc;
}

int hash_open(perseas_t *p, perseas_heap_t *heap, const char *root, struct hash *hash)
{
	void *object;
	perseas_tx_t *tx;
	int rc = perseas_root(heap, root, HASH_TABLE, &object);

	if (!rc && !object) {
		rc = perseas_begin(p, 0, &tx);
		if (rc)
			return rc;
		/* Zeros mean parts without buckets. */
		rc = perseas_zalloc(tx, heap, sizeof(struct hash_table), HASH_TABLE, &object);
		if (!rc)
			rc = perseas_root_set(tx, heap, root, HASH_TABLE, object);
		rc = end(tx, rc);
	}
	hash->heap = heap;
	hash->table = rc ? NULL : (struct hash_table *)object;
	return rc;
}
