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
	PROOF_TRIES = 16,      /* looks for the record that shows what was followed to be right */
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
	if (at == 0 || at % PS_ALIGN || at >= back->end || at < back->lowest || back->seq == 0)
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
	*back = (struct ps_log_back){ head.previous, head.seq - 1, head.epoch, at, back->lowest };
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

/* Waits for a slot that was asked for. Returns its index, or -1 if the source failed. */
static int take_slot(struct ps_log_reader *reader, unsigned which, struct ps_slot *slot)
{
	int index;

	if (!reader->ops->wait(reader->source, reader->slots[which].ticket))
		return -1;
	index = ps_slot_choose(reader->slots[which].bytes, slot);
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
	reader->index = take_slot(reader, 0, &reader->now);
	if (reader->index < 0)
		return PS_LOG_FAILED;
	reader->from = reader->now;
	reader->seq = reader->from.seq;
	reader->position = reader->from.last;
	reader->next = reader->lowest = reader->from.next;
	reader->unproven = reader->first = 0;
	reader->past = ps_log_newest(reader);
	reader->held = reader->held_end = 0;
	return PS_LOG_OK;
}

enum ps_log_step ps_log_begin(struct ps_log_reader *reader)
{
	return ps_log_ask_state(reader) ? ps_log_take_state(reader) : PS_LOG_FAILED;
}

/* Takes a slot of a look: of the same owner, not an earlier one, and where the records that were
 * followed led. */
static enum ps_log_step check_slot(struct ps_log_reader *reader, unsigned which,
                                   struct ps_slot *slot)
{
	if (take_slot(reader, which, slot) < 0)
		return PS_LOG_FAILED;
	if (slot->epoch != reader->from.epoch || slot->seq < reader->from.seq)
		return PS_LOG_AGAIN;
	if (slot->seq == reader->seq &&
	    (slot->next != reader->next || slot->last != reader->position))
		return PS_LOG_AGAIN;
	return PS_LOG_OK;
}

/* --- following --- */

/* A look reads a slot, the two places where the next record may begin (its own, and the ring's next
 * lap), and a slot once more. */
bool ps_log_ask(struct ps_log_reader *reader)
{
	uint64_t length = reader->chunk, room = room_at(reader, reader->next);

	if (length > to_lap(reader, reader->next))
		length = to_lap(reader, reader->next);
	if (length > room)
		length = room;
	reader->looked = (uint32_t)length;
	if (!ask_slot(reader, 0))
		return false;
	reader->ticket = length > 0
	                         ? ask_ring(reader, reader->next, length)
	                         : reader->ops->ask(reader->source, offset_of(reader, reader->next),
	                                            sizeof(reader->ahead), &reader->ahead);
	if (reader->ticket)
		reader->ticket = reader->ops->ask(reader->source, PS_RING_OFFSET,
		                                  sizeof(reader->lap), &reader->lap);
	return reader->ticket && ask_slot(reader, 1);
}

/*
 * Returns true for the head of the record that comes next, at this position. Its entries are not
 * checked yet.
 *
 * It counts only if the slot that was read before these bytes counts the record before it. Then
 * that record's terminator has arrived: until then, what users stored can lie here.
 */
static bool is_next(const struct ps_log_reader *reader, const struct ps_record *head,
                    uint64_t position)
{
	return reader->seq <= reader->now.seq && head->magic == PS_RECORD_MAGIC &&
	       head->epoch == reader->from.epoch && head->seq == reader->seq + 1 &&
	       head->position == position && head->length >= sizeof(*head) &&
	       head->length <= to_lap(reader, position) &&
	       ps_place(reader->next, head->length, ring_of(reader)) == position;
}

/* Follows the record at `position`, of which this look has read the bytes before `end`. Returns
 * PS_LOG_AGAIN if its write, with the terminator, reached what is needed. */
static enum ps_log_step follow_record(struct ps_log_reader *reader, uint64_t position, uint64_t end,
                                      bool *followed)
{
	struct ps_record head;
	uint64_t next;

	*followed = false;
	if (end - position < sizeof(head))
		return PS_LOG_OK;
	memcpy(&head, place_of(reader, position), sizeof(head));
	if (!is_next(reader, &head, position) || head.length > end - position ||
	    ps_record_check(place_of(reader, position), head.length))
		return PS_LOG_OK;
	next = position + ps_align64(head.length);
	if (next + ps_terminator(next, ring_of(reader)) - reader->lowest > ring_of(reader))
		return PS_LOG_AGAIN;
	*followed = true;
	reader->seq++;
	reader->position = position;
	reader->next = next;
	if (!reader->first)
		reader->first = position;
	if (reader->seq == reader->proof)
		reader->unproven = 0;
	return PS_LOG_OK;
}

/* Reads all of a record of which only the head was seen, and a slot behind it. */
static enum ps_log_step read_whole(struct ps_log_reader *reader, uint64_t position, uint32_t length)
{
	bool followed;

	if (ps_align64(length) > room_at(reader, position))
		return PS_LOG_AGAIN;
	if (!read_ring(reader, position, length) || !ask_slot(reader, 1))
		return PS_LOG_FAILED;
	return follow_record(reader, position, position + length, &followed);
}

/* Follows every whole record that the look has read from `before` on. */
static enum ps_log_step follow_look(struct ps_log_reader *reader, uint64_t before)
{
	const uint64_t end = before + reader->looked;
	enum ps_log_step step;
	struct ps_record head;
	bool followed;

