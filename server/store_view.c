#include "store_private.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct store_view *)a)->name, ((const struct store_view *)b)->name);
}

int stores_view(struct stores *stores, const struct store_view **views, size_t *count)
{
	struct store_view *all;
	struct why why;

	scratch_reset(stores);
	*count = 0;
	*views = all = scratch_alloc(stores, (stores->count + 1) * sizeof(*all));
	if (!all)
		return -1;
	for (struct store *store = stores->first; store; store = store->next) {
		Perseas__StoreStatus *status = scratch_alloc(stores, sizeof(*status));

		if (!status)
			return -1;
		perseas__store_status__init(status);
		if (store_fill_status(store, status, &why))
			return -1;
		all[(*count)++] = (struct store_view){ store->name, store->damage, store->events,
			                               status };
	}
	qsort(all, *count, sizeof(*all), by_name);
	return 0;
}

struct memory *stores_memory(const struct stores *stores)
{
	return stores->memory;
}
