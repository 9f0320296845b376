/*
 * whereabouts.h - the mirrors of a standby's store that its list does not name, from one thread to
 * the next. The standby notes those that it followed; and while it lends them to the handle that it
 * opens, that handle's roster is noted when it ends, if it was opened: it may have left the list
 * behind while this process was the owner. No open may rely on them, since they may have left the
 * store.
 */
#ifndef PERSEAS_CLIENT_WHEREABOUTS_H
#define PERSEAS_CLIENT_WHEREABOUTS_H

#include "../core/handle.h"

struct ps_whereabouts;

/* NULL: there is no memory. */
struct ps_whereabouts *ps_whereabouts_new(void);
/* Of the two that have it, the standby and the handle, either may end first. NULL is allowed. */
void ps_whereabouts_free(struct ps_whereabouts *known);

/* Until the handle ends, which has not been opened yet. Without memory for that its roster is
 * noted nowhere. */
void ps_whereabouts_lend(struct ps_whereabouts *known, struct perseas *p);

/* Any thread. What was known before is forgotten. */
void ps_whereabouts_set(struct ps_whereabouts *known, const struct ps_places *places);
void ps_whereabouts_get(struct ps_whereabouts *known, struct ps_places *places);

#endif
