/*
 * engines.c - the engines by name, where the drivers of others are not linked.
 */
#include "engine.h"

#include <string.h>

/* Weak: bench/peers/ brings one that knows more. */
__attribute__((weak)) const struct engine_ops *engine_by_name(const char *name)
{
	static const struct engine_ops *const engines[] = {
		&engine_perseas,
		&engine_local,
		&engine_copies,
		&engine_none,
	};

	for (unsigned i = 0; i < sizeof(engines) / sizeof(*engines); i++)
		if (!strcmp(engines[i]->name, name))
			return engines[i];
	return NULL;
}
