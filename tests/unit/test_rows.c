/*
 * test_rows.c - tables of rows, on an engine that gives memory and on one that keeps rows; and
 * that the check of a run finds what an engine did wrong.
 */
#include "../support/unit.h"

#include "../../bench/bank.h"
#include "../../bench/order_entry.h"
#include "../../bench/tpca.h"

/* --- an engine that keeps rows, and does it wrong when it is told to ------------------- */

struct keeper {
	struct engine engine;
	uint64_t offsets[ROWS_TABLES_MAX + 1];
	struct engine_table tables[ROWS_TABLES_MAX];
	uint8_t *bytes;
	bool open; /* a transaction */
	uint64_t gets, puts;
};

static uint64_t lose_put; /* the put of this number does nothing; 0: none */
static uint64_t fail_get; /* the get of this number fails */

static uint8_t *kept(struct keeper *keeper, unsigned table, uint64_t id)
{
	assert_true(id < keeper->tables[table].count);
	return keeper->bytes + keeper->offsets[table] + id * keeper->tables[table].size;
}

static int keeper_open(struct engine *engine, const struct engine_options *options, size_t size,
                       void **memory)
{
	struct keeper *keeper = (struct keeper *)engine;

	memcpy(keeper->tables, options->tables, options->table_count * sizeof(*keeper->tables));
	assert_int_equal(rows_lay_out(keeper->tables, options->table_count, keeper->offsets), size);
	keeper->bytes = calloc(1, size);
	assert_non_null(keeper->bytes);
	assert_null(*memory);
	return 0;
}

static void keeper_close(struct engine *engine)
{
	free(((struct keeper *)engine)->bytes);
}

static int keeper_begin(struct engine *engine)
{
	struct keeper *keeper = (struct keeper *)engine;

	assert_false(keeper->open);
	keeper->open = true;
	return 0;
}

static int keeper_commit(struct engine *engine)
{
	struct keeper *keeper = (struct keeper *)engine;

	assert_true(keeper->open);
	keeper->open = false;
	return 0;
}

static int keeper_get(struct engine *engine, unsigned table, uint64_t id, void *row)
{
	struct keeper *keeper = (struct keeper *)engine;

	assert_true(keeper->open);
	memcpy(row, kept(keeper, table, id), keeper->tables[table].size);
	return ++keeper->gets == fail_get ? -5 : 0;
}

static int keeper_put(struct engine *engine, unsigned table, uint64_t id, const void *row)
{
	struct keeper *keeper = (struct keeper *)engine;

	assert_true(keeper->open);
	if (++keeper->puts != lose_put)
		memcpy(kept(keeper, table, id), row, keeper->tables[table].size);
	return 0;
}

static int keeper_read(struct engine *engine, unsigned table, uint64_t id, uint64_t count,
                       void *rows)
{
	struct keeper *keeper = (struct keeper *)engine;

	assert_false(keeper->open);
	memcpy(rows, kept(keeper, table, id), count * keeper->tables[table].size);
	return 0;
}

static const struct engine_ops engine_keeper = {
	.name = "keeper",
	.size = sizeof(struct keeper),
	.open = keeper_open,
	.begin = keeper_begin,
	.commit = keeper_commit,
	.get = keeper_get,
	.put = keeper_put,
	.close = keeper_close,
};
static struct engine_ops engine_reader; /* the same, which reads by itself */

static int make_reader(void **state)
{
	(void)state;
	engine_reader = engine_keeper;
	engine_reader.name = "keeper that reads by itself";
	engine_reader.read = keeper_read;
	return 0;
}

struct unit_fixture unit_group = { make_reader, NULL };

/* --- tests ------------------------------------------------------------------------------ */

static const struct engine_options nowhere = { .store = "none" };

static const struct {
	const struct work *work;
	uint64_t size;
} cases[] = {
	{ &bank_work, 1 },           { &order_entry_work, 1 },
	{ &synthetic_work, 4 },      { &synthetic_work, 8 },
	{ &synthetic_work, 4096 },   { &ranges_work, 5 },
	{ &bank_work, 3000 },        { &tpca_sequential_work, 640 },
	{ &tpca_random_work, 6400 }, { &tpca_localized_work, 6400 },
	{ &tpca_layered_work, 640 }, { &order_entry_work, 2 },
};
/* The last case is large, and run once. */
enum { CASES = sizeof(cases) / sizeof(*cases), SMALL = CASES - 1, TPCA_CASE = CASES - 3 };
enum { STEPS = 20000 };

static int open_case(unsigned i, const struct engine_ops *ops, struct work_run *run)
{
	char why[WORK_WHY];

	lose_put = fail_get = 0;
	return work_open(run, cases[i].work, cases[i].size, ops, &nowhere, why);
}

static void run_steps(struct work_run *run, unsigned steps)
{
	for (unsigned i = 0; i < steps; i++)
		assert_int_equal(run->work->step(run), 0);
}

