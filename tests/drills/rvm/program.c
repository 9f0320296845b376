/*
 * program.c - a program for RVM, which test_rvm.py compiles, runs and kills. It includes only
 * rvm.h, and no other header of the product.
 *
 *   program LOG DATA create        creates the log
 *   program LOG DATA flush         two threads commit forever; prints each number that is permanent
 *   program LOG DATA no_flush      the same with no_flush, and a call of rvm_flush for every tenth
 *   program LOG DATA truncate      writes the external data segment
 *   program LOG DATA check         prints what each thread committed last
 */
#include <rvm.h>

#include "patience.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, PAGES = 4, PAGE = 4096, FAR = 2 * PAGE - sizeof(unsigned long) };

struct worker {
	pthread_t thread;
	int number;
	char *area; /* its number is at the beginning and at the end */
	rvm_mode_t mode;
};

static void transact(rvm_tid_t *tid, struct worker *w, unsigned long i, int goes_well)
{
	begin_transaction(tid);
	check(rvm_set_range(tid, w->area, sizeof(i)), "set_range");
	memcpy(w->area, &i, sizeof(i));
	check(rvm_modify_bytes(tid, w->area + FAR, &i, sizeof(i)), "modify_bytes");
	if (goes_well)
		end_transaction(tid, w->mode);
	else
		check(rvm_abort_transaction(tid), "abort");
}

static void *work(void *arg)
{
	struct worker *w = arg;
	rvm_tid_t *tid = rvm_malloc_tid();
	unsigned long i;

	memcpy(&i, w->area, sizeof(i));
	while (w->area) {
		transact(tid, w, ++i, 1);
		transact(tid, w, i + 1000000, 0);
		if (w->mode == no_flush && i % 10)
			continue;
		if (w->mode == no_flush)
			wait_for_mirrors();
		printf("%d %lu\n", w->number, i);
		fflush(stdout);
	}
	return NULL;
}

static void run(struct worker *workers)
{
	for (int i = 0; i < THREADS; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
}

static void tell(const struct worker *workers)
{
	for (int i = 0; i < THREADS; i++) {
		unsigned long first, last;

		memcpy(&first, workers[i].area, sizeof(first));
		memcpy(&last, workers[i].area + FAR, sizeof(last));
		printf("%d %lu %lu\n", i, first, last);
	}
}

static void create(rvm_options_t *options)
{
	rvm_offset_t length = RVM_LENGTH_TO_OFFSET(1 << 20);

	check(RVM_INIT(NULL), "initialize");
	check(rvm_create_log(options, &length, 0600), "create_log");
}

int main(int argc, char **argv)
{
	rvm_options_t *options = rvm_malloc_options();
	rvm_region_t *region = rvm_malloc_region();
	struct worker workers[THREADS];

	if (argc != 4)
		return 2;
	options->log_dev = argv[1];
	if (!strcmp(argv[3], "create")) {
		create(options);
		return 0;
	}
	options->flags = RVM_ALL_OPTIMIZATIONS;
	check(RVM_INIT(options), "initialize");
	region->data_dev = argv[2];
	check(rvm_map(region, NULL), "map");
	for (int i = 0; i < THREADS; i++) {
		workers[i].number = i;
		workers[i].area = region->vmaddr + (size_t)i * 2 * PAGE;
		workers[i].mode = !strcmp(argv[3], "flush") ? flush : no_flush;
	}
	if (!strcmp(argv[3], "check"))
		tell(workers);
	else if (!strcmp(argv[3], "truncate"))
		truncate_log();
	else
		run(workers);
	check(rvm_unmap(region), "unmap");
	check(rvm_terminate(), "terminate");
	rvm_free_region(region);
	rvm_free_options(options);
	return 0;
}
