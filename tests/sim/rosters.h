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

/* Can the image be one of the store? False if the store was raised, and the image has no key. */
bool sim_rosters_counts(const struct sim_world *w, const Perseas__Header *header);

/* What the mirror has, up or down; NULL: no store, or it was lost, is one of a fork,
 * or has no key. */
const Perseas__Header *sim_rosters_header(const struct sim_mirror *m);

/* Does a mirror that is up have an image that was loaded from a spill? */
bool sim_rosters_any_loaded(const struct sim_world *w);

/* Does the roster list the image, or the one that it was loaded from? */
bool sim_roster_lists(const Perseas__Roster *roster, const struct sim_mirror *m);

/* Does it have a member at this mirror's address, whatever the mirror holds? */
bool sim_roster_names(const Perseas__Roster *roster, const struct sim_mirror *m);

/* For how many of its members is there a mirror with their image, as an open would find it, for
 * which fn is true? */
unsigned sim_roster_count(const struct sim_world *w, const Perseas__Roster *roster,
                          bool (*fn)(const struct sim_mirror *m, const void *arg), const void *arg);

/*
 * Would so many copies be enough? copies() tells of how many members of a roster it is so, lost
 * ones included. By the roster that is settled; or by the next one alone, once every open would see
 * it.
 */
bool sim_rosters_enough(const struct sim_world *w,
                        unsigned (*copies)(const struct sim_world *w, const Perseas__Roster *roster,
                                           const void *arg),
                        const void *arg);

/* With every mirror up and named: can the store be opened? */
bool sim_rosters_openable(const struct sim_world *w);

#endif
