/*
 * store_image.c - the pieces of an image (memory.h): makes, opens, closes, removes and sweeps them.
 * The other store_*.c files call it. It removes only pieces that no header names any more.
 */
#include "store_private.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void image_init(struct image *image)
{
	memset(image, 0, sizeof(*image));
	for (unsigned i = 0; i < PS_REGIONS_MAX; i++)
		image->regions[i].fd = image->regions[i].fd_readonly = -1;
}

void piece_name(char name[PIECE_NAME], uint32_t region, uint64_t generation)
{
	unsigned long long g = generation;

	if (region == PS_REGION_LOG)
		snprintf(name, PIECE_NAME, "log.%llu", g);
	else if (region == PS_REGION_PROMISE)
		snprintf(name, PIECE_NAME, "promise.%llu", g);
	else
		snprintf(name, PIECE_NAME, "segment-%u.%llu", region - PS_REGION_SEGMENT, g);
}

uint64_t region_size(const Perseas__Header *header, uint32_t region)
{
	const Perseas__Segment *segment;

	if (region == PS_REGION_LOG)
		return ps_log_region_size(header);
	if (region == PS_REGION_PROMISE)
		return PS_PAGE;
	if (region < PS_REGION_SEGMENT)
		return 0;
	segment = header_segment(header, region - PS_REGION_SEGMENT);
	return segment ? segment->size : 0;
}

static int refuse_memory(const struct store *store, uint64_t size, struct why *why)
{
	struct memory *memory = store->stores->memory;
	const char *advice = memory->ops->advice ? memory->ops->advice(memory) : NULL;
	const unsigned long long limit = memory->ops->limit(memory);
	char text[32] = "no limit";

	if (limit)
		snprintf(text, sizeof(text), "limit %llu", limit);
	if (!advice)
		advice = limit ? "raise --max-memory or the size of its file system"
		               : "raise the size of its file system";
	return refuse(why, STATUS(NO_MEMORY),
	              "this mirror has no memory for %llu bytes more of store %s (%llu used, %s); "
	              "%s",
	              (unsigned long long)size, store->name,
	              (unsigned long long)memory->ops->used(memory), text, advice);
}

int image_make_region(struct store *store, struct image *image, uint32_t region, uint64_t size,
                      struct why *why)
{
	struct memory *memory = store->stores->memory;
	char name[PIECE_NAME], reason[ERRNO_TEXT];
	int ret;

	assert(region < PS_REGIONS_MAX && size > 0 && !image->regions[region].base);
	if (store_folder_is_renamed(store))
		return refuse_moved(store, why);
	piece_name(name, region, image->generation);
	errno = 0;
	ret = memory->ops->make(memory, store->name, name, size, &image->regions[region]);
	if (ret == -STATUS(NO_MEMORY))
		return refuse_memory(store, size, why);
	if (ret)
		return refuse(
			why, (Perseas__Status)-ret,
			"piece %s of store %s cannot be made%s; look at the memory "
			"directory's file system, and whether its folder %s is perseasd's own",
			name, store->name, errno_text(reason, errno), store->name);
	return 0;
}

int image_make(struct store *store, const Perseas__Header *header, uint64_t generation,
               struct image *image, struct why *why)
{
	image_init(image);
	image->generation = generation;
	for (uint32_t region = 0; region < PS_REGIONS_MAX; region++) {
		uint64_t size = region_size(header, region);
		int ret;

		if (size == 0)
			continue;
		ret = image_make_region(store, image, region, size, why);
		if (ret) {
			image_remove(store, image);
			return ret;
		}
	}
	return 0;
}

int image_open(struct store *store, const Perseas__Header *header, struct image *image, char *text,
               size_t size)
{
	struct memory *memory = store->stores->memory;

	image_init(image);
	image->generation = header->generation;
	for (uint32_t region = 0; region < PS_REGIONS_MAX; region++) {
		struct piece *piece = &image->regions[region];
		uint64_t expected = region_size(header, region);
		char name[PIECE_NAME];
		int ret;

		if (expected == 0)
			continue;
		piece_name(name, region, image->generation);
		ret = memory->ops->open(memory, store->name, name, piece);
		/* A promise page can be made again from the header. */
		if (ret == -STATUS(NO_STORE) && region == PS_REGION_PROMISE)
			ret = memory->ops->make(memory, store->name, name, expected, piece);
		if (ret == 0 && piece->size == expected)
			continue;
		if (ret == 0)
			snprintf(text, size, "%s has %llu bytes instead of %llu", name,
			         (unsigned long long)piece->size, (unsigned long long)expected);
		else if (ret == -STATUS(NO_STORE))
			snprintf(text, size, "%s is missing", name);
		else if (ret == -STATUS(NO_MEMORY))
			store_refuse_unread(store, name);
		else
			snprintf(text, size, "%s cannot be opened", name);
		image_close(store, image);
		return -STATUS(DAMAGED);
	}
	return 0;
}

static void piece_close(struct store *store, struct piece *piece)
{
	struct stores *stores = store->stores;

	if (stores->before_unmap)
		stores->before_unmap(stores->before_unmap_arg, piece);
	stores->memory->ops->close(stores->memory, piece);
}

/* Clears the region before its memory is unmapped, which may take long, so that no other code finds
 * it. */
