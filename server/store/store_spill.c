/*
 * store_spill.c - writes every image to the spill directory before the daemon exits.
 *
 * Sessions are cut first, and promises of memory that was given away are retired: what an owner
 * writes after that is acknowledged to nobody. That is at most the transaction in flight, and it is
 * not rolled back here. The slot is read first, then the data, then the log, so the log has the
 * undo record of every change that the data can contain (I1), and the claim after the load undoes
 * it.
 */
#include "store_private.h"

#include "../../proto/control/archive.h"
#include "../host/jobs.h"
#include "spill.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void stores_set_spill(struct stores *stores, struct spill *spill)
{
	stores->spill = spill;
}

/* Ends all sessions. No store may change after this. */
static void end_all_sessions(struct stores *stores)
{
	stores->closing = true;
	for (struct store *store = stores->first; store; store = store->next) {
		if (store->header && store->header->shared)
			promise_retire(store);
		if (store->session)
			session_detach(store);
	}
}

static int write_segments(struct ps_archive_writer *writer, const struct image *image)
{
	for (uint32_t region = PS_REGION_SEGMENT; region < PS_REGIONS_MAX; region++) {
		const struct piece *piece = &image->regions[region];

		if (piece->base && ps_archive_add(writer, region, 0, piece->base, piece->size) < 0)
			return -1;
	}
	return 0;
}

/* Writes the image as an archive. `page` has its slots, as they were read before anything else. */
static int write_image(struct store *store, struct ps_archive_sink *sink, const uint8_t *page)
{
	const struct piece *log = &store->image.regions[PS_REGION_LOG];
	struct ps_archive_writer writer;
	struct ps_slot slot;
	int index = ps_slot_choose(page, &slot);
	int ret = ps_archive_begin(&writer, sink, store->header, index < 0 ? NULL : &slot);

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (ret == 0)
		ret = write_segments(&writer, &store->image);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (ret == 0)
		ret = ps_archive_add(&writer, PS_REGION_LOG, 0, page, PS_RING_OFFSET);
	if (ret == 0)
		ret = ps_archive_add(&writer, PS_REGION_LOG, PS_RING_OFFSET,
		                     log->base + PS_RING_OFFSET, log->size - PS_RING_OFFSET);
	if (ret == 0)
		ret = ps_archive_end(&writer);
	ps_archive_close(&writer);
	return ret;
}

/* A store that is being spilled. Counts the bytes and passes them to the spill's own sink. */
struct writing {
	struct ps_archive_sink sink;
	struct store *store;
	struct spill *spill;
	uint64_t bytes;
	int ret;
};

static int set_cancelled(struct spill *spill)
{
	snprintf(spill->trouble, sizeof(spill->trouble), "its request was cancelled");
	return -1;
}

static int count_bytes(struct ps_archive_sink *sink, const void *bytes, size_t len)
{
	struct writing *writing = (struct writing *)sink;

	if (job_cancelled())
		return set_cancelled(writing->spill);
	writing->bytes += len;
	return writing->spill->sink.write(&writing->spill->sink, bytes, len);
}

/* An existing spill with this name was not loaded, so it is of another image and is kept. */
static void run_writing(void *arg)
{
	struct writing *writing = arg;
	struct store *store = writing->store;
	struct spill *spill = writing->spill;
	uint8_t page[PS_RING_OFFSET];

	writing->ret = -1;
	snprintf(spill->trouble, sizeof(spill->trouble), "the daemon is out of memory");
	memcpy(page, store->image.regions[PS_REGION_LOG].base, sizeof(page));
	if (spill->ops->set_aside(spill, store->name) < 0)
		return;
	store->has_own_spill = true;
	if (spill->ops->begin(spill, store->name) < 0)
		return;
	if (write_image(store, &writing->sink, page) < 0 || store_is_torn(store))
		spill->ops->abandon(spill);
	else
		writing->ret = spill->ops->commit(spill);
}

/* Runs outside of the loop. No request changes a store, because the stores are closed. */
static int write_store(struct store *store, uint64_t *bytes)
{
	struct writing writing = { .sink.write = count_bytes, store, store->stores->spill };

	assert(store->stores->closing && !store->session);
	store->job = job_current();
	job_aside(ps_archive_bound(store->header), run_writing, &writing);
	store->job = NULL;
	if (writing.ret == 0)
		*bytes += writing.bytes;
	return writing.ret;
}

/* Removes the remaining files of an image that lost some, because they would keep the next daemon
 * from loading the spill. */
static void remove_rest_of_files(struct store *store)
{
	struct memory *memory = store->stores->memory;

	if (!store_has_removed_files(store))
		return;
	/* Pieces without a header are ignored, so failures do not matter. */
	(void)memory->ops->remove(memory, store->name, "header");
	pieces_sweep(store, NULL);
}

static void report_lost(const struct store *store, void (*complain)(void *arg, const char *text),
                        void *arg)
{
	char line[NAMES_TEXT + 160];

	if (!store->restart_loss[0])
		return;
	snprintf(line, sizeof(line),
	         "store %s: this daemon ends, and the next one will not have the image: %s",
	         store->name, store->restart_loss);
	complain(arg, line);
}

bool stores_restore_spill_directory(struct stores *stores, char *why, size_t size)
{
	struct spill *spill = stores->spill;

	if (!spill || !spill->ops->restore_directory || stores->closing ||
	    spill->ops->restore_directory(spill) == 0)
		return true;
	snprintf(why, size, "%s", spill->trouble);
	return false;
}

/* Chooses where to write if the path of the spill directory leads elsewhere: preferably where the
 * next daemon will look. */
