/*
 * pulse.c - asks the mirrors whether this owner still holds its claims, and takes their answers
 * and orders. The keeper and rpc.c call it. It must not let a mirror that is silent hold up the
 * others.
 */
#include "pulse.h"

#include "change.h"
#include "../core/mirror.h"
#include "../core/pace.h"
#include "../core/quorum.h"
#include "resync.h"
#include "telling.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define PULSE ps_ms(500)
#define SILENT ps_ms(1000)
#define GRACE ps_ms(100) /* for those without which there are enough */

enum { DUE_MAX = 4 }; /* answers of one mirror that are waited for later */

/* What the owner sees of its mirrors, and what it counted, with texts and counts of its own: those
 * of the handle may change. */
struct sight {
	Perseas__MirrorReport reports[PS_MIRRORS_MAX], *list[PS_MIRRORS_MAX];
	char troubles[PS_MIRRORS_MAX][256];
	unsigned count;
	Perseas__OwnerFigures figures;
	Perseas__Latencies commit;
	struct ps_latency latency;
};

/* For how long a commit has been in doubt, in ms, rounded up; 0: none is. */
static uint64_t doubt_ms(struct perseas *p)
{
	return p->in_doubt ? (ps_now(p) - p->doubt_at) / ps_ms(1) + 1 : 0;
}

static void look_at_figures(struct perseas *p, struct sight *sight)
{
	Perseas__OwnerFigures *figures = &sight->figures;

	perseas__owner_figures__init(figures);
	figures->commits = p->stat.commits;
	figures->aborts = p->stat.aborts;
	figures->range_bytes = p->stat.range_bytes;
	figures->in_doubt = p->stat.doubts;
	figures->doubt_ms = doubt_ms(p);
	figures->paced = p->stat.paced;
	figures->paced_ms = p->stat.paced_ns / ps_ms(1);
	sight->latency = p->latency;
	ps_latency_message(&sight->latency, &sight->commit);
	figures->commit = &sight->commit;
}

static void look(struct perseas *p, struct sight *sight)
{
	pthread_mutex_lock(&p->lock);
	look_at_figures(p, sight);
	for (sight->count = 0; sight->count < p->mirror_count; sight->count++) {
		struct ps_mirror *m = &p->mirrors[sight->count];
		Perseas__MirrorReport *report = &sight->reports[sight->count];
		char *trouble = sight->troubles[sight->count];

		perseas__mirror_report__init(report);
		snprintf(trouble, sizeof(sight->troubles[0]), "%s", ps_trouble(p, m));
		report->address = m->address.text;
		report->state = (char *)perseas_mirror_state_name(m->state);
		report->seq = ps_mirror_seq(m);
		report->trouble = trouble;
		ps_resync_progress(p, m, &report->done, &report->total);
		sight->list[sight->count] = report;
	}
	pthread_mutex_unlock(&p->lock);
}

/* How far the order is that was taken up last. False: there was none. */
static bool tell(struct perseas *p, Perseas__OrderResult *result)
{
	static const uint8_t none[PS_ID_SIZE];
	struct ps_change *c = &p->change;

	if (!memcmp(c->id, none, PS_ID_SIZE))
		return false;
	perseas__order_result__init(result);
	result->id = (ProtobufCBinaryData){ PS_ID_SIZE, c->id };
	result->done = c->stage == PS_CHANGE_NONE;
	result->code = result->done ? c->code : 0;
	result->text = c->text;
	return true;
}

/* From now on the oldest answer that is due is waited for. */
static void note_asked(struct perseas *p, struct ps_mirror *m)
{
	m->asked_at = ps_now(p);
	m->answer_by = ps_answer_by(p);
}

bool ps_pulse_ask(struct perseas *p, struct ps_mirror *m, const Perseas__Request *request,
                  bool tells)
{
	struct ps_error ignored;

	if (!m->control || m->asked >= DUE_MAX || ps_silent(p, m) ||
	    p->env->ops->send(m->control, request, &ignored))
		return false;
	if (!m->asked)
		note_asked(p, m);
	m->tells |= (unsigned)tells << m->asked++;
	return true;
}

