/*
 * work.h - a workload: tables, their initial contents, and a sequence of transactions that is the
 * same in every run and on every engine. Every byte of the tables after n transactions is therefore
 * known.
 */
#ifndef PERSEAS_BENCH_WORK_H
#define PERSEAS_BENCH_WORK_H

#include "rows.h"

enum {
	WORK_WHY = 1280, /* bytes of a reason; more than ENGINE_WHY */
	WORK_SUMS = 8,
};

/* A position in the sequence of transactions. */
struct work_plan {
	uint64_t state;          /* of the random generator */
	uint64_t done;           /* transactions */
	uint64_t size;           /* of the workload */
	int64_t sums[WORK_SUMS]; /* expected sums of columns; each workload defines its own */
};

struct work {
	const char *name;
	const char *sizes; /* what --size means, and which values are allowed */
	uint64_t size;     /* the default */
	/* Describes the tables of a database of that size. Returns their number, or 0 if the size
	 * is not allowed. */
	unsigned (*tables)(uint64_t size, struct engine_table *tables);
	/* Writes the initial contents to a zeroed image. NULL: the tables begin as zeros. */
	void (*fill)(void *image, uint64_t size);
	/* Runs the next transaction of the plan; `run` is a struct work_run. Returns 0 or
	 * rows->code. */
	int (*step)(void *run);
	/* Returns true if the image agrees with the plan's sums, or false with a sentence in
	 * `why`. */
	bool (*check)(const struct work_plan *plan, const void *image, char *why,
	              unsigned why_size);
};

/* A workload on an engine. */
struct work_run {
	struct rows rows;
	const char *name; /* of the engine */
	const struct work *work;
	struct work_plan plan;
	uint8_t *kept; /* image saved by work_let_go, mapped from a file; else NULL */
};

/* A column of numbers in a table, and the sum of the plan that it must add up to. */
struct work_column {
	const char *name;
	unsigned table;
	size_t offset, width;
	int sum, less;  /* expected: sums[sum] - sums[less]; less may be WORK_NO_SUM */
	uint64_t first; /* initial value of the numbers, subtracted from each */
};
enum { WORK_NO_SUM = -1 };
#define WORK_COLUMN(table, row, member) \
	table, offsetof(struct row, member), sizeof(((struct row *)0)->member)

/* "synthetic": its size is the bytes of a range. "ranges": its size is the number of ranges. */
extern const struct work synthetic_work, ranges_work;

/* Returns the workload with that name, or NULL. */
const struct work *work_by_name(const char *name);

/* Returns the bytes of all tables, or 0 if the size is not allowed. */
uint64_t work_bytes(const struct work *work, uint64_t size);

/* Returns a view of an image's tables, to be used with rows_at only. */
struct rows work_view(const struct work *work, uint64_t size, const void *image);

/* Returns true if the columns of an image add up to the plan's sums, or false with a sentence in
 * `why`. */
bool work_check_columns(const struct work *work, const struct work_plan *plan, const void *image,
                        const struct work_column *columns, unsigned count, char *why,
                        unsigned why_size);

/* Opens the engine and starts the plan at its beginning. Returns 0, or -1 with the reason in `why`
 * of WORK_WHY bytes. */
int work_attach(struct work_run *run, const struct work *work, uint64_t size,
                const struct engine_ops *ops, const struct engine_options *options, char *why);

/* Calls work_attach and fills the tables. Fails if they are not empty. */
int work_open(struct work_run *run, const struct work *work, uint64_t size,
              const struct engine_ops *ops, const struct engine_options *options, char *why);

/* Closes the engine. `run` may be all zeros. */
void work_close(struct work_run *run);

/*
 * Checks the sums of the engine's tables, saves the tables to a file for work_check, and closes the
 * engine. For workloads so large that memory has no room for two engines. Returns what work_check
 * returns.
 */
int work_let_go(struct work_run *run, char *why);

/*
 * Checks the tables of all runs, which have one workload and size: the sums, and every byte against
 * the same transactions on plain memory. Returns 0, 1 if something is wrong, or 2 if the check
 * could not run, with a sentence in `why` of WORK_WHY bytes.
 */
int work_check(struct work_run *runs, unsigned count, char *why);

/* Returns true if every byte of an image is what `done` transactions produce. Returns false with
 * the reason in `why` of WORK_WHY bytes if not, or if there is no memory for the check. */
bool work_compare(const struct work *work, uint64_t size, const void *image, uint64_t done,
                  char *why);

/* The start of a plan. */
#define WORK_SEED 0x9e3779b97f4a7c15u
#define WORK_PLAN(usual) ((struct work_plan){ .state = WORK_SEED, .size = (usual) })

/* Marsaglia's xorshift64 with a multiplied output: good enough for picking rows. */
static inline uint64_t work_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1du;
}

/* Returns a random number from 0 to below - 1. */
static inline uint32_t work_below(uint64_t *state, uint32_t below)
{
	return (uint32_t)((work_random(state) >> 32) * below >> 32);
}

#endif
