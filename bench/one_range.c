/*
 * one_range.c - two workloads on 50 MiB. "synthetic": every transaction overwrites one range of 4
 * bytes to 1 MiB at a random place; on row engines the range is a row or a part of one. "ranges":
 * every transaction adds to numbers of 8 bytes at several random places; its size is the number of
 * places.
 */
#include "work.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MEMORY = 50 << 20, ROW_MIN = 64, RANGE_LEAST = 4, RANGE_MAX = 1 << 20 };

static uint32_t row_bytes(uint64_t size)
{
	return size < ROW_MIN ? ROW_MIN : (uint32_t)size;
}

static unsigned synthetic_tables(uint64_t size, struct engine_table *table)
{
	if (size != RANGE_LEAST && (!size || size > RANGE_MAX || size % 8))
		return 0;
	table->size = row_bytes(size);
	table->count = MEMORY / table->size;
	return 1;
}

static int synthetic_step(void *ctx)
{
	struct work_run *run = ctx;
	struct rows *rows = &run->rows;
	struct work_plan *plan = &run->plan;
	uint32_t size = (uint32_t)plan->size, row_size = rows->tables[0].size;
	uint32_t id = work_below(&plan->state, (uint32_t)rows->tables[0].count);
	uint32_t at = 0;
	uint8_t *row;

	if (size < row_size)
		at = (uint32_t)(plan->done % (row_size / size)) * size;
	if (rows_begin(rows))
		return rows->code;
	row = rows_write(rows, 0, id, at, size);
	memset(row + at, (int)(++plan->done & 0xff), size);
	rows_put(rows, 0, id, row);
	return rows_commit(rows);
}

/* Checks that no range was written in part: every range must hold one repeated byte. */
static bool synthetic_check(const struct work_plan *plan, const void *image, char *why,
                            unsigned why_size)
{
	const uint64_t size = plan->size, row_size = row_bytes(size);
	const uint8_t *bytes = image;
	uint64_t end = MEMORY / row_size * row_size;

	for (uint64_t row = 0; row < end; row += row_size) {
		for (uint64_t at = row; at + size <= row + row_size; at += size) {
			if (!memcmp(bytes + at, bytes + at + 1, size - 1))
				continue;
			snprintf(why, why_size, "the range at offset %" PRIu64 " is there in part",
			         at);
			return false;
		}
	}
	return true;
}

const struct work synthetic_work = {
	.name = "synthetic",
	.sizes = "bytes of a transaction: 4, or a multiple of 8, to 1M",
	.size = 64,
	.tables = synthetic_tables,
	.step = synthetic_step,
	.check = synthetic_check,
};

/* --- several ranges ------------------------------------------------------------------ */

enum { SMALL_ROW = 64, SMALL_ROWS = MEMORY / SMALL_ROW, RANGES_MAX = 100000 };

static unsigned ranges_tables(uint64_t size, struct engine_table *table)
{
	if (!size || size > RANGES_MAX)
		return 0;
	*table = (struct engine_table){ SMALL_ROWS, SMALL_ROW };
	return 1;
}

static int ranges_step(void *ctx)
{
	struct work_run *run = ctx;
	struct rows *rows = &run->rows;
	struct work_plan *plan = &run->plan;

	plan->done++;
	if (rows_begin(rows))
		return rows->code;
	for (uint64_t i = 0; i < plan->size; i++) {
		uint32_t id = work_below(&plan->state, SMALL_ROWS);

		rows_add_i64(rows, 0, id, 0, (int64_t)plan->done);
		plan->sums[0] += (int64_t)plan->done;
	}
	return rows_commit(rows);
}

static bool ranges_check(const struct work_plan *plan, const void *image, char *why,
                         unsigned why_size)
{
	static const struct work_column numbers = {
		.name = "numbers",
		.width = sizeof(uint64_t),
		.less = WORK_NO_SUM,
	};

	return work_check_columns(&ranges_work, plan, image, &numbers, 1, why, why_size);
}

const struct work ranges_work = {
	.name = "ranges",
	.sizes = "ranges of 8 bytes in a transaction: 1 to 100000",
	.size = 4,
	.tables = ranges_tables,
	.step = ranges_step,
	.check = ranges_check,
};
