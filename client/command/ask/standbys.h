/*
 * standbys.h - the standbys of a store, as its mirrors tell of them. perseas move, perseas run and
 * perseas status call it.
 */
#ifndef PERSEAS_COMMAND_STANDBYS_H
#define PERSEAS_COMMAND_STANDBYS_H

#include "ask.h"

/* Has each standby once, sorted by its order. The entries belong to the images. */
struct ps_standbys {
	unsigned count;
	const Perseas__Standby *list[PS_STANDBYS_MAX];
};

void ps_standbys_find(struct ps_standbys *standbys, const struct ps_images *images);

/* Returns how many members of the roster know the standby with that mark. */
unsigned ps_standby_reach(const struct ps_images *images, const uint8_t *mark);
/* Returns true if at least R members know the standby: as many as its open needs. */
bool ps_standby_opens(const struct ps_images *images, const uint8_t *mark);

/* Returns a standby of that name, or NULL. Returns `last` only if no other standby has the name. */
const Perseas__Standby *ps_standby_named(const struct ps_standbys *standbys, const char *name,
                                         const Perseas__Standby *last);

/* Returns true if the standby with that mark started the owner that the image promised last. */
bool ps_standby_owns(const uint8_t *mark, const Perseas__StoreStatus *status);

/* Returns the standby that started that owner, or NULL if none of these did. */
const Perseas__Standby *ps_standby_of(const struct ps_standbys *standbys,
                                      const Perseas__StoreStatus *status);

#endif