	if (reader->looked == 0 && is_next(reader, &reader->ahead, before))
		return PS_LOG_AGAIN;
	do
		step = follow_record(reader, reader->next, end, &followed);
	while (!step && followed);
	if (!step && end > reader->next && end - reader->next >= sizeof(head)) {
		memcpy(&head, place_of(reader, reader->next), sizeof(head));
		if (is_next(reader, &head, reader->next) && head.length > end - reader->next)
			step = read_whole(reader, reader->next, head.length);
	}
	if (!step && is_next(reader, &reader->lap, before + to_lap(reader, before)))
		step = read_whole(reader, reader->lap.position, reader->lap.length);
	return step;
}

/*
 * What was followed in this look, from `first` on, is right if nothing overwrote it meanwhile: if
 * neither a record that the slot counts did, which was read afterwards, nor the one that was under
 * way then. Until that one is followed, it may have any length, and lie at either place.
 */
static void prove(struct ps_log_reader *reader, uint64_t first)
{
	const struct ps_slot *slot = &reader->after;

	if (reader->seq > slot->seq || first >= ps_record_bound(slot->next, ring_of(reader)))
		return;
	if (!reader->unproven)
		reader->unproven = first;
	reader->proof = slot->seq + 1;
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
	const uint64_t before = reader->next;
	enum ps_log_step step = check_slot(reader, 0, &reader->now);

	reader->first = 0;
	if (!step && !reader->ops->wait(reader->source, reader->ticket))
		step = PS_LOG_FAILED;
	if (!step)
		step = follow_look(reader, before);
	if (!step)
		step = check_slot(reader, 1, &reader->after);
	if (!step && reader->first)
		prove(reader, reader->first);
	adapt_reach(reader, reader->next - before);
	return step;
}

enum ps_log_step ps_log_look(struct ps_log_reader *reader)
{
	return ps_log_ask(reader) ? ps_log_take(reader) : PS_LOG_FAILED;
}

/* --- the tail --- */

/* Looks until record `goal` was followed, or nothing is new. A slot that counts a record which two
 * looks did not find tells that it was overwritten. */
static enum ps_log_step follow_to(struct ps_log_reader *reader, uint64_t goal)
{
	unsigned in_vain = 0;

	while (reader->seq < goal) {
		const uint64_t before = reader->seq;
		enum ps_log_step step = ps_log_look(reader);

		if (step)
			return step;
		in_vain = reader->seq > before ? 0 : in_vain + 1;
		if (in_vain && reader->after.seq <= reader->seq)
			break;
		if (in_vain == 2)
			return PS_LOG_AGAIN;
	}
	return PS_LOG_OK;
}

enum ps_log_step ps_log_prove(struct ps_log_reader *reader)
{
	enum ps_log_step step = PS_LOG_OK;

	for (unsigned tries = 0; !step && reader->unproven && tries < PROOF_TRIES; tries++)
		step = follow_to(reader, reader->proof);
	if (step)
		reader->unproven = 0;
	else if (reader->unproven)
		step = PS_LOG_AGAIN;
	return step;
}

/*
 * A slot that is read after the data bounds what the data can hold: its own transaction, and the
 * one after it, which may be under way. When that one's record is found, all is known. When it is
 * not, and the slot behind the look counts no more, then it was not begun: it cannot be overwritten
 * before the slot has gone on.
 */
enum ps_log_step ps_log_take_tail(struct ps_log_reader *reader)
{
	const uint64_t before = reader->seq;
	enum ps_log_step step = ps_log_take(reader);
	const uint64_t goal = reader->now.seq + 1;

	if (!step && (reader->seq > before || reader->after.seq > reader->seq))
		step = follow_to(reader, goal);
	return step ? step : ps_log_prove(reader);
}

enum ps_log_step ps_log_tail(struct ps_log_reader *reader)
{
	return ps_log_ask(reader) ? ps_log_take_tail(reader) : PS_LOG_FAILED;
}

enum ps_log_step ps_log_reach_slot(struct ps_log_reader *reader)
{
	const struct ps_slot slot = reader->now;
	enum ps_log_step step = follow_to(reader, slot.seq);

	if (!step && reader->seq < slot.seq)
		step = PS_LOG_AGAIN;
	if (!step)
		step = ps_log_prove(reader);
	reader->now = slot;
	return step;
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

/* Reads some of the past, and then the slot, before whose bound it may have been overwritten. */
static int read_past(struct ps_log_reader *reader, uint64_t from, uint64_t end)
{
	if (!read_ring(reader, from, end - from) || !ask_slot(reader, 1) ||
	    take_slot(reader, 1, &reader->after) < 0)
		return -1;
	reader->past.lowest = ps_record_bound(reader->after.next, ring_of(reader));
	return reader->after.epoch != reader->from.epoch;
}

/* Of a record that was not read yet, some before it comes along. */
static int view_past(void *arg, uint64_t position, uint64_t length, const void **bytes)
{
	struct ps_log_reader *reader = arg;
	uint64_t from = reader->held_end, end = position + length;
	int rc = 0;

	/* All that is needed must fit the ring. */
	if (reader->next - position > ring_of(reader))
		return 1;
	if (position < reader->held || position >= reader->held_end)
		reader->held = from = position - room_below(reader, position);
	if (from < end)
		rc = read_past(reader, from, end);
	reader->held_end = from < end ? end : from;
	*bytes = place_of(reader, position);
	return rc ? rc : position < reader->past.lowest;
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
		                     reader->next, 0 };
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
