/*
 * resync_compare.c - compares a mirror's image with the store by keyed digests of granules, before
 * the image is overwritten in place: a mirror whose image another owner wrote is sent only what
 * differs. resync_prepare.c calls this (PROTOCOL.md, "Digests").
 *
 * The image stands still meanwhile: the mirror granted this owner's claim, and nothing is posted to
 * it. The store does not stand still. What transactions change from before the key was drawn on is
 * due in any case (unsent_granules.h), so the digests compare what was fixed before.
 *
 * Memory here is copied with all that is not committed taken back, and the copy is hashed. What is
 * missing is fetched first. What is not mapped here is not compared, and stays due.
 */
#include "resync_internal.h"

#include "../core/demand.h"
#include "../core/unsent_granules.h"
#include "../core/mirror.h"
#include "../core/tx.h"
#include "pending_answers.h"
#include "rpc.h"
#include "../../proto/base/text.h"

#include <assert.h>
#include <string.h>

enum { DIGEST_VERSION = 9 /* first version that gives digests with a key */ };

#define PIECE ((uint64_t)PS_DIGESTS_MAX * PS_GRANULE)

static_assert((uint64_t)PS_GRANULE <= PS_BOUNCE, "the buffer takes a granule");

const struct ps_whole_reason *ps_resync_reason_not_to_compare(const struct perseas *p,
                                                              const struct ps_mirror *m)
{
	static const struct ps_whole_reason version = {
		"version",
		"its daemon's version gives no digests",
	};
	static const struct ps_whole_reason cipher = {
		"no-poly1305",
		"the OpenSSL of this process has no Poly1305",
	};
	const uint8_t key[PS_DIGEST_KEY] = { 0 };
	uint8_t none;

	if (!ps_mirror_has_version(p, m, DIGEST_VERSION))
		return &version;
	return ps_keyed_digests(key, &none, 0, PS_GRANULE, &none) ? NULL : &cipher;
}

void ps_resync_begin_comparing(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;
	char why[256];

	p->env->ops->random(p->env, r->digest_key, sizeof(r->digest_key));
	ps_text_format(why, sizeof(why), "being compared by digests: %s", r->copy_reason);
	ps_tx_observe_begin(p);
	pthread_mutex_lock(&p->lock);
	ps_mirror_move_to_state(p, r->target, PERSEAS_MIRROR_STALE, why);
	pthread_mutex_unlock(&p->lock);
	ps_resync_move(p, PS_RESYNC_COMPARING);
}

const struct ps_segment *ps_next_mapped_segment(struct perseas *p, uint32_t *id, uint64_t *offset)
{
	for (; *id < PS_SEGMENTS_MAX; ++*id, *offset = 0) {
		const struct ps_segment *s = ps_segment_by_id(p, *id);

		if (s && s->born && s->base && *offset < s->size)
			return s;
	}
	return NULL;
}

static uint64_t digest_piece_length(const struct perseas *p, const struct ps_segment *segment)
{
	const uint64_t rest = segment->size - p->upkeep.resync.next_offset;

	return rest < PIECE ? rest : PIECE;
}

/* Returns the bytes of the granule at `at` of a piece. */
static uint64_t granule_length(uint64_t length, uint64_t at)
{
	return length - at < PS_GRANULE ? length - at : PS_GRANULE;
}

bool ps_digest_committed(struct perseas *p, const struct ps_segment *segment, uint64_t offset,
                         uint64_t length, const uint8_t *key, uint8_t *digests)
{
	uint8_t *copy = ps_ring_bounce_buffer(&p->commit.ring);

	ps_assert_admin(p);
	for (uint64_t at = 0; at < length; at += PS_GRANULE, digests += PS_DIGEST) {
		const uint64_t size = granule_length(length, at);

		pthread_mutex_lock(&p->lock);
		ps_tx_copy_committed(p, segment, offset + at, copy, size);
		pthread_mutex_unlock(&p->lock);
		if (!ps_keyed_digests(key, copy, size, PS_GRANULE, digests))
			return false;
	}
	return true;
}

/* Asks the mirror for the digests of the next piece, and computes them here meanwhile. Returns 0,
 * or an error code. */
