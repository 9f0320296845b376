/*
 * engine_lmdb.c - LMDB: one B+tree with integer keys, a table's number above a row's.
 *
 * `lmdb` writes through its map and never asks for a sync, as is usual where the end of the
 * process is all that must be survived. `lmdb-sync` is LMDB as it comes: a commit has reached
 * the disk.
 */
#include "peer.h"
#include "peers.h"

#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lmdb {
	struct peer peer;
	MDB_env *env;
	MDB_txn *txn; /* the one that is open, or that loads; else NULL */
	MDB_dbi dbi;
};

static int fail(struct lmdb *lmdb, const char *what, int code)
{
	return peer_fail(&lmdb->peer, "%s: %s", what, mdb_strerror(code));
}

/* Also gives up what is not committed. */
static void lmdb_close(struct engine *engine)
{
	struct lmdb *lmdb = (struct lmdb *)engine;

	if (!lmdb)
		return;
	if (lmdb->peer.loading)
		peer_end_load(&lmdb->peer);
	mdb_txn_abort(lmdb->txn);
	if (lmdb->env)
		mdb_env_close(lmdb->env);
	free(lmdb);
}

static int start(struct engine *engine)
{
	struct lmdb *lmdb = (struct lmdb *)engine;
	int code = mdb_txn_begin(lmdb->env, NULL, 0, &lmdb->txn);

	return code ? fail(lmdb, "begin", code) : 0;
}

static int lmdb_commit(struct engine *engine)
{
	struct lmdb *lmdb = (struct lmdb *)engine;
	int code = mdb_txn_commit(lmdb->txn);

	lmdb->txn = NULL;
	return code ? fail(lmdb, "commit", code) : 0;
}

/*
 * The map is address space, and a file with holes: it has room for each row twice, since a
 * transaction writes new pages before it frees old ones, and a row of 4 KiB takes two of them.
 */
static size_t map_size(const struct peer *peer)
{
	size_t size = 4 * peer_bytes(peer, 64) + ((size_t)1 << 30);

	return size & ~(size_t)0xfff;
}

static int open_tree(struct lmdb *lmdb, const char *path, unsigned flags)
{
	int code = mdb_env_create(&lmdb->env);

	if (code)
		return fail(lmdb, "mdb_env_create", code);
	code = mdb_env_set_mapsize(lmdb->env, map_size(&lmdb->peer));
	if (!code)
		code = mdb_env_open(lmdb->env, path, flags | MDB_NOSUBDIR, 0600);
	if (code)
		return fail(lmdb, path, code);
	if (start(&lmdb->peer.engine))
		return -1;
	code = mdb_dbi_open(lmdb->txn, NULL, MDB_INTEGERKEY, &lmdb->dbi);
	return code ? fail(lmdb, path, code) : lmdb_commit(&lmdb->peer.engine);
}

static struct engine *open_with(const struct engine_ops *ops, const struct engine_options *options,
                                unsigned flags, const char *setup, char *why)
{
	struct lmdb *lmdb = peer_new(ops, options, sizeof(*lmdb), why);
	char path[PEER_PATH];
	bool bad;

	if (!lmdb)
		return NULL;
	lmdb->peer.start = start;
	snprintf(lmdb->peer.setup, PEER_SETUP, "LMDB %d.%d.%d, %s; one tree, MDB_INTEGERKEY",
	         MDB_VERSION_MAJOR, MDB_VERSION_MINOR, MDB_VERSION_PATCH, setup);
	bad = (!(flags & MDB_NOSYNC) && peer_on_disk(&lmdb->peer, options)) ||
	      peer_path(&lmdb->peer, options, "lmdb", path) || open_tree(lmdb, path, flags);
	return peer_opened(&lmdb->peer, bad, why);
}

static struct engine *lmdb_open(const struct engine_options *options, size_t size, void **memory,
                                char *why)
{
	(void)size;
	*memory = NULL;
	return open_with(&engine_lmdb, options, MDB_WRITEMAP | MDB_NOSYNC,
	                 "MDB_WRITEMAP | MDB_NOSYNC", why);
}

static struct engine *lmdb_sync_open(const struct engine_options *options, size_t size,
                                     void **memory, char *why)
{
	(void)size;
	*memory = NULL;
	return open_with(&engine_lmdb_sync, options, 0, "a sync at every commit", why);
}

static int lmdb_begin(struct engine *engine)
{
	struct lmdb *lmdb = (struct lmdb *)engine;

	if (lmdb->peer.loading && peer_end_load(&lmdb->peer))
		return -1;
	return start(engine);
}

static int get(struct lmdb *lmdb, MDB_txn *txn, unsigned table, uint64_t id, void *row)
{
	size_t number = peer_key(table, id);
	uint32_t size = lmdb->peer.tables[table].size;
	MDB_val key = { sizeof(number), &number }, value;
	int code = mdb_get(txn, lmdb->dbi, &key, &value);

	if (code == MDB_NOTFOUND) {
		memset(row, 0, size);
		return 0;
	}
	if (code)
		return fail(lmdb, "get", code);
	if (value.mv_size != size)
		return peer_fail(&lmdb->peer, "get: a row of another size; give an empty folder");
	memcpy(row, value.mv_data, size);
	return 0;
}

static int lmdb_get(struct engine *engine, unsigned table, uint64_t id, void *row)
{
	struct lmdb *lmdb = (struct lmdb *)engine;
	MDB_txn *reader;
	int code;

	if (lmdb->txn)
		return get(lmdb, lmdb->txn, table, id, row);
	code = mdb_txn_begin(lmdb->env, NULL, MDB_RDONLY, &reader);
	if (code)
		return fail(lmdb, "get", code);
	code = get(lmdb, reader, table, id, row);
	mdb_txn_abort(reader);
	return code;
}

static int put(struct lmdb *lmdb, unsigned table, uint64_t id, const void *row, unsigned flags)
{
	size_t number = peer_key(table, id);
	MDB_val key = { sizeof(number), &number };
	MDB_val value = { lmdb->peer.tables[table].size, (void *)row };

	return mdb_put(lmdb->txn, lmdb->dbi, &key, &value, flags);
}

static int lmdb_put(struct engine *engine, unsigned table, uint64_t id, const void *row)
{
	struct lmdb *lmdb = (struct lmdb *)engine;
	int code = MDB_KEYEXIST;

	/* Rows that are loaded in order are appended, and fill pages to their end. */
	if (__builtin_expect(lmdb->peer.loading, 0))
		code = put(lmdb, table, id, row, MDB_APPEND);
	if (code == MDB_KEYEXIST)
		code = put(lmdb, table, id, row, 0);
	return code ? fail(lmdb, "put", code) : 0;
}

#define LMDB_OPS                                                                      \
	.begin = lmdb_begin, .commit = lmdb_commit, .get = lmdb_get, .put = lmdb_put, \
	.load = peer_load, .close = lmdb_close, PEER_OPS

const struct engine_ops engine_lmdb = {
	.name = "lmdb",
	.open = lmdb_open,
	.survives = "process",
	LMDB_OPS,
};

const struct engine_ops engine_lmdb_sync = {
	.name = "lmdb-sync",
	.open = lmdb_sync_open,
	.survives = "power",
	LMDB_OPS,
};
