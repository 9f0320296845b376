/*
 * graph_pmemobj.c - a graph's objects in a pool of libpmemobj, in a file in memory. A reference is
 * an object's offset in the pool; adding the pool's address follows it, as pmemobj_direct does. As
 * in engine_pmemobj.c, settings tell the library not to flush, and must be set before it is loaded.
 */
#define PMEMOBJ_DIRECT_NON_INLINE

#include "../graph.h"

#include <dlfcn.h>
#include <errno.h>
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>

enum { TYPE = 1, MORE = 512 << 20 };

struct pool {
	struct graph graph;
	PMEMobjpool *pop;
};

static struct {
	__typeof__(pmemobj_create) *create;
	__typeof__(pmemobj_close) *close;
	__typeof__(pmemobj_errormsg) *errormsg;
	__typeof__(pmemobj_tx_begin) *tx_begin;
	__typeof__(pmemobj_tx_zalloc) *tx_zalloc;
	__typeof__(pmemobj_tx_add_range_direct) *tx_add_range_direct;
	__typeof__(pmemobj_tx_commit) *tx_commit;
	__typeof__(pmemobj_tx_abort) *tx_abort;
	__typeof__(pmemobj_tx_end) *tx_end;
	__typeof__(pmemobj_tx_stage) *tx_stage;
} pmem;

#define LOOK_UP(name) (pmem.name = (__typeof__(pmem.name))dlsym(library, "pmemobj_" #name)) != NULL

static int load(struct graph *graph)
{
	void *library;

	setenv("PMEM_IS_PMEM_FORCE", "1", 0);
	setenv("PMEM_NO_FLUSH", "1", 0);
	setenv("PMEM_NO_MOVNT", "1", 0);
	library = dlopen("libpmemobj.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library ||
	    !(LOOK_UP(create) && LOOK_UP(close) && LOOK_UP(errormsg) && LOOK_UP(tx_begin) &&
	      LOOK_UP(tx_zalloc) && LOOK_UP(tx_add_range_direct) && LOOK_UP(tx_commit) &&
	      LOOK_UP(tx_abort) && LOOK_UP(tx_end) && LOOK_UP(tx_stage)))
		return graph_fail(graph, "libpmemobj", dlerror());
	return 0;
}

static int pool_fail(struct graph *graph, const char *what)
{
	return graph_fail(graph, what, pmem.errormsg());
}

static int pool_open(struct graph *graph, const struct graph_place *place)
{
	struct pool *pool = (struct pool *)graph;
	char path[4096];

	if (load(graph))
		return -1;
	snprintf(path, sizeof(path), "%s/graph-pmemobj", place->dir);
	pool->pop = pmem.create(path, "graph", 2 * place->bytes + MORE, 0600);
	graph->base = (uint8_t *)pool->pop;
	return pool->pop ? 0 : pool_fail(graph, "pool");
}

static int pool_begin(struct graph *graph, bool allocates)
{
	(void)allocates;
	return pmem.tx_begin(((struct pool *)graph)->pop, NULL, TX_PARAM_NONE)
	               ? pool_fail(graph, "begin")
	               : 0;
}

static int pool_commit(struct graph *graph)
{
	pmem.tx_commit();
	return pmem.tx_end() ? pool_fail(graph, "commit") : 0;
}

static uint64_t pool_alloc(struct graph *graph, size_t size)
{
	PMEMoid oid = pmem.tx_zalloc(size, TYPE);

	if (OID_IS_NULL(oid))
		pool_fail(graph, "alloc");
	return oid.off;
}

static int pool_range(struct graph *graph, void *at, size_t len)
{
	if (__builtin_expect(pmem.tx_add_range_direct(at, len), 0))
		return pool_fail(graph, "range");
	return 0;
}

static void pool_close(struct graph *graph)
{
	struct pool *pool = (struct pool *)graph;

	if (!pool->pop)
		return;
	if (pmem.tx_stage() == TX_STAGE_WORK)
		pmem.tx_abort(ECANCELED);
	if (pmem.tx_stage() != TX_STAGE_NONE)
		pmem.tx_end();
	pmem.close(pool->pop);
}

const struct graph_ops graph_pmemobj = {
	.name = "pmemobj",
	.size = sizeof(struct pool),
	.open = pool_open,
	.begin = pool_begin,
	.commit = pool_commit,
	.alloc = pool_alloc,
	.range = pool_range,
	.close = pool_close,
};
