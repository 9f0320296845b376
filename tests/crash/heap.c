/*
 * heap.c - a heap's metadata at every instant. Each of two lists has a root, and knows how long it
 * is: so an object that the heap has, and no list, was lost, and one that a list has, and not the
 * heap, would be given away. Transactions of both are open at once, and their objects share words
 * of the heap's metadata.
 */
#include "crash.h"

enum { HEAD = 1, NODE = 2, BLOB = 3, LISTS = 2, STEPS = 36 };

struct node {
	struct node *next;
	uint8_t *blob; /* or NULL */
	uint64_t value, sum;
};

struct head {
	struct node *first;
	uint64_t objects; /* nodes and blobs */
};

static const char *const roots[LISTS] = { "one", "two" };

/* --- the workload --- */

static perseas_heap_t *heap_of(struct work *w)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	const uint64_t seq = w->p->commit.seq;
	perseas_heap_t *heap = NULL;

	options.flags = PERSEAS_HEAP_CREATE;
	options.first = 2 * 65536;
	if (perseas_heap_open(w->p, "h", &options, &heap)) {
		printf("    fault: %s: heap: %s\n", w->name, perseas_message(w->p));
		w->broken++;
	}
	if (w->p->commit.seq > seq)
		work_born(w, seq);
	return heap;
}

/* Notes for the model what the transaction stored. */
static void note(struct work *w, struct change *change, const void *at, uint64_t length)
{
	for (unsigned i = 0; i < w->p->segment_count; i++) {
		const struct ps_segment *segment = &w->p->segments[i];
		const uint64_t offset = (uint64_t)((const uint8_t *)at - segment->base);

		if ((const uint8_t *)at < segment->base || offset >= segment->size)
			continue;
		change->ranges[change->count].id = segment->id;
		change->ranges[change->count].offset = offset;
		change->ranges[change->count++].length = (uint32_t)length;
	}
}

/* The heap changes its metadata at the commit, and none of it before. */
static void note_metadata(struct work *w, struct change *change)
{
	for (unsigned i = 0; i < w->p->segment_count; i++)
		if (strstr(w->p->segments[i].name, ".meta."))
			note(w, change, w->p->segments[i].base, w->p->segments[i].size);
}

static void *take(struct work *w, struct change *change, uint64_t size, uint64_t type)
{
	perseas_heap_t *heap = heap_of(w);
	const uint64_t seq = w->p->commit.seq;
	struct perseas_object object;
	void *addr;

	if (perseas_zalloc(change->tx, heap, size, type, &addr) ||
	    perseas_object(heap, addr, &object)) {
		printf("    fault: %s: alloc: %s\n", w->name, perseas_message(w->p));
		w->broken++;
		return NULL;
	}
	if (w->p->commit.seq > seq)
		work_born(w, seq);
	note(w, change, addr, object.size);
	return addr;
}

static struct head *head_of(struct work *w, unsigned list)
{
	void *addr = NULL;

	perseas_root(heap_of(w), roots[list], HEAD, &addr);
	return addr;
}

static void make_head(struct work *w, struct change *change, unsigned list)
{
	void *head = take(w, change, sizeof(struct head), HEAD);

	if (perseas_root_set(change->tx, heap_of(w), roots[list], HEAD, head))
		w->broken++;
}

static void declare(struct work *w, struct change *change, struct head *head)
{
	if (perseas_set_range(change->tx, head, sizeof(*head)))
		w->broken++;
	note(w, change, head, sizeof(*head));
}

static void push(struct work *w, struct change *change, struct head *head)
{
	struct node *node = take(w, change, sizeof(*node), NODE);
	const uint64_t size = 600 + work_draw(w, 3) * 300;

	if (!node)
		return;
	node->next = head->first;
	node->value = work_draw(w, 1 << 20);
	node->sum = node->value * 31 + 7;
	declare(w, change, head);
	head->first = node;
	head->objects++;
	if (work_draw(w, 3) == 0 && (node->blob = take(w, change, size, BLOB)) != NULL) {
		memset(node->blob, (int)node->value, size);
		head->objects++;
	}
}

static void pop(struct work *w, struct change *change, struct head *head)
{
	struct node *node = head->first;
	int rc;

	declare(w, change, head);
	head->first = node->next;
	head->objects -= node->blob ? 2 : 1;
	rc = perseas_free(change->tx, heap_of(w), node->blob);
	if (!rc)
		rc = perseas_free(change->tx, heap_of(w), node);
	if (rc) {
		printf("    fault: %s: free: %s\n", w->name, perseas_message(w->p));
		w->broken++;
	}
}

