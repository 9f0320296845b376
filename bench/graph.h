/*
 * graph.h - stores objects that refer to each other, in the library's heap, in plain memory, or in
 * another system (peers/graph_*.c). oo7.c builds its database of them. If a system has its objects
 * in memory, a reference is an address or an offset, and following it is an addition.
 */
#ifndef PERSEAS_BENCH_GRAPH_H
#define PERSEAS_BENCH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { GRAPH_WHY = 512 };

struct graph_place {
	const char *mirrors, *store; /* for Perseas */
	const char *dir;             /* for other systems: an empty folder */
	uint64_t bytes;              /* upper bound of what the objects take */
};

struct graph;

/* Functions that return an int return 0, or another value with the reason in graph->why. */
struct graph_ops {
	const char *name;
	size_t size; /* of the system's own struct, which begins with a struct graph and is zeroed
	                before `open` */
	int (*open)(struct graph *graph, const struct graph_place *place);
	/* One transaction runs at a time. `allocates` tells whether it will call `alloc`. */
	int (*begin)(struct graph *graph, bool allocates);
	int (*commit)(struct graph *graph);
	uint64_t (*alloc)(struct graph *graph, size_t size); /* Returns a reference, or 0 on
	                                                        failure. */
	/* Announces a change of `len` bytes. NULL in systems that store objects with `put`. */
	int (*range)(struct graph *graph, void *at, size_t len);
	/* Copy an object out and in. NULL in systems that have objects in memory. */
	int (*get)(struct graph *graph, uint64_t ref, void *object, size_t size);
	int (*put)(struct graph *graph, uint64_t ref, const void *object, size_t size);
	void (*close)(struct graph *graph); /* also after a failure, and with a transaction open */
};

struct graph {
	const struct graph_ops *ops;
	uint8_t *base; /* address of reference 0 */
	int failed;    /* code of the first failure; anything read after it is undefined */
	char why[GRAPH_WHY];
};

extern const struct graph_ops graph_plain, graph_perseas, graph_perseas_tracked;

/* NULL if the drivers in peers/ are not linked in. */
extern const struct graph_ops graph_pmemobj __attribute__((weak));
extern const struct graph_ops graph_lmdb __attribute__((weak));

/* Stores the reason of a failure in graph->why. Returns -1. */
int graph_fail(struct graph *graph, const char *what, const char *why);

/* Returns an object for reading: its address in the store, or `room` filled with a copy. */
static inline const void *graph_read(struct graph *graph, uint64_t ref, void *room, size_t size)
{
	if (!graph->ops->get)
		return graph->base + ref;
	if (!graph->failed)
		graph->failed = graph->ops->get(graph, ref, room, size);
	return room;
}

/* Overwrites a whole object. */
static inline void graph_write(struct graph *graph, uint64_t ref, const void *object, size_t size)
{
	if (graph->failed)
		return;
	if (graph->ops->put) {
		graph->failed = graph->ops->put(graph, ref, object, size);
		return;
	}
	graph->failed = graph->ops->range(graph, graph->base + ref, size);
	if (!graph->failed)
		memcpy(graph->base + ref, object, size);
}

#endif
