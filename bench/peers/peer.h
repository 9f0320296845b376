/*
 * peer.h - what the drivers of other transaction systems have in common: where their files are, and
 * how large what they keep is.
 */
#ifndef PERSEAS_BENCH_PEER_H
#define PERSEAS_BENCH_PEER_H

#include "../engine.h"

#include <string.h>

enum { PEER_PATH = 4096 };

/*
 * options->dir, which must be a folder, in absolute terms and with `name` in it, in `path` of
 * PEER_PATH bytes. For an engine that survives "power" it must be on a disk. 0, or -1 and the
 * reason is remembered.
 */
int peer_path(struct engine *engine, const struct engine_options *options, const char *name,
              char *path);

/* Gives what was found of a row, `size` bytes; NULL: it was never put, and is zeros. 0, or -1 and
 * the reason: it is of another size. */
int peer_row(struct engine *engine, unsigned table, const void *found, size_t size, void *row);

/* Does a commit wait for the disk? */
static inline bool peer_sync(const struct engine *engine)
{
	return !strcmp(engine->ops->survives, "power");
}

/* Bytes of a cache that the whole database fits into, as it fits into other engines' memory. */
uint64_t peer_cache(const struct engine *engine);

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
