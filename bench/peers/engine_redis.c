/*
 * engine_redis.c - Redis with a replica: a string for each row. A transaction is one MSET, which
 * is atomic, and a WAIT for the replica, sent together: one round trip.
 *
 * Whoever uses this engine is the only one that writes, and so may keep copies of the rows: in a
 * transaction a row is asked for once. Outside of transactions rows are always the server's.
 */
#include "../area.h"
#include "peer.h"
#include "peers.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	KEY_SIZE = 32,
	AHEAD_ROWS = 512, /* that a read outside of transactions fetches at most */
	AHEAD_BYTES = 64 << 10,
	LOAD_BYTES = 256 << 10,
	PATIENCE_MS = 60000, /* when the options do not say */
};

/* A row that the open transaction, or a batch that loads, has put. */
struct put {
	char key[KEY_SIZE];
	size_t key_length;
	uint8_t *row; /* its copy */
	uint32_t size;
};

struct redis {
	struct peer peer;
	redisContext *context;
	uint8_t *copies; /* of the rows, table after table */
	uint64_t offsets[PEER_TABLES + 1];
	uint8_t *known[PEER_TABLES]; /* which rows have a copy: a bit for each */
	struct put *puts;
	unsigned put_count, put_room;
	const char **words; /* of the command that puts them */
	size_t *lengths;
	bool open;      /* a transaction is */
	uint8_t *ahead; /* rows after one that was asked for: AHEAD_BYTES, or one row */
	unsigned ahead_table;
	uint64_t ahead_first, ahead_count;
};

/* After this the connection is of no use: answers may be missing, or copies be ahead. */
static int fail(struct redis *redis, const char *what)
{
	return peer_fail(&redis->peer, "%s: %s", what,
	                 redis->context->err ? redis->context->errstr : "a strange answer");
}

/* --- talking ------------------------------------------------------------------------- */

/* The next answer, which must be of that type. NULL, and the reason is remembered. */
static redisReply *answer(struct redis *redis, int type, const char *what)
{
	void *reply = NULL;
	redisReply *r;

	if (redisGetReply(redis->context, &reply) != REDIS_OK || !reply) {
		fail(redis, what);
		return NULL;
	}
	r = reply;
	if (r->type == type)
		return r;
	if (r->type == REDIS_REPLY_ERROR)
		peer_fail(&redis->peer, "%s: %s", what, r->str);
	else
		fail(redis, what);
	freeReplyObject(r);
	return NULL;
}

static int send_wait(struct redis *redis)
{
	return redisAppendCommand(redis->context, "WAIT 1 0") == REDIS_OK ? 0 : fail(redis, "WAIT");
}

/* How many replicas there are is what WAIT answers. */
static int take_wait(struct redis *redis)
{
	redisReply *reply = answer(redis, REDIS_REPLY_INTEGER, "WAIT");
	bool there = reply && reply->integer >= 1;

	if (reply && !there)
		peer_fail(&redis->peer, "the server on port %d has no replica",
		          redis->context->tcp.port);
	freeReplyObject(reply);
	return there ? 0 : -1;
}

static size_t make_key(char *key, unsigned table, uint64_t id)
{
	return (size_t)snprintf(key, KEY_SIZE, "%u:%" PRIu64, table, id);
}

/* One command that puts all rows of the list. */
static int send_puts(struct redis *redis)
{
	unsigned count = 1;

	redis->words[0] = "MSET";
	redis->lengths[0] = 4;
	for (unsigned i = 0; i < redis->put_count; i++) {
		redis->words[count] = redis->puts[i].key;
		redis->lengths[count++] = redis->puts[i].key_length;
		redis->words[count] = (const char *)redis->puts[i].row;
		redis->lengths[count++] = redis->puts[i].size;
	}
	redis->put_count = 0;
	if (redisAppendCommandArgv(redis->context, (int)count, redis->words, redis->lengths) !=
	    REDIS_OK)
		return fail(redis, "MSET");
	return 0;
}

static int take_puts(struct redis *redis)
{
	redisReply *reply = answer(redis, REDIS_REPLY_STATUS, "MSET");

	freeReplyObject(reply);
	return reply ? 0 : -1;
}

/* --- the rows and their copies ------------------------------------------------------- */

static uint8_t *copy_of(const struct redis *redis, unsigned table, uint64_t id)
{
	return redis->copies + redis->offsets[table] + id * redis->peer.tables[table].size;
}

static bool is_known(const struct redis *redis, unsigned table, uint64_t id)
{
	return redis->known[table][id / 8] >> id % 8 & 1;
}

static void now_known(struct redis *redis, unsigned table, uint64_t id)
{
	redis->known[table][id / 8] |= (uint8_t)(1 << id % 8);
}

