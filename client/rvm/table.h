/*
 * table.h - the table of RVM's segments in a store, and of their pieces. It is the store's segment
 * "rvm.table" and changes by transactions. Each piece of a segment that was mapped as a region is a
 * segment "rvm.ID" of the store. A segment "rvm.ID" that no row names was left by a crash while a
 * piece was being made or recut; the next owner destroys it.
 *
 * Mirrors may return any bytes: the table is checked before it is used.
 */
#ifndef PERSEAS_RVM_TABLE_H
#define PERSEAS_RVM_TABLE_H

#include "../perseas.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	PS_RVM_SEGMENTS = 64,
	PS_RVM_PIECES =
		/* Leaves some of the store's 128 segments for the table and for pieces that are
		 * being recut. */
	120,
	PS_RVM_NAME = 1024 /* size of a segment's name, including the terminating zero */
};

#define PS_RVM_TABLE "rvm.table"
#define PS_RVM_LENGTH_MAX ((uint64_t)1 << 40)

struct ps_rvm_segment_row {
	/* rvm_region_t.data_dev, padded with zeros; "" if the row is free. */
	char name[PS_RVM_NAME];
	uint64_t length; /* bytes */
};

struct ps_rvm_piece_row {
	uint64_t id;             /* ID in the name of its segment "rvm.ID"; 0 if the row is free */
	uint64_t offset, length; /* bytes, in its RVM segment */
	uint32_t segment;        /* row of its RVM segment in ps_rvm_table.segments */
	uint32_t zero;
};

struct ps_rvm_table {
	char magic[8];
	uint64_t next; /* id that the next new piece gets, above all ids in use; 1 to 2^63 - 1 */
	struct ps_rvm_segment_row segments[PS_RVM_SEGMENTS];
	struct ps_rvm_piece_row pieces[PS_RVM_PIECES];
};

_Static_assert(sizeof(struct ps_rvm_segment_row) == 1032, "as it lies in stores");
_Static_assert(sizeof(struct ps_rvm_piece_row) == 32, "as it lies in stores");
_Static_assert(sizeof(struct ps_rvm_table) == 16 + 64 * 1032 + 120 * 32, "as it lies in stores");

/* Returns what is wrong with a table, as the end of a sentence, or NULL. */
const char *ps_rvm_table_fault(const struct ps_rvm_table *table);

/* Maps the table of a store, creates it if the store has none, and destroys segments that no row
 * names. Returns 0 or a code of the store. For PERSEAS_EDAMAGED *fault is the reason; for other
 * codes *fault is NULL, and the store's message is the reason. */
int ps_rvm_table_open(perseas_t *store, struct ps_rvm_table **table, const char **fault);

/* Returns the row of the segment with this name, or -1. The name "" finds a free row. */
int ps_rvm_table_find(const struct ps_rvm_table *table, const char *name);

/* Returns a free row for a piece, or -1. */
int ps_rvm_table_free_piece(const struct ps_rvm_table *table);

/* The name "rvm.ID" of the store's segment that holds a piece. */
struct ps_rvm_piece_name {
	char text[32];
};
struct ps_rvm_piece_name ps_rvm_piece_name(uint64_t id);

#endif
