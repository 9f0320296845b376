/*
 * engine_pmemobj.c - PMDK's libpmemobj: undo-log transactions on a mapped pool, whose root object
 * is the workload's memory. `pmemobj-replica` has a pool set, by which the library keeps a second
 * copy on this host.
 *
 * The pool is a file in memory, which outlives the process. Settings tell the library to treat it
 * as persistent memory, because it would otherwise call msync for every few bytes; and that
 * processor caches survive a failure, because flushing them would halve its rate. The library reads
 * these settings when it is loaded, so the engine loads it with dlopen after setting them.
 */
#define PMEMOBJ_DIRECT_NON_INLINE

#include "peer.h"

#include <dlfcn.h>
#include <errno.h>
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libpmemobj.so.1"
#define LAYOUT "workload"

enum {
	POOL_PAGE = 4096,
	POOL_MORE = 64 << 20, /* room for the heap's own data and the undo log, in addition to the
	                         root */
	LOG_CACHE = 2 << 20,  /* undo log that the library keeps after a transaction */
};

extern const struct engine_ops engine_pmemobj_replica;

struct pool {
	struct engine engine;
	PMEMobjpool *pop;
};

/* --- the library --------------------------------------------------------------------- */

/* Settings that the environment may override; engine->setup shows the values in effect. */
static const char *const settings[][2] = {
	{ "PMEM_IS_PMEM_FORCE", "1" },
	{ "PMEM_NO_FLUSH", "1" },
	{ "PMEM_NO_MOVNT", "1" },
};

enum { SETTINGS = sizeof(settings) / sizeof(*settings) };

/* The functions of the library that are used, without their prefix. */
/* clang-format off */
#define FUNCTIONS(with)                                                                            \
	with(create) with(open) with(close) with(root) with(direct) with(errormsg) with(ctl_set)   \
	with(tx_begin) with(tx_add_range_direct) with(tx_commit) with(tx_abort) with(tx_end)       \
	with(tx_stage)
/* clang-format on */

#define MEMBER(name) __typeof__(pmemobj_##name) *name;
#define LOOK_UP(name) (pmem.name = (__typeof__(pmem.name))dlsym(library, "pmemobj_" #name)) &&

static struct {
	FUNCTIONS(MEMBER)
} pmem;

/* Loads the library, once for the process. */
static int load_library(struct pool *pool)
{
	void *library;

	if (pmem.create)
		return 0;
	if (dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD))
		return engine_fail(&pool->engine,
		                   "%s was loaded before its settings were made; link "
		                   "this program without it",
		                   LIBRARY);
	for (unsigned i = 0; i < SETTINGS; i++)
		setenv(settings[i][0], settings[i][1], 0);
	library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return engine_fail(&pool->engine, "%s; deploy/deps.sh bench installs it",
		                   dlerror());
	if (!(FUNCTIONS(LOOK_UP) true)) {
		pmem.create = NULL;
		return engine_fail(&pool->engine, "%s", dlerror());
	}
	return 0;
}

static int pool_fail(struct pool *pool, const char *what)
{
	return engine_fail(&pool->engine, "%s: %s", what, pmem.errormsg());
}

/* --- opening and closing ------------------------------------------------------------- */

/* Closes the pool and rolls back an open transaction. */
static void pool_close(struct engine *engine)
{
	struct pool *pool = (struct pool *)engine;

	if (!pool->pop)
		return;
	if (pmem.tx_stage() == TX_STAGE_WORK)
		pmem.tx_abort(ECANCELED);
	if (pmem.tx_stage() != TX_STAGE_NONE)
		pmem.tx_end();
	pmem.close(pool->pop);
}

static size_t pool_size(size_t size)
{
	return (size + size / 8 + POOL_MORE) & ~(size_t)(POOL_PAGE - 1);
}

/* Writes a pool set file that describes a pool and its replica, each in one file. */
static int write_set(struct pool *pool, const struct engine_options *options, const char *path,
                     size_t size)
{
	char first[PEER_PATH], second[PEER_PATH];
	FILE *set;
	int bad;

	if (peer_path(&pool->engine, options, "pmemobj.part", first) ||
	    peer_path(&pool->engine, options, "pmemobj.replica", second))
		return -1;
	set = fopen(path, "wx");
	if (!set)
		return engine_fail(&pool->engine, "%s: %s", path, strerror(errno));
	bad = fprintf(set, "PMEMPOOLSET\n%zu %s\nREPLICA\n%zu %s\n", pool_size(size), first,
	              pool_size(size), second) < 0;
	bad |= fclose(set) != 0;
	return bad ? engine_fail(&pool->engine, "%s: %s", path, strerror(errno)) : 0;
}

