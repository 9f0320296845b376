/*
 * store_copy.c - copies a running store, for a claim of an image that its old owner can still write
 * to. That owner may be hostile: its memory is copied first and checked in the copy (log_reader.h),
 * in the reverse order of an owner's writes.
 */
#include "store_private.h"
#include "../../proto/image/log_reader.h"
#include "../host/jobs.h"

#include <assert.h>
#include <string.h>

enum { COPY_TRIES = 16 };

#define COPY_CHUNK ((uint64_t)4 << 20) /* bytes of data copied between two reads of the log */

struct copying {
	struct ps_image live;
	struct ps_image copy;
	struct ps_log_reader log; /* reads the live log into the copy's ring */
	bool good;                /* the copy is a committed state of the store */
};

static enum ps_log_step copy_segment(struct copying *copying, unsigned id)
{
	const uint64_t size = copying->copy.segments[id].size;
	enum ps_log_step step = PS_LOG_OK;

	for (uint64_t at = 0; at < size && !step; at += COPY_CHUNK) {
		uint64_t len = size - at < COPY_CHUNK ? size - at : COPY_CHUNK;

		memcpy(copying->copy.segments[id].base + at, copying->live.segments[id].base + at,
		       len);
		step = job_cancelled() ? PS_LOG_FAILED : ps_log_read_new(&copying->log);
	}
	return step;
}

static enum ps_log_step copy_data(struct copying *copying)
{
	enum ps_log_step step = PS_LOG_OK;

	for (unsigned id = 0; id < PS_SEGMENTS_MAX && !step; id++)
		step = copy_segment(copying, id);
	return step ? step : ps_log_read_tail(&copying->log);
}

/* Undoes in the copy the transactions that the owner wrote while it was copied, the last one first.
 * Returns false if their records are not consecutive. */
static bool roll_back_copy(const struct copying *copying)
{
	struct ps_log_back back = ps_log_newest_followed(&copying->log);
	const struct ps_record *record;

	while (back.seq > copying->log.from.seq)
		if (ps_log_older_followed(&copying->log, &back, &record) ||
		    !ps_image_undo_record(&copying->copy, record))
			return false;
	return true;
}

static uint8_t *ring_at(const struct ps_image *image, uint64_t position)
{
	return image->log + PS_RING_OFFSET + position % image->ring_size;
}

/* Zeroes the part of the copy's log that its slot still reaches, but that newer records of the
 * owner may have overwritten. Otherwise bytes of user data could be read as records. */
static void zero_overwritten_log(const struct copying *copying)
{
	const struct ps_image *copy = &copying->copy;
	const uint64_t ring = copy->ring_size, next = copying->log.from.next;
	uint64_t at = ps_lowest_intact_position(next, ring);
	uint64_t end = ps_lowest_intact_position(copying->log.after.next, ring);

	if (end > next)
		end = next;
	for (uint64_t length; at < end; at += length) {
		length = ring - at % ring;
		if (length > end - at)
			length = end - at;
		memset(ring_at(copy, at), 0, length);
	}
	memset(ring_at(copy, next), 0, ps_terminator_size(next, ring));
}

static void write_slot(struct copying *copying)
{
	struct ps_slot *slot = (void *)(copying->copy.log + ps_slot_offset(copying->log.index));

	assert(copying->log.index == 0 || copying->log.index == 1);
	zero_overwritten_log(copying);
	memset(copying->copy.log, 0, PS_RING_OFFSET);
	*slot = copying->log.from;
}

/* Tries once to copy the image. Copies the whole ring with its older records, because a resync by
 * delta needs them. */
static bool copy_once(struct copying *copying)
{
	struct ps_image *copy = &copying->copy;

	ps_log_init(&copying->log, &ps_log_memory, copying->live.log, copy->log, copy->ring_size);
	if (ps_log_read_state(&copying->log))
		return false;
	memcpy(copy->log + PS_RING_OFFSET, copying->live.log + PS_RING_OFFSET, copy->ring_size);
	if (copy_data(copying) || !roll_back_copy(copying))
		return false;
	write_slot(copying);
	return true;
}

static void try_copy(void *arg)
{
	struct copying *copying = arg;

	copying->good = false;
	for (int tries = 0; tries < COPY_TRIES && !copying->good && !job_cancelled(); tries++)
		copying->good = copy_once(copying);
}

static int copy_running(struct store *store, struct copying *copying, struct why *why)
{
	struct ps_slot slot;

	job_aside(ps_image_size(store->header), try_copy, copying);
	if (copying->good)
		return 0;
	if (ps_slot_choose(copying->live.log, &slot) < 0)
		return refuse(why, STATUS(DAMAGED),
		              "the image of store %s is damaged: neither of its commit slots is "
		              "valid",
		              store->name);
	return refuse(why, STATUS(BUSY),
	              "store %s changes too fast to be copied from its old owner, which still "
	              "writes to this mirror's memory; end that process and try again",
	              store->name);
}

/* Makes the pieces of the copy, except segments that were never published. Which segments are
 * destroyed is known only later, from the copy's slot. */
static int make_copy(struct store *store, struct image *copy, struct why *why)
{
	static const struct ps_slot nothing, all = { .seq = UINT64_MAX };
	Perseas__Header *header;
	int ret = header_edit(store->header, &header, why);

	if (ret)
		return ret;
	header_prune(header, header->state == STATE(JOINING) ? &nothing : &all);
	ret = image_make(store, header, store_next_generation(store), copy, why);
	header_free(header);
	return ret;
}

int image_copy(struct store *store, struct image *copy, struct ps_slot *slot, bool *undone,
               struct why *why)
{
	struct copying copying;
	int ret = make_copy(store, copy, why);

	*undone = false;
	memset(slot, 0, sizeof(*slot));
	/* A joining image is no state of the store: its copy begins empty. */
	if (ret || store->header->state == STATE(JOINING))
		return ret;
	image_view(&store->image, &copying.live);
	image_view(copy, &copying.copy);
	ret = copy_running(store, &copying, why);
	if (ret) {
		image_remove(store, copy);
		return ret;
	}
	*slot = copying.log.from;
	*undone = copying.log.seq > copying.log.from.seq;
	return 0;
}
