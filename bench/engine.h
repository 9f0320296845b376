/*
 * engine.h - what runs transactions, seen by a workload: the library, or a scheme to
 * compare it with. The workload's code is the same for all of them.
 */
#ifndef PERSEAS_BENCH_ENGINE_H
#define PERSEAS_BENCH_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perseas;
struct engine;

/* Rows of one size, numbered from 0. They are all zeros until they are put. */
struct engine_table {
	uint64_t count;
	uint32_t size; /* of a row, a multiple of 8 */
};

/*
 * Engines are of two kinds. One gives memory, in which a workload lays out its tables itself and
 * announces what it changes with `range`. The other keeps rows, which `get` and `put` copy out and
 * in; it leaves *memory NULL. A workload that uses rows.h runs on both.
 */
struct engine_options {
	const char *store;
	const char *mirrors;
	const char *segment;
	uint64_t acks;        /* W of a store that is made; 0: a majority */
	uint64_t log_size;    /* of a store that is made; 0: the library's */
	uint64_t spin_us;     /* 0: the library's */
	uint32_t patience_ms; /* to wait for a commit in doubt, or for mirrors */
	bool takeover;
	const struct engine_table *tables; /* of an engine that keeps rows */
	unsigned table_count;
	const char *dir;     /* of an engine that keeps files: an empty folder */
	uint16_t redis_port; /* of the server on this host that has a replica */
};

struct engine_ops {
	const char *name;
	/* Gives `size` bytes of transactional memory, zeros at first, in *memory. NULL on
	 * failure, with the reason in `why` of ENGINE_WHY bytes. */
	struct engine *(*open)(const struct engine_options *options, size_t size, void **memory,
	                       char *why);
	/* One transaction at a time. 0, or another number: engine_why says what is wrong. */
	int (*begin)(struct engine *engine);
	int (*range)(struct engine *engine, const void *addr, size_t len);
	int (*commit)(struct engine *engine); /* 0: acknowledged */
	const char *(*why)(const struct engine *engine);
	/*
	 * NULL in an engine that gives memory. `get` copies a row, with what the open transaction
	 * put; it may stand outside of transactions, too. `put` stands inside of one. `load` fills
	 * the tables before the first transaction, and may be NULL: then `put` does. 0, or another
	 * number as above.
	 */
	int (*get)(struct engine *engine, unsigned table, uint64_t id, void *row);
	int (*put)(struct engine *engine, unsigned table, uint64_t id, const void *row);
	int (*load)(struct engine *engine, unsigned table, uint64_t id, const void *row);
	/* What a committed transaction survives the end of: "nothing", "process", "host" (this
	 * one, by a copy on another), "power". */
	const char *survives;
	/* How it is set up, in a line; NULL: there is nothing to say. */
	const char *(*configuration)(const struct engine *engine);
	/* The library's handle; NULL for others. */
	struct perseas *(*handle)(struct engine *engine);
	void (*close)(struct engine *engine);
};

struct engine {
	const struct engine_ops *ops;
};

enum { ENGINE_WHY = 1024 };

/* libperseas over options->mirrors. */
extern const struct engine_ops engine_perseas;

/*
 * Vista's scheme (Lowell and Chen, "Free Transactions with Rio Vista", SOSP'97): undo log
 * in this process, nothing sent anywhere. What is left when mirroring is taken away.
 */
extern const struct engine_ops engine_local;

/* The three copies that one mirror in memory takes, and nothing else: the limit. */
extern const struct engine_ops engine_copies;

/* Memory, and no transactions: nothing is copied, nothing can be undone. */
extern const struct engine_ops engine_none;

/*
 * The engine of that name, NULL when there is none. Without the drivers in bench/peers/ only
 * those above have names.
 */
const struct engine_ops *engine_by_name(const char *name);

#endif
