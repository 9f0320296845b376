/*
 * peers.h - the transaction systems that Perseas is compared with, as engines (../engine.h).
 *
 * Those that keep files open what options->dir holds, or make it there. What was not committed
 * when an engine is closed, or when its process ends, is not there when it is opened again. The
 * ones whose names end in -sync survive a power failure, and refuse a folder in memory.
 */
#ifndef PERSEAS_BENCH_PEERS_H
#define PERSEAS_BENCH_PEERS_H

#include "../engine.h"

extern const struct engine_ops engine_lmdb;
extern const struct engine_ops engine_lmdb_sync;

/* PMDK's libpmemobj; the second with a replica on the same host, by a pool set. */
extern const struct engine_ops engine_pmemobj;
extern const struct engine_ops engine_pmemobj_replica;

extern const struct engine_ops engine_sqlite;
extern const struct engine_ops engine_sqlite_sync;

extern const struct engine_ops engine_bdb;
extern const struct engine_ops engine_bdb_sync;

/* The server at options->redis_port of this host, which has a replica (redis_pair.py). */
extern const struct engine_ops engine_redis;

/* All engines; NULL after the last. */
extern const struct engine_ops *const engines[];

#endif