static int ask_for_digests(struct perseas *p, const struct ps_segment *segment,
                           struct ps_error *error)
{
	Perseas__DigestRequest ask = PERSEAS__DIGEST_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(digest, DIGEST, &ask);
	struct ps_resync *r = &p->upkeep.resync;
	const uint64_t length = digest_piece_length(p, segment), rate = p->options.resync_rate;
	int rc;

	r->is_fetching_chunk = !ps_demand_request(p, segment, r->next_offset, length);
	if (r->is_fetching_chunk || ps_now(p) < r->next_chunk_at)
		return 0;
	ask.store = p->store;
	ask.region = PS_REGION_SEGMENT + segment->id;
	ask.offset = r->next_offset;
	ask.length = r->requested_bytes = length;
	ask.key = (ProtobufCBinaryData){ sizeof(r->digest_key), r->digest_key };
	r->answer_by = ps_answer_deadline(p);
	r->next_chunk_at = ps_now(p) + (rate ? length * 1000000000 / rate : 0);
	rc = p->env->ops->send(r->target->control, &request, error);
	if (!rc &&
	    !ps_digest_committed(p, segment, r->next_offset, length, r->digest_key, r->digests))
		rc = ps_error_set(error, PERSEAS_ENOMEM, "no memory to compare it");
	return rc;
}

/* Takes the granules whose digests are equal out of the set of those that are due. */
static int compare_digests(struct perseas *p, const struct ps_segment *segment,
                           const ProtobufCBinaryData *theirs, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;
	const uint8_t *digest = r->digests;
	const uint8_t *other = theirs->data;

	if (theirs->len != (r->requested_bytes + PS_GRANULE - 1) / PS_GRANULE * PS_DIGEST)
		return ps_error_set(error, PERSEAS_EPROTOCOL,
		                    "it gave digests of something else than it was asked for");
	for (uint64_t at = 0; at < r->requested_bytes; at += PS_GRANULE) {
		const uint64_t from = r->next_offset + at;

		if (memcmp(digest, other, PS_DIGEST) == 0)
			ps_unsent_remove_sent_part(r->target, segment, from,
			                           from + granule_length(r->requested_bytes, at),
			                           0);
		digest += PS_DIGEST;
		other += PS_DIGEST;
	}
	r->next_offset += r->requested_bytes;
	r->requested_bytes = 0;
	return 0;
}

/* Ends the comparison. Returns 1. */
static int end_comparing(struct ps_resync *r)
{
	r->next_segment_id = 0;
	r->next_offset = r->requested_bytes = 0;
	r->next_chunk_at = 0;
	return 1;
}

/* Has everything be due, because the mirror gave no digests. Returns 1, or an error code. */
static int mark_all_bytes_due(struct perseas *p, struct ps_error *error)
{
	static const struct ps_whole_reason refused = { "refused", "it refused to give digests" };
	struct ps_resync *r = &p->upkeep.resync;
	const Perseas__ClaimReply *claim = r->target->session.claim_reply->claim;

	r->unsent_base = PS_UNSENT_ALL;
	r->whole_reason = &refused;
	if (ps_unsent_make_set(p, r->target, PS_UNSENT_ALL, claim,
	                       r->gets_new_image_id ? r->new_image_id
	                                            : claim->header->image_id.data))
		return ps_error_set(error, PERSEAS_ENOMEM,
		                    "no memory to note what it must be sent");
	return end_comparing(r);
}

int ps_resync_step_comparing(struct perseas *p, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;
	const struct ps_segment *segment;
	Perseas__Reply *reply;
	int rc;

	ps_assert_admin(p);
	if (!r->requested_bytes) {
		segment = ps_next_mapped_segment(p, &r->next_segment_id, &r->next_offset);
		return segment ? ask_for_digests(p, segment, error) : end_comparing(r);
	}
	rc = ps_resync_take_answer(p, &reply, NULL, error);
	if (rc == 0 || rc == PERSEAS_EUNREACHABLE)
		return rc;
	if (rc < 0)
		return mark_all_bytes_due(p, error);
	/* The segment may have been unmapped since its digests were computed, and is the same. */
	segment = ps_segment_by_id(p, r->next_segment_id);
	rc = compare_digests(p, segment, &reply->digest->digests, error);
	perseas__reply__free_unpacked(reply, NULL);
	return rc;
}
