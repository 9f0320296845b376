/*
 * engines.c - the list of engines, and opening, closing and error messages of all engines.
 */
#include "engine.h"

#include "../client/perseas.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Other transaction systems. Those with files open what options->dir contains, or create it there.
 * Engines whose names end in -sync survive a power failure, and refuse a folder in memory. The
 * symbols are weak: they are NULL if the drivers in bench/peers/ are not linked.
 */
#define PEERS(with)                                                                 \
	with(lmdb) with(lmdb_sync) with(pmemobj) with(pmemobj_replica) with(sqlite) \
		with(sqlite_sync) with(bdb) with(bdb_sync) with(redis)
#define DECLARE(name) extern const struct engine_ops engine_##name __attribute__((weak));
#define LIST(name) &engine_##name,

/* clang-format off */
PEERS(DECLARE)

const struct engine_ops *const engines[] = {
	&engine_perseas, &engine_nowait_8, &engine_nowait_64, &engine_nowait_1000,
	&engine_gathered_1000, &engine_flying_32, &engine_pages, &engine_tracked,
	&engine_rvm, &engine_rvm_no_flush, &engine_local, &engine_copies, &engine_none,
	&engine_pingpong, &engine_unix_pingpong, PEERS(LIST) NULL,
};
/* clang-format on */

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
