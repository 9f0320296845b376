/*
 * handover.h - the outcome of a planned handover, from the records of it that mirrors have. perseas
 * move calls it.
 */
#ifndef PERSEAS_COMMAND_HANDOVER_H
#define PERSEAS_COMMAND_HANDOVER_H

#include "../ask/ask.h"

/* Identifies a handover. */
struct ps_handover {
	uint8_t id[PS_ID_SIZE];
	uint8_t to[PS_OWNER_MARK]; /* mark of the standby that gets the store */
	uint64_t epoch;            /* epoch of the owner that is asked to release the store */
};

/* What the mirrors recorded of a handover. "Next owner" is the one after the owner that was asked.
 */
struct ps_handover_outcome {
	unsigned known_count;  /* mirrors that have a record of the handover */
	unsigned ended_count;  /* mirrors that saw the old owner's session end */
	unsigned opened_count; /* mirrors that saw the next owner have the store open */
	/* The owner closed the store: it told a mirror so. Others may have lost their connection to
	 * the owner before. */
	bool released;
	/* Longest time from the request to the end of the session, and from there to the next
	 * owner's open. */
	uint64_t closing_ns, pause_ns;
	uint64_t seq;  /* seq at which the next owner began */
	uint64_t lost; /* transactions that W mirrors held and the next owner lacks */
	/* Transactions that some mirrors held when the old owner ended, but fewer than W. */
	uint64_t in_doubt;
	uint64_t epoch;      /* the highest promised epoch */
	bool standby_owns;   /* the live owner is the chosen standby's */
	const char *address; /* address of the next owner, in the images; NULL: no owner lives */
};

/* Fills in the outcome from the records in the images. */
void ps_handover_outcome_collect(struct ps_handover_outcome *outcome,
                                 const struct ps_handover *handover,
                                 const struct ps_images *images);

/* Returns true if W mirrors have seen the next owner open the store, or all mirrors that still know
 * of the handover have. A mirror that was restarted does not know of it. */
bool ps_handover_outcome_is_final(const struct ps_handover_outcome *outcome,
                                  const struct ps_images *images);

#endif
