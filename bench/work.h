/*
 * work.h - a workload: tables, what they hold at first, and a sequence of transactions that is the
 * same in every run and on every engine. So what the tables must hold after n transactions is
 * known, to the byte.
 */
#ifndef PERSEAS_BENCH_WORK_H
#define PERSEAS_BENCH_WORK_H

#include "rows.h"

enum {
	WORK_WHY = 1280, /* bytes of a reason; more than ENGINE_WHY */
	WORK_SUMS = 8,
};

/* Where the sequence of transactions is. */
struct work_plan {
	uint64_t state;          /* of the random numbers */
	uint64_t done;           /* transactions */
	uint64_t size;           /* of the workload */
	int64_t sums[WORK_SUMS]; /* what must have come of them, in the workload's own terms */
};

struct work {
	const char *name;
	const char *sizes; /* what --size means, and which are allowed */
	uint64_t size;     /* the usual one */
	/* The tables of a database of that size, and how many they are. 0: no such size. */
	unsigned (*tables)(uint64_t size, struct engine_table *tables);
	/* What they hold at first, in an image that is zero. NULL: it stays so. */
	void (*fill)(void *image, uint64_t size);
	/* One transaction of a struct work_run, the next of its plan. 0, or rows->code. */
	int (*step)(void *run);
	/* Does the image agree with the plan's sums? False: a sentence in `why`. */
	bool (*check)(const struct work_plan *plan, const void *image, char *why,
	              unsigned why_size);
};

/* A workload on an engine. */
struct work_run {
	struct rows rows;
	const char *name; /* the engine's */
	const struct work *work;
	struct work_plan plan;
	uint8_t *
		kept; /* what an engine held that was let go, in a file that is mapped; else NULL */
};

/* A column of a table's numbers, and which sum of the plan they add up to. */
struct work_column {
	const char *name;
	unsigned table;
	size_t offset, width;
	int sum, less;  /* less that one; WORK_NO_SUM: nothing is taken off */
	uint64_t first; /* of a number that counts from there */
};
enum { WORK_NO_SUM = -1 };
#define WORK_COLUMN(table, row, member) \
	table, offsetof(struct row, member), sizeof(((struct row *)0)->member)

/* Synthetic: its size is the range's. Ranges: how many there are. */
extern const struct work synthetic_work, ranges_work;

/* The workload of that name, NULL when there is none. */
const struct work *work_by_name(const char *name);

/* Bytes of the tables; 0: the workload has no such size. */
uint64_t work_bytes(const struct work *work, uint64_t size);

/* The tables of an image, for rows_at and nothing else. */
struct rows work_view(const struct work *work, uint64_t size, const void *image);

/* Do the columns of an image add up to the plan's sums? False: a sentence in `why`. */
bool work_check_columns(const struct work *work, const struct work_plan *plan, const void *image,
                        const struct work_column *columns, unsigned count, char *why,
                        unsigned why_size);

/* Opens the engine, at the beginning of the plan. 0, or -1 and the reason in `why` of WORK_WHY
 * bytes. */
int work_attach(struct work_run *run, const struct work *work, uint64_t size,
                const struct engine_ops *ops, const struct engine_options *options, char *why);

/* The same, and fills its tables, which must hold nothing. */
int work_open(struct work_run *run, const struct work *work, uint64_t size,
              const struct engine_ops *ops, const struct engine_options *options, char *why);

/* Everything zero is allowed. */
void work_close(struct work_run *run);

/*
 * Checks the sums of what the engine holds, keeps that in a file for work_check, and closes the
 * engine: where memory does not hold two. Otherwise as work_check.
 */
int work_let_go(struct work_run *run, char *why);

/*
 * Checks what all runs of one workload and size hold: the sums, and every byte against the same
 * transactions on plain memory. 0, 1 when something is wrong, 2 when that could not be found out;
 * with a sentence in `why` of WORK_WHY bytes.
 */
int work_check(struct work_run *runs, unsigned count, char *why);

/* Is every byte of an image what `done` transactions make? False: the reason in `why` of WORK_WHY
 * bytes, also when there is no memory to find out. */
bool work_compare(const struct work *work, uint64_t size, const void *image, uint64_t done,
                  char *why);

/* The beginning of a plan. */
#define WORK_SEED 0x9e3779b97f4a7c15u
#define WORK_PLAN(usual) ((struct work_plan){ .state = WORK_SEED, .size = (usual) })

/* Marsaglia's xorshift64 with a multiplied output: enough for picking rows. */
static inline uint64_t work_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1du;
}

/* 0 .. below - 1, below 2^32. */
static inline uint32_t work_below(uint64_t *state, uint32_t below)
{
	return (uint32_t)((work_random(state) >> 32) * below >> 32);
}

#endif
