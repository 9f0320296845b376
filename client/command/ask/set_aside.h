/*
 * set_aside.h - images of a store that mirrors have set aside, because they may be old.
 * cmd_status.c calls it. It changes nothing: people must decide what becomes of these images.
 */
#ifndef PERSEAS_COMMAND_SET_ASIDE_H
#define PERSEAS_COMMAND_SET_ASIDE_H

#include "ask.h"

struct ps_set_aside {
	/* The folder of the newest image of the store that mirror i has set aside, also if it has
	 * another one in its place by now; NULL: none. */
	const char *folders[PS_MIRRORS_MAX];
	/* The List replies that `folders` point into; NULL: the mirror was not asked. */
	Perseas__Reply *lists[PS_MIRRORS_MAX];
};

/* Asks the mirrors that answered which images of the store they have set aside. Call
 * ps_set_aside_free to free the answers. */
void ps_set_aside_ask(struct ps_set_aside *aside, const struct ps_images *images,
                      struct ps_peers *peers, const char *store);
void ps_set_aside_free(struct ps_set_aside *aside);

/* Complains of each mirror that has set an image of the store aside, and says what to do. */
void ps_set_aside_complain(const struct ps_set_aside *aside, const struct ps_images *images,
                           const char *store);

#endif
