/*
 * inserts_hash.c - the hash table of doc/examples/ for bench/inserts.c.
 */
#include "inserts.h"

#include "../doc/examples/hash.h"

#include <stdio.h>

enum {
	MAKE_MS = 30000,
	HEAP = 256 << 20,
	LOG_INSERT = 512, /* upper bound of bytes of log for an insert */
	LOG_USUAL = 16 << 20,
	RING_USUAL = 64 << 20,
};

static struct table {
	perseas_t *p;
	struct hash hash;
} waiting, nowait;

static int fail(const struct table *table, char *why)
{
	snprintf(why, INSERTS_WHY, "%s", perseas_message(table->p));
	return -1;
}

static int open_table(struct table *table, const struct inserts_place *place, const char *name,
                      char *why)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct perseas_heap_options how = PERSEAS_HEAP_OPTIONS_INIT;
	perseas_heap_t *heap;
	char store[64];

	snprintf(store, sizeof(store), "%s-%s", place->store, name);
	options.flags = PERSEAS_CREATE;
	options.connect_timeout_ms = MAKE_MS;
	if (place->bulk) {
		options.log_size = LOG_USUAL + 2 * LOG_INSERT * place->bulk;
		options.ring_size = RING_USUAL + 4 * LOG_INSERT * place->bulk;
	}
	if (place->spin_us)
		options.spin_us = (uint32_t)place->spin_us;
	how.flags = PERSEAS_HEAP_CREATE;
	how.first = HEAP;
	if (perseas_open(store, place->mirrors, &options, &table->p) ||
	    perseas_heap_open(table->p, "table", &how, &heap) ||
	    hash_open(table->p, heap, "table", &table->hash))
		return fail(table, why);
	return 0;
}

static int insert(struct table *table, uint64_t key, const void *value, unsigned flags, char *why)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(table->p, 0, &tx);

	while (!rc &&
	       (rc = hash_insert(tx, &table->hash, (struct hash_bytes){ &key, sizeof(key) },
	                         (struct hash_bytes){ value, INSERTS_VALUE })) == PERSEAS_ECONFLICT)
		rc = perseas_retry(tx);
	if (!rc)
		rc = perseas_commit(tx, flags);
	return rc ? fail(table, why) : 0;
}

/* Inserts the keys of `count` numbers. No other thread runs, so locks cannot conflict. */
static int bulk_waiting(uint64_t first, uint64_t count, char *why)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(waiting.p, 0, &tx);

	for (uint64_t number = first; number < first + count && !rc; number++) {
		const uint64_t key = inserts_key(number);

		rc = hash_insert(tx, &waiting.hash, (struct hash_bytes){ &key, sizeof(key) },
		                 (struct hash_bytes){ &number, INSERTS_VALUE });
	}
	if (!rc)
		rc = perseas_commit(tx, 0);
	return rc ? fail(&waiting, why) : 0;
}

static int add_pair(void *content, struct hash_bytes key, struct hash_bytes value)
{
	inserts_add(content, key.at, value.at);
	return 0;
}

static int read_content(struct table *table, struct inserts_content *content, char *why)
{
	perseas_tx_t *tx;

	*content = (struct inserts_content){ 0 };
	if (perseas_begin(table->p, 0, &tx) || hash_walk(tx, &table->hash, add_pair, content) ||
	    perseas_commit(tx, 0))
		return fail(table, why);
	return 0;
}

static int open_waiting(const struct inserts_place *place, char *why)
{
	return open_table(&waiting, place, "hash", why);
}

static int insert_waiting(uint64_t key, const void *value, char *why)
{
	return insert(&waiting, key, value, 0, why);
}

static int content_waiting(struct inserts_content *content, char *why)
{
	return read_content(&waiting, content, why);
}

static void close_waiting(void)
{
	perseas_close(waiting.p);
}

static int open_nowait(const struct inserts_place *place, char *why)
{
	return open_table(&nowait, place, "nowait", why);
}

static int insert_nowait(uint64_t key, const void *value, char *why)
{
	return insert(&nowait, key, value, PERSEAS_NOWAIT, why);
}

static int settle_nowait(char *why)
{
	return perseas_flush(nowait.p) ? fail(&nowait, why) : 0;
}

static int content_nowait(struct inserts_content *content, char *why)
{
	return read_content(&nowait, content, why);
}

static void close_nowait(void)
{
	perseas_close(nowait.p);
}

const struct inserts inserts_hash = {
	"hash",
	open_waiting,
	insert_waiting,
	bulk_waiting,
	NULL,
	content_waiting,
	close_waiting,
	"waits until the mirror has it: it survives the end of this process, and of this host "
	"where the mirror is on another",
};

const struct inserts inserts_hash_nowait = {
	"hash-nowait", open_nowait,
	insert_nowait, NULL,
	settle_nowait, content_nowait,
	close_nowait,  "sends it to the mirror, which is waited for at the end of a round",
};
