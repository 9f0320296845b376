/*
 * store_names.c - images whose files were removed or moved under the running daemon: memory has
 * them, and the next daemon would not find them. The loop has stores_check_names() look and
 * stores_mend_names() make them again; claims look for themselves. It must never have a header
 * written for pieces without names: the next daemon would take that for a damaged image.
 */
#include "store_private.h"

#include <stdio.h>
#include <string.h>

/* The small pieces without which the next daemon would not serve the image. */
static const char *const small_pieces[] = { "header" };

static enum memory_name look_up(const struct store *store, const char *name,
                                const struct piece *piece)
{
	struct memory *memory = store->stores->memory;

	if (!memory->ops->look_up)
		return MEMORY_NAMED;
	return memory->ops->look_up(memory, store->name, name, piece);
}

/* Once a piece is removed no daemon will have the image, wherever the others are. */
static enum memory_name worse_name(enum memory_name a, enum memory_name b)
{
	return a > b ? a : b;
}

/* Is the region one that a daemon cannot do without? It makes a promise page from the header. */
static bool is_needed(uint32_t region)
{
	return region != PS_REGION_PROMISE;
}

static enum memory_name image_names(const struct store *store, const struct image *image)
{
	enum memory_name worst = MEMORY_NAMED;
	char name[PIECE_NAME];

	for (uint32_t region = 0; region < PS_REGIONS_MAX; region++) {
		const struct piece *piece = &image->regions[region];

		if (!piece->base || !is_needed(region))
			continue;
		piece_name(name, region, image->generation);
		worst = worse_name(worst, look_up(store, name, piece));
	}
	return worst;
}

static enum memory_name small_names(const struct store *store)
{
	enum memory_name worst = MEMORY_NAMED;

	for (size_t i = 0; i < sizeof(small_pieces) / sizeof(small_pieces[0]); i++)
		worst = worse_name(worst, look_up(store, small_pieces[i], NULL));
	return worst;
}

/* Small pieces are looked for by name alone: they say nothing where the folder was moved. */
static enum memory_name store_names(const struct store *store)
{
	const enum memory_name names = worse_name(image_names(store, &store->image),
	                                          image_names(store, &store->beside));

	return names == MEMORY_NAMED ? small_names(store) : names;
}

bool store_is_removed(const struct store *store)
{
	return store->header && !store->damage[0] && store_names(store) == MEMORY_REMOVED;
}

/* --- headers --- */

/* The open image of this generation; NULL: its pieces were made just now. */
static const struct image *image_at(const struct store *store, uint64_t generation)
{
	if (store->image.generation == generation)
		return &store->image;
	return store->beside.generation == generation ? &store->beside : NULL;
}

int refuse_moved(const struct store *store, struct why *why)
{
	return refuse(why, STATUS(IO),
	              "files of store %s were moved away from the memory directory of this mirror, "
	              "and nothing can be recorded until they are moved back",
	              store->name);
}

static enum memory_name header_names(const struct store *store, const Perseas__Header *header)
{
	const struct image *image = image_at(store, header->generation);
	enum memory_name worst = MEMORY_NAMED;
	char name[PIECE_NAME];

	for (uint32_t region = 0; region < PS_REGIONS_MAX; region++) {
		const struct piece *piece = image ? &image->regions[region] : NULL;

		if (region_size(header, region) == 0 || !is_needed(region))
			continue;
		piece_name(name, region, header->generation);
		worst = worse_name(worst,
		                   look_up(store, name, piece && piece->base ? piece : NULL));
	}
	return worst;
}

bool store_is_moved(const struct store *store)
{
	const struct piece *log = &store->image.regions[PS_REGION_LOG];
	char name[PIECE_NAME];

	piece_name(name, PS_REGION_LOG, store->image.generation);
	return log->base && look_up(store, name, log) == MEMORY_MOVED;
}

int header_find_place(const struct store *store, const Perseas__Header *header, bool *in_memory,
                      struct why *why)
{
	const enum memory_name names = header_names(store, header);

	*in_memory = names == MEMORY_REMOVED && store->header &&
	             header->generation == store->image.generation;
	if (names == MEMORY_NAMED || *in_memory)
		return 0;
	if (names == MEMORY_MOVED)
		return refuse_moved(store, why);
	return refuse(
		why, STATUS(IO),
		"files of store %s were removed from the memory directory of this mirror while "
		"they were made; try again",
		store->name);
}

/* --- making them again --- */

