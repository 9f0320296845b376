/*
 * heartbeat.c - sends heartbeats and takes their answers. The keeper calls this, and so do copies
 * between their pieces and a renewal (renew.c). A silent mirror must not delay the others.
 */
#include "heartbeat.h"

#include "confirm.h"
#include "pending_answers.h"
#include "../core/demand.h"
#include "../core/mirror.h"
#include "../core/pace.h"
#include "expiry_watch.h"
#include "operator_orders.h"
#include "resync_progress.h"

#include <stdio.h>

#define HEARTBEAT_PERIOD ps_ms(500)

/* Versions of the protocol. */
enum {
	BOOT_VERSION = 9, /* the first one with the boot id of the owner's host */
	/* the first one with counts of broken copies, rates of resyncs, and locations */
	REPORT_VERSION = 9,
};

/* What a heartbeat reports: the owner's mirrors and figures. It holds copies, because the handle's
 * texts and counts may change while it is sent. */
struct heartbeat {
	Perseas__MirrorReport reports[PS_MIRRORS_MAX], *list[PS_MIRRORS_MAX];
	char troubles[PS_MIRRORS_MAX][256];
	uint8_t ids[PS_MIRRORS_MAX][PS_ID_SIZE];
	Perseas__BrokenCopies broken[PS_MIRRORS_MAX];
	Perseas__Resync resyncs[PS_MIRRORS_MAX];
	Perseas__Location locations[PS_MIRRORS_MAX];
	uint32_t copy_places[PS_MIRRORS_MAX];
	unsigned count;
	Perseas__OwnerFigures figures;
	uint64_t resync_bytes; /* for figures.resync_bytes */
	Perseas__Latencies commit;
	struct ps_latency latency;
};

/* Returns for how many ms a commit has been in doubt, rounded up, or 0 if none is. */
static uint64_t ms_since_commit_in_doubt(struct perseas *p)
{
	return p->commit.in_doubt_seq ? (ps_now(p) - p->commit.first_in_doubt_at) / ps_ms(1) + 1
	                              : 0;
}

static void fill_owner_figures(struct perseas *p, struct heartbeat *beat)
{
	Perseas__OwnerFigures *figures = &beat->figures;
	struct perseas_stat memory = { 0 };

	perseas__owner_figures__init(figures);
	figures->commits = p->commit.stat.commits;
	figures->aborts = p->commit.stat.aborts;
	figures->range_bytes = p->commit.stat.range_bytes;
	figures->saved_within = p->commit.stat.saved_within;
	figures->saved_between = p->commit.stat.saved_between;
	figures->in_doubt = p->commit.stat.doubts;
	figures->doubt_ms = ms_since_commit_in_doubt(p);
	figures->paced = p->commit.stat.paced;
	beat->resync_bytes = p->commit.stat.resync_bytes;
	figures->paced_ms = p->commit.stat.paced_ns / ps_ms(1);
	ps_demand_fill_stat(p, &memory);
	figures->missing = memory.missing;
	beat->latency = p->commit.latency;
	ps_latency_message(&beat->latency, &beat->commit);
	figures->commit = &beat->commit;
}

static void fill_broken_copies(const struct ps_mirror *m, Perseas__BrokenCopies *broken)
{
	perseas__broken_copies__init(broken);
	broken->count = m->broken_copies.broken_copy_count;
	broken->bytes = m->broken_copies.sent_bytes;
	broken->rate = m->broken_copies.transaction_bytes_per_s;
	broken->waited = m->broken_copies.waited_commit_count;
}

static void fill_resync(struct perseas *p, const struct ps_mirror *m, Perseas__MirrorReport *report,
                        Perseas__Resync *resync)
{
	struct ps_resync_progress progress;

	ps_resync_progress(p, m, &progress);
	report->done = progress.sent_bytes;
	report->total = progress.total_bytes;
	perseas__resync__init(resync);
	resync->rate = progress.bytes_per_s;
	resync->left_ms = progress.left_ms;
	resync->whole = (char *)progress.whole_reason_name;
}

static void fill_mirror_reports(struct perseas *p, struct heartbeat *beat)
{
	pthread_mutex_lock(&p->lock);
	fill_owner_figures(p, beat);
	for (beat->count = 0; beat->count < p->mirror_count; beat->count++) {
		struct ps_mirror *m = &p->mirrors[beat->count];
		Perseas__MirrorReport *report = &beat->reports[beat->count];
		char *trouble = beat->troubles[beat->count];

		perseas__mirror_report__init(report);
		snprintf(trouble, sizeof(beat->troubles[0]), "%s", ps_mirror_trouble_text(p, m));
		report->address = m->address.text;
		report->state = (char *)perseas_mirror_state_name(m->state);
		report->seq = ps_mirror_held_seq(m);
		report->trouble = trouble;
		if (m->has_vote)
			report->image_id = (ProtobufCBinaryData){ PS_ID_SIZE,
				                                  beat->ids[beat->count] };
		memcpy(beat->ids[beat->count], m->image_id, PS_ID_SIZE);
		fill_resync(p, m, report, &beat->resyncs[beat->count]);
		fill_broken_copies(m, &beat->broken[beat->count]);
		beat->copy_places[beat->count] = m->copy_place;
		beat->list[beat->count] = report;
	}
	pthread_mutex_unlock(&p->lock);
}

