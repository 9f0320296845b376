/*
 * stress.c - a program for RDS that stores its threads' data in small blocks, which test_rvm.py
 * compiles, runs and kills. It includes only the headers of RVM and RDS, declares the variables of
 * RDS itself, as old programs do, and must not include another header of the product.
 *
 *   stress LOG DATA create   creates the log, and a segment with a heap
 *   stress LOG DATA run      threads change their blocks forever; prints the number of each
 *                            transaction that is permanent
 *   stress LOG DATA gather   the same, with transactions that are delayed and sent together
 *   stress LOG DATA check    compares every byte with the model, in memory and in the file, and
 *                            prints the last number that each thread committed
 *
 * What transaction i of a thread does follows from the thread and i alone. The number of its last
 * committed transaction is recoverable, so the model of that thread can be computed from it.
 */
#include <rds.h>
#include <rvm.h>
#include <rvm_segment.h>

#include "patience.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern rvm_region_def_t *RegionDefs;
extern long NRegionDefs;
extern rvm_bool_t rds_testsw;

enum {
	THREADS = 4,
	SLOTS = 12,
	LONGEST = 300, /* bytes of a block */
	CLEARED = 16,  /* at the beginning of a new block */
	PAGE = 4096,
	HEAP = 24 * PAGE,
	LISTS = 8,
	CHUNK = 32,
};
#define AT ((char *)0x7e0000000000)

struct area { /* in the static region */
	unsigned long count;
	unsigned char *blocks[SLOTS];
};

struct model {
	unsigned long count; /* the last transaction that committed */
	struct slot {
		unsigned long size; /* 0: there is no block */
		unsigned char bytes[LONGEST];
	} slots[SLOTS];
};

struct worker {
	pthread_t thread;
	unsigned number;
	struct area *area;
	struct model model;
	uint64_t random;
	rvm_tid_t *tid; /* NULL: only the model changes */
	bool has_heap;  /* its transaction has changed the heap */
};

/* A transaction that has changed the heap keeps others from it until it ends. */
static pthread_mutex_t heap_turn = PTHREAD_MUTEX_INITIALIZER;

static void fail(const struct worker *w, unsigned long slot, const char *what)
{
	fprintf(stderr, "thread %u, transaction %lu, slot %lu: %s\n", w->number, w->model.count,
	        slot, what);
	_Exit(1);
}

static void check_heap(int failed, const int *err, const char *what)
{
	if (!failed)
		return;
	fprintf(stderr, "%s: %d: %s\n", what, *err, rds_message());
	_Exit(1);
}

/* A number below `limit` (splitmix64). */
static unsigned long draw(struct worker *w, unsigned long limit)
{
	uint64_t z = w->random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) % limit;
}

/* --- what a transaction does, to the model and to memory --- */

static void take_heap_turn(struct worker *w)
{
	if (!w->has_heap)
		pthread_mutex_lock(&heap_turn);
	w->has_heap = true;
}

static void set_block(struct worker *w, unsigned long at, unsigned char *block)
{
	check(rvm_modify_bytes(w->tid, &w->area->blocks[at], &block, sizeof(block)), "modify");
}

static void add_block(struct worker *w, unsigned long at)
{
	static const unsigned char zeros[CLEARED];
	struct slot *slot = &w->model.slots[at];
	unsigned char *block;
	int err;

	memset(slot, 0, sizeof(*slot));
	slot->size = 1 + draw(w, LONGEST);
	for (unsigned long i = 0; i < slot->size; i++)
		slot->bytes[i] = (unsigned char)draw(w, 256);
	if (!w->tid)
		return;
	take_heap_turn(w);
	block = (unsigned char *)rds_malloc(slot->size, w->tid, &err);
	check_heap(!block, &err, "malloc");
	if (memcmp(block, zeros, CLEARED) != 0)
		fail(w, at, "a new block does not begin with zeros");
	set_block(w, at, block);
	check(rvm_modify_bytes(w->tid, block, slot->bytes, slot->size), "modify");
}

static void change_block(struct worker *w, unsigned long at)
{
	struct slot *slot = &w->model.slots[at];
	const unsigned long from = draw(w, slot->size), length = 1 + draw(w, slot->size - from);

	for (unsigned long i = 0; i < length; i++)
		slot->bytes[from + i] = (unsigned char)draw(w, 256);
	if (!w->tid)
		return;
	check(rvm_set_range(w->tid, w->area->blocks[at] + from, length), "set_range");
	memcpy(w->area->blocks[at] + from, slot->bytes + from, length);
}

static void remove_block(struct worker *w, unsigned long at)
{
	int err;

	w->model.slots[at].size = 0;
	if (!w->tid)
		return;
	take_heap_turn(w);
	check_heap(rds_free((char *)w->area->blocks[at], w->tid, &err), &err, "free");
	set_block(w, at, NULL);
}

static void change_slots(struct worker *w)
{
	for (unsigned long steps = 1 + draw(w, 6); steps > 0; steps--) {
		const unsigned long at = draw(w, SLOTS);

		if (!w->model.slots[at].size)
			add_block(w, at);
		else if (draw(w, 3) == 0)
			remove_block(w, at);
		else
			change_block(w, at);
	}
}

static void begin(struct worker *w, unsigned long i)
{
	begin_transaction(w->tid);
	check(rvm_modify_bytes(w->tid, &w->area->count, &i, sizeof(i)), "modify");
}

static void end(struct worker *w, bool goes_well, rvm_mode_t mode)
{
	if (goes_well)
		end_transaction(w->tid, mode);
	else
		check(rvm_abort_transaction(w->tid), "abort");
	if (w->has_heap)
		pthread_mutex_unlock(&heap_turn);
	w->has_heap = false;
}

