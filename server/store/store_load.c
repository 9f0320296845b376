/*
 * store_load.c - finds the images that an earlier daemon left, and serves those that pass their
 * checks. main.c calls it once, at the start. What does not pass is named and kept for somebody
 * to look at.
 */
#include "store_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct loading {
	struct stores *stores;
	void (*complain)(void *arg, const char *text);
	void *arg;
	bool short_of; /* memory: a store is not known */
};

static void report_store(struct loading *loading, const char *store, const char *text)
{
	char line[1024];

	snprintf(line, sizeof(line), "store %s: %s", store, text);
	loading->complain(loading->arg, line);
}

/*
 * The page says to whom the memory was given. Where it differs from the header, a claim was
 * under way: the process that holds the memory, if any does, is not the one that the header
 * promises to, and must not find a promise of its own.
 */
static void settle_promise(struct store *store)
{
	const Perseas__Header *header = store->header;
	const ProtobufCBinaryData nobody = { 0, NULL };
	static const uint8_t zero[PS_ID_SIZE];
	struct ps_promise page;
	const uint8_t *owner = zero;

	memcpy(&page, store->image.regions[PS_REGION_PROMISE].base, sizeof(page));
	if (header->promised_owner.len == PS_ID_SIZE)
		owner = header->promised_owner.data;
	if (page.epoch == header->promised_epoch && memcmp(page.owner, owner, PS_ID_SIZE) == 0)
		return;
	if (header->shared)
		image_promise(&store->image, PS_PROMISE_RETIRED, nobody);
	else
		image_promise(&store->image, header->promised_epoch, header->promised_owner);
}

static Perseas__Header *read_header(struct store *store, int *ret)
{
	struct memory *memory = store->stores->memory;
	Perseas__Header *header;
	const char *text = NULL;
	uint8_t *bytes;
	size_t len;

	*ret = memory->ops->load(memory, store->name, "header", &bytes, &len);
	if (*ret) {
		snprintf(store->damage, sizeof(store->damage), "its header cannot be read");
		return NULL;
	}
	header = ps_header_unpack(bytes, len, &text);
	free(bytes);
	if (!header) {
		store->later = ps_is_later(text);
		snprintf(store->damage, sizeof(store->damage), "%s%s",
		         store->later ? "" : "its header is not valid: ", text);
		return NULL;
	}
	if (strcmp(header->store, store->name) != 0)
		snprintf(store->damage, sizeof(store->damage), "its header is of store %s",
		         header->store);
	else if (!ps_header_valid(header, &text))
		snprintf(store->damage, sizeof(store->damage), "its header is not valid: %s", text);
	else
		return header;
	header_free(header);
	return NULL;
}

/* Returns why the image is not the memory that it was: it may have been written back to a disk, or
 * been copied and put back, and be older than what was acknowledged. A spill, or another mirror, is
 * right where it is not. NULL: it is that memory. */
static const char *reason_to_set_aside(const struct store *store, const Perseas__Header *header)
{
	if (!header_lasts(store, header))
		return "is of another boot of this host";
	if (header_is_copy(store, header))
		return "was copied here or put back, since its files are not those that a daemon "
		       "served last";
	return NULL;
}

static void set_aside(struct loading *loading, struct store *store, const char *reason)
{
	struct memory *memory = loading->stores->memory;
	char where[160] = "", text[400];

	if (memory->ops->set_aside(memory, store->name, where, sizeof(where)) < 0) {
		snprintf(store->damage, sizeof(store->damage),
		         "its image %s, and cannot be set aside", reason);
		report_store(loading, store->name, store->damage);
		return;
	}
	snprintf(text, sizeof(text),
	         "its image %s, and what is there may be old: it is not used, and set aside as %s "
	         "in the memory directory",
	         reason, where);
	report_store(loading, store->name, text);
	store_delete(store);
}

/* It gets this boot, and room is kept for the next header: images of versions before this have
 * neither. Without room for that the store is served all the same. */
static void renew_header(struct loading *loading, struct store *store)
{
	struct why why = { .text = "" };
	Perseas__Header *header;

	if (!header_is_old(store, store->header) || header_edit(store->header, &header, &why) ||
	    header_commit(store, header, &why) == 0)
		return;
	report_store(loading, store->name, why.text);
}

/* The header is there for those who look on when its image is. */
static int open_image(struct store *store, Perseas__Header *header)
{
	int ret = image_open(store, header, &store->image, store->damage, sizeof(store->damage));

	store->header = header;
	return ret;
}

static void load_store(void *arg, const char *name)
{
	struct loading *loading = arg;
	Perseas__Header *header;
	const char *reason;
	struct store *store;
	int ret;

	if (!ps_name_valid(name))
		return;
	if (loading->stores->count >= STORES_MAX) {
		report_store(loading, name, "it is not served: there are too many stores");
		return;
	}
	store = store_insert(loading->stores, name);
	if (!store) {
		loading->short_of = true;
		return;
	}
	header = read_header(store, &ret);
	if (ret == -STATUS(NO_STORE)) {
		report_store(loading, name, "what a creation that was interrupted left is removed");
		pieces_sweep(store, NULL);
		store_delete(store);
		return;
	}
	reason = header ? reason_to_set_aside(store, header) : NULL;
	if (reason) {
		store->header = header;
		set_aside(loading, store, reason);
		return;
	}
	if (!header || open_image(store, header) < 0) {
		report_store(loading, name, store->damage);
		return;
	}
	pieces_sweep(store, store->header);
	settle_promise(store);
	renew_header(loading, store);
	header_note_files(store);
}

void note_name(void *arg, const char *name)
{
	struct name_list *list = arg;
	void *names;

	if (!ps_name_valid(name))
		return;
	names = realloc(list->names, (list->count + 1) * sizeof(*list->names));
	if (!names) {
		list->short_of = true;
		return;
	}
	list->names = names;
	snprintf(list->names[list->count++], sizeof(list->names[0]), "%s", name);
}

/* A store that is not known would be one that is not there: somebody would make it anew. */
static int report_unknown(const struct loading *loading, const char *reason)
{
	char line[256];

	snprintf(line, sizeof(line),
	         "not all stores of the memory directory can be known: %s; none is served", reason);
	loading->complain(loading->arg, line);
	return -1;
}

int stores_load(struct stores *stores, void (*report)(void *arg, const char *text), void *arg)
{
	struct loading loading = { .stores = stores, .complain = report, .arg = arg };
	struct name_list list = { 0 };
	int ret = stores->memory->ops->stores(stores->memory, note_name, &list);

	if (ret)
		ret = report_unknown(&loading, strerror(errno));
	for (size_t i = 0; i < list.count && !ret; i++)
		load_store(&loading, list.names[i]);
	free(list.names);
	if (!ret && (list.short_of || loading.short_of))
		ret = report_unknown(&loading, "the daemon is out of memory");
	return ret;
}
