/*
 * rosters.h - which mirrors count, by what their headers say: a roster by itself, or, while a
 * change is not settled, two of them.
 */
#ifndef PERSEAS_SIM_ROSTERS_H
#define PERSEAS_SIM_ROSTERS_H

#include "../../server/store/store.h"
#include "mirror.h"

/* The newest roster that is settled (NULL: the store is not made), and a newer one, or NULL. */
struct sim_rosters {
	const Perseas__Roster *settled, *next;
};

struct sim_rosters sim_rosters_find(const struct sim_world *w);

/* The newest that ever were, also where their headers were lost. */
struct sim_rosters sim_rosters_ever(const struct sim_world *w);

/* Every roster that a header had may have counted, also when the header is lost: this mirror has
 * changed. The ones that are remembered are freed in the end. */
void sim_rosters_remember(const struct sim_mirror *m);
void sim_rosters_forget(struct sim_world *w);

/* Forgets the rosters of the store with this id, which was removed. Remembers its level, because an
 * image that a stranger made with its id may still be there. */
void sim_rosters_removed(struct sim_world *w, const uint8_t *store_id);

/* Returns the level of the store or, if there is no store, of the removed store with this id. */
uint32_t sim_rosters_level(const struct sim_world *w, const uint8_t *store_id);

/* Returns true if the image can belong to the store: images of a store of level 1 have its key. */
bool sim_rosters_counts(const struct sim_world *w, const Perseas__Header *header);

/* Returns the header of the mirror's image, also while it is down. Returns NULL if it has no image,
 * lost it, or has one of a fork or without the key. */
const Perseas__Header *sim_rosters_header(const struct sim_mirror *m);

/* Returns true if a running mirror has an image that was loaded from a spill. */
bool sim_rosters_any_loaded(const struct sim_world *w);

/* Returns true if the roster lists the mirror's image, or the image that it was loaded from. */
bool sim_roster_lists(const Perseas__Roster *roster, const struct sim_mirror *m);

/* Returns true if the roster has a member at this mirror's address, whatever the mirror holds. */
bool sim_roster_names(const Perseas__Roster *roster, const struct sim_mirror *m);

/* Counts the members whose image an open would find, and for which fn returns true. */
unsigned sim_roster_count(const struct sim_world *w, const Perseas__Roster *roster,
                          bool (*fn)(const struct sim_mirror *m, const void *arg), const void *arg);

/*
 * Returns true if enough copies exist by the settled roster, or, once every open would see it, by
 * the next one. copies() returns the number of copies among a roster's members, lost ones included.
 */
bool sim_rosters_enough(const struct sim_world *w,
                        unsigned (*copies)(const struct sim_world *w, const Perseas__Roster *roster,
                                           const void *arg),
                        const void *arg);

/* Returns true if the store can be opened when all mirrors run and are in the list. */
bool sim_rosters_openable(const struct sim_world *w);

#endif
