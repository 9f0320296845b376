/*
 * resync.c - copies an image to one mirror, chunk by chunk between transactions, and has the mirror
 * count it at the end. resync_states.c has the table of states, and resync_prepare.c prepares the
 * mirror. The keeper steps the copy. A commit must never wait for more than copying one chunk in
 * memory, and the keeper must wait for no mirror.
 */
#include "resync.h"

#include "copy.h"
#include "pending_answers.h"
#include "newest_record.h"
#include "../core/broken_copy.h"
#include "../core/change_map.h"
#include "../core/unsent_granules.h"
#include "../core/mirror.h"
#include "../core/nowait.h"
#include "../core/pace.h"
#include "../core/quorum.h"
#include "resync_internal.h"
#include "resync_progress.h"
#include "rpc.h"
#include "stuck_quorum.h"
#include "../core/tx.h"
#include "../../proto/base/text.h"

#include <assert.h>
#include <string.h>

/* Commits wait while a chunk is copied in memory: 128 KiB take about 20 us. After each chunk the
 * copy leaves the lock to commits for a while, because mutexes are not fair. If a chunk brings a
 * commit slot, the slot lies behind it in the bounce buffer, at SLOT_AT. */
enum {
	CHUNK = 128 << 10,
	SMALL_CHUNK = 16 << 10, /* leaves most of a slow link to transactions */
	SLOT_AT = CHUNK,
	COMMIT_TURN_NS = 50000, /* pause after a chunk, for commits */
	CHUNKS_PER_STEP = 32,   /* copied before other work of the keeper */
};

static_assert(SLOT_AT + sizeof(struct ps_slot) <= PS_BOUNCE, "a chunk and a slot fit");

void ps_resync_forget_reply(struct ps_resync *r)
{
	perseas__reply__free_unpacked(r->saved_answer, NULL);
	r->saved_answer = NULL;
}

void ps_resync_end_copy(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;
	/* ps_resync_begin_copying() or ps_resync_begin_comparing() called ps_tx_observe_begin(). */
	const bool observes = r->state >= PS_RESYNC_COPYING || r->state == PS_RESYNC_COMPARING;

	ps_question_forget(&r->question);
	ps_resync_forget_reply(r);
	pthread_mutex_lock(&p->lock);
	if (r->state == PS_RESYNC_NONE)
		memset(r, 0, sizeof(*r));
	else
		ps_resync_move(p, PS_RESYNC_NONE);
	pthread_mutex_unlock(&p->lock);
	if (observes)
		ps_tx_observe_end(p);
}

void ps_resync_end_if_target(struct perseas *p, struct ps_mirror *m)
{
	if (p->upkeep.resync.target == m)
		ps_resync_end_copy(p);
}

/* --- which mirrors are asked --- */

uint32_t ps_resync_other_mirrors(struct perseas *p)
{
	uint32_t others;

	pthread_mutex_lock(&p->lock);
	others = ps_mirrors_with_whole_image(p) & ~ps_mirror_bit(p, p->upkeep.resync.target);
	pthread_mutex_unlock(&p->lock);
	return others;
}

bool ps_resync_is_confirmed(struct perseas *p)
{
	const struct ps_resync *r = &p->upkeep.resync;
	const uint32_t granted = r->question.granting_mirrors & ps_resync_other_mirrors(p);

	return ps_resync_is_settled_member(p) ? ps_quorum_can_remake_mirror(p, granted, r->target)
	                                      : ps_quorum_can_remake_joining_mirror(p, granted);
}

bool ps_resync_is_settled_member(const struct perseas *p)
{
	return ps_roster_member(p->roster, p->upkeep.resync.target->image_id) != NULL;
}

/* --- begin --- */

/* Returns true if the mirror's image already counted under this owner in this epoch. A consistent
 * image did if its slot has this epoch. A half-made copy has such a slot from its first chunk on,
 * even if no other mirror confirmed it, so it counts only if this owner knows that the same image
 * was whole before in this epoch. */
static bool did_image_count_in_epoch(const struct perseas *p, const struct ps_mirror *m,
                                     const Perseas__ClaimReply *claim)
{
	if (!claim)
		return false;
	if (claim->header->state == PERSEAS__STATE__STATE_CONSISTENT)
		return claim->slot && claim->slot->epoch == p->epoch;
	return ps_mirror_was_live(p, m, claim->header);
}

