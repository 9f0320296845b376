/*
 * store_view.c - a list of all stores for those who watch. watch.c and metrics call it through
 * stores_view. It hands out what is there and changes nothing.
 */
#include "store_private.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct store_view *)a)->name, ((const struct store_view *)b)->name);
}

static int view_all(struct stores *stores, const struct store_view **views, size_t *count)
{
	struct store_view *all;
	struct why why;

	scratch_reset();
	*count = 0;
	*views = all = scratch_alloc((stores->count + 1) * sizeof(*all));
	if (!all)
		return -1;
	for (struct store *store = stores->first; store; store = store->next) {
		Perseas__StoreStatus *status = scratch_alloc(sizeof(*status));

		if (!status)
			return -1;
		/* One that is being made is not there yet. */
		if (!store->header && !store->damage[0])
			continue;
		perseas__store_status__init(status);
		if (store_fill_status(store, status, &why))
			return -1;
		all[(*count)++] = (struct store_view){ store->name, store->damage, store->astray,
			                               store->events, status };
	}
	qsort(all, *count, sizeof(*all), by_name);
	return 0;
}

int stores_view(struct stores *stores, const struct store_view **views, size_t *count)
{
	int ret;

	/* An image that turns out to be torn is shown as what it is. */
	do
		ret = view_all(stores, views, count);
	while (stores_notice_torn(stores));
	return ret;
}

ProtobufCBinaryData stores_daemon(struct stores *stores)
{
	return (ProtobufCBinaryData){ PS_ID_SIZE, stores->daemon };
}

struct memory *stores_memory(const struct stores *stores)
{
	return stores->memory;
}
