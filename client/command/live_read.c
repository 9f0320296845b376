/*
 * live_read.c - reads one mirror's image of a store that may run.
 *
 * The ring here is as large as the mirror's, and sparse: what is fetched of the log lies where it
 * lies there. Nothing is fetched over what is still needed, between `lowest` and `next`.
 */
#include "live_read.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum {
	CHUNK_MIN = 4 << 10,
	CHUNK_FIRST = 64 << 10,
	BACK_CHUNK = 64 << 10, /* of the past, at once */
};

static uint64_t ring_of(const struct ps_live *live)
{
	return live->image.ring_size;
}

static uint8_t *place_of(const struct ps_live *live, uint64_t position)
{
	return live->image.log + PS_RING_OFFSET + position % ring_of(live);
}

static uint64_t to_lap(const struct ps_live *live, uint64_t position)
{
	return ring_of(live) - position % ring_of(live);
}

/* Bytes from `position` on that may be fetched without a loss. */
static uint64_t room_at(const struct ps_live *live, uint64_t position)
{
	uint64_t used = position - live->lowest;

	return used < ring_of(live) ? ring_of(live) - used : 0;
}

bool ps_live_init(struct ps_live *live, struct ps_panel *panel, unsigned mirror, const char *store,
                  uint64_t log_size)
{
	void *log = mmap(NULL, PS_RING_OFFSET + log_size, PROT_READ | PROT_WRITE,
	                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	memset(live, 0, sizeof(*live));
	ps_fetch_init(&live->fetch, panel, mirror, store);
	live->chunk = CHUNK_FIRST;
	if (log == MAP_FAILED) {
		ps_complain(PS_EXIT_FAILURE, "no memory for the log of %llu bytes: %s",
		            (unsigned long long)log_size, strerror(errno));
		return false;
	}
	live->image.log = log;
	live->image.ring_size = log_size;
	return true;
}

void ps_live_close(struct ps_live *live)
{
	if (live->image.log)
		munmap(live->image.log, PS_RING_OFFSET + ring_of(live));
	live->image.log = NULL;
}

static bool damaged(const struct ps_live *live, const char *what)
{
	struct ps_panel *panel = live->fetch.panel;

	ps_error_set(&panel->errors[live->fetch.mirror], PERSEAS_EDAMAGED,
	             "%s: the image of store '%s' is damaged: %s",
	             panel->addresses[live->fetch.mirror].text, live->fetch.store, what);
	return false;
}

/* --- the slot --- */

static bool ask_slot(struct ps_live *live, unsigned which)
{
	return ps_fetch_ask(&live->fetch, PS_REGION_LOG, 0, sizeof(live->slots[which]),
	                    live->slots[which]);
}

/* The slot that was asked for, in live->now. */
static enum ps_live_step take_slot(struct ps_live *live, unsigned which)
{
	if (!ps_fetch_drain(&live->fetch))
		return PS_LIVE_FAILED;
	if (ps_slot_choose(live->slots[which], &live->now) >= 0)
		return PS_LIVE_OK;
	damaged(live, "neither of its commit slots is valid");
	return PS_LIVE_FAILED;
}

bool ps_live_ask_state(struct ps_live *live)
{
	/* The pages of the ring that were used are given back: the next state is elsewhere. */
	madvise(live->image.log, PS_RING_OFFSET + ring_of(live), MADV_DONTNEED);
	return ask_slot(live, 0);
}

enum ps_live_step ps_live_take_state(struct ps_live *live)
{
	enum ps_live_step step = take_slot(live, 0);

	if (step)
		return step;
	live->from = live->now;
	live->seq = live->older_seq = live->from.seq;
	live->position = live->older_position = live->from.last;
	live->older_epoch = live->from.epoch;
	live->next = live->lowest = live->from.next;
	return PS_LIVE_OK;
}

enum ps_live_step ps_live_begin(struct ps_live *live)
{
	return ps_live_ask_state(live) ? ps_live_take_state(live) : PS_LIVE_FAILED;
}

/* --- following --- */

/* The two places where the next record may begin: its own, and the ring's next lap. */
bool ps_live_ask_log(struct ps_live *live)
{
	uint64_t length = live->chunk, room = room_at(live, live->next);

	if (length > to_lap(live, live->next))
		length = to_lap(live, live->next);
	if (length > room)
		length = room;
	live->looked = (uint32_t)length;
	if (!ps_fetch_ask(&live->fetch, PS_REGION_LOG, PS_RING_OFFSET + live->next % ring_of(live),
	                  length > 0 ? live->looked : sizeof(live->ahead),
	                  length > 0 ? (void *)place_of(live, live->next) : &live->ahead))
		return false;
	if (!ps_fetch_ask(&live->fetch, PS_REGION_LOG, PS_RING_OFFSET, sizeof(live->lap),
	                  &live->lap))
		return false;
	live->ticket = live->fetch.asked;
	return true;
}

/* Is this the head of the record that comes next, at this position? Not yet checked. */
static bool is_next(const struct ps_live *live, const struct ps_record *head, uint64_t position)
{
	return head->magic == PS_RECORD_MAGIC && head->epoch == live->from.epoch &&
	       head->seq == live->seq + 1 && head->position == position &&
	       head->length >= sizeof(*head) && head->length <= to_lap(live, position);
}

/* Moves over every whole record that is there. */
static enum ps_live_step advance(struct ps_live *live)
{
	for (;;) {
		const struct ps_record *record = ps_image_find(&live->image, live->from.epoch,
		                                               live->seq + 1, live->next);
		uint64_t end;

		if (!record)
			return PS_LIVE_OK;
		end = record->position + ps_align64(record->length);
		if (end - live->lowest > ring_of(live))
			return PS_LIVE_AGAIN;
		live->seq++;
		live->position = record->position;
		live->next = end;
	}
}

/* Fetches the rest of a record of which only the head was seen. */
static enum ps_live_step fetch_whole(struct ps_live *live, uint64_t position, uint32_t length)
{
	if (ps_align64(length) > room_at(live, position))
		return PS_LIVE_AGAIN;
	if (!ps_fetch_range(&live->fetch, PS_REGION_LOG, PS_RING_OFFSET + position % ring_of(live),
	                    length, place_of(live, position)) ||
	    !ps_fetch_drain(&live->fetch))
		return PS_LIVE_FAILED;
	return advance(live);
}

/* More of the log is asked for at once where there is more. */
static void adapt(struct ps_live *live, uint64_t taken)
{
	if (taken > live->chunk / 2 && live->chunk < PS_FETCH_MAX)
		live->chunk *= 2;
	else if (taken < live->chunk / 8 && live->chunk > CHUNK_MIN)
		live->chunk /= 2;
}

enum ps_live_step ps_live_take_log(struct ps_live *live)
{
	uint64_t before = live->next, looked_to = before + live->looked;
	struct ps_record head;
	enum ps_live_step step;

	if (!ps_fetch_collect(&live->fetch, live->ticket))
		return PS_LIVE_FAILED;
	if (live->looked == 0 && is_next(live, &live->ahead, before))
		return PS_LIVE_AGAIN;
	step = advance(live);
	if (!step && looked_to - live->next >= sizeof(head) && looked_to > live->next) {
		memcpy(&head, place_of(live, live->next), sizeof(head));
		if (is_next(live, &head, live->next) && head.length > looked_to - live->next)
			step = fetch_whole(live, live->next, head.length);
	}
	if (!step && is_next(live, &live->lap, before + to_lap(live, before)))
		step = fetch_whole(live, live->lap.position, live->lap.length);
	adapt(live, live->next - before);
	return step;
}

/* --- the tail --- */

/* Looks until record `goal` was followed, or nothing is new. */
static enum ps_live_step follow(struct ps_live *live, uint64_t goal)
{
	while (live->seq < goal) {
		uint64_t before = live->seq;
		enum ps_live_step step;

		if (!ps_live_ask_log(live))
			return PS_LIVE_FAILED;
		step = ps_live_take_log(live);
		if (step)
			return step;
		if (live->seq == before)
			break;
	}
	return PS_LIVE_OK;
}

/* The same owner's, and not an earlier one? */
static enum ps_live_step check_slot(struct ps_live *live, unsigned which)
{
	enum ps_live_step step = take_slot(live, which);

	if (!step && (live->now.epoch != live->from.epoch || live->now.seq < live->from.seq))
		return PS_LIVE_AGAIN;
	return step;
}

/*
 * The slot that is read after the data bounds what the data can hold: its own transaction, and
 * the one after it, which may be under way. When that one's record is found, all is known. When
 * it is not, then it was not begun, or its record has been overwritten; which cannot be before
 * the slot has gone on.
 */
bool ps_live_ask_tail(struct ps_live *live)
{
	return ask_slot(live, 0) && ps_live_ask_log(live) && ask_slot(live, 1);
}

enum ps_live_step ps_live_take_tail(struct ps_live *live)
{
	enum ps_live_step step = check_slot(live, 0);
	uint64_t goal = live->now.seq + 1, before = live->seq;

	if (!step)
		step = ps_live_take_log(live);
	/* A look that found something may not have seen all. */
	if (!step && live->seq > before) {
		step = follow(live, goal);
		if (!step && live->seq < goal && !ask_slot(live, 1))
			step = PS_LIVE_FAILED;
	}
	if (step || live->seq >= goal)
		return step;
	step = check_slot(live, 1);
	if (step || live->now.seq <= live->seq)
		return step;
	step = follow(live, goal);
	return step || live->seq >= goal ? step : PS_LIVE_AGAIN;
}

/* --- the past --- */

/* Is the record there, whole, and the one that is looked for? */
static const struct ps_record *older_record(const struct ps_live *live)
{
	const struct ps_record *record = ps_image_at(&live->image, live->older_position);

	if (!record || record->seq != live->older_seq || record->epoch > live->older_epoch ||
	    record->position + ps_align64(record->length) > live->lowest)
		return NULL;
	return record;
}

/* May what lies before `position` be fetched: is the ring's place free, and below? */
static uint64_t room_below(const struct ps_live *live, uint64_t position)
{
	uint64_t used = live->next - position;

	return used < ring_of(live) ? ring_of(live) - used : 0;
}

/* Fetches what lies around the head of the older record: it, and some before it. */
static bool fetch_older(struct ps_live *live)
{
	uint64_t at = live->older_position, back = at % ring_of(live);
	uint64_t length = sizeof(struct ps_record);
	struct ps_record head;

	if (back > room_below(live, at))
		back = room_below(live, at);
	if (back > BACK_CHUNK)
		back = BACK_CHUNK;
	if (!ps_fetch_range(&live->fetch, PS_REGION_LOG, PS_RING_OFFSET + at % ring_of(live) - back,
	                    back + length, place_of(live, at) - back) ||
	    !ps_fetch_drain(&live->fetch))
		return false;
	memcpy(&head, place_of(live, at), sizeof(head));
	if (head.magic != PS_RECORD_MAGIC || head.position != at || head.length < sizeof(head) ||
	    head.length > to_lap(live, at) || at + ps_align64(head.length) > live->lowest)
		return true;
	return ps_fetch_range(&live->fetch, PS_REGION_LOG, PS_RING_OFFSET + at % ring_of(live),
	                      head.length, place_of(live, at)) &&
	       ps_fetch_drain(&live->fetch);
}

const struct ps_record *ps_live_older(struct ps_live *live, enum ps_live_step *step)
{
	uint64_t at = live->older_position;
	const struct ps_record *record;

	*step = PS_LIVE_OK;
	/* Positions only fall, and what is needed must fit the ring. */
	if (at == 0 || at % PS_ALIGN || at >= live->lowest || live->next - at > ring_of(live))
		return NULL;
	record = older_record(live);
	if (!record) {
		if (!fetch_older(live)) {
			*step = PS_LIVE_FAILED;
			return NULL;
		}
		record = older_record(live);
	}
	if (!record)
		return NULL;
	live->lowest = at;
	live->older_epoch = record->epoch;
	live->older_position = record->previous;
	live->older_seq--;
	return record;
}

/* --- undoing --- */

static bool undo_range(const struct ps_windows *windows, const struct ps_range *range,
                       const uint8_t *image)
{
	const struct ps_window *window;
	uint64_t start = range->offset, end;

	if (range->segment >= PS_SEGMENTS_MAX)
		return false;
	window = &windows->of[range->segment];
	if (!window->bytes)
		return true;
	if (range->offset > window->size || range->length > window->size - range->offset)
		return false;
	end = range->offset + range->length;
	if (start < window->offset)
		start = window->offset;
	if (end > window->offset + window->length)
		end = window->offset + window->length;
	if (start < end)
		memcpy(window->bytes + (start - window->offset), image + (start - range->offset),
		       end - start);
	return true;
}

bool ps_live_undo_record(const struct ps_record *record, const struct ps_windows *windows)
{
	const struct ps_range *range;
	struct ps_cursor cursor;
	const void *image;

	if (record->kind == PS_RECORD_PUBLISH)
		return true;
	/* The ranges of one transaction do not overlap: their order does not matter. */
	ps_record_walk(record, &cursor);
	while (ps_record_next(&cursor, &range, &image))
		if (!undo_range(windows, range, image))
			return false;
	return true;
}

bool ps_live_undo(const struct ps_live *live, const struct ps_windows *windows, uint64_t seq)
{
	uint64_t position = live->position;

	for (uint64_t at = live->seq; at > seq; at--) {
		const struct ps_record *record = ps_image_at(&live->image, position);

		if (!record || record->seq != at)
			return damaged(live, "the records of its log do not hang together");
		if (!ps_live_undo_record(record, windows))
			return damaged(live, "a record of its log names bytes outside of a "
			                     "segment");
		position = record->previous;
	}
	return true;
}
