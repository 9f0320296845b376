/*
 * pager_source.h - a mirror that a pager of the tests asks, over one control connection: what the
 * simulator's (tests/sim/pager_sim.c) and that of the unit tests (pager_direct.c) share. When
 * something is asked, and when an answer is taken, is theirs.
 */
#ifndef PERSEAS_TESTS_PAGER_SOURCE_H
#define PERSEAS_TESTS_PAGER_SOURCE_H

#include "../../client/core/demand.h"
#include "../../client/core/env.h"

enum {
	PAGER_ANSWERS = 3,    /* the store's status, bytes, and its status once more */
	PAGER_NOBODYS = 0xee, /* missing memory has this in every byte, and no mirror does */
};

struct pager_source {
	bool leads;
	struct ps_address address;
	struct ps_control *control;
	bool asking;                     /* answers are due */
	struct ps_fetch_request missing; /* what was asked for */
	unsigned answered;
	Perseas__Reply *answers[PAGER_ANSWERS];
};

/* Asks for one of the three. Returns false if the connection ended. */
bool pager_source_ask_status(const struct ps_env_ops *ops, struct pager_source *source);
bool pager_source_ask_bytes(const struct ps_env_ops *ops, struct pager_source *source);

/* Takes the next of the three, which has come. False: it is a refusal, or none comes any more. */
bool pager_source_take(const struct ps_env_ops *ops, struct pager_source *source);

/* Returns the three answers, valid until the source is asked again or dropped. */
void pager_source_tell(const struct pager_source *source, struct ps_fetch_answer *fetched);

void pager_source_forget(struct pager_source *source); /* what it answered */
void pager_source_drop(const struct ps_env_ops *ops, struct pager_source *source);
void pager_source_lead(const struct ps_env_ops *ops, struct pager_source *source,
                       const struct ps_known_addresses *way);

/* For a pager whose memory cannot be guarded, and whose addresses need nobody to look them up. */
const char *pager_has_no_limit(const struct ps_pager *pager);
bool pager_has_no_faults(struct ps_pager *pager, uint64_t *address);
bool pager_gathers_all(struct ps_pager *pager, uint8_t *base, uint64_t size);
int pager_looks_up_nothing(struct ps_pager *pager, const struct ps_address *address,
                           struct ps_known_addresses *way, struct ps_error *error);

#endif
