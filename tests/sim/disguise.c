/*
 * disguise.c - see disguise.h. work.c calls it for the bytes of each range that it fills.
 */
#include "disguise.h"

#include "../../server/store/store_private.h"
#include "../support/lookalike.h"
#include "mirror.h"

enum {
	ONE_IN = 4, /* so many ranges are disguised */
	OLD_LOG = LOOKALIKES,
	KINDS,
};

/* The ring of some mirror, from some position on. */
static void copy_log(struct sim_application *a, uint64_t choice, uint8_t *bytes, size_t length)
{
	struct sim_world *w = a->world;
	struct sim_mirror *m = w->mirrors[choice % w->mirror_count];
	const struct store *store = m->stores ? store_find(m->stores, SIM_STORE) : NULL;
	const struct piece *log = store ? &store->image.regions[PS_REGION_LOG] : NULL;
	uint64_t at;

	if (!log || !log->base || log->size < PS_RING_OFFSET + length)
		return;
	at = choice / SIM_MIRRORS_MAX % (log->size - PS_RING_OFFSET - length + 1);
	memcpy(bytes, log->base + PS_RING_OFFSET + at / PS_ALIGN * PS_ALIGN, length);
}

void sim_disguise(struct sim_application *a, uint8_t *bytes, size_t length)
{
	uint64_t choice;

	if (length < sizeof(struct ps_slot))
		return;
	memcpy(&choice, bytes, sizeof(choice));
	if (choice % ONE_IN)
		return;
	choice /= ONE_IN;
	/* SECURITY.md names what a value with its own CRC-32C can do to a store of level 0. */
	if (choice % KINDS == LOOKALIKE_SLOTS && a->p->roster->level == 0)
		return;
	if (choice % KINDS == OLD_LOG)
		copy_log(a, choice / KINDS, bytes, length);
	else
		lookalike_store(a->p, (enum lookalike)(choice % KINDS), bytes, length);
	sim_count(a->world, SIM_DISGUISED, 1);
}
