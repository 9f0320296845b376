/*
 * contract_fabric.h - the contract of fabric.h, clause by clause (F1 to F20): what every
 * fabric must do. test_contract_fabric.c has those of the library keep it, each
 * with a mirror of its own, and test_contract_fabric_sim.c those of the simulator; a clause that
 * one of these breaks is one on which no schedule of the simulator shows anything.
 *
 * Each fabric comes with a stage: one mirror, whose memory can be looked at, and which can be
 * stopped and be moved on step by step. What a stage's world cannot do is NULL, and the clauses ask
 * for no more then.
 *
 * begin_route_test is asked by tests/unit/test_fabric_verbs_steps.c; only one fabric has it.
 */
#ifndef PERSEAS_TESTS_CONTRACT_FABRIC_H
#define PERSEAS_TESTS_CONTRACT_FABRIC_H

#include "../../client/core/env.h"
#include "contract.h"

enum {
	/* Bytes of the mirror's log region, of its segment 0, and of the memory that chains are
	 * sent from. */
	STAGE_LOG = PS_RING_OFFSET + 4096,
	STAGE_SEGMENT = 192 << 10,
	STAGE_RING = 256 << 10,
};

struct fabric_stage {
	const struct ps_fabric *fabric;
	struct ps_env *env;
	struct ps_address address;
	uint8_t *ring;     /* chains are sent from here; page-aligned */
	uint64_t short_ns; /* what a clause waits for in vain */
	unsigned flood;    /* chains of 96 KiB, more than the way to the mirror holds */

	uint64_t (*now)(struct fabric_stage *stage);
	/* Waits for *fd, or for nothing, until until_ns. True: it is ready. */
	bool (*pause)(struct fabric_stage *stage, struct pollfd *fd, uint64_t until_ns);

	/* Returns what the mirror grants to a new session, with descriptors; valid until the next
	 * call. */
	const Perseas__Grant *(*grant)(struct fabric_stage *stage, int *fds, uint64_t *epoch);
	/* Returns how many of the granted descriptors are still open. */
	unsigned (*left)(struct fabric_stage *stage);
	/* The mirror's memory. */
	uint8_t *(*memory)(struct fabric_stage *stage, uint32_t region);

	/* Make the mirror take and answer nothing, and go on, also with what arrived meanwhile.
	 * NULL: the mirror takes no part. */
	void (*stop)(struct fabric_stage *stage);
	void (*go)(struct fabric_stage *stage);
	/* Makes a stopped mirror take a few bytes of posted writes. */
	void (*step)(struct fabric_stage *stage);
	/* For fabrics in which the mirror takes no part: makes the next posts call look(arg) when a
	 * source is about to be read for the first time. */
	void (*watch)(struct fabric_stage *stage, void (*look)(void *arg), void *arg);

	/* The mirror ends the link. It promises another owner, and says so (NULL: it has no way to
	 * say it). */
	void (*cut)(struct fabric_stage *stage);
	void (*fence)(struct fabric_stage *stage);

	/* Clauses that this fabric cannot keep (tests/sim/contract.h says why). */
	bool trusts_places;  /* F5: it takes a write outside of a region as it is */
	bool trusts_updates; /* F10: it takes any grant */
};

struct fabric_clause {
	const char *name;
	void (*check)(struct fabric_stage *stage);
};

extern const struct fabric_clause fabric_clauses[];
extern const unsigned fabric_clause_count;

/* The stages of the library's fabrics; the end of each is its own. tcp: with what both ends show
 * and trust, or NULL for plain text; the caller's. verbs: phased, over a fabric that reorders
 * writes; flush, for memory where a write counts when a read after it has come back. */
struct fabric_stage *fabric_stage_tcp(struct ps_tls *owner, struct ps_tls *mirror);
struct fabric_stage *fabric_stage_shm(void);
struct fabric_stage *fabric_stage_verbs(bool phased, bool flush);
void fabric_stage_tcp_end(struct fabric_stage *stage);
void fabric_stage_shm_end(struct fabric_stage *stage);
/* Returns what the fake devices object to, or "". */
const char *fabric_stage_verbs_end(struct fabric_stage *stage);

/* What all stages share: a grant of a log and a segment, descriptors of files in place of a
 * mirror's, and real time. */
struct stage_grant {
	Perseas__Region regions[3], *list[3];
	Perseas__Grant grant;
	uint8_t token[PS_ID_SIZE];
};

void stage_grant_init(struct stage_grant *grant);
void stage_add_region(struct stage_grant *grant, uint32_t id, uint64_t length);
int stage_file(uint64_t length);
unsigned stage_files(void); /* that are open in this process */
uint64_t stage_now(struct fabric_stage *stage);
bool stage_pause(struct fabric_stage *stage, struct pollfd *fd, uint64_t until_ns);

#endif
