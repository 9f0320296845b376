/*
 * inserts_lmdb.c - LMDB for bench/inserts.c: a B+tree that one thread at a time may change. A
 * commit writes the changed pages and the meta page that makes them valid, and syncs the file,
 * which costs nothing for a file in memory.
 */
#include "../inserts.h"

#include <lmdb.h>
#include <stdio.h>

#define MAP ((size_t)8 << 30) /* address space and a sparse file */

static MDB_env *env;
static MDB_dbi dbi;

static int fail(const char *what, int code, char *why)
{
	snprintf(why, INSERTS_WHY, "%s: %s", what, mdb_strerror(code));
	return -1;
}

static int open_lmdb(const struct inserts_place *place, char *why)
{
	char path[4096];
	MDB_txn *txn;
	int code = mdb_env_create(&env);

	snprintf(path, sizeof(path), "%s/lmdb", place->dir);
	if (code || (code = mdb_env_set_mapsize(env, MAP)) ||
	    (code = mdb_env_open(env, path, MDB_NOSUBDIR, 0600)) ||
	    (code = mdb_txn_begin(env, NULL, 0, &txn)))
		return fail("its file", code, why);
	code = mdb_dbi_open(txn, NULL, 0, &dbi);
	if (!code)
		return (code = mdb_txn_commit(txn)) ? fail("its file", code, why) : 0;
	mdb_txn_abort(txn);
	return fail("its file", code, why);
}

static int insert(uint64_t number, const void *bytes, char *why)
{
	MDB_val key = { sizeof(number), &number }, value = { INSERTS_VALUE, (void *)bytes };
	MDB_txn *txn;
	int code = mdb_txn_begin(env, NULL, 0, &txn);

	if (code)
		return fail("begin", code, why);
	code = mdb_put(txn, dbi, &key, &value, MDB_NOOVERWRITE);
	if (!code)
		return (code = mdb_txn_commit(txn)) ? fail("commit", code, why) : 0;
	mdb_txn_abort(txn);
	return fail("insert", code, why);
}

static int bulk(uint64_t first, uint64_t count, char *why)
{
	MDB_txn *txn;
	int code = mdb_txn_begin(env, NULL, 0, &txn);

	if (code)
		return fail("begin", code, why);
	for (uint64_t number = first; number < first + count && !code; number++) {
		uint64_t name = inserts_key(number);
		MDB_val key = { sizeof(name), &name }, value = { INSERTS_VALUE, &number };

		code = mdb_put(txn, dbi, &key, &value, MDB_NOOVERWRITE);
	}
	if (!code)
		return (code = mdb_txn_commit(txn)) ? fail("commit", code, why) : 0;
	mdb_txn_abort(txn);
	return fail("insert", code, why);
}

static int content(struct inserts_content *found, char *why)
{
	MDB_cursor *cursor;
	MDB_val key, value;
	MDB_txn *txn;
	int code = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);

	*found = (struct inserts_content){ 0 };
	if (code)
		return fail("cursor", code, why);
	code = mdb_cursor_open(txn, dbi, &cursor);
	if (!code) {
		while (!(code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)))
			inserts_add(found, key.mv_data, value.mv_data);
		mdb_cursor_close(cursor);
	}
	mdb_txn_abort(txn);
	return code == MDB_NOTFOUND ? 0 : fail("cursor", code, why);
}

static void close_lmdb(void)
{
	if (env)
		mdb_env_close(env);
}

const struct inserts inserts_lmdb = {
	"lmdb",     open_lmdb,
	insert,     bulk,
	NULL,       content,
	close_lmdb, "writes pages to a file in memory: it survives the end of this process",
};
