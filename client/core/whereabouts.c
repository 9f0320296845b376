/*
 * whereabouts.c - see whereabouts.h. A standby and the handle that it gave away have it in common,
 * and either may be closed first. It must never be what an open relies on: who asks these mirrors
 * may find that they have left the store.
 */
#include "whereabouts.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct ps_whereabouts {
	pthread_mutex_t lock; /* guards these: */
	unsigned users;
	unsigned count;
	struct ps_address addresses[PS_MIRRORS_MAX];
};

struct ps_whereabouts *ps_whereabouts_new(void)
{
	struct ps_whereabouts *known = calloc(1, sizeof(*known));

	if (!known)
		return NULL;
	pthread_mutex_init(&known->lock, NULL);
	known->users = 1;
	return known;
}

struct ps_whereabouts *ps_whereabouts_share(struct ps_whereabouts *known)
{
	if (!known)
		return NULL;
	pthread_mutex_lock(&known->lock);
	known->users++;
	pthread_mutex_unlock(&known->lock);
	return known;
}

void ps_whereabouts_free(struct ps_whereabouts *known)
{
	unsigned left;

	if (!known)
		return;
	pthread_mutex_lock(&known->lock);
	left = --known->users;
	pthread_mutex_unlock(&known->lock);
	if (left)
		return;
	pthread_mutex_destroy(&known->lock);
	free(known);
}

/* Locked. Both rosters may name it. */
static void add(struct ps_whereabouts *known, const char *text)
{
	struct ps_error ignored;

	for (unsigned i = 0; i < known->count; i++)
		if (!strcmp(known->addresses[i].text, text))
			return;
	if (known->count < PS_MIRRORS_MAX &&
	    !ps_address_parse(text, &known->addresses[known->count], &ignored))
		known->count++;
}

void ps_whereabouts_note(struct ps_whereabouts *known, const Perseas__Roster *settled,
                         const Perseas__Roster *next)
{
	const Perseas__Roster *rosters[] = { settled, next };

	if (!known || !settled)
		return;
	pthread_mutex_lock(&known->lock);
	known->count = 0;
	for (int r = 0; r < 2; r++)
		for (size_t k = 0; rosters[r] && k < rosters[r]->n_members; k++)
			add(known, rosters[r]->members[k]->address);
	pthread_mutex_unlock(&known->lock);
}

void ps_whereabouts_set(struct ps_whereabouts *known, const struct ps_address *addresses,
                        unsigned count)
{
	pthread_mutex_lock(&known->lock);
	memcpy(known->addresses, addresses, count * sizeof(addresses[0]));
	known->count = count;
	pthread_mutex_unlock(&known->lock);
}

unsigned ps_whereabouts_take(struct ps_whereabouts *known,
                             struct ps_address addresses[PS_MIRRORS_MAX])
{
	unsigned count;

	pthread_mutex_lock(&known->lock);
	count = known->count;
	memcpy(addresses, known->addresses, count * sizeof(addresses[0]));
	pthread_mutex_unlock(&known->lock);
	return count;
}
