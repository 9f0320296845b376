/*
 * log_reader.c - reads undo logs, of images that other processes may have written (see
 * log_reader.h).
 */
#include "log_reader.h"

#include <assert.h>
#include <string.h>

enum {
	CHUNK_MIN = 4 << 10,
	CHUNK_FIRST = 64 << 10,
	CHUNK_MAX = 512 << 10,
	BACK_CHUNK = 64 << 10, /* bytes of older log that one read fetches */
	/* Reads that wait for the record that proves the followed ones valid. */
	PROOF_TRIES = 16,
};

/* --- backward, from a record to the one before it --- */

/* Returns true if this is the head of the record that *back describes. At most `rest` bytes can
 * belong to it. */
static bool is_described(const struct ps_log_back *back, const struct ps_record *head,
                         uint64_t rest)
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

	/* Each record must lie below the one after it, so the walk ends. */
	if (at == 0 || at % PS_ALIGN || at >= back->end || at < back->lowest || back->seq == 0)
		return 1;
	rc = view(source, at, sizeof(head), &bytes);
	if (rc)
		return rc;
	memcpy(&head, bytes, sizeof(head));
	if (!is_described(back, &head, rest))
		return 1;
	rc = view(source, at, head.length, &bytes);
	if (rc)
		return rc;
	/* The head may have changed between the two reads. */
	if (memcmp(bytes, &head, sizeof(head)) != 0 || ps_record_check(bytes, head.length))
		return 1;
	*record = bytes;
	*back = (struct ps_log_back){ head.previous, head.seq - 1, head.epoch, at, back->lowest };
	return 0;
}

/* --- an image in memory --- */

/* The fences keep this copy ordered after earlier reads and before later ones. */
static uint64_t copy_memory(void *log, uint64_t offset, uint64_t length, void *to)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	memcpy(to, (const uint8_t *)log + offset, length);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return 1;
}

static bool is_read(void *log, uint64_t ticket)
{
	(void)log, (void)ticket;
	return true;
}

const struct ps_log_ops ps_log_memory = { .ask = copy_memory, .wait = is_read };

/* --- the ring --- */

void ps_log_init(struct ps_log_reader *reader, const struct ps_log_ops *ops, void *source,
                 uint8_t *log, uint64_t ring_size)
{
	assert(ring_size >= PS_LOG_MIN && ring_size % PS_ALIGN == 0);
	memset(reader, 0, sizeof(*reader));
	reader->ops = ops;
	reader->source = source;
	reader->image.log = log;
	reader->image.ring_size = ring_size;
	reader->chunk = CHUNK_FIRST;
}

static uint64_t ring_length(const struct ps_log_reader *reader)
{
	return reader->image.ring_size;
}

static uint64_t log_offset_of(const struct ps_log_reader *reader, uint64_t position)
{
	return PS_RING_OFFSET + position % ring_length(reader);
}

static uint8_t *ring_bytes(const struct ps_log_reader *reader, uint64_t position)
{
	return reader->image.log + log_offset_of(reader, position);
}

static uint64_t bytes_to_lap(const struct ps_log_reader *reader, uint64_t position)
{
	return ring_length(reader) - position % ring_length(reader);
}

/* Returns how many bytes from `position` on may be read without overwriting ring bytes that are
 * still needed. */
static uint64_t free_space_at(const struct ps_log_reader *reader, uint64_t position)
{
	uint64_t used = position - reader->lowest;

	return used < ring_length(reader) ? ring_length(reader) - used : 0;
}

/* Requests bytes of the ring. Returns a ticket, or 0 on failure. */
static uint64_t request_ring(struct ps_log_reader *reader, uint64_t position, uint64_t length)
{
	return reader->ops->ask(reader->source, log_offset_of(reader, position), length,
	                        ring_bytes(reader, position));
}

static bool read_ring(struct ps_log_reader *reader, uint64_t position, uint64_t length)
{
	uint64_t ticket = request_ring(reader, position, length);

	return ticket && reader->ops->wait(reader->source, ticket);
}

/* --- commit slots --- */

static bool request_slot(struct ps_log_reader *reader, unsigned which)
{
	reader->slots[which].ticket = reader->ops->ask(reader->source, 0,
	                                               sizeof(reader->slots[which].bytes),
	                                               reader->slots[which].bytes);
	return reader->slots[which].ticket != 0;
}

/* Waits for a requested slot. Returns its index, or -1 if the source failed or neither slot is
 * valid. */