static int more_room(struct redis *redis)
{
	unsigned room = redis->put_room ? 2 * redis->put_room : 64;
	struct put *puts = reallocarray(redis->puts, room, sizeof(*puts));
	const char **words;
	size_t *lengths;

	if (puts)
		redis->puts = puts;
	words = reallocarray(redis->words, 2 * room + 1, sizeof(*words));
	if (words)
		redis->words = words;
	lengths = reallocarray(redis->lengths, 2 * room + 1, sizeof(*lengths));
	if (lengths)
		redis->lengths = lengths;
	if (!puts || !words || !lengths)
		return peer_fail(&redis->peer, "put: out of memory");
	redis->put_room = room;
	return 0;
}

static int redis_put(struct engine *engine, unsigned table, uint64_t id, const void *row)
{
	struct redis *redis = (struct redis *)engine;
	struct put *put;

	if (redis->put_count == redis->put_room && more_room(redis))
		return -1;
	put = &redis->puts[redis->put_count++];
	put->key_length = make_key(put->key, table, id);
	put->row = copy_of(redis, table, id);
	put->size = redis->peer.tables[table].size;
	memcpy(put->row, row, put->size);
	now_known(redis, table, id);
	return 0;
}

/* What the server said of a row. One that was never put is zeros. */
static int take_row(struct redis *redis, const redisReply *reply, unsigned table, void *row)
{
	uint32_t size = redis->peer.tables[table].size;

	if (reply->type == REDIS_REPLY_NIL) {
		memset(row, 0, size);
		return 0;
	}
	if (reply->type != REDIS_REPLY_STRING || (size_t)reply->len != size)
		return peer_fail(&redis->peer, "get: a row of another size; take a server that is "
		                               "empty");
	memcpy(row, reply->str, size);
	return 0;
}

/* Fetches `count` rows from `id` on, into `rows`. */
static int fetch(struct redis *redis, unsigned table, uint64_t id, unsigned count, uint8_t *rows)
{
	char keys[AHEAD_ROWS][KEY_SIZE];
	const char *words[AHEAD_ROWS + 1] = { "MGET" };
	size_t lengths[AHEAD_ROWS + 1] = { 4 };
	redisReply *reply;
	int bad = 0;

	for (unsigned i = 0; i < count; i++) {
		words[i + 1] = keys[i];
		lengths[i + 1] = make_key(keys[i], table, id + i);
	}
	if (redisAppendCommandArgv(redis->context, (int)count + 1, words, lengths) != REDIS_OK)
		return fail(redis, "get");
	reply = answer(redis, REDIS_REPLY_ARRAY, "get");
	if (!reply)
		return -1;
	if (reply->elements != count)
		bad = fail(redis, "get");
	for (unsigned i = 0; i < count && !bad; i++, rows += redis->peer.tables[table].size)
		bad = take_row(redis, reply->element[i], table, rows);
	freeReplyObject(reply);
	return bad;
}

/* A row as the server has it, and with it some of those after it. */
static int read_ahead(struct redis *redis, unsigned table, uint64_t id, void *row)
{
	const struct engine_table *t = &redis->peer.tables[table];
	uint64_t count = AHEAD_BYTES / t->size;

	if (table != redis->ahead_table || id - redis->ahead_first >= redis->ahead_count) {
		count = count > AHEAD_ROWS ? AHEAD_ROWS : count ? count : 1;
		count = count > t->count - id ? t->count - id : count;
		redis->ahead_count = 0;
		if (fetch(redis, table, id, (unsigned)count, redis->ahead))
			return -1;
		redis->ahead_table = table;
		redis->ahead_first = id;
		redis->ahead_count = count;
	}
	memcpy(row, redis->ahead + (id - redis->ahead_first) * t->size, t->size);
	return 0;
}

/* Has the server take what was loaded, and its replica, too, when nothing more comes. */
static int flush(struct redis *redis, bool last)
{
	if (redis->put_count && (send_puts(redis) || take_puts(redis)))
		return -1;
	redis->peer.batch = 0;
	redis->ahead_count = 0;
	if (!last)
		return 0;
	redis->peer.loading = false;
	return send_wait(redis) || take_wait(redis) ? -1 : 0;
}

static int redis_get(struct engine *engine, unsigned table, uint64_t id, void *row)
{
	struct redis *redis = (struct redis *)engine;
	uint8_t *copy = copy_of(redis, table, id);

	if (!redis->open) {
		if (redis->peer.loading && flush(redis, true))
			return -1;
		return read_ahead(redis, table, id, row);
	}
	if (!is_known(redis, table, id)) {
		if (fetch(redis, table, id, 1, copy))
			return -1;
		now_known(redis, table, id);
	}
	memcpy(row, copy, redis->peer.tables[table].size);
	return 0;
}

static int redis_load(struct engine *engine, unsigned table, uint64_t id, const void *row)
{
	struct redis *redis = (struct redis *)engine;

	redis->peer.loading = true;
	if (redis_put(engine, table, id, row))
		return -1;
	redis->peer.batch += redis->peer.tables[table].size;
	return redis->peer.batch < LOAD_BYTES ? 0 : flush(redis, false);
}

