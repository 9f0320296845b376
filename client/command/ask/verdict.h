/*
 * verdict.h - the first line of perseas status: can the store's owner commit, can the store be
 * opened, and which loss of a mirror, or of all mirrors of a host, would change that? cmd_status.c
 * calls it. It must never ask a mirror: it judges the images, and judges them again without those
 * of lost mirrors.
 */
#ifndef PERSEAS_COMMAND_VERDICT_H
#define PERSEAS_COMMAND_VERDICT_H

#include "ask.h"
#include "../../../proto/control/loss.h"

/* Whether something is possible; a smaller value is worse. */
enum ps_can { PS_CAN_NOT, PS_CAN_UNKNOWN, PS_CAN };

struct ps_verdict {
	/* Whether W mirrors are live for the owner or, without an owner, for the next open. Unknown
	 * if that depends on mirrors which the owner calls live but which did not answer the
	 * command. */
	enum ps_can commit;
	uint32_t live_but_silent; /* mirrors that the owner calls live and that did not answer */
	bool open; /* the store can be opened now; while an owner lives, by a takeover */
	uint32_t only_in_memory; /* mirrors whose image a restart of their daemon would lose */
	/* Mirrors whose loss alone turns a yes into a no. Images that a restart would lose, or that
	 * the owner calls lost, count as lost already. */
	uint32_t single_losses;
	/* The smallest loss that turns each yes into a no; unused if the answer is no already. */
	struct ps_loss commit_loss, open_loss;
};

/* Fills in the verdict on the store of these images. */
void ps_verdict_fill(struct ps_verdict *verdict, const struct ps_images *images);

/* Returns how many mirrors, in the worst case, can be lost before a commit or an open fails; 0 if
 * either fails now. Images that a restart would lose, or that the owner calls lost, count as lost.
 */
unsigned ps_verdict_count_bearable_losses(const struct ps_images *images);
/* Returns how many mirrors can be lost, in the worst case, while every member of the rosters in
 * force is up to date. */
unsigned ps_verdict_count_promised_losses(const struct ps_images *images);

/* Returns the owner's report about the member, or NULL. */
const Perseas__MirrorReport *ps_verdict_find_report(const struct ps_images *images,
                                                    const Perseas__StoreStatus *owner,
                                                    const Perseas__Member *member);

/* Returns true if the store has an owner that calls the member live. */
bool ps_verdict_is_member_live(const struct ps_images *images, const Perseas__Member *member);

/* Returns a member of the settled roster without a whole image, or whose image is behind the
 * store's state, or NULL. */
const Perseas__Member *ps_verdict_find_member_behind(const struct ps_images *images);

/* Returns true if the roster is settled, the store can be used, and each member has a whole image,
 * which the owner calls live, or which the last owner did not leave behind. */
bool ps_verdict_is_store_whole(const struct ps_images *images);

/* Returns " (reason)" if the store cannot be opened, else "". */
const char *ps_verdict_explain_not_openable(const struct ps_images *images);

/* Adds a boolean with this key to the current object, or null for PS_CAN_UNKNOWN. */
void ps_can_json(struct ps_json *json, const char *key, enum ps_can can);

/* Prints "next loss that hurts: host h1: mirrors a and b". Prints two such clauses if different
 * losses end commits and opens, and nothing if both are impossible already. */
void ps_verdict_print_losses(FILE *out, const struct ps_verdict *verdict,
                             const struct ps_images *images);

/* Returns true if the smallest loss that hurts is several mirrors of one domain, or is not known.
 */
bool ps_verdict_loses_whole_domain(const struct ps_verdict *verdict);

/* Print the verdict as the first lines of perseas status, or as members of a JSON object. */
void ps_verdict_print(const struct ps_verdict *verdict, const struct ps_images *images);
void ps_verdict_json(struct ps_json *json, const struct ps_verdict *verdict,
                     const struct ps_images *images);

#endif
