/*
 * The clauses of client/core/fabric.h that say how a link begins, and what it is granted.
 */
#include "contract_clause.h"

/* F7, F8 */
void attach_ends_by_its_time(struct fabric_stage *s)
{
	struct ps_error error = { 0 };
	int fds[PS_REGIONS_MAX];
	struct ps_link *link;
	uint64_t epoch, until;
	const Perseas__Grant *grant = s->grant(s, fds, &epoch);

	stop(s);
	until = s->now(s) + s->short_ns;
	link = s->fabric->attach(s->env, &s->address, grant, fds, epoch, until, &error);
	if (s->stop) {
		CHECK(!link);
		CHECK(s->now(s) >= until && s->now(s) < until + FAR / 2);
		CHECK(error.code == PERSEAS_EUNREACHABLE || error.code == PERSEAS_ERDMA);
		CHECK(strstr(error.text, s->address.text));
	}
	s->fabric->detach(link);
	CHECK(s->left(s) == 0);
	go(s);
	let_pass(s);
	link = attach(s);
	CHECK(link);
	s->fabric->detach(link);
	CHECK(s->left(s) == 0);
}

/* F3, F7, F8: where the promise is read, it is read by attach, too. */
void attach_tells_whose_the_promise_is(struct fabric_stage *s)
{
	for (unsigned fenced = 0; fenced < 2 && !s->stop; fenced++) {
		struct ps_error error = { 0 };
		int fds[PS_REGIONS_MAX];
		uint64_t epoch;
		const Perseas__Grant *grant = s->grant(s, fds, &epoch);

		if (fenced)
			s->fence(s);
		else
			s->cut(s);
		CHECK(!s->fabric->attach(s->env, &s->address, grant, fds, epoch, s->now(s) + FAR,
		                         &error));
		CHECK(error.code == (fenced ? PERSEAS_EFENCED : PERSEAS_EUNREACHABLE));
		CHECK(strstr(error.text, s->address.text));
		CHECK(s->left(s) == 0);
	}
}

/* F9, F8, F18, F19: address and grant are the caller's again before the first step. */
void attach_goes_by_steps(struct fabric_stage *s)
{
	struct ps_error error = { 0 };
	const uint64_t far = s->now(s) + FAR;
	int fds[PS_REGIONS_MAX], code;
	struct ps_link *link;
	struct pollfd fd;
	uint64_t epoch, before;

	CHECK(!s->fabric->attach_begin == !s->fabric->attach_step);
	if (!s->fabric->attach_begin)
		return;
	for (unsigned in_time = 0; in_time < 2; in_time++) {
		Perseas__Grant grant = *s->grant(s, fds, &epoch);
		struct ps_address address = s->address;
		uint64_t until = in_time ? far : s->now(s) + s->short_ns;

		if (!in_time)
			stop(s);
		link = s->fabric->attach_begin(s->env, &address, &grant, fds, epoch, &error);
		memset(&address, 0xee, sizeof(address));
		memset(&grant, 0xee, sizeof(grant));
		CHECK(link);
		CHECK(s->left(s) == 0);
		before = s->now(s);
		while ((code = s->fabric->attach_step(link, until, &error)) == 0) {
			CHECK(before < until);
			s->pause(s, s->fabric->waits(link, &fd) ? &fd : NULL, until);
			before = s->now(s);
		}
		CHECK(code == (in_time ? 1 : error.code));
		CHECK(in_time || code == PERSEAS_EUNREACHABLE || code == PERSEAS_ERDMA);
		CHECK(in_time || strstr(error.text, s->address.text));
		s->fabric->detach(link);
		go(s);
	}
}

/* F7, F8, F10 */
void a_grant_that_cannot_be_changes_nothing(struct fabric_stage *s)
{
	struct ps_link *link = attach(s);
	struct ps_error error = { 0 };
	int fds[PS_REGIONS_MAX];
	Perseas__Region none, *list[PS_REGIONS_MAX];
	const Perseas__Grant *good;
	Perseas__Grant bad;
	struct stage_chains c;
	uint64_t epoch;

	CHECK(link);
	if (s->trusts_updates) {
		s->fabric->detach(link);
		return;
	}
	for (unsigned how = 0; how < 2; how++) {
		good = s->grant(s, fds, &epoch);
		bad = *good;
		bad.regions = memcpy(list, good->regions, good->n_regions * sizeof(*list));
		none = *list[bad.n_regions - 1];
		none.length = 0;
		list[bad.n_regions - 1] = &none;
		memset(&error, 0, sizeof(error));
		if (how == 1)
			CHECK(s->fabric->update(link, &bad, fds, &error) == PERSEAS_EPROTOCOL);
		else
			CHECK(!s->fabric->attach(s->env, &s->address, &bad, fds, epoch,
			                         s->now(s) + FAR, &error));
		CHECK(error.code == PERSEAS_EPROTOCOL && error.text[0]);
		CHECK(s->left(s) == 0);
	}
	stage_fill(s, &c);
	CHECK(s->fabric->post(link, &c.chain[0]) == PS_LINK_OK);
	CHECK(completes(s, link, 1));
	good = s->grant(s, fds, &epoch);
	CHECK(s->fabric->update(link, good, fds, &error) == 0);
	CHECK(s->left(s) == 0);
	CHECK(s->fabric->post(link, &c.chain[1]) == PS_LINK_OK);
	CHECK(completes(s, link, 1));
	s->fabric->detach(link);
}