bool ps_resync_granted_image_would_count(struct perseas *p, const struct ps_mirror *m)
{
	bool would;

	pthread_mutex_lock(&p->lock);
	would = did_image_count_in_epoch(p, m, m->session.claim_reply->claim) ||
	        ps_image_would_count_after_copy(p, m);
	pthread_mutex_unlock(&p->lock);
	return would;
}

/* Says what is sent to the mirror, and why. Returns `text`. */
static const char *describe_copy(const struct ps_resync *r, char *text, size_t size)
{
	static const char *const what[] = {
		[PS_UNSENT_ALL] = "copied whole",
		[PS_UNSENT_CHANGED] = "sent what changed",
		[PS_UNSENT_REST] = "sent what is left of a copy that broke",
		[PS_UNSENT_DIFFERENT] = "sent what differs by digests",
		[PS_UNSENT_REPAIR] = "repaired",
	};

	const char *whole = r->whole_reason ? r->whole_reason->text : NULL;

	ps_text_format(text, size, "being %s: %s%s%s", what[r->unsent_base], r->copy_reason,
	               whole ? ", and " : "", whole ? whole : "");
	return text;
}

void ps_resync_begin_copying(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;
	struct ps_mirror *m = r->target;
	const Perseas__ClaimReply *claim = m->session.claim_reply ? m->session.claim_reply->claim
	                                                          : NULL;
	const Perseas__Slot *slot = claim ? claim->slot : NULL;
	char why[256];

	assert(claim || r->gets_new_image_id);
	ps_tx_observe_begin(p);
	pthread_mutex_lock(&p->lock);
	r->last_seq_at_begin = p->commit.seq;
	if (!r->gets_new_image_id && slot)
		ps_mirror_forget_unarrived_slots(p, m, slot->epoch);
	r->image_already_counted = !r->gets_new_image_id && did_image_count_in_epoch(p, m, claim);
	/* Updates which transaction is durable while what the mirror holds still counts. */
	ps_update_durable_seq(p);
	ps_mirror_note_position(m, r->is_in_place && slot ? slot->index : 0, p->commit.seq);
	ps_broken_copy_note_begin(p, m);
	ps_resync_progress_begin(p);
	ps_mirror_move_to_state(p, m, PERSEAS_MIRROR_RESYNCING, describe_copy(r, why, sizeof(why)));
	ps_resync_move(p, PS_RESYNC_COPYING);
	pthread_mutex_unlock(&p->lock);
}

/* --- chunks --- */

/* Moves r->segment_id and r->offset on to the next part that the mirror must be sent. Returns its
 * segment, or NULL if no part is left. */
static struct ps_segment *next_segment_to_copy(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;

	for (; r->next_segment_id < PS_SEGMENTS_MAX; r->next_segment_id++, r->next_offset = 0) {
		struct ps_segment *s = ps_segment_by_id(p, r->next_segment_id);

		if (!s || !s->born || s->born > r->last_seq_at_begin)
			continue;
		/* Elsewhere a granule was sent in part. */
		if (r->next_offset % PS_CHANGE_GRANULE == 0)
			r->next_offset = ps_unsent_next_part(r->target, s, r->next_offset);
		if (r->next_offset < s->size)
			return s;
	}
	return NULL;
}

struct ps_write ps_resync_make_slot_write(struct perseas *p, uint8_t *to)
{
	struct ps_slot *slot = (struct ps_slot *)(void *)to;

	ps_assert_locked(p);
	ps_slot_encode(slot, p->epoch, p->commit.seq, p->commit.next_position,
	               p->commit.last_position);
	return (struct ps_write){ slot, ps_slot_offset(!p->upkeep.resync.target->valid_slot),
		                  PS_REGION_LOG, sizeof(*slot) };
}

/* Posts a chunk of the segment, with a commit slot if the image has none of this owner yet. If
 * `segment` is NULL, posts only the slot. Caller holds p->lock. */