static void piece_take_out(struct store *store, struct image *image, uint32_t region)
{
	struct piece piece = image->regions[region];

	assert(piece.base);
	memset(&image->regions[region], 0, sizeof(piece));
	image->regions[region].fd = image->regions[region].fd_readonly = -1;
	piece_close(store, &piece);
}

void image_close(struct store *store, struct image *image)
{
	for (uint32_t region = 0; region < PS_REGIONS_MAX; region++)
		if (image->regions[region].base)
			piece_take_out(store, image, region);
	image_init(image);
}

void image_remove_region(struct store *store, struct image *image, uint32_t region)
{
	struct memory *memory = store->stores->memory;
	struct piece *piece = &image->regions[region];
	char name[PIECE_NAME];

	if (!piece->base)
		return;
	piece_take_out(store, image, region);
	piece_name(name, region, image->generation);
	(void)memory->ops->remove(memory, store->name, name);
}

void image_remove(struct store *store, struct image *image)
{
	for (uint32_t region = 0; region < PS_REGIONS_MAX; region++)
		image_remove_region(store, image, region);
	image_init(image);
}

void image_prune(struct store *store, struct image *image, const Perseas__Header *header)
{
	for (uint32_t region = PS_REGION_SEGMENT; region < PS_REGIONS_MAX; region++)
		if (region_size(header, region) == 0)
			image_remove_region(store, image, region);
}

enum memory_sharing image_sharing(const struct store *store, const struct image *image)
{
	struct memory *memory = store->stores->memory;
	enum memory_sharing all = MEMORY_UNSHARED;

	if (!memory->ops->sharing)
		return MEMORY_SHARING_UNKNOWN;
	for (uint32_t region = 0; region < PS_REGIONS_MAX; region++) {
		enum memory_sharing sharing = MEMORY_UNSHARED;

		if (image->regions[region].base && region != PS_REGION_PROMISE)
			sharing = memory->ops->sharing(memory, &image->regions[region]);
		if (sharing == MEMORY_SHARED || sharing == MEMORY_SHARING_UNKNOWN)
			return sharing;
		if (sharing == MEMORY_TRUNCATED)
			all = sharing;
	}
	return all;
}

void image_view(const struct image *image, struct ps_image *view)
{
	const struct piece *log = &image->regions[PS_REGION_LOG];

	memset(view, 0, sizeof(*view));
	view->log = log->base;
	assert(log->base && log->size > PS_RING_OFFSET);
	view->ring_size = log->size - PS_RING_OFFSET;
	for (unsigned i = 0; i < PS_SEGMENTS_MAX; i++) {
		view->segments[i].base = image->regions[PS_REGION_SEGMENT + i].base;
		view->segments[i].size = image->regions[PS_REGION_SEGMENT + i].size;
	}
}

/* Does not assert that slots never go back: owners write the log, also one over shared memory, so a
 * hostile owner could end the daemon and with it every other store. Owners assert it
 * (take_completions() in client/core/mirror.c). */
int image_slot(const struct image *image, struct ps_slot *slot)
{
	const uint8_t *log = image->regions[PS_REGION_LOG].base;
	int index = log ? ps_slot_choose(log, slot) : -1;

	if (index < 0)
		memset(slot, 0, sizeof(*slot));
	return index;
}

void image_write_promise(struct image *image, uint64_t epoch, ProtobufCBinaryData owner)
{
	struct ps_promise *promise = (void *)image->regions[PS_REGION_PROMISE].base;

	if (!promise)
		return;
	memset(promise->owner, 0, sizeof(promise->owner));
	if (owner.len == PS_ID_SIZE)
		memcpy(promise->owner, owner.data, PS_ID_SIZE);
	__atomic_store_n(&promise->epoch, epoch, __ATOMIC_RELEASE);
}

struct sweep {
	struct store *store;
	const Perseas__Header *keep;
	char **names;
	size_t count;
};

static bool is_piece_of(const char *name, const Perseas__Header *keep)
{
	char kept[PIECE_NAME];

	if (!keep)
		return false;
	if (strcmp(name, "header") == 0)
		return true;
	for (uint32_t region = 0; region < PS_REGIONS_MAX; region++) {
		if (region_size(keep, region) == 0)
			continue;
		piece_name(kept, region, keep->generation);
		if (strcmp(name, kept) == 0)
			return true;
	}
	return false;
}

static void add_to_sweep(void *arg, const char *name)
{
	struct sweep *sweep = arg;
	char **names;

	if (is_piece_of(name, sweep->keep))
		return;
	names = realloc(sweep->names, (sweep->count + 1) * sizeof(*names));
	if (!names)
		return;
	sweep->names = names;
	names[sweep->count] = strdup(name);
	if (names[sweep->count])
		sweep->count++;
}

/* Lists all names before it removes any, because a folder must not change while it is read. */
void pieces_sweep(struct store *store, const Perseas__Header *keep)
{
	struct memory *memory = store->stores->memory;
	struct sweep sweep = { .store = store, .keep = keep };

	memory->ops->list_pieces(memory, store->name, add_to_sweep, &sweep);
	for (size_t i = 0; i < sweep.count; i++) {
		(void)memory->ops->remove(memory, store->name, sweep.names[i]);
		free(sweep.names[i]);
	}
	free(sweep.names);
	if (!keep)
		memory->ops->remove_folder(memory, store->name);
}
