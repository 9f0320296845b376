/*
 * list_again.h - looks the name of the followed list up again. follow.c calls it while no mirror
 * tells of the store. It must never wait for a name server or a file.
 */
#ifndef PERSEAS_CLIENT_LIST_AGAIN_H
#define PERSEAS_CLIENT_LIST_AGAIN_H

#include "follow.h"

/* Begins to look the list's name up, unless that is in flight or was begun a moment ago. Returns
 * how many mirrors the lookup found, if it has ended; else 0. */
unsigned ps_list_again_look(struct ps_follow *follow, struct ps_address found[PS_MIRRORS_MAX]);

/* Returns what to poll for, while a lookup is in flight. */
struct pollfd ps_list_again_fd(const struct ps_follow *follow);

/* Returns true if a lookup has ended and was not taken yet. */
bool ps_list_again_ended(const struct ps_follow *follow);

/* Drops the lookup in flight, if there is one. */
void ps_list_again_drop(struct ps_follow *follow);

#endif
