/*
 * fuzz_rvm_table.c - any bytes as the table of RVM's segments that mirrors give: it is refused, or
 * everything that is looked up in it is as table.h says, and there are numbers left for new parts.
 * A table is 68 KiB, nearly all of them zeros: so an input is what the others are, each run of
 * bytes behind a struct rvm_run (make_rvm.c writes such seeds).
 */
#include "rvm_run.h"

#include "../../client/rvm/table.h"
#include "target.h"

static bool apart(const struct ps_rvm_piece_row *a, const struct ps_rvm_piece_row *b)
{
	return a->id != b->id && (a->segment != b->segment || a->offset >= b->offset + b->length ||
	                          b->offset >= a->offset + a->length);
}

static void require_piece(const struct ps_rvm_table *table, unsigned row)
{
	const struct ps_rvm_piece_row *piece = &table->pieces[row];
	const struct ps_rvm_piece_name name = ps_rvm_piece_name(piece->id);

	require(piece->segment < PS_RVM_SEGMENTS && piece->length);
	require(piece->offset + piece->length <= table->segments[piece->segment].length);
	require(strlen(name.text) < sizeof(name.text));
	for (unsigned i = 0; i < row; i++)
		require(!table->pieces[i].id || apart(&table->pieces[i], piece));
}

static void read_runs(struct ps_rvm_table *table, const uint8_t *data, size_t size)
{
	struct rvm_run run;

	while (size >= sizeof(run)) {
		memcpy(&run, data, sizeof(run));
		data += sizeof(run);
		size -= sizeof(run);
		if (run.at >= sizeof(*table))
			return;
		if (run.len > sizeof(*table) - run.at)
			run.len = (uint32_t)(sizeof(*table) - run.at);
		if (run.len > size)
			run.len = (uint32_t)size;
		memcpy((uint8_t *)table + run.at, data, run.len);
		data += run.len;
		size -= run.len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ps_rvm_table *table = calloc(1, sizeof(*table));
	const char *fault;

	require(table);
	read_runs(table, data, size);
	fault = ps_rvm_table_fault(table);
	require(!fault || *fault);
	if (!fault) {
		for (unsigned i = 0; i < PS_RVM_SEGMENTS; i++)
			require(ps_rvm_table_find(table, table->segments[i].name) >= 0);
		for (unsigned i = 0; i < PS_RVM_PIECES; i++)
			if (table->pieces[i].id)
				require_piece(table, i);
		/* However many parts are made, none gets number 0. */
		require(table->next && table->next <= UINT64_MAX / 2);
	}
	free(table);
	return 0;
}
