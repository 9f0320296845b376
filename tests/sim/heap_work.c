/*
 * heap_work.c - objects of a heap come and go in the transactions of simulated applications.
 * work.c and application.c call it. Which objects there must be it keeps by itself: beside each
 * state of the oracle those that are committed, and beside each application what open transactions
 * allocate and free.
 */
#include "heap_work.h"

#include "../../client/core/demand.h"
#include "../../client/core/handle.h"
#include "env_sim.h"
#include "../../client/heap/heap.h"
#include "mistakes.h"
#include "mixed.h"
#include "schedule.h"

enum { OBJECTS_MAX = 48, TYPES = 2 };
#define HEAP_SIZE ((uint64_t)(SIM_EXTENTS - 1) * PS_CHUNK)

/* An object, as the application expects it. */
struct object {
	struct sim_object is;                           /* as its writer has it */
	uint8_t before;                                 /* its value, as it is committed */
	const perseas_tx_t *allocator, *freer, *writer; /* open ones; NULL: none */
};

struct sim_heap {
	perseas_heap_t *handle;
	struct object objects[OBJECTS_MAX]; /* is.size 0: none */
};

static bool is_named(const struct sim_application *a, int rc, const char *what)
{
	if (rc == 0)
		return true;
	/* The log is small, the heap is, too; and it may be unable to grow. */
	if (rc != PERSEAS_ETOOBIG && rc != PERSEAS_ELIMIT && rc != PERSEAS_EFENCED &&
	    rc != PERSEAS_EMIRRORMEM && rc != PERSEAS_EUNREACHABLE && rc != PERSEAS_EBLOCKED)
		sim_unexpected((struct sim_application *)a, what, rc);
	return false;
}

void sim_heap_shape(struct sim_world *w)
{
	struct sim_schedule *s = w->schedule;

	s->heap = w->mistake        ? sim_mistake_heaps(w)
	          : sim_is_mixed(w) ? sim_chance(w, 35)
	                            : w->seed % 16 == 9 || w->seed % 64 == 11;
	if (!s->heap)
		return;
	s->tracks = 0;
	s->trims = !w->mistake ? 8 : sim_mistake_is(w, SIM_MISTAKE_HALVES) ? 15 : 0;
	/* A heap's segments are larger than others, so they are sent in larger pieces. */
	s->window = 65536;
	s->packet = 1400;
	if (w->mistake)
		s->threads = 90;
}

/* --- what there must be --- */

static bool is_taken_back(const struct object *object)
{
	return object->allocator && object->allocator == object->freer;
}

static unsigned data_of(unsigned extent)
{
	return SIM_SEGMENTS + 2 * extent;
}

static uint8_t *address_of(const struct sim_application *a, const struct sim_object *object)
{
	return a->mapped[data_of(object->extent)].base + object->offset;
}

static void place_of(const struct sim_application *a, const void *at, struct sim_object *object)
{
	for (unsigned i = 0; i < SIM_EXTENTS; i++) {
		const struct mapped *m = &a->mapped[data_of(i)];

		if (!m->base || (const uint8_t *)at < m->base ||
		    (const uint8_t *)at >= m->base + m->size)
			continue;
		object->extent = i;
		object->offset = (uint32_t)((const uint8_t *)at - m->base);
		return;
	}
	sim_fail(a->world, "owner %u: an object lies outside of the heap", a->owner->index);
}

static void look(const struct sim_application *a, const struct object *object)
{
	const uint8_t *at = address_of(a, &object->is);

	if (object->is.raw || is_taken_back(object))
		return;
	for (uint32_t i = 0; i < object->is.size; i++)
		if (at[i] != object->is.value)
			sim_fail(a->world, "owner %u: byte %u of the object at %u is %u, not %u",
			         a->owner->index, i, object->is.offset, at[i], object->is.value);
}

struct walk {
	const struct sim_application *a;
	unsigned found;
};

