/*
 * engine_sqlite.c - SQLite: a table of rows for each table, a write-ahead log, statements that
 * are prepared once, the file locked for as long as it is open.
 *
 * `sqlite` leaves it to the system when the log reaches the disk, `sqlite-sync` waits for that
 * at every commit.
 */
#include "peer.h"
#include "peers.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CACHE_LEAST = 64 << 20,
	/* A commit writes whole pages: small ones for small rows. */
	PAGE_ROWS = 4,
	PAGE_LEAST = 512,
	PAGE_MOST = 65536,
};

struct sqlite {
	struct peer peer;
	sqlite3 *db;
	sqlite3_stmt *begin, *commit;
	sqlite3_stmt *get[PEER_TABLES], *put[PEER_TABLES];
};

static int fail(struct sqlite *sqlite, const char *what)
{
	return peer_fail(&sqlite->peer, "%s: %s", what,
	                 sqlite->db ? sqlite3_errmsg(sqlite->db) : "out of memory");
}

static int step(struct sqlite *sqlite, sqlite3_stmt *statement, const char *what)
{
	int code = sqlite3_step(statement);

	if (code != SQLITE_DONE)
		fail(sqlite, what);
	sqlite3_reset(statement);
	return code == SQLITE_DONE ? 0 : -1;
}

static int start(struct engine *engine)
{
	struct sqlite *sqlite = (struct sqlite *)engine;

	return step(sqlite, sqlite->begin, "begin");
}

static int sqlite_commit(struct engine *engine)
{
	struct sqlite *sqlite = (struct sqlite *)engine;

	return step(sqlite, sqlite->commit, "commit");
}

