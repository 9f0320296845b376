/*
 * test_hash.c - the hash table of doc/examples/hash.h.
 */
#include "container_locks.h"

#include "../../doc/examples/hash.c"

static struct hash hash;

static struct hash_bytes bytes(struct text text)
{
	return (struct hash_bytes){ text.at, text.size };
}

static int open_hash(perseas_t *p, perseas_heap_t *heap)
{
	return hash_open(p, heap, "hash", &hash);
}

static int insert(perseas_tx_t *tx, struct text key, struct text value)
{
	return hash_insert(tx, &hash, bytes(key), bytes(value));
}

static int put(perseas_tx_t *tx, struct text key, struct text value)
{
	return hash_put(tx, &hash, bytes(key), bytes(value));
}

static int get(perseas_tx_t *tx, struct text key, struct text *value)
{
	struct hash_bytes found = { NULL, 0 };
	int rc = hash_get(tx, &hash, bytes(key), &found);

	*value = (struct text){ found.at, found.size };
	return rc;
}

static int take_out(perseas_tx_t *tx, struct text key)
{
	return hash_remove(tx, &hash, bytes(key));
}

struct visitor {
	visit_fn *visit;
	void *arg;
};

static int visit_bytes(void *arg, struct hash_bytes key, struct hash_bytes value)
{
	struct visitor *visitor = arg;

	return visitor->visit(visitor->arg, (struct text){ key.at, key.size },
	                      (struct text){ value.at, value.size });
}

static int walk(perseas_tx_t *tx, visit_fn *visit, void *arg)
{
	struct visitor visitor = { visit, arg };

	return hash_walk(tx, &hash, visit_bytes, &visitor);
}

static int count(perseas_tx_t *tx, uint64_t *number)
{
	return hash_count(tx, &hash, number);
}

static const struct container table = { HASH_ENTRY, open_hash, insert, put, get,
	                                take_out,   walk,      count,  NULL };
static const struct container *const container = &table;

static int insert_number(perseas_tx_t *tx, unsigned number)
{
	const struct text text = { &number, sizeof(number) };

	return insert(tx, text, text);
}

/* Arrays of every size come, bucket by bucket, and every key stays where it is found. */
TEST_WITH(test_a_table_grows_by_a_bucket_at_a_time, owner_setup_one, owner_teardown,
          struct owner *o)
{
	enum { KEYS = 20000 };
	struct text found;
	perseas_tx_t *tx;
	uint64_t most = 0, before;

	open_container(o, 0);
	for (unsigned i = 0; i < KEYS; i += 20) {
		before = owner_stat(o).bytes_sent;
		assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
		for (unsigned k = 0; k < 20; k++)
			assert_int_equal(insert_number(tx, i + k), 0);
		assert_int_equal(perseas_commit(tx, 0), 0);
		if (owner_stat(o).bytes_sent - before > most)
			most = owner_stat(o).bytes_sent - before;
	}
	/* 20 entries of 48 bytes and their splits; no array. */
	assert_in_range(most, 1, 20 * 500);
	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	for (unsigned i = 0; i < KEYS; i++) {
		assert_int_equal(get(tx, (struct text){ &i, sizeof(i) }, &found), 0);
		assert_memory_equal(found.at, &i, sizeof(i));
	}
	assert_int_equal(perseas_commit(tx, 0), 0);
	for (unsigned i = 0; i < PARTS; i++)
		assert_in_range(hash.table->parts[i].buckets, KEYS / PARTS / LOAD / 2,
		                KEYS / PARTS);
}
