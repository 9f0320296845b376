/*
 * engine_bdb.c - Berkeley DB: one B-tree, whose keys are a table's number followed by a row's, most
 * significant byte first. It is used by one process with one thread, so it needs no locks.
 *
 * A commit of `bdb` leaves the log to the system; a commit of `bdb-sync` waits until it is on disk.
 */
#include "peer.h"

#include <db.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	LOG_BUFFER = 8 << 20,
	LOG_FILE = 64 << 20,
	LOG_ROW = 128, /* bytes of log for a row, in addition to its contents */
	/* Berkeley DB stores rows outside of the tree if they are large for a page, which costs
	 * more. */
	PAGE_ROWS = 8,
	PAGE_LEAST = 4096,
	PAGE_MOST = 65536,
};

struct bdb {
	struct engine engine;
	DB_ENV *env;
	DB *db;
	DB_TXN *txn;        /* the open transaction, or NULL */
	uint32_t at_commit; /* flags for commit */
	uint64_t logged;    /* bytes of log since the last checkpoint, estimated */
	char message[256];  /* the library's last error message */
};

static int bdb_fail(struct bdb *bdb, const char *what, int code)
{
	return engine_fail(&bdb->engine, "%s: %s%s%s", what, db_strerror(code),
	                   *bdb->message ? ": " : "", bdb->message);
}

static void keep_message(const DB_ENV *env, const char *prefix, const char *message)
{
	struct bdb *bdb = env->app_private;

	(void)prefix;
	snprintf(bdb->message, sizeof(bdb->message), "%s", message);
}

static int bdb_begin(struct engine *engine)
{
	struct bdb *bdb = (struct bdb *)engine;
	int code = bdb->env->txn_begin(bdb->env, NULL, &bdb->txn, 0);

	return code ? bdb_fail(bdb, "begin", code) : 0;
}

/* Flushes the cache, so that Berkeley DB can delete older log files. */
static int bdb_checkpoint(struct engine *engine)
{
	struct bdb *bdb = (struct bdb *)engine;
	int code = bdb->env->txn_checkpoint(bdb->env, 0, 0, 0);

	bdb->logged = 0;
	return code ? bdb_fail(bdb, "checkpoint", code) : 0;
}

static int bdb_commit(struct engine *engine)
{
	struct bdb *bdb = (struct bdb *)engine;
	DB_TXN *txn = bdb->txn;
	int code;

	bdb->txn = NULL;
	code = txn->commit(txn, bdb->at_commit);
	if (code)
		return bdb_fail(bdb, "commit", code);
	return __builtin_expect(bdb->logged > LOG_FILE, 0) ? bdb_checkpoint(engine) : 0;
}

static void bdb_close(struct engine *engine)
{
	struct bdb *bdb = (struct bdb *)engine;

	if (bdb->txn)
		bdb->txn->abort(bdb->txn);
	if (bdb->db)
		bdb->db->close(bdb->db, 0);
	if (bdb->env)
		bdb->env->close(bdb->env, 0);
}

static int open_env(struct bdb *bdb, const char *folder)
{
	const uint32_t flags = DB_CREATE | DB_RECOVER | DB_PRIVATE | DB_INIT_TXN | DB_INIT_LOG |
	                       DB_INIT_MPOOL;
	uint64_t cache = peer_cache(&bdb->engine);
	int code = db_env_create(&bdb->env, 0);

	if (code)
		return bdb_fail(bdb, "db_env_create", code);
	bdb->env->app_private = bdb;
	bdb->env->set_errcall(bdb->env, keep_message);
	if ((code = bdb->env->set_cachesize(bdb->env, (uint32_t)(cache >> 30),
	                                    (uint32_t)(cache & ((1u << 30) - 1)), 1)) ||
	    (code = bdb->env->set_lg_bsize(bdb->env, LOG_BUFFER)) ||
	    (code = bdb->env->set_lg_max(bdb->env, LOG_FILE)) ||
	    (code = bdb->env->log_set_config(bdb->env, DB_LOG_AUTO_REMOVE, 1)) ||
	    (code = bdb->env->open(bdb->env, folder, flags, 0600)))
		return bdb_fail(bdb, folder, code);
	return 0;
}

