/*
 * contract_clause.h - what the clauses of contract_fabric.c and contract_attach.c are written with.
 */
#ifndef PERSEAS_TESTS_CONTRACT_CLAUSE_H
#define PERSEAS_TESTS_CONTRACT_CLAUSE_H

#include "contract_chains.h"

#include <string.h>

#define FAR 20000000000ULL /* ns: longer than anything here takes */

enum { FLOOD = 96 << 10 }; /* bytes of a chain */

static inline struct ps_link *attach(struct fabric_stage *s)
{
	int fds[PS_REGIONS_MAX];
	struct ps_error error;
	uint64_t epoch;
	const Perseas__Grant *grant = s->grant(s, fds, &epoch);

	return s->fabric->attach(s->env, &s->address, grant, fds, epoch, s->now(s) + FAR, &error);
}

static inline void stop(struct fabric_stage *s)
{
	if (s->stop)
		s->stop(s);
}

static inline void go(struct fabric_stage *s)
{
	if (s->stop)
		s->go(s);
}

static inline void step(struct fabric_stage *s)
{
	if (s->step)
		s->step(s);
}

/* Lets writes in flight arrive. */
static inline void let_pass(struct fabric_stage *s)
{
	s->pause(s, NULL, s->now(s) + s->short_ns / 10);
}

/* Polls until so many chains are told, or the link ends. Returns how many were; *code is what poll
 * said last. */
static inline int await(struct fabric_stage *s, struct ps_link *link, int chains, int *code)
{
	const uint64_t until = s->now(s) + FAR;
	struct pollfd fd;
	int told = 0;

	for (;;) {
		*code = s->fabric->poll(link);
		if (*code > 0)
			told += *code;
		if (*code < 0 || told >= chains || s->now(s) >= until)
			return told;
		if (*code == 0 && s->fabric->waits(link, &fd))
			s->pause(s, &fd, until);
		else if (*code == 0)
			let_pass(s);
	}
}

static inline bool completes(struct fabric_stage *s, struct ps_link *link, int chains)
{
	int code;

	return await(s, link, chains, &code) == chains && code > 0;
}

/* contract_attach.c */
void attach_ends_by_its_time(struct fabric_stage *s);
void attach_tells_whose_the_promise_is(struct fabric_stage *s);
void attach_goes_by_steps(struct fabric_stage *s);
void a_grant_that_cannot_be_changes_nothing(struct fabric_stage *s);

#endif
