/*
 * store_view.c - lists all stores for watch.c and metrics. It changes nothing.
 */
#include "store_private.h"

#include <stdlib.h>
#include <string.h>

static int compare_names(const void *a, const void *b)
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
		/* A store that is being created has no header yet. */
		if (!store->header && !store->damage[0])
			continue;
		perseas__store_status__init(status);
		if (store_fill_status(store, status, &why))
			return -1;
		all[(*count)++] = (struct store_view){
			store->name,
			store->damage,
			store->untouchable == STATUS(IO) || store->untouchable == STATUS(NO_MEMORY),
			store->restart_loss,
			store->events,
			status
		};
	}
	qsort(all, *count, sizeof(*all), compare_names);
	return 0;
}

int stores_view(struct stores *stores, const struct store_view **views, size_t *count)
{
	int ret;

	/* Repeats if an image turns out to be torn, so that it is shown as damaged. */
	do
		ret = view_all(stores, views, count);
	while (stores_notice_torn(stores));
	return ret;
}

ProtobufCBinaryData stores_daemon_id(struct stores *stores)
{
	return (ProtobufCBinaryData){ PS_ID_SIZE, stores->daemon };
}

struct memory *stores_memory(const struct stores *stores)
{
	return stores->memory;
}
