/*
 * known_store.c - see known_store.h.
 */
#include "known_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct ps_known_store {
	pthread_mutex_t lock; /* guards these: */
	unsigned user_count;
	struct ps_roster_places places;
};

struct ps_known_store *ps_known_store_new(void)
{
	struct ps_known_store *known = calloc(1, sizeof(*known));

	if (!known)
		return NULL;
	pthread_mutex_init(&known->lock, NULL);
	known->user_count = 1;
	return known;
}

void ps_known_store_release(struct ps_known_store *known)
{
	unsigned left;

	if (!known)
		return;
	pthread_mutex_lock(&known->lock);
	left = --known->user_count;
	pthread_mutex_unlock(&known->lock);
	if (left)
		return;
	pthread_mutex_destroy(&known->lock);
	free(known);
}

/* --- handles that borrow it --- */

struct borrower {
	struct ps_handle_attachment attachment; /* must be first */
	struct perseas *p;
	struct ps_known_store *known;
};

/* Adds the members of a roster. Must be called with the newest roster last. */
static void add_new_members(const Perseas__Roster *roster, struct ps_roster_places *places)
{
	struct ps_error ignored;

	if (!roster)
		return;
	places->epoch = roster->epoch;
	places->version = roster->version;
	for (size_t k = 0; k < roster->n_members && places->count < PS_MIRRORS_MAX; k++)
		places->count += !ps_address_parse(roster->members[k]->address,
		                                   &places->addresses[places->count], &ignored);
}

/* Stores the roster of a handle that is being freed. The roster of a handle that was never opened
 * may be older than what is stored. */
static void save_roster_of_freed_handle(struct ps_handle_attachment *attachment)
{
	struct borrower *borrower = (struct borrower *)attachment;
	const struct perseas *p = borrower->p;
	struct ps_roster_places places = { 0 };

	add_new_members(p->roster, &places);
	add_new_members(p->next_roster, &places);
	if (p->is_open)
		ps_known_store_set(borrower->known, &places);
	ps_known_store_release(borrower->known);
	free(borrower);
}

void ps_known_store_learn_from(struct ps_known_store *known, struct perseas *p)
{
	struct borrower *borrower = calloc(1, sizeof(*borrower));

	if (!borrower)
		return;
	pthread_mutex_lock(&known->lock);
	known->user_count++;
	pthread_mutex_unlock(&known->lock);
	*borrower = (struct borrower){ { p->attachments, save_roster_of_freed_handle }, p, known };
	p->attachments = &borrower->attachment;
}

/* --- the mirrors --- */

void ps_known_store_set(struct ps_known_store *known, const struct ps_roster_places *places)
{
	pthread_mutex_lock(&known->lock);
	known->places = *places;
	pthread_mutex_unlock(&known->lock);
}

void ps_known_store_get(struct ps_known_store *known, struct ps_roster_places *places)
{
	pthread_mutex_lock(&known->lock);
	*places = known->places;
	pthread_mutex_unlock(&known->lock);
}
