/*
 * renew_adopt.c - sends a mirror of this owner's history what it missed, from the ring, and then
 * the slot of the new epoch. A mirror of another history, or with wrong granules, gets a whole copy
 * of this owner's memory, but only if W is out of reach without it. A slot of the new epoch
 * outweighs all slots of earlier epochs, so it must never be written before the last transaction is
 * there.
 */
#include "renew_adopt.h"

#include "claims.h"
#include "copy.h"
#include "../core/broken_copy.h"
#include "../core/event.h"
#include "../core/gather.h"
#include "../core/mirror.h"
#include "../core/quorum.h"
#include "../core/unsent_granules.h"
#include "heartbeat.h"
#include "rejoin.h"
#include "../core/tx.h"

#include <assert.h>
#include <string.h>

enum {
	CHUNK = 128 << 10, /* copied at once in memory, while set_range waits */
	MISSED_MAX = 256, /* a mirror is sent this many transactions even if W others are adopted */
};

/* What it takes to adopt on one more mirror, from the cheapest to the most expensive way. */
enum effort { NEEDS_SLOT, NEEDS_RECENT, NEEDS_RING, NEEDS_COPY };

/* Returns true if the image is of this owner's history: at the epoch of the ring's transactions, or
 * adopted by a renewal that broke. An image in which a repair found wrong granules is not. */
static bool is_own_history(const struct perseas *p, const struct ps_mirror *m)
{
	const struct ps_image_position *at = &m->probe.position;

	return m->probe.header->state == PERSEAS__STATE__STATE_CONSISTENT &&
	       !ps_unsent_has_wrong_granules(m) &&
	       ((at->epoch == p->upkeep.renewal.ring_epoch && at->seq <= p->commit.seq) ||
	        (at->epoch > p->upkeep.renewal.ring_epoch && at->seq == p->commit.seq));
}

static enum effort find_effort(const struct perseas *p, const struct ps_mirror *m)
{
	const uint64_t seq = m->probe.position.seq;

	if (!is_own_history(p, m) || !ps_ring_can_replay(&p->commit.ring, seq, p->commit.seq))
		return NEEDS_COPY;
	if (seq == p->commit.seq)
		return NEEDS_SLOT;
	return p->commit.seq - seq <= MISSED_MAX ? NEEDS_RECENT : NEEDS_RING;
}

/* Sends the transactions that the mirror missed, with their old epoch, so that the image is a
 * prefix of the history at any moment. */
static int send_missed_transactions(struct perseas *p, struct ps_mirror *m)
{
	struct ps_image_position *at = &m->probe.position;

	while (at->seq < p->commit.seq) {
		const struct ps_ring_entry *entry = ps_ring_find_entry(&p->commit.ring,
		                                                       at->seq + 1);
		struct ps_chain chain = { entry->writes,
			                  entry->write_count,
			                  1,
			                  { &entry->slot, ps_slot_offset(!at->valid_slot),
			                    PS_REGION_LOG, sizeof(entry->slot) } };

		assert(entry->slot.epoch == at->epoch);
		if (ps_mirror_write(p, m, &chain))
			return -1;
		*at = (struct ps_image_position){ entry->slot.epoch, entry->seq, entry->slot.next,
			                          entry->slot.last, !at->valid_slot };
	}
	return 0;
}

/* Reads bytes that are not mapped here, or not here yet, into the bounce buffer. They are the
 * same on every mirror that holds the last transaction before the segment was unmapped. Returns
 * 0 or -1. */
static int read_from_other_mirror(struct perseas *p, const struct ps_mirror *m,
                                  const struct ps_segment *segment, uint64_t offset,
                                  uint64_t length)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *from = &p->mirrors[i];

		if (from != m && from->probe.is_claimed && from->link && is_own_history(p, from) &&
		    from->probe.position.seq >= segment->last_unmap_seq &&
		    !ps_mirror_read(p, from, PS_REGION_SEGMENT + segment->id, offset,
		                    ps_ring_bounce_buffer(&p->commit.ring), length))
			return 0;
	}
	return -1;
}

static int copy_segment(struct perseas *p, struct ps_mirror *m, const struct ps_segment *segment)
{
	uint8_t *bounce = ps_ring_bounce_buffer(&p->commit.ring);

	for (uint64_t done = 0; done < segment->size;) {
		const uint64_t rest = segment->size - done, most = rest < CHUNK ? rest : CHUNK;
		bool here;
		const uint64_t length = ps_demand_uniform_run(p, segment, done, most, &here);
		struct ps_write write = { bounce, done, PS_REGION_SEGMENT + segment->id,
			                  (uint32_t)length };
		struct ps_chain chain = { &write, 1, 0, { NULL, 0, 0, 0 } };

		if (segment->base && here) {
			pthread_mutex_lock(&p->lock);
			ps_tx_copy_committed(p, segment, done, bounce, length);
			pthread_mutex_unlock(&p->lock);
		} else if (read_from_other_mirror(p, m, segment, done, length)) {
			return -1;
		}
		if (ps_mirror_write(p, m, &chain))
			return -1;
		done += length;
		p->upkeep.resync.sent_bytes += length;
		/* The other mirrors must not take this owner for dead during the copy. */
		ps_heartbeat_step(p, ps_now(p));
	}
	return 0;
}

