/*
 * engines.c - every engine by its name.
 */
#include "peers.h"

#include <string.h>

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