static int receive_slot(struct ps_log_reader *reader, unsigned which, struct ps_slot *slot)
{
	int index;

	if (!reader->ops->wait(reader->source, reader->slots[which].ticket))
		return -1;
	index = ps_slot_choose(reader->slots[which].bytes, slot);
	if (index < 0 && reader->ops->damaged)
		reader->ops->damaged(reader->source, "neither of its commit slots is valid");
	return index;
}

bool ps_log_request_state(struct ps_log_reader *reader)
{
	return request_slot(reader, 0);
}

enum ps_log_step ps_log_receive_state(struct ps_log_reader *reader)
{
	reader->index = receive_slot(reader, 0, &reader->now);
	if (reader->index < 0)
		return PS_LOG_FAILED;
	reader->from = reader->now;
	reader->seq = reader->from.seq;
	reader->position = reader->from.last;
	reader->next = reader->lowest = reader->from.next;
	assert(reader->position < reader->next);
	reader->unproven_from = reader->first = 0;
	reader->older = ps_log_newest_followed(reader);
	reader->older_begin = reader->older_end = 0;
	return PS_LOG_OK;
}

enum ps_log_step ps_log_read_state(struct ps_log_reader *reader)
{
	return ps_log_request_state(reader) ? ps_log_receive_state(reader) : PS_LOG_FAILED;
}

/* Takes a slot that was read with the log. Returns PS_LOG_OVERTAKEN if it is of another epoch,
 * older than the first slot, or contradicts the records that were followed. */
static enum ps_log_step check_slot(struct ps_log_reader *reader, unsigned which,
                                   struct ps_slot *slot)
{
	if (receive_slot(reader, which, slot) < 0)
		return PS_LOG_FAILED;
	if (slot->epoch != reader->from.epoch || slot->seq < reader->from.seq)
		return PS_LOG_OVERTAKEN;
	if (slot->seq == reader->seq &&
	    (slot->next != reader->next || slot->last != reader->position))
		return PS_LOG_OVERTAKEN;
	return PS_LOG_OK;
}

/* --- forward, along new records --- */

/* Requests a slot, the two places where the next record may begin (`next`, and the ring's next
 * lap), and the slot again. */
bool ps_log_request_new(struct ps_log_reader *reader)
{
	uint64_t length = reader->chunk, room = free_space_at(reader, reader->next);

	if (length > bytes_to_lap(reader, reader->next))
		length = bytes_to_lap(reader, reader->next);
	if (length > room)
		length = room;
	reader->fresh_length = (uint32_t)length;
	if (!request_slot(reader, 0))
		return false;
	reader->ticket = length > 0 ? request_ring(reader, reader->next, length)
	                            : reader->ops->ask(reader->source,
	                                               log_offset_of(reader, reader->next),
	                                               sizeof(reader->head_at_next),
	                                               &reader->head_at_next);
	if (reader->ticket)
		reader->ticket = reader->ops->ask(reader->source, PS_RING_OFFSET,
		                                  sizeof(reader->head_at_lap),
		                                  &reader->head_at_lap);
	return reader->ticket && request_slot(reader, 1);
}

/* Returns true if this is the head of the next record, at `position`. The entries are not checked
 * yet.
 *
 * The record is accepted only if the slot read before these bytes includes the record before it.
 * Only then has that record's terminator arrived; until then, bytes of user data can lie here and
 * look like a record. */
static bool is_next_record(const struct ps_log_reader *reader, const struct ps_record *head,
                           uint64_t position)
{
	return reader->seq <= reader->now.seq && head->magic == PS_RECORD_MAGIC &&
	       head->epoch == reader->from.epoch && head->seq == reader->seq + 1 &&
	       head->position == position && head->length >= sizeof(*head) &&
	       head->length <= bytes_to_lap(reader, position) &&
	       ps_record_position(reader->next, head->length, ring_length(reader)) == position;
}

/* Follows the record at `position` if all of it was read, that is, if it ends before `end`. Returns
 * PS_LOG_OVERTAKEN if the write of the record and its terminator has overwritten ring bytes that
 * are still needed. */
static enum ps_log_step follow_record(struct ps_log_reader *reader, uint64_t position, uint64_t end,
                                      bool *followed)
{
	struct ps_record head;
	uint64_t next;

	*followed = false;
	if (end - position < sizeof(head))
		return PS_LOG_OK;
	memcpy(&head, ring_bytes(reader, position), sizeof(head));
	if (!is_next_record(reader, &head, position) || head.length > end - position ||
	    ps_record_check(ring_bytes(reader, position), head.length))
		return PS_LOG_OK;
	next = position + ps_align64(head.length);
	if (next + ps_terminator_size(next, ring_length(reader)) - reader->lowest >
	    ring_length(reader))
		return PS_LOG_OVERTAKEN;
	*followed = true;
	reader->seq++;
	reader->position = position;
	reader->next = next;
	if (!reader->first)
		reader->first = position;
	if (reader->seq == reader->proof_seq)
		reader->unproven_from = 0;
	return PS_LOG_OK;
}