static void ask_all(struct perseas *p)
{
	Perseas__ConfirmRequest ask = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	Perseas__OrderResult result;
	struct sight sight;

	look(p, &sight);
	if (tell(p, &result))
		ask.result = &result;
	ask.n_mirrors = sight.count;
	ask.mirrors = sight.list;
	ask.figures = &sight.figures;
	request.body_case = PERSEAS__REQUEST__BODY_CONFIRM;
	request.confirm = &ask;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		/* One whose answer is still due is not asked again. */
		if (m->active && !m->asked)
			ps_pulse_ask(p, m, &request, false);
	}
}

/* A mirror that was stopped may tell anew of an order that was carried out before others were. */
static bool was_taken_up(const struct perseas *p, const Perseas__Order *order)
{
	for (unsigned i = 0; i < PS_ORDERS_KEPT; i++)
		if (ps_id_equal(order->id, p->orders.ids[i]))
			return true;
	return false;
}

/* An operator asks for a change of the roster. One at a time: others wait at their mirrors. */
static void obey(struct perseas *p, const Perseas__Order *order)
{
	const struct perseas_roster_change wanted = {
		.kind = (int)order->kind,
		.address = order->address,
		.with = order->with,
		.acks = order->acks,
		.gone = order->gone,
	};
	const bool cancels = order->kind == PERSEAS__ORDER_KIND__ORDER_CANCEL;

	if (cancels && p->change.stage != PS_CHANGE_NONE) {
		ps_change_obey_cancel(p, order->id.data);
		return;
	}
	if (p->change.stage != PS_CHANGE_NONE || was_taken_up(p, order))
		return;
	memcpy(p->orders.ids[p->orders.count++ % PS_ORDERS_KEPT], order->id.data, PS_ID_SIZE);
	if (cancels)
		ps_change_obey_cancel(p, order->id.data);
	else
		ps_change_begin(p, &wanted, order->id.data);
}

int ps_pulse_take(struct perseas *p, struct ps_mirror *m, uint64_t until_ns, struct ps_error *error)
{
	const bool told = m->tells & 1;
	Perseas__Reply *reply;
	unsigned count;
	bool ours;
	int rc = p->env->ops->receive(m->control, until_ns, &reply, NULL, &count, error);

	m->asked = rc ? 0 : m->asked - 1;
	m->tells = rc ? 0 : m->tells >> 1;
	if (rc)
		return rc;
	if (m->asked)
		note_asked(p, m);
	ours = reply->status == PERSEAS__STATUS__STATUS_OK;
	if (told) {
		ps_telling_answered(p, m, ours);
		perseas__reply__free_unpacked(reply, NULL);
		return 0;
	}
	if (ours && reply->body_case == PERSEAS__REPLY__BODY_CONFIRM && reply->confirm->order &&
	    !p->deaf)
		obey(p, reply->confirm->order);
	perseas__reply__free_unpacked(reply, NULL);
	if (ours)
		return 0;
	/* Its claim is another's: taking the session up again tells whose. */
	pthread_mutex_lock(&p->lock);
	if (m->active)
		ps_mirror_break(p, m, PS_LINK_BROKEN, "the mirror no longer knows the session");
	pthread_mutex_unlock(&p->lock);
	return 0;
}

bool ps_silent(struct perseas *p, const struct ps_mirror *m)
{
	return m->asked && ps_now(p) - m->asked_at > SILENT && !p->env->ops->answered(m->control);
}

void ps_pulse(struct perseas *p, uint64_t now)
{
	struct ps_error ignored;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		/* One that is not answered in time ends its connection: who watches sessions finds
		 * that. */
		while (m->asked && (p->env->ops->answered(m->control) || now >= m->answer_by))
			ps_pulse_take(p, m, now, &ignored);
	}
	if (now < p->pulse_at)
		return;
	p->pulse_at = now + PULSE;
	ask_all(p);
}

/* --- asking some of them, and waiting for enough --- */

/* Asks those of a set that it makes sense to wait for: these are returned. */
static uint32_t ask_some(struct perseas *p, uint32_t set, const Perseas__Request *request)
{
	uint32_t due = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];
		struct ps_error ignored;

		if (set >> i & 1 && m->control && m->asked < DUE_MAX && !ps_silent(p, m) &&
		    !p->env->ops->send(m->control, request, &ignored))
			due |= (uint32_t)1 << i;
	}
	return due;
}

