/*
 * memory_heap.c - images as pieces of heap memory, with room for failures and crashes that a test
 * asks for. The store logic calls it through struct memory. It must keep the contract as
 * memory_file.c does, or tests of the logic show nothing.
 */
#include "memory_heap_private.h"

#include "../../server/store/status.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 4096 };

static struct heap_piece *find(const struct memory_heap *heap, const char *store, const char *name)
{
	for (struct heap_piece *piece = heap->pieces; piece; piece = piece->next)
		if (!piece->removed && strcmp(piece->store, store) == 0 &&
		    strcmp(piece->name, name) == 0)
			return piece;
	return NULL;
}

static uint64_t used(struct memory *memory)
{
	uint64_t bytes = 0;

	for (struct heap_piece *piece = heap_of(memory)->pieces; piece; piece = piece->next)
		if (!piece->removed || piece->open)
			bytes += piece->size + piece->beyond;
	return bytes;
}

/* Removed pieces that somebody has open. */
static uint64_t kept(struct memory *memory, const char *store)
{
	uint64_t bytes = 0;

	for (struct heap_piece *piece = heap_of(memory)->pieces; piece; piece = piece->next)
		if (piece->removed && piece->open && (!store || !strcmp(piece->store, store)))
			bytes += piece->size + piece->beyond;
	return bytes;
}

static uint64_t beyond(struct memory *memory, const struct piece *piece)
{
	for (struct heap_piece *at = heap_of(memory)->pieces; at; at = at->next)
		if (at->base == piece->base)
			return at->beyond;
	return 0;
}

static uint64_t excess(struct memory *memory)
{
	uint64_t bytes = 0;

	for (struct heap_piece *piece = heap_of(memory)->pieces; piece; piece = piece->next)
		if (piece->open)
			bytes += piece->beyond;
	return bytes;
}

static void trim(struct memory *memory)
{
	for (struct heap_piece *piece = heap_of(memory)->pieces; piece; piece = piece->next)
		piece->beyond = 0;
}

static uint64_t limit(struct memory *memory)
{
	return heap_of(memory)->limit;
}

static uint64_t room(struct memory *memory)
{
	const uint64_t most = limit(memory), taken = used(memory);

	if (!most)
		return UINT64_MAX;
	return taken < most ? most - taken : 0;
}

static bool fails(struct memory_heap *heap)
{
	if (heap->skip > 0) {
		heap->skip--;
		return false;
	}
	if (heap->fail == 0)
		return false;
	heap->fail--;
	return true;
}

static struct heap_piece *insert(struct memory_heap *heap, const char *store, const char *name,
                                 uint64_t size)
{
	struct heap_piece *piece = calloc(1, sizeof(*piece));
	uint64_t rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

	if (!piece)
		return NULL;
	piece->base = aligned_alloc(ALIGNMENT, rounded ? rounded : ALIGNMENT);
	if (!piece->base) {
		free(piece);
		return NULL;
	}
	memset(piece->base, 0, rounded);
	piece->size = size;
	snprintf(piece->store, sizeof(piece->store), "%s", store);
	snprintf(piece->name, sizeof(piece->name), "%s", name);
	piece->next = heap->pieces;
	heap->pieces = piece;
	return piece;
}

/* Frees pieces that were removed and are closed. */
static void sweep(struct memory_heap *heap)
{
	struct heap_piece **link = &heap->pieces;

	if (heap->keep_removed)
		return;
	while (*link) {
		struct heap_piece *piece = *link;

		if (!piece->removed || piece->open) {
			link = &piece->next;
			continue;
		}
		*link = piece->next;
		free(piece->base);
		free(piece);
	}
}

static void change(struct memory_heap *heap)
{
	if (heap->change)
		heap->change(heap->change_arg);
}

static void unlink_piece(struct memory *memory, const char *store, const char *name)
{
	struct heap_piece *piece = find(heap_of(memory), store, name);

	if (piece)
		piece->removed = true;
	sweep(heap_of(memory));
}