/* Takes what a mirror told in its answer: where it runs, when its TLS files expire, and the
 * operators' orders. */
static void take_confirm_reply(struct perseas *p, struct ps_mirror *m, Perseas__Reply **reply)
{
	if ((*reply)->body_case != PERSEAS__REPLY__BODY_CONFIRM)
		return;
	ps_location_read(&m->location, (*reply)->confirm->location);
	ps_certificate_note_reported_expiries(p, m, (*reply)->confirm);
	if ((*reply)->confirm->handover)
		ps_orders_tell_application_of_handover(p, (*reply)->confirm->handover);
	if ((*reply)->confirm->order)
		ps_orders_keep_answer_with_order(p, m, reply);
}

void ps_heartbeat_handle_refusal(struct perseas *p, struct ps_mirror *m)
{
	pthread_mutex_lock(&p->lock);
	if (m->is_active)
		ps_mirror_break_link(p, m, PS_LINK_BROKEN,
		                     "the mirror no longer confirms the claim of this owner");
	pthread_mutex_unlock(&p->lock);
}

/* Takes the answer to a heartbeat. */
static void take_heartbeat_answer(struct perseas *p, struct ps_mirror *m,
                                  const struct ps_pending_answer *pending, Perseas__Reply **reply,
                                  const struct ps_error *why)
{
	(void)pending;
	(void)why;
	/* Without a reply the connection is over, which the keeper notices itself. */
	if (!*reply)
		return;
	if ((*reply)->status == PERSEAS__STATUS__STATUS_OK)
		take_confirm_reply(p, m, reply);
	else
		ps_heartbeat_handle_refusal(p, m);
}

/* Returns the boot id of this host, or an empty id if it is unknown or too new for the mirror. */
static ProtobufCBinaryData boot_id_of_host_if_mirror_reads_it(struct perseas *p,
                                                              const struct ps_mirror *m)
{
	if (!p->env->has_boot_id || !ps_mirror_has_version(p, m, BOOT_VERSION))
		return (ProtobufCBinaryData){ 0, NULL };
	return (ProtobufCBinaryData){ PS_ID_SIZE, p->env->boot_id };
}

/* Adds the counts of broken copies, the rates of resyncs, and the mirrors' locations and places in
 * line if the receiver can read them. */
static void add_readable_fields(struct perseas *p, const struct ps_mirror *to,
                                struct heartbeat *beat)
{
	const bool reads = ps_mirror_has_version(p, to, REPORT_VERSION);

	beat->figures.resync_bytes = reads ? beat->resync_bytes : 0;
	for (unsigned i = 0; i < beat->count; i++) {
		Perseas__Location *told = ps_location_message(&p->mirrors[i].location,
		                                              &beat->locations[i]);

		beat->reports[i].broken = reads && beat->broken[i].count ? &beat->broken[i] : NULL;
		beat->reports[i].location = reads ? told : NULL;
		beat->reports[i].copy_place = reads ? beat->copy_places[i] : 0;
		beat->reports[i].resync = reads && beat->reports[i].total ? &beat->resyncs[i]
		                                                          : NULL;
	}
}

/* Returns true if the mirror holds this owner's claim: its session is up, or a renewal in progress
 * has claimed it. */
static bool holds_own_claim(const struct perseas *p, const struct ps_mirror *m)
{
	return m->is_active || (p->is_renewing && m->probe.is_claimed);
}

static void send_heartbeats(struct perseas *p)
{
	Perseas__ConfirmRequest ask = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	Perseas__OrderResult result;
	struct heartbeat beat;

	fill_mirror_reports(p, &beat);
	ask.n_mirrors = beat.count;
	ask.mirrors = beat.list;
	ask.figures = &beat.figures;
	request.body_case = PERSEAS__REQUEST__BODY_CONFIRM;
	request.confirm = &ask;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		/* Skips mirrors whose previous answer is still pending. */
		if (!holds_own_claim(p, m) ||
		    ps_pending_count_for_handler(m, take_heartbeat_answer))
			continue;
		ask.boot = boot_id_of_host_if_mirror_reads_it(p, m);
		add_readable_fields(p, m, &beat);
		ask.result = ps_orders_fill_result_for_mirror(p, m, &result) ? &result : NULL;
		ps_pending_send_request(p, m, &request,
		                        (struct ps_pending_answer){ take_heartbeat_answer, NULL,
		                                                    0 });
	}
}

void ps_heartbeat_step(struct perseas *p, uint64_t now)
{
	ps_assert_admin(p);
	ps_pending_take_all_answers(p, now);
	ps_confirm_step(p);
	if (now < p->upkeep.next_heartbeat_at)
		return;
	p->upkeep.next_heartbeat_at = now + HEARTBEAT_PERIOD;
	send_heartbeats(p);
}