/* Returns true if transaction i is permanent. */
static bool transact(struct worker *w, unsigned long i)
{
	const struct model before = w->model;
	bool goes_well, is_flushed;

	w->random = (uint64_t)w->number << 32 ^ i;
	goes_well = draw(w, 5) != 0;
	is_flushed = draw(w, 4) == 0;
	if (w->tid)
		begin(w, i);
	change_slots(w);
	w->model.count = i;
	if (w->tid)
		end(w, goes_well, is_flushed ? flush : no_flush);
	if (!goes_well)
		w->model = before;
	return goes_well && is_flushed;
}

/* --- memory against the model --- */

static void verify(const struct worker *w)
{
	if (w->area->count != w->model.count)
		fail(w, 0, "the number is not the model's");
	for (unsigned long at = 0; at < SLOTS; at++) {
		const struct slot *slot = &w->model.slots[at];
		const unsigned char *block = w->area->blocks[at];
		const unsigned long length = slot->size < CLEARED ? CLEARED : slot->size;

		if (!block != !slot->size)
			fail(w, at, "the block is not the model's");
		for (unsigned long i = 0; block && i < length; i++)
			if (block[i] != slot->bytes[i])
				fail(w, at, "a byte is not the model's");
	}
}

/* Makes the model of a thread's last transaction. */
static void attach(struct worker *w, unsigned number, char *place)
{
	w->number = number;
	w->area = (struct area *)place + number;
	for (unsigned long i = 1; i <= w->area->count; i++)
		transact(w, i);
	verify(w);
}

/* Checks that the heap has the threads' blocks and no others: a transaction frees all of them,
 * which checks their guards, finds none left, and is aborted. */
static void verify_heap(const struct worker *workers)
{
	rvm_tid_t *tid = rvm_malloc_tid();
	rds_stats_t stats;
	int err;

	check(rvm_begin_transaction(tid, restore), "begin");
	for (const struct worker *w = workers; w < workers + THREADS; w++)
		for (unsigned long at = 0; at < SLOTS; at++)
			if (w->area->blocks[at])
				check_heap(rds_free((char *)w->area->blocks[at], tid, &err), &err,
				           "free");
	err = rds_get_stats(&stats);
	check_heap(err != SUCCESS, &err, "get_stats");
	if (stats.mallocbytes)
		fail(workers, 0, "the heap has blocks that no thread has");
	check(rvm_abort_transaction(tid), "abort");
	for (const struct worker *w = workers; w < workers + THREADS; w++)
		verify(w);
	rvm_free_tid(tid);
}

/* The file is what memory is after rvm_truncate; it ends with the last page that ever changed. */
static void verify_file(const char *path)
{
	FILE *file;

	truncate_log();
	file = fopen(path, "rb");
	for (long i = 0; i < NRegionDefs; i++) {
		const rvm_region_def_t *def = &RegionDefs[i];
		char bytes[HEAP] = { 0 };

		if (!file || fseek(file, (long)RVM_OFFSET_TO_LENGTH(def->offset), SEEK_SET) ||
		    (fread(bytes, 1, def->length, file), ferror(file)) ||
		    memcmp(bytes, def->vmaddr, def->length) != 0) {
			fprintf(stderr, "region %ld of the file is not what memory is\n", i);
			_Exit(1);
		}
	}
	fclose(file);
}

/* --- the program --- */

static void *work(void *arg)
{
	struct worker *w = arg;

	w->tid = rvm_malloc_tid();
	for (unsigned long i = w->model.count + 1; w->tid; i++) {
		const bool is_permanent = transact(w, i);

		verify(w);
		if (w->number == 0 && i % 40 == 0)
			truncate_log();
		if (!is_permanent)
			continue;
		printf("%u %lu\n", w->number, i);
		fflush(stdout);
	}
	return NULL;
}

static void run(struct worker *workers)
{
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
}

static void tell(const struct worker *workers, const char *path)
{
	verify_heap(workers);
	verify_file(path);
	for (unsigned i = 0; i < THREADS; i++)
		printf("%u %lu\n", i, workers[i].model.count);
}

/* Makes the heap, and loads what is loaded already, as old programs do. */
static void create(char *path)
{
	int err;

	rds_testsw = rvm_true;
	check_heap(rds_zap_heap(path, RVM_MK_OFFSET(0, 0), AT, PAGE, HEAP, LISTS, CHUNK, &err),
	           &err, "zap");
	check_heap(rds_prealloc(100, 50, NULL, &err), &err, "prealloc");
}

static char *load(char *path)
{
	char *place;
	int err;

	check_heap(rds_load_heap(path, RVM_MK_OFFSET(0, 0), &place, &err), &err, "load");
	if (NRegionDefs != 2 || RegionDefs[0].vmaddr != AT || RegionDefs[1].vmaddr != place) {
		fprintf(stderr, "RegionDefs are not the regions of the heap\n");
		_Exit(1);
	}
	return place;
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS];
	rvm_options_t *options = rvm_malloc_options();
	char *place;

	if (argc != 4)
		return 2;
	options->log_dev = argv[1];
	options->create_log_file = !strcmp(argv[3], "create");
	options->flags = !strcmp(argv[3], "gather") ? RVM_ALL_OPTIMIZATIONS : 0;
	check(RVM_INIT(options), "initialize");
	if (options->create_log_file)
		create(argv[2]);
	place = load(argv[2]);
	for (unsigned i = 0; i < THREADS; i++)
		attach(&workers[i], i, place);
	if (!strcmp(argv[3], "run") || !strcmp(argv[3], "gather"))
		run(workers);
	tell(workers, argv[2]);
	check(rvm_terminate(), "terminate");
	rvm_free_options(options);
	return 0;
}
