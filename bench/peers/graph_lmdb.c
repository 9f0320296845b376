/*
 * graph_lmdb.c - a graph's objects as records of LMDB. A reference is a record's number, and
 * following it is a search in the B+tree. The file is in memory and is never synced.
 */
#include "../graph.h"

#include <lmdb.h>
#include <stdio.h>

struct records {
	struct graph graph;
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;
	uint64_t next;
};

static int records_fail(struct graph *graph, const char *what, int code)
{
	return graph_fail(graph, what, mdb_strerror(code));
}

static int records_open(struct graph *graph, const struct graph_place *place)
{
	struct records *records = (struct records *)graph;
	char path[4096];
	int code = mdb_env_create(&records->env);

	snprintf(path, sizeof(path), "%s/graph-lmdb", place->dir);
	if (code || (code = mdb_env_set_mapsize(records->env, 8 * place->bytes)) ||
	    (code = mdb_env_open(records->env, path, MDB_NOSUBDIR | MDB_WRITEMAP | MDB_NOSYNC,
	                         0600)) ||
	    (code = mdb_txn_begin(records->env, NULL, 0, &records->txn)) ||
	    (code = mdb_dbi_open(records->txn, NULL, MDB_INTEGERKEY, &records->dbi)))
		return records_fail(graph, "its file", code);
	code = mdb_txn_commit(records->txn);
	records->txn = NULL;
	return code ? records_fail(graph, "its file", code) : 0;
}

static int records_begin(struct graph *graph, bool allocates)
{
	struct records *records = (struct records *)graph;
	int code = mdb_txn_begin(records->env, NULL, 0, &records->txn);

	(void)allocates;
	return code ? records_fail(graph, "begin", code) : 0;
}

static int records_commit(struct graph *graph)
{
	struct records *records = (struct records *)graph;
	int code = mdb_txn_commit(records->txn);

	records->txn = NULL;
	return code ? records_fail(graph, "commit", code) : 0;
}

static uint64_t records_alloc(struct graph *graph, size_t size)
{
	(void)size;
	return ++((struct records *)graph)->next;
}

static int records_get(struct graph *graph, uint64_t ref, void *object, size_t size)
{
	struct records *records = (struct records *)graph;
	MDB_val key = { sizeof(ref), &ref }, value;
	int code = mdb_get(records->txn, records->dbi, &key, &value);

	if (code)
		return records_fail(graph, "get", code);
	memcpy(object, value.mv_data, value.mv_size < size ? value.mv_size : size);
	return 0;
}

static int records_put(struct graph *graph, uint64_t ref, const void *object, size_t size)
{
	struct records *records = (struct records *)graph;
	MDB_val key = { sizeof(ref), &ref }, value = { size, (void *)object };
	int code = mdb_put(records->txn, records->dbi, &key, &value, 0);

	return code ? records_fail(graph, "put", code) : 0;
}

static void records_close(struct graph *graph)
{
	struct records *records = (struct records *)graph;

	if (records->txn)
		mdb_txn_abort(records->txn);
	if (records->env)
		mdb_env_close(records->env);
}

const struct graph_ops graph_lmdb = {
	.name = "lmdb",
	.size = sizeof(struct records),
	.open = records_open,
	.begin = records_begin,
	.commit = records_commit,
	.alloc = records_alloc,
	.get = records_get,
	.put = records_put,
	.close = records_close,
};
