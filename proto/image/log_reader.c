/*
 * log_reader.c - reads logs, of images that other processes may have written.
 */
#include "log_reader.h"

#include <string.h>

enum {
	CHUNK_MIN = 4 << 10,
	CHUNK_FIRST = 64 << 10,
	CHUNK_MAX = 512 << 10,
	BACK_CHUNK = 64 << 10, /* of the past, at once */
};

/* --- back --- */

/* Is this the head of the record that is looked for, of which `rest` bytes can be there? */
static bool is_wanted(const struct ps_log_back *back, const struct ps_record *head, uint64_t rest)
{
	return head->magic == PS_RECORD_MAGIC && head->position == back->position &&
	       head->seq == back->seq && head->epoch <= back->epoch &&
	       head->length >= sizeof(*head) && head->length <= rest &&
	       ps_align64(head->length) <= back->end - back->position;
}

int ps_log_back(struct ps_log_back *back, uint64_t ring_size, ps_log_view *view, void *source,
                const struct ps_record **record)
{
	const uint64_t at = back->position, rest = ring_size - at % ring_size;
	struct ps_record head;
	const void *bytes;
	int rc;

	/* Positions only fall, so there is an end. */
	if (at == 0 || at % PS_ALIGN || at >= back->end || back->seq == 0)
		return 1;
	rc = view(source, at, sizeof(head), &bytes);
	if (rc)
		return rc;
	memcpy(&head, bytes, sizeof(head));
	if (!is_wanted(back, &head, rest))
		return 1;
	rc = view(source, at, head.length, &bytes);
	if (rc)
		return rc;
	/* What was read anew must be what was looked at. */
	if (memcmp(bytes, &head, sizeof(head)) != 0 || ps_record_check(bytes, head.length))
		return 1;
	*record = bytes;
	*back = (struct ps_log_back){ head.previous, head.seq - 1, head.epoch, at };
	return 0;
}

/* --- an image in memory --- */

/* What is read before, and what is read after, stays in this order. */
static uint64_t copy_memory(void *log, uint64_t offset, uint64_t length, void *to)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	memcpy(to, (const uint8_t *)log + offset, length);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return 1;
}

static bool is_there(void *log, uint64_t ticket)
{
	(void)log, (void)ticket;
	return true;
}

const struct ps_log_ops ps_log_memory = { .ask = copy_memory, .wait = is_there };

/* --- the ring --- */

void ps_log_init(struct ps_log_reader *reader, const struct ps_log_ops *ops, void *source,
                 uint8_t *log, uint64_t ring_size)
{
	memset(reader, 0, sizeof(*reader));
	reader->ops = ops;
	reader->source = source;
	reader->image.log = log;
	reader->image.ring_size = ring_size;
	reader->chunk = CHUNK_FIRST;
}

static uint64_t ring_of(const struct ps_log_reader *reader)
{
	return reader->image.ring_size;
}

static uint64_t offset_of(const struct ps_log_reader *reader, uint64_t position)
{
	return PS_RING_OFFSET + position % ring_of(reader);
}

static uint8_t *place_of(const struct ps_log_reader *reader, uint64_t position)
{
	return reader->image.log + offset_of(reader, position);
}

static uint64_t to_lap(const struct ps_log_reader *reader, uint64_t position)
{
	return ring_of(reader) - position % ring_of(reader);
}

/* Bytes from `position` on that may be read without a loss. */
static uint64_t room_at(const struct ps_log_reader *reader, uint64_t position)
{
	uint64_t used = position - reader->lowest;

	return used < ring_of(reader) ? ring_of(reader) - used : 0;
}

/* Has bytes of the ring come to their places. A ticket, or 0. */
static uint64_t ask_ring(struct ps_log_reader *reader, uint64_t position, uint64_t length)
{
	return reader->ops->ask(reader->source, offset_of(reader, position), length,
	                        place_of(reader, position));
}

static bool read_ring(struct ps_log_reader *reader, uint64_t position, uint64_t length)
{
	uint64_t ticket = ask_ring(reader, position, length);

	return ticket && reader->ops->wait(reader->source, ticket);
}

/* --- the slot --- */

static bool ask_slot(struct ps_log_reader *reader, unsigned which)
{
	reader->slots[which].ticket = reader->ops->ask(reader->source, 0,
	                                               sizeof(reader->slots[which].bytes),
	                                               reader->slots[which].bytes);
	return reader->slots[which].ticket != 0;
}

/* The slot that was asked for, in reader->now. Its index, or -1: failed. */
static int take_slot(struct ps_log_reader *reader, unsigned which)
{
	int index;

	if (!reader->ops->wait(reader->source, reader->slots[which].ticket))
		return -1;
	index = ps_slot_choose(reader->slots[which].bytes, &reader->now);
	if (index < 0 && reader->ops->damaged)
		reader->ops->damaged(reader->source, "neither of its commit slots is valid");
	return index;
}

