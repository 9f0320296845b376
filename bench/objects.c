/*
 * objects - measures allocating and freeing objects in transactions: with the library's heap, with
 * malloc and a segment, and with libpmemobj. The ways take turns, each on its own store.
 */
#include "clock.h"
#include "fabric.h"
#include "measure.h"
#include "options.h"
#include "work.h"
#include "../client/perseas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 64, KEPT = 1024, MANY = 256, MAKE_MS = 30000, POOL = 64 << 20 };

static struct options {
	const char *mirrors, *store, *fabric, *pool;
	uint64_t cpu, rounds;
	uint32_t round_ms;
	bool flush, json;
} options = { .cpu = UINT64_MAX };

static const char about[] =
	"Objects of 64 bytes are allocated and freed, and 8 bytes are stored in each:\n\n"
	"  heap          a transaction frees one of 1,024 objects and allocates another\n"
	"  ranges        what that stores, and no heap: set_range of an object's bytes and of\n"
	"                a word of bits\n"
	"  pmemobj       as heap, with libpmemobj, on the file of --pool\n"
	"  heap-many     a transaction allocates 256 objects, and another frees them\n"
	"  malloc-many   malloc of 256 objects and set_range of as many bytes of a segment for\n"
	"                each, in a transaction; then free of the objects\n";

static const struct ps_option rows[] = {
	{ "mirrors", PS_OPTION_TEXT, AT(mirrors), "LIST", .help = "Where the stores are." },
	{ "store", PS_OPTION_TEXT, AT(store), "NAME", "objects",
	  .help = "With what the stores' names begin." },
	{ "pool", PS_OPTION_TEXT, AT(pool), "FILE", .help = "Made for libpmemobj, and removed." },
	{ "flush", PS_OPTION_FLAG, AT(flush),
	  .help = "libpmemobj flushes the processor's caches, as it does where they do not outlive "
	          "what it is to survive. Without, what it commits survives its process, as in the "
	          "library's store." },
	CPU_OPTION_ROW,
	FABRIC_OPTION_ROW,
	ROUND_OPTION_ROWS,
	JSON_OPTION_ROW,
};

static struct way {
	const char *name;
	int (*open)(struct way *way);
	int (*step)(void *way);
	perseas_t *p;
	perseas_heap_t *heap;
	uint8_t *memory;     /* a segment for objects */
	uint64_t *words;     /* a segment for bits */
	void *kept[KEPT];    /* allocated objects */
	uint64_t offs[KEPT]; /* offsets of allocated objects in libpmemobj's pool */
	unsigned next;
} ways[5];

/* --- the heap --- */

static int open_store(struct way *way)
{
	struct perseas_options how = PERSEAS_OPTIONS_INIT;
	struct perseas_heap_options heap = PERSEAS_HEAP_OPTIONS_INIT;
	char name[64];
	void *memory, *words;

	snprintf(name, sizeof(name), "%s-%s", options.store, way->name);
	how.flags = PERSEAS_CREATE;
	how.connect_timeout_ms = MAKE_MS;
	heap.flags = PERSEAS_HEAP_CREATE;
	if (perseas_open(name, options.mirrors, &how, &way->p))
		return program_fail("open", perseas_message(NULL));
	if (perseas_heap_open(way->p, "objects", &heap, &way->heap) ||
	    perseas_map(way->p, "segment", KEPT * SIZE, &memory) ||
	    perseas_map(way->p, "words", KEPT / 8, &words) || perseas_publish(way->p))
		return program_fail("open", perseas_message(way->p));
	way->memory = memory;
	way->words = words;
	return fabric_check(way->p, options.fabric);
}

static int one(void *ctx)
{
	struct way *way = ctx;
	void **object = &way->kept[way->next++ % KEPT];
	perseas_tx_t *tx;
	int rc = perseas_begin(way->p, 0, &tx);

	if (!rc)
		rc = perseas_free(tx, way->heap, *object);
	if (!rc)
		rc = perseas_alloc(tx, way->heap, SIZE, 1, object);
	if (rc)
		return rc;
	memcpy(*object, &way->next, sizeof(way->next));
	return perseas_commit(tx, 0);
}

static int ranges(void *ctx)
{
	struct way *way = ctx;
	const unsigned place = way->next++ % KEPT;
	uint8_t *object = way->memory + (size_t)place * SIZE;
	uint64_t *word = &way->words[place / 64];
	perseas_tx_t *tx;
	int rc = perseas_begin(way->p, 0, &tx);

	if (!rc)
		rc = perseas_set_range(tx, object, SIZE);
	if (!rc)
		rc = perseas_set_range(tx, word, sizeof(*word));
	if (rc)
		return rc;
	memcpy(object, &way->next, sizeof(way->next));
	*word ^= (uint64_t)1 << place % 64;
	return perseas_commit(tx, 0);
}

static int many(void *ctx)
{
	struct way *way = ctx;
	perseas_tx_t *tx;
	int rc = perseas_begin(way->p, 0, &tx);

	for (unsigned i = 0; i < MANY && !rc; i++) {
		rc = perseas_alloc(tx, way->heap, SIZE, 1, &way->kept[i]);
		if (!rc)
			memcpy(way->kept[i], &way->next, sizeof(way->next));
	}
	if (!rc)
		rc = perseas_commit(tx, 0);
	if (!rc)
		rc = perseas_begin(way->p, 0, &tx);
	for (unsigned i = 0; i < MANY && !rc; i++)
		rc = perseas_free(tx, way->heap, way->kept[i]);
	return rc ? rc : perseas_commit(tx, 0);
}