/* --- transactions -------------------------------------------------------------------- */

static int redis_begin(struct engine *engine)
{
	struct redis *redis = (struct redis *)engine;

	if (redis->peer.loading && flush(redis, true))
		return -1;
	redis->open = true;
	redis->ahead_count = 0;
	return 0;
}

static int redis_commit(struct engine *engine)
{
	struct redis *redis = (struct redis *)engine;

	redis->open = false;
	if (!redis->put_count)
		return 0;
	if (send_puts(redis) || send_wait(redis) || take_puts(redis))
		return -1;
	return take_wait(redis);
}

/* --- opening and closing ------------------------------------------------------------- */

/* What was loaded stays; what is not committed was never sent. */
static void redis_close(struct engine *engine)
{
	struct redis *redis = (struct redis *)engine;

	if (!redis)
		return;
	if (redis->peer.loading)
		flush(redis, true);
	if (redis->context)
		redisFree(redis->context);
	area_free(redis->copies, redis->offsets[redis->peer.table_count] + 1);
	for (unsigned i = 0; i < PEER_TABLES; i++)
		free(redis->known[i]);
	free(redis->puts);
	free(redis->words);
	free(redis->lengths);
	free(redis->ahead);
	free(redis);
}

static int reach(struct redis *redis, const struct engine_options *options)
{
	uint32_t ms = options->patience_ms ? options->patience_ms : PATIENCE_MS;
	struct timeval limit = { ms / 1000, ms % 1000 * 1000 };

	if (!options->redis_port)
		return peer_fail(&redis->peer, "no port of a server is given; redis_pair.py starts "
		                               "one with a replica");
	redis->context = redisConnectWithTimeout("127.0.0.1", options->redis_port, limit);
	if (!redis->context)
		return peer_fail(&redis->peer, "out of memory");
	if (redis->context->err)
		return peer_fail(&redis->peer,
		                 "port %u of 127.0.0.1: %s; redis_pair.py starts a "
		                 "server with a replica",
		                 options->redis_port, redis->context->errstr);
	/* A replica that has gone would be waited for for ever. */
	if (redisSetTimeout(redis->context, limit) != REDIS_OK)
		return fail(redis, "time limit");
	return 0;
}

static int check_replica(struct redis *redis)
{
	if (redisAppendCommand(redis->context, "WAIT 0 0") != REDIS_OK)
		return fail(redis, "WAIT");
	return take_wait(redis);
}

static int make_room(struct redis *redis)
{
	const struct peer *peer = &redis->peer;
	size_t largest = AHEAD_BYTES, bytes;

	for (unsigned i = 0; i < peer->table_count; i++) {
		redis->offsets[i + 1] = redis->offsets[i] +
		                        peer->tables[i].count * peer->tables[i].size;
		if (peer->tables[i].size > largest)
			largest = peer->tables[i].size;
		redis->known[i] = calloc(1, peer->tables[i].count / 8 + 1);
		if (!redis->known[i])
			return peer_fail(&redis->peer, "out of memory");
	}
	redis->ahead = malloc(largest);
	bytes = redis->offsets[peer->table_count] + 1;
	redis->copies = area_new(bytes);
	if (!redis->ahead || !redis->copies)
		return peer_fail(&redis->peer, "out of memory");
	return 0;
}

/* The version of the server, for the line that says how things are set up. */
static int describe(struct redis *redis)
{
	static const char field[] = "redis_version:";
	redisReply *reply;
	const char *at;

	if (redisAppendCommand(redis->context, "INFO server") != REDIS_OK)
		return fail(redis, "INFO");
	reply = answer(redis, REDIS_REPLY_STRING, "INFO");
	if (!reply)
		return -1;
	at = strstr(reply->str, field);
	at = at ? at + sizeof(field) - 1 : "";
	snprintf(redis->peer.setup, PEER_SETUP,
	         "Redis %.*s, one replica, no files, tcp on "
	         "127.0.0.1; a transaction is MSET and WAIT 1 0 in one round trip, the client "
	         "keeps copies of rows",
	         (int)strcspn(at, "\r\n"), at);
	freeReplyObject(reply);
	return 0;
}

static struct engine *redis_open(const struct engine_options *options, size_t size, void **memory,
                                 char *why)
{
	struct redis *redis = peer_new(&engine_redis, options, sizeof(*redis), why);
	bool bad;

	(void)size;
	*memory = NULL;
	if (!redis)
		return NULL;
	bad = make_room(redis) || reach(redis, options) || check_replica(redis) || describe(redis);
	return peer_opened(&redis->peer, bad, why);
}

const struct engine_ops engine_redis = {
	.name = "redis",
	.open = redis_open,
	.begin = redis_begin,
	.commit = redis_commit,
	.get = redis_get,
	.put = redis_put,
	.load = redis_load,
	.survives = "host",
	.close = redis_close,
	PEER_OPS,
};
