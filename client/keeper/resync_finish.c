/*
 * resync_finish.c - the end of a copy: others confirm this owner's claim once more if they must,
 * and the mirror makes the image count. resync.c steps this once the mirror has all chunks.
 */
#include "../core/unsent_granules.h"
#include "pending_answers.h"
#include "../core/mirror.h"
#include "../core/quorum.h"
#include "rejoin.h"
#include "resync_internal.h"
#include "rpc.h"

#include <assert.h>

#define RETRY_LATER ps_ms(10) /* pause while the mirror owes too many answers */

/* Returns true if others must confirm this owner's claim before the mirror may vote (I9). A mirror
 * that forgot its promises, or that this owner claimed after its open, would otherwise let a fenced
 * owner commit. An image that this owner adopted needs no confirmation. Neither does a mirror that
 * only the next roster lists: before that roster is settled, enough mirrors of both rosters record
 * the mirror's id. */
static bool needs_confirmation(const struct perseas *p)
{
	return !p->upkeep.resync.image_already_counted &&
	       !p->upkeep.resync.others_confirmed_claim && ps_resync_is_settled_member(p);
}

/* Asks the mirror to count the image: all chunks are there, so it is a prefix of the history up to
 * its slot. Returns false if the request must wait. */
static bool ask_mirror_to_count_image(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;
	Perseas__FinishRequest finish;
	Perseas__Request request;

	assert(!needs_confirmation(p));
	ps_rejoin_make_finish_request(&finish, &request);
	ps_question_ask(p, &r->question, ps_mirror_bit(p, r->target), &request);
	if (r->question.unanswered_mirrors) {
		ps_resync_move(p, PS_RESYNC_FINISHING);
		return true;
	}
	/* Too many answers of the mirror are pending: they arrive, or its session ends. */
	ps_question_forget(&r->question);
	r->next_chunk_at = ps_now(p) + RETRY_LATER;
	if (r->state != PS_RESYNC_COPYING)
		ps_resync_move(p, PS_RESYNC_COPYING);
	return false;
}

bool ps_resync_have_image_counted(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;

	if (!needs_confirmation(p))
		return ask_mirror_to_count_image(p);
	if (ps_pending_is_any_full(p, ps_resync_other_mirrors(p))) {
		r->next_chunk_at = ps_now(p) + RETRY_LATER;
		return false;
	}
	ps_question_ask_claim_confirmations(p, &r->question, ps_resync_other_mirrors(p));
	ps_resync_move(p, PS_RESYNC_CONFIRMING);
	return true;
}

bool ps_resync_step_confirming(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;

	ps_pending_take_all_answers(p, ps_now(p));
	if (ps_resync_is_confirmed(p)) {
		r->others_confirmed_claim = true;
		return ask_mirror_to_count_image(p);
	}
	if (!ps_question_is_over(p, &r->question))
		return false;
	ps_resync_break_link(p, "too few other mirrors confirmed this owner's claim");
	return true;
}

bool ps_resync_step_finishing(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;
	struct ps_mirror *m = r->target;

	ps_pending_take_all_answers(p, ps_now(p));
	if (r->question.unanswered_mirrors)
		return false;
	if (!r->question.granting_mirrors) {
		ps_resync_break_link(p, r->question.last_refusal.text);
		return true;
	}
	pthread_mutex_lock(&p->lock);
	if (m->state == PERSEAS_MIRROR_RESYNCING) {
		p->commit.stat.resyncs++;
		ps_mirror_move_to_state(p, m, PERSEAS_MIRROR_LIVE, "");
		ps_end_doubt_if_durable(p);
	}
	pthread_mutex_unlock(&p->lock);
	ps_unsent_free(m);
	p->env->ops->wake(p->env, PS_COMMITTER);
	ps_resync_end_copy(p);
	return true;
}
