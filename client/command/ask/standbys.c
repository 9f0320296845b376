/*
 * standbys.c - see standbys.h. Two entries with the same mark are the same standby, whatever its
 * name is.
 */
#include "standbys.h"

#include "../../../proto/control/envelope.h"

#include <string.h>

/* Returns the list's entry with the standby's mark, or NULL if it has none. */
static const Perseas__Standby **find_mark(struct ps_standbys *standbys,
                                          const Perseas__Standby *standby)
{
	for (unsigned i = 0; i < standbys->count; i++)
		if (!memcmp(standbys->list[i]->mark.data, standby->mark.data, PS_OWNER_MARK))
			return &standbys->list[i];
	return NULL;
}

static bool comes_before(const Perseas__Standby *a, const Perseas__Standby *b)
{
	return a->order != b->order ? a->order < b->order : strcmp(a->name, b->name) < 0;
}

static void add_standby(struct ps_standbys *standbys, const Perseas__Standby *standby)
{
	unsigned at = standbys->count;
	const Perseas__Standby **twin = find_mark(standbys, standby);

	/* Prefers the entry that has the size of the copy: some mirrors may not know it yet. */
	if (twin && !(*twin)->memory)
		*twin = standby;
	if (twin || at == PS_STANDBYS_MAX)
		return;
	for (; at > 0 && comes_before(standby, standbys->list[at - 1]); at--)
		standbys->list[at] = standbys->list[at - 1];
	standbys->list[at] = standby;
	standbys->count++;
}

static bool shows_standby(const Perseas__StoreStatus *status, const uint8_t *mark)
{
	for (size_t k = 0; k < status->n_standbys; k++)
		if (!memcmp(status->standbys[k]->mark.data, mark, PS_OWNER_MARK))
			return true;
	return false;
}

void ps_standbys_find(struct ps_standbys *standbys, const struct ps_images *images)
{
	standbys->count = 0;
	for (unsigned i = 0; i < images->peers->count; i++)
		for (size_t k = 0; images->told[i] && k < images->told[i]->n_standbys; k++)
			add_standby(standbys, images->told[i]->standbys[k]);
}

unsigned ps_standby_count_members(const struct ps_images *images, const uint8_t *mark)
{
	const Perseas__Roster *roster = images->judged.settled;
	unsigned reach = 0;

	for (size_t k = 0; roster && k < roster->n_members; k++) {
		const Perseas__StoreStatus *status = ps_images_find_member(images,
		                                                           roster->members[k]);

		reach += status && shows_standby(status, mark);
	}
	return reach;
}

bool ps_standby_can_open(const struct ps_images *images, const uint8_t *mark)
{
	const Perseas__Roster *roster = images->judged.settled;

	return roster && ps_standby_count_members(images, mark) + roster->acks > roster->n_members;
}

const Perseas__Standby *ps_standbys_find_named(const struct ps_standbys *standbys, const char *name,
                                               const Perseas__Standby *last)
{
	const Perseas__Standby *found = NULL;

	for (unsigned i = 0; i < standbys->count; i++)
		if (!strcmp(standbys->list[i]->name, name) && (!found || found == last))
			found = standbys->list[i];
	return found;
}

bool ps_standby_is_owner(const uint8_t *mark, const Perseas__StoreStatus *status)
{
	const ProtobufCBinaryData *owner = &status->header->promised_owner;

	return owner->len == PS_ID_SIZE && !memcmp(owner->data, mark, PS_OWNER_MARK);
}

const Perseas__Standby *ps_standbys_find_owner(const struct ps_standbys *standbys,
                                               const Perseas__StoreStatus *status)
{
	for (unsigned i = 0; i < standbys->count; i++)
		if (ps_standby_is_owner(standbys->list[i]->mark.data, status))
			return standbys->list[i];
	return NULL;
}