/* Is the answer here? 1: yes, and it was granted. 0: not yet. -1: it was not. */
static int take_granted(struct perseas *p, struct ps_mirror *m)
{
	struct ps_error ignored;
	Perseas__Reply *reply;

	while (p->env->ops->answered(m->control)) {
		if (m->asked) {
			if (ps_pulse_take(p, m, ps_now(p), &ignored))
				return -1;
			continue;
		}
		if (ps_answer(p, m, ps_now(p), &reply, NULL, &ignored))
			return -1;
		perseas__reply__free_unpacked(reply, NULL);
		return 1;
	}
	return 0;
}

static void sleep_on(struct perseas *p, uint32_t due, uint64_t until)
{
	struct pollfd fds[PS_MIRRORS_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < p->mirror_count; i++)
		if (due >> i & 1 && p->env->ops->control_waits(p->mirrors[i].control, &fds[count]))
			count++;
	p->env->ops->pause(p->env, PS_KEEPER, fds, count, until);
}

/* What they answer later is like the answer to a sign of life. */
static void leave(struct perseas *p, uint32_t due, bool tells, uint64_t asked_at,
                  uint64_t answer_by)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (!(due >> i & 1))
			continue;
		m->tells |= (unsigned)tells << m->asked;
		if (m->asked++)
			continue;
		m->asked_at = asked_at;
		m->answer_by = answer_by;
	}
}

static uint32_t all_due(const struct perseas *p)
{
	uint32_t due = 0;

	assert(p->mirror_count <= PS_MIRRORS_MAX);
	for (unsigned i = 0; i < p->mirror_count; i++)
		due |= (uint32_t)(p->mirrors[i].asked > 0) << i;
	return due;
}

int ps_ask_patiently(struct perseas *p, struct ps_mirror *m, const Perseas__Request *request,
                     Perseas__Reply **reply, int *fds, struct ps_error *error)
{
	const uint64_t until = ps_answer_by(p);
	int rc;

	assert(!m->active);
	if (!p->open || !m->control)
		return ps_ask(p, m, request, until, reply, fds, error);
	*reply = NULL;
	rc = p->env->ops->send(m->control, request, error);
	if (rc)
		return rc;
	/* Orders could take this very mirror away. They are told again until they are obeyed. */
	p->deaf = true;
	while (!p->env->ops->answered(m->control) || m->asked) {
		const uint64_t limit = ps_answer_limit(p, m, until);

		if (ps_now(p) >= limit)
			break;
		ps_pulse(p, ps_now(p));
		sleep_on(p, all_due(p) | ps_bit(p, m), p->pulse_at < limit ? p->pulse_at : limit);
	}
	p->deaf = false;
	p->env->ops->wake(p->env, PS_KEEPER);
	return ps_answer(p, m, until, reply, fds, error);
}

uint32_t ps_ask_enough(struct perseas *p, uint32_t set, const Perseas__Request *request,
                       ps_enough *enough, const void *arg)
{
	const uint64_t start = ps_now(p), until = ps_answer_by(p);
	uint32_t due = ask_some(p, set, request), granted = 0;

	for (;;) {
		const uint64_t now = ps_now(p);

		for (unsigned i = 0; i < p->mirror_count; i++) {
			const uint32_t bit = (uint32_t)1 << i;
			const int rc = due & bit ? take_granted(p, &p->mirrors[i]) : 0;

			granted |= rc > 0 ? bit : 0;
			due &= rc ? ~bit : ~(uint32_t)0;
		}
		if (!due || now >= until || (now >= start + GRACE && enough(p, granted, arg)))
			break;
		sleep_on(p, due, now < start + GRACE ? start + GRACE : until);
	}
	leave(p, due, request->body_case == PERSEAS__REQUEST__BODY_ROSTER, start, until);
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

static bool are_enough_anew(struct perseas *p, uint32_t granted, const void *but)
{
	return ps_quorum_anew(p, granted, but);
}

uint32_t ps_confirmed_anew(struct perseas *p, uint32_t set, const struct ps_mirror *but)
{
	return ps_confirmed_enough(p, set, are_enough_anew, but);
}
