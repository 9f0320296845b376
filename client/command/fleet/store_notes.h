/*
 * store_notes.h - the notes that perseas ls prints next to each image: its store is not finished,
 * or which mirrors of the store share a host with it. Each store is judged once, by the answers of
 * all mirrors. cmd_ls.c calls it with the replies to Lists. It must never ask a mirror.
 */
#ifndef PERSEAS_COMMAND_STORE_NOTES_H
#define PERSEAS_COMMAND_STORE_NOTES_H

#include "../ask/ask.h"

struct ps_store_notes {
	/* of[i][k]: the note on store k in the reply of peer i; "": none */
	char **of[PS_MIRRORS_MAX];
	unsigned judged; /* number of stores that were judged */
};

void ps_store_notes_take(struct ps_store_notes *notes, const struct ps_peers *peers);
void ps_store_notes_free(struct ps_store_notes *notes, const struct ps_peers *peers);

#endif
