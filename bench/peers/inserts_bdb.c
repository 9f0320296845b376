/*
 * inserts_bdb.c - Berkeley DB for bench/inserts.c: its hash table, or its B-tree, in an environment
 * of one process with transactions, a log and locks. A commit writes the log and syncs its file
 * (DB_TXN_SYNC), which costs nothing for a file in memory. Concurrent commits of several threads
 * are written together. A transaction that loses a lock conflict is run again.
 */
#include "../inserts.h"

#include <db.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
	CACHE = 256 << 20,
	LOG_BUFFER = 8 << 20,
	LOG_FILE = 64 << 20,
	TRANSACTIONS = 2 * INSERTS_THREADS,
	LOCKS = 16384,    /* four more for each key of a large transaction */
	LOG_INSERT = 512, /* bytes of log for an insert, estimated */
};

struct bdb {
	DB_ENV *env;
	DB *db;
	_Atomic uint64_t logged; /* bytes of log since the last checkpoint, estimated */
};

static struct bdb hash, tree;

static int fail(const char *what, int code, char *why)
{
	snprintf(why, INSERTS_WHY, "%s: %s", what, db_strerror(code));
	return -1;
}

/* Configures locks and transactions for all threads and for the largest transaction. */
static int make_room(DB_ENV *env, uint64_t bulk)
{
	const uint32_t locks = LOCKS + 4 * (uint32_t)bulk;
	int code = env->set_tx_max(env, TRANSACTIONS);

	if (!code)
		code = env->set_lk_max_lockers(env, LOCKS);
	if (!code)
		code = env->set_lk_max_locks(env, locks);
	return code ? code : env->set_lk_max_objects(env, locks);
}

static int open_bdb(struct bdb *bdb, const struct inserts_place *place, const char *name,
                    DBTYPE type, char *why)
{
	const uint32_t flags = DB_CREATE | DB_PRIVATE | DB_THREAD | DB_INIT_TXN | DB_INIT_LOG |
	                       DB_INIT_MPOOL | DB_INIT_LOCK;
	char folder[4096];
	int code;

	snprintf(folder, sizeof(folder), "%s/%s", place->dir, name);
	if (mkdir(folder, 0700))
		return fail("its folder", errno, why);
	code = db_env_create(&bdb->env, 0);
	if (code)
		return fail("db_env_create", code, why);
	if ((code = bdb->env->set_cachesize(bdb->env, 0, CACHE, 1)) ||
	    (code = bdb->env->set_lg_bsize(bdb->env, LOG_BUFFER)) ||
	    (code = bdb->env->set_lg_max(bdb->env, LOG_FILE)) ||
	    (code = make_room(bdb->env, place->bulk)) ||
	    (code = bdb->env->set_lk_detect(bdb->env, DB_LOCK_DEFAULT)) ||
	    (code = bdb->env->log_set_config(bdb->env, DB_LOG_AUTO_REMOVE, 1)) ||
	    (code = bdb->env->open(bdb->env, folder, flags, 0600)))
		return fail("its environment", code, why);
	code = db_create(&bdb->db, bdb->env, 0);
	if (!code)
		code = bdb->db->open(bdb->db, NULL, "table", NULL, type,
		                     DB_CREATE | DB_AUTO_COMMIT | DB_THREAD, 0600);
	return code ? fail("table", code, why) : 0;
}

/* Flushes the cache, so that Berkeley DB can delete older log files. */
static int checkpoint(struct bdb *bdb, char *why)
{
	int code = bdb->env->txn_checkpoint(bdb->env, 0, 0, 0);

	return code ? fail("checkpoint", code, why) : 0;
}

static int try_insert(struct bdb *bdb, DBT *key, DBT *value)
{
	DB_TXN *txn;
	int code = bdb->env->txn_begin(bdb->env, NULL, &txn, 0);

	if (code)
		return code;
	code = bdb->db->put(bdb->db, txn, key, value, DB_NOOVERWRITE);
	if (!code)
		return txn->commit(txn, DB_TXN_SYNC);
	txn->abort(txn);
	return code;
}

