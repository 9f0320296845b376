/*
 * whereabouts.c - see whereabouts.h.
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

/* --- a handle that has it --- */

struct borrower {
	struct ps_guest guest; /* first */
	struct perseas *p;
	struct ps_whereabouts *known;
};

static unsigned add_members(const Perseas__Roster *roster,
                            struct ps_address addresses[PS_MIRRORS_MAX], unsigned count)
{
	struct ps_error ignored;

	for (size_t k = 0; roster && k < roster->n_members && count < PS_MIRRORS_MAX; k++)
		count += !ps_address_parse(roster->members[k]->address, &addresses[count],
		                           &ignored);
	return count;
}

/* A handle that was never opened may know no roster. */
static void note_roster(struct ps_guest *guest)
{
	struct borrower *borrower = (struct borrower *)guest;
	const struct perseas *p = borrower->p;
	struct ps_address addresses[PS_MIRRORS_MAX];
	unsigned count = add_members(p->roster, addresses, 0);

	count = add_members(p->next_roster, addresses, count);
	if (count)
		ps_whereabouts_set(borrower->known, addresses, count);
	ps_whereabouts_free(borrower->known);
	free(borrower);
}

void ps_whereabouts_lend(struct ps_whereabouts *known, struct perseas *p)
{
	struct borrower *borrower = calloc(1, sizeof(*borrower));

	if (!borrower)
		return;
	pthread_mutex_lock(&known->lock);
	known->users++;
	pthread_mutex_unlock(&known->lock);
	*borrower = (struct borrower){ { p->guests, note_roster }, p, known };
	p->guests = &borrower->guest;
}

/* --- what is known --- */

void ps_whereabouts_set(struct ps_whereabouts *known, const struct ps_address *addresses,
                        unsigned count)
{
	pthread_mutex_lock(&known->lock);
	memcpy(known->addresses, addresses, count * sizeof(addresses[0]));
	known->count = count;
	pthread_mutex_unlock(&known->lock);
}

unsigned ps_whereabouts_get(struct ps_whereabouts *known,
                            struct ps_address addresses[PS_MIRRORS_MAX])
{
	unsigned count;

	pthread_mutex_lock(&known->lock);
	count = known->count;
	memcpy(addresses, known->addresses, count * sizeof(addresses[0]));
	pthread_mutex_unlock(&known->lock);
	return count;
}
