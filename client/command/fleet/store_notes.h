/*
 * store_notes.h - what perseas ls notes next to each image: that its store is not finished, or
 * which mirrors of the store share a host with it. Each store is judged once, by what all mirrors
 * told of it. cmd_ls.c calls it with the replies to Lists. It must never ask a mirror.
 */
#ifndef PERSEAS_COMMAND_STORE_NOTES_H
#define PERSEAS_COMMAND_STORE_NOTES_H

#include "../ask/ask.h"

struct ps_store_notes {
	char **of[PS_MIRRORS_MAX]; /* of[i][k]: on store k in the reply of peer i; "": nothing */
	unsigned judged;           /* how many stores were judged */
};

void ps_store_notes_take(struct ps_store_notes *notes, const struct ps_peers *peers);
void ps_store_notes_free(struct ps_store_notes *notes, const struct ps_peers *peers);

#endif
