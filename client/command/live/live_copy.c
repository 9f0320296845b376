/*
 * live_copy.c - see live_copy.h.
 */
#include "live_copy.h"
#include "../ask/ask.h"
#include "../../../proto/control/envelope.h"
#include "../../../proto/control/segment_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	PIECES = 4,    /* pieces that are read between two looks at the log */
	HURRY_MAX = 3, /* how often a failed try halves the pieces, at most */
};

/* --- segments that exist --- */

/* Returns the status of the image to copy, that of the only peer. Returns NULL, with a complaint,
 * if the mirror has no such store, or if its image is not whole. */
static const Perseas__StoreStatus *find_image(const struct ps_images *images, const char *store,
                                              enum ps_exit *status)
{
	const char *name = images->peers->addresses[0].text;
	const Perseas__StoreStatus *told = images->told[0];
	const char *why = NULL;

	if (!images->have) {
		*status = ps_images_complain_absent(images, store);
		return NULL;
	}
	if (told->header->state != PERSEAS__STATE__STATE_CONSISTENT)
		why = "is not whole";
	else if (!ps_images_is_listed(images, 0))
		why = "is not in the store's roster, and counts for nothing";
	else if (!told->slot)
		why = "is damaged: neither of its commit slots is valid";
	else if (images->judged.settled->filling && told->slot->seq == 0)
		why = "has nothing yet of what a command restores into the store";
	if (!why)
		return told;
	*status = ps_complain(PS_EXIT_NO,
	                      "%s: its image of store '%s' %s; ask another mirror of "
	                      "the store",
	                      name, store, why);
	return NULL;
}

/* Returns true if every existing segment of `a` is in `b` and equal. */
static bool has_segments_of(const Perseas__Header *a, const Perseas__Header *b, uint64_t seq)
{
	for (size_t k = 0; k < a->n_segments; k++) {
		const Perseas__Segment *segment = a->segments[k];
		const Perseas__Segment *other = ps_header_find_segment(b, segment->id);

		if (ps_segment_exists_at(segment, seq) &&
		    (!other || !ps_segment_exists_at(other, seq) ||
		     !ps_is_same_segment(other, segment)))
			return false;
	}
	return true;
}

bool ps_live_copy_is_same_image(const Perseas__StoreStatus *a, const Perseas__StoreStatus *b,
                                uint64_t seq)
{
	const Perseas__Header *x = a->header, *y = b->header;

	return ps_id_equal(x->store_id, y->store_id.data) &&
	       ps_id_equal(x->image_id, y->image_id.data) && x->generation == y->generation &&
	       x->rewrites == y->rewrites && x->log_size == y->log_size &&
	       x->state == PERSEAS__STATE__STATE_CONSISTENT &&
	       y->state == PERSEAS__STATE__STATE_CONSISTENT && has_segments_of(x, y, seq) &&
	       has_segments_of(y, x, seq);
}

enum ps_exit ps_live_copy_complain_too_fast(const char *store, uint64_t log_size)
{
	char size[PS_SIZE_TEXT];

	return ps_complain(PS_EXIT_NO,
	                   "store '%s' changes too fast to be read while it runs: its "
	                   "log of %s is overwritten before it has been followed. Try at a "
	                   "quieter time, from a host nearer to the mirror, or make the store "
	                   "again with a larger --log-size",
	                   store, ps_size_text(size, log_size));
}

/* --- copying --- */

static void free_segments(struct ps_live_copy *copy)
{
	for (unsigned id = 0; id < PS_SEGMENTS_MAX; id++) {
		if (copy->segments[id])
			munmap(copy->segments[id], copy->sizes[id]);
		copy->segments[id] = NULL;
		copy->sizes[id] = 0;
	}
	copy->bytes = 0;
}

/* Makes a header that lists only the segments that exist. */
static bool make_header(struct ps_live_copy *copy, const Perseas__Header *from)
{
	size_t kept = 0;

	copy->header = ps_header_copy(from);
	if (!copy->header)
		return false;
	for (size_t k = 0; k < copy->header->n_segments; k++) {
		Perseas__Segment *segment = copy->header->segments[k];

		if (!ps_segment_exists_at(segment, copy->slot.seq)) {
			perseas__segment__free_unpacked(segment, NULL);
			continue;
		}
		copy->header->segments[kept++] = segment;
		/* A later destroy is no part of this state. */
		segment->died = segment->died_epoch = 0;
	}
	copy->header->n_segments = kept;
	return true;
}

