/*
 * resync.c - copies one mirror whole, a chunk at a time between transactions. session.c begins
 * it, and the keeper steps it. A commit must never wait for more than the copying of one chunk in
 * memory.
 */
#include "resync.h"

#include "../core/mirror.h"
#include "due.h"
#include "../core/quorum.h"
#include "rejoin.h"
#include "renew.h"
#include "roster.h"
#include "../core/tx.h"

#include <stdio.h>
#include <string.h>

/* A chunk is copied in memory while commits wait: 128 KiB are some 20 us. Its slot lies behind it.
 * After each of them commits have the lock to themselves for a while, since locks are not fair. */
enum {
	CHUNK = 128 << 10,
	SLOT_AT = CHUNK,
	GIVE_WAY = 50000,   /* ns */
	CHUNKS_A_STEP = 32, /* then other work of the keeper has its turn */
};

static_assert(SLOT_AT + sizeof(struct ps_slot) <= PS_BOUNCE, "a chunk and a slot fit");

static bool are_enough_anew(struct perseas *p, uint32_t granted, const void *but)
{
	return ps_quorum_anew(p, granted, but);
}

/* The others that are connected and whole, asked just now whether they are still this owner's: as
 * many of them as are there before one that hangs would have to be waited for. */
static uint32_t confirmed_others(struct perseas *p, const struct ps_mirror *but)
{
	uint32_t others;

	pthread_mutex_lock(&p->lock);
	others = ps_mirrors_whole(p) & ~ps_bit(p, but);
	pthread_mutex_unlock(&p->lock);
	return ps_confirmed_enough(p, others, are_enough_anew, but);
}

/* Does the roster that counts list it? Where only the one that is to be does, nobody can commit
 * through it alone, and before that one is settled enough of the old are asked again (change.c). */
static bool is_settled(const struct perseas *p, const struct ps_mirror *m)
{
	return ps_roster_member(p->roster, m->image_id) != NULL;
}

/* I9: its promises are lost with its memory. */
static int make_anew(struct perseas *p, struct ps_mirror *m, struct ps_error *error)
{
	uint8_t image_id[PS_ID_SIZE];
	uint32_t others;

	p->env->ops->random(p->env, image_id, sizeof(image_id));
	if (!is_settled(p, m)) {
		ps_roster_replace(p, m, image_id);
		return 0;
	}
	others = confirmed_others(p, m);
	if (!ps_quorum_anew(p, others, m))
		return ps_error_set(error, PERSEAS_EQUORUM,
		                    "it lost its image, and too few other mirrors are live to make "
		                    "it anew");
	if (!ps_roster_rename(p, m, image_id, others, ps_bit(p, m)))
		return ps_error_set(error, PERSEAS_EQUORUM,
		                    "too few mirrors recorded that it is made anew");
	return 0;
}

/* Has the image the regions that the store has now? */
static bool same_regions(struct perseas *p, const Perseas__Header *header)
{
	unsigned published = 0;

	for (unsigned i = 0; i < p->segment_count; i++)
		published += p->segments[i].born != 0;
	if (header->log_size != p->log_size || header->n_segments != published)
		return false;
	for (size_t i = 0; i < header->n_segments; i++) {
		const Perseas__Segment *theirs = header->segments[i];
		const struct ps_segment *ours = ps_segment_by_id(p, theirs->id);

		if (!ours || ours->born != theirs->born || ours->size != theirs->size)
			return false;
	}
	return true;
}

/* May it be copied in place? Not while an acknowledged transaction needs what is there (I8): W
 * others must hold as much as it does. What it has of another owner, they all have. */
static bool in_place(struct perseas *p, const struct ps_mirror *m, const Perseas__ClaimReply *claim)
{
	const Perseas__Slot *slot = claim->slot;
	const uint64_t seq = slot && slot->epoch == p->epoch ? slot->seq : 0;
	bool enough;

	if (!same_regions(p, claim->header))
		return false;
	if (claim->header->state == PERSEAS__STATE__STATE_JOINING)
		return true;
	pthread_mutex_lock(&p->lock);
	enough = ps_quorum_acks(p,
	                        ps_mirrors_whole(p) & ps_mirrors_holding(p, seq) & ~ps_bit(p, m));
	pthread_mutex_unlock(&p->lock);
	return enough;
}

static int make_room(struct perseas *p, struct ps_mirror *m, const Perseas__ClaimReply *claim,
                     bool anew, unsigned *slot, struct ps_error *error)
{
	int rc = anew ? make_anew(p, m, error) : 0;

	if (rc)
		return rc;
	*slot = 0;
	if (!anew && in_place(p, m, claim)) {
		*slot = claim->slot ? claim->slot->index : 0;
		rc = ps_rejoin_in_place(p, m, true, error);
	} else {
		rc = ps_rejoin_beside(p, m, error);
	}
	return rc ? rc : ps_rejoin_unpublished(p, m, error);
}

