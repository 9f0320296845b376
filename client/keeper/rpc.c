/*
 * rpc.c - sends control requests to one mirror or several at the same time, takes the answers, and
 * attaches the data path that a grant describes.
 */
#include "../host/asked.h"
#include "../core/demand.h"
#include "../core/detour.h"
#include "pending_answers.h"
#include "lifeline.h"
#include "../core/mirror.h"
#include "../core/quorum.h"
#include "rpc.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECT_POLL ps_ms(10) /* how often to check a connection without a descriptor */

static void close_descriptors(int *fds, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/* Has signs of life sent four times within the owner timeout that the grant names, because the open
 * may still wait long for other mirrors. With a long timeout the keeper's heartbeats suffice. */
static void begin_frequent_heartbeats(struct perseas *p, struct ps_mirror *m,
                                      const Perseas__Grant *grant)
{
	uint64_t ms = grant->owner_timeout_ms;

	if (ms == 0 || ms >= PS_OWNER_TIMEOUT_LONG_MS || !p->env->ops->beat)
		return;
	if (ms < PS_OWNER_TIMEOUT_MIN_MS)
		ms = PS_OWNER_TIMEOUT_MIN_MS;
	p->env->ops->beat(m->control, ps_ms(ms) / 4);
}

/* Notes the identity of the daemon, and the image that it showed in its answer to a Status. */
static void note_daemon_and_image_ids(const struct perseas *p, struct ps_mirror *m,
                                      const Perseas__Reply *reply)
{
	const Perseas__Header *header;

	ps_copy_daemon_id(m->daemon_id, reply);
	if (reply->body_case != PERSEAS__REPLY__BODY_STORE)
		return;
	header = reply->store->status->header;
	if (!strcmp(header->store, p->store))
		memcpy(m->shown_image_id, header->image_id.data, PS_ID_SIZE);
}

int ps_await_answer(struct perseas *p, struct ps_mirror *m, uint64_t until_ns,
                    Perseas__Reply **reply, int *fds, struct ps_error *error)
{
	int got[PS_REGIONS_MAX];
	unsigned count = 0, expected;
	const Perseas__Grant *grant;
	int rc = 0;

	assert(m->control);
	while (!rc && m->pending_answers.answer_count)
		rc = ps_pending_take_answer(p, m, until_ns, error);
	if (!rc)
		rc = p->env->ops->receive(m->control, until_ns, reply, got, &count, error);
	if (rc) {
		/* The connection is over. Wakes the keeper, which begins the session again. */
		p->env->ops->wake(p->env, PS_KEEPER);
		return rc;
	}
	note_daemon_and_image_ids(p, m, *reply);
	rc = ps_asked_refusal(*reply, m->address.text, error);
	grant = rc ? NULL : ps_reply_grant(*reply);
	expected = grant ? grant->descriptors : 0;
	if (!rc && count != expected)
		rc = ps_error_set(error, PERSEAS_EPROTOCOL,
		                  "%s sent %u descriptors, and its answer accounts for %u",
		                  m->address.text, count, expected);
	if (!rc && grant)
		begin_frequent_heartbeats(p, m, grant);
	if (rc || !fds) {
		close_descriptors(got, count);
		if (rc) {
			perseas__reply__free_unpacked(*reply, NULL);
			*reply = NULL;
		}
		return rc;
	}
	memcpy(fds, got, count * sizeof(*fds));
	return 0;
}

/* Sends a request, and wakes the keeper if the connection is over. */
static int send_request(struct perseas *p, struct ps_mirror *m, const Perseas__Request *request,
                        struct ps_error *error)
{
	const int rc = p->env->ops->send(m->control, request, error);

	if (rc)
		p->env->ops->wake(p->env, PS_KEEPER);
	return rc;
}

int ps_ask_mirror_and_wait(struct perseas *p, struct ps_mirror *m, const Perseas__Request *request,
                           uint64_t until_ns, Perseas__Reply **reply, int *fds,
                           struct ps_error *error)
{
	int rc;

	*reply = NULL;
	if (!m->control)
		return ps_error_set(error, PERSEAS_EUNREACHABLE, "%s is not connected",
		                    m->address.text);
	rc = send_request(p, m, request, error);
	return rc ? rc : ps_await_answer(p, m, until_ns, reply, fds, error);
}

uint64_t ps_answer_extended_deadline(const struct perseas *p, const struct ps_mirror *m,
                                     uint64_t until_ns)
{
	const uint64_t worked_at = p->env->ops->last_progress_at(m->control);
	const uint64_t again = worked_at + ps_ms(p->options.connect_timeout_ms);

	return worked_at && again > until_ns ? again : until_ns;
}

void ps_round_send(struct perseas *p, struct ps_round *round)
{
	memset(round->replies, 0, sizeof(round->replies));
	round->sent_at = ps_now(p);
	round->answered_mirrors = 0;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		memset(round->fds[i], 0xff, sizeof(round->fds[i]));
		if (!round->is_asked[i])
			continue;
		if (!m->control && !round->errors[i].code)
			ps_error_set(&round->errors[i], PERSEAS_EUNREACHABLE, "%s is not connected",
			             m->address.text);
		else if (m->control)
			send_request(p, m, round->requests[i], &round->errors[i]);
	}
}

