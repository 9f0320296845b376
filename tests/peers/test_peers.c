/*
 * test_peers.c - every engine that Perseas is compared with does what it is measured for: rows
 * come back as they were put, what was committed outlives the process, what was not is gone.
 *
 * PERSEAS_REDIS_PORT names a Redis server with a replica that is there for this test only. The
 * engines that sync keep their files in the folder of this program, the others in memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../bench/rows.h"

#include <ftw.h>
#include <hiredis/hiredis.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SMALL, ROWS, PAGES, LARGE, TABLES, MIB = 1 << 20, STEPS = 3000 };

static const struct engine_table tables[TABLES] = {
	[SMALL] = { 3, 8 },
	[ROWS] = { 1000, 128 },
	[PAGES] = { 512, 4096 },
	[LARGE] = { 2, MIB },
};

static char disk[PATH_MAX]; /* the folder of this program */

/* An engine, where it keeps its files, and what the tables must hold. */
struct rig {
	const struct engine_ops *ops;
	struct rows rows;
	char dir[PATH_MAX + 32];
	uint64_t offsets[TABLES + 1];
	uint8_t *wanted;
};

static bool is(const struct rig *rig, const char *name)
{
	return !strcmp(rig->ops->name, name);
}

static bool keeps(const struct engine_ops *ops)
{
	return strcmp(ops->survives, "nothing") != 0;
}

static uint16_t redis_port(void)
{
	const char *port = getenv("PERSEAS_REDIS_PORT");

	if (!port)
		fail_msg("PERSEAS_REDIS_PORT is not set; run this by bench/peers/redis_pair.py");
	return (uint16_t)atoi(port);
}

static redisReply *ask(uint16_t port, const char *command)
{
	redisContext *context = redisConnect("127.0.0.1", port);
	redisReply *reply;

	assert_true(context && !context->err);
	reply = redisCommand(context, command);
	assert_non_null(reply);
	redisFree(context);
	return reply;
}

static struct engine_options options_of(const struct rig *rig)
{
	return (struct engine_options){
		.dir = rig->dir,
		.redis_port = is(rig, "redis") ? redis_port() : 0,
	};
}

static int try_open(struct rig *rig, const struct engine_options *options, char *why)
{
	return rows_open(&rig->rows, rig->ops, options, tables, TABLES, why);
}

static void open_rows(struct rig *rig)
{
	struct engine_options options = options_of(rig);
	char why[ENGINE_WHY] = "";

	if (try_open(rig, &options, why))
		fail_msg("%s: %s", rig->ops->name, why);
}

static void reopen(struct rig *rig)
{
	rows_close(&rig->rows);
	open_rows(rig);
}

