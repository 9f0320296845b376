/*
 * cut.h - parts of segments: how what is to be mapped comes to be one segment of the store.
 */
#ifndef PERSEAS_RVM_CUT_H
#define PERSEAS_RVM_CUT_H

#include "rvm.h"
#include "state.h"

/* A part of a segment that is to be mapped. */
struct ps_rvm_want {
	const char *name;        /* of the segment */
	int segment;             /* its row; -1: it has none yet */
	uint64_t segment_length; /* that it has from now on, at least */
	uint64_t offset, length;
};

/*
 * Makes a part that is as wanted, of what other parts have of it and, for the rest, of the external
 * data segment; the others keep what is left of them, as parts of their own. None of them is
 * mapped. For whoever opens the store after a crash it has happened or not, by the transaction that
 * changes the table. *row and *base are the part's, which is mapped. Locked.
 */
rvm_return_t ps_rvm_cut(perseas_t *store, const struct ps_rvm_want *want, unsigned *row,
                        void **base);

#endif
