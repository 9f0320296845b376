/*
 * peer.h - what the drivers of other transaction systems have in common: where their files are, and
 * how large what they keep is.
 */
#ifndef PERSEAS_BENCH_PEER_H
#define PERSEAS_BENCH_PEER_H

#include "../engine.h"

enum { PEER_PATH = 4096 };

/*
 * options->dir, which must be a folder, in absolute terms and with `name` in it, in `path` of
 * PEER_PATH bytes. 0, or -1 and the reason is remembered.
 */
int peer_path(struct engine *engine, const struct engine_options *options, const char *name,
              char *path);

/* Is options->dir on something that outlives a power failure? 0, or -1 and the reason. */
int peer_on_disk(struct engine *engine, const struct engine_options *options);

/* What all rows take, when each takes `overhead` bytes more than it holds. */
uint64_t peer_bytes(const struct engine *engine, size_t overhead);

/*
 * A page size that takes `rows` of the largest rows: the power of two from there on, between
 * `least` and `most`.
 */
uint32_t peer_page(const struct engine *engine, unsigned rows, uint32_t least, uint32_t most);

/* The key of a row, in the order of tables and, in a table, of rows. */
static inline uint64_t peer_key(unsigned table, uint64_t id)
{
	return (uint64_t)table << 56 | id;
}

#endif
