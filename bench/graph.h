/*
 * graph.h - objects that refer to each other, kept by the library's heap, by plain memory, or by
 * another system (peers/graph_*.c): what oo7.c builds its database of. Where objects are in memory,
 * a reference is an address or an offset, and following it is an addition.
 */
#ifndef PERSEAS_BENCH_GRAPH_H
#define PERSEAS_BENCH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { GRAPH_WHY = 512 };

struct graph_place {
	const char *mirrors, *store; /* of Perseas */
	const char *dir;             /* of others: an empty folder */
	uint64_t bytes;              /* that the objects take, at most */
};

struct graph;

/* What returns a number returns 0, or another number and the reason in graph->why. */
struct graph_ops {
	const char *name;
	size_t size; /* of its struct, which begins with a struct graph and is zeros at first */
	int (*open)(struct graph *graph, const struct graph_place *place);
	/* One transaction at a time. It allocates, or it does not. */
	int (*begin)(struct graph *graph, bool allocates);
	int (*commit)(struct graph *graph);
	uint64_t (*alloc)(struct graph *graph, size_t size); /* a reference; 0: it failed */
	/* Announces a change of bytes; NULL where `put` stores objects. */
	int (*range)(struct graph *graph, void *at, size_t len);
	/* Copies an object out and in; NULL where objects are in memory. */
	int (*get)(struct graph *graph, uint64_t ref, void *object, size_t size);
	int (*put)(struct graph *graph, uint64_t ref, const void *object, size_t size);
	void (*close)(struct graph *graph); /* also after a failure, and of what is open */
};

struct graph {
	const struct graph_ops *ops;
	uint8_t *base; /* where reference 0 would be */
	int failed;    /* of the first failure; what is read after it is anything */
	char why[GRAPH_WHY];
};

extern const struct graph_ops graph_plain, graph_perseas, graph_perseas_tracked;

/* NULL where the drivers of peers/ are not linked. */
extern const struct graph_ops graph_pmemobj __attribute__((weak));
extern const struct graph_ops graph_lmdb __attribute__((weak));

/* Remembers what failed. Returns -1. */
int graph_fail(struct graph *graph, const char *what, const char *why);

/* An object to be read: itself, or its copy in `room`. */
static inline const void *graph_read(struct graph *graph, uint64_t ref, void *room, size_t size)
{
	if (!graph->ops->get)
		return graph->base + ref;
	if (!graph->failed)
		graph->failed = graph->ops->get(graph, ref, room, size);
	return room;
}

/* Stores an object, all of it. */
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
