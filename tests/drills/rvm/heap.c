/*
 * heap.c - a program for RDS, which test_rvm.py compiles, runs and kills. It includes only the
 * headers of RVM and RDS, and no other header of the product.
 *
 *   heap LOG DATA create   creates the log, and a segment with a heap
 *   heap LOG DATA grow     adds nodes to a list forever, and removes some; prints the number of
 *                          changes that are permanent
 *   heap LOG DATA check    follows the list, and prints how many changes made it, and its nodes
 *
 * The list and the number are in the static region. Each change is one transaction, including what
 * it allocates or frees.
 */
#include <rds.h>
#include <rds_private.h>
#include <rvm.h>
#include <rvm_segment.h>

#include "patience.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, HEAP = 64 * PAGE, MOST = 100 };
#define AT ((char *)0x7e0000000000)

struct node {
	struct node *next;
	unsigned long number;
	char text[40];
};

struct list {
	struct node *first;
	unsigned long changes, nodes;
};

static void check_heap(int failed, const int *err, const char *what)
{
	if (!failed)
		return;
	fprintf(stderr, "%s: %d: %s\n", what, *err, rds_message());
	exit(1);
}

static void add(rvm_tid_t *tid, struct list *list)
{
	int err;
	struct node *node = (struct node *)rds_malloc(sizeof(*node), tid, &err);

	check_heap(!node, &err, "malloc");
	check(rvm_set_range(tid, node, sizeof(*node)), "set_range");
	node->next = list->first;
	node->number = list->changes;
	snprintf(node->text, sizeof(node->text), "number %lu", node->number);
	list->first = node;
	list->nodes++;
}

static void take_out(rvm_tid_t *tid, struct list *list)
{
	struct node *node = list->first;
	int err;

	list->first = node->next;
	list->nodes--;
	check_heap(rds_free((char *)node, tid, &err), &err, "free");
}

static void change(rvm_tid_t *tid, struct list *list)
{
	begin_transaction(tid);
	check(rvm_set_range(tid, list, sizeof(*list)), "set_range");
	list->changes++;
	if (list->nodes == MOST)
		while (list->nodes > MOST / 2)
			take_out(tid, list);
	else
		add(tid, list);
	if (list->changes % 7 == 0 && list->nodes)
		take_out(tid, list);
	end_transaction(tid, flush);
}

static void grow(struct list *list)
{
	rvm_tid_t *tid = rvm_malloc_tid();

	while (tid) {
		change(tid, list);
		printf("%lu\n", list->changes);
		fflush(stdout);
	}
}

static void tell(const struct list *list)
{
	unsigned long nodes = 0;
	rds_stats_t stats;
	char text[40];

	for (const struct node *node = list->first; node; node = node->next, nodes++) {
		snprintf(text, sizeof(text), "number %lu", node->number);
		if (strcmp(text, node->text) != 0)
			exit(2);
	}
	if (nodes != list->nodes || rds_get_stats(&stats) != SUCCESS ||
	    stats.malloc - stats.free != nodes)
		exit(3);
	printf("%lu %lu\n", list->changes, nodes);
}

int main(int argc, char **argv)
{
	rvm_options_t *options = rvm_malloc_options();
	rvm_offset_t any = RVM_MK_OFFSET(0, 0);
	struct list *list;
	char *place;
	int err;

	if (argc != 4)
		return 2;
	options->log_dev = argv[1];
	options->create_log_file = !strcmp(argv[3], "create");
	check(RVM_INIT(options), "initialize");
	if (options->create_log_file) {
		/* The segment's length and the smallest chunk, as tools of RDS compute them. */
		check_heap(rds_zap_heap(argv[2],
		                        RVM_MK_OFFSET(0, HEAP + PAGE + RVM_SEGMENT_HDR_SIZE), AT,
		                        PAGE, HEAP, 20, sizeof(free_block_t) + sizeof(guard_t),
		                        &err),
		           &err, "zap");
		check_heap(rds_unload_heap(&err), &err, "unload");
	}
	check_heap(rds_load_heap(argv[2], any, &place, &err), &err, "load");
	list = (struct list *)place;
	if (!strcmp(argv[3], "grow"))
		grow(list);
	tell(list);
	check_heap(rds_unload_heap(&err), &err, "unload");
	check(rvm_terminate(), "terminate");
	rvm_free_options(options);
	return 0;
}
