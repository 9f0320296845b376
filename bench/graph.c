/*
 * graph.c - objects of a graph in plain memory, the baseline for the other systems, and in the
 * library's heap, with changes declared or found by PERSEAS_TRACK.
 */
#include "graph.h"

#include "../client/perseas.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAKE_MS = 30000, TYPE = 1 };

int graph_fail(struct graph *graph, const char *what, const char *why)
{
	snprintf(graph->why, GRAPH_WHY, "%s: %s", what, why);
	graph->failed = -1;
	return -1;
}

/* --- plain memory --- */

struct plain {
	struct graph graph;
	uint8_t *memory;
	uint64_t used, size;
};

static int plain_open(struct graph *graph, const struct graph_place *place)
{
	struct plain *plain = (struct plain *)graph;

	plain->memory = calloc(1, place->bytes);
	plain->size = place->bytes;
	plain->used = sizeof(uint64_t); /* reference 0 is reserved for "none" */
	graph->base = plain->memory;
	return plain->memory ? 0 : graph_fail(graph, "memory", strerror(errno));
}

static int plain_begin(struct graph *graph, bool allocates)
{
	(void)graph;
	(void)allocates;
	return 0;
}

static int plain_commit(struct graph *graph)
{
	(void)graph;
	return 0;
}

static uint64_t plain_alloc(struct graph *graph, size_t size)
{
	struct plain *plain = (struct plain *)graph;
	const uint64_t ref = plain->used;

	if (plain->size - ref < size + sizeof(uint64_t)) {
		graph_fail(graph, "memory", "it is full");
		return 0;
	}
	plain->used += (size + 7) & ~(size_t)7;
	return ref;
}

static int plain_range(struct graph *graph, void *at, size_t len)
{
	(void)graph;
	(void)at;
	(void)len;
	return 0;
}

static void plain_close(struct graph *graph)
{
	free(((struct plain *)graph)->memory);
}

const struct graph_ops graph_plain = {
	.name = "plain",
	.size = sizeof(struct plain),
	.open = plain_open,
	.begin = plain_begin,
	.commit = plain_commit,
	.alloc = plain_alloc,
	.range = plain_range,
	.close = plain_close,
};

/* --- the heap --- */

struct heap {
	struct graph graph;
	perseas_t *p;
	perseas_heap_t *heap;
	perseas_tx_t *tx;
};

static int heap_fail(struct graph *graph, const char *what)
{
	return graph_fail(graph, what, perseas_message(((struct heap *)graph)->p));
}

/* References are addresses, so graph->base stays NULL. */
static int heap_open(struct graph *graph, const struct graph_place *place)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct perseas_heap_options how = PERSEAS_HEAP_OPTIONS_INIT;
	struct heap *heap = (struct heap *)graph;
	char store[64];

	snprintf(store, sizeof(store), "%s-%s", place->store, graph->ops->name);
	options.flags = PERSEAS_CREATE;
	if (graph->ops == &graph_perseas_tracked)
		options.flags |= PERSEAS_TRACKED;
	options.connect_timeout_ms = MAKE_MS;
	options.log_size = 2 * place->bytes;
	options.ring_size = 2 * place->bytes;
	how.flags = PERSEAS_HEAP_CREATE;
	how.first = place->bytes;
	if (perseas_open(store, place->mirrors, &options, &heap->p) ||
	    perseas_heap_open(heap->p, "oo7", &how, &heap->heap))
		return heap_fail(graph, "open");
	return 0;
}

static int heap_begin(struct graph *graph, bool allocates)
{
	const bool tracks = graph->ops == &graph_perseas_tracked && !allocates;
	struct heap *heap = (struct heap *)graph;

	return perseas_begin(heap->p, tracks ? PERSEAS_TRACK : 0, &heap->tx)
	               ? heap_fail(graph, "begin")
	               : 0;
}

static int heap_commit(struct graph *graph)
{
	return perseas_commit(((struct heap *)graph)->tx, 0) ? heap_fail(graph, "commit") : 0;
}

static uint64_t heap_alloc(struct graph *graph, size_t size)
{
	struct heap *heap = (struct heap *)graph;
	void *addr = NULL;

	if (perseas_zalloc(heap->tx, heap->heap, size, TYPE, &addr))
		heap_fail(graph, "alloc");
	return (uint64_t)(uintptr_t)addr;
}

static int heap_range(struct graph *graph, void *at, size_t len)
{
	if (__builtin_expect(perseas_set_range(((struct heap *)graph)->tx, at, len), 0))
		return heap_fail(graph, "set_range");
	return 0;
}

static void heap_close(struct graph *graph)
{
	perseas_close(((struct heap *)graph)->p);
}

#define HEAP_OPS                                                             \
	.size = sizeof(struct heap), .open = heap_open, .begin = heap_begin, \
	.commit = heap_commit, .alloc = heap_alloc, .range = heap_range, .close = heap_close

const struct graph_ops graph_perseas = { .name = "perseas", HEAP_OPS };
const struct graph_ops graph_perseas_tracked = { .name = "perseas-tracked", HEAP_OPS };