bool ps_log_ask_state(struct ps_log_reader *reader)
{
	return ask_slot(reader, 0);
}

enum ps_log_step ps_log_take_state(struct ps_log_reader *reader)
{
	reader->index = take_slot(reader, 0);
	if (reader->index < 0)
		return PS_LOG_FAILED;
	reader->from = reader->now;
	reader->seq = reader->from.seq;
	reader->position = reader->from.last;
	reader->next = reader->lowest = reader->from.next;
	reader->past = ps_log_newest(reader);
	reader->held = reader->held_end = 0;
	return PS_LOG_OK;
}

enum ps_log_step ps_log_begin(struct ps_log_reader *reader)
{
	return ps_log_ask_state(reader) ? ps_log_take_state(reader) : PS_LOG_FAILED;
}

/* --- following --- */

/* The two places where the next record may begin: its own, and the ring's next lap. */
bool ps_log_ask(struct ps_log_reader *reader)
{
	uint64_t length = reader->chunk, room = room_at(reader, reader->next);

	if (length > to_lap(reader, reader->next))
		length = to_lap(reader, reader->next);
	if (length > room)
		length = room;
	reader->looked = (uint32_t)length;
	reader->ticket = length > 0
	                         ? ask_ring(reader, reader->next, length)
	                         : reader->ops->ask(reader->source, offset_of(reader, reader->next),
	                                            sizeof(reader->ahead), &reader->ahead);
	if (reader->ticket)
		reader->ticket = reader->ops->ask(reader->source, PS_RING_OFFSET,
		                                  sizeof(reader->lap), &reader->lap);
	return reader->ticket != 0;
}

/* Is this the head of the record that comes next, at this position? Not yet checked. */
static bool is_next(const struct ps_log_reader *reader, const struct ps_record *head,
                    uint64_t position)
{
	return head->magic == PS_RECORD_MAGIC && head->epoch == reader->from.epoch &&
	       head->seq == reader->seq + 1 && head->position == position &&
	       head->length >= sizeof(*head) && head->length <= to_lap(reader, position);
}

/* Moves over every whole record that is there. */
static enum ps_log_step advance_records(struct ps_log_reader *reader)
{
	for (;;) {
		const struct ps_record *record = ps_image_find(&reader->image, reader->from.epoch,
		                                               reader->seq + 1, reader->next);
		uint64_t end;

		if (!record)
			return PS_LOG_OK;
		end = record->position + ps_align64(record->length);
		if (end - reader->lowest > ring_of(reader))
			return PS_LOG_AGAIN;
		reader->seq++;
		reader->position = record->position;
		reader->next = end;
	}
}

/* Reads all of a record of which only the head was seen. */
static enum ps_log_step read_whole(struct ps_log_reader *reader, uint64_t position, uint32_t length)
{
	if (ps_align64(length) > room_at(reader, position))
		return PS_LOG_AGAIN;
	reader->read_late = true;
	return read_ring(reader, position, length) ? advance_records(reader) : PS_LOG_FAILED;
}

/* More of the log is asked for at once where there is more. */
static void adapt_reach(struct ps_log_reader *reader, uint64_t taken)
{
	if (taken > reader->chunk / 2 && reader->chunk < CHUNK_MAX)
		reader->chunk *= 2;
	else if (taken < reader->chunk / 8 && reader->chunk > CHUNK_MIN)
		reader->chunk /= 2;
}

enum ps_log_step ps_log_take(struct ps_log_reader *reader)
{
	uint64_t before = reader->next, looked_to = before + reader->looked;
	struct ps_record head;
	enum ps_log_step step;

	if (!reader->ops->wait(reader->source, reader->ticket))
		return PS_LOG_FAILED;
	if (reader->looked == 0 && is_next(reader, &reader->ahead, before))
		return PS_LOG_AGAIN;
	step = advance_records(reader);
	if (!step && looked_to > reader->next && looked_to - reader->next >= sizeof(head)) {
		memcpy(&head, place_of(reader, reader->next), sizeof(head));
		if (is_next(reader, &head, reader->next) && head.length > looked_to - reader->next)
			step = read_whole(reader, reader->next, head.length);
	}
	if (!step && is_next(reader, &reader->lap, before + to_lap(reader, before)))
		step = read_whole(reader, reader->lap.position, reader->lap.length);
	adapt_reach(reader, reader->next - before);
	return step;
}

enum ps_log_step ps_log_look(struct ps_log_reader *reader)
{
	return ps_log_ask(reader) ? ps_log_take(reader) : PS_LOG_FAILED;
}

