#include "pulse.h"

#include "change.h"
#include "mirror.h"
#include "resync.h"

#include <stdio.h>
#include <string.h>

#define PULSE ps_ms(500)

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
		snprintf(trouble, sizeof(sight->troubles[0]), "%s", m->trouble);
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
		struct ps_error error;

		/* One whose answer is still due is not asked again. */
		if (m->active && m->control && !m->asked)
			m->asked = !p->env->ops->send(m->control, &request, &error);
	}
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

	if (p->change.stage == PS_CHANGE_NONE && !ps_id_equal(order->id, p->change.id))
		ps_change_begin(p, &wanted, order->id.data);
}

int ps_pulse_take(struct perseas *p, struct ps_mirror *m, uint64_t until_ns, struct ps_error *error)
{
	Perseas__Reply *reply;
	unsigned count;
	bool ours;
	int rc = p->env->ops->receive(m->control, until_ns, &reply, NULL, &count, error);

	m->asked = false;
	if (rc)
		return rc;
	ours = reply->status == PERSEAS__STATUS__STATUS_OK;
	if (ours && reply->body_case == PERSEAS__REPLY__BODY_CONFIRM && reply->confirm->order)
		obey(p, reply->confirm->order);
	perseas__reply__free_unpacked(reply, NULL);
	if (ours)
		return 0;
	/* Its claim is another's: taking the session up again tells whose. */
	pthread_mutex_lock(&p->lock);
	if (m->active)
		ps_mirror_break(p, m, PS_LINK_BROKEN, "the mirror no longer knows the session");
	pthread_mutex_unlock(&p->lock);
	p->env->ops->wake(p->env, PS_COMMITTER);
	return 0;
}

void ps_pulse(struct perseas *p, uint64_t now)
{
	struct ps_error ignored;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		/* A connection that broke is found by who watches sessions. */
		if (m->asked && p->env->ops->answered(m->control))
			ps_pulse_take(p, m, now, &ignored);
	}
	if (now < p->pulse_at)
		return;
	p->pulse_at = now + PULSE;
	ask_all(p);
}
