/*
 * engines.c - the engines by name, and what opening, closing and failing are for all of them.
 */
#include "engine.h"

#include "../client/perseas.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Other transaction systems. Those that keep files open what options->dir holds, or make it there.
 * The ones whose names end in -sync survive a power failure, and refuse a folder in memory. They
 * are weak: where the drivers in bench/peers/ are not linked, all of them are NULL.
 */
#define PEER_ENGINE(name) extern const struct engine_ops engine_##name __attribute__((weak))
PEER_ENGINE(lmdb);
PEER_ENGINE(lmdb_sync);
PEER_ENGINE(pmemobj);
PEER_ENGINE(pmemobj_replica);
PEER_ENGINE(sqlite);
PEER_ENGINE(sqlite_sync);
PEER_ENGINE(bdb);
PEER_ENGINE(bdb_sync);
PEER_ENGINE(redis);

const struct engine_ops *const engines[] = {
	&engine_perseas, &engine_local,
	&engine_copies,  &engine_none,
	&engine_lmdb,    &engine_lmdb_sync,
	&engine_pmemobj, &engine_pmemobj_replica,
	&engine_sqlite,  &engine_sqlite_sync,
	&engine_bdb,     &engine_bdb_sync,
	&engine_redis,   NULL,
};

const struct engine_ops *engine_by_name(const char *name)
{
	for (unsigned i = 0; engines[i]; i++)
		if (!strcmp(engines[i]->name, name))
			return engines[i];
	return NULL;
}

struct engine *engine_open(const struct engine_ops *ops, const struct engine_options *options,
                           size_t size, void **memory, char *why)
{
	struct engine *engine = calloc(1, ops->size);

	*memory = NULL;
	if (!engine) {
		snprintf(why, ENGINE_WHY, "%s", strerror(errno));
		return NULL;
	}
	engine->ops = ops;
	engine->tables = options->tables;
	engine->table_count = options->table_count;
	if (!ops->open(engine, options, size, memory))
		return engine;
	snprintf(why, ENGINE_WHY, "%s", engine_why(engine));
	engine_close(engine);
	return NULL;
}

void engine_close(struct engine *engine)
{
	if (engine)
		engine->ops->close(engine);
	free(engine);
}

const char *engine_why(const struct engine *engine)
{
	return engine->handle ? perseas_message(engine->handle) : engine->why;
}

int engine_fail(struct engine *engine, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(engine->why, sizeof(engine->why), format, args);
	va_end(args);
	return -1;
}