static int open_tree(struct bdb *bdb)
{
	uint32_t page = peer_page(&bdb->engine, PAGE_ROWS, PAGE_LEAST, PAGE_MOST);
	int code = db_create(&bdb->db, bdb->env, 0);

	if (code)
		return bdb_fail(bdb, "db_create", code);
	snprintf(bdb->engine.setup, ENGINE_SETUP,
	         "Berkeley DB %d.%d.%d, B-tree, page size %u, %s, "
	         "cache of %llu MiB, log buffer of %d MiB, no locks",
	         DB_VERSION_MAJOR, DB_VERSION_MINOR, DB_VERSION_PATCH, page,
	         bdb->at_commit == DB_TXN_SYNC ? "DB_TXN_SYNC" : "DB_TXN_WRITE_NOSYNC",
	         (unsigned long long)peer_cache(&bdb->engine) >> 20, LOG_BUFFER >> 20);
	code = bdb->db->set_pagesize(bdb->db, page);
	if (!code)
		code = bdb->db->open(bdb->db, NULL, "rows", NULL, DB_BTREE,
		                     DB_CREATE | DB_AUTO_COMMIT, 0600);
	return code ? bdb_fail(bdb, "rows", code) : 0;
}

static int bdb_open(struct engine *engine, const struct engine_options *options, size_t size,
                    void **memory)
{
	struct bdb *bdb = (struct bdb *)engine;
	bool sync = peer_sync(engine);
	char folder[PEER_PATH];

	(void)size;
	(void)memory;
	bdb->at_commit = sync ? DB_TXN_SYNC : DB_TXN_WRITE_NOSYNC;
	if (peer_path(engine, options, "", folder) || open_env(bdb, folder) || open_tree(bdb))
		return -1;
	return 0;
}

static int bdb_get(struct engine *engine, unsigned table, uint64_t id, void *row)
{
	struct bdb *bdb = (struct bdb *)engine;
	uint64_t number = htobe64(peer_key(table, id));
	uint32_t size = bdb->engine.tables[table].size;
	DBT key = { .data = &number, .size = sizeof(number) };
	DBT value = { .data = row, .ulen = size, .flags = DB_DBT_USERMEM };
	int code = bdb->db->get(bdb->db, bdb->txn, &key, &value, 0);

	if (code == DB_NOTFOUND) {
		memset(row, 0, size);
		return 0;
	}
	if (code == DB_BUFFER_SMALL || (!code && value.size != size))
		return engine_fail(&bdb->engine,
		                   "get: a row of another size; give an empty folder");
	return code ? bdb_fail(bdb, "get", code) : 0;
}

static int bdb_put(struct engine *engine, unsigned table, uint64_t id, const void *row)
{
	struct bdb *bdb = (struct bdb *)engine;
	uint64_t number = htobe64(peer_key(table, id));
	DBT key = { .data = &number, .size = sizeof(number) };
	DBT value = { .data = (void *)row, .size = bdb->engine.tables[table].size };
	int code = bdb->db->put(bdb->db, bdb->txn, &key, &value, 0);

	bdb->logged += 2 * value.size + LOG_ROW;
	return code ? bdb_fail(bdb, "put", code) : 0;
}

#define BDB_OPS                                                                                 \
	.size = sizeof(struct bdb), .open = bdb_open, .begin = bdb_begin, .commit = bdb_commit, \
	.get = bdb_get, .put = bdb_put, .loaded = bdb_checkpoint, .close = bdb_close

const struct engine_ops engine_bdb = { .name = "bdb", .survives = "process", BDB_OPS };
const struct engine_ops engine_bdb_sync = { .name = "bdb-sync", .survives = "power", BDB_OPS };