/*
 * Did its image count under this owner already? A whole one with a slot of this epoch did. One that
 * a copy left half made bears such a slot, too, from its first chunk, although nobody may have been
 * asked about it: so it did only where this owner knows that this very image was whole before, in
 * this epoch.
 */
static bool was_ours(const struct perseas *p, const struct ps_mirror *m,
                     const Perseas__ClaimReply *claim)
{
	if (claim->header->state == PERSEAS__STATE__STATE_CONSISTENT)
		return claim->slot && claim->slot->epoch == p->epoch;
	return m->ours == p->epoch && ps_id_equal(claim->header->image_id, m->ours_id);
}

int ps_resync_begin(struct perseas *p, struct ps_mirror *m, const Perseas__ClaimReply *claim,
                    bool anew, const char *why, struct ps_error *error)
{
	struct ps_resync *r = &p->resync;
	char text[sizeof(m->trouble)];
	unsigned slot;
	int rc;

	ps_assert_admin(p);
	rc = make_room(p, m, claim, anew, &slot, error);
	if (rc)
		return rc;
	ps_tx_take_care(p);
	pthread_mutex_lock(&p->lock);
	memset(r, 0, sizeof(*r));
	r->mirror = m;
	r->seq = p->seq;
	if (!anew && claim->slot)
		ps_renew_saw(p, m, claim->slot->epoch);
	r->ours = !anew && was_ours(p, m, claim);
	for (unsigned i = 0; i < p->segment_count; i++)
		r->total += p->segments[i].born ? p->segments[i].size : 0;
	ps_mirror_stands(m, slot, p->seq);
	/* What stands behind the reason is that it waits. */
	snprintf(text, sizeof(text), "being copied whole: %.*s", (int)strcspn(why, ";"), why);
	ps_mirror_move(p, m, PERSEAS_MIRROR_RESYNCING, text);
	pthread_mutex_unlock(&p->lock);
	return 0;
}

/* The segment with the lowest id from r->segment on that is to be copied, or NULL. */
static struct ps_segment *next_segment(struct perseas *p)
{
	struct ps_resync *r = &p->resync;

	for (; r->segment < PS_SEGMENTS_MAX; r->segment++, r->offset = 0) {
		struct ps_segment *s = ps_segment_by_id(p, r->segment);

		if (s && s->born && s->born <= r->seq && r->offset < s->size)
			return s;
	}
	return NULL;
}

/* What this process has not mapped is the same on every whole mirror that holds the last
 * transaction from when it was. */
static int read_elsewhere(struct perseas *p, const struct ps_segment *segment, uint64_t length)
{
	Perseas__ReadRequest read = PERSEAS__READ_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	uint32_t whole;

	pthread_mutex_lock(&p->lock);
	whole = ps_mirrors_whole(p) & ps_mirrors_holding(p, segment->left);
	pthread_mutex_unlock(&p->lock);
	read.store = p->store;
	read.region = PS_REGION_SEGMENT + segment->id;
	read.offset = p->resync.offset;
	read.length = length;
	request.body_case = PERSEAS__REQUEST__BODY_READ;
	request.read = &read;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_error error;
		Perseas__Reply *reply;
		bool got;

		if (!(whole >> i & 1) || ps_silent(p, &p->mirrors[i]) ||
		    ps_ask(p, &p->mirrors[i], &request, ps_answer_by(p), &reply, NULL, &error))
			continue;
		got = reply->read->bytes.len == length;
		if (got)
			memcpy(ps_ring_bounce(&p->ring), reply->read->bytes.data, length);
		perseas__reply__free_unpacked(reply, NULL);
		/* Anybody may read: the next owner's transactions can be there, unless the claim
		 * still stands. */
		if (got && ps_confirmed(p, ps_bit(p, &p->mirrors[i])))
			return 0;
	}
	return -1;
}

static void post_chunk(struct perseas *p, const struct ps_segment *segment, uint64_t length)
{
	struct ps_resync *r = &p->resync;
	struct ps_mirror *m = r->mirror;
	uint8_t *bounce = ps_ring_bounce(&p->ring);
	struct ps_slot *slot = (struct ps_slot *)(bounce + SLOT_AT);
	struct ps_write write = { bounce, r->offset, 0, (uint32_t)length };
	struct ps_chain chain = { &write, length != 0, 0, { NULL, 0, 0, 0 } };

	if (segment) {
		write.region = PS_REGION_SEGMENT + segment->id;
		if (segment->base) {
			memcpy(bounce, segment->base + r->offset, length);
			ps_tx_committed(p, segment, r->offset, bounce, length);
		}
	}
	/* The image gets a slot of this owner's, unless a transaction brings one; nobody takes it
	 * for whole before the end. */
	if (!r->begun && p->seq == r->seq) {
		ps_slot_encode(slot, p->epoch, p->seq, p->next, p->last);
		chain.slot = (struct ps_write){ slot, ps_slot_offset(!m->slot), PS_REGION_LOG,
			                        sizeof(*slot) };
	}
	if (ps_mirror_bulk(p, m, &chain))
		return;
	r->begun = true;
	r->offset += length;
	r->done += length;
	r->until = p->seq;
	r->next_at = ps_now(p) + GIVE_WAY;
	if (p->options.resync_rate && length * 1000000000 / p->options.resync_rate > GIVE_WAY)
		r->next_at += length * 1000000000 / p->options.resync_rate - GIVE_WAY;
}

