/*
 * engine.h - the interface between a workload and an engine, which runs its transactions: the
 * library, or a system to compare it with. A workload's code is the same for all engines.
 */
#ifndef PERSEAS_BENCH_ENGINE_H
#define PERSEAS_BENCH_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perseas;
struct engine;

/* A table of rows of one size, numbered from 0. A row is all zeros until the workload writes it. */
struct engine_table {
	uint64_t count;
	uint32_t size; /* of a row, a multiple of 8 */
};

/*
 * There are two kinds of engines. A memory engine gives the workload memory; the workload lays out
 * its tables there and announces changes with `range`. A row engine stores rows, which `get` and
 * `put` copy out and in; it leaves *memory NULL. A workload that uses rows.h runs on both.
 */
struct engine_options {
	const char *store;
	const char *mirrors;
	const char *segment;
	uint64_t acks;        /* W of a store that is created; 0: a majority */
	uint64_t log_size;    /* of a store that is created; 0: the library's default */
	uint64_t spin_us;     /* 0: the library's default */
	uint32_t connect_ms;  /* timeout for a mirror to connect; 0: the library's default */
	uint32_t patience_ms; /* timeout for a commit in doubt and for creating the store */
	bool takeover;
	const struct engine_table *tables; /* tables of a row engine; must outlive the engine */
	unsigned table_count;
	const char *dir;     /* an empty folder, for an engine that stores files */
	uint16_t redis_port; /* port of a Redis server on this host that has a replica */
	/* For the ping-pong engines. */
	uint64_t ping_bytes; /* 0: 256 */
	uint64_t far_spin_us;
	int far_cpu; /* processor of the far end */
};

enum { ENGINE_WHY = 1024, ENGINE_SETUP = 512 };

/* The first member of every engine's own struct. */
struct engine {
	const struct engine_ops *ops;
	const struct engine_table *tables; /* from the options */
	unsigned table_count;
	bool loading;             /* rows are being loaded in order, before the first transaction */
	struct perseas *handle;   /* the library's handle; NULL in other engines */
	char setup[ENGINE_SETUP]; /* describes the configuration in one line; may be empty */
	char why[ENGINE_WHY]; /* the last failure, unless there is a handle, which has a message */
};

/* What an engine with mirrors has done since it was opened. */
struct engine_counts {
	uint64_t commits;
	uint64_t sent;    /* bytes sent to all mirrors together */
	uint64_t within;  /* bytes not sent again although declared again by a transaction */
	uint64_t between; /* bytes not sent: changed again by a later transaction of the group */
};

/* Functions that return an int return 0 on success; otherwise engine_why tells the reason. */
struct engine_ops {
	const char *name;
	/* What a committed transaction survives the loss of: "nothing", "process", "host" (by a
	 * copy on another host), "power". */
	const char *survives;
	/* The engine forks, so it must be opened before the others: the child would share their
	 * memory, and writes to it would then copy pages. */
	bool forks;
	size_t size; /* of the engine's own struct, zeroed before `open` except for `engine` */
	/* Sets *memory to `size` bytes of zeroed transactional memory. */
	int (*open)(struct engine *engine, const struct engine_options *options, size_t size,
	            void **memory);
	/* An engine runs one transaction at a time. */
	int (*begin)(struct engine *engine);
	int (*range)(struct engine *engine, const void *addr, size_t len);
	int (*commit)(struct engine *engine); /* 0: the commit is acknowledged */
	/*
	 * Row engines only; NULL in memory engines. `get` copies a row, including what the open
	 * transaction has put. Both `get` and `put` need an open transaction. `read` copies `count`
	 * rows from `id` on outside of transactions; if `read` is NULL, rows.c reads them with
	 * `get` in a transaction.
	 */
	int (*get)(struct engine *engine, unsigned table, uint64_t id, void *row);
	int (*put)(struct engine *engine, unsigned table, uint64_t id, const void *row);
	int (*read)(struct engine *engine, unsigned table, uint64_t id, uint64_t count, void *rows);
	/* NULL in an engine without mirrors. */
	void (*counts)(struct engine *engine, struct engine_counts *counts);
	int (*loaded)(struct engine *engine); /* called after loading; may be NULL */
	/* Releases what `open` acquired, even if `open` failed, and drops uncommitted changes. */
	void (*close)(struct engine *engine);
};

/* Opens an engine. Returns NULL on failure, with the reason in `why` of ENGINE_WHY bytes. */
struct engine *engine_open(const struct engine_ops *ops, const struct engine_options *options,
                           size_t size, void **memory, char *why);
void engine_close(struct engine *engine); /* `engine` may be NULL */

/* Returns the reason of the last failure. */
const char *engine_why(const struct engine *engine);

/* Stores the reason of a failure for engine_why. Returns -1. */
int engine_fail(struct engine *engine, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The library, with mirrors options->mirrors. */
extern const struct engine_ops engine_perseas;

/* The library with PERSEAS_NOWAIT commits. The nowait engines flush after every 8, 64 or 1000
 * commits; gathered-1000 also delays commits for a millisecond so that they are sent as fewer
 * records; flying-32 always has 32 commits in flight. Each engine has its own store. */
extern const struct engine_ops engine_nowait_8, engine_nowait_64, engine_nowait_1000,
	engine_gathered_1000, engine_flying_32;

/* The library with the other two ways of Rhino to find changes, each in its own store: "pages"
 * declares whole pages; "tracked" declares nothing and uses PERSEAS_TRACK. */
extern const struct engine_ops engine_pages, engine_tracked;

/* RVM's interface on the same mirrors. "rvm" commits with flush; "rvm-no-flush" commits with
 * no_flush and calls rvm_flush after every thousand commits. A process can open each once. */
extern const struct engine_ops engine_rvm, engine_rvm_no_flush;

/* Returns true if the engine is one of the ten above, which need options->mirrors. */
bool engine_needs_mirrors(const struct engine_ops *ops);

/*
 * Vista's scheme (Lowell and Chen, "Free Transactions with Rio Vista", SOSP'97): an undo log in
 * this process, and nothing is sent. It shows what the library would cost without mirroring.
 */
extern const struct engine_ops engine_local;

/* Only the three copies that a mirror in memory needs: a lower bound for a mirrored transaction. */
extern const struct engine_ops engine_copies;

/* Memory without transactions: nothing is copied and nothing can be undone. */
extern const struct engine_ops engine_none;

/* Memory without transactions, and for each commit a round trip to another process over TCP or a
 * Unix socket. */
extern const struct engine_ops engine_pingpong, engine_unix_pingpong;

/* `begin` and `range` for engines in which these do nothing. Both return 0. */
int engine_begin_nothing(struct engine *engine);
int engine_range_nothing(struct engine *engine, const void *addr, size_t len);

/* All engines that are linked in, followed by NULL. Without the drivers in bench/peers/ these are
 * the engines above. */
extern const struct engine_ops *const engines[];

/* Returns the engine with that name, or NULL. */
const struct engine_ops *engine_by_name(const char *name);

#endif
