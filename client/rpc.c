/*
 * rpc.c - control messages to one mirror or to many at the same time, and what their
 * answers hand out.
 */
#include "mirror.h"
#include "pulse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	Perseas__Status status;
	int code;
} status_codes[] = {
	{ PERSEAS__STATUS__STATUS_BAD_REQUEST, PERSEAS_EPROTOCOL },
	{ PERSEAS__STATUS__STATUS_NO_STORE, PERSEAS_ENOSTORE },
	{ PERSEAS__STATUS__STATUS_EXISTS, PERSEAS_EEXIST },
	{ PERSEAS__STATUS__STATUS_BUSY, PERSEAS_EBUSY },
	{ PERSEAS__STATUS__STATUS_STALE_EPOCH, PERSEAS_EFENCED },
	{ PERSEAS__STATUS__STATUS_NO_SESSION, PERSEAS_EFENCED },
	{ PERSEAS__STATUS__STATUS_NO_MEMORY, PERSEAS_EMIRRORMEM },
	{ PERSEAS__STATUS__STATUS_DAMAGED, PERSEAS_EDAMAGED },
	{ PERSEAS__STATUS__STATUS_BAD_STATE, PERSEAS_EPROTOCOL },
	{ PERSEAS__STATUS__STATUS_BAD_VERSION, PERSEAS_EVERSION },
	{ PERSEAS__STATUS__STATUS_LIMIT, PERSEAS_ELIMIT },
	{ PERSEAS__STATUS__STATUS_IO, PERSEAS_ESYSTEM },
	{ PERSEAS__STATUS__STATUS_DENIED, PERSEAS_EDENIED },
};

static int check_status(struct ps_mirror *m, const Perseas__Reply *reply, struct ps_error *error)
{
	int code = PERSEAS_EPROTOCOL;

	if (reply->status == PERSEAS__STATUS__STATUS_OK)
		return 0;
	for (size_t i = 0; i < sizeof(status_codes) / sizeof(*status_codes); i++)
		if (status_codes[i].status == reply->status)
			code = status_codes[i].code;
	return ps_error_set(error, code, "%s: %s", m->address.text, reply->message);
}

const Perseas__Grant *ps_grant_of(const Perseas__Reply *reply)
{
	switch (reply->body_case) {
	case PERSEAS__REPLY__BODY_CLAIM:
		return reply->claim->grant;
	case PERSEAS__REPLY__BODY_ADD_SEGMENTS:
		return reply->add_segments->grant;
	case PERSEAS__REPLY__BODY_DROP_SEGMENTS:
		return reply->drop_segments->grant;
	case PERSEAS__REPLY__BODY_REBUILD:
		return reply->rebuild->grant;
	default:
		return NULL;
	}
}

static void close_all(int *fds, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/* Receives one answer; descriptors that no grant accounts for are closed. */
static int receive(struct perseas *p, struct ps_mirror *m, uint64_t until_ns,
                   Perseas__Request__BodyCase asked, Perseas__Reply **reply, int *fds,
                   struct ps_error *error)
{
	int got[PS_REGIONS_MAX];
	unsigned count = 0;
	const Perseas__Grant *grant;
	int rc = m->asked ? ps_pulse_take(p, m, until_ns, error) : 0;

	if (!rc)
		rc = p->env->ops->receive(m->control, until_ns, reply, got, &count, error);
	if (rc)
		return rc;
	rc = check_status(m, *reply, error);
	/* The bodies of requests and of their replies stand in the same order. */
	if (!rc && (int)(*reply)->body_case !=
	                   (int)asked + PERSEAS__REPLY__BODY_LIST - PERSEAS__REQUEST__BODY_LIST)
		rc = ps_error_set(error, PERSEAS_EPROTOCOL, "%s answered another question",
		                  m->address.text);
	grant = rc ? NULL : ps_grant_of(*reply);
	if (!rc && count != (grant ? grant->descriptors : 0))
		rc = ps_error_set(error, PERSEAS_EPROTOCOL,
		                  "%s sent %u descriptors too many or few", m->address.text, count);
	if (rc || !fds) {
		close_all(got, count);
		if (rc) {
			perseas__reply__free_unpacked(*reply, NULL);
			*reply = NULL;
		}
		return rc;
	}
	memcpy(fds, got, count * sizeof(*fds));
	return 0;
}

int ps_ask(struct perseas *p, struct ps_mirror *m, const Perseas__Request *request,
           uint64_t until_ns, Perseas__Reply **reply, int *fds, struct ps_error *error)
{
	int rc;

	*reply = NULL;
	if (!m->control)
		return ps_error_set(error, PERSEAS_EUNREACHABLE, "%s is not connected",
		                    m->address.text);
	rc = p->env->ops->send(m->control, request, error);
	return rc ? rc : receive(p, m, until_ns, request->body_case, reply, fds, error);
}

void ps_round_run(struct perseas *p, struct ps_round *round, uint64_t until_ns)
{
	memset(round->replies, 0, sizeof(round->replies));
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		memset(round->fds[i], 0xff, sizeof(round->fds[i]));
		if (!round->ask[i])
			continue;
		if (!m->control && !round->errors[i].code)
			ps_error_set(&round->errors[i], PERSEAS_EUNREACHABLE, "%s is not connected",
			             m->address.text);
		else if (m->control)
			p->env->ops->send(m->control, round->requests[i], &round->errors[i]);
	}
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (round->ask[i] && !round->errors[i].code)
			receive(p, &p->mirrors[i], until_ns, round->requests[i]->body_case,
			        &round->replies[i], round->fds[i], &round->errors[i]);
}

