/*
 * queue.c - a queue of texts of any length, in a heap of the store.
 *
 *     queue LIST push TEXT | pop | show | fill COUNT | drain COUNT
 */
#include <perseas.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* begin types */
/* The application numbers its types of objects. */
enum { QUEUE = 1, ITEM = 2 };

struct item {
	struct item *next;
	/* The item's text follows. */
};

struct queue {
	struct item *first, *last;
	size_t length;
};
/* end types */

static char *text_of(struct item *item)
{
	return (char *)(item + 1);
}

/* begin open */
/* Commits, or aborts after an error. Only a commit can end the transaction when it fails. */
static int end(perseas_tx_t *tx, int rc)
{
	if (!rc) {
		rc = perseas_commit(tx, 0);
		if (rc == PERSEAS_EINDOUBT || rc == PERSEAS_EFENCED)
			return rc;
	}
	if (rc)
		perseas_abort(tx);
	return rc;
}

/* Opens the queue that the root leads to, and makes both if they do not exist. */
static int open_queue(perseas_t *p, perseas_heap_t **heap, struct queue **queue)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	void *object = NULL;
	perseas_tx_t *tx;
	int rc;

	options.flags = PERSEAS_HEAP_CREATE;
	options.first = 1 << 20; /* bytes; the heap grows when they are used up */
	rc = perseas_heap_open(p, "items", &options, heap);
	if (!rc)
		rc = perseas_root(*heap, "queue", QUEUE, &object);
	if (!rc && !object) {
		rc = perseas_begin(p, 0, &tx);
		if (rc)
			return rc;
		rc = perseas_zalloc(tx, *heap, sizeof(struct queue), QUEUE, &object);
		if (!rc)
			rc = perseas_root_set(tx, *heap, "queue", QUEUE, object);
		rc = end(tx, rc);
	}
	*queue = rc ? NULL : (struct queue *)object;
	return rc;
}
/* end open */

/* begin push */
/* A new object needs no declaration. Each range that changes in older objects does. */
static int push(perseas_tx_t *tx, perseas_heap_t *heap, struct queue *queue, const char *text)
{
	size_t length = strlen(text) + 1;
	struct item *item;
	void *object;
	int rc = perseas_alloc(tx, heap, sizeof(*item) + length, ITEM, &object);

	if (!rc)
		rc = perseas_set_range(tx, queue, sizeof(*queue));
	if (!rc && queue->last)
		rc = perseas_set_range(tx, &queue->last->next, sizeof(queue->last->next));
	if (rc)
		return rc;
	item = (struct item *)object;
	item->next = NULL;
	memcpy(text_of(item), text, length);
	if (queue->last)
		queue->last->next = item;
	else
		queue->first = item;
	queue->last = item;
	queue->length++;
	return 0;
}

static int pop(perseas_tx_t *tx, perseas_heap_t *heap, struct queue *queue)
{
	struct item *item = queue->first;
	int rc;

	if (!item)
		return 0;
	rc = perseas_set_range(tx, queue, sizeof(*queue));
	if (!rc)
		rc = perseas_free(tx, heap, item);
	if (rc)
		return rc;
	queue->first = item->next;
	if (!queue->first)
		queue->last = NULL;
	queue->length--;
	return 0;
}
/* end push */

/* begin step */
/* Pushes a text, or pops if it is NULL, in one transaction. Threads take turns. */
static int step(perseas_t *p, perseas_heap_t *heap, struct queue *queue, const char *text)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(p, PERSEAS_SERIAL, &tx);

	if (rc)
		return rc;
	rc = text ? push(tx, heap, queue, text) : pop(tx, heap, queue);
	return end(tx, rc);
}
/* end step */

/* Reports the step, which is committed: W mirrors hold it. */
static void tell(long number)
{
	printf("%ld\n", number);
	fflush(stdout);
}

/* Pushes the numbers after the last one, and reports each. */
static int fill(perseas_t *p, perseas_heap_t *heap, struct queue *queue, long count)
{
	long next = queue->last ? atol(text_of(queue->last)) + 1 : 0;
	char text[320];
	int rc = 0;

	for (; count > 0 && !rc; count--, next++) {
		/* Each text has another length: */
		snprintf(text, sizeof(text), "%ld %*s", next, (int)(next % 300), "");
		rc = step(p, heap, queue, text);
		if (!rc)
			tell(next);
	}
	return rc;
}

/* Pops these numbers. */
static int drain(perseas_t *p, perseas_heap_t *heap, struct queue *queue, long count)
{
	int rc = 0;

	for (; count > 0 && queue->first && !rc; count--) {
		long number = atol(text_of(queue->first));

		rc = step(p, heap, queue, NULL);
		if (!rc)
			tell(number);
	}
	return rc;
}

static int show(perseas_heap_t *heap, const struct queue *queue)
{
	struct perseas_heap_stat stat;
	int rc = perseas_heap_check(heap);

	if (!rc)
		rc = perseas_heap_stat(heap, &stat);
	if (rc)
		return rc;
	for (struct item *item = queue->first; item; item = item->next)
		printf("%.60s\n", text_of(item));
	printf("%zu items, %llu objects\n", queue->length, (unsigned long long)stat.objects);
	return 0;
}

/* Runs the command of the arguments. */
static int obey(perseas_t *p, char **words)
{
	const char *text = words[1];
	perseas_heap_t *heap;
	struct queue *queue;
	int rc = open_queue(p, &heap, &queue);

	if (rc)
		return rc;
	if (strcmp(words[0], "show") == 0)
		return show(heap, queue);
	if (strcmp(words[0], "fill") == 0)
		return fill(p, heap, queue, atol(text));
	if (strcmp(words[0], "drain") == 0)
		return drain(p, heap, queue, atol(text));
	if (strcmp(words[0], "push") == 0)
		return step(p, heap, queue, text);
	printf("%s\n", queue->first ? text_of(queue->first) : "empty");
	return step(p, heap, queue, NULL);
}

int main(int argc, char **argv)
{
	static const char *const verbs[] = { "pop", "show", "push", "fill", "drain" };
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	perseas_t *p;
	int known = 0, rc;

	for (int i = 0; i < 5 && argc > 2; i++)
		known |= strcmp(argv[2], verbs[i]) == 0 && argc == (i < 2 ? 3 : 4);
	if (!known) {
		fprintf(stderr, "queue LIST push TEXT | pop | show | fill COUNT | drain COUNT\n");
		return 2;
	}
	options.flags = PERSEAS_CREATE;
	rc = perseas_open("queue", argv[1], &options, &p);
	if (rc) {
		fprintf(stderr, "queue: %s\n", perseas_message(NULL));
		return 1;
	}
	rc = obey(p, argv + 2);
	if (rc)
		fprintf(stderr, "queue: %s: %s\n", perseas_error_name(rc), perseas_message(p));
	perseas_close(p);
	return rc != 0;
}