/* Opens the pool at `path`, or creates it if it does not exist. The size of a pool set is in its
 * file. */
static int open_pool(struct pool *pool, const struct engine_options *options, const char *path,
                     size_t size, bool replica)
{
	long long cache = LOG_CACHE;
	int touch = 1;

	/* Touches every page, so that no page fault is measured. */
	if (pmem.ctl_set(NULL, "prefault.at_create", &touch) ||
	    pmem.ctl_set(NULL, "prefault.at_open", &touch))
		return pool_fail(pool, path);
	if (!access(path, F_OK)) {
		pool->pop = pmem.open(path, LAYOUT);
	} else {
		if (replica && write_set(pool, options, path, size))
			return -1;
		pool->pop = pmem.create(path, LAYOUT, replica ? 0 : pool_size(size), 0600);
	}
	if (!pool->pop || pmem.ctl_set(pool->pop, "tx.cache.size", &cache))
		return pool_fail(pool, path);
	return 0;
}

/* Opens the root object. The library puts a header before it, so memory begins at the next page. */
static int open_root(struct pool *pool, size_t size, void **memory)
{
	PMEMoid root = pmem.root(pool->pop, size + POOL_PAGE);
	uintptr_t at;

	if (OID_IS_NULL(root))
		return pool_fail(pool, "root object");
	at = (uintptr_t)pmem.direct(root);
	*memory = (void *)((at + POOL_PAGE - 1) & ~(uintptr_t)(POOL_PAGE - 1));
	return 0;
}

static void describe_pool(struct pool *pool, bool replica)
{
	char *text = pool->engine.setup;
	size_t used;

	used = (size_t)snprintf(text, ENGINE_SETUP, "libpmemobj (API %d.%d), %stx.cache.size=%d",
	                        PMEMOBJ_MAJOR_VERSION, PMEMOBJ_MINOR_VERSION,
	                        replica ? "a pool set with a REPLICA beside it, " : "", LOG_CACHE);
	for (unsigned i = 0; i < SETTINGS && used < ENGINE_SETUP; i++)
		used += (size_t)snprintf(text + used, ENGINE_SETUP - used, ", %s=%s",
		                         settings[i][0], getenv(settings[i][0]));
}

static int pool_open(struct engine *engine, const struct engine_options *options, size_t size,
                     void **memory)
{
	struct pool *pool = (struct pool *)engine;
	bool replica = engine->ops == &engine_pmemobj_replica;
	char path[PEER_PATH];

	if (peer_path(engine, options, replica ? "pmemobj.set" : "pmemobj", path) ||
	    load_library(pool) || open_pool(pool, options, path, size, replica) ||
	    open_root(pool, size, memory))
		return -1;
	describe_pool(pool, replica);
	return 0;
}

/* --- transactions -------------------------------------------------------------------- */

static int pool_begin(struct engine *engine)
{
	struct pool *pool = (struct pool *)engine;

	return pmem.tx_begin(pool->pop, NULL, TX_PARAM_NONE) ? pool_fail(pool, "begin") : 0;
}

static int pool_range(struct engine *engine, const void *addr, size_t len)
{
	if (__builtin_expect(pmem.tx_add_range_direct(addr, len), 0))
		return pool_fail((struct pool *)engine, "range");
	return 0;
}

static int pool_commit(struct engine *engine)
{
	pmem.tx_commit();
	return pmem.tx_end() ? pool_fail((struct pool *)engine, "commit") : 0;
}

#define POOL_OPS                                                               \
	.survives = "process", .size = sizeof(struct pool), .open = pool_open, \
	.begin = pool_begin, .range = pool_range, .commit = pool_commit, .close = pool_close

const struct engine_ops engine_pmemobj = { .name = "pmemobj", POOL_OPS };
const struct engine_ops engine_pmemobj_replica = { .name = "pmemobj-replica", POOL_OPS };
