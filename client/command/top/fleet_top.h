/*
 * fleet_top.h - perseas top --all: a fleet, look after look. Stores that need somebody are told
 * apart from those that are well, by the judgement of perseas status --all, with what changed since
 * the look before. cmd_top.c asks and calls it. It must never wait for a daemon.
 */
#ifndef PERSEAS_COMMAND_FLEET_TOP_H
#define PERSEAS_COMMAND_FLEET_TOP_H

#include "round.h"
#include "../fleet/fleet.h"

/* What changed of a store. */
struct ps_fleet_move {
	double rate;      /* transactions a second since the look before; negative: not known */
	bool gone;        /* it had an owner in a look, and has none since */
	uint64_t gone_ns; /* with gone: for how long */
	bool attention;   /* somebody must look at it: it has a problem, or its owner is gone */
};

/* What a daemon of the fleet tells of itself. */
struct ps_fleet_told {
	const Perseas__HostReply *host; /* NULL: it does not tell */
	const struct ps_error *error;   /* why it has not answered in this round; "": it has */
};

struct ps_fleet_past;

/* Points into the replies that it was made of. Zero to begin. */
struct ps_fleet_top {
	struct ps_fleet fleet;
	struct ps_fleet_told *told;  /* of fleet.daemons */
	struct ps_fleet_move *moves; /* of fleet.stores */
	unsigned attention;          /* of these, how many need it */
	unsigned well_free;          /* of the others, how many have no owner */
	double rate;                 /* of all stores together; negative: not known */
	struct ps_fleet_past *past;  /* what is kept of looks before */
	unsigned past_count;
};

/* Takes the place of the look before. */
void ps_fleet_top_take(struct ps_fleet_top *top, const struct ps_rounds *rounds);

/* The same where fleet.daemons and told are filled in already, at now_ns. Out of memory ends the
 * process, with PS_EXIT_FAILURE. */
void ps_fleet_top_judge(struct ps_fleet_top *top, uint64_t now_ns);
void ps_fleet_top_free(struct ps_fleet_top *top);

/* Has it less than a tenth of its memory left? As the alert PerseasMemoryLow has it. */
bool ps_fleet_top_is_full(const Perseas__HostReply *host);

/* fleet_top_show.c: without the summary, which is ps_fleet_summary(). */
void ps_fleet_top_print(const struct ps_fleet_top *top, FILE *out);
void ps_fleet_top_json(const struct ps_fleet_top *top, uint64_t clock_ns, FILE *out);

#endif
