/*
 * rows.h - tables of rows on either kind of engine (engine.h): in its memory, one table after the
 * other as they are in `tables`, or kept by it row by row. A workload on top of this is the same
 * code for all engines; in memory a read is a pointer and costs no call.
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
	ROWS_SCRATCH = 4, /* rows that stay as they are while others are read */
};

struct rows {
	struct engine *engine;
	const struct engine_ops *ops;
	uint8_t *memory; /* NULL: the engine keeps rows */
	int code;        /* of the first failure; nothing is changed after one */
	unsigned table_count;
	struct engine_table tables[ROWS_TABLES_MAX];
	uint64_t offsets[ROWS_TABLES_MAX + 1]; /* of the tables in memory; the last: bytes in all */
	uint8_t *scratch[ROWS_SCRATCH];        /* copies of rows */
	unsigned next;                         /* of the scratch rows */
};

/* Where tables are when they follow each other in memory. Returns the bytes of all. */
uint64_t rows_lay_out(const struct engine_table *tables, unsigned count, uint64_t *offsets);

/* Opens the engine for these tables. 0, or -1 and the reason in `why` of ENGINE_WHY bytes. */
int rows_open(struct rows *rows, const struct engine_ops *ops, const struct engine_options *options,
              const struct engine_table *tables, unsigned count, char *why);

/* Everything zero is allowed. */
void rows_close(struct rows *rows);

/* Why rows->code is not 0. */
const char *rows_why(const struct rows *rows);

/* Gives all tables the contents of `image`, which is laid out as memory is. 0 or the code. */
int rows_load(struct rows *rows, const void *image);

/*
 * All tables as memory holds them: that memory itself, or `room` of as many bytes, filled from
 * what the engine keeps. NULL: rows->code says what failed.
 */
const void *rows_image(struct rows *rows, void *room);

static inline int rows_begin(struct rows *rows)
{
	if (!rows->code)
		rows->code = rows->ops->begin(rows->engine);
	return rows->code;
}

/* Not called after a failure: what is open then is lost with the engine. */
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

/* A scratch row. The fourth one from here takes its place. */
static inline void *rows_scratch(struct rows *rows)
{
	return rows->scratch[rows->next++ % ROWS_SCRATCH];
}

/* A scratch row with the contents of a row that the engine keeps. */
void *rows_fetch(struct rows *rows, unsigned table, uint64_t id);

/* A row to be read. Never NULL: after a failure it is one that holds anything. */
static inline const void *rows_read(struct rows *rows, unsigned table, uint64_t id)
{
	if (rows->memory)
		return rows_at(rows, table, id);
	return rows_fetch(rows, table, id);
}

/*
 * Makes a row that rows_read gave one whose `len` bytes from `offset` on are about to be changed;
 * rows_put must follow. Never NULL: after a failure it is a scratch row, so that the caller need
 * not look before the commit.
 */
static inline void *rows_change(struct rows *rows, const void *row, size_t offset, size_t len)
{
	if (!rows->memory)
		return (void *)row;
	if (!rows->code)
		rows->code = rows->ops->range(rows->engine, (const uint8_t *)row + offset, len);
	return __builtin_expect(rows->code, 0) ? rows_scratch(rows) : (void *)row;
}

/* The two together. */
static inline void *rows_write(struct rows *rows, unsigned table, uint64_t id, size_t offset,
                               size_t len)
{
	return rows_change(rows, rows_read(rows, table, id), offset, len);
}

/* A row that is written whole; rows_put must follow. What it holds until then is anything. */
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

/* Adds to the number that begins at `offset` of a row. The new number. */
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