/* Reads a whole record, of which only the head was read before, and then a slot. */
static enum ps_log_step read_whole_record(struct ps_log_reader *reader, uint64_t position,
                                          uint32_t length)
{
	bool followed;

	if (ps_align64(length) > free_space_at(reader, position))
		return PS_LOG_OVERTAKEN;
	if (!read_ring(reader, position, length) || !request_slot(reader, 1))
		return PS_LOG_FAILED;
	return follow_record(reader, position, position + length, &followed);
}

/* Follows every complete record among the bytes read from `before` on. */
static enum ps_log_step follow_new_bytes(struct ps_log_reader *reader, uint64_t before)
{
	const uint64_t end = before + reader->fresh_length;
	enum ps_log_step step;
	struct ps_record head;
	bool followed;

	if (reader->fresh_length == 0 && is_next_record(reader, &reader->head_at_next, before))
		return PS_LOG_OVERTAKEN;
	do
		step = follow_record(reader, reader->next, end, &followed);
	while (!step && followed);
	if (!step && end > reader->next && end - reader->next >= sizeof(head)) {
		memcpy(&head, ring_bytes(reader, reader->next), sizeof(head));
		if (is_next_record(reader, &head, reader->next) && head.length > end - reader->next)
			step = read_whole_record(reader, reader->next, head.length);
	}
	if (!step &&
	    is_next_record(reader, &reader->head_at_lap, before + bytes_to_lap(reader, before)))
		step = read_whole_record(reader, reader->head_at_lap.position,
		                         reader->head_at_lap.length);
	return step;
}

/* Decides whether the records followed by this read, from `first` on, are certainly valid: no
 * transaction up to the slot that was read afterwards has overwritten them, nor can the next
 * transaction, which may be in flight. If the next one can, marks the records unproven until it has
 * been followed, because before that its length and its place are unknown. */
static void mark_unproven(struct ps_log_reader *reader, uint64_t first)
{
	const struct ps_slot *slot = &reader->after;

	if (reader->seq > slot->seq ||
	    first >= ps_lowest_intact_position(slot->next, ring_length(reader)))
		return;
	if (!reader->unproven_from)
		reader->unproven_from = first;
	reader->proof_seq = slot->seq + 1;
}

/* Adapts the size of the next read to how much new log there was. */
static void adapt_chunk(struct ps_log_reader *reader, uint64_t taken)
{
	if (taken > reader->chunk / 2 && reader->chunk < CHUNK_MAX)
		reader->chunk *= 2;
	else if (taken < reader->chunk / 8 && reader->chunk > CHUNK_MIN)
		reader->chunk /= 2;
}

enum ps_log_step ps_log_receive_new(struct ps_log_reader *reader)
{
	const uint64_t before = reader->next;
	enum ps_log_step step = check_slot(reader, 0, &reader->now);

	reader->first = 0;
	if (!step && !reader->ops->wait(reader->source, reader->ticket))
		step = PS_LOG_FAILED;
	if (!step)
		step = follow_new_bytes(reader, before);
	if (!step)
		step = check_slot(reader, 1, &reader->after);
	if (!step && reader->first)
		mark_unproven(reader, reader->first);
	adapt_chunk(reader, reader->next - before);
	return step;
}

enum ps_log_step ps_log_read_new(struct ps_log_reader *reader)
{
	return ps_log_request_new(reader) ? ps_log_receive_new(reader) : PS_LOG_FAILED;
}

/* --- the end of the log --- */

/* Reads the log until the record with seq `goal` was followed or nothing is new. A record that a
 * slot includes and two reads did not find has been overwritten. */
static enum ps_log_step follow_until_seq(struct ps_log_reader *reader, uint64_t goal)
{
	unsigned in_vain = 0;

	while (reader->seq < goal) {
		const uint64_t before = reader->seq;
		enum ps_log_step step = ps_log_read_new(reader);

		if (step)
			return step;
		in_vain = reader->seq > before ? 0 : in_vain + 1;
		if (in_vain && reader->after.seq <= reader->seq)
			break;
		if (in_vain == 2)
			return PS_LOG_OVERTAKEN;
	}
	return PS_LOG_OK;
}

enum ps_log_step ps_log_prove_records(struct ps_log_reader *reader)
{
	enum ps_log_step step = PS_LOG_OK;