static int remove_piece(struct memory *memory, const char *store, const char *name)
{
	change(heap_of(memory));
	unlink_piece(memory, store, name);
	return 0;
}

static void hand_out(const struct memory_heap *heap, struct heap_piece *from, struct piece *piece)
{
	from->open++;
	piece->base = from->base;
	piece->size = from->size;
	piece->fd = heap->fd;
	piece->fd_readonly = heap->fd;
	piece->guard = NULL;
}

static int make(struct memory *memory, const char *store, const char *name, uint64_t size,
                struct piece *piece)
{
	struct memory_heap *heap = heap_of(memory);
	struct heap_piece *made;

	change(heap);
	unlink_piece(memory, store, name);
	if (fails(heap) ||
	    (heap->limit && (size > heap->limit || used(memory) > heap->limit - size)))
		return -STATUS(NO_MEMORY);
	made = insert(heap, store, name, size);
	if (!made)
		return -STATUS(NO_MEMORY);
	hand_out(heap, made, piece);
	return 0;
}

static int open_piece(struct memory *memory, const char *store, const char *name,
                      struct piece *piece)
{
	struct heap_piece *found = find(heap_of(memory), store, name);

	if (!found)
		return -STATUS(NO_STORE);
	hand_out(heap_of(memory), found, piece);
	return 0;
}

static int give(struct memory *memory, const char *store, const char *name,
                const struct piece *piece, int *fd)
{
	const int from = heap_of(memory)->fd;

	(void)store;
	(void)name;
	(void)piece;
	*fd = from < 0 ? -1 : fcntl(from, F_DUPFD_CLOEXEC, 0);
	return 0;
}

static enum memory_name_state look_up(struct memory *memory, const char *store, const char *name,
                                      const struct piece *piece)
{
	const struct heap_piece *found = find(heap_of(memory), store, name);

	if (found && (!piece || found->base == piece->base))
		return MEMORY_NAMED;
	for (found = heap_of(memory)->pieces; piece && found; found = found->next)
		if (found->base == piece->base && !found->removed)
			return MEMORY_MOVED;
	return MEMORY_REMOVED;
}

/* Says whose memory it is: nobody can tell, until a test says otherwise. */
static enum memory_sharing whose(struct memory *memory, const struct piece *piece)
{
	(void)piece;
	return heap_of(memory)->whose;
}

static void close_piece(struct memory *memory, struct piece *piece)
{
	for (struct heap_piece *at = heap_of(memory)->pieces; at; at = at->next) {
		if (at->base != piece->base)
			continue;
		assert(at->open > 0);
		at->open--;
		break;
	}
	memset(piece, 0, sizeof(*piece));
	piece->fd = piece->fd_readonly = -1;
	sweep(heap_of(memory));
}

/* The first one reserves the room of all that follow, but for a heap that does not know how. */
static bool has_room(struct memory *memory, const struct heap_piece *there, size_t len)
{
	const struct memory_heap *heap = heap_of(memory);

	if (!heap->limit || (there && !heap->needs_room))
		return true;
	return len <= heap->limit && used(memory) <= heap->limit - len;
}

static int replace(struct memory *memory, const char *store, const char *name, const void *bytes,
                   size_t len)
{
	struct memory_heap *heap = heap_of(memory);
	struct heap_piece *piece;

	change(heap);
	if (fails(heap))
		return -STATUS(IO);
	if (!has_room(memory, find(heap, store, name), len))
		return -STATUS(NO_MEMORY);
	unlink_piece(memory, store, name);
	piece = insert(heap, store, name, len);
	if (!piece)
		return -STATUS(IO);
	memcpy(piece->base, bytes, len);
	return 0;
}

static int load(struct memory *memory, const char *store, const char *name, uint8_t **bytes,
                size_t *len)
{
	struct heap_piece *piece = find(heap_of(memory), store, name);

	if (!piece)
		return -STATUS(NO_STORE);
	*bytes = malloc(piece->size ? piece->size : 1);
	if (!*bytes)
		return -STATUS(IO);
	memcpy(*bytes, piece->base, piece->size);
	*len = piece->size;
	return 0;
}

