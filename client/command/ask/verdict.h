/*
 * verdict.h - the first line of perseas status: can the store's owner commit, can the store be
 * opened, and which loss of a mirror, or of all mirrors of a host, would change that? cmd_status.c
 * calls it. It must never ask a mirror: it judges what the images say, and what would be told
 * without some of them.
 */
#ifndef PERSEAS_COMMAND_VERDICT_H
#define PERSEAS_COMMAND_VERDICT_H

#include "ask.h"
#include "../place/loss.h"

enum ps_can { PS_CAN_NOT, PS_CAN_UNKNOWN, PS_CAN };

struct ps_verdict {
	/* Are W mirrors live for the owner, or, without one, for who opens the store? Unknown: only
	 * with some that the owner calls live and that did not answer the command. */
	enum ps_can commit;
	uint32_t unheard; /* these mirrors of the peers, whatever `commit` is */
	bool open;        /* the next owner could open it now, from a live one by a takeover */
	uint32_t astray; /* mirrors of the peers whose image a restart of their daemon would lose */
	/* Mirrors of the peers, the loss of any of which makes a yes a no, if those that are astray
	 * are lost, too, and those whose image the owner calls lost. */
	uint32_t hurts;
	/* The smallest loss that makes each yes a no; unused where the answer is no already. */
	struct ps_loss commit_loss, open_loss;
};

void ps_verdict_reach(struct ps_verdict *verdict, const struct ps_images *images);

/* Returns how many mirrors, whichever they are, can be lost before a commit or an open fails, or 0
 * if one of these fails now. Counts images that a restart would lose as lost, and those that the
 * owner calls lost. */
unsigned ps_verdict_bears(const struct ps_images *images);
/* Returns how many could be lost if every member of the rosters in force were up to date. */
unsigned ps_verdict_promise(const struct ps_images *images);

/* Returns what the owner reports of the member, or NULL if it reports nothing. */
const Perseas__MirrorReport *ps_verdict_report(const struct ps_images *images,
                                               const Perseas__StoreStatus *owner,
                                               const Perseas__Member *member);

/* Returns true if the roster is settled, and each member of it has a whole image, which the owner,
 * if there is one, calls live. */
bool ps_verdict_whole(const struct ps_images *images);

/* Returns why the store cannot be opened, in brackets behind a space, or "" if it can. */
const char *ps_verdict_why(const struct ps_images *images);

/* Adds a boolean, or null if it is not known. */
void ps_can_json(struct ps_json *json, const char *key, enum ps_can can);

/* Prints "next loss that hurts: host h1: mirrors a and b". Prints two such clauses if commits and
 * opens end with different losses, and nothing if both are impossible already. */
void ps_verdict_print_losses(FILE *out, const struct ps_verdict *verdict,
                             const struct ps_images *images);

/* Returns true if no mirror alone is the smallest loss that hurts, but those of one domain are, or
 * if that is not known. */
bool ps_verdict_hurts_together(const struct ps_verdict *verdict);

void ps_verdict_print(const struct ps_verdict *verdict, const struct ps_images *images);
void ps_verdict_json(struct ps_json *json, const struct ps_verdict *verdict,
                     const struct ps_images *images);

#endif
