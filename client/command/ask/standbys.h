/*
 * standbys.h - the standbys of a store, as its mirrors report them. perseas move, perseas run and
 * perseas status call it.
 */
#ifndef PERSEAS_COMMAND_STANDBYS_H
#define PERSEAS_COMMAND_STANDBYS_H

#include "ask.h"

/* The standbys of a store, each once, sorted by their order. The entries belong to the images. */
struct ps_standbys {
	unsigned count;
	const Perseas__Standby *list[PS_STANDBYS_MAX];
};

/* Fills in the standbys that the images show. */
void ps_standbys_find(struct ps_standbys *standbys, const struct ps_images *images);

/* Returns how many members of the roster know the standby with that mark. */
unsigned ps_standby_count_members(const struct ps_images *images, const uint8_t *mark);
/* Returns true if at least R members know the standby: as many as its open needs. */
bool ps_standby_can_open(const struct ps_images *images, const uint8_t *mark);

/* Returns a standby of that name, or NULL. Returns `last` only if no other standby has the name.
 * last: a standby of the list, or NULL. */
const Perseas__Standby *ps_standbys_find_named(const struct ps_standbys *standbys, const char *name,
                                               const Perseas__Standby *last);

/* Returns true if the standby with that mark started the owner to which the image is promised. */
bool ps_standby_is_owner(const uint8_t *mark, const Perseas__StoreStatus *status);

/* Returns the standby of the list that started the owner to which the image is promised, or NULL.
 */
const Perseas__Standby *ps_standbys_find_owner(const struct ps_standbys *standbys,
                                               const Perseas__StoreStatus *status);

#endif