static int many_by_malloc(void *ctx)
{
	struct way *way = ctx;
	perseas_tx_t *tx;
	int rc = perseas_begin(way->p, 0, &tx);

	for (unsigned i = 0; i < MANY && !rc; i++) {
		way->kept[i] = malloc(SIZE);
		if (!way->kept[i])
			return PERSEAS_ENOMEM;
		rc = perseas_set_range(tx, way->memory + i * SIZE, SIZE);
		memcpy(way->memory + i * SIZE, &way->kept[i], sizeof(void *));
	}
	if (!rc)
		rc = perseas_commit(tx, 0);
	for (unsigned i = 0; i < MANY; i++)
		free(way->kept[i]);
	return rc;
}

/* --- libpmemobj --- */

/* Declared here as in libpmemobj's manual, because its headers may be missing where this program is
 * built. */
struct oid {
	uint64_t pool, off;
};

static struct {
	void *(*create)(const char *path, const char *layout, size_t size, mode_t mode);
	void (*close)(void *pool);
	void *(*direct)(struct oid oid);
	int (*tx_begin)(void *pool, void *env, ...);
	struct oid (*tx_alloc)(size_t size, uint64_t type);
	int (*tx_free)(struct oid oid);
	void (*tx_commit)(void);
	int (*tx_end)(void);
	void *pool;
} pmem;

static int open_pool(struct way *way)
{
	void *library;

	(void)way;
	/* The pool is in memory that outlives the process, so nothing has to be flushed. */
	setenv("PMEM_IS_PMEM_FORCE", "1", 1);
	setenv("PMEM_NO_FLUSH", options.flush ? "0" : "1", 1);
	setenv("PMEM_NO_MOVNT", "1", 1);
	library = dlopen("libpmemobj.so.1", RTLD_NOW);
	if (!library)
		return program_fail("libpmemobj", dlerror());
#define LOOK_UP(name) *(void **)&pmem.name = dlsym(library, "pmemobj_" #name)
	LOOK_UP(create);
	LOOK_UP(close);
	LOOK_UP(direct);
	LOOK_UP(tx_begin);
	LOOK_UP(tx_alloc);
	LOOK_UP(tx_free);
	LOOK_UP(tx_commit);
	LOOK_UP(tx_end);
	unlink(options.pool);
	pmem.pool = pmem.create(options.pool, "objects", POOL, 0600);
	return pmem.pool ? 0 : program_fail("libpmemobj", "no pool could be made");
}

static int one_by_pmemobj(void *ctx)
{
	struct way *way = ctx;
	uint64_t *off = &way->offs[way->next % KEPT];
	struct oid oid = { (uint64_t)(uintptr_t)way->kept[way->next % KEPT], *off };
	int rc = pmem.tx_begin(pmem.pool, NULL, 0);

	if (!rc && oid.off)
		rc = pmem.tx_free(oid);
	if (!rc)
		oid = pmem.tx_alloc(SIZE, 1);
	if (!rc && oid.off)
		memcpy(pmem.direct(oid), &way->next, sizeof(way->next));
	if (!rc)
		pmem.tx_commit();
	pmem.tx_end();
	*off = oid.off;
	way->kept[way->next++ % KEPT] = (void *)(uintptr_t)oid.pool;
	return rc || !oid.off ? PERSEAS_ESYSTEM : 0;
}

static struct way ways[] = {
	{ .name = "heap", .open = open_store, .step = one },
	{ .name = "heap-many", .open = open_store, .step = many },
	{ .name = "malloc-many", .open = open_store, .step = many_by_malloc },
	{ .name = "ranges", .open = open_store, .step = ranges },
	{ .name = "pmemobj", .open = open_pool, .step = one_by_pmemobj },
};

/* --- all ways --- */

static struct measured *measured[sizeof(ways) / sizeof(ways[0])];
static unsigned way_count = sizeof(ways) / sizeof(ways[0]);

static int measure_all(void)
{
	const struct measured *failed;
	const struct measure_plan plan = { .rounds = options.rounds,
		                           .seconds = options.round_ms / 1e3 };

	for (unsigned i = 0; i < way_count; i++)
		if (measure_warm_up(measured[i], plan.seconds))
			return program_fail(ways[i].name, perseas_message(ways[i].p));
	failed = measure_in_turn(measured, way_count, &plan);
	return failed ? program_fail(failed->name, perseas_error_name(failed->code)) : 0;
}

static void print(void)
{
	struct ps_json json = { .out = stdout };

	if (!options.json) {
		measured_print(stdout, measured, way_count);
		measured_print_ratios(stdout, measured[2], measured[1]);
		measured_print_ratios(stdout, measured[0], measured[3]);
		if (way_count > 4)
			measured_print_ratios(stdout, measured[0], measured[4]);
		return;
	}
	ps_json_begin(&json, NULL, '{');
	ps_json_begin(&json, "ways", '{');
	measured_json_all(&json, measured, way_count);
	ps_json_end(&json, '}');
	ps_json_end(&json, '}');
}

int main(int argc, char **argv)
{
	int status;

	OPTIONS_PARSE(argc, argv);
	if (!options.mirrors)
		return program_fail("--mirrors", "is missing; it lists the mirrors (see --help)");
	way_count -= !options.pool;
	status = program_pin(options.cpu);
	for (unsigned i = 0; i < way_count && !status; i++) {
		measured[i] = measured_new(ways[i].name, ways[i].step, &ways[i]);
		status = ways[i].open(&ways[i]);
	}
	if (!status)
		status = measure_all();
	if (!status)
		print();
	for (unsigned i = 0; i < way_count; i++)
		perseas_close(ways[i].p);
	if (pmem.pool)
		pmem.close(pmem.pool);
	if (options.pool)
		unlink(options.pool);
	measured_free_all(measured, way_count);
	return status;
}
