/*
 * engine_redis.c - Redis with a replica: each row is a string. A transaction is one MSET, which is
 * atomic, and a WAIT for the replica, sent together: one round trip.
 *
 * The program is the only client that writes, so the engine caches rows: in transactions it asks
 * the server for a row only once. Outside of transactions it always reads from the server.
 */
#include "../area.h"
#include "../rows.h"
#include "peer.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	KEY_SIZE = 32,
	TABLES_MAX = 12,     /* upper bound for a workload */
	FETCH_ROWS = 512,    /* upper bound for a request */
	PATIENCE_MS = 60000, /* default of options->patience_ms */
};

struct redis {
	struct engine engine;
	redisContext *context;
	uint8_t *copies; /* cached rows, table after table */
	uint64_t offsets[TABLES_MAX + 1];
	uint8_t *known[TABLES_MAX]; /* for each table a bitmap of the rows that are cached */
	FILE *puts; /* stream of the rows put by the open transaction, as arguments of MSET */
	char *text; /* buffer behind `puts` */
	size_t text_length;
	unsigned put_count;
};

/* Reports an error. The connection is unusable afterward: answers may be unread, or cached rows may
 * be newer than the server's. */
static int redis_fail(struct redis *redis, const char *what)
{
	return engine_fail(&redis->engine, "%s: %s", what,
	                   redis->context->err ? redis->context->errstr : "a strange answer");
}

/* --- requests and answers ------------------------------------------------------------- */

/* Reads the next answer, which must have type `type`. Returns NULL on failure, with the reason
 * stored for engine_why. */
static redisReply *take_answer(struct redis *redis, int type, const char *what)
{
	void *reply = NULL;
	redisReply *r;

	if (redisGetReply(redis->context, &reply) != REDIS_OK || !reply) {
		redis_fail(redis, what);
		return NULL;
	}
	r = reply;
	if (r->type == type)
		return r;
	if (r->type == REDIS_REPLY_ERROR)
		engine_fail(&redis->engine, "%s: %s", what, r->str);
	else
		redis_fail(redis, what);
	freeReplyObject(r);
	return NULL;
}

static int send_wait(struct redis *redis, int replicas)
{
	return redisAppendCommand(redis->context, "WAIT %d 0", replicas) == REDIS_OK
	               ? 0
	               : redis_fail(redis, "WAIT");
}

/* Reads the answer to WAIT, which is the number of replicas that acknowledged. Returns 0 if there
 * was one, else -1. */
static int take_wait(struct redis *redis)
{
	redisReply *reply = take_answer(redis, REDIS_REPLY_INTEGER, "WAIT");
	bool there = reply && reply->integer >= 1;

	if (reply && !there)
		engine_fail(&redis->engine, "the server on port %d has no replica",
		            redis->context->tcp.port);
	freeReplyObject(reply);
	return there ? 0 : -1;
}

static size_t make_key(char *key, unsigned table, uint64_t id)
{
	return (size_t)snprintf(key, KEY_SIZE, "%u:%" PRIu64, table, id);
}

/* Sends one MSET with all rows that the transaction put. */
static int send_puts(struct redis *redis)
{
	char head[64];
	int length = snprintf(head, sizeof(head), "*%u\r\n$4\r\nMSET\r\n",
	                      2 * redis->put_count + 1);

	redis->put_count = 0;
	if (fflush(redis->puts) ||
	    redisAppendFormattedCommand(redis->context, head, (size_t)length) != REDIS_OK ||
	    redisAppendFormattedCommand(redis->context, redis->text, redis->text_length) !=
	            REDIS_OK)
		return redis_fail(redis, "MSET");
	rewind(redis->puts);
	return 0;
}

static int take_puts(struct redis *redis)
{
	redisReply *reply = take_answer(redis, REDIS_REPLY_STATUS, "MSET");

	freeReplyObject(reply);
	return reply ? 0 : -1;
}

/* --- rows and the cache --------------------------------------------------------------- */