static int run(struct sqlite *sqlite, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int run(struct sqlite *sqlite, const char *format, ...)
{
	char sql[256];
	va_list args;

	va_start(args, format);
	vsnprintf(sql, sizeof(sql), format, args);
	va_end(args);
	if (sqlite3_exec(sqlite->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return fail(sqlite, sql);
	return 0;
}

/* Also gives up what is not committed. */
static void sqlite_close(struct engine *engine)
{
	struct sqlite *sqlite = (struct sqlite *)engine;

	if (!sqlite)
		return;
	if (sqlite->peer.loading)
		peer_end_load(&sqlite->peer);
	for (unsigned i = 0; i < PEER_TABLES; i++) {
		sqlite3_finalize(sqlite->get[i]);
		sqlite3_finalize(sqlite->put[i]);
	}
	sqlite3_finalize(sqlite->begin);
	sqlite3_finalize(sqlite->commit);
	sqlite3_close(sqlite->db);
	free(sqlite);
}

static int prepare(struct sqlite *sqlite, sqlite3_stmt **statement, const char *format,
                   unsigned table)
{
	char sql[256];

	snprintf(sql, sizeof(sql), format, table);
	if (sqlite3_prepare_v3(sqlite->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL))
		return fail(sqlite, sql);
	return 0;
}

static int prepare_all(struct sqlite *sqlite)
{
	if (prepare(sqlite, &sqlite->begin, "BEGIN IMMEDIATE", 0) ||
	    prepare(sqlite, &sqlite->commit, "COMMIT", 0))
		return -1;
	for (unsigned i = 0; i < sqlite->peer.table_count; i++)
		if (run(sqlite, "CREATE TABLE IF NOT EXISTS rows%u(id INTEGER PRIMARY KEY, row)",
		        i) ||
		    prepare(sqlite, &sqlite->get[i], "SELECT row FROM rows%u WHERE id = ?1", i) ||
		    prepare(sqlite, &sqlite->put[i], "REPLACE INTO rows%u VALUES(?1, ?2)", i))
			return -1;
	return 0;
}

/* SQLite goes on without a write-ahead log where there can be none: its answer tells. */
static int use_log(struct sqlite *sqlite)
{
	const char *mode = NULL;
	sqlite3_stmt *use;
	bool wal;

	if (prepare(sqlite, &use, "PRAGMA journal_mode = WAL", 0))
		return -1;
	if (sqlite3_step(use) == SQLITE_ROW)
		mode = (const char *)sqlite3_column_text(use, 0);
	wal = mode && !strcmp(mode, "wal");
	if (!wal)
		peer_fail(&sqlite->peer,
		          "no write-ahead log (%s); give a folder on a file system "
		          "of this host",
		          mode ? mode : sqlite3_errmsg(sqlite->db));
	sqlite3_finalize(use);
	return wal ? 0 : -1;
}

/* The whole database fits into the cache, as it does in the other engines' memory. */
static int open_database(struct sqlite *sqlite, const char *path, const char *synchronous)
{
	uint64_t cache = 2 * peer_bytes(&sqlite->peer, 32) + CACHE_LEAST;
	uint32_t page = peer_page(&sqlite->peer, PAGE_ROWS, PAGE_LEAST, PAGE_MOST);
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;

	/* Before anything else of the library; later it is refused, and no matter. */
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	if (sqlite3_open_v2(path, &sqlite->db, flags, NULL) != SQLITE_OK)
		return fail(sqlite, path);
	if (run(sqlite, "PRAGMA page_size = %u", page) ||
	    run(sqlite, "PRAGMA locking_mode = EXCLUSIVE") || use_log(sqlite) ||
	    run(sqlite, "PRAGMA synchronous = %s", synchronous) ||
	    run(sqlite, "PRAGMA cache_size = -%llu", (unsigned long long)cache >> 10))
		return -1;
	snprintf(sqlite->peer.setup, PEER_SETUP,
	         "SQLite %s, WAL, synchronous=%s, "
	         "locking_mode=EXCLUSIVE, page_size=%u, cache of %llu MiB, prepared statements",
	         sqlite3_libversion(), synchronous, page, (unsigned long long)cache >> 20);
	return prepare_all(sqlite);
}

static struct engine *open_with(const struct engine_ops *ops, const struct engine_options *options,
                                bool sync, char *why)
{
	struct sqlite *sqlite = peer_new(ops, options, sizeof(*sqlite), why);
	char path[PEER_PATH];
	bool bad;

	if (!sqlite)
		return NULL;
	sqlite->peer.start = start;
	bad = (sync && peer_on_disk(&sqlite->peer, options)) ||
	      peer_path(&sqlite->peer, options, "sqlite", path) ||
	      open_database(sqlite, path, sync ? "FULL" : "OFF");
	return peer_opened(&sqlite->peer, bad, why);
}

static struct engine *sqlite_open(const struct engine_options *options, size_t size, void **memory,
                                  char *why)
{
	(void)size;
	*memory = NULL;
	return open_with(&engine_sqlite, options, false, why);
}

static struct engine *sqlite_sync_open(const struct engine_options *options, size_t size,
                                       void **memory, char *why)
{
	(void)size;
	*memory = NULL;
	return open_with(&engine_sqlite_sync, options, true, why);
}

static int sqlite_begin(struct engine *engine)
{
	struct sqlite *sqlite = (struct sqlite *)engine;

	if (sqlite->peer.loading &&
	    (peer_end_load(&sqlite->peer) || run(sqlite, "PRAGMA wal_checkpoint(TRUNCATE)")))
		return -1;
	return start(engine);
}

static int sqlite_get(struct engine *engine, unsigned table, uint64_t id, void *row)
{
	struct sqlite *sqlite = (struct sqlite *)engine;
	sqlite3_stmt *get = sqlite->get[table];
	uint32_t size = sqlite->peer.tables[table].size;
	int code, bad = 0;

	sqlite3_bind_int64(get, 1, (sqlite3_int64)id);
	code = sqlite3_step(get);
	if (code == SQLITE_DONE)
		memset(row, 0, size);
	else if (code != SQLITE_ROW)
		bad = fail(sqlite, "get");
	else if ((uint32_t)sqlite3_column_bytes(get, 0) != size)
		bad = peer_fail(&sqlite->peer, "get: a row of another size; give an empty folder");
	else
		memcpy(row, sqlite3_column_blob(get, 0), size);
	sqlite3_reset(get);
	return bad;
}

static int sqlite_put(struct engine *engine, unsigned table, uint64_t id, const void *row)
{
	struct sqlite *sqlite = (struct sqlite *)engine;
	sqlite3_stmt *put = sqlite->put[table];
	int code;

	sqlite3_bind_int64(put, 1, (sqlite3_int64)id);
	sqlite3_bind_blob(put, 2, row, (int)sqlite->peer.tables[table].size, SQLITE_STATIC);
	code = step(sqlite, put, "put");
	/* The caller's row must not stay bound when it has returned. */
	sqlite3_bind_null(put, 2);
	return code;
}

#define SQLITE_OPS                                                                            \
	.begin = sqlite_begin, .commit = sqlite_commit, .get = sqlite_get, .put = sqlite_put, \
	.load = peer_load, .close = sqlite_close, PEER_OPS

const struct engine_ops engine_sqlite = {
	.name = "sqlite",
	.open = sqlite_open,
	.survives = "process",
	SQLITE_OPS,
};

const struct engine_ops engine_sqlite_sync = {
	.name = "sqlite-sync",
	.open = sqlite_sync_open,
	.survives = "power",
	SQLITE_OPS,
};
