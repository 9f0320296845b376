/*
 * mistakes_disguise.c - mirrors that take stored bytes for what they look like.
 */
#include "mistakes.h"

#include "../../proto/control/envelope.h"
#include "../../server/store/store_private.h"
#include "mirror.h"

#include <string.h>

/* The file of a header at `bytes`, or NULL. */
static Perseas__Header *read_header(const uint8_t *bytes, size_t size)
{
	struct ps_header_file file;
	const char *why;

	if (size < sizeof(file))
		return NULL;
	memcpy(&file, bytes, sizeof(file));
	if (file.length > size - sizeof(file))
		return NULL;
	return ps_header_unpack(bytes, sizeof(file) + file.length, &why);
}

/* The first header in the segments of the image, or NULL. */
static Perseas__Header *find_header(const struct store *store)
{
	Perseas__Header *found = NULL;

	for (unsigned region = PS_REGION_SEGMENT; region < PS_REGIONS_MAX; region++) {
		const struct piece *piece = &store->image.regions[region];

		for (uint64_t at = 0; piece->base && at < piece->size && !found; at++)
			found = read_header(piece->base + at, piece->size - at);
	}
	return found;
}

void sim_mistake_disguised(struct sim_mirror *m)
{
	struct store *store = store_find(m->stores, SIM_STORE);
	Perseas__Header *found;
	Perseas__Roster *roster;

	if (!sim_mistake_is(m->world, SIM_MISTAKE_DISGUISED) || !store || !store->header)
		return;
	found = find_header(store);
	if (!found)
		return;
	roster = store->header->roster;
	store->header->roster = found->roster;
	found->roster = roster;
	perseas__header__free_unpacked(found, NULL);
}
