/*
 * peer.h - what the drivers of other transaction systems have in common: the tables' sizes, the
 * reason of a failure, the line that says how the system is set up.
 */
#ifndef PERSEAS_BENCH_PEER_H
#define PERSEAS_BENCH_PEER_H

#include "../engine.h"

enum {
	PEER_TABLES = 32,
	PEER_PATH = 4096,
	PEER_SETUP = 512,
	PEER_BATCH = 16 << 20, /* bytes of rows that are loaded in one transaction */
};

/* The first member of every driver. */
struct peer {
	struct engine engine;
	struct engine_table tables[PEER_TABLES];
	unsigned table_count;
	int (*start)(struct engine *engine); /* opens a transaction, for peer_load */
	bool loading; /* rows were loaded, and no transaction has begun since */
	size_t batch; /* bytes of rows in the transaction that loads; 0: none does */
	char setup[PEER_SETUP];
	char why[ENGINE_WHY];
};

/* A driver of `size` bytes, zeros but for its `peer`. NULL: the reason is in `why`. */
void *peer_new(const struct engine_ops *ops, const struct engine_options *options, size_t size,
               char *why);

/* What `open` returns: the engine, or, when `bad`, NULL and the reason; it is closed then. */
struct engine *peer_opened(struct peer *peer, bool bad, char *why);

/* Remembers why something failed. Returns -1. */
int peer_fail(struct peer *peer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for a function of the C library; errno says what is wrong with `path`. */
int peer_fail_errno(struct peer *peer, const char *path);

/*
 * options->dir, which must be a folder, in absolute terms and with `name` in it, in `path` of
 * PEER_PATH bytes. 0, or -1 and the reason is remembered.
 */
int peer_path(struct peer *peer, const struct engine_options *options, const char *name,
              char *path);

/* Is options->dir on something that outlives a power failure? 0, or -1 and the reason. */
int peer_on_disk(struct peer *peer, const struct engine_options *options);

/* What all rows take, when each takes `overhead` bytes more than it holds. */
uint64_t peer_bytes(const struct peer *peer, size_t overhead);

/*
 * A page size that takes `rows` of the largest rows: the power of two from there on, between
 * `least` and `most`.
 */
uint32_t peer_page(const struct peer *peer, unsigned rows, uint32_t least, uint32_t most);

/* The key of a row, in the order of tables and, in a table, of rows. */
static inline uint64_t peer_key(unsigned table, uint64_t id)
{
	return (uint64_t)table << 56 | id;
}

/*
 * Serves as `load` of a driver that has a `start`: transactions of PEER_BATCH bytes, with `put` and
 * `commit` as they are. `begin` calls peer_end_load first when rows were loaded, and so does
 * `close`, which keeps what was loaded.
 */
int peer_load(struct engine *engine, unsigned table, uint64_t id, const void *row);

/* Commits what is loaded and is not yet committed. 0, or -1 and the reason is remembered. */
int peer_end_load(struct peer *peer);

/* The members of engine_ops that are the same in all drivers. */
#define PEER_OPS .why = peer_why, .configuration = peer_configuration, .handle = peer_handle

const char *peer_why(const struct engine *engine);
const char *peer_configuration(const struct engine *engine);
struct perseas *peer_handle(struct engine *engine);

#endif
