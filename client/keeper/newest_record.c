/*
 * newest_record.c - see newest_record.h.
 */
#include "newest_record.h"

#include "copy.h"
#include "due.h"
#include "../core/mirror.h"
#include "../../proto/image/log_reader.h"
#include "resync_internal.h"

#include <assert.h>
#include <string.h>

/* A record that is longer is left out. The slot lies behind it. */
enum { RECORD_MAX = 128 << 10 };

static_assert(RECORD_MAX + sizeof(struct ps_slot) <= PS_BOUNCE, "a record and a slot fit");

/* Returns the bytes of the newest record and its padding, or 0 if the copy goes without it: it is
 * too long, or a transaction was sent since the copy began. */
static uint64_t length_wanted(struct perseas *p)
{
	const uint64_t length = p->commit.next - p->commit.last;

	ps_assert_locked(p);
	return p->commit.seq == p->upkeep.resync.seq && p->commit.last && length <= RECORD_MAX
	               ? length
	               : 0;
}

/* The copy goes on, and looks for no record any more. */
static void end(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;

	ps_resync_forget_reply(r);
	ps_question_forget(&r->question);
	r->region = PS_REGION_SEGMENT;
	r->tried = 0;
	if (r->state != PS_RESYNC_COPYING)
		ps_resync_move(p, PS_RESYNC_COPYING);
}

bool ps_newest_record_ask(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;
	uint64_t offset, length;

	assert(!r->begun && ps_newest_record_is_next(r));
	pthread_mutex_lock(&p->lock);
	offset = PS_RING_OFFSET + p->commit.last % p->log_size;
	length = length_wanted(p);
	pthread_mutex_unlock(&p->lock);
	if (length && ps_resync_ask_bytes(p, PS_REGION_LOG, offset, length, r->seq))
		return true;
	end(p);
	return false;
}

static int view_reply(void *source, uint64_t position, uint64_t length, const void **bytes)
{
	const Perseas__ReadReply *read = source;

	(void)position;
	*bytes = read->bytes.data;
	return length > read->bytes.len;
}

/* Returns true if the reply is still the newest record: a transaction may have been sent since it
 * was asked for, and where the ring lapped, that one lies in the same place. */
static bool is_record(const struct perseas *p, Perseas__ReadReply *read)
{
	struct ps_log_back back = ps_log_back_from(p->epoch, p->commit.seq, p->commit.next,
	                                           p->commit.last, p->log_size);
	const struct ps_record *record;

	return read->bytes.len == p->commit.next - p->commit.last &&
	       !ps_log_back(&back, p->log_size, view_reply, read, &record);
}

/* Sends the record, its terminator, and then the slot that counts it (I2). */
static void post(struct perseas *p, const Perseas__ReadReply *read)
{
	struct ps_resync *r = &p->upkeep.resync;
	uint8_t *bounce = ps_ring_bounce(&p->commit.ring);
	struct ps_write writes[2] = { { bounce, PS_RING_OFFSET + p->commit.last % p->log_size,
		                        PS_REGION_LOG, (uint32_t)read->bytes.len } };
	const unsigned count = 1 + ps_copy_terminator(p, writes + 1);
	struct ps_chain chain = { writes, count, count, { NULL, 0, 0, 0 } };

	memcpy(bounce, read->bytes.data, read->bytes.len);
	chain.slot = ps_resync_slot(p, bounce + RECORD_MAX);
	if (!ps_mirror_bulk(p, r->mirror, &chain)) {
		r->begun = true;
		r->until = p->commit.seq;
	}
}

void ps_newest_record_take(struct perseas *p)
{
	const struct ps_resync *r = &p->upkeep.resync;

	pthread_mutex_lock(&p->lock);
	if (r->mirror->state == PERSEAS_MIRROR_RESYNCING && is_record(p, r->reply->read))
		post(p, r->reply->read);
	pthread_mutex_unlock(&p->lock);
	end(p);
}
