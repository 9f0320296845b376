/*
 * test_rvm_table.c - the table of RVM's segments in a store: whatever a mirror gives for it is
 * checked, and a store whose table is damaged is not opened.
 */
#include "rvm_rig.h"

static struct ps_rvm_table sound(void)
{
	struct ps_rvm_table table = { .magic = "PSRVM\0\0\1", .next = 10 };

	strcpy(table.segments[3].name, "data");
	table.segments[3].length = 100000;
	strcpy(table.segments[5].name, "other");
	table.segments[5].length = 5000;
	table.pieces[0] = (struct ps_rvm_piece_row){ 1, 0, 8192, 3, 0 };
	table.pieces[7] = (struct ps_rvm_piece_row){ 9, 8192, 4096, 3, 0 };
	table.pieces[119] = (struct ps_rvm_piece_row){ 2, 0, 5000, 5, 0 };
	return table;
}

TEST(tables_are_checked)
{
	struct ps_rvm_table table = sound();
	struct ps_rvm_piece_row *piece = &table.pieces[7];

	assert_null(ps_rvm_table_fault(&table));
#define BAD(change)                                          \
	do {                                                 \
		table = sound();                             \
		change;                                      \
		assert_non_null(ps_rvm_table_fault(&table)); \
	} while (0)
	BAD(table.magic[7] = 2);
	BAD(memset(table.segments[3].name, 'x', PS_RVM_NAME));
	BAD(memset(table.segments[63].name, 'x', PS_RVM_NAME));
	BAD(table.segments[3].length = 0);
	BAD(table.segments[3].name[0] = '\0');
	BAD(table.next = 9);
	BAD(table.next = UINT64_MAX);
	BAD((memset(table.pieces, 0, sizeof(table.pieces)), table.next = 0));
	BAD(piece->offset = 98304);
	BAD(piece->segment = 64);
	BAD(piece->segment = UINT32_MAX);
	BAD(piece->segment = 4);
	BAD(piece->length = 0);
	BAD(piece->length = PS_RVM_LENGTH_MAX + 1);
	BAD(piece->offset = UINT64_MAX - 4095);
	BAD(piece->offset = 8193);
	BAD(piece->offset = 4096);
	BAD(piece->id = 1);
	BAD((table.pieces[119].segment = 3, table.pieces[119].offset = 12288 - 4096));
	table = sound();
	piece->offset = 12288;
	assert_null(ps_rvm_table_fault(&table));
}

TEST(rows_are_found)
{
	struct ps_rvm_table table = sound();

	assert_int_equal(ps_rvm_table_find(&table, "data"), 3);
	assert_int_equal(ps_rvm_table_find(&table, "dat"), -1);
	assert_int_equal(ps_rvm_table_find(&table, ""), 0);
	assert_int_equal(ps_rvm_table_free_piece(&table), 1);
	for (unsigned i = 0; i < PS_RVM_SEGMENTS; i++)
		strcpy(table.segments[i].name, "x");
	assert_int_equal(ps_rvm_table_find(&table, ""), -1);
	for (unsigned i = 0; i < PS_RVM_PIECES; i++)
		table.pieces[i].id = 1;
	assert_int_equal(ps_rvm_table_free_piece(&table), -1);
	assert_string_equal(ps_rvm_piece_name(UINT64_MAX).text, "rvm.18446744073709551615");
}

/* Changes the table, as any program that can open the store may. */
static void change(void *at, const void *to, size_t length)
{
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(ps_rvm.store, 0, &tx), 0);
	assert_int_equal(perseas_set_range(tx, at, length), 0);
	memcpy(at, to, length);
	assert_int_equal(perseas_commit(tx, 0), 0);
}

static void assert_damaged(struct rvm_rig *rig, const char *why)
{
	rvm_options_t options = rvm_rig_options(rig);

	ps_rvm_reset();
	assert_int_equal(RVM_INIT(&options), RVM_ELOG);
	assert_non_null(strstr(rvm_message(), why));
}

TEST_WITH(damaged_tables_are_not_used, rvm_rig_setup, rvm_rig_teardown, struct rvm_rig *rig)
{
	const uint64_t length = 4096;

	rvm_rig_map(rig);
	change(&ps_rvm.table->pieces[0].length, &length, sizeof(length));
	assert_damaged(rig, "a part is not there, or has another length");
}

TEST_WITH(tables_of_other_versions_are_not_used, rvm_rig_setup, rvm_rig_teardown,
          struct rvm_rig *rig)
{
	change(ps_rvm.table->magic, "PSRVM\0\0\2", 8);
	assert_damaged(rig, "it does not begin as a table does");
}

/* A store of an application may have a segment of that name. */
TEST_WITH(something_else_of_that_name_is_not_used, rvm_rig_setup_bare, rvm_rig_teardown,
          struct rvm_rig *rig)
{
	struct perseas_options options = patient_options();
	perseas_t *p;
	void *addr;

	options.flags = PERSEAS_CREATE;
	assert_int_equal(perseas_open("rvm", rig->place.local, &options, &p), 0);
	assert_int_equal(perseas_map(p, "rvm.table", 100, &addr), 0);
	assert_int_equal(perseas_publish(p), 0);
	perseas_close(p);
	assert_damaged(rig, "it has another size");
}