static int walked(void *arg, const struct perseas_object *shown)
{
	struct walk *walk = arg;
	const struct sim_heap *heap = walk->a->heap;
	struct sim_object place;

	place_of(walk->a, shown->addr, &place);
	walk->found++;
	for (unsigned i = 0; i < OBJECTS_MAX; i++) {
		const struct sim_object *is = &heap->objects[i].is;

		if (is->size && is->extent == place.extent && is->offset == place.offset &&
		    is->size == shown->size && is->type == shown->type)
			return 0;
	}
	sim_fail(walk->a->world, "owner %u: the heap has an object at %u that nobody allocated",
	         walk->a->owner->index, place.offset);
	return 1;
}

void sim_heap_check(struct sim_application *a)
{
	struct walk walk = { .a = a };
	unsigned expected = 0;
	int rc;

	if (!a->heap || a->owner->dead)
		return;
	rc = perseas_heap_check(a->heap->handle);
	if (!rc)
		rc = perseas_heap_walk(a->heap->handle, PERSEAS_ANY_TYPE, walked, &walk);
	if (rc) {
		is_named(a, rc, "a check of the heap");
		return;
	}
	/* Another thread may have begun something meanwhile, where memory had to come. */
	if (a->open || a->owner->dead)
		return;
	for (unsigned i = 0; i < OBJECTS_MAX; i++) {
		expected += a->heap->objects[i].is.size != 0;
		if (a->heap->objects[i].is.size && !a->world->schedule->demand)
			look(a, &a->heap->objects[i]);
	}
	if (walk.found != expected)
		sim_fail(a->world, "owner %u: the heap has %u objects, and must have %u",
		         a->owner->index, walk.found, expected);
	sim_count(a->world, SIM_HEAPS, 1);
}

/* --- opening --- */

static void expect_birth(struct sim_application *a);

/* Records that the next extent was published. */
static void bear(void *arg)
{
	struct sim_application *a = arg;
	struct sim_node *node = sim_node_new(a->world, a->at, a->p->epoch, a->p->commit.seq + 1);
	unsigned extent = 0;

	while (node->segments[data_of(extent)].present)
		extent++;
	sim_count(a->world, SIM_GROWN, extent > 0);
	for (unsigned i = data_of(extent); i < data_of(extent + 1); i++) {
		const struct ps_segment *segment = ps_segment_by_name(a->p, sim_segment_name(i));

		if (!segment)
			sim_fail(a->world, "owner %u sends %s, and its heap has no segment %s",
			         a->owner->index, sim_state(a->world, node->epoch, node->seq),
			         sim_segment_name(i));
		sim_node_bear(a->owner, node, i, segment);
		memcpy(sim_node_edit(a->world, node, i), segment->base, segment->size);
		a->mapped[i] = (struct mapped){ segment->base, (uint32_t)segment->size };
	}
	a->at = node;
	/* Another thread may trim or fill the new extent before this thread allocates from it. The
	 * same call then lets the heap grow again. */
	if (!a->owner->tasks[SIM_SECOND].ended)
		expect_birth(a);
}

/* Expects that the running task makes the heap or lets it grow. */
static void expect_birth(struct sim_application *a)
{
	/* If all extents exist, another thread may return one first. */
	a->owner->running->sealing = bear;
	a->owner->running->sealed = a;
}

/* --- giving back --- */

/* Checks that an owner finds both segments of an extent, or neither. */
void sim_heap_shrinks(struct sim_application *a, struct sim_node *node)
{
	for (unsigned i = data_of(1); i < SIM_WHOLE; i++) {
		if (!node->segments[i].present || ps_segment_by_name(a->p, sim_segment_name(i)))
			continue;
		node->segments[i].present = false;
		node->segments[i].bytes = NULL;
		a->mapped[i].base = NULL;
	}
}

int sim_heap_trim(struct sim_application *a)
{
	const uint64_t keep = sim_chance(a->world, 20) ? HEAP_SIZE + 1 : 0;
	uint64_t given;
	int rc = perseas_heap_trim(a->heap->handle, keep, &given);

	if (!a->owner->dead)
		sim_count(a->world, SIM_SHRUNK, given != 0);
	return rc;
}

