/*
 * rows.h - tables of rows on both kinds of engines (engine.h): one after the other in a memory
 * engine's memory, in the order of `tables`; or in a row engine, row by row. A workload that uses
 * rows.h is the same code on all engines; reading a row in memory needs no call.
 *
 * A transaction:
 *
 *	if (rows_begin(rows))
 *		return rows->code;
 *	struct balance *b = rows_write(rows, ACCOUNTS, id, offsetof(struct balance, sum), 8);
 *	b->sum += amount;
 *	rows_put(rows, ACCOUNTS, id, b);
 *	return rows_commit(rows);
 */
#ifndef PERSEAS_BENCH_ROWS_H
#define PERSEAS_BENCH_ROWS_H

#include "engine.h"

enum {
	ROWS_TABLES_MAX = 12,
	ROWS_SCRATCH = 4, /* number of scratch rows: how many rows a workload may use at a time */
};

struct rows {
	struct engine *engine;
	const struct engine_ops *ops;
	uint8_t *memory; /* NULL for a row engine */
	int code;        /* of the first failure; after it nothing is changed */
	unsigned table_count;
	struct engine_table tables[ROWS_TABLES_MAX];
	uint64_t offsets[ROWS_TABLES_MAX + 1]; /* of the tables in memory; the last is the total
	                                          size */
	uint8_t *scratch[ROWS_SCRATCH];        /* copies of rows */
	unsigned next;                         /* number of scratch rows handed out */
};

/* Computes the offsets of tables that follow each other in memory. Returns their total size. */
uint64_t rows_lay_out(const struct engine_table *tables, unsigned count, uint64_t *offsets);

/* Opens the engine with these tables. Returns 0, or -1 with the reason in `why` of ENGINE_WHY
 * bytes. */
int rows_open(struct rows *rows, const struct engine_ops *ops, const struct engine_options *options,
              const struct engine_table *tables, unsigned count, char *why);

/* Closes the engine and frees the scratch rows. `rows` may be all zeros. */
void rows_close(struct rows *rows);

/* Returns the reason of the failure that set rows->code. */
const char *rows_why(const struct rows *rows);

/* Fills all tables from `image`, which has the layout of memory. Returns 0 or the code. */
int rows_load(struct rows *rows, const void *image);

/*
 * Returns an image of all tables: the engine's memory, or for a row engine `room`, filled with its
 * rows. `room` has the size of all tables. Returns NULL on failure, with the code in rows->code.
 */
const void *rows_image(struct rows *rows, void *room);

static inline int rows_begin(struct rows *rows)
{
	if (!rows->code)
		rows->code = rows->ops->begin(rows->engine);
	return rows->code;
}

/* Must not be called to end a transaction that failed: closing the engine drops it. */
static inline int rows_commit(struct rows *rows)
{
	if (!rows->code)
		rows->code = rows->ops->commit(rows->engine);
	return rows->code;
}

static inline void *rows_at(const struct rows *rows, unsigned table, uint64_t id)
{
	return rows->memory + rows->offsets[table] + id * rows->tables[table].size;
}

/* Returns a scratch row. It is reused by the fourth call from this one. */
static inline void *rows_scratch(struct rows *rows)
{
	return rows->scratch[rows->next++ % ROWS_SCRATCH];
}

/* Copies a row from a row engine into a scratch row, which it returns. */
void *rows_fetch(struct rows *rows, unsigned table, uint64_t id);

/* Returns a row for reading. Never returns NULL: after a failure the row's contents are
 * undefined. */
static inline const void *rows_read(struct rows *rows, unsigned table, uint64_t id)
{
	if (rows->memory)
		return rows_at(rows, table, id);
	return rows_fetch(rows, table, id);
}

/*
 * Makes a row that rows_read returned writable: the caller will change `len` bytes from `offset` on
 * and must then call rows_put. Never returns NULL: after a failure it returns a scratch row, so the
 * caller need not check for errors before the commit.
 */
static inline void *rows_change(struct rows *rows, const void *row, size_t offset, size_t len)
{
	if (!rows->memory)
		return (void *)row;
	if (!rows->code)
		rows->code = rows->ops->range(rows->engine, (const uint8_t *)row + offset, len);
	return __builtin_expect(rows->code, 0) ? rows_scratch(rows) : (void *)row;
}

/* Calls rows_read and rows_change. */
static inline void *rows_write(struct rows *rows, unsigned table, uint64_t id, size_t offset,
                               size_t len)
{
	return rows_change(rows, rows_read(rows, table, id), offset, len);
}

/* Returns a row that the caller will overwrite whole; rows_put must follow. Its contents are
 * undefined. */
static inline void *rows_new(struct rows *rows, unsigned table, uint64_t id)
{
	if (!rows->memory)
		return rows_scratch(rows);
	return rows_write(rows, table, id, 0, rows->tables[table].size);
}

static inline void rows_put(struct rows *rows, unsigned table, uint64_t id, const void *row)
{
	if (!rows->memory && !rows->code)
		rows->code = rows->ops->put(rows->engine, table, id, row);
}

/* Adds `amount` to the 8-byte number at `offset` of a row. Returns the new number. */
static inline int64_t rows_add_i64(struct rows *rows, unsigned table, uint64_t id, size_t offset,
                                   int64_t amount)
{
	uint8_t *row = rows_write(rows, table, id, offset, sizeof(amount));
	int64_t *number = (int64_t *)(row + offset);
	int64_t sum = *number += amount;

	rows_put(rows, table, id, row);
	return sum;
}

#endif
