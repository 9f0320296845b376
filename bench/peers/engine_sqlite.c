/*
 * engine_sqlite.c - SQLite: one SQL table for each table, a write-ahead log, statements that are
 * prepared once, and the file locked for as long as it is open.
 *
 * A commit of `sqlite` does not wait for the log to reach the disk; a commit of `sqlite-sync` does.
 */
#include "peer.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum {
	/* A commit writes whole pages, so small rows get small pages. */
	PAGE_ROWS = 4,
	PAGE_LEAST = 512,
	PAGE_MOST = 65536,
	TABLES_MAX = 12, /* upper bound for a workload */
};

struct sqlite {
	struct engine engine;
	sqlite3 *db;
	sqlite3_stmt *begin, *commit;
	sqlite3_stmt *get[TABLES_MAX], *put[TABLES_MAX];
};

static int sqlite_fail(struct sqlite *sqlite, const char *what)
{
	return engine_fail(&sqlite->engine, "%s: %s", what,
	                   sqlite->db ? sqlite3_errmsg(sqlite->db) : "out of memory");
}

static int run_prepared(struct sqlite *sqlite, sqlite3_stmt *statement, const char *what)
{
	int code = sqlite3_step(statement);

	if (code != SQLITE_DONE)
		sqlite_fail(sqlite, what);
	sqlite3_reset(statement);
	return code == SQLITE_DONE ? 0 : -1;
}

static int sqlite_begin(struct engine *engine)
{
	struct sqlite *sqlite = (struct sqlite *)engine;

	return run_prepared(sqlite, sqlite->begin, "begin");
}

static int sqlite_commit(struct engine *engine)
{
	struct sqlite *sqlite = (struct sqlite *)engine;

	return run_prepared(sqlite, sqlite->commit, "commit");
}

