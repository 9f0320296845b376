/*
 * standbys.h - the standbys of a store, as its mirrors tell of them. perseas move, perseas run and
 * perseas status call it.
 */
#ifndef PERSEAS_COMMAND_STANDBYS_H
#define PERSEAS_COMMAND_STANDBYS_H

#include "ask.h"

/* Each standby once, those of a lower order first. They belong to the images. */
struct ps_standbys {
	unsigned count;
	const Perseas__Standby *list[PS_STANDBYS_MAX];
};

void ps_standbys_find(struct ps_standbys *standbys, const struct ps_images *images);

/* Returns how many members of the roster tell of the standby with that mark. */
unsigned ps_standby_reach(const struct ps_images *images, const uint8_t *mark);
/* Returns true if R members do: as many as an open needs. */
bool ps_standby_opens(const struct ps_images *images, const uint8_t *mark);

/* Returns the first standby of that name, but `last` only if no other has the name, or NULL. */
const Perseas__Standby *ps_standby_named(const struct ps_standbys *standbys, const char *name,
                                         const Perseas__Standby *last);

/* Returns true if the standby with that mark started the owner that the image promised last. */
bool ps_standby_owns(const uint8_t *mark, const Perseas__StoreStatus *status);

/* Returns the standby that started that owner, or NULL if none of these did. */
const Perseas__Standby *ps_standby_of(const struct ps_standbys *standbys,
                                      const Perseas__StoreStatus *status);

#endif