static int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *where)
{
	(void)stat;
	(void)kind;
	(void)where;
	return remove(path);
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	rows_close(&rig->rows);
	nftw(rig->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(rig->wanted);
	free(rig);
	return 0;
}

static int set_up(void **state)
{
	struct engine_options options;
	char why[ENGINE_WHY] = "";
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	rig->ops = *state;
	snprintf(rig->dir, sizeof(rig->dir), "%s/perseas-peers-XXXXXX",
	         strcmp(rig->ops->survives, "power") ? "/dev/shm" : disk);
	assert_non_null(mkdtemp(rig->dir));
	rig->wanted = calloc(1, rows_lay_out(tables, TABLES, rig->offsets));
	assert_non_null(rig->wanted);
	if (is(rig, "redis"))
		freeReplyObject(ask(redis_port(), "FLUSHALL"));
	*state = rig;
	options = options_of(rig);
	if (!try_open(rig, &options, why))
		return 0;
	/* Nothing tears down what was not set up. */
	print_error("%s: %s\n", rig->ops->name, why);
	tear_down(state);
	return -1;
}

/* --- steps of a test ----------------------------------------------------------------- */

static void well(const struct rig *rig)
{
	if (rig->rows.code)
		fail_msg("%s: %s", rig->ops->name, rows_why(&rig->rows));
}

static void begin(struct rig *rig)
{
	rows_begin(&rig->rows);
	well(rig);
}

static void commit(struct rig *rig)
{
	rows_commit(&rig->rows);
	well(rig);
}

/* A row that is full of `with`, and of its number at its ends. */
static void fill(uint8_t *row, unsigned table, uint64_t id, int with)
{
	memset(row, with, tables[table].size);
	row[0] = (uint8_t)id;
	row[tables[table].size - 1] = (uint8_t)(id >> 8);
}

static void put(struct rig *rig, unsigned table, uint64_t id, int with)
{
	uint8_t *row = rows_new(&rig->rows, table, id);

	fill(row, table, id, with);
	rows_put(&rig->rows, table, id, row);
	well(rig);
}

static uint8_t *wanted(const struct rig *rig, unsigned table, uint64_t id)
{
	return rig->wanted + rig->offsets[table] + id * tables[table].size;
}

/* The same, and from now on it is wanted. */
static void put_wanted(struct rig *rig, unsigned table, uint64_t id, int with)
{
	put(rig, table, id, with);
	fill(wanted(rig, table, id), table, id, with);
}

static void all_is_as_wanted(struct rig *rig)
{
	void *room = malloc(rig->offsets[TABLES]);
	const uint8_t *image = rows_image(&rig->rows, room);

	well(rig);
	for (unsigned i = 0; i < TABLES; i++)
		for (uint64_t id = 0; id < tables[i].count; id++)
			if (memcmp(image + rig->offsets[i] + id * tables[i].size,
			           wanted(rig, i, id), tables[i].size))
				fail_msg("%s: row %u of table %u", rig->ops->name, (unsigned)id, i);
	free(room);
}

/* Both ends of every table. */
static void want_ends(struct rig *rig, int with)
{
	for (unsigned i = 0; i < TABLES; i++) {
		uint64_t last = tables[i].count - 1;

		fill(wanted(rig, i, 0), i, 0, with);
		fill(wanted(rig, i, last), i, last, with + 1);
	}
}

/* The same in one transaction. */
static void put_ends(struct rig *rig, int with)
{
	begin(rig);
	for (unsigned i = 0; i < TABLES; i++) {
		put(rig, i, 0, with);
		put(rig, i, tables[i].count - 1, with + 1);
	}
	commit(rig);
	want_ends(rig, with);
}

/* --- any engine ---------------------------------------------------------------------- */

static void rows_are_zeros_until_they_are_put(void **state)
{
	struct rig *rig = *state;

	all_is_as_wanted(rig);
	begin(rig);
	for (unsigned i = 0; i < TABLES; i++)
		assert_memory_equal(rows_read(&rig->rows, i, tables[i].count - 1),
		                    wanted(rig, i, 0), tables[i].size);
	well(rig);
}

static void rows_at_the_ends_of_tables_come_back(void **state)
{
	struct rig *rig = *state;

	put_ends(rig, 0x11);
	all_is_as_wanted(rig);
	put_ends(rig, 0x22);
	all_is_as_wanted(rig);
}

/* Reads a value where it was put, before the commit; and puts one twice: the last one counts. */
static void a_transaction_sees_what_it_put(void **state)
{
	struct rig *rig = *state;

	begin(rig);
	put_wanted(rig, ROWS, 7, 0x33);
	assert_memory_equal(rows_read(&rig->rows, ROWS, 7), wanted(rig, ROWS, 7), 128);
	put_wanted(rig, ROWS, 7, 0x34);
	assert_memory_equal(rows_read(&rig->rows, ROWS, 7), wanted(rig, ROWS, 7), 128);
	commit(rig);
	all_is_as_wanted(rig);
}

/* 256 rows of 4 KiB, and one row of 1 MiB. */
static void a_transaction_of_a_mebibyte_is_whole(void **state)
{
	struct rig *rig = *state;

	begin(rig);
	for (unsigned id = 0; id < MIB / tables[PAGES].size; id++)
		put_wanted(rig, PAGES, id, 0x44);
	commit(rig);
	begin(rig);
	put_wanted(rig, LARGE, 1, 0x45);
	commit(rig);
	all_is_as_wanted(rig);
}

static void loaded_rows_are_there_and_can_be_put(void **state)
{
	struct rig *rig = *state;

	for (uint64_t i = 0; i < rig->offsets[TABLES]; i++)
		rig->wanted[i] = (uint8_t)(i * 7 >> 3);
	rows_load(&rig->rows, rig->wanted);
	well(rig);
	all_is_as_wanted(rig);
	put_ends(rig, 0x55);
	all_is_as_wanted(rig);
}

/* Thousands of transactions on rows that are drawn, with reads between. */
static void many_transactions_leave_what_they_must(void **state)
{
	struct rig *rig = *state;
	bool slow = !strcmp(rig->ops->survives, "power");
	uint64_t x = 88172645463325252u;

	for (unsigned i = 0; i < (slow ? STEPS / 10 : STEPS); i++) {
		begin(rig);
		for (unsigned k = 0; k < 4; k++) {
			unsigned table = x & 15 ? ROWS : PAGES;
			uint64_t id = (x >> 8) % tables[table].count;

			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			assert_memory_equal(rows_read(&rig->rows, table, id),
			                    wanted(rig, table, id), tables[table].size);
			put_wanted(rig, table, id, (int)(x >> 16 & 0xff));
		}
		commit(rig);
	}
	all_is_as_wanted(rig);
}

static void it_says_what_it_survives(void **state)
{
	struct rig *rig = *state;
	static const char *const answers[] = { "nothing", "process", "host", "power" };
	bool known = false;

	for (unsigned i = 0; i < 4; i++)
		known |= !strcmp(rig->ops->survives, answers[i]);
	assert_true(known);
	assert_ptr_equal(engine_by_name(rig->ops->name), rig->ops);
	assert_null(engine_by_name("nobody"));
	if (keeps(rig->ops))
		assert_true(strlen(rig->rows.engine->setup) > 10);
}

/* --- engines that keep what is committed --------------------------------------------- */

static void opened_again_it_holds_what_was_committed(void **state)
{
	struct rig *rig = *state;

	put_ends(rig, 0x66);
	begin(rig);
	put(rig, ROWS, 0, 0x67);
	put(rig, ROWS, 5, 0x67);
	reopen(rig);
	all_is_as_wanted(rig);
	put_ends(rig, 0x68);
	reopen(rig);
	all_is_as_wanted(rig);
}

static void opened_again_it_holds_what_was_loaded(void **state)
{
	struct rig *rig = *state;

	memset(rig->wanted, 0x77, rig->offsets[TABLES]);
	rows_load(&rig->rows, rig->wanted);
	well(rig);
	reopen(rig);
	all_is_as_wanted(rig);
}

/* The process is killed in the middle of its second transaction. */
static void killed_it_holds_what_was_committed(void **state)
{
	struct rig *rig = *state;
	int status;
	pid_t child;

	rows_close(&rig->rows);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		open_rows(rig);
		put_ends(rig, 0x66);
		begin(rig);
		put(rig, ROWS, 0, 0x67);
		put(rig, PAGES, 5, 0x67);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	open_rows(rig);
	want_ends(rig, 0x66);
	all_is_as_wanted(rig);
	put_ends(rig, 0x68);
	reopen(rig);
	all_is_as_wanted(rig);
}

static void refused(struct rig *rig, const struct engine_options *options, const char *says)
{
	char why[ENGINE_WHY] = "";

	rows_close(&rig->rows);
	if (!try_open(rig, options, why))
		fail_msg("%s opened", rig->ops->name);
	if (!strstr(why, says))
		fail_msg("%s: \"%s\" does not say \"%s\"", rig->ops->name, why, says);
}

static void an_open_that_fails_says_why(void **state)
{
	struct rig *rig = *state;
	struct engine_options options = options_of(rig);
	char nowhere[PATH_MAX + 64];

	snprintf(nowhere, sizeof(nowhere), "%s/none", rig->dir);
	if (is(rig, "redis")) {
		options.redis_port = 0;
		refused(rig, &options, "redis_pair.py");
		options.redis_port = 1;
		refused(rig, &options, "Connection refused");
		return;
	}
	options.dir = nowhere;
	refused(rig, &options, "No such file or directory");
	options.dir = NULL;
	refused(rig, &options, "folder");
	if (!strcmp(rig->ops->survives, "power")) {
		options.dir = "/dev/shm";
		refused(rig, &options, "memory");
	}
}

/* Something else is where an engine looks for its file. */
static void a_strange_file_is_refused(void **state)
{
	struct rig *rig = *state;
	static const char *const names[] = { "lmdb", "sqlite", "rows", "pmemobj", "pmemobj.set" };
	struct engine_options options = options_of(rig);
	char strange[PATH_MAX + 64], why[ENGINE_WHY] = "";

	if (is(rig, "redis"))
		return;
	rows_close(&rig->rows);
	snprintf(strange, sizeof(strange), "%s/strange", rig->dir);
	assert_int_equal(mkdir(strange, 0700), 0);
	options.dir = strange;
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char path[PATH_MAX + 128];
		FILE *file;

		snprintf(path, sizeof(path), "%s/%s", strange, names[i]);
		file = fopen(path, "w");
		assert_non_null(file);
		for (unsigned k = 0; k < 20000; k++)
			fprintf(file, "nothing\n");
		fclose(file);
	}
	assert_int_not_equal(try_open(rig, &options, why), 0);
	assert_true(strlen(why) > 5);
}