/* Returns true if an earlier piece in the list belongs to the same store. */
static bool told(const struct memory_heap *heap, const struct heap_piece *piece)
{
	for (struct heap_piece *at = heap->pieces; at != piece; at = at->next)
		if (!at->removed && strcmp(at->store, piece->store) == 0)
			return true;
	return false;
}

static int stores(struct memory *memory, void (*found)(void *arg, const char *store), void *arg)
{
	for (struct heap_piece *piece = heap_of(memory)->pieces; piece; piece = piece->next)
		if (!piece->removed && piece->store[0] != '.' && !told(heap_of(memory), piece))
			found(arg, piece->store);
	return 0;
}

static void pieces(struct memory *memory, const char *store,
                   void (*found)(void *arg, const char *name), void *arg)
{
	for (struct heap_piece *piece = heap_of(memory)->pieces; piece; piece = piece->next)
		if (!piece->removed && strcmp(piece->store, store) == 0)
			found(arg, piece->name);
}

static void forget(struct memory *memory, const char *store)
{
	(void)memory;
	(void)store;
}

static bool has_store(const struct memory_heap *heap, const char *store)
{
	for (const struct heap_piece *piece = heap->pieces; piece; piece = piece->next)
		if (!piece->removed && strcmp(piece->store, store) == 0)
			return true;
	return false;
}

/* Kept under a name that begins with a dot, as the real one does. */
static int set_aside(struct memory *memory, const char *store, char *where, size_t size)
{
	struct memory_heap *heap = heap_of(memory);
	unsigned number = 1;

	change(heap);
	if (fails(heap) || !has_store(heap, store))
		return -STATUS(IO);
	do
		snprintf(where, size, ".%s.aside-%u", store, number++);
	while (has_store(heap, where));
	for (struct heap_piece *piece = heap->pieces; piece; piece = piece->next)
		if (!piece->removed && strcmp(piece->store, store) == 0)
			snprintf(piece->store, sizeof(piece->store), "%s", where);
	return 0;
}

static void list_set_aside(struct memory *memory, void (*found)(void *arg, const char *name),
                           void *arg)
{
	for (const struct heap_piece *piece = heap_of(memory)->pieces; piece; piece = piece->next)
		if (!piece->removed && *piece->store == '.' && !strcmp(piece->name, "header"))
			found(arg, piece->store);
}

static const uint8_t *boot(struct memory *memory)
{
	return heap_of(memory)->boot;
}

/* Returns true if the store's header was copied there; a header that a daemon wrote was not. */
static bool was_image_copied(struct memory *memory, const char *store, const uint8_t *image_id,
                             uint64_t generation)
{
	const struct heap_piece *header = find(heap_of(memory), store, "header");

	(void)image_id;
	(void)generation;
	return header && header->copied && !heap_of(memory)->trusts_copies;
}

static bool lasts(struct memory *memory, const uint8_t *of)
{
	const struct memory_heap *heap = heap_of(memory);

	return heap->trusts_any_boot || !of || memcmp(of, heap->boot, PS_ID_SIZE) == 0;
}

static void fence(struct memory *memory)
{
	struct memory_heap *heap = heap_of(memory);

	if (heap->hook)
		heap->hook(heap->hook_arg);
}

/* splitmix64: every seed gives another sequence. */
static void draw(uint64_t *random, uint8_t *to, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint64_t z = *random += 0x9e3779b97f4a7c15u;

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
		to[i] = (uint8_t)((z ^ (z >> 31)) >> 11);
	}
}

static void random_bytes(struct memory *memory, void *bytes, size_t len)
{
	draw(&heap_of(memory)->random, bytes, len);
}

static void identity(struct memory *memory, uint8_t *id)
{
	memcpy(id, heap_of(memory)->identity, PS_ID_SIZE);
}

/* Draws the identity from a sequence of its own, which leaves other draws as they are. */
static void draw_identity(struct memory_heap *heap)
{
	uint64_t random = ~heap->random;

	draw(&random, heap->identity, PS_ID_SIZE);
}

