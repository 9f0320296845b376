/*
 * one_range.c - the synthetic workload, and the one of several small ranges.
 */
#include "one_range.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MEMORY = 50 << 20, ROW_MIN = 64, RANGE_MAX = 1 << 20 };

struct plan {
	uint64_t state;
	uint64_t done;
	uint32_t size; /* of a range */
	uint32_t row;  /* bytes */
	uint32_t rows;
};

static uint32_t row_bytes(uint64_t size)
{
	return size < ROW_MIN ? ROW_MIN : (uint32_t)size;
}

static unsigned tables(uint64_t size, struct engine_table *table)
{
	if (size < 8 || size > RANGE_MAX || size % 8)
		return 0;
	table->size = row_bytes(size);
	table->count = MEMORY / table->size;
	return 1;
}

static void plan_init(void *ctx, uint64_t size)
{
	struct plan *plan = ctx;

	*plan = (struct plan){
		.state = WORK_SEED,
		.size = (uint32_t)size,
		.row = row_bytes(size),
		.rows = MEMORY / row_bytes(size),
	};
}

static int step(void *ctx)
{
	struct work_run *run = ctx;
	struct rows *rows = &run->rows;
	struct plan *plan = run->plan;
	uint32_t id = work_below(&plan->state, plan->rows);
	uint32_t at = 0;
	uint8_t *row;

	if (plan->size < plan->row)
		at = (uint32_t)(plan->done % (plan->row / plan->size)) * plan->size;
	if (rows_begin(rows))
		return rows->code;
	row = rows_write(rows, 0, id, at, plan->size);
	memset(row + at, (int)(++plan->done & 0xff), plan->size);
	rows_put(rows, 0, id, row);
	return rows_commit(rows);
}

static uint64_t done(const void *plan)
{
	return ((const struct plan *)plan)->done;
}

/* Ranges are written whole: each holds one byte throughout. */
static bool check(const void *ctx, const void *image, char *why, unsigned why_size)
{
	const struct plan *plan = ctx;
	const uint8_t *bytes = image;
	uint64_t end = (uint64_t)plan->rows * plan->row;

	for (uint64_t row = 0; row < end; row += plan->row) {
		for (uint64_t at = row; at + plan->size <= row + plan->row; at += plan->size) {
			if (!memcmp(bytes + at, bytes + at + 1, plan->size - 1))
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
	.sizes = "bytes of a transaction: a multiple of 8, to 1M",
	.size = 64,
	.plan_size = sizeof(struct plan),
	.tables = tables,
	.plan_init = plan_init,
	.step = step,
	.done = done,
	.check = check,
};

/* --- several ranges ----------------------------------------------------------------- */

enum { SMALL_ROW = 64, SMALL_ROWS = MEMORY / SMALL_ROW, RANGES_MAX = 1024 };

struct many {
	uint64_t state;
	uint64_t done;
	uint64_t sum;   /* of all that was added */
	uint32_t count; /* of ranges */
};

static unsigned many_tables(uint64_t size, struct engine_table *table)
{
	if (!size || size > RANGES_MAX)
		return 0;
	*table = (struct engine_table){ SMALL_ROWS, SMALL_ROW };
	return 1;
}

static void many_init(void *ctx, uint64_t size)
{
	struct many *many = ctx;

	*many = (struct many){ .state = WORK_SEED, .count = (uint32_t)size };
}

static int many_step(void *ctx)
{
	struct work_run *run = ctx;
	struct rows *rows = &run->rows;
	struct many *many = run->plan;

	many->done++;
	if (rows_begin(rows))
		return rows->code;
	for (uint32_t i = 0; i < many->count; i++) {
		uint32_t id = work_below(&many->state, SMALL_ROWS);
		uint64_t *row = rows_write(rows, 0, id, 0, sizeof(*row));

		*row += many->done;
		many->sum += many->done;
		rows_put(rows, 0, id, row);
	}
	return rows_commit(rows);
}

static uint64_t many_done(const void *many)
{
	return ((const struct many *)many)->done;
}

static bool many_check(const void *ctx, const void *image, char *why, unsigned why_size)
{
	const struct many *many = ctx;
	const uint64_t *numbers = image;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < SMALL_ROWS; i++)
		sum += numbers[i * (SMALL_ROW / sizeof(*numbers))];
	if (sum == many->sum)
		return true;
	snprintf(why, why_size, "the numbers add up to %" PRIu64 ", not to %" PRIu64, sum,
	         many->sum);
	return false;
}

const struct work ranges_work = {
	.name = "ranges",
	.sizes = "ranges of 8 bytes in a transaction: 1 to 1024",
	.size = 4,
	.plan_size = sizeof(struct many),
	.tables = many_tables,
	.plan_init = many_init,
	.step = many_step,
	.done = many_done,
	.check = many_check,
};