static void post_chunk(struct perseas *p, const struct ps_segment *segment, uint64_t length)
{
	struct ps_resync *r = &p->upkeep.resync;
	struct ps_mirror *m = r->target;
	uint8_t *bounce = ps_ring_bounce_buffer(&p->commit.ring);
	struct ps_write writes[2];
	const unsigned first = r->has_posted_first_chunk || p->commit.seq != r->last_seq_at_begin
	                               ? 0
	                               : ps_copy_make_terminator_write(p, writes);
	struct ps_chain chain = { writes, first + (length != 0), first, { NULL, 0, 0, 0 } };

	ps_assert_locked(p);
	writes[first] = (struct ps_write){ bounce, r->next_offset, 0, (uint32_t)length };
	if (segment) {
		writes[first].region = PS_REGION_SEGMENT + segment->id;
		if (segment->base) {
			ps_tx_copy_committed(p, segment, r->next_offset, bounce, length);
		} else {
			memcpy(bounce, r->saved_answer->read->bytes.data, length);
		}
	}
	/* The first chunk brings a slot, unless a transaction did. The image stays `joining` until
	 * the copy ends, so no open takes it for whole. */
	if (!r->has_posted_first_chunk && p->commit.seq == r->last_seq_at_begin)
		chain.slot = ps_resync_make_slot_write(p, bounce + SLOT_AT);
	if (ps_mirror_post_bulk(p, m, &chain))
		return;
	r->has_posted_first_chunk = true;
	r->sent_segment = r->next_segment_id;
	r->sent_from = r->next_offset;
	r->next_offset += length;
	r->sent_end = length ? r->next_offset : 0;
	ps_resync_progress_add(p, length);
	r->newest_seq_in_last_chunk = p->commit.seq;
	r->next_chunk_at = ps_now(p) + COMMIT_TURN_NS;
	if (p->options.resync_rate && length * 1000000000 / p->options.resync_rate > COMMIT_TURN_NS)
		r->next_chunk_at += length * 1000000000 / p->options.resync_rate - COMMIT_TURN_NS;
}

static uint64_t chunk_length(const struct perseas *p, const struct ps_segment *segment)
{
	const struct ps_resync *r = &p->upkeep.resync;

	return segment ? ps_unsent_part_end(r->target, segment, r->next_offset,
	                                    r->max_chunk_bytes) -
	                         r->next_offset
	               : 0;
}

void ps_resync_break_link(struct perseas *p, const char *why)
{
	struct ps_mirror *m = p->upkeep.resync.target;

	pthread_mutex_lock(&p->lock);
	if (m->state == PERSEAS_MIRROR_RESYNCING)
		ps_mirror_break_link(p, m, PS_LINK_BROKEN, why);
	pthread_mutex_unlock(&p->lock);
	p->env->ops->wake(p->env, PS_COMMITTER);
}

void ps_resync_restart(struct perseas *p, const char *why)
{
	ps_assert_admin(p);
	if (p->upkeep.resync.state >= PS_RESYNC_COPYING)
		ps_resync_break_link(p, why);
}

static void copy_chunk(struct perseas *p, const struct ps_segment *segment)
{
	pthread_mutex_lock(&p->lock);
	if (p->upkeep.resync.target->state == PERSEAS_MIRROR_RESYNCING)
		post_chunk(p, segment, chunk_length(p, segment));
	pthread_mutex_unlock(&p->lock);
}

/* --- reading from other mirrors --- */

bool ps_resync_read_from_other_mirror(struct perseas *p, uint32_t region, uint64_t offset,
                                      uint64_t length, uint64_t seq)
{
	Perseas__ReadRequest read = PERSEAS__READ_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(read, READ, &read);
	struct ps_resync *r = &p->upkeep.resync;
	uint32_t from;

	pthread_mutex_lock(&p->lock);
	from = ps_mirrors_with_whole_image(p) & ps_mirrors_holding(p, seq) &
	       ~r->mirrors_asked_to_read;
	pthread_mutex_unlock(&p->lock);
	read.store = p->store;
	read.region = r->read_region = region;
	read.offset = offset;
	read.length = r->requested_bytes = length;
	ps_resync_forget_reply(r);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		if (!(from >> i & 1))
			continue;
		r->mirrors_asked_to_read |= (uint32_t)1 << i;
		ps_question_ask(p, &r->question, (uint32_t)1 << i, &request);
		if (!r->question.unanswered_mirrors)
			continue;
		ps_resync_move(p, PS_RESYNC_READING);
		return true;
	}
	return false;
}

/* Reads the next chunk of an unmapped segment from another mirror. The segment is the same on every
 * whole mirror that holds the last transaction before it was unmapped. */
static void ask_for_chunk(struct perseas *p, const struct ps_segment *segment)
{
	struct ps_resync *r = &p->upkeep.resync;

	r->last_unmap_seq = segment->last_unmap_seq;
	if (!ps_resync_read_from_other_mirror(p, PS_REGION_SEGMENT + segment->id, r->next_offset,
	                                      chunk_length(p, segment), segment->last_unmap_seq))
		ps_resync_break_link(p,
		                     "no other mirror could be read for what is not mapped here");
}

