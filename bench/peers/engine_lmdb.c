/*
 * engine_lmdb.c - LMDB: one B+tree with integer keys, a table's number above a row's.
 *
 * `lmdb` writes through its map and never syncs, as is usual if data must survive only the end of
 * the process. `lmdb-sync` is LMDB with its defaults: a commit is on disk when it returns.
 */
#include "peer.h"

#include <lmdb.h>
#include <stdio.h>

struct lmdb {
	struct engine engine;
	MDB_env *env;
	MDB_txn *txn; /* the open transaction, or NULL */
	MDB_dbi dbi;
};

static int lmdb_fail(struct lmdb *lmdb, const char *what, int code)
{
	return engine_fail(&lmdb->engine, "%s: %s", what, mdb_strerror(code));
}

static void lmdb_close(struct engine *engine)
{
	struct lmdb *lmdb = (struct lmdb *)engine;

	mdb_txn_abort(lmdb->txn);
	if (lmdb->env)
		mdb_env_close(lmdb->env);
}

static int lmdb_begin(struct engine *engine)
{
	struct lmdb *lmdb = (struct lmdb *)engine;
	int code = mdb_txn_begin(lmdb->env, NULL, 0, &lmdb->txn);

	return code ? lmdb_fail(lmdb, "begin", code) : 0;
}

static int lmdb_commit(struct engine *engine)
{
	struct lmdb *lmdb = (struct lmdb *)engine;
	int code = mdb_txn_commit(lmdb->txn);

	lmdb->txn = NULL;
	return code ? lmdb_fail(lmdb, "commit", code) : 0;
}

/*
 * Returns the size of the map, which takes address space and a sparse file. There is room for each
 * row twice, because a transaction writes new pages before it frees old ones; and a row of 4 KiB
 * takes two pages.
 */
static size_t map_size(const struct engine *engine)
{
	size_t size = 4 * peer_bytes(engine, 64) + ((size_t)1 << 30);

	return size & ~(size_t)0xfff;
}

static int open_tree(struct lmdb *lmdb, const char *path, unsigned flags)
{
	int code = mdb_env_create(&lmdb->env);

	if (code)
		return lmdb_fail(lmdb, "mdb_env_create", code);
	code = mdb_env_set_mapsize(lmdb->env, map_size(&lmdb->engine));
	if (!code)
		code = mdb_env_open(lmdb->env, path, flags | MDB_NOSUBDIR, 0600);
	if (code)
		return lmdb_fail(lmdb, path, code);
	if (lmdb_begin(&lmdb->engine))
		return -1;
	code = mdb_dbi_open(lmdb->txn, NULL, MDB_INTEGERKEY, &lmdb->dbi);
	return code ? lmdb_fail(lmdb, path, code) : lmdb_commit(&lmdb->engine);
}

static int lmdb_open(struct engine *engine, const struct engine_options *options, size_t size,
                     void **memory)
{
	struct lmdb *lmdb = (struct lmdb *)engine;
	bool sync = peer_sync(engine);
	char path[PEER_PATH];

	(void)size;
	(void)memory;
	snprintf(engine->setup, ENGINE_SETUP, "LMDB %d.%d.%d, %s; one tree, MDB_INTEGERKEY",
	         MDB_VERSION_MAJOR, MDB_VERSION_MINOR, MDB_VERSION_PATCH,
	         sync ? "a sync at every commit" : "MDB_WRITEMAP | MDB_NOSYNC");
	if (peer_path(engine, options, "lmdb", path) ||
	    open_tree(lmdb, path, sync ? 0 : MDB_WRITEMAP | MDB_NOSYNC))
		return -1;
	return 0;
}

static int lmdb_get(struct engine *engine, unsigned table, uint64_t id, void *row)
{
	struct lmdb *lmdb = (struct lmdb *)engine;
	size_t number = peer_key(table, id);
	MDB_val key = { sizeof(number), &number }, value = { 0 };
	int code = mdb_get(lmdb->txn, lmdb->dbi, &key, &value);

	if (code && code != MDB_NOTFOUND)
		return lmdb_fail(lmdb, "get", code);
	return peer_row(engine, table, value.mv_data, value.mv_size, row);
}

static int lmdb_put(struct engine *engine, unsigned table, uint64_t id, const void *row)
{
	struct lmdb *lmdb = (struct lmdb *)engine;
	size_t number = peer_key(table, id);
	MDB_val key = { sizeof(number), &number };
	MDB_val value = { engine->tables[table].size, (void *)row };
	int code = MDB_KEYEXIST;

	/* Appends rows that are loaded in order, which fills pages to their end. */
	if (__builtin_expect(engine->loading, 0))
		code = mdb_put(lmdb->txn, lmdb->dbi, &key, &value, MDB_APPEND);
	if (code == MDB_KEYEXIST)
		code = mdb_put(lmdb->txn, lmdb->dbi, &key, &value, 0);
	return code ? lmdb_fail(lmdb, "put", code) : 0;
}

#define LMDB_OPS                                                             \
	.size = sizeof(struct lmdb), .open = lmdb_open, .begin = lmdb_begin, \
	.commit = lmdb_commit, .get = lmdb_get, .put = lmdb_put, .close = lmdb_close

const struct engine_ops engine_lmdb = { .name = "lmdb", .survives = "process", LMDB_OPS };
const struct engine_ops engine_lmdb_sync = { .name = "lmdb-sync", .survives = "power", LMDB_OPS };
