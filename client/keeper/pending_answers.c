/*
 * pending_answers.c - keeps the pending answers of each mirror in the order of their requests, and
 * counts the answers to a question. All requests that do not wait are sent here. rpc.c first takes
 * the pending answers when it waits for one. Nothing here may know what an answer is for.
 */
#include "pending_answers.h"

#include "../core/mirror.h"
#include "../core/quorum.h"
#include "../host/asked.h"
#include "rpc.h"

#include <assert.h>
#include <string.h>

#define OVERDUE_AFTER ps_ms(1000)

/* Starts the timeout of the oldest pending answer. */
static void start_answer_timeout(struct perseas *p, struct ps_mirror *m)
{
	m->pending_answers.oldest_asked_at = ps_now(p);
	m->pending_answers.oldest_answer_by = ps_answer_deadline(p);
}

bool ps_pending_is_overdue(struct perseas *p, const struct ps_mirror *m)
{
	return m->pending_answers.answer_count &&
	       ps_now(p) - m->pending_answers.oldest_asked_at > OVERDUE_AFTER &&
	       !p->env->ops->answered(m->control);
}

bool ps_pending_send_request(struct perseas *p, struct ps_mirror *m,
                             const Perseas__Request *request, struct ps_pending_answer pending)
{
	struct ps_error ignored;

	ps_assert_admin(p);
	assert(pending.handler);
	if (!m->control || m->pending_answers.answer_count >= PS_PENDING_MAX ||
	    ps_pending_is_overdue(p, m) || p->env->ops->send(m->control, request, &ignored))
		return false;
	if (!m->pending_answers.answer_count)
		start_answer_timeout(p, m);
	m->pending_answers.answers[m->pending_answers.answer_count++] = pending;
	return true;
}

unsigned ps_pending_count_for_handler(const struct ps_mirror *m, ps_answer_handler *handler)
{
	unsigned count = 0;

	for (unsigned i = 0; i < m->pending_answers.answer_count; i++)
		count += m->pending_answers.answers[i].handler == handler;
	return count;
}

int ps_pending_take_answer(struct perseas *p, struct ps_mirror *m, uint64_t until_ns,
                           struct ps_error *error)
{
	const struct ps_pending_answer pending = m->pending_answers.answers[0];
	Perseas__Reply *reply;
	unsigned count;
	int rc;

	assert(m->pending_answers.answer_count);
	rc = p->env->ops->receive(m->control, until_ns, &reply, NULL, &count, error);
	if (rc) {
		ps_pending_drop_answers(p, m, error);
		return rc;
	}
	m->pending_answers.answer_count--;
	memmove(m->pending_answers.answers, m->pending_answers.answers + 1,
	        m->pending_answers.answer_count * sizeof(pending));
	if (m->pending_answers.answer_count)
		start_answer_timeout(p, m);
	pending.handler(p, m, &pending, &reply, NULL);
	if (reply)
		perseas__reply__free_unpacked(reply, NULL);
	return 0;
}

void ps_pending_take_all_answers(struct perseas *p, uint64_t now)
{
	struct ps_error ignored = { 0 };

	ps_assert_admin(p);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		while (m->pending_answers.answer_count &&
		       (p->env->ops->answered(m->control) ||
		        now >= ps_answer_extended_deadline(p, m,
		                                           m->pending_answers.oldest_answer_by)))
			ps_pending_take_answer(p, m, m->pending_answers.oldest_answer_by, &ignored);
	}
}

void ps_pending_drop_answers(struct perseas *p, struct ps_mirror *m, const struct ps_error *why)
{
	struct ps_pending_answer dropped[PS_PENDING_MAX];
	const unsigned count = m->pending_answers.answer_count;

	memcpy(dropped, m->pending_answers.answers, sizeof(dropped));
	m->pending_answers.answer_count = 0;
	for (unsigned i = 0; i < count; i++) {
		Perseas__Reply *none = NULL;

		dropped[i].handler(p, m, &dropped[i], &none, why);
	}
}

bool ps_pending_is_any_full(struct perseas *p, uint32_t set)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (set >> i & 1 && m->pending_answers.answer_count >= PS_PENDING_MAX &&
		    !ps_pending_is_overdue(p, m))
			return true;
	}
	return false;
}

/* --- questions --- */

static void take_question_answer(struct perseas *p, struct ps_mirror *m,
                                 const struct ps_pending_answer *pending, Perseas__Reply **reply,
                                 const struct ps_error *why)
{
	struct ps_question *q = pending->arg;

	assert(*reply || why);
	if (pending->ticket != q->id)
		return;
	assert(q->unanswered_mirrors & ps_mirror_bit(p, m));
	q->unanswered_mirrors &= ~ps_mirror_bit(p, m);
	if (!*reply) {
		q->last_refusal = *why;
	} else if (!ps_asked_refusal(*reply, m->address.text, &q->last_refusal)) {
		q->granting_mirrors |= ps_mirror_bit(p, m);
		if (q->last_granting_answer)
			perseas__reply__free_unpacked(q->last_granting_answer, NULL);
		q->last_granting_answer = *reply;
		*reply = NULL;
	}
}

void ps_question_forget(struct ps_question *question)
{
	if (question->last_granting_answer)
		perseas__reply__free_unpacked(question->last_granting_answer, NULL);
	memset(question, 0, sizeof(*question));
}

void ps_question_ask(struct perseas *p, struct ps_question *question, uint32_t set,
                     const Perseas__Request *request)
{
	const struct ps_pending_answer pending = { take_question_answer, question,
		                                   ++p->upkeep.last_question_id };

	ps_question_forget(question);
	question->id = pending.ticket;
	question->deadline = ps_answer_deadline(p);
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (set >> i & 1 && ps_pending_send_request(p, &p->mirrors[i], request, pending))
			question->unanswered_mirrors |= (uint32_t)1 << i;
}

bool ps_mirror_has_version(const struct perseas *p, const struct ps_mirror *m, unsigned version)
{
	return !p->env->ops->version || (m->control && p->env->ops->version(m->control) >= version);
}

void ps_question_ask_claim_confirmations(struct perseas *p, struct ps_question *question,
                                         uint32_t set)
{
	Perseas__ConfirmRequest ask = PERSEAS__CONFIRM_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(confirm, CONFIRM, &ask);

	ps_question_ask(p, question, set, &request);
}

bool ps_question_is_over(struct perseas *p, const struct ps_question *question)
{
	return !question->unanswered_mirrors || ps_now(p) >= question->deadline;
}
