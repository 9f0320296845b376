/*
 * spill_heap.c - spill files as buffers in the heap. The store logic calls it through struct
 * spill. It must keep what a file system keeps after a crash, and no more.
 */
#include "spill_heap.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct heap_spill {
	struct heap_spill *next;
	char store[80];
	uint8_t *bytes;
	size_t len;
	bool aside;
};

struct spill_heap {
	struct spill spill;
	struct heap_spill *first;
	struct heap_spill *out; /* being written: in no list */
	const struct heap_spill *in;
	size_t at; /* of what is read */
	uint64_t room;
	bool frozen;
	bool moved; /* the path of the directory leads to another one */
	void (*hook)(void *arg);
	void *hook_arg;
};

static struct spill_heap *heap_of(struct spill *spill)
{
	return (struct spill_heap *)spill;
}

static int failed(struct spill *spill, const char *what)
{
	snprintf(spill->trouble, sizeof(spill->trouble), "%s", what);
	return -1;
}

static void change(struct spill_heap *heap)
{
	if (heap->hook)
		heap->hook(heap->hook_arg);
}

static struct heap_spill *find(const struct spill_heap *heap, const char *store)
{
	for (struct heap_spill *at = heap->first; at; at = at->next)
		if (!at->aside && strcmp(at->store, store) == 0)
			return at;
	return NULL;
}

static struct heap_spill *make(const char *store)
{
	struct heap_spill *made = calloc(1, sizeof(*made));

	assert(made);
	snprintf(made->store, sizeof(made->store), "%s", store);
	return made;
}

static void append(struct heap_spill *to, const void *bytes, size_t len)
{
	to->bytes = realloc(to->bytes, to->len + len + 1);
	assert(to->bytes);
	memcpy(to->bytes + to->len, bytes, len);
	to->len += len;
}

static void discard(struct heap_spill *spill)
{
	if (!spill)
		return;
	free(spill->bytes);
	free(spill);
}

static void unlink_spill(struct spill_heap *heap, struct heap_spill *spill)
{
	struct heap_spill **link = &heap->first;

	while (*link != spill)
		link = &(*link)->next;
	*link = spill->next;
	discard(spill);
}

static uint64_t used(const struct spill_heap *heap)
{
	uint64_t bytes = heap->out ? heap->out->len : 0;

	for (const struct heap_spill *at = heap->first; at; at = at->next)
		bytes += at->len;
	return bytes;
}

static int room(struct spill *spill, uint64_t *bytes)
{
	uint64_t taken = used(heap_of(spill));

	*bytes = taken < heap_of(spill)->room ? heap_of(spill)->room - taken : 0;
	return 0;
}

static int begin(struct spill *spill, const char *store)
{
	change(heap_of(spill));
	discard(heap_of(spill)->out);
	heap_of(spill)->out = make(store);
	return 0;
}

static int write_bytes(struct ps_archive_sink *sink, const void *bytes, size_t len)
{
	struct spill *spill = (struct spill *)((char *)sink - offsetof(struct spill, sink));
	struct spill_heap *heap = heap_of(spill);

	change(heap);
	if (used(heap) + len > heap->room)
		return failed(spill, "no space left");
	append(heap->out, bytes, len);
	return 0;
}

static int commit(struct spill *spill)
{
	struct spill_heap *heap = heap_of(spill);
	struct heap_spill *old;

	change(heap);
	old = find(heap, heap->out->store);
	if (old)
		unlink_spill(heap, old);
	heap->out->next = heap->first;
	heap->first = heap->out;
	heap->out = NULL;
	change(heap);
	return 0;
}

static void abandon(struct spill *spill)
{
	discard(heap_of(spill)->out);
	heap_of(spill)->out = NULL;
}

static int stores(struct spill *spill, void (*found)(void *arg, const char *store), void *arg)
{
	for (struct heap_spill *at = heap_of(spill)->first; at; at = at->next)
		if (!at->aside)
			found(arg, at->store);
	return 0;
}

static int open_spill(struct spill *spill, const char *store)
{
	struct spill_heap *heap = heap_of(spill);

	heap->in = find(heap, store);
	heap->at = 0;
	return heap->in ? 0 : failed(spill, "no such spill");
}