static int run_sql(struct sqlite *sqlite, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int run_sql(struct sqlite *sqlite, const char *format, ...)
{
	char sql[256];
	va_list args;

	va_start(args, format);
	vsnprintf(sql, sizeof(sql), format, args);
	va_end(args);
	if (sqlite3_exec(sqlite->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return sqlite_fail(sqlite, sql);
	return 0;
}

static void sqlite_close(struct engine *engine)
{
	struct sqlite *sqlite = (struct sqlite *)engine;

	for (unsigned i = 0; i < TABLES_MAX; i++) {
		sqlite3_finalize(sqlite->get[i]);
		sqlite3_finalize(sqlite->put[i]);
	}
	sqlite3_finalize(sqlite->begin);
	sqlite3_finalize(sqlite->commit);
	sqlite3_close(sqlite->db);
}

static int prepare_statement(struct sqlite *sqlite, sqlite3_stmt **statement, const char *format,
                             unsigned table)
{
	char sql[256];

	snprintf(sql, sizeof(sql), format, table);
	if (sqlite3_prepare_v3(sqlite->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL))
		return sqlite_fail(sqlite, sql);
	return 0;
}

static int prepare_all(struct sqlite *sqlite)
{
	if (prepare_statement(sqlite, &sqlite->begin, "BEGIN IMMEDIATE", 0) ||
	    prepare_statement(sqlite, &sqlite->commit, "COMMIT", 0))
		return -1;
	for (unsigned i = 0; i < sqlite->engine.table_count; i++)
		if (run_sql(sqlite,
		            "CREATE TABLE IF NOT EXISTS rows%u(id INTEGER PRIMARY KEY, row)", i) ||
		    prepare_statement(sqlite, &sqlite->get[i],
		                      "SELECT row FROM rows%u WHERE id = ?1", i) ||
		    prepare_statement(sqlite, &sqlite->put[i], "REPLACE INTO rows%u VALUES(?1, ?2)",
		                      i))
			return -1;
	return 0;
}

/* Turns on the write-ahead log. If a file system does not support it, SQLite goes on without it, so
 * the mode that SQLite answers must be checked. */
static int use_log(struct sqlite *sqlite)
{
	const char *mode = NULL;
	sqlite3_stmt *use;
	bool wal;

	if (prepare_statement(sqlite, &use, "PRAGMA journal_mode = WAL", 0))
		return -1;
	if (sqlite3_step(use) == SQLITE_ROW)
		mode = (const char *)sqlite3_column_text(use, 0);
	wal = mode && !strcmp(mode, "wal");
	if (!wal)
		engine_fail(&sqlite->engine,
		            "no write-ahead log (%s); give a folder on a file system "
		            "of this host",
		            mode ? mode : sqlite3_errmsg(sqlite->db));
	sqlite3_finalize(use);
	return wal ? 0 : -1;
}

static int open_database(struct sqlite *sqlite, const char *path, const char *synchronous)
{
	uint64_t cache = peer_cache(&sqlite->engine);
	uint32_t page = peer_page(&sqlite->engine, PAGE_ROWS, PAGE_LEAST, PAGE_MOST);
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;

	/* Fails, which does no harm, if SQLite was used before. */
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	if (sqlite3_open_v2(path, &sqlite->db, flags, NULL) != SQLITE_OK)
		return sqlite_fail(sqlite, path);
	if (run_sql(sqlite, "PRAGMA page_size = %u", page) ||
	    run_sql(sqlite, "PRAGMA locking_mode = EXCLUSIVE") || use_log(sqlite) ||
	    run_sql(sqlite, "PRAGMA synchronous = %s", synchronous) ||
	    run_sql(sqlite, "PRAGMA cache_size = -%llu", (unsigned long long)cache >> 10))
		return -1;
	snprintf(sqlite->engine.setup, ENGINE_SETUP,
	         "SQLite %s, WAL, synchronous=%s, "
	         "locking_mode=EXCLUSIVE, page_size=%u, cache of %llu MiB, prepared statements",
	         sqlite3_libversion(), synchronous, page, (unsigned long long)cache >> 20);
	return prepare_all(sqlite);
}

static int sqlite_open(struct engine *engine, const struct engine_options *options, size_t size,
                       void **memory)
{
	struct sqlite *sqlite = (struct sqlite *)engine;
	bool sync = peer_sync(engine);
	char path[PEER_PATH];

	(void)size;
	(void)memory;
	if (peer_path(engine, options, "sqlite", path) ||
	    open_database(sqlite, path, sync ? "FULL" : "OFF"))
		return -1;
	return 0;
}

/* Moves the loaded rows from the log to the database file. */
static int sqlite_loaded(struct engine *engine)
{
	return run_sql((struct sqlite *)engine, "PRAGMA wal_checkpoint(TRUNCATE)");
}

static int sqlite_get(struct engine *engine, unsigned table, uint64_t id, void *row)
{
	struct sqlite *sqlite = (struct sqlite *)engine;
	sqlite3_stmt *get = sqlite->get[table];
	int code, bad;

	sqlite3_bind_int64(get, 1, (sqlite3_int64)id);
	code = sqlite3_step(get);
	if (code == SQLITE_DONE)
		bad = peer_row(engine, table, NULL, 0, row);
	else if (code == SQLITE_ROW)
		bad = peer_row(engine, table, sqlite3_column_blob(get, 0),
		               (size_t)sqlite3_column_bytes(get, 0), row);
	else
		bad = sqlite_fail(sqlite, "get");
	sqlite3_reset(get);
	return bad;
}

static int sqlite_put(struct engine *engine, unsigned table, uint64_t id, const void *row)
{
	struct sqlite *sqlite = (struct sqlite *)engine;
	sqlite3_stmt *put = sqlite->put[table];
	int code;

	sqlite3_bind_int64(put, 1, (sqlite3_int64)id);
	sqlite3_bind_blob(put, 2, row, (int)sqlite->engine.tables[table].size, SQLITE_STATIC);
	code = run_prepared(sqlite, put, "put");
	/* Unbinds the caller's row, whose memory may go after the call. */
	sqlite3_bind_null(put, 2);
	return code;
}

#define SQLITE_OPS                                                                              \
	.size = sizeof(struct sqlite), .open = sqlite_open, .begin = sqlite_begin,              \
	.commit = sqlite_commit, .get = sqlite_get, .put = sqlite_put, .loaded = sqlite_loaded, \
	.close = sqlite_close

const struct engine_ops engine_sqlite = { .name = "sqlite", .survives = "process", SQLITE_OPS };
const struct engine_ops engine_sqlite_sync = { .name = "sqlite-sync",
	                                       .survives = "power",
	                                       SQLITE_OPS };
