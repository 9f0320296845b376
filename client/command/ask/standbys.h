/*
 * standbys.h - who waits to own a store, as its mirrors tell it. perseas move, perseas run and
 * perseas status call it.
 */
#ifndef PERSEAS_COMMAND_STANDBYS_H
#define PERSEAS_COMMAND_STANDBYS_H

#include "ask.h"

/* Each once, those of a lower order first. They belong to the images. */
struct ps_standbys {
	unsigned count;
	const Perseas__Standby *list[PS_STANDBYS_MAX];
};

void ps_standbys_find(struct ps_standbys *standbys, const struct ps_images *images);

/* How many members of the roster tell of the standby with that mark. */
unsigned ps_standby_reach(const struct ps_images *images, const uint8_t *mark);
/* R of them do: as many as an open needs, and more than one that tells what is not so. */
bool ps_standby_opens(const struct ps_images *images, const uint8_t *mark);

/* The first one of that name, and this one only if there is no other; NULL: there is none. */
const Perseas__Standby *ps_standby_named(const struct ps_standbys *standbys, const char *name,
                                         const Perseas__Standby *last);

/* Did the standby with that mark start the owner that the image promised last? */
bool ps_standby_owns(const uint8_t *mark, const Perseas__StoreStatus *status);

/* The one that did; NULL: none of these. */
const Perseas__Standby *ps_standby_of(const struct ps_standbys *standbys,
                                      const Perseas__StoreStatus *status);

#endif