static const struct memory_ops heap_ops = {
	.make = make,
	.open = open_piece,
	.close = close_piece,
	.open_shared = give,
	.sharing = whose,
	.look_up = look_up,
	.remove = remove_piece,
	.replace = replace,
	.load = load,
	.list_stores = stores,
	.list_pieces = pieces,
	.remove_folder = forget,
	.set_aside = set_aside,
	.list_set_aside = list_set_aside,
	.was_image_copied = was_image_copied,
	.boot = boot,
	.data_survives = lasts,
	.identity = identity,
	.used = used,
	.piece_excess = beyond,
	.total_excess = excess,
	.trim = trim,
	.removed_bytes = kept,
	.limit = limit,
	.room = room,
	.fence = fence,
	.random = random_bytes,
};

struct memory *memory_heap_new(uint64_t limit_bytes, uint64_t seed)
{
	struct memory_heap *heap = calloc(1, sizeof(*heap));

	if (!heap)
		return NULL;
	heap->memory.ops = &heap_ops;
	heap->limit = limit_bytes;
	heap->random = seed;
	heap->fd = -1;
	heap->boot[0] = 1;
	draw_identity(heap);
	return &heap->memory;
}

void memory_heap_free(struct memory *memory)
{
	if (!memory)
		return;
	for (struct heap_piece *piece = heap_of(memory)->pieces; piece; piece = piece->next) {
		assert(piece->open == 0);
		piece->removed = true;
	}
	memory_heap_keep_removed(memory, false);
	free(memory);
}

struct memory *memory_heap_copy(const struct memory *memory)
{
	const struct memory_heap *from = (const struct memory_heap *)memory;
	struct memory *copy = memory_heap_new(from->limit, from->random);

	if (!copy)
		return NULL;
	memcpy(heap_of(copy)->boot, from->boot, PS_ID_SIZE);
	memcpy(heap_of(copy)->identity, from->identity, PS_ID_SIZE);
	for (const struct heap_piece *piece = from->pieces; piece; piece = piece->next) {
		struct heap_piece *made;

		if (piece->removed)
			continue;
		made = insert(heap_of(copy), piece->store, piece->name, piece->size);
		if (!made) {
			memory_heap_free(copy);
			return NULL;
		}
		memcpy(made->base, piece->base, piece->size);
	}
	return copy;
}

void memory_heap_lose(struct memory *memory, const char *store)
{
	for (struct heap_piece *piece = heap_of(memory)->pieces; piece; piece = piece->next)
		if (!store || strcmp(piece->store, store) == 0)
			piece->removed = true;
	sweep(heap_of(memory));
}

void memory_heap_give(struct memory *memory, const struct piece *piece, struct piece *given)
{
	for (struct heap_piece *at = heap_of(memory)->pieces; at; at = at->next)
		if (at->base == piece->base)
			hand_out(heap_of(memory), at, given);
}

bool memory_heap_lose_piece(struct memory *memory, const char *store, const char *name)
{
	if (!find(heap_of(memory), store, name))
		return false;
	unlink_piece(memory, store, name);
	return true;
}

uint8_t *memory_heap_piece(struct memory *memory, const char *store, const char *name,
                           uint64_t *size)
{
	struct heap_piece *piece = find(heap_of(memory), store, name);

	if (!piece)
		return NULL;
	if (size)
		*size = piece->size;
	return piece->base;
}

bool memory_heap_take(struct memory *memory, const char *store, const char *name, uint64_t bytes)
{
	struct heap_piece *piece = find(heap_of(memory), store, name);

	if (piece)
		piece->beyond += bytes;
	return piece;
}

void memory_heap_reboot(struct memory *memory, uint64_t seed)
{
	struct memory_heap *heap = heap_of(memory);

	heap->random = seed;
	draw_identity(heap);
	for (unsigned i = 0; i < PS_ID_SIZE && ++heap->boot[i] == 0; i++)
		;
}

void memory_heap_keep_removed(struct memory *memory, bool keep)
{
	heap_of(memory)->keep_removed = keep;
	sweep(heap_of(memory));
}
