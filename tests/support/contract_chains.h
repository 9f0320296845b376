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

/* How many bytes where a write goes have this value in the mirror's memory. */
unsigned stage_there(struct fabric_stage *stage, const struct ps_write *write, uint8_t value);

/* How much of a part has arrived (3 * chain and 0 its record, 1 its data, 2 its slot): 0 nothing,
 * 1 some of it, 2 all. */
int stage_arrived(struct fabric_stage *stage, const struct stage_chains *chains, unsigned part);

bool stage_is_whole(struct fabric_stage *stage, const struct stage_chains *chains, unsigned chain);

struct stage_watch {
	struct fabric_stage *stage;
	const struct stage_chains *chains;
	unsigned between; /* looks that found some parts and not the others */
	bool wrong;
};

/* Notes in a struct stage_watch when a part is there, or a byte of it, before the one in front of
 * it is whole. */
void stage_look(void *watch);

#endif
