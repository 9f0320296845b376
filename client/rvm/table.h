/*
 * table.h - which segments of RVM's a store has, and which parts of them. It is a segment of the
 * store, "rvm.table", and changes by transactions. Each part that was mapped once as a region is a
 * segment "rvm.ID". Segments of such a name that no row names are what a crash left of a part that
 * was being made, or had been cut anew: the next owner destroys them.
 *
 * What mirrors give may be anything: the table is checked before it is used.
 */
#ifndef PERSEAS_RVM_TABLE_H
#define PERSEAS_RVM_TABLE_H

#include "../perseas.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	PS_RVM_SEGMENTS = 64,
	PS_RVM_PIECES =
		120, /* of the store's 128 segments: the table, and some while parts are cut */
	PS_RVM_NAME = 1024 /* bytes of a segment's name, with its end */
};

#define PS_RVM_TABLE "rvm.table"
#define PS_RVM_LENGTH_MAX ((uint64_t)1 << 40)

struct ps_rvm_segment_row {
	char name[PS_RVM_NAME]; /* data_dev; "": the row is free. Zeros behind its end. */
	uint64_t length;        /* bytes */
};

struct ps_rvm_piece_row {
	uint64_t id;             /* of segment "rvm.ID"; 0: the row is free */
	uint64_t offset, length; /* inside of its segment */
	uint32_t segment;        /* row of its segment */
	uint32_t zero;
};

struct ps_rvm_table {
	char magic[8];
	uint64_t next; /* all ids are below it; 1 to 2^63 - 1 */
	struct ps_rvm_segment_row segments[PS_RVM_SEGMENTS];
	struct ps_rvm_piece_row pieces[PS_RVM_PIECES];
};

_Static_assert(sizeof(struct ps_rvm_segment_row) == 1032, "as it lies in stores");
_Static_assert(sizeof(struct ps_rvm_piece_row) == 32, "as it lies in stores");
_Static_assert(sizeof(struct ps_rvm_table) == 16 + 64 * 1032 + 120 * 32, "as it lies in stores");

/* What is wrong with a table, as a part of a sentence; NULL: nothing. */
const char *ps_rvm_table_fault(const struct ps_rvm_table *table);

/* Maps the table of a store, which is made if it is not there, and destroys what no row names. 0 or
 * a code of the store's; EDAMAGED has its sentence in *fault, others in the handle. */
int ps_rvm_table_open(perseas_t *store, struct ps_rvm_table **table, const char **fault);

/* The row of a segment by its name, or of a free one with ""; -1: there is none. */
int ps_rvm_table_find(const struct ps_rvm_table *table, const char *name);

/* A free row for a part, or -1. */
int ps_rvm_table_free_piece(const struct ps_rvm_table *table);

/* The name of the segment that a part is kept in. */
struct ps_rvm_piece_name {
	char text[32];
};
struct ps_rvm_piece_name ps_rvm_piece_name(uint64_t id);

#endif
