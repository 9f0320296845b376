/*
 * remake.h - a new store that is filled with what is already somebody's: recovered from other
 * mirrors, or restored from a file. Its segments come to exist together, at the end.
 */
#ifndef PERSEAS_COMMAND_REMAKE_H
#define PERSEAS_COMMAND_REMAKE_H

#include "../ui/ui.h"
#include "../../perseas.h"
#include "../../../proto/image/layout.h"

struct ps_remake {
	const char *store; /* the new one's name */
	const char *mirrors;
	struct perseas_options options; /* by which it is made, and opened */
	bool quiet;                     /* says nothing on stdout */
	/* mirrors that hold the same bytes as the mapped segments */
	unsigned alike;
	const char *hint;             /* what to do where the name is taken */
	size_t segments;              /* that it will have, with parts of these */
	uint8_t store_id[PS_ID_SIZE]; /* once it is made to be filled; else zeros */
	perseas_t *p;                 /* the new store, open; NULL before, and after its end */
};

/* Checks, before anything is made, that all mirrors answer, that the name is free on each, and that
 * the command may own the store there. */
enum ps_exit ps_remake_check(const struct ps_remake *remake);

/* Makes and opens the store. After an error nothing of it is left. */
enum ps_exit ps_remake_begin(struct ps_remake *remake);

/* Maps a new segment, at its old address where that is free; says so where it is not. */
enum ps_exit ps_remake_map(struct ps_remake *remake, const char *segment, uint64_t size,
                           uint64_t address, void **base);

/* Publishes the segments, on all mirrors that take part; publishes none if ps_stopped(). */
enum ps_exit ps_remake_publish(struct ps_remake *remake);

/* Compares the mirrors' bytes with the mapped segments. Returns PS_EXIT_PARTLY if a mirror did not
 * answer. */
enum ps_exit ps_remake_compare(struct ps_remake *remake);

/* Closes the store, which stays. Does nothing if ->p is NULL. */
void ps_remake_end(struct ps_remake *remake);

/* Closes the store, and deletes it from its mirrors if no mirror has the transaction that fills it.
 * Complains if that is not possible. */
void ps_remake_take_back(struct ps_remake *remake);

#endif
