/*
 * whereabouts.h - of which mirrors its store's roster was, as the handle knew it that a standby has
 * opened. handle.c notes it when the handle is freed, and the standby asks when it follows the
 * store again: the roster may have left the list behind while this process was the owner.
 */
#ifndef PERSEAS_CLIENT_WHEREABOUTS_H
#define PERSEAS_CLIENT_WHEREABOUTS_H

#include "address.h"
#include "../../proto/control/envelope.h"

struct ps_whereabouts;

/* NULL: there is no memory. */
struct ps_whereabouts *ps_whereabouts_new(void);
/* Another one who has it. NULL stays NULL. */
struct ps_whereabouts *ps_whereabouts_share(struct ps_whereabouts *known);
/* It goes with the last who has it. NULL is allowed. */
void ps_whereabouts_free(struct ps_whereabouts *known);

/* Any thread. What was known before is forgotten; where no roster is known (settled is NULL), or
 * nobody wants to know (known is NULL), it stays. */
void ps_whereabouts_note(struct ps_whereabouts *known, const Perseas__Roster *settled,
                         const Perseas__Roster *next);
void ps_whereabouts_set(struct ps_whereabouts *known, const struct ps_address *addresses,
                        unsigned count);
/* The count. */
unsigned ps_whereabouts_take(struct ps_whereabouts *known,
                             struct ps_address addresses[PS_MIRRORS_MAX]);

#endif
