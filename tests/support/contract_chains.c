/*
 * contract_chains.c - builds chains of recognisable bytes and finds out how much of each has
 * arrived. The clauses in contract_fabric.c call it. It looks at the mirror's memory only, never
 * at what the link says of itself.
 */
#include "contract_chains.h"

#include <string.h>

enum {
	RECORD = 600,
	FIRST = 64,
	SECOND = 300,
	PARTS = 3 * STAGE_CHAINS,
	RECORD_AT = PS_RING_OFFSET,
};

void stage_fill(struct fabric_stage *s, struct stage_chains *c)
{
	for (unsigned i = 0; i < STAGE_CHAINS; i++) {
		uint8_t *ring = s->ring + (size_t)3 * i * PS_PAGE;
		struct ps_write *w = c->writes[i];

		memset(ring, (int)i + 1, (size_t)3 * PS_PAGE);
		w[0] = (struct ps_write){ ring, RECORD_AT + i * 1024, PS_REGION_LOG, RECORD };
		w[1] = (struct ps_write){ ring + PS_PAGE, i * 2048, PS_REGION_SEGMENT, FIRST };
		w[2] = (struct ps_write){ ring + PS_PAGE + FIRST, i * 2048 + 1000,
			                  PS_REGION_SEGMENT, SECOND };
		c->chain[i] = (struct ps_chain){ w,
			                         3,
			                         1,
			                         { ring + 2 * PS_PAGE, STAGE_SLOT_AT + i * 64,
			                           PS_REGION_LOG, STAGE_SLOT } };
	}
}

unsigned stage_there(struct fabric_stage *s, const struct ps_write *write, uint8_t value)
{
	const uint8_t *at = s->memory(s, write->region) + write->offset;
	unsigned count = 0;

	for (uint32_t i = 0; i < write->length; i++)
		count += at[i] == value;
	return count;
}

int stage_arrived(struct fabric_stage *s, const struct stage_chains *c, unsigned part)
{
	const struct ps_write *writes = c->writes[part / 3];
	const uint8_t value = (uint8_t)(part / 3 + 1);
	unsigned have, whole;

	if (part % 3 == 0) {
		have = stage_there(s, &writes[0], value);
		whole = RECORD;
	} else if (part % 3 == 1) {
		have = stage_there(s, &writes[1], value) + stage_there(s, &writes[2], value);
		whole = FIRST + SECOND;
	} else {
		have = stage_there(s, &c->chain[part / 3].slot, value);
		whole = STAGE_SLOT;
	}
	return have == whole ? 2 : have > 0;
}

bool stage_is_whole(struct fabric_stage *s, const struct stage_chains *c, unsigned chain)
{
	return stage_arrived(s, c, 3 * chain) == 2 && stage_arrived(s, c, 3 * chain + 1) == 2 &&
	       stage_arrived(s, c, 3 * chain + 2) == 2;
}

void stage_look(void *arg)
{
	struct stage_watch *w = arg;
	int before = 2, last = stage_arrived(w->stage, w->chains, PARTS - 1);

	w->between += stage_arrived(w->stage, w->chains, 0) && last < 2;
	for (unsigned part = 0; part < PARTS; part++) {
		int now = stage_arrived(w->stage, w->chains, part);

		w->wrong |= now > 0 && before < 2;
		before = now;
	}
}