/* Opens a case, and takes so many steps. */
static void begin_case(unsigned i, const struct engine_ops *ops, struct work_run *run,
                       unsigned steps)
{
	assert_int_equal(open_case(i, ops, run), 0);
	run_steps(run, steps);
}

/* Every workload, in memory and by rows, one of them ahead of the other. */
TEST(all_engines_hold_the_same_after_the_same_transactions)
{
	static const struct engine_ops *const ops[] = { &engine_local, &engine_copies,
		                                        &engine_keeper, &engine_reader };

	for (unsigned i = 0; i < CASES; i++) {
		struct work_run runs[4];
		char why[WORK_WHY] = "";

		for (unsigned k = 0; k < 4; k++) {
			begin_case(i, ops[k], &runs[k], STEPS - 500 * k);
		}
		assert_int_equal(work_check(runs, 4, why), 0);
		for (unsigned k = 0; k < 4; k++)
			work_close(&runs[k]);
	}
}

/* An engine forgets one row of one transaction. */
TEST(a_put_that_is_lost_is_found)
{
	for (unsigned i = 0; i < SMALL; i++) {
		struct work_run run;
		char why[WORK_WHY] = "";

		begin_case(i, &engine_keeper, &run, 1000);
		lose_put = ((struct keeper *)run.rows.engine)->puts + 1;
		run_steps(&run, 10);
		assert_int_equal(work_check(&run, 1, why), 1);
		assert_string_not_equal(why, "");
		work_close(&run);
	}
}

/* Flips one bit of memory that no transaction touched. */
TEST(a_byte_that_no_sum_shows_is_found)
{
	for (unsigned i = 0; i < SMALL; i++) {
		struct work_run run;
		char why[WORK_WHY] = "";

		begin_case(i, &engine_none, &run, 100);
		run.rows.memory[127] ^= 4;
		assert_int_equal(work_check(&run, 1, why), 1);
		assert_non_null(strstr(why, "offset"));
		work_close(&run);
	}
}

/* Five bytes that leave every CRC-32C over them as it was: its polynomial. The engine has memory or
 * rows, and is still there when it is checked, or was let go. */
TEST(bytes_that_no_checksum_shows_are_found)
{
	static const uint8_t polynomial[] = { 0xf1, 0x76, 0xec, 0x05, 0x01 };

	for (unsigned i = 0; i < 8; i++) {
		bool by_rows = i & 1, let_go = i & 2, wrong = i & 4;
		struct work_run run;
		char why[WORK_WHY] = "";
		uint8_t *bytes;

		begin_case(0, by_rows ? &engine_reader : &engine_local, &run, 100);
		bytes = by_rows ? kept((struct keeper *)run.rows.engine, 0, 0) : run.rows.memory;
		for (unsigned k = 0; wrong && k < sizeof(polynomial); k++)
			bytes[120 + k] ^= polynomial[k];
		if (let_go)
			assert_int_equal(work_let_go(&run, why), 0);
		assert_int_equal(work_check(&run, 1, why), wrong);
		assert_int_equal(strstr(why, ": 5 bytes are not") && strstr(why, " 120"), wrong);
		work_close(&run);
	}
}

/* A read fails in the middle of a transaction, and the workload goes on to its commit. */
TEST(after_a_failure_nothing_is_changed)
{
	for (unsigned i = 0; i < SMALL; i++) {
		struct work_run run;
		struct keeper *keeper;
		uint64_t puts;

		begin_case(i, &engine_keeper, &run, 100);
		keeper = (struct keeper *)run.rows.engine;
		fail_get = keeper->gets + 2;
		puts = keeper->puts;
		for (unsigned k = 0; k < 1000 && !run.rows.code; k++)
			run.work->step(&run);
		assert_int_equal(run.rows.code, -5);
		assert_true(keeper->puts <= puts + 2);
		assert_true(keeper->open);
		puts = keeper->puts;
		assert_int_equal(run.work->step(&run), -5);
		assert_int_equal(keeper->puts, puts);
		assert_int_equal(keeper->gets, fail_get);
		work_close(&run);
	}
}

/* Order-entry, by the sums: each figure of the check is wrong in turn. */
TEST(sums_of_orders_that_are_wrong_are_found)
{
	static const struct {
		unsigned table;
		size_t offset;
	} wrong[] = {
		{ ORDER_WAREHOUSE, offsetof(struct order_warehouse, paid) },
		{ ORDER_DISTRICT, offsetof(struct order_district, paid) },
		{ ORDER_DISTRICT, offsetof(struct order_district, next_order) },
		{ ORDER_DISTRICT, offsetof(struct order_district, next_delivery) },
		{ ORDER_CUSTOMER, offsetof(struct order_customer, balance) },
		{ ORDER_CUSTOMER, offsetof(struct order_customer, paid) },
		{ ORDER_CUSTOMER, offsetof(struct order_customer, payments) },
		{ ORDER_CUSTOMER, offsetof(struct order_customer, deliveries) },
		{ ORDER_STOCK, offsetof(struct order_stock, sold) },
		{ ORDER_NEW, offsetof(struct order_new, waiting) },
	};
	struct work_run run;
	char why[256];

	begin_case(1, &engine_none, &run, STEPS);
	assert_true(run.work->check(&run.plan, run.rows.memory, why, sizeof(why)));
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		uint8_t *at = (uint8_t *)rows_at(&run.rows, wrong[i].table,
		                                 3 % run.rows.tables[wrong[i].table].count) +
		              wrong[i].offset;

		++*at;
		assert_false(run.work->check(&run.plan, run.rows.memory, why, sizeof(why)));
		--*at;
	}
	work_close(&run);
}

