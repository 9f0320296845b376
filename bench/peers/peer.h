/*
 * peer.h - helpers that the drivers of other transaction systems share: where their files are, and
 * how much room their data takes.
 */
#ifndef PERSEAS_BENCH_PEER_H
#define PERSEAS_BENCH_PEER_H

#include "../engine.h"

#include <string.h>

enum { PEER_PATH = 4096 };

/*
 * Writes the absolute path of `name` in the folder options->dir to `path` of PEER_PATH bytes. For
 * an engine that survives "power" the folder must be on a disk. Returns 0, or -1 with the reason
 * stored for engine_why.
 */
int peer_path(struct engine *engine, const struct engine_options *options, const char *name,
              char *path);

/* Copies a row of `size` bytes that the system found, or zeros if `found` is NULL: the row was
 * never put. Returns 0, or -1 with the reason stored for engine_why if the size is wrong. */
int peer_row(struct engine *engine, unsigned table, const void *found, size_t size, void *row);

/* Returns true if a commit waits for the disk. */
static inline bool peer_sync(const struct engine *engine)
{
	return !strcmp(engine->ops->survives, "power");
}

/* Returns the bytes of a cache that has room for the whole database, as other engines have all of
 * it in memory. */
uint64_t peer_cache(const struct engine *engine);

/* Returns the bytes that all rows take if each needs `overhead` bytes more than its contents. */
uint64_t peer_bytes(const struct engine *engine, size_t overhead);

/*
 * Returns a page size with room for `rows` of the largest rows: the next power of two, between
 * `least` and `most`.
 */
uint32_t peer_page(const struct engine *engine, unsigned rows, uint32_t least, uint32_t most);

/* Returns the key of a row. Keys sort by table, then by row. */
static inline uint64_t peer_key(unsigned table, uint64_t id)
{
	return (uint64_t)table << 56 | id;
}

#endif