/* Allocates memory for the segments that exist and are wanted. */
static enum ps_exit allocate_segments(struct ps_live_copy *copy, const Perseas__Header *from,
                                      const struct ps_live_copy_wish *wish)
{
	if (!make_header(copy, from))
		return ps_complain(PS_EXIT_FAILURE, "out of memory");
	for (size_t k = 0; k < copy->header->n_segments; k++) {
		const Perseas__Segment *segment = copy->header->segments[k];
		void *memory;

		if (wish && !wish->wants(wish, copy->header, segment))
			continue;
		memory = mmap(NULL, segment->size, PROT_READ | PROT_WRITE,
		              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (memory == MAP_FAILED)
			return ps_complain(PS_EXIT_FAILURE,
			                   "no memory for the %" PRIu64 " bytes "
			                   "of segment '%s': %s",
			                   segment->size, segment->name, strerror(errno));
		copy->segments[segment->id] = memory;
		copy->sizes[segment->id] = segment->size;
		copy->bytes += segment->size;
	}
	return PS_EXIT_OK;
}

static void copy_reset(struct ps_live_copy *copy)
{
	free_segments(copy);
	if (copy->header)
		perseas__header__free_unpacked(copy->header, NULL);
	copy->header = NULL;
	free(copy->record);
	copy->record = NULL;
}

/* Reads the pieces of one segment and follows the log at the same time: takes the log's answer
 * while the next pieces are in flight. */
static enum ps_log_step read_segment(struct ps_live_reader *live, const struct ps_live_copy *copy,
                                     const Perseas__Segment *segment, uint64_t done)
{
	unsigned hurry = copy->tries < HURRY_MAX ? copy->tries : HURRY_MAX;
	uint64_t stride = (uint64_t)PIECES * (PS_FETCH_MAX >> hurry);
	enum ps_log_step step;

	for (uint64_t at = 0; at < segment->size; at += stride) {
		uint64_t length = segment->size - at < stride ? segment->size - at : stride;

		if (!ps_fetch_range(&live->fetch, PS_REGION_SEGMENT + segment->id, at, length,
		                    copy->segments[segment->id] + at))
			return PS_LOG_FAILED;
		step = ps_log_receive_new(&live->log);
		if (step)
			return step;
		if (!ps_log_request_new(&live->log))
			return PS_LOG_FAILED;
		ps_bar_show("reading", done + at + length, copy->bytes);
	}
	return PS_LOG_OK;
}

static enum ps_log_step read_segments(struct ps_live_reader *live, const struct ps_live_copy *copy)
{
	enum ps_log_step step = ps_log_request_new(&live->log) ? PS_LOG_OK : PS_LOG_FAILED;
	uint64_t done = 0;

	for (size_t k = 0; k < copy->header->n_segments && !step; k++) {
		if (!copy->segments[copy->header->segments[k]->id])
			continue;
		step = read_segment(live, copy, copy->header->segments[k], done);
		done += copy->header->segments[k]->size;
	}
	if (!step)
		step = ps_log_receive_new(&live->log);
	return step;
}

static bool undo_later_changes(const struct ps_live_reader *live, const struct ps_live_copy *copy)
{
	struct ps_windows windows = { 0 };

	for (unsigned id = 0; id < PS_SEGMENTS_MAX; id++) {
		const uint64_t size = copy->sizes[id];
		const struct ps_window all = { copy->segments[id], 0, size, id };

		ps_windows_add(&windows, &all, size);
	}
	return ps_live_reader_undo(live, &windows, copy->slot.seq);
}

/* Saves the record of the slot's transaction, which has the transaction's time. */
static enum ps_log_step save_slot_record(struct ps_live_reader *live, struct ps_live_copy *copy)
{
	const struct ps_record *record;
	int rc = ps_log_read_older(&live->log, &record);

	if (!rc) {
		copy->record = malloc(record->length);
		if (copy->record)
			memcpy(copy->record, record, record->length);
	}
	return rc < 0 ? PS_LOG_FAILED : PS_LOG_OK;
}

static enum ps_log_step copy_live_image_once(struct ps_live_copy *copy, struct ps_live_reader *live,
                                             const Perseas__StoreStatus *status,
                                             const struct ps_live_copy_wish *wish,
                                             enum ps_exit *failed)
{
	enum ps_log_step step = ps_live_reader_begin(live);

	if (step)
		return step;
	copy->slot = live->log.from;
	*failed = allocate_segments(copy, status->header, wish);
	if (*failed)
		return PS_LOG_FAILED;
	step = save_slot_record(live, copy);
	if (!step)
		step = read_segments(live, copy);
	if (!step)
		step = ps_log_read_tail(&live->log);
	if (!step && !undo_later_changes(live, copy))
		step = PS_LOG_FAILED;
	return step;
}

/* Returns PS_LOG_OK if the only peer still has the same image, PS_LOG_OVERTAKEN if it has another
 * one, or PS_LOG_FAILED. */
static enum ps_log_step check_image_unchanged(struct ps_peers *peers, const char *store,
                                              uint64_t seq, const Perseas__StoreStatus *before)
{
	struct ps_images images;
	enum ps_log_step step = PS_LOG_FAILED;

	ps_images_fetch(&images, peers, store);
	if (images.have)
		step = ps_live_copy_is_same_image(before, images.told[0], seq) ? PS_LOG_OK
		                                                               : PS_LOG_OVERTAKEN;
	else
		peers->errors[0] = images.errors[0];
	ps_images_free(&images);
	return step;
}

enum ps_log_step ps_live_copy_check_unchanged(struct ps_peers *peers, const char *store,
                                              uint64_t seq, const Perseas__StoreStatus *before,
                                              enum ps_log_step step)
{
	const struct ps_error why = peers->errors[0];
	enum ps_log_step same;

	if (step == PS_LOG_OVERTAKEN)
		return PS_LOG_OVERTAKEN;
	same = check_image_unchanged(peers, store, seq, before);
	if (step == PS_LOG_OK || same == PS_LOG_OVERTAKEN)
		return same;
	peers->errors[0] = why;
	return PS_LOG_FAILED;
}

/* Tries once, from the mirror's status to the check that the image is still the same. */
static enum ps_log_step try_copy(struct ps_live_copy *copy, struct ps_peers *peers,
                                 const char *store, const struct ps_live_copy_wish *wish,
                                 enum ps_exit *failed)
{
	const Perseas__StoreStatus *status;
	enum ps_log_step step = PS_LOG_FAILED;
	struct ps_images images;
	struct ps_live_reader live = { 0 };

	ps_images_fetch(&images, peers, store);
	status = find_image(&images, store, failed);
	if (status && !ps_live_reader_init(&live, peers, 0, store, status->header->log_size))
		*failed = PS_EXIT_FAILURE;
	if (status && !*failed) {
		copy->live = status->live;
		step = copy_live_image_once(copy, &live, status, wish, failed);
		ps_fetch_collect_all(&live.fetch);
		if (!*failed)
			step = ps_live_copy_check_unchanged(peers, store, copy->slot.seq, status,
			                                    step);
		if (step == PS_LOG_OVERTAKEN && copy->tries + 1 == PS_LIVE_TRIES)
			*failed = ps_live_copy_complain_too_fast(store, status->header->log_size);
		else if (step == PS_LOG_FAILED && !*failed)
			*failed = ps_peers_complain(peers, 0);
	}
	ps_live_reader_close(&live);
	ps_images_free(&images);
	return step;
}

enum ps_exit ps_live_copy_take_wished(struct ps_live_copy *copy, struct ps_peers *peers,
                                      const char *store, const struct ps_live_copy_wish *wish)
{
	enum ps_exit failed = PS_EXIT_OK;

	memset(copy, 0, sizeof(*copy));
	for (; copy->tries < PS_LIVE_TRIES; copy->tries++) {
		if (try_copy(copy, peers, store, wish, &failed) == PS_LOG_OK)
			return PS_EXIT_OK;
		copy_reset(copy);
		if (failed)
			break;
	}
	return failed;
}

enum ps_exit ps_live_copy_take(struct ps_live_copy *copy, struct ps_peers *peers, const char *store)
{
	return ps_live_copy_take_wished(copy, peers, store, NULL);
}

void ps_live_copy_free(struct ps_live_copy *copy)
{
	copy_reset(copy);
}
