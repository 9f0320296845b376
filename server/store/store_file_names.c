/*
 * store_file_names.c - finds and repairs images whose files were removed or renamed while the
 * daemon runs: it still has them mapped, but a restart would not find them. The loop calls
 * stores_check_names() and stores_repair_names(); claims check by themselves. It must never write a
 * header for pieces without names, because a restart would find a damaged image.
 */
#include "store_private.h"

#include <stdio.h>
#include <string.h>

/* The small pieces without which a daemon does not serve the image. */
static const char *const small_pieces[] = { "header" };

static enum memory_name_state look_up(const struct store *store, const char *name,
                                      const struct piece *piece)
{
	struct memory *memory = store->stores->memory;

	if (!memory->ops->look_up)
		return MEMORY_NAMED;
	return memory->ops->look_up(memory, store->name, name, piece);
}

/* Returns the worse of two states: if one piece is removed, no daemon finds the image, wherever the
 * other pieces are. */
static enum memory_name_state worse_name(enum memory_name_state a, enum memory_name_state b)
{
	return a > b ? a : b;
}

/* Returns true if a daemon needs the region to load the image. It can make a promise page from the
 * header. */
static bool is_needed(uint32_t region)
{
	return region != PS_REGION_PROMISE;
}

static enum memory_name_state image_name_state(const struct store *store, const struct image *image)
{
	enum memory_name_state worst = MEMORY_NAMED;
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

static enum memory_name_state small_pieces_name_state(const struct store *store)
{
	enum memory_name_state worst = MEMORY_NAMED;

	for (size_t i = 0; i < sizeof(small_pieces) / sizeof(small_pieces[0]); i++)
		worst = worse_name(worst, look_up(store, small_pieces[i], NULL));
	return worst;
}

/* Returns the worst state of the names of the store's pieces. Small pieces are looked up last and
 * by name only, which would prove nothing if the folder was renamed. */
static enum memory_name_state store_name_state(const struct store *store)
{
	const enum memory_name_state names = worse_name(image_name_state(store, &store->image),
	                                                image_name_state(store, &store->rebuilt));