/* Asks the next mirror for the bytes, after one did not give them. */
static void ask_next_mirror(struct perseas *p)
{
	if (ps_newest_record_is_next(&p->upkeep.resync))
		ps_newest_record_ask(p);
	else
		ask_for_chunk(p, next_segment_to_copy(p));
}

/* Checks the bytes that were read, and asks their mirror whether this owner's claim still stands.
 * Reading needs no claim, so the bytes may include transactions of the next owner. */
static bool step_reading(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;

	ps_pending_take_all_answers(p, ps_now(p));
	if (!ps_question_is_over(p, &r->question))
		return false;
	if (!r->question.granting_mirrors ||
	    r->question.last_granting_answer->read->bytes.len != r->requested_bytes) {
		ask_next_mirror(p);
		return true;
	}
	r->saved_answer = r->question.last_granting_answer;
	r->question.last_granting_answer = NULL;
	ps_question_ask_claim_confirmations(p, &r->question, r->question.granting_mirrors);
	ps_resync_move(p, PS_RESYNC_VOUCHING);
	return true;
}

/* Returns true if the segment was not mapped since its bytes were read from another mirror.
 * Otherwise transactions that the mirror already has may have changed it, and the bytes are
 * outdated. */
static bool stayed_unmapped_since_read(const struct perseas *p, const struct ps_segment *segment)
{
	return !segment->base && segment->last_unmap_seq == p->upkeep.resync.last_unmap_seq;
}

/* Sends the bytes that were read from another mirror while this owner's claim stood. */
static void send_chunk_read_from_other_mirror(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;
	const struct ps_segment *segment = next_segment_to_copy(p);

	if (stayed_unmapped_since_read(p, segment))
		copy_chunk(p, segment);
	r->mirrors_asked_to_read = 0;
	ps_question_forget(&r->question);
	ps_resync_forget_reply(r);
	ps_resync_move(p, PS_RESYNC_COPYING);
}

/* Sends the bytes that were read if their mirror confirmed this owner's claim. */
static bool step_vouching(struct perseas *p)
{
	const struct ps_resync *r = &p->upkeep.resync;

	ps_pending_take_all_answers(p, ps_now(p));
	if (!ps_question_is_over(p, &r->question))
		return false;
	if (!r->question.granting_mirrors)
		ask_next_mirror(p);
	else if (ps_newest_record_is_next(r))
		ps_newest_record_send(p);
	else
		send_chunk_read_from_other_mirror(p);
	return true;
}

/* --- steps --- */

enum chunk_progress { CHUNK_BROKEN, CHUNK_WAITS, CHUNK_READY };

/* Takes the last chunk, which the mirror has, out of the unsent granules. Caller holds p->lock. */
static void complete_chunk(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;

	ps_assert_locked(p);
	if (r->sent_end)
		ps_unsent_remove_sent_part(r->target, ps_segment_by_id(p, r->sent_segment),
		                           r->sent_from, r->sent_end, r->target->acked_seq);
	r->sent_end = 0;
}

/* Returns CHUNK_READY if the mirror has the previous chunk. After the `last` chunk it must also
 * have every transaction that the chunk may contain. */
static enum chunk_progress progress_of_chunk(struct perseas *p, bool last)
{
	const struct ps_mirror *m = p->upkeep.resync.target;
	enum chunk_progress now = CHUNK_BROKEN;

	pthread_mutex_lock(&p->lock);
	if (m->state == PERSEAS_MIRROR_RESYNCING && m->chains_in_flight)
		ps_mirrors_poll(p);
	if (m->state == PERSEAS_MIRROR_RESYNCING)
		now = m->completions_until_chunk ||
		                      (last &&
		                       m->acked_seq < p->upkeep.resync.newest_seq_in_last_chunk)
		              ? CHUNK_WAITS
		              : CHUNK_READY;
	if (now != CHUNK_BROKEN && !m->completions_until_chunk)
		complete_chunk(p);
	p->upkeep.resync.is_all_posted = last && now == CHUNK_WAITS;
	p->upkeep.resync.max_chunk_bytes = ps_pace_copy_lags(p, m) ? SMALL_CHUNK : CHUNK;
	pthread_mutex_unlock(&p->lock);
	return now;
}

/* Finds some more of what must be sent. Commits wait for microseconds meanwhile. */
static void find_some_more_unsent_granules(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;
	uint64_t bytes = 0;

	pthread_mutex_lock(&p->lock);
	if (r->target->state == PERSEAS_MIRROR_RESYNCING)
		r->is_comparison_done = !ps_unsent_add_changed(p, r->target, &bytes);
	r->total_bytes += bytes;
	pthread_mutex_unlock(&p->lock);
	if (!r->is_comparison_done)
		r->next_chunk_at = ps_now(p) + COMMIT_TURN_NS;
}

