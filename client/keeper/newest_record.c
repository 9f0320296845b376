/*
 * newest_record.c - reads the newest undo record from another mirror, checks it, and sends it with
 * its slot (newest_record.h). It must never send a record that is not the newest.
 */
#include "newest_record.h"

#include "copy.h"
#include "pending_answers.h"
#include "../core/mirror.h"
#include "../../proto/image/log_reader.h"
#include "resync_internal.h"

#include <assert.h>
#include <string.h>

/* A longer record is left out. The slot lies behind the record in the bounce buffer. */
enum { RECORD_MAX = 128 << 10 };

static_assert(RECORD_MAX + sizeof(struct ps_slot) <= PS_BOUNCE, "a record and a slot fit");

/* Returns the length of the newest record with its padding. Returns 0 if the copy goes without it:
 * it is too long, or a transaction was sent since the copy began. Caller holds p->lock. */
static uint64_t newest_record_length(struct perseas *p)
{
	const uint64_t length = p->commit.next_position - p->commit.last_position;

	ps_assert_locked(p);
	return p->commit.seq == p->upkeep.resync.last_seq_at_begin && p->commit.last_position &&
	                       length <= RECORD_MAX
	               ? length
	               : 0;
}

/* Ends the search for the newest record: the copy goes on with segments. */
static void end_newest_record_search(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;

	ps_resync_forget_reply(r);
	ps_question_forget(&r->question);
	r->read_region = PS_REGION_SEGMENT;
	r->mirrors_asked_to_read = 0;
	if (r->state != PS_RESYNC_COPYING)
		ps_resync_move(p, PS_RESYNC_COPYING);
}

bool ps_newest_record_ask(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;
	uint64_t offset, length;

	assert(!r->has_posted_first_chunk && ps_newest_record_is_next(r));
	pthread_mutex_lock(&p->lock);
	offset = PS_RING_OFFSET + p->commit.last_position % p->log_size;
	length = newest_record_length(p);
	pthread_mutex_unlock(&p->lock);
	if (length && ps_resync_read_from_other_mirror(p, PS_REGION_LOG, offset, length,
	                                               r->last_seq_at_begin))
		return true;
	end_newest_record_search(p);
	return false;
}

/* Gives ps_log_back() the bytes of the reply. Returns 0, or 1 if it has fewer than `length`. */
static int view_reply(void *source, uint64_t position, uint64_t length, const void **bytes)
{
	const Perseas__ReadReply *read = source;

	(void)position;
	*bytes = read->bytes.data;
	return length > read->bytes.len;
}

/* Returns true if the reply is still the newest record. A transaction may have been sent since the
 * question, and after a lap of the ring its record lies in the same place. */
static bool is_newest_record(const struct perseas *p, Perseas__ReadReply *read)
{
	struct ps_log_back back = ps_log_back_from(p->epoch, p->commit.seq, p->commit.next_position,
	                                           p->commit.last_position, p->log_size);
	const struct ps_record *record;

	return read->bytes.len == p->commit.next_position - p->commit.last_position &&
	       !ps_log_back(&back, p->log_size, view_reply, read, &record);
}

/* Sends the newest record to the mirror that is copied to, then the terminator, and then the slot
 * that counts the record (I2). Caller holds p->lock. */
static void post_newest_record(struct perseas *p, const Perseas__ReadReply *read)
{
	struct ps_resync *r = &p->upkeep.resync;
	uint8_t *bounce = ps_ring_bounce_buffer(&p->commit.ring);
	struct ps_write writes[2] = { { bounce,
		                        PS_RING_OFFSET + p->commit.last_position % p->log_size,
		                        PS_REGION_LOG, (uint32_t)read->bytes.len } };
	const unsigned count = 1 + ps_copy_make_terminator_write(p, writes + 1);
	struct ps_chain chain = { writes, count, count, { NULL, 0, 0, 0 } };

	ps_assert_locked(p);
	assert(read->bytes.len <= RECORD_MAX);
	memcpy(bounce, read->bytes.data, read->bytes.len);
	chain.slot = ps_resync_make_slot_write(p, bounce + RECORD_MAX);
	if (!ps_mirror_post_bulk(p, r->target, &chain)) {
		r->has_posted_first_chunk = true;
		r->newest_seq_in_last_chunk = p->commit.seq;
	}
}

void ps_newest_record_send(struct perseas *p)
{
	const struct ps_resync *r = &p->upkeep.resync;

	pthread_mutex_lock(&p->lock);
	if (r->target->state == PERSEAS_MIRROR_RESYNCING &&
	    is_newest_record(p, r->saved_answer->read))
		post_newest_record(p, r->saved_answer->read);
	pthread_mutex_unlock(&p->lock);
	end_newest_record_search(p);
}
