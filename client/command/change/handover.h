/*
 * handover.h - what became of a planned handover, from what the mirrors noted of it. perseas move
 * calls it.
 */
#ifndef PERSEAS_COMMAND_HANDOVER_H
#define PERSEAS_COMMAND_HANDOVER_H

#include "../ask/ask.h"

/* Identifies a handover. */
struct ps_handover {
	uint8_t id[PS_ID_SIZE];
	uint8_t to[PS_OWNER_MARK]; /* of the standby */
	uint64_t epoch;            /* of the owner that is asked */
};

struct ps_outcome {
	unsigned known;                /* mirrors that know of it */
	unsigned ended;                /* of these, that saw the owner's end */
	unsigned opened;               /* of these, that saw the next one have the store open */
	bool released;                 /* the owner let go by itself, by all that saw its end */
	uint64_t closing_ns, pause_ns; /* the longest */
	uint64_t seq;                  /* at which the next one began */
	uint64_t lost;                 /* transactions that W had, and the next one has not */
	uint64_t in_doubt;             /* that some had, and not W, when the owner ended */
	uint64_t epoch;                /* the highest that was promised */
	bool planned;                  /* the owner that lives is the standby's */
	const char *address; /* of the next owner, as the images have it; NULL: none lives */
};

/* Fills in the outcome by what the mirrors noted. */
void ps_outcome_take(struct ps_outcome *outcome, const struct ps_handover *handover,
                     const struct ps_images *images);

/* Returns true if W mirrors have seen the next owner open the store, or all mirrors that still know
 * of the handover have. A mirror that was restarted does not know of it. */
bool ps_outcome_is_over(const struct ps_outcome *outcome, const struct ps_images *images);

#endif
