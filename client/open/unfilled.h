/*
 * unfilled.h - removes a store whose filler ended before the transaction that fills the store
 * (PROTOCOL.md, "Filling a store"). The command calls it.
 */
#ifndef PERSEAS_CLIENT_UNFILLED_H
#define PERSEAS_CLIENT_UNFILLED_H

#include "../core/env.h"
#include "../perseas.h"
#include "../../proto/image/layout.h"

/*
 * Deletes every image of an unfinished store. store_id: only this store, which the caller made, so
 * that it needs no mark (level 0); NULL: whichever has the name and the mark. Returns 0, also if
 * every mirror answers that nothing of the store with store_id is left. Otherwise returns an error,
 * after which nothing was deleted unless the message says so: EEXIST: the store is not unfinished,
 * or was filled on a mirror; EBUSY: it has a live owner; otherwise a member of its roster did not
 * answer, or refused.
 */
int ps_unfilled_store_remove(struct ps_env *env, const char *store, const char *mirrors,
                             const struct perseas_options *options, const uint8_t *store_id,
                             struct ps_error *error);

#endif
