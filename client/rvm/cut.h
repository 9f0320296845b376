/*
 * cut.h - makes pieces of segments: turns the part of a segment that rvm_map wants into one segment
 * of the store.
 */
#ifndef PERSEAS_RVM_CUT_H
#define PERSEAS_RVM_CUT_H

#include "rvm.h"
#include "state.h"

/* The part of a segment that rvm_map is asked for. */
struct ps_rvm_want {
	const char *name;        /* name of the segment (data_dev) */
	int segment;             /* row of the segment in the table; -1 if it has none yet */
	uint64_t segment_length; /* the segment grows to at least this length */
	uint64_t offset, length;
};

/*
 * Makes a piece for the wanted part. Its contents come from the pieces that already have bytes of
 * it and, for the rest, from the external data segment. What those pieces have beyond the wanted
 * part becomes pieces of its own. None of them may be mapped. The transaction that changes the
 * table makes all of this happen, or nothing, for an owner that opens the store after a crash. *row
 * and *base are those of the new piece, which is mapped. Caller holds ps_rvm.lock.
 */
rvm_return_t ps_rvm_cut(perseas_t *store, const struct ps_rvm_want *want, unsigned *row,
                        void **base);

#endif