static bool is_answer_awaited(const struct ps_round *round, unsigned i)
{
	return round->is_asked[i] && !round->errors[i].code && !round->replies[i];
}

/* Takes the answers of this round that have come. */
static void take_arrived_answers(struct perseas *p, struct ps_round *round, uint64_t until_ns)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (!is_answer_awaited(round, i) || !p->env->ops->answered(m->control))
			continue;
		round->answered_mirrors |= ps_mirror_bit(p, m);
		ps_await_answer(p, m, until_ns, &round->replies[i], round->fds[i],
		                &round->errors[i]);
	}
}

/* Returns the deadline of the pending answers, or 0 if none is pending. If `extends_on_progress`,
 * each sign of progress extends the deadline by the initial wait. */
static uint64_t round_wait_end(struct perseas *p, const struct ps_round *round, uint64_t until_ns,
                               bool extends_on_progress)
{
	const uint64_t patience = until_ns > round->sent_at ? until_ns - round->sent_at : 0;
	uint64_t limit = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		uint64_t again = until_ns;

		if (!is_answer_awaited(round, i))
			continue;
		if (extends_on_progress)
			again = p->env->ops->last_progress_at(p->mirrors[i].control) + patience;
		again = again > until_ns ? again : until_ns;
		limit = again > limit ? again : limit;
	}
	return limit;
}

/* Sleeps until an answer may have come. A commit may sleep as the committer at the same time, so
 * this thread must not take its wakes. */
static void sleep_until_answer(struct perseas *p, const struct ps_round *round, uint64_t until_ns)
{
	struct pollfd fds[PS_MIRRORS_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		if (!is_answer_awaited(round, i))
			continue;
		if (p->env->ops->fill_control_pollfd(p->mirrors[i].control, &fds[count]))
			count++;
		else if (until_ns > ps_now(p) + CONNECT_POLL)
			until_ns = ps_now(p) + CONNECT_POLL;
	}
	p->env->ops->pause(p->env, PS_UNWOKEN, fds, count, until_ns);
}

uint32_t ps_round_await(struct perseas *p, struct ps_round *round, uint64_t until_ns,
                        bool extends_on_progress)
{
	uint64_t limit;

	for (;;) {
		take_arrived_answers(p, round, until_ns);
		limit = round_wait_end(p, round, until_ns, extends_on_progress);
		if (ps_now(p) >= limit)
			return round->answered_mirrors;
		sleep_until_answer(p, round, limit);
	}
}

void ps_round_receive(struct perseas *p, struct ps_round *round, uint64_t until_ns)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (is_answer_awaited(round, i))
			ps_await_answer(p, &p->mirrors[i], until_ns, &round->replies[i],
			                round->fds[i], &round->errors[i]);
}

void ps_round_run(struct perseas *p, struct ps_round *round, uint64_t until_ns)
{
	ps_round_send(p, round);
	ps_round_receive(p, round, until_ns);
}

