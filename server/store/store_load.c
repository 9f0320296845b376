/*
 * store_load.c - finds the images that an earlier daemon left in memory, and serves those that pass
 * their checks. main.c calls it once, at the start. Images that fail a check are reported and kept
 * for people to look at.
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
	bool out_of_memory; /* memory was out, so a store was not inserted */
};

static void report_store(struct loading *loading, const char *store, const char *text)
{
	char line[1024];

	snprintf(line, sizeof(line), "store %s: %s", store, text);
	loading->complain(loading->arg, line);
}

/* Makes the promise page consistent with the header. The page names the owner that was given the
 * memory. If it differs from the header, a claim was interrupted: the process that has the memory
 * is not the owner in the header, and must not find its own promise. */
static void match_promise_page(struct store *store)
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
		image_write_promise(&store->image, PS_PROMISE_RETIRED, nobody);
	else
		image_write_promise(&store->image, header->promised_epoch, header->promised_owner);
}

void store_refuse_unread(struct store *store, const char *what)
{
	struct memory *memory = store->stores->memory;
	const char *advice = memory->ops->advice ? memory->ops->advice(memory) : NULL;

	store->untouchable = STATUS(IO);
	snprintf(store->damage, sizeof(store->damage),
	         "%s could not be opened for lack of descriptors or memory, and is as it was; %s, "
	         "and restart perseasd",
	         what, advice ? advice : "give it more memory");
}

static Perseas__Header *read_header(struct store *store, int *ret)
{
	struct memory *memory = store->stores->memory;
	Perseas__Header *header;
	const char *text = NULL;
	uint8_t *bytes;
	size_t len;

	*ret = memory->ops->load(memory, store->name, "header", &bytes, &len);
	if (*ret == -STATUS(NO_MEMORY)) {
		store_refuse_unread(store, "its header");
		return NULL;
	}
	if (*ret) {
		snprintf(store->damage, sizeof(store->damage), "its header cannot be read");
		return NULL;
	}
	header = ps_header_unpack(bytes, len, &text);
	free(bytes);
	if (!header) {
		if (ps_is_later_version(text))
			store->untouchable = STATUS(BAD_VERSION);
		snprintf(store->damage, sizeof(store->damage), "%s%s",
		         store->untouchable ? "" : "its header is not valid: ", text);
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

/* Returns why the image may be older than what it acknowledged, because it was written back to a
 * disk, or copied and put back; a spill or another mirror then has the truth. Returns NULL if it is
 * the memory that a daemon served last. */
static const char *reason_to_set_aside(const struct store *store, const Perseas__Header *header)
{
	if (!header_data_survives(store, header))
		return "is of another boot of this host";
	if (header_was_image_copied(store, header))
		return "was copied here or put back, since its files are not those that a daemon "
		       "served last";
	return NULL;
}

static void set_image_aside(struct loading *loading, struct store *store, const char *reason)
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

/* Writes the header again, with this boot and memory reserved for later headers, which images of
 * older versions lack. If that fails, the store is served anyway. */
static void renew_header(struct loading *loading, struct store *store)
{
	struct why why = { .text = "" };
	Perseas__Header *header;

	if (!header_is_of_other_boot(store, store->header) ||
	    header_edit(store->header, &header, &why) || header_commit(store, header, &why) == 0)
		return;
	report_store(loading, store->name, why.text);
}

/* Opens the image and checks that it has a commit slot. Stores the header even if that fails, so
 * that status can show it. */
static int open_image(struct store *store, Perseas__Header *header)
{
	int ret = image_open(store, header, &store->image, store->damage, sizeof(store->damage));

	struct ps_slot slot;

	store->header = header;
	if (ret || header->state != STATE(CONSISTENT) || image_slot(&store->image, &slot) >= 0)
		return ret;
	snprintf(store->damage, sizeof(store->damage), "it has no valid commit slot");
	return -STATUS(DAMAGED);
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
		loading->out_of_memory = true;
		return;
	}
	header = read_header(store, &ret);
	if (ret == -STATUS(NO_STORE)) {
		report_store(loading, name, "the remains of an interrupted creation are removed");
		pieces_sweep(store, NULL);
		store_delete(store);
		return;
	}
	reason = header ? reason_to_set_aside(store, header) : NULL;
	if (reason) {
		store->header = header;
		set_image_aside(loading, store, reason);
		return;
	}
	if (!header || open_image(store, header) < 0) {
		report_store(loading, name, store->damage);
		return;
	}
	pieces_sweep(store, store->header);
	match_promise_page(store);
	renew_header(loading, store);
	header_note_files(store);
}

void name_list_add(void *arg, const char *name)
{
	struct name_list *list = arg;
	void *names;

	if (!ps_name_valid(name))
		return;
	names = realloc(list->names, (list->count + 1) * sizeof(*list->names));
	if (!names) {
		list->out_of_memory = true;
		return;
	}
	list->names = names;
	snprintf(list->names[list->count++], sizeof(list->names[0]), "%s", name);
}

/* Refuses to start: a store that was not found would look like one that does not exist, and a
 * client would create it again. */
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
	int ret = stores->memory->ops->list_stores(stores->memory, name_list_add, &list);

	if (ret)
		ret = report_unknown(&loading, strerror(errno));
	for (size_t i = 0; i < list.count && !ret; i++)
		load_store(&loading, list.names[i]);
	free(list.names);
	if (!ret && (list.out_of_memory || loading.out_of_memory))
		ret = report_unknown(&loading, "the daemon is out of memory");
	return ret;
}
