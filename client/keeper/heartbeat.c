/*
 * heartbeat.c - asks the mirrors whether this owner still holds its claims, and takes their
 * answers. The keeper calls it, and so do copies between their pieces and the renewal (renew.c). It
 * must not let a mirror that is silent hold up the others.
 */
#include "heartbeat.h"

#include "confirm.h"
#include "due.h"
#include "../core/demand.h"
#include "../core/mirror.h"
#include "../core/pace.h"
#include "expiry_watch.h"
#include "operator_orders.h"
#include "resync.h"

#include <stdio.h>

#define PULSE ps_ms(500)

/* Versions of the protocol. */
enum {
	BOOT_VERSION = 9,   /* that tells the boot of the owner's host */
	COPIES_VERSION = 9, /* that tells of copies that broke */
};

/* What the owner sees of its mirrors, and what it counted, with texts and counts of its own: those
 * of the handle may change. */
struct sight {
	Perseas__MirrorReport reports[PS_MIRRORS_MAX], *list[PS_MIRRORS_MAX];
	char troubles[PS_MIRRORS_MAX][256];
	uint8_t ids[PS_MIRRORS_MAX][PS_ID_SIZE];
	Perseas__BrokenCopies broken[PS_MIRRORS_MAX];
	unsigned count;
	Perseas__OwnerFigures figures;
	Perseas__Latencies commit;
	struct ps_latency latency;
};

/* For how long a commit has been in doubt, in ms, rounded up; 0: none is. */
static uint64_t doubt_ms(struct perseas *p)
{
	return p->commit.in_doubt ? (ps_now(p) - p->commit.doubt_at) / ps_ms(1) + 1 : 0;
}

static void look_at_figures(struct perseas *p, struct sight *sight)
{
	Perseas__OwnerFigures *figures = &sight->figures;
	struct perseas_stat memory = { 0 };

	perseas__owner_figures__init(figures);
	figures->commits = p->commit.stat.commits;
	figures->aborts = p->commit.stat.aborts;
	figures->range_bytes = p->commit.stat.range_bytes;
	figures->saved_within = p->commit.stat.saved_within;
	figures->saved_between = p->commit.stat.saved_between;
	figures->in_doubt = p->commit.stat.doubts;
	figures->doubt_ms = doubt_ms(p);
	figures->paced = p->commit.stat.paced;
	figures->paced_ms = p->commit.stat.paced_ns / ps_ms(1);
	ps_demand_figures(p, &memory);
	figures->missing = memory.missing;
	sight->latency = p->commit.latency;
	ps_latency_message(&sight->latency, &sight->commit);
	figures->commit = &sight->commit;
}

static void look_at_copies(const struct ps_mirror *m, Perseas__BrokenCopies *broken)
{
	perseas__broken_copies__init(broken);
	broken->count = m->broken.count;
	broken->bytes = m->broken.bytes;
	broken->rate = m->broken.rate;
	broken->waited = m->broken.waited;
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
		if (m->votes)
			report->image_id = (ProtobufCBinaryData){ PS_ID_SIZE,
				                                  sight->ids[sight->count] };
		memcpy(sight->ids[sight->count], m->image_id, PS_ID_SIZE);
		ps_resync_progress(p, m, &report->done, &report->total);
		look_at_copies(m, &sight->broken[sight->count]);
		sight->list[sight->count] = report;
	}
	pthread_mutex_unlock(&p->lock);
}

/* Takes what the mirror told: when its TLS files expire, and what operators ask of this owner. */
static void take_confirmed(struct perseas *p, struct ps_mirror *m, Perseas__Reply **reply)
{
	if ((*reply)->body_case != PERSEAS__REPLY__BODY_CONFIRM)
		return;
	ps_expiry_take(p, m, (*reply)->confirm);
	if ((*reply)->confirm->handover)
		ps_orders_handover(p, (*reply)->confirm->handover);
	if ((*reply)->confirm->order)
		ps_orders_note(p, m, reply);
}

void ps_pulse_refused(struct perseas *p, struct ps_mirror *m)
{
	pthread_mutex_lock(&p->lock);
	if (m->active)
		ps_mirror_break(p, m, PS_LINK_BROKEN, "the mirror no longer knows the session");
	pthread_mutex_unlock(&p->lock);
}

/* The answer to a sign of life. */
static void take_sign(struct perseas *p, struct ps_mirror *m, const struct ps_due *due,
                      Perseas__Reply **reply, const struct ps_error *why)
{
	(void)due;
	(void)why;
	/* A connection that is over is found by who watches sessions. */
	if (!*reply)
		return;
	if ((*reply)->status == PERSEAS__STATUS__STATUS_OK)
		take_confirmed(p, m, reply);
	else
		ps_pulse_refused(p, m);
}

/* The boot of this host, for a mirror that reads it; empty if it is not known. */
static ProtobufCBinaryData boot_for(struct perseas *p, const struct ps_mirror *m)
{
	if (!p->env->boot_known || !ps_mirror_speaks(p, m, BOOT_VERSION))
		return (ProtobufCBinaryData){ 0, NULL };
	return (ProtobufCBinaryData){ PS_ID_SIZE, p->env->boot };
}

/* Fits what is told of copies to the version that the mirror speaks. */
static void fit_copies(const struct perseas *p, const struct ps_mirror *to, struct sight *sight)
{
	const bool reads = ps_mirror_speaks(p, to, COPIES_VERSION);

	for (unsigned i = 0; i < sight->count; i++)
		sight->reports[i].broken = reads && sight->broken[i].count ? &sight->broken[i]
		                                                           : NULL;
}

/* Returns true if the mirror holds this owner's claim: its session is up, or a renewal that is not
 * over has claimed it. */
static bool is_claimed(const struct perseas *p, const struct ps_mirror *m)
{
	return m->active || (p->renewing && m->found.claimed);
}

static void ask_all(struct perseas *p)
{
	Perseas__ConfirmRequest ask = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	Perseas__OrderResult result;
	struct sight sight;

	look(p, &sight);
	ask.n_mirrors = sight.count;
	ask.mirrors = sight.list;
	ask.figures = &sight.figures;
	request.body_case = PERSEAS__REQUEST__BODY_CONFIRM;
	request.confirm = &ask;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		/* One whose answer to this is still due is not asked again. */
		if (!is_claimed(p, m) || ps_due_count(m, take_sign))
			continue;
		ask.boot = boot_for(p, m);
		fit_copies(p, m, &sight);
		ask.result = ps_orders_result(p, m, &result) ? &result : NULL;
		ps_due_ask(p, m, &request, (struct ps_due){ take_sign, NULL, 0 });
	}
}

void ps_pulse(struct perseas *p, uint64_t now)
{
	ps_dues_take(p, now);
	ps_confirm_step(p);
	if (now < p->upkeep.pulse_at)
		return;
	p->upkeep.pulse_at = now + PULSE;
	ask_all(p);
}
