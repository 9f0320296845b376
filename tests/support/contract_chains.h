/*
 * contract_chains.h - the chains that the clauses of contract_fabric.c post, and how much of them
 * a mirror's memory shows.
 */
#ifndef PERSEAS_TESTS_CONTRACT_CHAINS_H
#define PERSEAS_TESTS_CONTRACT_CHAINS_H

#include "contract_fabric.h"

enum {
	STAGE_CHAINS = 3,
	STAGE_SLOT = 40,
	STAGE_SLOT_AT = PS_RING_OFFSET + 3584,
};

/* Transactions, each with its record, two ranges and its slot, on pages of their own in the ring:
 * every byte of the first one is 1, and so on. */
struct stage_chains {
	struct ps_write writes[STAGE_CHAINS][3];
	struct ps_chain chain[STAGE_CHAINS];
};

void stage_fill(struct fabric_stage *stage, struct stage_chains *chains);

/* Returns how many bytes of the write's target have this value. */
unsigned stage_there(struct fabric_stage *stage, const struct ps_write *write, uint8_t value);

/* Returns 0 if nothing of a part has arrived, 1 for some of it, 2 for all. Part 3 * chain is the
 * record, + 1 the data, + 2 the slot. */
int stage_arrived(struct fabric_stage *stage, const struct stage_chains *chains, unsigned part);

bool stage_is_whole(struct fabric_stage *stage, const struct stage_chains *chains, unsigned chain);

struct stage_watch {
	struct fabric_stage *stage;
	const struct stage_chains *chains;
	unsigned between; /* looks that found some parts and not the others */
	bool wrong;
};

/* Notes in a struct stage_watch when a part, or a byte of it, arrives before the part in front of
 * it is whole. */
void stage_look(void *watch);

#endif