static void check_halves(const struct sim_application *a)
{
	for (unsigned i = 0; i < SIM_EXTENTS; i++)
		if (a->at->segments[data_of(i)].present != a->at->segments[data_of(i) + 1].present)
			sim_fail(a->world, "owner %u is shown half of what the heap gave back",
			         a->owner->index);
}

static void remember(struct sim_application *a)
{
	for (unsigned i = 0; i < a->at->object_count; i++)
		a->heap->objects[i] = (struct object){ .is = a->at->objects[i],
			                               .before = a->at->objects[i].value };
}

int sim_heap_open(struct sim_application *a)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	const bool there = a->at->segments[data_of(0)].present;
	perseas_heap_t *handle;
	int rc;

	if (!a->world->schedule->heap || (a->last && !there))
		return GO_ON;
	check_halves(a);
	options.flags = PERSEAS_HEAP_CREATE | PERSEAS_HEAP_MOVED;
	options.first = HEAP_SIZE;
	options.most = 2 * HEAP_SIZE;
	if (!there)
		expect_birth(a);
	rc = perseas_heap_open(a->p, "h", &options, &handle);
	a->owner->running->sealing = NULL;
	if (a->owner->dead || rc == PERSEAS_EFENCED)
		return LEAVE;
	/* The store is then unchanged, or too few mirrors hold the change. */
	if (rc == PERSEAS_EMIRRORMEM || rc == PERSEAS_EUNREACHABLE || rc == PERSEAS_EBLOCKED ||
	    rc == PERSEAS_EINDOUBT)
		return GO_ON;
	if (rc)
		return sim_unexpected(a, "opening the heap", rc);
	a->heap = sim_alloc(a->world, sizeof(*a->heap));
	a->heap->handle = handle;
	remember(a);
	sim_heap_check(a);
	return a->owner->dead ? LEAVE : GO_ON;
}

/* --- in a transaction --- */

static void add(struct sim_application *a, const perseas_tx_t *tx, void *at, bool raw)
{
	struct perseas_object object;
	struct object *place = NULL;
	struct sim_object is = { 0 };

	place_of(a, at, &is);
	if (perseas_object(a->heap->handle, at, &object))
		sim_fail(a->world, "owner %u: what it allocated is no object", a->owner->index);
	for (unsigned i = 0; i < OBJECTS_MAX; i++) {
		struct object *other = &a->heap->objects[i];

		if (!other->is.size)
			place = other;
		else if (is.extent == other->is.extent &&
		         is.offset < other->is.offset + other->is.size &&
		         other->is.offset < is.offset + object.size)
			sim_fail(a->world, "owner %u: %u is given out, and an object has it",
			         a->owner->index, is.offset);
	}
	is.size = (uint32_t)object.size;
	is.type = object.type;
	is.value = (uint8_t)sim_draw(a->world);
	is.raw = raw;
	*place = (struct object){ .is = is, .allocator = tx, .writer = tx };
	if (!raw)
		memset(at, place->is.value, object.size);
	sim_count(a->world, SIM_OBJECTS, 1);
}

static bool has_room(const struct sim_heap *heap)
{
	unsigned used = 0;

	for (unsigned i = 0; i < OBJECTS_MAX; i++)
		used += heap->objects[i].is.size != 0;
	/* Two threads may allocate at once. */
	return used + 2 < OBJECTS_MAX;
}

/* Draws a size. Few sizes are used, since each size and type takes a chunk. */
static uint32_t draw_size(struct sim_world *w)
{
	static const uint32_t sizes[] = { 40, 40, 250 };

	return sizes[sim_below(w, 3)] - (uint32_t)sim_below(w, 8);
}

