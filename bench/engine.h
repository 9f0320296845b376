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
	uint32_t connect_ms;  /* for a mirror to answer; 0: the library's */
	uint32_t patience_ms; /* to wait for a commit in doubt, or for mirrors */
	bool takeover;
	const struct engine_table *tables; /* of an engine that keeps rows; they outlive it */
	unsigned table_count;
	const char *dir;     /* of an engine that keeps files: an empty folder */
	uint16_t redis_port; /* of the server on this host that has a replica */
	/* Of the bare round trips. */
	uint64_t ping_bytes; /* 0: 256 */
	uint64_t far_spin_us;
	int far_cpu; /* where the far end is */
};

enum { ENGINE_WHY = 1024, ENGINE_SETUP = 512 };

/* The first member of every engine's own struct. */
struct engine {
	const struct engine_ops *ops;
	const struct engine_table *tables; /* those of the options */
	unsigned table_count;
	bool loading;             /* rows are put in order, before the first transaction */
	struct perseas *handle;   /* the library's; NULL in others */
	char setup[ENGINE_SETUP]; /* how it is set up, in a line; empty: there is nothing to say */
	char why[ENGINE_WHY];     /* what failed last; the library's handle has its own */
};

/* What an engine with mirrors has done so far. */
struct engine_counts {
	uint64_t commits;
	uint64_t sent;    /* bytes, to all mirrors */
	uint64_t within;  /* bytes that a transaction declared again, and that were sent once */
	uint64_t between; /* bytes that a later transaction of the same group changed again */
};

/* What returns a number returns 0, or another number: engine_why says what is wrong then. */
struct engine_ops {
	const char *name;
	/* What a committed transaction survives the end of: "nothing", "process", "host" (this
	 * one, by a copy on another), "power". */
	const char *survives;
	/* It is opened before others: a process that forks would copy what it then writes to. */
	bool forks;
	size_t size; /* of its struct, which is zeros but for `engine` when `open` is called */
	/* Gives `size` bytes of transactional memory, zeros at first, in *memory. */
	int (*open)(struct engine *engine, const struct engine_options *options, size_t size,
	            void **memory);
	/* One transaction at a time. */
	int (*begin)(struct engine *engine);
	int (*range)(struct engine *engine, const void *addr, size_t len);
	int (*commit)(struct engine *engine); /* 0: acknowledged */
	/*
	 * NULL in an engine that gives memory. `get` copies a row, with what the open transaction
	 * put; both stand inside of one. `read` copies so many rows from `id` on outside of
	 * transactions; where it is NULL a transaction reads them with `get`.
	 */
	int (*get)(struct engine *engine, unsigned table, uint64_t id, void *row);
	int (*put)(struct engine *engine, unsigned table, uint64_t id, const void *row);
	int (*read)(struct engine *engine, unsigned table, uint64_t id, uint64_t count, void *rows);
	/* NULL in an engine without mirrors. */
	void (*counts)(struct engine *engine, struct engine_counts *counts);
	int (*loaded)(struct engine *engine); /* after what was loaded is committed; may be NULL */
	/* Lets go of what `open` took, also when that failed, and of what is not committed. */
	void (*close)(struct engine *engine);
};

/* Opens an engine. NULL on failure, with the reason in `why` of ENGINE_WHY bytes. */
struct engine *engine_open(const struct engine_ops *ops, const struct engine_options *options,
                           size_t size, void **memory, char *why);
void engine_close(struct engine *engine); /* NULL is allowed */

/* What failed last. */
const char *engine_why(const struct engine *engine);

/* Remembers what failed. Returns -1. */
int engine_fail(struct engine *engine, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* libperseas over options->mirrors. */
extern const struct engine_ops engine_perseas;

/* The same with commits that do not wait: 8, 64 or 1000 of them are waited for at once, of which
 * the last are also gathered into fewer; or 32 are on their way all the time. Each has a store of
 * its own. */
extern const struct engine_ops engine_nowait_8, engine_nowait_64, engine_nowait_1000,
	engine_gathered_1000, engine_flying_32;

/* Rhino's ways, each in a store of its own: whole pages are declared; or nothing is, and the
 * library finds what was changed (PERSEAS_TRACK). */
extern const struct engine_ops engine_pages, engine_tracked;

/* RVM's interface on the same mirrors: a commit with flush each; or with no_flush, of which a
 * thousand are flushed at once. A process opens each of them once. */
extern const struct engine_ops engine_rvm, engine_rvm_no_flush;

/* Is it one of these ten? */
bool engine_needs_mirrors(const struct engine_ops *ops);

/*
 * Vista's scheme (Lowell and Chen, "Free Transactions with Rio Vista", SOSP'97): undo log
 * in this process, nothing sent anywhere. What is left when mirroring is taken away.
 */
extern const struct engine_ops engine_local;

/* The three copies that one mirror in memory takes, and nothing else: the limit. */
extern const struct engine_ops engine_copies;

/* Memory, and no transactions: nothing is copied, nothing can be undone. */
extern const struct engine_ops engine_none;

/* Memory, and a round trip over TCP, or a Unix socket, to another process for each transaction. */
extern const struct engine_ops engine_pingpong, engine_unix_pingpong;

/* `begin` and `range` of an engine that has nothing to do there. */
int engine_begin_nothing(struct engine *engine);
int engine_range_nothing(struct engine *engine, const void *addr, size_t len);

/* All engines that are linked, NULL after the last: without the drivers in bench/peers/ those
 * above. */
extern const struct engine_ops *const engines[];

/* The engine of that name, NULL when there is none. */
const struct engine_ops *engine_by_name(const char *name);

#endif