void ps_round_free(struct ps_round *round)
{
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++) {
		if (round->replies[i]) {
			perseas__reply__free_unpacked(round->replies[i], NULL);
			close_all(round->fds[i], PS_REGIONS_MAX);
		}
		round->replies[i] = NULL;
	}
}

uint32_t ps_ask_set(struct perseas *p, uint32_t set, const Perseas__Request *request)
{
	struct ps_round round;
	uint32_t granted = 0;

	memset(round.errors, 0, sizeof(round.errors));
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++) {
		round.ask[i] = set >> i & 1;
		round.requests[i] = request;
	}
	ps_round_run(p, &round, ps_answer_by(p));
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (round.replies[i])
			granted |= (uint32_t)1 << i;
	ps_round_free(&round);
	return granted;
}

uint32_t ps_confirmed(struct perseas *p, uint32_t set)
{
	Perseas__ConfirmRequest ask = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;

	request.body_case = PERSEAS__REQUEST__BODY_CONFIRM;
	request.confirm = &ask;
	return ps_ask_set(p, set, &request);
}

bool ps_wants_rdma(const struct perseas *p, const struct ps_mirror *m)
{
	return p->env->verbs && m->address.scheme == PS_SCHEME_TCP &&
	       m->address.route != PS_ROUTE_TCP;
}

void ps_claim_request(struct perseas *p, struct ps_mirror *m, bool quiesced,
                      Perseas__ClaimRequest *claim, Perseas__Request *request)
{
	perseas__claim_request__init(claim);
	claim->store = p->store;
	claim->epoch = p->epoch;
	claim->owner = (ProtobufCBinaryData){ PS_ID_SIZE, p->owner };
	claim->store_id = (ProtobufCBinaryData){ PS_ID_SIZE, p->store_id };
	claim->takeover = (p->options.flags & PERSEAS_TAKEOVER) != 0;
	claim->quiesced = quiesced;
	claim->shared = m->address.scheme == PS_SCHEME_UNIX;
	claim->rdma = ps_wants_rdma(p, m);
	perseas__request__init(request);
	request->body_case = PERSEAS__REQUEST__BODY_CLAIM;
	request->claim = claim;
}

/* The best fabric does not work, and another one does instead: people are told why. */
static void take_detour(struct perseas *p, struct ps_mirror *m, const struct ps_fabric *next,
                        struct ps_error *error)
{
	snprintf(m->detour, sizeof(m->detour), "over %s, since %.230s", next->name, error->text);
	if (!p->open)
		ps_report(p, "%s; so it is over %s", error->text, next->name);
	memset(error, 0, sizeof(*error));
}

int ps_mirror_attach(struct perseas *p, struct ps_mirror *m, const Perseas__Grant *grant,
                     const int *fds, struct ps_error *error)
{
	const uint64_t half = ps_ms(p->options.connect_timeout_ms) / 2;
	uint64_t until = ps_now(p) + half;

	m->outstanding = 0;
	m->detour[0] = 0;
	for (unsigned tried = 0;; tried++) {
		const struct ps_fabric *next = p->env->ops->fabric(p->env, &m->address, grant,
		                                                   tried + 1);

		m->fabric = p->env->ops->fabric(p->env, &m->address, grant, tried);
		/* What another may follow has half of the time, and the last one what is left. */
		if (!next)
			until += half;
		m->link = m->fabric->attach(p->env, &m->address, grant, fds, p->epoch, until,
		                            error);
		if (m->link || error->code != PERSEAS_ERDMA || !next)
			return m->link ? 0 : error->code;
		take_detour(p, m, next, error);
		if (until < ps_now(p))
			until = ps_now(p);
	}
}

int ps_mirror_regrant(struct perseas *p, struct ps_mirror *m, const Perseas__Grant *grant,
                      const int *fds, struct ps_error *error)
{
	int rc;

	if (!m->link) {
		for (unsigned i = 0; i < grant->descriptors; i++)
			close(fds[i]);
		return ps_error_set(error, PERSEAS_EUNREACHABLE, "%s is not connected",
		                    m->address.text);
	}
	pthread_mutex_lock(&p->lock);
	rc = m->fabric->update(m->link, grant, fds, error);
	ps_mirrors_staging(p);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

void ps_mirror_disconnect(struct perseas *p, struct ps_mirror *m)
{
	if (m->link)
		m->fabric->detach(m->link);
	m->link = NULL;
	m->outstanding = m->bulk = 0;
	ps_mirror_hang_up(p, m);
}

void ps_mirror_hang_up(struct perseas *p, struct ps_mirror *m)
{
	p->env->ops->disconnect(m->control);
	m->control = NULL;
	m->asked = false;
}