static void allocate(struct sim_application *a, perseas_tx_t *tx)
{
	struct sim_world *w = a->world;
	const bool raw = sim_chance(w, 5);
	const uint64_t type = sim_below(w, TYPES);
	void *at;
	int rc;

	if (!has_room(a->heap))
		return;
	expect_birth(a);
	rc = raw ? perseas_reserve(tx, a->heap->handle, PS_CLASS_MAX + 1, type, &at)
	         : perseas_alloc(tx, a->heap->handle, draw_size(w), type, &at);
	a->owner->running->sealing = NULL;
	if (is_named(a, rc, "alloc"))
		add(a, tx, at, raw);
}

static bool is_free_for(const struct object *object, const perseas_tx_t *tx)
{
	return !object->freer && (!object->allocator || object->allocator == tx) &&
	       (!object->writer || object->writer == tx);
}

/* Picks an object that the transaction may change, or NULL. */
static struct object *pick(struct sim_application *a, const perseas_tx_t *tx)
{
	for (unsigned tries = 0; tries < 10; tries++) {
		struct object *object = &a->heap->objects[sim_below(a->world, OBJECTS_MAX)];

		if (object->is.size && is_free_for(object, tx))
			return object;
	}
	return NULL;
}

static void release_one(struct sim_application *a, perseas_tx_t *tx, struct object *object)
{
	/* Marks the object, so that no other thread takes it while this one waits for memory. */
	object->freer = tx;
	if (!is_named(a, perseas_free(tx, a->heap->handle, address_of(a, &object->is)), "free"))
		object->freer = NULL;
	else
		sim_mistake_heap_freed(a->owner, tx);
}

static void release(struct sim_application *a, perseas_tx_t *tx)
{
	struct object *object = pick(a, tx);

	if (object)
		release_one(a, tx, object);
}

static void change(struct sim_application *a, perseas_tx_t *tx)
{
	struct object *object = pick(a, tx);
	const perseas_tx_t *before;
	uint8_t *at;

	if (!object || object->is.raw)
		return;
	before = object->writer;
	object->writer = tx;
	at = address_of(a, &object->is);
	if (!is_named(a, perseas_set_range(tx, at, object->is.size), "set_range")) {
		object->writer = before;
		return;
	}
	object->is.value = (uint8_t)sim_draw(a->world);
	memset(at, object->is.value, object->is.size);
}

static void resize(struct sim_application *a, perseas_tx_t *tx)
{
	struct object *object = pick(a, tx);
	const perseas_tx_t *before;
	uint8_t *at, value;
	uint32_t size;
	void *to;
	int rc;

	if (!object || object->is.raw || !has_room(a->heap))
		return;
	at = address_of(a, &object->is);
	size = draw_size(a->world);
	value = object->is.value;
	before = object->writer;
	object->writer = object->freer = tx;
	expect_birth(a);
	rc = perseas_realloc(tx, a->heap->handle, at, size, object->is.type, &to);
	a->owner->running->sealing = NULL;
	if (!is_named(a, rc, "realloc"))
		object->writer = before;
	if (rc || to == at) {
		object->freer = NULL;
		return;
	}
	/* The old one is not declared, and some of it may be missing. */
	object->writer = before;
	for (uint32_t i = 0; i < size && i < object->is.size; i++)
		if (((uint8_t *)to)[i] != value)
			sim_fail(a->world, "owner %u: realloc lost byte %u", a->owner->index, i);
	sim_mistake_heap_freed(a->owner, tx);
	add(a, tx, to, false);
}

/* Frees all objects behind the first extent that the transaction may free, so that extents become
 * empty now and then. */
static void release_behind(struct sim_application *a, perseas_tx_t *tx)
{
	for (unsigned i = 0; i < OBJECTS_MAX && !a->owner->dead; i++) {
		struct object *object = &a->heap->objects[i];

		if (object->is.size && object->is.extent > 0 && is_free_for(object, tx))
			release_one(a, tx, object);
	}
}

void sim_heap_fill(struct sim_application *a, perseas_tx_t *tx)
{
	static void (*const steps[])(struct sim_application *, perseas_tx_t *) = {
		allocate, allocate, allocate, release, release, change, resize,
	};

	if (!a->heap || sim_chance(a->world, 20))
		return;
	if (a->world->schedule->trims && sim_chance(a->world, 30)) {
		release_behind(a, tx);
		return;
	}
	for (uint64_t n = sim_between(a->world, 1, 4); n > 0 && !a->owner->dead; n--)
		steps[sim_below(a->world, sizeof(steps) / sizeof(steps[0]))](a, tx);
}