static void end(struct perseas *p)
{
	memset(&p->resync, 0, sizeof(p->resync));
	ps_tx_careless(p);
}

/*
 * Is this owner still the one, elsewhere? A mirror that forgot its promises, and one that this
 * owner claims after its open, would let one that is fenced commit through it (I9): so it must not
 * vote before enough others were asked since. What was adopted by this very owner needs no asking.
 */
static int confirm(struct perseas *p, struct ps_error *error)
{
	struct ps_mirror *m = p->resync.mirror;

	if (p->resync.ours || !is_settled(p, m) || ps_quorum_anew(p, confirmed_others(p, m), m))
		return 0;
	return ps_error_set(error, PERSEAS_EQUORUM,
	                    "too few other mirrors confirmed that it may be copied to");
}

/* All chunks are there, so the image is as whole as any: a prefix up to its slot. */
static void finish(struct perseas *p)
{
	struct ps_mirror *m = p->resync.mirror;
	struct ps_error error = { 0 };
	int rc = confirm(p, &error);

	if (!rc)
		rc = ps_rejoin_finish(p, m, &error);

	pthread_mutex_lock(&p->lock);
	if (m->state == PERSEAS_MIRROR_RESYNCING && rc) {
		ps_mirror_break(p, m, PS_LINK_BROKEN, error.text);
	} else if (m->state == PERSEAS_MIRROR_RESYNCING) {
		p->stat.resyncs++;
		ps_mirror_move(p, m, PERSEAS_MIRROR_LIVE, "");
		ps_mirrors_settle_doubt(p);
	}
	pthread_mutex_unlock(&p->lock);
	p->env->ops->wake(p->env, PS_COMMITTER);
}

static void copy_next(struct perseas *p, const struct ps_segment *segment)
{
	struct ps_mirror *m = p->resync.mirror;
	uint64_t length = segment ? segment->size - p->resync.offset : 0;

	if (length > CHUNK)
		length = CHUNK;
	if (segment && !segment->base && read_elsewhere(p, segment, length)) {
		pthread_mutex_lock(&p->lock);
		if (m->state == PERSEAS_MIRROR_RESYNCING)
			ps_mirror_break(p, m, PS_LINK_BROKEN,
			                "no other mirror could be read to copy it");
		pthread_mutex_unlock(&p->lock);
		return;
	}
	pthread_mutex_lock(&p->lock);
	if (m->state == PERSEAS_MIRROR_RESYNCING)
		post_chunk(p, segment, length);
	pthread_mutex_unlock(&p->lock);
}

enum stage { BROKEN, WAITS, READY };

/* Has the chunk before arrived, and, after the last one, every transaction that it may hold? */
static enum stage stage(struct perseas *p, bool last)
{
	const struct ps_mirror *m = p->resync.mirror;
	enum stage now = BROKEN;

	pthread_mutex_lock(&p->lock);
	if (m->state == PERSEAS_MIRROR_RESYNCING && m->outstanding)
		ps_mirrors_poll(p);
	if (m->state == PERSEAS_MIRROR_RESYNCING)
		now = m->bulk || (last && m->acked < p->resync.until) ? WAITS : READY;
	p->resync.awaited = last && now == WAITS;
	pthread_mutex_unlock(&p->lock);
	return now;
}

void ps_resync_step(struct perseas *p)
{
	struct ps_resync *r = &p->resync;

	ps_assert_admin(p);
	for (unsigned i = 0; r->mirror && i < CHUNKS_A_STEP; i++) {
		const struct ps_segment *segment = next_segment(p);
		const bool last = !segment && r->begun;
		const enum stage now = stage(p, last);

		if (now == WAITS || (now == READY && ps_now(p) < r->next_at))
			return;
		if (now == READY && !last) {
			copy_next(p, segment);
			continue;
		}
		if (now == READY)
			finish(p);
		end(p);
	}
}

uint64_t ps_resync_due(const struct perseas *p)
{
	const struct ps_resync *r = &p->resync;

	/* Completions wake the keeper. */
	if (!r->mirror || r->mirror->bulk || r->awaited)
		return PS_NEVER;
	return r->next_at;
}

void ps_resync_progress(const struct perseas *p, const struct ps_mirror *m, uint64_t *done,
                        uint64_t *total)
{
	const bool going = p->resync.mirror == m && m->state == PERSEAS_MIRROR_RESYNCING;

	*done = going ? p->resync.done : 0;
	*total = going ? p->resync.total : 0;
}
