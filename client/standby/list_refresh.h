/*
 * list_refresh.h - looks up the name of the followed list again. follow.c calls it while no mirror
 * has the store. It must never wait for a name server or a file.
 */
#ifndef PERSEAS_CLIENT_LIST_REFRESH_H
#define PERSEAS_CLIENT_LIST_REFRESH_H

#include "follow.h"

/* Begins a lookup of the list's name unless one is in flight or began a moment ago. If a lookup has
 * ended, fills in `found` and returns how many mirrors it found; otherwise returns 0. */
unsigned ps_list_refresh_poll(struct ps_follow *follow, struct ps_address found[PS_MIRRORS_MAX]);

/* Returns the descriptor to poll. A lookup must be in flight. */
struct pollfd ps_list_refresh_fd(const struct ps_follow *follow);

/* Returns true if a lookup has ended whose result ps_list_refresh_poll has not taken. */
bool ps_list_refresh_has_ended(const struct ps_follow *follow);

/* Drops the lookup in flight, if there is one. */
void ps_list_refresh_drop(struct ps_follow *follow);

#endif
