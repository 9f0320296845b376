/*
 * due.c - the answers that are due from each mirror, in the order in which they were asked for, and
 * questions, which count them. Whatever asks without waiting does so here, and rpc.c takes what is
 * due before the answer that it waits for. It must not know what an answer is for.
 */
#include "due.h"

#include "../core/mirror.h"
#include "../core/quorum.h"
#include "../host/asked.h"

#include <assert.h>
#include <string.h>

#define SILENT ps_ms(1000)
#define GRACE ps_ms(100) /* for those without which there are enough */

/* From now on the oldest answer that is due is waited for. */
static void note_asked(struct perseas *p, struct ps_mirror *m)
{
	m->asked_at = ps_now(p);
	m->answer_by = ps_answer_by(p);
}

bool ps_silent(struct perseas *p, const struct ps_mirror *m)
{
	return m->asked && ps_now(p) - m->asked_at > SILENT && !p->env->ops->answered(m->control);
}

bool ps_due_ask(struct perseas *p, struct ps_mirror *m, const Perseas__Request *request,
                struct ps_due due)
{
	struct ps_error ignored;

	ps_assert_admin(p);
	if (!m->control || m->asked >= PS_DUE_MAX || ps_silent(p, m) ||
	    p->env->ops->send(m->control, request, &ignored))
		return false;
	if (!m->asked)
		note_asked(p, m);
	m->due[m->asked++] = due;
	return true;
}

bool ps_due_has(const struct ps_mirror *m, ps_taker *take)
{
	for (unsigned i = 0; i < m->asked; i++)
		if (m->due[i].take == take)
			return true;
	return false;
}

int ps_due_take(struct perseas *p, struct ps_mirror *m, uint64_t until_ns, struct ps_error *error)
{
	const struct ps_due due = m->due[0];
	Perseas__Reply *reply;
	unsigned count;
	int rc = p->env->ops->receive(m->control, until_ns, &reply, NULL, &count, error);

	if (rc) {
		ps_dues_drop(p, m, error);
		return rc;
	}
	m->asked--;
	memmove(m->due, m->due + 1, m->asked * sizeof(due));
	if (m->asked)
		note_asked(p, m);
	due.take(p, m, &due, &reply, NULL);
	if (reply)
		perseas__reply__free_unpacked(reply, NULL);
	return 0;
}

void ps_dues_take(struct perseas *p, uint64_t now)
{
	struct ps_error ignored = { 0 };

	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		while (m->asked && (p->env->ops->answered(m->control) ||
		                    now >= ps_answer_limit(p, m, m->answer_by)))
			ps_due_take(p, m, m->answer_by, &ignored);
	}
}

void ps_dues_drop(struct perseas *p, struct ps_mirror *m, const struct ps_error *why)
{
	struct ps_due dropped[PS_DUE_MAX];
	const unsigned count = m->asked;

	memcpy(dropped, m->due, sizeof(dropped));
	m->asked = 0;
	for (unsigned i = 0; i < count; i++) {
		Perseas__Reply *none = NULL;

		dropped[i].take(p, m, &dropped[i], &none, why);
	}
}

/* --- questions --- */

static void take_answer(struct perseas *p, struct ps_mirror *m, const struct ps_due *due,
                        Perseas__Reply **reply, const struct ps_error *why)
{
	struct ps_question *q = due->arg;

	if (due->ticket != q->id)
		return;
	q->due &= ~ps_bit(p, m);
	if (!*reply) {
		q->error = *why;
	} else if (!ps_asked_refusal(*reply, m->address.text, &q->error)) {
		q->granted |= ps_bit(p, m);
		if (q->reply)
			perseas__reply__free_unpacked(q->reply, NULL);
		q->reply = *reply;
		*reply = NULL;
	}
}

void ps_question_forget(struct ps_question *question)
{
	if (question->reply)
		perseas__reply__free_unpacked(question->reply, NULL);
	memset(question, 0, sizeof(*question));
}

void ps_question_ask(struct perseas *p, struct ps_question *question, uint32_t set,
                     const Perseas__Request *request)
{
	const struct ps_due due = { take_answer, question, ++p->questions };

	ps_question_forget(question);
	question->id = due.ticket;
	question->until = ps_answer_by(p);
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (set >> i & 1 && ps_due_ask(p, &p->mirrors[i], request, due))
			question->due |= (uint32_t)1 << i;
}

void ps_question_confirm(struct perseas *p, struct ps_question *question, uint32_t set)
{
	Perseas__ConfirmRequest ask = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;

	request.body_case = PERSEAS__REQUEST__BODY_CONFIRM;
	request.confirm = &ask;
	ps_question_ask(p, question, set, &request);
}

bool ps_question_over(struct perseas *p, const struct ps_question *question)
{
	return !question->due || ps_now(p) >= question->until;
}

/* --- waiting for enough --- */

static void sleep_on(struct perseas *p, uint32_t due, uint64_t until)
{
	struct pollfd fds[PS_MIRRORS_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < p->mirror_count; i++)
		if (due >> i & 1 && p->env->ops->control_waits(p->mirrors[i].control, &fds[count]))
			count++;
	p->env->ops->pause(p->env, PS_KEEPER, fds, count, until);
}

static uint32_t await_enough(struct perseas *p, const struct ps_question *q, ps_enough *enough,
                             const void *arg)
{
	const uint64_t grace = ps_now(p) + GRACE;

	for (;;) {
		const uint64_t now = ps_now(p);

		ps_dues_take(p, now);
		if (ps_question_over(p, q) || (now >= grace && enough(p, q->granted, arg)))
			return q->granted;
		sleep_on(p, q->due, now < grace ? grace : q->until);
	}
}

uint32_t ps_ask_enough(struct perseas *p, uint32_t set, const Perseas__Request *request,
                       ps_enough *enough, const void *arg)
{
	uint32_t granted;

	ps_question_ask(p, &p->asking, set, request);
	granted = await_enough(p, &p->asking, enough, arg);
	ps_question_forget(&p->asking);
	/* What woke it meanwhile is looked at when this round of the keeper is over. */
	p->env->ops->wake(p->env, PS_KEEPER);
	return granted;
}

uint32_t ps_confirmed_enough(struct perseas *p, uint32_t set, ps_enough *enough, const void *arg)
{
	Perseas__ConfirmRequest ask = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;

	request.body_case = PERSEAS__REQUEST__BODY_CONFIRM;
	request.confirm = &ask;
	return ps_ask_enough(p, set, &request, enough, arg);
}