void ps_round_ask_status(struct perseas *p, uint32_t set, bool to_open, struct ps_round *round,
                         uint64_t until_ns)
{
	Perseas__StatusRequest asks[2] = { PERSEAS__STATUS_REQUEST__INIT,
		                           PERSEAS__STATUS_REQUEST__INIT };
	const Perseas__Request requests[2] = { PS_REQUEST(status, STATUS, &asks[0]),
		                               PS_REQUEST(status, STATUS, &asks[1]) };

	asks[true].rdma = true;
	asks[false].store = asks[true].store = p->store;
	memset(round->is_asked, 0, sizeof(round->is_asked));
	memset(round->errors, 0, sizeof(round->errors));
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		round->is_asked[i] = set >> i & 1;
		round->requests[i] = &requests[to_open && m->address.route == PS_ROUTE_RDMA];
		if (round->is_asked[i] && !m->control)
			m->control = p->env->ops->connect(p->env, &m->address, &round->errors[i]);
	}
	ps_round_run(p, round, until_ns);
}

void ps_round_free(struct ps_round *round)
{
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++) {
		if (round->replies[i]) {
			perseas__reply__free_unpacked(round->replies[i], NULL);
			close_descriptors(round->fds[i], PS_REGIONS_MAX);
		}
		round->replies[i] = NULL;
	}
}

uint32_t ps_ask_mirrors_and_wait(struct perseas *p, uint32_t set, const Perseas__Request *request)
{
	struct ps_round round;
	uint32_t granted = 0;

	memset(round.errors, 0, sizeof(round.errors));
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++) {
		round.is_asked[i] = set >> i & 1 && !ps_pending_is_overdue(p, &p->mirrors[i]);
		round.requests[i] = request;
	}
	ps_round_run(p, &round, ps_answer_deadline(p));
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (round.replies[i])
			granted |= (uint32_t)1 << i;
	ps_round_free(&round);
	return granted;
}

uint32_t ps_await_claim_confirmations(struct perseas *p, uint32_t set)
{
	Perseas__ConfirmRequest ask = PERSEAS__CONFIRM_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(confirm, CONFIRM, &ask);

	return ps_ask_mirrors_and_wait(p, set, &request);
}

bool ps_claim_wants_rdma(const struct perseas *p, const struct ps_mirror *m)
{
	return p->env->verbs && m->address.scheme == PS_SCHEME_TCP &&
	       m->address.route != PS_ROUTE_TCP;
}

void ps_claim_fill_request(struct perseas *p, struct ps_mirror *m, Perseas__ClaimRequest *claim,
                           Perseas__Request *request)
{
	perseas__claim_request__init(claim);
	claim->store = p->store;
	claim->epoch = p->epoch;
	claim->owner = (ProtobufCBinaryData){ PS_ID_SIZE, p->owner };
	claim->store_id = (ProtobufCBinaryData){ PS_ID_SIZE, p->store_id };
	claim->takeover = !p->is_open && p->options.flags & PERSEAS_TAKEOVER;
	claim->quiesced = p->is_open;
	claim->shared = m->address.scheme == PS_SCHEME_UNIX;
	claim->rdma = ps_claim_wants_rdma(p, m);
	if (ps_known_daemon_id(m->daemon_id)) {
		claim->daemon = (ProtobufCBinaryData){ PS_ID_SIZE, m->daemon_id };
		if (ps_known_daemon_id(m->shown_image_id))
			claim->image_id = (ProtobufCBinaryData){ PS_ID_SIZE, m->shown_image_id };
	}
	*request = PS_REQUEST(claim, CLAIM, claim);
}

/* Attaches over the fabric at index m->attaching.failed_fabric_count. `waits_until_up`: waits until
 * the data path is up. */
static int attach_over_fabric(struct perseas *p, struct ps_mirror *m, const Perseas__Grant *grant,
                              const int *fds, bool waits_until_up, struct ps_error *error)
{
	struct ps_attaching *a = &m->attaching;
	const struct ps_fabric *fabric = p->env->ops->fabric(p->env, &m->address, grant,
	                                                     a->failed_fabric_count);

	/* The last fabric gets all the remaining time. An earlier one gets half of the timeout. */
	if (!p->env->ops->fabric(p->env, &m->address, grant, a->failed_fabric_count + 1))
		a->deadline += ps_ms(p->options.connect_timeout_ms) / 2;
	m->fabric = fabric;
	if (waits_until_up || !fabric->attach_begin)
		m->link = fabric->attach(p->env, &m->address, grant, fds, p->epoch, a->deadline,
		                         error);
	else
		m->link = fabric->attach_begin(p->env, &m->address, grant, fds, p->epoch, error);
	return m->link ? 0 : error->code;
}

