/*
 * repair.c - see repair.h. Nothing may be sent that W other mirrors do not confirm: if somebody
 * stored without set_range, the memory here is what is wrong.
 */
#include "repair.h"

#include "operator_orders.h"
#include "pending_answers.h"
#include "resync_internal.h"
#include "rpc.h"
#include "../core/change_map.h"
#include "../core/demand.h"
#include "../core/unsent_granules.h"
#include "../core/mirror.h"
#include "../core/quorum.h"
#include "../core/tx.h"
#include "../../proto/base/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum { TRIES = 32 }; /* times that a granule which changes is compared */

#define PATIENCE ps_ms(10000) /* for a mirror to come back, so that its copy begins */

/* --- the result --- */

/* Forgets which granules are wrong at mirrors that the repair has not begun to copy to. */
static void forget_wrong_granules(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (ps_unsent_has_wrong_granules(m) && m != p->upkeep.repair.target &&
		    m != p->upkeep.resync.target)
			ps_unsent_free(m);
	}
}

/* Ends the repair with a code and a sentence for people. */
__attribute__((format(printf, 3, 4))) static void end_repair(struct perseas *p, int code,
                                                             const char *format, ...)
{
	struct ps_repair *r = &p->upkeep.repair;
	struct ps_order_result *result = ps_orders_find_or_make_result(p, r->order_id);
	va_list args;

	va_start(args, format);
	ps_text_vformat(result->text, sizeof(result->text), format, args);
	va_end(args);
	result->is_done = true;
	result->code = code;
	forget_wrong_granules(p);
	memset(r, 0, sizeof(*r));
}

static bool has_unmapped_segments(const struct perseas *p)
{
	for (unsigned i = 0; i < p->segment_count; i++)
		if (p->segments[i].born && !p->segments[i].base)
			return true;
	return false;
}

static void end_repair_successfully(struct perseas *p)
{
	const struct ps_repair *r = &p->upkeep.repair;
	char done[80] = "no mirror differs from the owner", unsettled[80] = "";

	if (r->wrong_granule_count)
		ps_text_format(done, sizeof(done),
		               "repaired %" PRIu64 " piece%s of 64 KiB on %u mirror%s",
		               r->wrong_granule_count, r->wrong_granule_count == 1 ? "" : "s",
		               r->repaired_mirror_count, r->repaired_mirror_count == 1 ? "" : "s");
	if (r->unsettled_granule_count)
		ps_text_format(unsettled, sizeof(unsettled),
		               "; changing too often to be compared: %" PRIu64,
		               r->unsettled_granule_count);
	end_repair(p, 0, "%s%s%s", done, unsettled,
	           has_unmapped_segments(p)
	                   ? "; the owner has not mapped all segments, and compared the others"
	                   : "");
}

/* Ends the repair if the segments are not those with which it began: the sets of wrong granules are
 * those of other segments. Returns true if it ended. */
static bool end_if_segments_changed(struct perseas *p)
{
	if (p->upkeep.repair.publish_generation == p->upkeep.publish_generation)
		return false;
	end_repair(p, PERSEAS_EBUSY,
	           "segments were published or destroyed meanwhile: repeat the repair");
	return true;
}

/* Ends the repair if the set is not W mirrors. Returns true if it ended. */
static bool end_repair_without_w(struct perseas *p, uint32_t set)
{
	if (ps_quorum_is_w(p, set))
		return false;
	end_repair(p, PERSEAS_EQUORUM,
	           "fewer than W mirrors are live and give digests: start the others, and repeat");
	return true;
}

/* --- comparing --- */

/* Takes the digests of one mirror, and notes in which granules it agrees. */
static void take_digests(struct perseas *p, struct ps_mirror *m,
                         const struct ps_pending_answer *pending, Perseas__Reply **reply,
                         const struct ps_error *why)
{
	struct ps_repair *r = pending->arg;
	const unsigned count = (unsigned)((r->piece_bytes + PS_GRANULE - 1) / PS_GRANULE);
	const Perseas__DigestReply *theirs;

	(void)why;
	if (pending->ticket != r->question_id)
		return;
	r->unanswered_mirrors &= ~ps_mirror_bit(p, m);
	if (!*reply || (*reply)->status != PERSEAS__STATUS__STATUS_OK)
		return;
	theirs = (*reply)->digest;
	if (theirs->digests.len != (size_t)count * PS_DIGEST)
		return;
	r->answering_mirrors |= ps_mirror_bit(p, m);
	for (size_t i = 0; i < count; i++)
		if (!memcmp(r->digests + i * PS_DIGEST, theirs->digests.data + i * PS_DIGEST,
		            PS_DIGEST))
			r->agreeing_mirrors[i] |= ps_mirror_bit(p, m);
}