static long read_bytes(struct ps_archive_source *source, void *bytes, size_t len)
{
	struct spill_heap *heap = heap_of(
		(struct spill *)((char *)source - offsetof(struct spill, source)));
	size_t part = heap->in->len - heap->at;

	part = part < len ? part : len;
	memcpy(bytes, heap->in->bytes + heap->at, part);
	heap->at += part;
	return (long)part;
}

static void close_spill(struct spill *spill)
{
	heap_of(spill)->in = NULL;
}

static int remove_spill(struct spill *spill, const char *store)
{
	struct spill_heap *heap = heap_of(spill);
	struct heap_spill *found = find(heap, store);

	if (!found)
		return 0;
	change(heap);
	if (heap->frozen)
		return failed(spill, "the file system is read-only");
	unlink_spill(heap, found);
	change(heap);
	return 0;
}

static int set_aside(struct spill *spill, const char *store)
{
	struct spill_heap *heap = heap_of(spill);
	struct heap_spill *found = find(heap, store);

	if (!found)
		return 0;
	change(heap);
	if (heap->frozen)
		return failed(spill, "the file system is read-only");
	found->aside = true;
	change(heap);
	return 0;
}

static int restore_directory(struct spill *spill)
{
	return heap_of(spill)->moved ? failed(spill, "heap leads elsewhere") : 0;
}

static int follow_path(struct spill *spill)
{
	heap_of(spill)->moved = false;
	return 0;
}

static const struct spill_ops heap_ops = {
	.restore_directory = restore_directory,
	.follow_path = follow_path,
	.room = room,
	.begin = begin,
	.commit = commit,
	.abandon = abandon,
	.list_stores = stores,
	.open = open_spill,
	.close = close_spill,
	.remove = remove_spill,
	.retire = remove_spill,
	.set_aside = set_aside,
};

struct spill *spill_heap_new(void)
{
	struct spill_heap *heap = calloc(1, sizeof(*heap));

	assert(heap);
	heap->spill.ops = &heap_ops;
	heap->spill.directory = "heap";
	heap->spill.sink.write = write_bytes;
	heap->spill.source.read = read_bytes;
	heap->room = UINT64_MAX;
	return &heap->spill;
}

void spill_heap_free(struct spill *spill)
{
	if (!spill)
		return;
	while (heap_of(spill)->first)
		unlink_spill(heap_of(spill), heap_of(spill)->first);
	abandon(spill);
	free(spill);
}

struct spill *spill_heap_copy(const struct spill *spill)
{
	const struct spill_heap *from = (const struct spill_heap *)spill;
	struct spill *copy = spill_heap_new();

	for (const struct heap_spill *at = from->first; at; at = at->next) {
		struct heap_spill *made = make(at->store);

		append(made, at->bytes, at->len);
		made->aside = at->aside;
		made->next = heap_of(copy)->first;
		heap_of(copy)->first = made;
	}
	return copy;
}

uint8_t *spill_heap_bytes(struct spill *spill, const char *store, size_t *len)
{
	struct heap_spill *found = find(heap_of(spill), store);

	if (found && len)
		*len = found->len;
	return found ? found->bytes : NULL;
}

void spill_heap_put(struct spill *spill, const char *store, const uint8_t *bytes, size_t len)
{
	struct heap_spill *made = make(store), *old = find(heap_of(spill), store);

	append(made, bytes, len);
	if (old)
		unlink_spill(heap_of(spill), old);
	made->next = heap_of(spill)->first;
	heap_of(spill)->first = made;
}

void spill_heap_set_room(struct spill *spill, uint64_t bytes)
{
	heap_of(spill)->room = bytes;
}

void spill_heap_freeze(struct spill *spill, bool frozen)
{
	heap_of(spill)->frozen = frozen;
}

void spill_heap_move(struct spill *spill)
{
	heap_of(spill)->moved = true;
}

void spill_heap_on_change(struct spill *spill, void (*hook)(void *arg), void *arg)
{
	heap_of(spill)->hook = hook;
	heap_of(spill)->hook_arg = arg;
}

static unsigned count(const struct spill *spill, bool aside)
{
	unsigned number = 0;

	for (const struct heap_spill *at = ((const struct spill_heap *)spill)->first; at;
	     at = at->next)
		number += at->aside == aside;
	return number;
}

unsigned spill_heap_count(const struct spill *spill)
{
	return count(spill, false);
}

unsigned spill_heap_aside(const struct spill *spill)
{
	return count(spill, true);
}
