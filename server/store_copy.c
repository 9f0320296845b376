/*
 * Copying a store that runs. Its owner may go on writing, and may be hostile: what is read
 * from its memory is copied first and checked in the copy.
 *
 * The order of reading is the reverse of the owner's order of writing (I1, I2): the slot, the
 * data, then the log. So of every change that the copied data can hold, the log holds the
 * undo record. The log is followed while data is copied, because a ring that laps loses
 * records; the slot is read again at the end, because it tells whether any was lost.
 */
#include "store_private.h"

#include <string.h>

enum { COPY_TRIES = 16 };

#define COPY_CHUNK ((uint64_t)4 << 20) /* bytes of data between two looks at the log */

struct copying {
	struct ps_image live;
	struct ps_image copy;
	struct ps_slot from; /* the slot that the copy is undone to */
	int index;           /* of it */
	uint64_t seq;        /* of the last record that was followed */
	uint64_t next;       /* where the one after it may begin */
	uint64_t position;   /* where the last one begins */
};

enum step { STEP_OK, STEP_LAPPED };

/*
 * Copies the record at `position`, if its head is the one that is looked for. The copy's ring
 * must not lap the slot: the records since are all needed.
 */
static enum step take_record(struct copying *copying, uint64_t position)
{
	uint64_t ring = copying->copy.ring_size, offset = position % ring;
	const uint8_t *from = copying->live.log + PS_RING_OFFSET + offset;
	uint8_t *to = copying->copy.log + PS_RING_OFFSET + offset;
	struct ps_record head;

	if (ring - offset < sizeof(head))
		return STEP_OK;
	memcpy(&head, from, sizeof(head));
	if (head.magic != PS_RECORD_MAGIC || head.epoch != copying->from.epoch ||
	    head.seq != copying->seq + 1 || head.position != position)
		return STEP_OK;
	if (head.length < sizeof(head) || head.length > ring - offset)
		return STEP_OK;
	if (position + head.length - copying->from.next > ring)
		return STEP_LAPPED;
	memcpy(to, from, head.length);
	return STEP_OK;
}

/* Takes over every whole record that is there beyond the last one followed. */
static enum step follow(struct copying *copying)
{
	uint64_t ring = copying->copy.ring_size;

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	for (;;) {
		uint64_t lap = copying->next + ring - copying->next % ring;
		const struct ps_record *record;

		if (take_record(copying, copying->next) == STEP_LAPPED ||
		    take_record(copying, lap) == STEP_LAPPED)
			return STEP_LAPPED;
		record = ps_image_find(&copying->copy, copying->from.epoch, copying->seq + 1,
		                       copying->next);
		if (!record)
			return STEP_OK;
		copying->seq++;
		copying->position = record->position;
		copying->next = record->position + ps_align64(record->length);
	}
}

static enum step copy_data(struct copying *copying)
{
	for (unsigned i = 0; i < PS_SEGMENTS_MAX; i++) {
		uint64_t size = copying->copy.segments[i].size;

		for (uint64_t at = 0; at < size; at += COPY_CHUNK) {
			uint64_t len = size - at < COPY_CHUNK ? size - at : COPY_CHUNK;

			memcpy(copying->copy.segments[i].base + at,
			       copying->live.segments[i].base + at, len);
			if (follow(copying) == STEP_LAPPED)
				return STEP_LAPPED;
		}
	}
	return follow(copying);
}

/* The slot counts no transaction whose record was not followed. */
static bool is_dense(const struct copying *copying)
{
	struct ps_slot now;

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return ps_slot_choose(copying->live.log, &now) >= 0 && now.epoch == copying->from.epoch &&
	       now.seq >= copying->from.seq && now.seq <= copying->seq;
}

/* Undoes what was followed, the last first. False: the records do not hang together. */
static bool undo_back(const struct copying *copying)
{
	uint64_t position = copying->position;

	for (uint64_t seq = copying->seq; seq > copying->from.seq; seq--) {
		const struct ps_record *record = ps_image_at(&copying->copy, position);

		if (!record || record->seq != seq || record->epoch != copying->from.epoch ||
		    !ps_image_undo(&copying->copy, record))
			return false;
		position = record->previous;
	}
	return true;
}

static void write_slot(struct copying *copying)
{
	struct ps_slot *slot = (void *)(copying->copy.log + ps_slot_offset(copying->index));

	memset(copying->copy.log, 0, PS_RING_OFFSET);
	*slot = copying->from;
}

/* One try. The whole ring comes along for its past: resync by delta needs it. */
static bool copy_once(struct copying *copying)
{
	copying->index = ps_slot_choose(copying->live.log, &copying->from);
	if (copying->index < 0)
		return false;
	copying->seq = copying->from.seq;
	copying->next = copying->from.next;
	copying->position = copying->from.last;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	memcpy(copying->copy.log + PS_RING_OFFSET, copying->live.log + PS_RING_OFFSET,
	       copying->copy.ring_size);
	if (copy_data(copying) == STEP_LAPPED || !is_dense(copying) || !undo_back(copying))
		return false;
	write_slot(copying);
	return true;
}

static int copy_running(struct store *store, struct copying *copying, struct why *why)
{
	struct ps_slot slot;

	for (int tries = 0; tries < COPY_TRIES; tries++)
		if (copy_once(copying))
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

/* The pieces to copy to. A segment that was not published has nothing to be copied. */
static int make_copy(struct store *store, struct image *copy, struct why *why)
{
	Perseas__Header *header;
	int ret = header_edit(store->header, &header, why);

	if (ret)
		return ret;
	header_prune(header, header->state == STATE(JOINING) ? 0 : UINT64_MAX);
	ret = image_make(store, header, header->generation + 1, copy, why);
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
	/* A joining image is no state of the store: its successor begins empty. */
	if (ret || store->header->state == STATE(JOINING))
		return ret;
	image_view(&store->image, &copying.live);
	image_view(copy, &copying.copy);
	ret = copy_running(store, &copying, why);
	if (ret) {
		image_remove(store, copy);
		return ret;
	}
	*slot = copying.from;
	*undone = copying.seq > copying.from.seq;
	return 0;
}