/* Returns the mirrors that can be compared, and sets *seq to a transaction that all of them
 * hold. */
static uint32_t comparable_mirrors(struct perseas *p, uint64_t *seq)
{
	uint32_t set = 0;

	pthread_mutex_lock(&p->lock);
	*seq = p->commit.seq;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (m->state != PERSEAS_MIRROR_LIVE || ps_resync_reason_not_to_compare(p, m))
			continue;
		set |= ps_mirror_bit(p, m);
		*seq = m->acked_seq < *seq ? m->acked_seq : *seq;
	}
	pthread_mutex_unlock(&p->lock);
	return set;
}

/* Asks the mirrors of `set` for digests of the piece, with a key that is drawn now. */
static void ask_for_piece_digests(struct perseas *p, const struct ps_segment *segment, uint32_t set,
                                  const uint8_t *key)
{
	struct ps_repair *r = &p->upkeep.repair;
	const struct ps_pending_answer pending = { take_digests, r, ++p->upkeep.last_question_id };
	Perseas__DigestRequest ask = PERSEAS__DIGEST_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(digest, DIGEST, &ask);

	ask.store = p->store;
	ask.region = PS_REGION_SEGMENT + segment->id;
	ask.offset = r->piece_offset;
	ask.length = r->piece_bytes;
	ask.key = (ProtobufCBinaryData){ PS_DIGEST_KEY, (uint8_t *)(uintptr_t)key };
	r->question_id = pending.ticket;
	r->unanswered_mirrors = r->answering_mirrors = 0;
	memset(r->agreeing_mirrors, 0, sizeof(r->agreeing_mirrors));
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (set >> i & 1 && ps_pending_send_request(p, &p->mirrors[i], &request, pending))
			r->unanswered_mirrors |= (uint32_t)1 << i;
}

/* Asks all live mirrors about the piece, and computes its digests here. */
static void ask_about_piece(struct perseas *p, const struct ps_segment *segment, uint64_t length)
{
	struct ps_repair *r = &p->upkeep.repair;
	const uint64_t rate = p->options.resync_rate;
	const uint32_t set = comparable_mirrors(p, &r->common_seq);
	uint8_t key[PS_DIGEST_KEY];
	bool computed;

	if (end_repair_without_w(p, set) || r->common_seq < segment->born)
		return;
	r->piece_bytes = length;
	r->next_piece_at = ps_now(p) + (rate ? length * 1000000000 / rate : 0);
	p->env->ops->random(p->env, key, sizeof(key));
	ask_for_piece_digests(p, segment, set, key);
	ps_tx_observe_begin(p);
	computed = ps_digest_committed(p, segment, r->piece_offset, length, key, r->digests);
	ps_tx_observe_end(p);
	if (!computed)
		end_repair(p, PERSEAS_ENOMEM, "the owner has no memory to compare its mirrors");
}

/* Asks about the next piece, unless it must wait, or ends the comparison. A copy that is under way
 * uses the buffer that the digests need. */
static void ask_about_next_piece(struct perseas *p)
{
	struct ps_repair *r = &p->upkeep.repair;
	const struct ps_segment *segment = ps_next_mapped_segment(p, &r->piece_segment_id,
	                                                          &r->piece_offset);
	struct ps_order_result *result = ps_orders_find_or_make_result(p, r->order_id);
	uint64_t length = (uint64_t)r->max_granules * PS_GRANULE;

	if (!segment) {
		r->state = PS_REPAIR_SENDING;
		return;
	}
	if (length > segment->size - r->piece_offset)
		length = segment->size - r->piece_offset;
	ps_text_format(result->text, sizeof(result->text),
	               "compares its memory with its mirrors: segment '%s', %" PRIu64 "%%",
	               segment->name, r->piece_offset / (segment->size / 100 + 1));
	if (!p->upkeep.resync.target && ps_now(p) >= r->next_piece_at &&
	    ps_demand_request(p, segment, r->piece_offset, length))
		ask_about_piece(p, segment, length);
}