/* --- Redis --------------------------------------------------------------------------- */

static uint16_t replica_port(void)
{
	redisReply *reply = ask(redis_port(), "INFO replication");
	const char *at = strstr(reply->str, "slave0:");
	uint16_t port;

	assert_non_null(at);
	port = (uint16_t)atoi(strstr(at, "port=") + 5);
	freeReplyObject(reply);
	return port;
}

static void when_a_commit_returns_the_replica_has_it(void **state)
{
	struct rig *rig = *state;
	uint16_t port = replica_port();
	redisReply *reply;

	for (int i = 1; i < 100; i++) {
		begin(rig);
		put_wanted(rig, ROWS, 9, i);
		commit(rig);
		reply = ask(port, "GET 1:9");
		assert_int_equal(reply->type, REDIS_REPLY_STRING);
		assert_int_equal(reply->len, 128);
		assert_memory_equal(reply->str, wanted(rig, ROWS, 9), 128);
		freeReplyObject(reply);
	}
}

static void without_a_replica_nothing_is_acknowledged(void **state)
{
	struct rig *rig = *state;
	struct engine_options options = options_of(rig);
	uint16_t port = replica_port();
	char why[ENGINE_WHY], back[64];
	redisReply *reply;

	rows_close(&rig->rows);
	options.patience_ms = 200;
	assert_int_equal(try_open(rig, &options, why), 0);
	freeReplyObject(ask(port, "REPLICAOF NO ONE"));
	begin(rig);
	put(rig, ROWS, 9, 1);
	assert_int_not_equal(rows_commit(&rig->rows), 0);
	assert_true(strlen(rows_why(&rig->rows)) > 0);
	refused(rig, &options, "no replica");
	snprintf(back, sizeof(back), "REPLICAOF 127.0.0.1 %u", redis_port());
	freeReplyObject(ask(port, back));
	/* One that is asked for waits until it is there. */
	reply = ask(redis_port(), "WAIT 1 10000");
	assert_int_equal(reply->integer, 1);
	freeReplyObject(reply);
}

