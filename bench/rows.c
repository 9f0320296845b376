/*
 * rows.c - opens, fills and reads tables of rows.
 */
#include "rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Bytes of a transaction that fills a memory engine: every engine's log has room for it. */
	LOAD_BYTES = 64 << 10,
	/* Upper bounds for a transaction that fills a row engine. */
	LOAD_ROWS = 64 << 10,
	LOAD_ROWS_BYTES = 16 << 20,
};

uint64_t rows_lay_out(const struct engine_table *tables, unsigned count, uint64_t *offsets)
{
	offsets[0] = 0;
	for (unsigned i = 0; i < count; i++)
		offsets[i + 1] = offsets[i] + tables[i].count * tables[i].size;
	return offsets[count];
}

static int make_scratch(struct rows *rows)
{
	uint32_t largest = 0;

	for (unsigned i = 0; i < rows->table_count; i++)
		if (rows->tables[i].size > largest)
			largest = rows->tables[i].size;
	for (unsigned i = 0; i < ROWS_SCRATCH; i++)
		if (!(rows->scratch[i] = calloc(1, largest)))
			return -1;
	return 0;
}

int rows_open(struct rows *rows, const struct engine_ops *ops, const struct engine_options *options,
              const struct engine_table *tables, unsigned count, char *why)
{
	struct engine_options mine = *options;
	void *memory = NULL;
	uint64_t bytes;

	memset(rows, 0, sizeof(*rows));
	if (count > ROWS_TABLES_MAX) {
		snprintf(why, ENGINE_WHY, "%u tables, %d at most", count, ROWS_TABLES_MAX);
		return -1;
	}
	rows->ops = ops;
	rows->table_count = count;
	memcpy(rows->tables, tables, count * sizeof(*tables));
	bytes = rows_lay_out(tables, count, rows->offsets);
	mine.tables = rows->tables;
	mine.table_count = count;
	if (make_scratch(rows))
		snprintf(why, ENGINE_WHY, "%s", strerror(errno));
	else
		rows->engine = engine_open(ops, &mine, bytes, &memory, why);
	if (!rows->engine) {
		rows_close(rows);
		return -1;
	}
	rows->memory = memory;
	return 0;
}

void rows_close(struct rows *rows)
{
	engine_close(rows->engine);
	for (unsigned i = 0; i < ROWS_SCRATCH; i++)
		free(rows->scratch[i]);
	memset(rows, 0, sizeof(*rows));
}

const char *rows_why(const struct rows *rows)
{
	return engine_why(rows->engine);
}

void *rows_fetch(struct rows *rows, unsigned table, uint64_t id)
{
	void *row = rows_scratch(rows);

	if (!rows->code)
		rows->code = rows->ops->get(rows->engine, table, id, row);
	return row;
}

static int load_memory(struct rows *rows, const uint8_t *image)
{
	uint64_t bytes = rows->offsets[rows->table_count];

	for (uint64_t at = 0; at < bytes; at += LOAD_BYTES) {
		uint64_t len = bytes - at < LOAD_BYTES ? bytes - at : LOAD_BYTES;

		if (rows_begin(rows) ||
		    (rows->code = rows->ops->range(rows->engine, rows->memory + at, len)))
			return rows->code;
		memcpy(rows->memory + at, image + at, len);
		if (rows_commit(rows))
			return rows->code;
	}
	return 0;
}

static void load_table(struct rows *rows, unsigned table, const uint8_t *image)
{
	const struct engine_table *t = &rows->tables[table];
	uint64_t most = LOAD_ROWS_BYTES / t->size < LOAD_ROWS ? LOAD_ROWS_BYTES / t->size + 1
	                                                      : LOAD_ROWS;

	for (uint64_t id = 0; id < t->count && !rows->code; id++, image += t->size) {
		if (id % most == 0)
			rows_begin(rows);
		rows_put(rows, table, id, image);
		if (id % most == most - 1 || id == t->count - 1)
			rows_commit(rows);
	}
}

int rows_load(struct rows *rows, const void *image)
{
	if (rows->memory)
		return load_memory(rows, image);
	rows->engine->loading = true;
	for (unsigned i = 0; i < rows->table_count; i++)
		load_table(rows, i, (const uint8_t *)image + rows->offsets[i]);
	rows->engine->loading = false;
	if (!rows->code && rows->ops->loaded)
		rows->code = rows->ops->loaded(rows->engine);
	return rows->code;
}

const void *rows_image(struct rows *rows, void *room)
{
	const struct engine_table *t = rows->tables;
	uint8_t *at = room;

	if (rows->memory)
		return rows->memory;
	if (!rows->ops->read)
		rows_begin(rows);
	for (unsigned i = 0; i < rows->table_count; at += t[i].count * t[i].size, i++) {
		if (!rows->code && rows->ops->read)
			rows->code = rows->ops->read(rows->engine, i, 0, t[i].count, at);
		for (uint64_t id = 0; id < t[i].count && !rows->code && !rows->ops->read; id++)
			rows->code = rows->ops->get(rows->engine, i, id, at + id * t[i].size);
	}
	if (!rows->ops->read)
		rows_commit(rows);
	return rows->code ? NULL : room;
}