static void choose_directory(struct stores *stores, void (*complain)(void *arg, const char *text),
                             void *arg)
{
	struct spill *spill = stores->spill;
	char line[2 * sizeof(spill->trouble) + 400], reason[sizeof(spill->trouble)];

	if (stores_restore_spill_directory(stores, reason, sizeof(reason)))
		return;
	if (spill->ops->follow_path(spill) == 0)
		snprintf(line, sizeof(line),
		         "%s; images are written to the folder that is there now", reason);
	else
		snprintf(line, sizeof(line),
		         "%s; images are written to the old one, which is %.150s now and must be "
		         "moved back before the next start: %s",
		         reason, spill->directory, spill->trouble);
	complain(arg, line);
}

void stores_report_lost(struct stores *stores, void (*complain)(void *arg, const char *text),
                        void *arg)
{
	for (const struct store *store = stores->first; store; store = store->next)
		report_lost(store, complain, arg);
}

bool stores_spill(struct stores *stores, struct spill_sum *sum,
                  void (*complain)(void *arg, const char *text), void *arg)
{
	char line[512];

	memset(sum, 0, sizeof(*sum));
	if (!stores->spill || stores->closing)
		return false;
	choose_directory(stores, complain, arg);
	end_all_sessions(stores);
	for (struct store *store = stores->first; store; store = store->next) {
		int ret = store->damage[0] ? 0 : write_store(store, &sum->bytes);

		if (store->is_only_spilled)
			continue;
		if (store->untouchable) {
			snprintf(line, sizeof(line), "store %s is not spilled: %s", store->name,
			         store->damage);
			complain(arg, line);
			sum->failed++;
		} else if (store_notice_torn(store) || store->damage[0]) {
			snprintf(line, sizeof(line),
			         "store %s is not spilled: its image is damaged: %s", store->name,
			         store->damage);
			complain(arg, line);
		} else if (ret < 0) {
			snprintf(line, sizeof(line), "store %s could not be spilled to %.150s: %s",
			         store->name, stores->spill->directory, stores->spill->trouble);
			complain(arg, line);
			report_lost(store, complain, arg);
			sum->failed++;
		} else {
			remove_rest_of_files(store);
			sum->stores++;
		}
	}
	sum->directory = stores->spill->directory;
	return true;
}

/* Refuses a spill if an image is untouchable: this daemon cannot write it, and the memory would be
 * lost. */
static int check_untouchable(struct stores *stores, struct why *why)
{
	for (struct store *store = stores->first; store; store = store->next)
		if (store->untouchable && !store->is_only_spilled)
			return refuse(why, store->untouchable,
			              "store %s cannot be spilled: %s; nothing was ended, and "
			              "SIGTERM spills the others",
			              store->name, store->damage);
	return 0;
}

/* Refuses a spill that the next daemon would not find. */
static int check_directory(struct stores *stores, struct why *why)
{
	char reason[256];

	if (stores_restore_spill_directory(stores, reason, sizeof(reason)))
		return 0;
	return refuse(why, STATUS(IO),
	              "%s; nothing was ended: put it back, or restart perseasd with another "
	              "--spill-dir",
	              reason);
}

static int check_room(struct stores *stores, struct why *why)
{
	struct spill *spill = stores->spill;
	uint64_t room, needed = 0;

	for (struct store *store = stores->first; store; store = store->next)
		if (!store->damage[0])
			needed += ps_archive_bound(store->header);
	if (spill->ops->room(spill, &room) < 0)
		return refuse(why, STATUS(IO), "%s", spill->trouble);
	if (room < needed)
		return refuse(why, STATUS(IO),
		              "the spill directory %.150s has room for %llu bytes, and the images "
		              "may take %llu; nothing was ended",
		              spill->directory, (unsigned long long)room,
		              (unsigned long long)needed);
	return 0;
}

/* Serves the stores again after a failed spill, except those whose new spill cannot be removed: it
 * could be mistaken for the image later. */
static void serve_stores_again(struct stores *stores)
{
	struct spill *spill = stores->spill;

	for (struct store *store = stores->first; store; store = store->next) {
		const bool written = store->has_own_spill;

		store->has_own_spill = false;
		if (!written || store->damage[0] || spill->ops->remove(spill, store->name) == 0)
			continue;
		snprintf(store->damage, sizeof(store->damage),
		         "its spill is old from now on and cannot be removed: %.150s",
		         spill->trouble);
	}
	stores->closing = false;
}

int store_spill(struct stores *stores, Perseas__SpillReply *reply, struct why *why)
{
	struct spill *spill = stores->spill;
	uint64_t bytes = 0;
	int ret = stores_check_open(stores, why);

	if (ret)
		return ret;
	if (!spill)
		return refuse(why, STATUS(BAD_STATE),
		              "this mirror has no spill directory; start perseasd with "
		              "--spill-dir");
	ret = check_untouchable(stores, why);
	if (!ret)
		ret = check_directory(stores, why);
	if (!ret)
		ret = check_room(stores, why);
	if (ret)
		return ret;
	end_all_sessions(stores);
	for (struct store *store = stores->first; store; store = store->next) {
		if (store->damage[0])
			continue;
		if (write_store(store, &bytes) < 0) {
			/* A client that truncates its own store must not stop the spill of
			 * others. */
			if (store_notice_torn(store) || store->damage[0])
				continue;
			refuse(why, STATUS(IO),
			       "store %s could not be spilled, so none is: %s; "
			       "sessions were ended",
			       store->name, spill->trouble);
			serve_stores_again(stores);
			return -STATUS(IO);
		}
		reply->stores++;
	}
	if (job_cancelled()) {
		serve_stores_again(stores);
		return -STATUS(IO);
	}
	for (struct store *store = stores->first; store; store = store->next)
		if (store->has_own_spill)
			remove_rest_of_files(store);
	reply->bytes = bytes;
	reply->directory = (char *)spill->directory;
	return 0;
}
