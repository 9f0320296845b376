/*
 * remake.h - makes a new store and fills it with existing contents: recovered from other mirrors,
 * or restored from a snapshot file. One transaction publishes all of its segments at the end.
 */
#ifndef PERSEAS_COMMAND_REMAKE_H
#define PERSEAS_COMMAND_REMAKE_H

#include "../ui/ui.h"
#include "../../perseas.h"
#include "../../../proto/image/layout.h"

struct ps_remake {
	const char *store; /* name of the new store */
	const char *mirrors;
	struct perseas_options options; /* with which the store is created and opened */
	bool quiet;                     /* prints nothing on stdout */
	/* Set by ps_remake_publish: how many mirrors hold the same bytes as the mapped segments. */
	unsigned equal_mirrors;
	const char *hint; /* what to do if the name is taken, for the complaint */
	size_t segments; /* segments, with parts of grown ones; 0: no transaction fills the store */
	/* Id of the store, once it is made to be filled; else zeros. */
	uint8_t store_id[PS_ID_SIZE];
	perseas_t *p; /* the open store; NULL before ps_remake_begin and after ps_remake_close */
};

/* Checks, before anything is made, that all mirrors answer, that the name is free on each, and that
 * the command may own the store there. */
enum ps_exit ps_remake_check(const struct ps_remake *remake);

/* Creates and opens the store. After an error, nothing of the store is left. */
enum ps_exit ps_remake_begin(struct ps_remake *remake);

/* Maps a new segment at its old address if that is free. Otherwise maps it anywhere, with a
 * complaint. */
enum ps_exit ps_remake_map(struct ps_remake *remake, const char *segment, uint64_t size,
                           uint64_t address, void **base);

/* Sends the mapped segments to the mirrors, compares what these then hold with the segments, and
 * publishes them if nothing differs, so that only a compared store can be opened. Waits until all
 * mirrors that take part hold the publish. Returns PS_EXIT_PARTLY if a mirror was not compared, or
 * another status if nothing is known to be published. Publishes nothing if ps_stop_requested(). */
enum ps_exit ps_remake_publish(struct ps_remake *remake);

/* Closes the store, which stays on its mirrors. Does nothing if it is not open. */
void ps_remake_close(struct ps_remake *remake);

/* Closes the store, and deletes it from its mirrors if no mirror has the transaction that fills it.
 * Complains if that is not possible. */
void ps_remake_delete_unfilled(struct ps_remake *remake);

#endif