static uint8_t *copy_of(const struct redis *redis, unsigned table, uint64_t id)
{
	return redis->copies + redis->offsets[table] + id * redis->engine.tables[table].size;
}

static bool is_known(const struct redis *redis, unsigned table, uint64_t id)
{
	return redis->known[table][id / 8] >> id % 8 & 1;
}

static void now_known(struct redis *redis, unsigned table, uint64_t id)
{
	redis->known[table][id / 8] |= (uint8_t)(1 << id % 8);
}

static int redis_put(struct engine *engine, unsigned table, uint64_t id, const void *row)
{
	struct redis *redis = (struct redis *)engine;
	uint32_t size = engine->tables[table].size;
	char key[KEY_SIZE];
	size_t length = make_key(key, table, id);

	redis->put_count++;
	fprintf(redis->puts, "$%zu\r\n%s\r\n$%u\r\n", length, key, size);
	fwrite(row, size, 1, redis->puts);
	fputs("\r\n", redis->puts);
	memcpy(copy_of(redis, table, id), row, size);
	now_known(redis, table, id);
	return ferror(redis->puts) ? engine_fail(engine, "put: out of memory") : 0;
}

/* Copies a row out of the server's answer. */
static int take_row(struct redis *redis, const redisReply *reply, unsigned table, void *row)
{
	if (reply->type != REDIS_REPLY_NIL && reply->type != REDIS_REPLY_STRING)
		return redis_fail(redis, "get");
	return peer_row(&redis->engine, table, reply->str, reply->len, row);
}

/* Reads `count` rows from `id` on from the server into `rows`. */
static int fetch_rows(struct redis *redis, unsigned table, uint64_t id, unsigned count,
                      uint8_t *rows)
{
	char keys[FETCH_ROWS][KEY_SIZE];
	const char *words[FETCH_ROWS + 1] = { "MGET" };
	size_t lengths[FETCH_ROWS + 1] = { 4 };
	redisReply *reply;
	int bad = 0;

	for (unsigned i = 0; i < count; i++) {
		words[i + 1] = keys[i];
		lengths[i + 1] = make_key(keys[i], table, id + i);
	}
	if (redisAppendCommandArgv(redis->context, (int)count + 1, words, lengths) != REDIS_OK)
		return redis_fail(redis, "get");
	reply = take_answer(redis, REDIS_REPLY_ARRAY, "get");
	if (!reply)
		return -1;
	if (reply->elements != count)
		bad = redis_fail(redis, "get");
	for (unsigned i = 0; i < count && !bad; i++, rows += redis->engine.tables[table].size)
		bad = take_row(redis, reply->element[i], table, rows);
	freeReplyObject(reply);
	return bad;
}

static int redis_read(struct engine *engine, unsigned table, uint64_t id, uint64_t count,
                      void *rows)
{
	struct redis *redis = (struct redis *)engine;
	uint8_t *at = rows;

	while (count) {
		unsigned some = count < FETCH_ROWS ? (unsigned)count : FETCH_ROWS;

		if (fetch_rows(redis, table, id, some, at))
			return -1;
		id += some;
		count -= some;
		at += some * (size_t)engine->tables[table].size;
	}
	return 0;
}

static int redis_get(struct engine *engine, unsigned table, uint64_t id, void *row)
{
	struct redis *redis = (struct redis *)engine;
	uint8_t *copy = copy_of(redis, table, id);

	if (!is_known(redis, table, id)) {
		if (fetch_rows(redis, table, id, 1, copy))
			return -1;
		now_known(redis, table, id);
	}
	memcpy(row, copy, engine->tables[table].size);
	return 0;
}

/* --- transactions -------------------------------------------------------------------- */

/* Does nothing: the transaction is sent when it commits. */
static int redis_begin(struct engine *engine)
{
	(void)engine;
	return 0;
}