/* Returns how many bytes of the piece did not change since the mirrors were asked: each that was
 * asked held all transactions that changed these. */
static uint64_t piece_bytes_unchanged_since_asked(struct perseas *p)
{
	const struct ps_repair *r = &p->upkeep.repair;
	uint64_t at = 0;

	pthread_mutex_lock(&p->lock);
	while (at < r->piece_bytes &&
	       ps_change_map_last_seq(p, r->piece_segment_id,
	                              (r->piece_offset + at) >> PS_CHANGE_SHIFT) <= r->common_seq)
		at += PS_GRANULE;
	pthread_mutex_unlock(&p->lock);
	return at < r->piece_bytes ? at : r->piece_bytes;
}

/* Notes at which mirrors a granule of the piece is wrong. Ends the repair if W mirrors do not
 * confirm what is here. */
static void judge_granule(struct perseas *p, const struct ps_segment *segment, unsigned i)
{
	struct ps_repair *r = &p->upkeep.repair;
	const uint32_t agreeing = r->agreeing_mirrors[i], wrong = r->answering_mirrors & ~agreeing;
	const uint64_t offset = r->piece_offset + (uint64_t)i * PS_GRANULE;
	bool noted = true;

	if (!wrong)
		return;
	if (!ps_quorum_is_w(p, agreeing)) {
		end_repair(
			p, agreeing ? PERSEAS_EQUORUM : PERSEAS_EDAMAGED,
			agreeing ? "nothing was changed: fewer than W mirrors agree with the "
				   "owner's memory in the 64 KiB at offset %" PRIu64
				   " of segment '%s'"
				 : "nothing was changed: no mirror agrees with the owner's memory "
				   "in the 64 KiB at offset %" PRIu64 " of segment '%s'. "
				   "Its process stored there without perseas_set_range: restart "
				   "it, and repeat",
			offset, segment->name);
		return;
	}
	for (unsigned k = 0; k < p->mirror_count && noted; k++)
		noted = !(wrong >> k & 1) ||
		        !ps_unsent_add_wrong_granule(p, &p->mirrors[k], segment, offset);
	r->wrong_granule_count++;
	if (!noted)
		end_repair(p, PERSEAS_ENOMEM, "the owner has no memory to repair its mirrors");
}

/* Moves on behind the first `unchanged_bytes` bytes of the piece. A granule that changes is
 * compared again, alone, because that takes the least time. */
static void move_to_next_piece(struct ps_repair *r, uint64_t unchanged_bytes)
{
	if (unchanged_bytes == r->piece_bytes)
		r->max_granules = r->max_granules < PS_DIGESTS_MAX / 4 ? 4 * r->max_granules
		                                                       : PS_DIGESTS_MAX;
	else
		r->max_granules = 1;
	r->first_granule_retry_count = unchanged_bytes ? 0 : r->first_granule_retry_count + 1;
	if (r->first_granule_retry_count == TRIES) {
		r->unsettled_granule_count++;
		r->first_granule_retry_count = 0;
		unchanged_bytes = PS_GRANULE;
	}
	r->piece_offset += unchanged_bytes;
	r->piece_bytes = 0;
}

/* Judges the part of the piece that did not change until all answers had come. */
static void judge_piece(struct perseas *p)
{
	struct ps_repair *r = &p->upkeep.repair;
	const struct ps_segment *segment = ps_segment_by_id(p, r->piece_segment_id);
	const uint64_t unchanged_bytes = piece_bytes_unchanged_since_asked(p);

	if (end_repair_without_w(p, r->answering_mirrors))
		return;
	for (unsigned i = 0; i * (uint64_t)PS_GRANULE < unchanged_bytes; i++) {
		judge_granule(p, segment, i);
		if (r->state != PS_REPAIR_COMPARING)
			return;
	}
	move_to_next_piece(r, unchanged_bytes);
}

static void step_comparing_mirrors(struct perseas *p)
{
	struct ps_repair *r = &p->upkeep.repair;

	if (end_if_segments_changed(p) || (r->piece_bytes && r->unanswered_mirrors))
		return;
	if (r->piece_bytes)
		judge_piece(p);
	if (r->state == PS_REPAIR_COMPARING)
		ask_about_next_piece(p);
}