/* Sends this owner's memory and the slot to the mirror's image. Counts the bytes in
 * p->upkeep.resync, which no other copy uses during a renewal. */
static int send_memory(struct perseas *p, struct ps_mirror *m)
{
	int rc = 0;

	for (unsigned i = 0; i < p->segment_count; i++)
		p->upkeep.resync.total_bytes += p->segments[i].born ? p->segments[i].size : 0;
	ps_tx_observe_begin(p);
	for (unsigned i = 0; i < p->segment_count && !rc; i++)
		if (p->segments[i].born)
			rc = copy_segment(p, m, &p->segments[i]);
	ps_tx_observe_end(p);
	if (rc)
		return rc;
	m->probe.position.valid_slot = 0;
	ps_mirror_note_own_slot(m, p->epoch);
	return ps_copy_write_commit_slot(p, m);
}

/* Counts a copy that broke, which sets the pause before the next one, and says so in *error. */
static void note_broken_copy(struct perseas *p, struct ps_mirror *m, struct ps_error *error)
{
	const int code = error->code ? error->code : PERSEAS_EUNREACHABLE;
	char text[sizeof(m->trouble_text)];

	pthread_mutex_lock(&p->lock);
	ps_broken_copy_note_and_explain(p, m,
	                                error->code ? error->text : "the data connection broke",
	                                text, sizeof(text));
	ps_event(p, PERSEAS_EVENT_RESYNC_BROKEN, ps_last_committed_seq(p), m,
	         "the copy to mirror %s broke: %s", m->address.text, text);
	pthread_mutex_unlock(&p->lock);
	ps_error_set(error, code, "%s", text);
}

/* Copies the memory. What the mirror has stays to the end if it may be the last copy of something.
 */
static int copy_memory(struct perseas *p, struct ps_mirror *m, struct ps_error *error)
{
	int rc = ps_copy_prepare_whole(p, m, error);

	if (rc)
		return rc;
	pthread_mutex_lock(&p->lock);
	ps_broken_copy_note_begin(p, m);
	pthread_mutex_unlock(&p->lock);
	rc = send_memory(p, m);
	if (!rc)
		rc = ps_rejoin_have_image_counted(p, m, error);
	if (rc)
		note_broken_copy(p, m, error);
	p->upkeep.resync.sent_bytes = p->upkeep.resync.total_bytes = 0;
	return rc;
}

/* Returns true if the mirror waits for the end of the pause after a copy that broke. */
static bool is_pausing_after_broken_copy(struct perseas *p, const struct ps_mirror *m)
{
	return m->broken_copies.broken_copy_count && ps_broken_copy_retry_at(p, m) > ps_now(p);
}

/* Adopts on mirror `m` in this way. Returns 0, or nonzero if that failed. */
static int adopt_on_mirror(struct perseas *p, struct ps_mirror *m, enum effort effort)
{
	struct ps_error error = { 0 };
	int rc;

	if (effort == NEEDS_COPY) {
		rc = copy_memory(p, m, &error);
	} else {
		rc = send_missed_transactions(p, m);
		ps_mirror_note_own_slot(m, p->epoch);
		if (!rc)
			rc = ps_copy_write_commit_slot(p, m);
	}
	if (!rc)
		rc = ps_rejoin_add_unpublished(p, m, &error);
	/* The image lacks nothing now, whatever was left to be sent to the one before. */
	if (!rc)
		ps_unsent_free(m);
	if (error.code) {
		pthread_mutex_lock(&p->lock);
		ps_mirror_move_to_state(p, m, PERSEAS_MIRROR_DOWN, error.text);
		pthread_mutex_unlock(&p->lock);
	}
	return rc;
}

void ps_renew_adopt_memory_on_mirrors(struct perseas *p, uint32_t counted_mirrors)
{
	for (enum effort effort = NEEDS_SLOT; effort <= NEEDS_COPY; effort++) {
		for (unsigned i = 0; i < p->mirror_count; i++) {
			struct ps_mirror *m = &p->mirrors[i];

			if (!(counted_mirrors >> i & 1) || m->probe.is_adopted ||
			    find_effort(p, m) != effort)
				continue;
			if (effort >= NEEDS_RING && ps_quorum_is_w(p, ps_probe_sets(p).adopted_set))
				return;
			if (effort == NEEDS_COPY && is_pausing_after_broken_copy(p, m))
				continue;
			m->probe.is_adopted = !adopt_on_mirror(p, m, effort);
		}
	}
}