static int redis_commit(struct engine *engine)
{
	struct redis *redis = (struct redis *)engine;

	if (!redis->put_count)
		return 0;
	if (send_puts(redis) || send_wait(redis, 1) || take_puts(redis))
		return -1;
	return take_wait(redis);
}

/* --- opening and closing ------------------------------------------------------------- */

/* Closes the connection. Uncommitted changes were never sent. */
static void redis_close(struct engine *engine)
{
	struct redis *redis = (struct redis *)engine;

	if (redis->context)
		redisFree(redis->context);
	area_free(redis->copies, redis->offsets[redis->engine.table_count] + 1);
	for (unsigned i = 0; i < TABLES_MAX; i++)
		free(redis->known[i]);
	if (redis->puts)
		fclose(redis->puts);
	free(redis->text);
}

static int reach_server(struct redis *redis, const struct engine_options *options)
{
	uint32_t ms = options->patience_ms ? options->patience_ms : PATIENCE_MS;
	struct timeval limit = { ms / 1000, ms % 1000 * 1000 };

	if (!options->redis_port)
		return engine_fail(&redis->engine,
		                   "no port of a server is given; redis_pair.py starts "
		                   "one with a replica");
	redis->context = redisConnectWithTimeout("127.0.0.1", options->redis_port, limit);
	if (!redis->context)
		return engine_fail(&redis->engine, "out of memory");
	if (redis->context->err)
		return engine_fail(&redis->engine,
		                   "port %u of 127.0.0.1: %s; redis_pair.py starts a "
		                   "server with a replica",
		                   options->redis_port, redis->context->errstr);
	/* Without a timeout, WAIT would block forever if the replica is gone. */
	if (redisSetTimeout(redis->context, limit) != REDIS_OK)
		return redis_fail(redis, "time limit");
	return 0;
}

static int make_copies(struct redis *redis)
{
	const struct engine *engine = &redis->engine;

	rows_lay_out(engine->tables, engine->table_count, redis->offsets);
	for (unsigned i = 0; i < engine->table_count; i++) {
		redis->known[i] = calloc(1, engine->tables[i].count / 8 + 1);
		if (!redis->known[i])
			return engine_fail(&redis->engine, "out of memory");
	}
	redis->copies = area_new(redis->offsets[engine->table_count] + 1);
	redis->puts = open_memstream(&redis->text, &redis->text_length);
	return redis->copies && redis->puts ? 0 : engine_fail(&redis->engine, "out of memory");
}

/* Writes the server's version and configuration to engine->setup. */
static int describe_server(struct redis *redis)
{
	static const char field[] = "redis_version:";
	redisReply *reply;
	const char *at;

	if (redisAppendCommand(redis->context, "INFO server") != REDIS_OK)
		return redis_fail(redis, "INFO");
	reply = take_answer(redis, REDIS_REPLY_STRING, "INFO");
	if (!reply)
		return -1;
	at = strstr(reply->str, field);
	at = at ? at + sizeof(field) - 1 : "";
	snprintf(redis->engine.setup, ENGINE_SETUP,
	         "Redis %.*s, one replica, no files, tcp on "
	         "127.0.0.1; a transaction is MSET and WAIT 1 0 in one round trip, the client "
	         "keeps copies of rows",
	         (int)strcspn(at, "\r\n"), at);
	freeReplyObject(reply);
	return 0;
}

static int redis_open(struct engine *engine, const struct engine_options *options, size_t size,
                      void **memory)
{
	struct redis *redis = (struct redis *)engine;

	(void)size;
	(void)memory;
	return make_copies(redis) || reach_server(redis, options) || send_wait(redis, 0) ||
	       take_wait(redis) || describe_server(redis);
}

const struct engine_ops engine_redis = {
	.name = "redis",
	.survives = "host",
	.size = sizeof(struct redis),
	.open = redis_open,
	.begin = redis_begin,
	.commit = redis_commit,
	.get = redis_get,
	.put = redis_put,
	.read = redis_read,
	.close = redis_close,
};