/* So many orders fill the districts' rings, and are delivered from there. */
TEST(orders_that_find_their_ring_full_deliver)
{
	struct work_run run;
	uint64_t full = 0;
	char why[WORK_WHY];

	begin_case(1, &engine_local, &run, 15 * STEPS);
	for (unsigned i = 0; i < ORDER_DISTRICTS; i++) {
		const struct order_district *d = rows_read(&run.rows, ORDER_DISTRICT, i);

		assert_true(d->next_order - d->next_delivery <= ORDER_RING);
		full += d->next_order - d->next_delivery > ORDER_RING - 50;
	}
	assert_true(full > 0);
	assert_int_equal(work_check(&run, 1, why), 0);
	work_close(&run);
}

/* Many draws of the localized pattern. */
TEST(localized_accounts_are_where_rvm_had_them)
{
	enum { ACCOUNTS = 64000, DRAWS = 200000 };
	unsigned parts[3] = { 0, 0, 0 };
	uint64_t random = WORK_SEED;

	for (unsigned i = 0; i < DRAWS; i++) {
		uint32_t account = tpca_localized(&random, i, ACCOUNTS);

		assert_true(account < ACCOUNTS);
		parts[(account >= ACCOUNTS / 20) + (account >= ACCOUNTS / 5)]++;
	}
	assert_in_range(parts[0], DRAWS * 69 / 100, DRAWS * 71 / 100);
	assert_in_range(parts[1], DRAWS * 24 / 100, DRAWS * 26 / 100);
	assert_in_range(parts[2], DRAWS * 4 / 100, DRAWS * 6 / 100);
}

/* Sizes at the edges, and beyond them. */
TEST(sizes_that_a_workload_does_not_have_have_no_bytes)
{
	static const struct {
		const char *work;
		uint64_t size, bytes;
	} sizes[] = {
		{ "debit-credit", 1, sizeof(struct bank) },
		{ "debit-credit", 2, 0 },
		{ "debit-credit", 1023, 0 },
		{ "debit-credit", 1024, (1024 + 44) * 128 + (2 << 20) },
		{ "debit-credit", 409600, sizeof(struct bank) },
		{ "debit-credit", (1 << 27) + 1, 0 },
		{ "order-entry", 0, 0 },
		{ "order-entry", 257, 0 },
		{ "synthetic", 0, 0 },
		{ "synthetic", 4, 50 << 20 },
		{ "synthetic", 7, 0 },
		{ "synthetic", 8, 50 << 20 },
		{ "synthetic", 20, 0 },
		{ "synthetic", 1 << 20, 50 << 20 },
		{ "synthetic", (1 << 20) + 8, 0 },
		{ "tpca-random", 608, 0 },
		{ "tpca-random", 640, 640 * 256 + 110 * 128 },
		{ "tpca-random", 641, 0 },
		{ "tpca-random", (uint64_t)1 << 40, 0 },
	};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		assert_int_equal(work_bytes(work_by_name(sizes[i].work), sizes[i].size),
		                 sizes[i].bytes);
	assert_null(work_by_name("debit"));
}

/* Rows that were read stay as they are while three others are. */
TEST(scratch_rows_last_for_three_more)
{
	const struct bank_balance *rows[4];
	struct work_run run;

	assert_int_equal(open_case(TPCA_CASE, &engine_keeper, &run), 0);
	for (unsigned i = 0; i < 4; i++)
		((struct bank_balance *)kept((struct keeper *)run.rows.engine, 0, i))->balance = i;
	assert_int_equal(rows_begin(&run.rows), 0);
	for (unsigned i = 0; i < 4; i++)
		rows[i] = rows_read(&run.rows, TPCA_ACCOUNTS, i);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(rows[i]->balance, i);
	work_close(&run);
}

/* Memory that holds something, as that of a store that was used before. */
static int used_open(struct engine *engine, const struct engine_options *options, size_t size,
                     void **memory)
{
	assert_int_equal(engine_none.open(engine, options, size, memory), 0);
	((uint8_t *)*memory)[size - 1] = 1;
	return 0;
}

TEST(memory_that_holds_something_is_not_filled)
{
	struct engine_ops used = engine_none;
	struct work_run run;
	char why[WORK_WHY] = "";

	used.open = used_open;
	assert_int_not_equal(work_open(&run, &order_entry_work, 1, &used, &nowhere, why), 0);
	assert_non_null(strstr(why, "another store"));
}