bool sim_heap_changes(const struct sim_application *a, const perseas_tx_t *tx)
{
	for (unsigned i = 0; a->heap && i < OBJECTS_MAX; i++) {
		const struct object *object = &a->heap->objects[i];

		/* An object without declared bytes that was allocated and freed again sends
		 * nothing. */
		if (!object->is.size || (object->is.raw && is_taken_back(object)))
			continue;
		if (object->allocator == tx || object->freer == tx || object->writer == tx)
			return true;
	}
	return false;
}

/* --- its end --- */

void sim_heap_commits(struct sim_application *a, perseas_tx_t *tx)
{
	if (a->heap && tx)
		sim_mistake_heap_commits(a->owner, tx);
}

static void end_object(struct object *object, const perseas_tx_t *tx, bool committed)
{
	if (committed ? object->freer == tx : object->allocator == tx) {
		object->is.size = 0;
		return;
	}
	if (object->allocator == tx)
		object->allocator = NULL;
	if (object->freer == tx)
		object->freer = NULL;
	if (object->writer != tx)
		return;
	object->writer = NULL;
	if (committed)
		object->before = object->is.value;
	else
		object->is.value = object->before;
}

void sim_heap_end(struct sim_application *a, const perseas_tx_t *tx, const struct sim_node *node)
{
	/* A transaction that was sent owns no objects any more, and its handle may be another
	 * thread's. */
	for (unsigned i = 0; a->heap && !node && i < OBJECTS_MAX; i++)
		if (a->heap->objects[i].is.size)
			end_object(&a->heap->objects[i], tx, false);
}

/* Writes the extent's committed metadata into the state: from memory, or, where memory is still
 * missing, the earlier bytes, which nobody changed. */
static void edit_metadata(const struct sim_application *a, struct sim_node *node, unsigned extent)
{
	const unsigned i = data_of(extent) + 1;
	const struct ps_segment *segment = ps_segment_by_name(a->p, sim_segment_name(i));
	uint8_t *to = sim_node_edit(a->world, node, i);
	uint64_t run;
	bool here;

	for (uint64_t at = 0; at < segment->size; at += run) {
		run = ps_demand_uniform_run(a->p, segment, at, segment->size - at, &here);
		if (here)
			memcpy(to + at, segment->base + at, run);
	}
}

static void edit_node(const struct sim_application *a, const perseas_tx_t *tx,
                      struct sim_node *node)
{
	for (unsigned i = 0; i < OBJECTS_MAX; i++) {
		const struct object *object = &a->heap->objects[i];

		if (object->is.size && object->writer == tx && !object->is.raw)
			memcpy(sim_node_edit(a->world, node, data_of(object->is.extent)) +
			               object->is.offset,
			       address_of(a, &object->is), object->is.size);
	}
	for (unsigned extent = 0; extent < SIM_EXTENTS; extent++)
		if (node->segments[data_of(extent) + 1].present)
			edit_metadata(a, node, extent);
}

void sim_heap_seal(struct sim_application *a, const perseas_tx_t *tx, struct sim_node *node)
{
	struct sim_object *list;
	unsigned count = 0;

	/* A publish has no transaction. */
	if (!a->heap || !tx)
		return;
	if (sim_heap_changes(a, tx))
		edit_node(a, tx, node);
	list = sim_alloc(a->world, OBJECTS_MAX * sizeof(*list));
	for (unsigned i = 0; i < OBJECTS_MAX; i++) {
		struct object *object = &a->heap->objects[i];

		if (object->is.size)
			end_object(object, tx, true);
		if (!object->is.size || object->allocator)
			continue;
		list[count] = object->is;
		list[count++].value = object->before;
	}
	node->objects = list;
	node->object_count = count;
}