/* Tries the remaining fabrics after one failed with PERSEAS_ERDMA. Returns 0 or an error code. */
static int attach_over_remaining_fabrics(struct perseas *p, struct ps_mirror *m,
                                         const Perseas__Grant *grant, const int *fds,
                                         bool waits_until_up, struct ps_error *error)
{
	struct ps_attaching *a = &m->attaching;
	int code = error->code;

	while (code == PERSEAS_ERDMA) {
		const struct ps_fabric *next = p->env->ops->fabric(p->env, &m->address, grant,
		                                                   ++a->failed_fabric_count);

		if (!next)
			break;
		ps_detour_begin(p, m, grant, next, error);
		if (a->deadline < ps_now(p))
			a->deadline = ps_now(p);
		code = attach_over_fabric(p, m, grant, fds, waits_until_up, error);
	}
	return code;
}

/* Attaches over the best fabric, or over the next one if the best is avoided or fails. `wait`:
 * waits until the data path is up. Returns 0 or an error code. */
static int attach_over_best_fabric(struct perseas *p, struct ps_mirror *m,
                                   const Perseas__Grant *grant, const int *fds, bool waits_until_up,
                                   struct ps_error *error)
{
	ps_assert_admin(p);
	assert(!m->is_active && !m->link);
	ps_lifeline_note_grant(m, grant);
	m->detour_reason[0] = 0;
	m->attaching.failed_fabric_count = 0;
	m->attaching.deadline = ps_now(p) + ps_ms(p->options.connect_timeout_ms) / 2;
	if (p->env->ops->fabric(p->env, &m->address, grant, 1) &&
	    ps_detour_is_needed(m, p->env->ops->fabric(p->env, &m->address, grant, 0), error))
		return attach_over_remaining_fabrics(p, m, grant, fds, waits_until_up, error);
	return attach_over_fabric(p, m, grant, fds, waits_until_up, error)
	               ? attach_over_remaining_fabrics(p, m, grant, fds, waits_until_up, error)
	               : 0;
}

int ps_mirror_attach(struct perseas *p, struct ps_mirror *m, const Perseas__Grant *grant,
                     const int *fds, struct ps_error *error)
{
	return attach_over_best_fabric(p, m, grant, fds, true, error);
}

int ps_attach_begin(struct perseas *p, struct ps_mirror *m, const Perseas__Grant *grant,
                    const int *fds, struct ps_error *error)
{
	return attach_over_best_fabric(p, m, grant, fds, false, error);
}

int ps_attach_continue(struct perseas *p, struct ps_mirror *m, const Perseas__Grant *grant,
                       struct ps_error *error)
{
	const uint64_t start = ps_now(p);
	int rc;

	ps_assert_admin(p);
	assert(!m->is_active);
	rc = m->fabric->attach_step ? m->fabric->attach_step(m->link, m->attaching.deadline, error)
	                            : 1;
	/* A step does not wait: its time was this host's work, not the mirror's silence. */
	m->attaching.deadline += ps_now(p) - start;
	if (rc >= 0)
		return rc;
	ps_link_end(p, m);
	/* Passes no descriptors: only shared memory uses them, and it is never tried after another
	 * fabric. */
	return attach_over_remaining_fabrics(p, m, grant, NULL, false, error);
}

int ps_mirror_regrant(struct perseas *p, struct ps_mirror *m, const Perseas__Grant *grant,
                      const int *fds, struct ps_error *error)
{
	int rc;

	ps_assert_admin(p);
	if (!m->link) {
		for (unsigned i = 0; i < grant->descriptors; i++)
			close(fds[i]);
		return ps_error_set(error, PERSEAS_EUNREACHABLE, "%s is not connected",
		                    m->address.text);
	}
	pthread_mutex_lock(&p->lock);
	ps_demand_drop_link(p, m);
	rc = m->fabric->update(m->link, grant, fds, error);
	ps_mirrors_decide_staging(p);
	pthread_mutex_unlock(&p->lock);
	return rc;
}