static int insert(struct bdb *bdb, uint64_t number, const void *bytes, char *why)
{
	DBT key = { .data = &number, .size = sizeof(number) };
	DBT value = { .data = (void *)bytes, .size = INSERTS_VALUE };
	int code;

	do
		code = try_insert(bdb, &key, &value);
	while (code == DB_LOCK_DEADLOCK);
	if (code)
		return fail("insert", code, why);
	if (atomic_fetch_add(&bdb->logged, LOG_INSERT) % LOG_FILE >= LOG_FILE - LOG_INSERT)
		return checkpoint(bdb, why);
	return 0;
}

static int bulk(struct bdb *bdb, uint64_t first, uint64_t count, char *why)
{
	DB_TXN *txn;
	int code = bdb->env->txn_begin(bdb->env, NULL, &txn, 0);

	if (code)
		return fail("begin", code, why);
	for (uint64_t number = first; number < first + count && !code; number++) {
		uint64_t name = inserts_key(number);
		DBT key = { .data = &name, .size = sizeof(name) };
		DBT value = { .data = &number, .size = INSERTS_VALUE };

		code = bdb->db->put(bdb->db, txn, &key, &value, DB_NOOVERWRITE);
	}
	if (!code)
		return (code = txn->commit(txn, DB_TXN_SYNC)) ? fail("commit", code, why) : 0;
	txn->abort(txn);
	return fail("insert", code, why);
}

static int read_with_cursor(struct bdb *bdb, struct inserts_content *content)
{
	DBT key = { 0 }, value = { 0 };
	DBC *cursor;
	int code = bdb->db->cursor(bdb->db, NULL, &cursor, 0);

	if (code)
		return code;
	while (!(code = cursor->get(cursor, &key, &value, DB_NEXT)))
		inserts_add(content, key.data, value.data);
	cursor->close(cursor);
	return code == DB_NOTFOUND ? 0 : code;
}

static int read_content(struct bdb *bdb, struct inserts_content *content, char *why)
{
	int code;

	*content = (struct inserts_content){ 0 };
	code = read_with_cursor(bdb, content);
	return code ? fail("cursor", code, why) : 0;
}

static void close_bdb(struct bdb *bdb)
{
	if (bdb->db)
		bdb->db->close(bdb->db, 0);
	if (bdb->env)
		bdb->env->close(bdb->env, 0);
}

static int open_hash(const struct inserts_place *place, char *why)
{
	return open_bdb(&hash, place, "bdb", DB_HASH, why);
}

static int insert_hash(uint64_t key, const void *value, char *why)
{
	return insert(&hash, key, value, why);
}

static int bulk_hash(uint64_t first, uint64_t count, char *why)
{
	return bulk(&hash, first, count, why);
}

static int content_hash(struct inserts_content *content, char *why)
{
	return read_content(&hash, content, why);
}

static void close_hash(void)
{
	close_bdb(&hash);
}

static int open_tree(const struct inserts_place *place, char *why)
{
	return open_bdb(&tree, place, "bdb-tree", DB_BTREE, why);
}

static int insert_tree(uint64_t key, const void *value, char *why)
{
	return insert(&tree, key, value, why);
}

static int bulk_tree(uint64_t first, uint64_t count, char *why)
{
	return bulk(&tree, first, count, why);
}

static int content_tree(struct inserts_content *content, char *why)
{
	return read_content(&tree, content, why);
}

static void close_tree(void)
{
	close_bdb(&tree);
}

const struct inserts inserts_bdb = {
	"bdb",       open_hash,
	insert_hash, bulk_hash,
	NULL,        content_hash,
	close_hash,  "writes its log to a file in memory: it survives the end of this process",
};

const struct inserts inserts_bdb_tree = {
	"bdb-tree",  open_tree,
	insert_tree, bulk_tree,
	NULL,        content_tree,
	close_tree,  "writes its log to a file in memory: it survives the end of this process",
};