/* --- the list ------------------------------------------------------------------------ */

struct kind {
	const char *name;
	CMUnitTestFunction test;
	bool keeps;       /* of an engine that keeps what is committed only */
	const char *only; /* of this engine only */
};

#define TEST(test, keeps, only)          \
	{                                \
#test, test, keeps, only \
	}

static const struct kind kinds[] = {
	TEST(rows_are_zeros_until_they_are_put, false, NULL),
	TEST(rows_at_the_ends_of_tables_come_back, false, NULL),
	TEST(a_transaction_sees_what_it_put, false, NULL),
	TEST(a_transaction_of_a_mebibyte_is_whole, false, NULL),
	TEST(loaded_rows_are_there_and_can_be_put, false, NULL),
	TEST(many_transactions_leave_what_they_must, false, NULL),
	TEST(it_says_what_it_survives, false, NULL),
	TEST(opened_again_it_holds_what_was_committed, true, NULL),
	TEST(opened_again_it_holds_what_was_loaded, true, NULL),
	TEST(killed_it_holds_what_was_committed, true, NULL),
	TEST(an_open_that_fails_says_why, true, NULL),
	TEST(a_strange_file_is_refused, true, NULL),
	TEST(when_a_commit_returns_the_replica_has_it, true, "redis"),
	TEST(without_a_replica_nothing_is_acknowledged, true, "redis"),
};

enum { KINDS = sizeof(kinds) / sizeof(*kinds), ENGINES_MAX = 16 };

/* The library has tests of its own: everything but `perseas`. */
static bool applies(const struct kind *kind, const struct engine_ops *ops)
{
	return !engine_needs_mirrors(ops) && (!kind->keeps || keeps(ops)) &&
	       (!kind->only || !strcmp(kind->only, ops->name));
}

int main(int argc, char **argv)
{
	static struct CMUnitTest tests[KINDS * ENGINES_MAX];
	static char names[KINDS * ENGINES_MAX][128];
	size_t count = 0;

	snprintf(disk, sizeof(disk), "%s", argv[0]);
	dirname(disk);
	for (unsigned i = 0; engines[i]; i++) {
		if (argc > 1 && strcmp(argv[1], engines[i]->name))
			continue;
		for (unsigned k = 0; k < KINDS; k++) {
			if (!applies(&kinds[k], engines[i]))
				continue;
			snprintf(names[count], sizeof(*names), "%s: %s", engines[i]->name,
			         kinds[k].name);
			tests[count] = (struct CMUnitTest){
				names[count], kinds[k].test, set_up, tear_down, (void *)engines[i],
			};
			count++;
		}
	}
	return _cmocka_run_group_tests("peers", tests, count, NULL, NULL);
}