/* --- the tail --- */

/* Looks until record `goal` was followed, or nothing is new. */
static enum ps_log_step follow_to(struct ps_log_reader *reader, uint64_t goal)
{
	while (reader->seq < goal) {
		uint64_t before = reader->seq;
		enum ps_log_step step = ps_log_look(reader);

		if (step)
			return step;
		if (reader->seq == before)
			break;
	}
	return PS_LOG_OK;
}

/* The same owner's, and not an earlier one? */
static enum ps_log_step check_slot(struct ps_log_reader *reader, unsigned which)
{
	if (take_slot(reader, which) < 0)
		return PS_LOG_FAILED;
	if (reader->now.epoch != reader->from.epoch || reader->now.seq < reader->from.seq)
		return PS_LOG_AGAIN;
	return PS_LOG_OK;
}

/*
 * The slot that is read after the data bounds what the data can hold: its own transaction, and
 * the one after it, which may be under way. When that one's record is found, all is known. When
 * it is not, then it was not begun, or its record has been overwritten; which cannot be before
 * the slot has gone on.
 */
bool ps_log_ask_tail(struct ps_log_reader *reader)
{
	return ask_slot(reader, 0) && ps_log_ask(reader) && ask_slot(reader, 1);
}

enum ps_log_step ps_log_take_tail(struct ps_log_reader *reader)
{
	enum ps_log_step step = check_slot(reader, 0);
	uint64_t goal = reader->now.seq + 1, before = reader->seq;

	reader->read_late = false;
	if (!step)
		step = ps_log_take(reader);
	/* A look that found something may not have seen all; and what was read after the slot may
	 * be torn, without this slot telling of it. */
	if (!step && (reader->seq > before || reader->read_late)) {
		step = follow_to(reader, goal);
		if (!step && reader->seq < goal && !ask_slot(reader, 1))
			step = PS_LOG_FAILED;
	}
	if (step || reader->seq >= goal)
		return step;
	step = check_slot(reader, 1);
	if (step || reader->now.seq <= reader->seq)
		return step;
	step = follow_to(reader, goal);
	return step || reader->seq >= goal ? step : PS_LOG_AGAIN;
}

enum ps_log_step ps_log_tail(struct ps_log_reader *reader)
{
	return ps_log_ask_tail(reader) ? ps_log_take_tail(reader) : PS_LOG_FAILED;
}

enum ps_log_step ps_log_reach_slot(struct ps_log_reader *reader)
{
	enum ps_log_step step = follow_to(reader, reader->now.seq);

	return step || reader->seq >= reader->now.seq ? step : PS_LOG_AGAIN;
}

void ps_log_go_on(struct ps_log_reader *reader)
{
	/* The first slot's own record is there only if it was read. */
	if (reader->now.last > reader->from.last)
		reader->lowest = reader->now.last;
	reader->from = reader->now;
}

/* --- the past --- */

/* Bytes before `position` that may be read: where the ring's place is free, and some at once. */
static uint64_t room_below(const struct ps_log_reader *reader, uint64_t position)
{
	uint64_t room = ring_of(reader) - (reader->next - position);

	if (room > position % ring_of(reader))
		room = position % ring_of(reader);
	return room < BACK_CHUNK ? room : BACK_CHUNK;
}

/* Of a record that was not read yet, some before it comes along. */
static int view_past(void *arg, uint64_t position, uint64_t length, const void **bytes)
{
	struct ps_log_reader *reader = arg;
	uint64_t from = reader->held_end, end = position + length;

	/* All that is needed must fit the ring. */
	if (reader->next - position > ring_of(reader))
		return 1;
	if (position < reader->held || position >= reader->held_end)
		reader->held = from = position - room_below(reader, position);
	if (from < end && !read_ring(reader, from, end - from))
		return -1;
	reader->held_end = from < end ? end : from;
	*bytes = place_of(reader, position);
	return 0;
}

int ps_log_past(struct ps_log_reader *reader, const struct ps_record **record)
{
	int rc = ps_log_back(&reader->past, ring_of(reader), view_past, reader, record);

	if (!rc)
		reader->lowest = (*record)->position;
	return rc;
}

struct ps_log_back ps_log_newest(const struct ps_log_reader *reader)
{
	return (struct ps_log_back){ reader->position, reader->seq, reader->from.epoch,
		                     reader->next };
}

static int view_ring(void *reader, uint64_t position, uint64_t length, const void **bytes)
{
	(void)length;
	*bytes = place_of(reader, position);
	return 0;
}

int ps_log_followed(const struct ps_log_reader *reader, struct ps_log_back *back,
                    const struct ps_record **record)
{
	return ps_log_back(back, ring_of(reader), view_ring, (void *)reader, record);
}