static bool step_copying(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;
	const struct ps_segment *segment;
	bool last;

	if (!r->is_comparison_done) {
		if (ps_now(p) < r->next_chunk_at)
			return false;
		find_some_more_unsent_granules(p);
		return r->is_comparison_done;
	}
	segment = next_segment_to_copy(p);
	last = !segment && r->has_posted_first_chunk;
	if (progress_of_chunk(p, last) != CHUNK_READY || ps_now(p) < r->next_chunk_at)
		return false;
	if (ps_newest_record_is_next(r) && ps_newest_record_ask(p))
		return true;
	/* Memory that must be fetched first cannot be touched under the lock. */
	r->is_fetching_chunk = segment && segment->base &&
	                       !ps_demand_request(p, segment, r->next_offset,
	                                          chunk_length(p, segment));
	if (!last) {
		if (segment && !segment->base)
			ask_for_chunk(p, segment);
		else if (r->is_fetching_chunk)
			return false;
		else
			copy_chunk(p, segment);
		return true;
	}
	return ps_resync_have_image_counted(p);
}

/* Returns true if the copy may be able to move on at once. */
static bool step_copy(struct perseas *p)
{
	switch (p->upkeep.resync.state) {
	case PS_RESYNC_COPYING:
		return step_copying(p);
	case PS_RESYNC_READING:
		return step_reading(p);
	case PS_RESYNC_VOUCHING:
		return step_vouching(p);
	case PS_RESYNC_CONFIRMING:
		return ps_resync_step_confirming(p);
	case PS_RESYNC_FINISHING:
		return ps_resync_step_finishing(p);
	default:
		return false;
	}
}

static bool is_copying(const struct perseas *p)
{
	return p->upkeep.resync.state >= PS_RESYNC_COPYING;
}

/* Returns true if the mirror's link broke, which can happen at any time. */
static bool is_link_broken(struct perseas *p)
{
	bool broken;

	pthread_mutex_lock(&p->lock);
	broken = p->upkeep.resync.target->state != PERSEAS_MIRROR_RESYNCING;
	pthread_mutex_unlock(&p->lock);
	return broken;
}

void ps_resync_step(struct perseas *p)
{
	ps_assert_admin(p);
	for (unsigned i = 0; is_copying(p) && i < CHUNKS_PER_STEP; i++) {
		if (is_link_broken(p))
			ps_resync_end_copy(p);
		else if (!step_copy(p))
			break;
	}
	if (is_copying(p) && is_link_broken(p))
		ps_resync_end_copy(p);
}

bool ps_resync_awaits_mirror(const struct perseas *p)
{
	const struct ps_resync *r = &p->upkeep.resync;

	return r->state == PS_RESYNC_MAKING_ROOM || r->state == PS_RESYNC_ADDING ||
	       (r->state == PS_RESYNC_COMPARING && r->requested_bytes);
}

bool ps_resync_is_attaching(const struct perseas *p, const struct ps_mirror *m)
{
	return p->upkeep.resync.target == m && p->upkeep.resync.state == PS_RESYNC_ATTACHING;
}

uint64_t ps_resync_due_at(const struct perseas *p)
{
	const struct ps_resync *r = &p->upkeep.resync;

	switch (r->state) {
	case PS_RESYNC_NONE:
	case PS_RESYNC_FINISHING: /* the answer, or the end of the session, wakes the keeper */
		return PS_NEVER;
	case PS_RESYNC_COMPARING:
		/* Memory that arrives wakes the keeper. */
		if (!r->requested_bytes)
			return r->is_fetching_chunk ? PS_NEVER : r->next_chunk_at;
		return ps_answer_extended_deadline(p, r->target, r->answer_by);
	case PS_RESYNC_MAKING_ROOM:
	case PS_RESYNC_ADDING:
		return ps_answer_extended_deadline(p, r->target, r->answer_by);
	case PS_RESYNC_ATTACHING:
		return r->target->attaching.deadline;
	case PS_RESYNC_COPYING:
		/* Completions wake the keeper, and so does memory that arrives. */
		return r->target->completions_until_chunk || r->is_all_posted ||
		                       r->is_fetching_chunk
		               ? PS_NEVER
		               : r->next_chunk_at;
	default:
		return r->question.deadline;
	}
}
