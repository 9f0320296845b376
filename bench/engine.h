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

struct engine_options {
	const char *store;
	const char *mirrors;
	const char *segment;
	uint64_t acks;             /* W of a store that is made; 0: a majority */
	uint64_t log_size;         /* of a store that is made; 0: the library's */
	uint64_t spin_us;          /* 0: the library's */
	double patience;           /* seconds to wait for a commit in doubt, or for mirrors */
	bool takeover;
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
	int (*commit)(struct engine *engine);  /* 0: acknowledged */
	const char *(*why)(const struct engine *engine);
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

#endif
