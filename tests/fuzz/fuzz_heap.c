/*
 * fuzz_heap.c - any bytes as the metadata of a heap. Whatever they are, opening, checking, walking,
 * counting, roots, allocating and freeing end, stay inside of the heap, and have errors with names.
 * Where a check finds nothing wrong, all of these must agree, with each other and with what the
 * command counts of the bytes alone.
 *
 * Input: a byte of flags; bytes that say what to do, up to a zero; then head, roots, entries and
 * bitmaps, as many as there are. Flag 1: the head is made right; 2: roots are left out.
 */
#include "../../client/core/handle.h"
#include "../../client/core/deferred_stores.h"
#include "../../client/heap/use.h"
#include "../../client/perseas_heap.h"
#include "../support/env_direct.h"
#include "target.h"

enum { CHUNKS = 6, ROOTS_GIVEN = 3, LIVE_MAX = 64 };
#define DATA_SIZE ((uint64_t)CHUNKS * PS_CHUNK)

static struct {
	perseas_t *p;
	uint8_t *meta, *data;
} store;

struct input {
	const uint8_t *bytes;
	size_t size;
};

/* --- a store with the two segments --- */

static void open_store(void)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct direct *d = direct_new(1, 1);
	struct ps_error error;
	void *data, *meta;

	options.flags = PERSEAS_CREATE;
	options.log_size = 1 << 20;
	options.ring_size = 8 << 20;
	options.spin_us = UINT32_MAX;
	if (!d || direct_open(d, "bank", &options, &store.p, &error) ||
	    perseas_map(store.p, "h.heap.0", DATA_SIZE, &data) ||
	    perseas_map(store.p, "h.meta.0", ps_heap_meta_size(CHUNKS), &meta) ||
	    perseas_publish(store.p))
		abort();
	store.data = data;
	store.meta = meta;
}

/* The heap is closed, and the store is not: no transaction may remember it. */
static void forget_heap(void)
{
	struct ps_handle_attachment *guest = store.p->attachments;

	if (!guest)
		return;
	for (struct perseas_tx *tx = store.p->commit.all_list; tx; tx = tx->next_in_pool)
		ps_deferred_free(tx);
	store.p->attachments = guest->next;
	guest->free(guest);
}

static void take(struct input *input, uint8_t *to, size_t size)
{
	const size_t length = size < input->size ? size : input->size;

	memcpy(to, input->bytes, length);
	input->bytes += length;
	input->size -= length;
}

static void put_metadata(struct input *input, uint8_t flags)
{
	memset(store.meta, 0, ps_heap_meta_size(CHUNKS));
	if (flags & 1)
		ps_heap_head_seal((struct ps_heap_head *)store.meta, 0, CHUNKS);
	else
		take(input, store.meta, sizeof(struct ps_heap_head));
	if (!(flags & 2))
		take(input, store.meta + PS_HEAP_ROOTS, ROOTS_GIVEN * sizeof(struct ps_heap_root));
	take(input, store.meta + PS_HEAP_ENTRIES, CHUNKS * sizeof(struct ps_heap_entry));
	take(input, store.meta + ps_heap_bitmaps_offset(CHUNKS),
	     CHUNKS * PS_CHUNK_WORDS * sizeof(uint64_t));
}

/* --- what is asked of the heap --- */

struct walk {
	perseas_heap_t *heap;
	const uint8_t *end; /* of the object before */
	uint64_t objects, bytes;
	bool sound;
};

static int see(void *arg, const struct perseas_object *object)
{
	struct walk *walk = arg;
	const uint8_t *at = object->addr;
	struct perseas_object again;

	assert(at >= store.data && at < store.data + DATA_SIZE);
	assert(object->size <= (size_t)(store.data + DATA_SIZE - at));
	assert(!walk->end || at >= walk->end);
	walk->end = at + object->size;
	walk->objects++;
	walk->bytes += object->size;
	if (walk->sound) {
		assert(!perseas_object(walk->heap, at, &again));
		assert(again.addr == at && again.size == object->size &&
		       again.type == object->type);
	}
	return 0;
}

static bool is_named(int rc)
{
	return rc == 0 || rc == PERSEAS_EHEAP || rc == PERSEAS_EOBJECT || rc == PERSEAS_ELIMIT ||
	       rc == PERSEAS_ETOOBIG;
}

