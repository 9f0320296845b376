/*
 * confirm.c - perseas_confirm: asks R mirrors of each roster in force whether they still hold this
 * owner's claim ("Confirmed reads" in PROTOCOL.md). The calling thread counts its call and wakes
 * the keeper, which asks each mirror once for all calls that were counted by then. An answer to a
 * question that was sent before a call must never count for that call.
 */
#include "confirm.h"

#include "../core/cancel.h"
#include "../core/commit.h"
#include "../core/gather.h"
#include "../core/mirror.h"
#include "../core/quorum.h"
#include "pending_answers.h"
#include "heartbeat.h"

#include <assert.h>

/* Questions in flight to one mirror. Threads that call while the first one is in flight share the
 * second, without waiting for the first. With one question alone, half of the calls would wait for
 * two round trips. */
enum { QUESTIONS_MAX = 2 };

/* --- the keeper's part --- */

/* Takes a mirror's answer. pending->ticket is the last call that was counted when the mirror was
 * asked. */
static void take_confirm_answer(struct perseas *p, struct ps_mirror *m,
                                const struct ps_pending_answer *pending, Perseas__Reply **reply,
                                const struct ps_error *why)
{
	(void)why;
	/* Without a reply the connection is over, which the keeper notices itself. */
	if (!*reply)
		return;
	if ((*reply)->status != PERSEAS__STATUS__STATUS_OK) {
		ps_heartbeat_handle_refusal(p, m);
		return;
	}
	pthread_mutex_lock(&p->lock);
	m->confirm.confirmed_call = pending->ticket;
	pthread_mutex_unlock(&p->lock);
}

/* Returns the mirrors that must be asked: whole voters that were not asked since the last call.
 * Skips a mirror that is copied to: it may have been made anew, and no other mirror has confirmed
 * yet that it may vote (I9). */
static uint32_t mirrors_to_ask_confirm(const struct perseas *p)
{
	uint32_t set = 0;

	assert(p->mirror_count <= PS_MIRRORS_MAX);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		set |= (uint32_t)(m->has_vote &&
		                  m->confirm.asked_call < p->confirm_calls.call_count)
		       << i;
	}
	return set & ps_mirrors_with_whole_image(p);
}

/* Raises p->confirm_calls.confirmed_call to the newest call after which R mirrors of each roster in
 * force confirmed the claim, and wakes the threads that wait for it. It never falls: what was
 * confirmed after a call stays confirmed, whatever happens to the mirrors. */
static void update_confirmed_call(struct perseas *p)
{
	const uint64_t before = p->confirm_calls.confirmed_call;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const uint64_t call = p->mirrors[i].confirm.confirmed_call;

		if (call > p->confirm_calls.confirmed_call &&
		    ps_quorum_is_r(p, ps_mirrors_that_confirmed_call(p, call)))
			p->confirm_calls.confirmed_call = call;
	}
	if (p->confirm_calls.confirmed_call > before)
		p->env->ops->broadcast(p->env, &p->commit.wait_line.changed);
}

void ps_confirm_step(struct perseas *p)
{
	Perseas__ConfirmRequest ask = PERSEAS__CONFIRM_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(confirm, CONFIRM, &ask);
	struct ps_pending_answer pending = { take_confirm_answer, NULL, 0 };
	uint32_t set;

	ps_assert_admin(p);
	pthread_mutex_lock(&p->lock);
	update_confirmed_call(p);
	set = mirrors_to_ask_confirm(p);
	pending.ticket = p->confirm_calls.call_count;
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (set >> i & 1 &&
		    ps_pending_count_for_handler(m, take_confirm_answer) < QUESTIONS_MAX &&
		    ps_pending_send_request(p, m, &request, pending))
			m->confirm.asked_call = pending.ticket;
	}
}

void ps_confirm_forget_mirror(struct perseas *p, struct ps_mirror *m)
{
	pthread_mutex_lock(&p->lock);
	m->confirm.asked_call = m->confirm.confirmed_call = 0;
	pthread_mutex_unlock(&p->lock);
}

/* --- the caller's part --- */

static int fail_unconfirmed(const struct perseas *p, uint64_t call)
{
	return ps_fail(p, PERSEAS_EINDOUBT,
	               "%u of %u mirrors confirmed within %u ms that this process still owns store "
	               "'%s', and %u must%s: another owner may have it; call perseas_confirm "
	               "again, and see perseas_mirror_stat for what is wrong with each mirror",
	               ps_quorum_count_settled_members(p, ps_mirrors_that_confirmed_call(p, call)),
	               p->member_count, p->options.commit_timeout_ms, p->store,
	               ps_quorum_r_of_settled_roster(p),
	               p->next_roster ? ", and R of the new roster, which is not settled yet" : "");
}

/* Waits until R mirrors have confirmed the claim after this call. Returns 0 or an error code. */
static int await_confirmed(struct perseas *p, uint64_t call, uint64_t until)
{
	for (;;) {
		if (ps_is_fenced(p))
			return ps_fail_fenced(p);
		if (p->confirm_calls.confirmed_call >= call)
			return 0;
		if (ps_now(p) >= until)
			return fail_unconfirmed(p, call);
		p->commit.wait_line.waiting_count++;
		p->env->ops->wait(p->env, &p->commit.wait_line.changed, &p->lock, until);
		p->commit.wait_line.waiting_count--;
	}
}

/* Carries out perseas_confirm. The mirrors are asked while W of them receive what was posted, so
 * both take one round trip. Caller holds p->lock. */
static int confirm_claim_locked(struct perseas *p)
{
	const uint64_t until = ps_now(p) + ps_ms(p->options.commit_timeout_ms);
	const uint64_t call = ++p->confirm_calls.call_count;
	uint64_t since = 0;
	int rc;

	ps_assert_locked(p);
	p->env->ops->wake(p->env, PS_KEEPER);
	ps_gather_send_if_any(p);
	rc = ps_commit_await_w_mirrors(p, p->commit.seq, &since);
	return rc ? rc : await_confirmed(p, call, until);
}

int perseas_confirm(perseas_t *p)
{
	PS_UNCANCELLED;
	int rc;

	if (!p)
		return ps_fail(NULL, PERSEAS_EINVAL, "p is NULL");
	pthread_mutex_lock(&p->lock);
	rc = p->is_salvage || ps_is_fenced(p) ? ps_check_may_transact(p) : confirm_claim_locked(p);
	pthread_mutex_unlock(&p->lock);
	return rc;
}
