/*
 * table.c - the table of segments in a store (table.h): checks it, opens it, and searches it.
 * Callers change it in transactions of their own.
 */
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "PSRVM\0\0\1"
#define PREFIX "rvm."
/* Ids of pieces count up from 1. The limit is half of what is possible, so that none wraps around
 * to 0. */
#define NEXT_MAX (UINT64_MAX / 2)

static const char *segment_fault(const struct ps_rvm_segment_row *row)
{
	if (!memchr(row->name, '\0', sizeof(row->name)))
		return "the name of a segment has no end";
	if (row->name[0] && !row->length)
		return "a segment has no length";
	return NULL;
}

static bool pieces_overlap(const struct ps_rvm_piece_row *a, const struct ps_rvm_piece_row *b)
{
	return a->segment == b->segment && a->offset < b->offset + b->length &&
	       b->offset < a->offset + a->length;
}

static const char *piece_fault(const struct ps_rvm_table *table, unsigned row)
{
	const struct ps_rvm_piece_row *piece = &table->pieces[row];

	if (piece->id >= table->next)
		return "a part has a number that was never given";
	if (piece->segment >= PS_RVM_SEGMENTS || !table->segments[piece->segment].name[0])
		return "a part is of no segment";
	if (!piece->length || piece->length > PS_RVM_LENGTH_MAX || piece->offset % 4096 ||
	    piece->offset > table->segments[piece->segment].length ||
	    piece->length > table->segments[piece->segment].length - piece->offset)
		return "a part has no place that it can have";
	for (unsigned i = 0; i < row; i++)
		if (table->pieces[i].id &&
		    (table->pieces[i].id == piece->id || pieces_overlap(&table->pieces[i], piece)))
			return "two parts overlap, or have one number";
	return NULL;
}

const char *ps_rvm_table_fault(const struct ps_rvm_table *table)
{
	const char *fault = NULL;

	if (memcmp(table->magic, MAGIC, sizeof(table->magic)) != 0)
		return "it does not begin as a table does";
	if (!table->next || table->next > NEXT_MAX)
		return "the number of the next part is none that is ever given";
	for (unsigned i = 0; i < PS_RVM_SEGMENTS && !fault; i++)
		fault = segment_fault(&table->segments[i]);
	for (unsigned i = 0; i < PS_RVM_PIECES && !fault; i++)
		if (table->pieces[i].id)
			fault = piece_fault(table, i);
	return fault;
}

struct ps_rvm_piece_name ps_rvm_piece_name(uint64_t id)
{
	struct ps_rvm_piece_name name;

	snprintf(name.text, sizeof(name.text), PREFIX "%" PRIu64, id);
	return name;
}

int ps_rvm_table_find(const struct ps_rvm_table *table, const char *name)
{
	for (int i = 0; i < PS_RVM_SEGMENTS; i++)
		if (!strcmp(table->segments[i].name, name))
			return i;
	return -1;
}

int ps_rvm_table_free_piece(const struct ps_rvm_table *table)
{
	for (int i = 0; i < PS_RVM_PIECES; i++)
		if (!table->pieces[i].id)
			return i;
	return -1;
}

/* Returns true if the name, which begins with PREFIX, is the name of a piece's segment. */
static bool is_piece_name(const char *name)
{
	const size_t prefix = strlen(PREFIX), digits = strspn(name + prefix, "0123456789");

	return digits && !name[prefix + digits];
}

static bool is_in_table(const struct ps_rvm_table *table, const char *name)
{
	for (unsigned i = 0; i < PS_RVM_PIECES; i++)
		if (table->pieces[i].id &&
		    !strcmp(ps_rvm_piece_name(table->pieces[i].id).text, name))
			return true;
	return false;
}

/* Destroys pieces that no row names. A piece that cannot be destroyed now does no harm; the next
 * open tries again. */
static void destroy_unnamed_pieces(perseas_t *store, const struct ps_rvm_table *table)
{
	struct perseas_segment_info info;

	for (unsigned i = 0; !perseas_segment_at(store, i, &info);)
		if (strncmp(info.name, PREFIX, strlen(PREFIX)) != 0 || !is_piece_name(info.name) ||
		    is_in_table(table, info.name) || perseas_segment_destroy(store, info.name))
			i++;
		else
			i = 0;
}

/* Returns what is wrong if a row's piece is missing or has another length, or NULL. */
static const char *pieces_fault(perseas_t *store, const struct ps_rvm_table *table)
{
	struct perseas_segment_info info;

	for (unsigned i = 0; i < PS_RVM_PIECES; i++)
		if (table->pieces[i].id &&
		    (perseas_segment(store, ps_rvm_piece_name(table->pieces[i].id).text, &info) ||
		     info.size != table->pieces[i].length))
			return "a part is not there, or has another length";
	return NULL;
}

static int make_table(perseas_t *store, struct ps_rvm_table **table)
{
	void *addr;
	int rc = perseas_map_at(store, PS_RVM_TABLE, sizeof(**table), NULL, &addr, NULL);

	if (rc)
		return rc;
	*table = addr;
	memcpy((*table)->magic, MAGIC, sizeof((*table)->magic));
	(*table)->next = 1;
	return perseas_publish(store);
}

/* Makes the table. While mirrors are busy it waits about as long as perseas_open does (15 s): each
 * of three calls waits for 5 s, as a commit does. */
static int make_table_with_retries(perseas_t *store, struct ps_rvm_table **table)
{
	int rc = make_table(store, table);

	for (unsigned calls = 1; rc && calls < 3; calls++) {
		if (rc == PERSEAS_EINDOUBT)
			rc = perseas_flush(store);
		else if (rc == PERSEAS_EUNREACHABLE && !perseas_confirm(store))
			rc = make_table(store, table);
	}
	return rc;
}

int ps_rvm_table_open(perseas_t *store, struct ps_rvm_table **table, const char **fault)
{
	struct perseas_segment_info info;
	void *addr;
	int rc;

	*fault = NULL;
	if (perseas_segment(store, PS_RVM_TABLE, &info))
		return make_table_with_retries(store, table);
	if (info.size != sizeof(**table)) {
		*fault = "it has another size";
		return PERSEAS_EDAMAGED;
	}
	rc = perseas_map_at(store, PS_RVM_TABLE, 0, NULL, &addr, NULL);
	if (rc)
		return rc;
	*table = addr;
	*fault = ps_rvm_table_fault(*table);
	if (!*fault)
		*fault = pieces_fault(store, *table);
	if (*fault)
		return PERSEAS_EDAMAGED;
	destroy_unnamed_pieces(store, *table);
	return 0;
}
