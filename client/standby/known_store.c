/*
 * known_store.c - see known_store.h.
 */
#include "known_store.h"

#include "../core/quorum.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct ps_known_store {
	pthread_mutex_t lock; /* guards these: */
	unsigned user_count;
	struct ps_roster_places places;
	struct ps_settled_store settled;
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
	ps_roster_free(&known->settled.roster);
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

/* Puts the rosters of a handle that is being freed, and takes the settled one from it. The roster
 * of a handle that was never opened may be older than what is known. */
static void save_rosters_of_freed_handle(struct ps_handle_attachment *attachment)
{
	struct borrower *borrower = (struct borrower *)attachment;
	struct perseas *p = borrower->p;
	struct ps_roster_places places = { 0 };
	struct ps_settled_store settled;

	if (p->is_open) {
		add_new_members(p->roster, &places);
		add_new_members(p->next_roster, &places);
		memcpy(settled.id, p->store_id, PS_ID_SIZE);
		settled.roster = p->roster;
		p->roster = NULL;
		ps_known_store_put(borrower->known, &places, &settled);
	}
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
	*borrower = (struct borrower){ { p->attachments, save_rosters_of_freed_handle }, p, known };
	p->attachments = &borrower->attachment;
}

/* --- taking and putting --- */

void ps_known_store_take(struct ps_known_store *known, struct ps_roster_places *places,
                         struct ps_settled_store *settled)
{
	pthread_mutex_lock(&known->lock);
	*places = known->places;
	*settled = known->settled;
	memset(&known->places, 0, sizeof(known->places));
	memset(&known->settled, 0, sizeof(known->settled));
	pthread_mutex_unlock(&known->lock);
}

/* Returns true if `known` has a newer settled roster of the store than `told`, which may have
 * none. */
static bool is_outdated(const struct ps_settled_store *told, const struct ps_settled_store *known)
{
	if (!known->roster || !told->roster)
		return known->roster;
	return !memcmp(told->id, known->id, PS_ID_SIZE) &&
	       ps_roster_outranks(known->roster, told->roster);
}

void ps_known_store_put(struct ps_known_store *known, const struct ps_roster_places *places,
                        struct ps_settled_store *settled)
{
	pthread_mutex_lock(&known->lock);
	if (!is_outdated(settled, &known->settled)) {
		ps_roster_free(&known->settled.roster);
		known->places = *places;
		known->settled = *settled;
		settled->roster = NULL;
	}
	pthread_mutex_unlock(&known->lock);
	ps_roster_free(&settled->roster);
}