/* --- sending --- */

/* Breaks the link of mirror `m`, if it has one. Ends the repair instead if W others do not hold the
 * store then, so that the image may not be overwritten (I8). */
static void break_link_of_mirror_to_repair(struct perseas *p, struct ps_mirror *m)
{
	struct ps_repair *r = &p->upkeep.repair;
	bool enough;

	if (end_if_segments_changed(p))
		return;
	pthread_mutex_lock(&p->lock);
	enough = ps_quorum_is_w(p, ps_mirrors_with_whole_image(p) & ~ps_mirror_bit(p, m));
	if (enough && m->is_active)
		ps_mirror_break_link(p, m, PS_LINK_BROKEN,
		                     "it differs from the others: it is repaired");
	pthread_mutex_unlock(&p->lock);
	if (!enough) {
		end_repair(p, PERSEAS_EQUORUM,
		           "%s differs, and fewer than W others are live: start them, and repeat",
		           m->address.text);
		return;
	}
	r->target = m;
	r->ends_unless_copied_at = ps_now(p) + PATIENCE;
	ps_text_format(ps_orders_find_or_make_result(p, r->order_id)->text,
	               sizeof(((struct ps_order_result *)0)->text), "repairs %s", m->address.text);
	p->env->ops->wake(p->env, PS_COMMITTER);
}

/* Returns a mirror that is still wrong, or NULL. */
static struct ps_mirror *next_mirror_to_repair(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].state != PERSEAS_MIRROR_REMOVED &&
		    ps_unsent_has_wrong_granules(&p->mirrors[i]))
			return &p->mirrors[i];
	return NULL;
}

static void step_repairing_differing_mirrors(struct perseas *p)
{
	struct ps_repair *r = &p->upkeep.repair;
	struct ps_mirror *m = r->target;

	if (m && m->state == PERSEAS_MIRROR_LIVE) {
		r->repaired_mirror_count += !ps_unsent_has_wrong_granules(m);
		r->target = m = NULL;
	}
	if (m && (p->upkeep.resync.target || m->copy_place))
		r->ends_unless_copied_at = ps_now(p) + PATIENCE;
	if (m) {
		if (ps_now(p) >= r->ends_unless_copied_at)
			end_repair(p, PERSEAS_EUNREACHABLE,
			           "%s went away; it is repaired when it comes back",
			           m->address.text);
		return;
	}
	m = next_mirror_to_repair(p);
	if (m)
		break_link_of_mirror_to_repair(p, m);
	else
		end_repair_successfully(p);
}

/* --- steps --- */

void ps_repair_begin(struct perseas *p, const uint8_t *order_id)
{
	struct ps_repair *r = &p->upkeep.repair;

	ps_assert_admin(p);
	assert(r->state == PS_REPAIR_NONE);
	forget_wrong_granules(p);
	r->state = PS_REPAIR_COMPARING;
	memcpy(r->order_id, order_id, PS_ID_SIZE);
	r->publish_generation = p->upkeep.publish_generation;
	r->max_granules = PS_DIGESTS_MAX;
	(void)ps_orders_find_or_make_result(p, order_id);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];
		const struct ps_whole_reason *reason = m->state == PERSEAS_MIRROR_LIVE
		                                               ? ps_resync_reason_not_to_compare(p,
		                                                                                 m)
		                                               : NULL;

		if (reason) {
			end_repair(p, PERSEAS_EVERSION, "%s cannot be compared: %s",
			           m->address.text, reason->text);
			return;
		}
	}
}

void ps_repair_step(struct perseas *p)
{
	ps_assert_admin(p);
	if (p->upkeep.repair.state == PS_REPAIR_COMPARING)
		step_comparing_mirrors(p);
	if (p->upkeep.repair.state == PS_REPAIR_SENDING)
		step_repairing_differing_mirrors(p);
}

uint64_t ps_repair_due_at(const struct perseas *p, uint64_t now)
{
	const struct ps_repair *r = &p->upkeep.repair;

	/* Answers, and memory that arrives, wake the keeper. */
	return r->state == PS_REPAIR_COMPARING && !r->piece_bytes && r->next_piece_at > now
	               ? r->next_piece_at
	               : PS_NEVER;
}