static void step(struct work *w, struct change *change, unsigned list)
{
	struct head *head = head_of(w, list);

	if (!head) {
		make_head(w, change, list);
		return;
	}
	for (unsigned i = 0; i < 3; i++) {
		if (head->first && work_draw(w, 5) < 2)
			pop(w, change, head);
		else
			push(w, change, head);
	}
}

static void finish(struct work *w, struct change *change)
{
	if (work_draw(w, 5) == 0) {
		work_abort(w, change);
		return;
	}
	note_metadata(w, change);
	work_commit(w, change);
}

static void both_lists(struct work *w, unsigned steps)
{
	static struct change changes[LISTS];

	for (unsigned i = 0; i < steps && !w->broken; i++) {
		for (unsigned list = 0; list < LISTS; list++) {
			work_begin(w, &changes[list]);
			step(w, &changes[list], list);
		}
		for (unsigned list = 0; list < LISTS; list++)
			finish(w, &changes[(list + i) % LISTS]);
	}
}

void run_heap(struct work *w)
{
	static struct change change;

	work_create(w);
	if (!work_open(w))
		return;
	both_lists(w, STEPS / 2);
	work_begin(w, &change);
	step(w, &change, 0);
	work_die(w);
	if (!work_open(w))
		return;
	both_lists(w, STEPS / 2);
	work_close(w);
}

/* --- the same, that shrinks --- */

static void clear(struct work *w, unsigned list)
{
	static struct change change;
	struct head *head = head_of(w, list);

	while (head && head->first && !w->broken) {
		work_begin(w, &change);
		for (unsigned i = 0; i < 6 && head->first; i++)
			pop(w, &change, head);
		note_metadata(w, &change);
		work_commit(w, &change);
	}
}

/* Trims the heap while one list is about to grow in the first segment. */
static void trim(struct work *w)
{
	static struct change change;
	perseas_heap_t *heap = heap_of(w);
	const uint64_t seq = w->p->commit.seq;
	struct head *head = head_of(w, 0);
	uint64_t given = 0;
	int rc;

	work_begin(w, &change);
	if (head)
		declare(w, &change, head);
	rc = perseas_heap_trim(heap, 0, &given);
	if (rc || !given) {
		printf("    fault: %s: trim: %s\n", w->name,
		       rc ? perseas_message(w->p) : "nothing");
		w->broken++;
	}
	if (w->p->commit.seq > seq)
		work_gone(w, seq);
	work_abort(w, &change);
}

void run_heap_shrinks(struct work *w)
{
	work_create(w);
	if (!work_open(w))
		return;
	for (unsigned i = 0; i < 3; i++) {
		both_lists(w, 5);
		clear(w, 0);
		clear(w, 1);
		trim(w);
		if (i != 1)
			continue;
		work_die(w);
		if (!work_open(w))
			return;
	}
	both_lists(w, 2);
	work_close(w);
}

/* --- the check --- */

/* Returns the number of objects in the list, with its head, or 0 after a fault. */
static uint64_t count_list(struct checker *checker, perseas_heap_t *heap, const struct head *head)
{
	struct perseas_object object;
	uint64_t objects = 0;

	for (struct node *node = head->first; node && objects <= head->objects; node = node->next) {
		if (perseas_object(heap, node, &object) || object.type != NODE ||
		    node->sum != node->value * 31 + 7) {
			fault(checker, "a list has a node that is none");
			return 0;
		}
		objects++;
		if (!node->blob)
			continue;
		if (perseas_object(heap, node->blob, &object) || object.type != BLOB ||
		    node->blob[599] != (uint8_t)node->value) {
			fault(checker, "a node has a blob that is none");
			return 0;
		}
		objects++;
	}
	if (objects != head->objects)
		fault(checker, "a list has not as many objects as it says");
	return objects + 1;
}

void check_heap(struct checker *checker, perseas_t *p)
{
	struct perseas_heap_stat stat;
	struct perseas_segment_info info;
	perseas_heap_t *heap;
	uint64_t objects = 0;

	if (perseas_segment(p, "h.meta.0", &info) && perseas_segment(p, "h.heap.0", &info))
		return;
	if (perseas_heap_open(p, "h", NULL, &heap) || perseas_heap_check(heap) ||
	    perseas_heap_stat(heap, &stat)) {
		fault(checker, "heap: %s", perseas_message(p));
		return;
	}
	for (unsigned list = 0; list < LISTS; list++) {
		void *head;

		if (perseas_root(heap, roots[list], HEAD, &head))
			fault(checker, "root: %s", perseas_message(p));
		else if (head)
			objects += count_list(checker, heap, head);
	}
	if (objects != stat.objects)
		fault(checker, "the heap has %llu objects, and its lists have %llu",
		      (unsigned long long)stat.objects, (unsigned long long)objects);
}
