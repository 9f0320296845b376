/*
 * store_unspill.c - loads spills when the daemon starts, before any session.
 *
 * A spill must never come back as new. So an image that is loaded, or that is still in memory, gets
 * an id of its own, and its spill loses its name, durably, before it is served. The steps of a
 * load, of which each may be the last:
 *
 *   pieces are made and filled   they have no header yet, so the next start removes them
 *   the header is written        the image and its spill exist: the next start uses the image
 *   the spill is noted as used   in the state directory, if any: recognized if it is put back
 *   the spill is retired         no daemon ever loads it again: only now is the store served
 */
#include "store_private.h"

#include "../../proto/control/archive.h"
#include "../host/jobs.h"
#include "used_spills.h"
#include "spill.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unspilling {
	struct stores *stores;
	struct spill *spill;
	void (*complain)(void *arg, const char *text);
	void *arg;
	int loaded;
	char key[USED_SPILL_KEY]; /* key of the spill that is being loaded */
};

void stores_set_used_spills(struct stores *stores, struct used_spills *used_spills)
{
	stores->used_spills = used_spills;
}

static void report_spill(struct unspilling *unspilling, const char *store, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void report_spill(struct unspilling *unspilling, const char *store, const char *format, ...)
{
	char line[700];
	int len = snprintf(line, sizeof(line), "the spill of store %s: ", store);
	va_list args;

	va_start(args, format);
	vsnprintf(line + len, sizeof(line) - (size_t)len, format, args);
	va_end(args);
	unspilling->complain(unspilling->arg, line);
}

/* Returns a sentence if the spill is of another store than its name says, else NULL. */
static const char *header_fault(const struct ps_archive_reader *reader, const char *name)
{
	return strcmp(reader->header->store, name) == 0 ? NULL : "it is of another store";
}

/* --- used spills --- */

/* Makes the key of a spill. An image whose spill is used up counts one more rewrite than the spill,
 * so no later spill of that image has the same key, even if nothing is committed in between. */
static void make_key(char key[USED_SPILL_KEY], const struct ps_archive_reader *reader)
{
	const Perseas__Header *header = reader->header;
	int length = 0;

	for (unsigned i = 0; i < PS_ID_SIZE; i++)
		length += snprintf(key + length, USED_SPILL_KEY - (size_t)length, "%02x",
		                   header->image_id.data[i]);
	snprintf(key + length, USED_SPILL_KEY - (size_t)length, " %llu %llu:%llu",
	         (unsigned long long)header->rewrites, (unsigned long long)reader->slot.epoch,
	         (unsigned long long)reader->slot.seq);
}

/* Returns 0, or a refusal if the spill is used up or that cannot be determined. */
static int check_unused(const struct unspilling *unspilling, const char *store, struct why *why)
{
	struct used_spills *used_spills = unspilling->stores->used_spills;
	const int used = used_spills ? used_spills->ops->has(used_spills, store, unspilling->key)
	                             : 0;

	if (used < 0)
		return refuse(why, STATUS(IO), "the state directory cannot be read: %s",
		              used_spills->trouble);
	if (used)
		return refuse(why, STATUS(EXISTS),
		              "it was used up before and somebody put it back, so it is older than "
		              "what its image acknowledged");
	return 0;
}

/* Records that the spill is used up. On failure, spill->trouble has the reason. */
static int note_used(const struct unspilling *unspilling, const char *store)
{
	struct used_spills *used_spills = unspilling->stores->used_spills;

	if (!used_spills || used_spills->ops->add(used_spills, store, unspilling->key) == 0)
		return 0;
	snprintf(unspilling->spill->trouble, sizeof(unspilling->spill->trouble),
	         "recording that it was used: %.200s", used_spills->trouble);
	return -1;
}

/* Removing or renaming a spill, which may wait for a disk. */
struct retiring {
	struct spill *spill;
	const char *store;
	int (*end)(struct spill *spill, const char *store);
	int ret;
};

static void run_retiring(void *arg)
{
	struct retiring *retiring = arg;

	retiring->ret = retiring->end(retiring->spill, retiring->store);
}

static int retire_spill(struct spill *spill, const char *store,
                        int (*end)(struct spill *spill, const char *store))
{
	struct retiring retiring = { .spill = spill, .store = store, .end = end };

	job_aside(JOB_ASIDE_LEAST, run_retiring, &retiring);
	return retiring.ret;
}

static bool is_listed(const Perseas__Roster *roster, ProtobufCBinaryData id)
{
	for (size_t i = 0; roster && i < roster->n_members; i++)
		if (same_id(roster->members[i]->image_id, id))
			return true;
	return false;
}

/* Makes the header that of a child of the spilled image, whose header it still is: with a new id,
 * and the spilled image as its parent. An image that has a parent and whose own id is in no known
 * roster keeps both ids, because rosters may list either by now. Counts a rewrite, so that no later
 * spill has the same key. Frees the header on failure. */
static int set_child_ids(struct store *store, Perseas__Header *header, struct why *why)
{
	struct memory *memory = store->stores->memory;
	ProtobufCBinaryData *parent = &header->parent_id, *id = &header->image_id;
	uint8_t *fresh;

	header->rewrites++;
	if (parent->len && !is_listed(header->roster, *id) && !is_listed(header->next_roster, *id))
		return 0;
	fresh = malloc(PS_ID_SIZE);
	if (!fresh) {
		header_free(header);
		return refuse(why, STATUS(NO_MEMORY), "the daemon is out of memory");
	}
	do
		memory->ops->random(memory, fresh, PS_ID_SIZE);
	while (ps_id_equal(*id, fresh));
	free(parent->data);
	*parent = *id;
	*id = (ProtobufCBinaryData){ PS_ID_SIZE, fresh };
	return 0;
}

/* Makes the image in memory a child of what was spilled, as if it had been loaded: another daemon
 * may load a copy of the spill, and as soon as an owner has recorded the id of one child, no other
 * counts. */
static int leave_spill(const struct unspilling *unspilling, struct store *store)
{
	struct why why = { .text = "" };
	Perseas__Header *header;
	int ret;

	ret = header_edit(store->header, &header, &why);
	if (ret == 0)
		ret = set_child_ids(store, header, &why);
	if (ret == 0)
		ret = header_commit(store, header, &why);
	if (ret)
		snprintf(unspilling->spill->trouble, sizeof(unspilling->spill->trouble), "%.200s",
		         why.text);
	return ret;
}

/* Returns NULL if the spill is of the image in memory, or of the image's parent, so that it is not
 * newer than the image. Otherwise returns a sentence: somebody may have put the spill of another
 * mirror here, which may be newer and the only copy. */
static const char *origin_fault(const Perseas__Header *spilled, const Perseas__Header *header)
{
	if (!same_id(spilled->store_id, header->store_id))
		return "it is of another making of the store";
	if (!same_id(spilled->image_id, header->image_id) &&
	    !same_id(spilled->image_id, header->parent_id))
		return "it is of another image of the store than memory has, maybe of another "
		       "mirror's";
	return NULL;
}

/* Removes or sets aside the spill of an image that memory has. Returns true if it can no longer be
 * mistaken for the image. */
static bool give_up_spill(struct unspilling *unspilling, struct store *store)
{
	struct spill *spill = unspilling->spill;
	struct ps_archive_reader reader = { .header = NULL };
	const char *why = spill->trouble;
	bool same = false;

	if (spill->ops->open(spill, store->name) == 0 &&
	    ps_archive_open(&reader, &spill->source, &why) == 0) {
		why = origin_fault(reader.header, store->header);
		same = !why;
	}
	if (same) {
		make_key(unspilling->key, &reader);
		same = leave_spill(unspilling, store) == 0 &&
		       note_used(unspilling, store->name) == 0 &&
		       retire_spill(spill, store->name, spill->ops->remove) == 0;
	} else {
		report_spill(unspilling, store->name, "it is set aside, not loaded: %s", why);
		same = retire_spill(spill, store->name, spill->ops->set_aside) == 0;
	}
	ps_archive_free(&reader);
	spill->ops->close(spill);
	return same;
}

/* Marks the store as damaged, because its spill could be mistaken for the image later. */
static void refuse_store(struct unspilling *unspilling, struct store *store)
{
	snprintf(store->damage, sizeof(store->damage),
	         "it is not served, as its spill cannot be removed: %.150s",
	         unspilling->spill->trouble);
	report_spill(unspilling, store->name, "%s", store->damage);
}

/* Fills the new image. Returns 0 if the archive is complete, else -1 with *why set, unless the job
 * was cancelled. */
static int fill_image(struct ps_archive_reader *reader, struct image *image, const char **why)
{
	struct ps_archive_piece piece;
	struct ps_slot slot;
	int ret;

	while ((ret = ps_archive_next(reader, &piece, why)) > 0) {
		if (job_cancelled())
			return -1;
		const struct piece *region = &image->regions[piece.region];

		assert(region->base && piece.offset + piece.length <= region->size);
		memcpy(region->base + piece.offset, piece.bytes, piece.length);
	}
	if (ret < 0)
		return -1;
	image_slot(image, &slot);
	if (memcmp(&slot, &reader->slot, sizeof(slot)) == 0)
		return 0;
	*why = "its slot is not that of its log";
	return -1;
}

static int flush_image(struct memory *memory, const struct image *image)
{
	for (uint32_t region = 0; region < PS_REGIONS_MAX; region++)
		if (image->regions[region].base && memory->ops->flush &&
		    memory->ops->flush(memory, &image->regions[region]) < 0)
			return -1;
	return 0;
}

/* Makes the header of a loaded image. */
static int make_loaded_header(struct store *store, const Perseas__Header *from,
                              Perseas__Header **edit, struct why *why)
{
	int ret = header_edit(from, edit, why);

	if (ret)
		return ret;
	(*edit)->shared = false;
	(void)header_set_identity(&(*edit)->sharer, NULL);
	return set_child_ids(store, *edit, why);
}

/* A spill that is being read into memory. */
struct filling {
	struct ps_archive_reader *reader;
	struct memory *memory;
	struct image *image;
	const char *damage; /* what is wrong with the archive */
	int filled, flushed;
};

static void run_filling(void *arg)
{
	struct filling *filling = arg;

	filling->filled = fill_image(filling->reader, filling->image, &filling->damage);
	if (filling->filled == 0)
		filling->flushed = flush_image(filling->memory, filling->image);
}

/* Makes the image of the open spill, except for its header, without which it does not exist. */
static int make_image(struct store *store, struct ps_archive_reader *reader, struct image *image,
                      struct why *why)
{
	struct filling filling = { .reader = reader, .memory = store->stores->memory };
	int ret = image_make(store, reader->header, reader->header->generation, image, why);

	if (ret)
		return ret;
	filling.image = image;
	job_aside(ps_image_size(reader->header), run_filling, &filling);
	if (filling.filled < 0 && job_cancelled())
		ret = refuse(why, STATUS(IO), "the daemon was ended meanwhile");
	else if (filling.filled < 0)
		ret = refuse(why, STATUS(DAMAGED), "it is damaged: %s", filling.damage);
	else if (filling.flushed < 0)
		ret = refuse(why, STATUS(IO), "the image cannot be written");
	if (ret)
		image_remove(store, image);
	return ret;
}

static int load_image(struct store *store, struct ps_archive_reader *reader, struct why *why)
{
	struct image image;
	Perseas__Header *header;
	int ret = make_image(store, reader, &image, why);

	if (ret)
		return ret;
	ret = make_loaded_header(store, reader->header, &header, why);
	if (ret == 0) {
		image_write_promise(&image, header->promised_epoch, header->promised_owner);
		ret = header_commit(store, header, why);
	}
	if (ret) {
		image_remove(store, &image);
		return ret;
	}
	assert(store->header && !store->session);
	store->image = image;
	return 0;
}

static int load_if_unused(struct unspilling *unspilling, struct store *store,
                          struct ps_archive_reader *reader, struct why *why)
{
	int ret;

	make_key(unspilling->key, reader);
	ret = check_unused(unspilling, store->name, why);
	return ret ? ret : load_image(store, reader, why);
}

static int read_spill(struct unspilling *unspilling, struct store *store, struct why *why)
{
	struct spill *spill = unspilling->spill;
	struct ps_archive_reader reader = { .header = NULL };
	const char *text = spill->trouble;
	int ret = -STATUS(DAMAGED);

	if (spill->ops->open(spill, store->name) < 0)
		ret = refuse(why, STATUS(IO), "%s", text);
	else if (ps_archive_open(&reader, &spill->source, &text) < 0 ||
	         (text = header_fault(&reader, store->name)))
		ret = ps_is_later_version(text)
		              ? refuse(why, STATUS(BAD_VERSION), "%s", text)
		              : refuse(why, STATUS(DAMAGED), "it is damaged: %s", text);
	else
		ret = load_if_unused(unspilling, store, &reader, why);
	ps_archive_free(&reader);
	spill->ops->close(spill);
	return ret;
}

/* Keeps the name in use: a client that found no store here would create an empty one. */
static void keep_name(struct store *store, Perseas__Status status, const struct why *why)
{
	store->untouchable = status;
	store->is_only_spilled = true;
	snprintf(store->damage, sizeof(store->damage), "%s%.175s",
	         status == STATUS(NO_MEMORY)
	                 ? "its spill waits for a start of perseasd with enough memory: "
	                 : "",
	         why->text);
}

/* Keeps the spill for another start, or sets it aside if it must never be loaded. */
static void keep_spill(struct unspilling *unspilling, struct store *store, int ret,
                       const struct why *why)
{
	struct spill *spill = unspilling->spill;

	pieces_sweep(store, NULL);
	if (ret == -STATUS(EXISTS) && retire_spill(spill, store->name, spill->ops->set_aside) == 0)
		report_spill(unspilling, store->name, "it is set aside, not loaded: %s", why->text);
	else
		report_spill(unspilling, store->name, "it is kept, not loaded: %s", why->text);
	if (ret == -STATUS(BAD_VERSION) || ret == -STATUS(IO) || ret == -STATUS(NO_MEMORY))
		keep_name(store, (Perseas__Status)-ret, why);
	else
		store_delete(store);
}

static void load_spill(struct unspilling *unspilling, const char *name)
{
	struct stores *stores = unspilling->stores;
	struct why why = { .text = "" };
	struct store *store = stores->count < STORES_MAX ? store_insert(stores, name) : NULL;
	int ret;

	if (!store) {
		report_spill(unspilling, name,
		             "it is kept, not loaded: too many stores, or out of "
		             "memory");
		return;
	}
	ret = read_spill(unspilling, store, &why);
	if (ret)
		keep_spill(unspilling, store, ret, &why);
	else if (note_used(unspilling, name) < 0 ||
	         retire_spill(unspilling->spill, name, unspilling->spill->ops->retire) < 0)
		refuse_store(unspilling, store);
	else
		unspilling->loaded++;
}

/* Refuses to start: a client that found no store would create an empty one. */
static void report_unknown(const struct unspilling *unspilling, bool out_of_memory)
{
	char line[400];

	snprintf(line, sizeof(line), "not all spills can be known: %s; no store is served",
	         out_of_memory ? "the daemon is out of memory" : unspilling->spill->trouble);
	unspilling->complain(unspilling->arg, line);
}

static void handle_spill(struct unspilling *unspilling, const char *name)
{
	struct store *store = store_find(unspilling->stores, name);

	if (!store)
		load_spill(unspilling, name);
	else if (store->untouchable)
		report_spill(unspilling, name, "it is kept, not loaded: %s", store->damage);
	else if (store->damage[0])
		report_spill(unspilling, name,
		             "it is kept, not loaded: memory has a damaged image; "
		             "drop that one and start again");
	else if (!give_up_spill(unspilling, store))
		refuse_store(unspilling, store);
}

int stores_load_spills(struct stores *stores, void (*report)(void *arg, const char *text),
                       void *arg)
{
	struct unspilling unspilling = {
		.stores = stores, .spill = stores->spill, .complain = report, .arg = arg
	};
	struct name_list list = { .names = NULL };

	if (!stores->spill)
		return 0;
	if (stores->spill->ops->list_stores(stores->spill, name_list_add, &list) < 0 ||
	    list.out_of_memory) {
		report_unknown(&unspilling, list.out_of_memory);
		unspilling.loaded = -1;
	}
	for (size_t i = 0; i < list.count && unspilling.loaded >= 0 && !job_cancelled(); i++)
		handle_spill(&unspilling, list.names[i]);
	free(list.names);
	return unspilling.loaded;
}