	return names == MEMORY_NAMED ? small_pieces_name_state(store) : names;
}

bool store_has_removed_files(const struct store *store)
{
	return store->header && !store->damage[0] && store_name_state(store) == MEMORY_REMOVED;
}

/* --- writing headers --- */

/* Returns the open image of this generation, or NULL if its pieces were made just now. */
static const struct image *image_of_generation(const struct store *store, uint64_t generation)
{
	if (store->image.generation == generation)
		return &store->image;
	return store->rebuilt.generation == generation ? &store->rebuilt : NULL;
}

int refuse_moved(const struct store *store, struct why *why)
{
	return refuse(why, STATUS(IO),
	              "files of store %s were moved away from the memory directory of this mirror, "
	              "and nothing can be recorded until they are moved back",
	              store->name);
}

static enum memory_name_state header_name_state(const struct store *store,
                                                const Perseas__Header *header)
{
	const struct image *image = image_of_generation(store, header->generation);
	enum memory_name_state worst = MEMORY_NAMED;
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

bool store_folder_is_renamed(const struct store *store)
{
	const struct piece *log = &store->image.regions[PS_REGION_LOG];
	char name[PIECE_NAME];

	piece_name(name, PS_REGION_LOG, store->image.generation);
	return log->base && look_up(store, name, log) == MEMORY_MOVED;
}

int header_check_files(const struct store *store, const Perseas__Header *header, bool *in_memory,
                       struct why *why)
{
	const enum memory_name_state names = header_name_state(store, header);

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

/* --- repairing names --- */

/* Writes the small pieces again if all others have their names. Returns false if that is not
 * enough. */
static bool repair_small_pieces(struct store *store)
{
	const struct piece *log = &store->image.regions[PS_REGION_LOG];
	struct memory *memory = store->stores->memory;
	struct why why = { .text = "" };
	Perseas__Header *header;
	char name[PIECE_NAME];

	if (image_name_state(store, &store->image) != MEMORY_NAMED)
		return false;
	piece_name(name, PS_REGION_LOG, store->image.generation);
	if (memory->ops->mark_folder)
		memory->ops->mark_folder(memory, store->name, name, log);
	if (header_edit(store->header, &header, &why) || header_commit(store, header, &why))
		return false;
	return store_name_state(store) == MEMORY_NAMED;
}

/* Returns true if memory suffices for a copy of the image. Its removed files occupy memory until
 * they are closed. */
static bool has_room(const struct store *store)
{
	struct memory *memory = store->stores->memory;

	return !memory->ops->room || memory->ops->room(memory) >= ps_image_size(store->header);
}

/* Stores why a restart would lose the image ("": it would not). Reports an event when the image
 * becomes at risk, and when it is safe again. */
static void set_restart_loss(struct store *store, const char *text)
{
	const bool were = !store->restart_loss[0], are = !text[0];

	snprintf(store->restart_loss, sizeof(store->restart_loss), "%s", text);
	if (were == are)
		return;
	store->stores->miscounted = true;
	store_report(store, are ? STORE_FILES_RESTORED : STORE_FILES_MISSING, NULL, 0, 0);
}

/* Stores what is wrong with the names of the image's files. `trouble` is why the directory cannot
 * be used, or "". Returns true if the image must be copied and memory suffices. */
static bool judge_names(struct store *store, enum memory_name_state names, const char *trouble)
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
	set_restart_loss(store, text);
	return names == MEMORY_REMOVED && !*trouble && room;
}

bool store_check_names(struct store *store)
{
	struct memory *memory = store->stores->memory;
	char trouble[NAMES_TEXT] = "";
	enum memory_name_state names;
	bool is_repairable;

	if (store->stores->closing)
		return false;
	if (!store->header || store->damage[0]) {
		store->restart_loss[0] = '\0'; /* there is no image to lose */
		return false;
	}
	if (memory->ops->restore_directory)
		(void)memory->ops->restore_directory(memory, trouble, sizeof(trouble));
	names = store_name_state(store);
	/* The files have their names, but a restart would not look in this directory. */
	if (names == MEMORY_NAMED && *trouble)
		names = MEMORY_MOVED;
	is_repairable = judge_names(store, names, trouble);
	if (names == MEMORY_REMOVED && !*trouble && repair_small_pieces(store))
		is_repairable = judge_names(store, MEMORY_NAMED, trouble);
	return is_repairable;
}

static void repair_store(struct store *store)
{
	struct why why = { .text = "" };
	char text[NAMES_TEXT];

	if (!store_check_names(store))
		return;
	if (store_copy_to_new_files(store, &why) == 0) {
		(void)store_check_names(store);
		return;
	}
	snprintf(text, sizeof(text), "its files were removed, and are not made again: %.300s",
	         why.text);
	set_restart_loss(store, text);
}

static bool has_restart_loss(const struct stores *stores)
{
	for (const struct store *store = stores->first; store; store = store->next)
		if (store->restart_loss[0])
			return true;
	return false;
}

bool stores_check_names(struct stores *stores, bool *again)
{
	bool is_repairable = false;

	*again = false;
	for (struct store *store = stores->first; store; store = store->next) {
		if (!store->job)
			is_repairable |= store_check_names(store);
		*again |= store->job || store->restart_loss[0];
	}
	*again |= stores->miscounted;
	return is_repairable || (stores->miscounted && !has_restart_loss(stores));
}

void stores_repair_names(struct stores *stores)
{
	struct memory *memory = stores->memory;

	for (struct store *store = stores->first; store; store = store->next)
		repair_store(store);
	if (has_restart_loss(stores))
		return;
	if (stores->miscounted && memory->ops->recount)
		memory->ops->recount(memory);
	stores->miscounted = false;
}