	for (unsigned tries = 0; !step && reader->unproven_from && tries < PROOF_TRIES; tries++)
		step = follow_until_seq(reader, reader->proof_seq);
	if (step)
		reader->unproven_from = 0;
	else if (reader->unproven_from)
		step = PS_LOG_OVERTAKEN;
	return step;
}

/* A slot read after the data bounds what the data can contain: transactions up to the slot's, and
 * the next one, which may be in flight. If the record of the next one is found, every change is
 * known. If it is not found, and the slot read after the log has not advanced, that transaction had
 * not begun, because its record cannot be overwritten before the slot advances. */
enum ps_log_step ps_log_receive_tail(struct ps_log_reader *reader)
{
	const uint64_t before = reader->seq;
	enum ps_log_step step = ps_log_receive_new(reader);
	const uint64_t goal = reader->now.seq + 1;

	if (!step && (reader->seq > before || reader->after.seq > reader->seq))
		step = follow_until_seq(reader, goal);
	return step ? step : ps_log_prove_records(reader);
}

enum ps_log_step ps_log_read_tail(struct ps_log_reader *reader)
{
	return ps_log_request_new(reader) ? ps_log_receive_tail(reader) : PS_LOG_FAILED;
}

enum ps_log_step ps_log_reach_slot(struct ps_log_reader *reader)
{
	const struct ps_slot slot = reader->now;
	enum ps_log_step step = follow_until_seq(reader, slot.seq);

	if (!step && reader->seq < slot.seq)
		step = PS_LOG_OVERTAKEN;
	if (!step)
		step = ps_log_prove_records(reader);
	reader->now = slot;
	return step;
}

void ps_log_begin_round(struct ps_log_reader *reader)
{
	/* `now.last` is the position of that slot's own record. If `now` is still the slot at which
	 * following began, that record is in the ring only if ps_log_read_older() read it. */
	if (reader->now.last > reader->from.last)
		reader->lowest = reader->now.last;
	reader->from = reader->now;
}

/* --- backward, into the past --- */

/* Returns how many bytes before `position` to read: at most BACK_CHUNK, and only where the reader's
 * ring is free. */
static uint64_t free_space_below(const struct ps_log_reader *reader, uint64_t position)
{
	uint64_t room = ring_length(reader) - (reader->next - position);

	if (room > position % ring_length(reader))
		room = position % ring_length(reader);
	return room < BACK_CHUNK ? room : BACK_CHUNK;
}

/* Reads older log, and then a slot: log below the slot's bound may have been overwritten during the
 * read. */
static int read_older(struct ps_log_reader *reader, uint64_t from, uint64_t end)
{
	if (!read_ring(reader, from, end - from) || !request_slot(reader, 1) ||
	    receive_slot(reader, 1, &reader->after) < 0)
		return -1;
	reader->older.lowest = ps_lowest_intact_position(reader->after.next, ring_length(reader));
	return reader->after.epoch != reader->from.epoch;
}

/* Returns log bytes for ps_log_read_older(). Also fetches some of the log before them, which will
 * be requested next. */
static int view_older(void *arg, uint64_t position, uint64_t length, const void **bytes)
{
	struct ps_log_reader *reader = arg;
	uint64_t from = reader->older_end, end = position + length;
	int rc = 0;

	/* The record and everything after it must fit into the reader's ring. */
	if (reader->next - position > ring_length(reader))
		return 1;
	if (position < reader->older_begin || position >= reader->older_end)
		reader->older_begin = from = position - free_space_below(reader, position);
	if (from < end)
		rc = read_older(reader, from, end);
	reader->older_end = from < end ? end : from;
	*bytes = ring_bytes(reader, position);
	return rc ? rc : position < reader->older.lowest;
}

int ps_log_read_older(struct ps_log_reader *reader, const struct ps_record **record)
{
	int rc = ps_log_back(&reader->older, ring_length(reader), view_older, reader, record);

	if (!rc)
		reader->lowest = (*record)->position;
	return rc;
}

struct ps_log_back ps_log_newest_followed(const struct ps_log_reader *reader)
{
	return (struct ps_log_back){ reader->position, reader->seq, reader->from.epoch,
		                     reader->next, 0 };
}

static int view_ring(void *reader, uint64_t position, uint64_t length, const void **bytes)
{
	(void)length;
	*bytes = ring_bytes(reader, position);
	return 0;
}

int ps_log_older_followed(const struct ps_log_reader *reader, struct ps_log_back *back,
                          const struct ps_record **record)
{
	return ps_log_back(back, ring_length(reader), view_ring, (void *)reader, record);
}