static void compare(perseas_heap_t *heap, bool sound)
{
	const struct ps_usage_extent extent = { store.meta, ps_heap_meta_size(CHUNKS), DATA_SIZE };
	struct walk walk = { .heap = heap, .sound = sound };
	struct perseas_heap_stat stat;
	struct ps_heap_usage use;
	bool counted = ps_heap_usage_count(&use, "h", &extent, 1);
	int rc = perseas_heap_walk(heap, PERSEAS_ANY_TYPE, see, &walk);

	assert(is_named(rc));
	rc = perseas_heap_stat(heap, &stat);
	assert(is_named(rc));
	assert(counted || use.fault[0]);
	if (sound) {
		assert(counted && !rc);
		assert(stat.objects == walk.objects && stat.used == walk.bytes);
		assert(stat.used + stat.free + stat.gaps == stat.size);
		assert(use.objects == stat.objects && use.used == stat.used);
		assert(use.free == stat.free && use.gaps == stat.gaps);
		assert(use.large == stat.large && use.roots == stat.roots);
		assert(use.longest <= use.free && use.size == stat.size);
		assert(!use.fault[0]);
	}
	ps_heap_usage_free(&use);
}

static void ask_roots(perseas_heap_t *heap)
{
	for (unsigned i = 0; i < ROOTS_GIVEN; i++) {
		const struct ps_heap_root *root = (const void *)(store.meta + PS_HEAP_ROOTS +
		                                                 i * sizeof(*root));
		void *at = NULL;

		if (!root->name[0])
			continue;
		assert(is_named(perseas_root(heap, root->name, root->type, &at)));
		assert(!at ||
		       ((uint8_t *)at >= store.data && (uint8_t *)at < store.data + DATA_SIZE));
	}
}

/* --- what is done to it --- */

struct work {
	perseas_heap_t *heap;
	perseas_tx_t *tx;
	struct perseas_object live[LIVE_MAX]; /* that it was given; addr NULL: none */
};

static int remember(void *arg, const struct perseas_object *object)
{
	struct work *work = arg;

	for (unsigned i = 0; i < LIVE_MAX; i++) {
		if (work->live[i].addr)
			continue;
		work->live[i] = *object;
		return 0;
	}
	return 1;
}

static void get(struct work *work, uint8_t how)
{
	struct perseas_object object;
	void *at;
	int rc = perseas_alloc(work->tx, work->heap, how & 1 ? how * 1000u : how, how >> 6, &at);

	assert(is_named(rc));
	if (rc)
		return;
	assert(!perseas_object(work->heap, at, &object));
	for (unsigned i = 0; i < LIVE_MAX; i++) {
		const uint8_t *other = work->live[i].addr;

		assert(!other || other >= (uint8_t *)at + object.size ||
		       (uint8_t *)at >= other + work->live[i].size);
	}
	memset(at, how, object.size);
}

static void put_back(struct work *work, uint8_t how)
{
	struct perseas_object *object = &work->live[how % LIVE_MAX];
	uint8_t *at = object->addr ? object->addr : store.data + (uint64_t)how * 1024;
	int rc = perseas_free(work->tx, work->heap, at);

	assert(is_named(rc));
	assert(rc || perseas_free(work->tx, work->heap, at) == PERSEAS_EOBJECT);
}

static void work_on(perseas_heap_t *heap, struct input *input, bool sound)
{
	struct work work = { .heap = heap };

	if (sound)
		perseas_heap_walk(heap, PERSEAS_ANY_TYPE, remember, &work);
	while (input->size > 0 && *input->bytes) {
		const uint8_t how = *input->bytes;

		input->bytes++;
		input->size--;
		if (!work.tx && perseas_begin(store.p, 0, &work.tx))
			abort();
		if (how % 4 == 1) {
			put_back(&work, how / 4);
		} else if (how % 16 == 2) {
			if (perseas_commit(work.tx, 0))
				abort();
			work.tx = NULL;
			memset(work.live, 0, sizeof(work.live));
		} else if (how % 16 == 6) {
			perseas_abort(work.tx);
			work.tx = NULL;
		} else {
			get(&work, how);
		}
	}
	if (work.tx)
		perseas_abort(work.tx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	struct input steps, rest;
	perseas_heap_t *heap;
	int rc;

	if (size < 1)
		return 0;
	if (!store.p)
		open_store();
	steps = (struct input){ data + 1, size - 1 };
	for (rest = steps; rest.size > 0 && *rest.bytes; rest.size--)
		rest.bytes++;
	/* The zero. */
	if (rest.size > 0)
		take(&rest, &(uint8_t){ 0 }, 1);
	put_metadata(&rest, data[0]);
	options.most = DATA_SIZE;
	rc = perseas_heap_open(store.p, "h", &options, &heap);
	assert(is_named(rc));
	if (!rc) {
		const bool sound = !perseas_heap_check(heap);

		compare(heap, sound);
		ask_roots(heap);
		work_on(heap, &steps, sound);
		/* A root may lead to what was freed. */
		rc = perseas_heap_check(heap);
		assert(!rc || !sound || !(data[0] & 2));
		compare(heap, !rc && sound);
	}
	forget_heap();
	return 0;
}