/* Puts small pieces back where all others are in place. Returns false if that is not enough. */
static bool mend_small(struct store *store)
{
	const struct piece *log = &store->image.regions[PS_REGION_LOG];
	struct memory *memory = store->stores->memory;
	struct why why = { .text = "" };
	Perseas__Header *header;
	char name[PIECE_NAME];

	if (image_names(store, &store->image) != MEMORY_NAMED)
		return false;
	piece_name(name, PS_REGION_LOG, store->image.generation);
	if (memory->ops->adopt)
		memory->ops->adopt(memory, store->name, name, log);
	if (header_edit(store->header, &header, &why) || header_commit(store, header, &why))
		return false;
	return store_names(store) == MEMORY_NAMED;
}

/* Is there room for the image a second time? Removed files take theirs until they are closed. */
static bool has_room(const struct store *store)
{
	struct memory *memory = store->stores->memory;

	return !memory->ops->room || memory->ops->room(memory) >= ps_header_bytes(store->header);
}

/* Tells when it begins and when it is over. text: "": the files are in place. */
static void note_names(struct store *store, const char *text)
{
	const bool were = !store->astray[0], are = !text[0];

	snprintf(store->astray, sizeof(store->astray), "%s", text);
	if (were == are)
		return;
	store->stores->miscounted = true;
	store_tell(store, are ? STORE_FILES_BACK : STORE_FILES_MISSING, NULL, 0, 0);
}

/* trouble: why the directory cannot be used. Returns true if the image can be copied. */
static bool judge_names(struct store *store, enum memory_name names, const char *trouble)
{
	const bool room = names != MEMORY_REMOVED || has_room(store);
	char text[NAMES_TEXT + 160] = "";

	if (names == MEMORY_MOVED)
		snprintf(text, sizeof(text), "a restart would not find its files: %s",
		         *trouble ? trouble : "they were moved; move them back");
	else if (names == MEMORY_REMOVED && !*trouble && room)
		snprintf(text, sizeof(text), "its files were removed, and are being made again");
	else if (names == MEMORY_REMOVED)
		snprintf(text, sizeof(text), "its files were removed, and are not made again: %s",
		         *trouble ? trouble : "there is no memory for the image twice");
	note_names(store, text);
	return names == MEMORY_REMOVED && !*trouble && room;
}

bool store_check_names(struct store *store)
{
	struct memory *memory = store->stores->memory;
	char trouble[NAMES_TEXT] = "";
	enum memory_name names;
	bool mendable;

	if (store->stores->closing)
		return false;
	if (!store->header || store->damage[0]) {
		store->astray[0] = '\0'; /* there is nothing to lose */
		return false;
	}
	if (memory->ops->settle)
		(void)memory->ops->settle(memory, trouble, sizeof(trouble));
	names = store_names(store);
	/* In place, but in a directory that the next daemon does not look at. */
	if (names == MEMORY_NAMED && *trouble)
		names = MEMORY_MOVED;
	mendable = judge_names(store, names, trouble);
	if (names == MEMORY_REMOVED && !*trouble && mend_small(store))
		mendable = judge_names(store, MEMORY_NAMED, trouble);
	return mendable;
}

static void mend_store(struct store *store)
{
	struct why why = { .text = "" };
	char text[NAMES_TEXT];

	if (!store_check_names(store))
		return;
	if (store_copy_aside(store, &why) == 0) {
		(void)store_check_names(store);
		return;
	}
	snprintf(text, sizeof(text), "its files were removed, and are not made again: %.300s",
	         why.text);
	note_names(store, text);
}

static bool has_astray(const struct stores *stores)
{
	for (const struct store *store = stores->first; store; store = store->next)
		if (store->astray[0])
			return true;
	return false;
}

bool stores_check_names(struct stores *stores, bool *again)
{
	bool mendable = false;

	*again = false;
	for (struct store *store = stores->first; store; store = store->next) {
		if (!store->job)
			mendable |= store_check_names(store);
		*again |= store->job || store->astray[0];
	}
	*again |= stores->miscounted;
	return mendable || (stores->miscounted && !has_astray(stores));
}

void stores_mend_names(struct stores *stores)
{
	struct memory *memory = stores->memory;

	for (struct store *store = stores->first; store; store = store->next)
		mend_store(store);
	if (has_astray(stores))
		return;
	if (stores->miscounted && memory->ops->recount)
		memory->ops->recount(memory);
	stores->miscounted = false;
}
