/*
 * cut.h - makes pieces of segments: puts the part of an RVM segment that rvm_map asks for into one
 * segment of the store.
 */
#ifndef PERSEAS_RVM_CUT_H
#define PERSEAS_RVM_CUT_H

#include "rvm.h"
#include "state.h"

/* The part of a segment that rvm_map is asked for. */
struct ps_rvm_wanted_part {
	const char *name;        /* name of the segment (data_dev) */
	int segment;             /* row of the segment in the table; -1 if it has none yet */
	uint64_t segment_length; /* the segment grows to at least this length */
	uint64_t offset, length;
};

/*
 * Makes a piece for the wanted part and maps it. Its contents come from existing pieces that
 * overlap the part and, for the rest, from the external data segment. Bytes that those pieces have
 * beyond the wanted part are moved to further new pieces, and the old pieces are destroyed. None of
 * the old pieces may be mapped. A single transaction changes the table, so an owner that opens the
 * store after a crash finds either the old pieces or the new ones. Sets *row and *base to the row
 * and the address of the wanted piece. Caller holds ps_rvm.lock.
 */
rvm_return_t ps_rvm_make_piece(perseas_t *store, const struct ps_rvm_wanted_part *want,
                               unsigned *row, void **base);

#endif
