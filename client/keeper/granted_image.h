/*
 * granted_image.h - judges the image with which a mirror granted its claim again: can the mirror
 * catch up, does it need a whole copy, or must its image be kept? session.c calls this, with admin.
 */
#ifndef PERSEAS_CLIENT_GRANTED_IMAGE_H
#define PERSEAS_CLIENT_GRANTED_IMAGE_H

#include "../core/handle.h"

/* Returns REPLAYING if the ring holds all that the mirror missed. Otherwise the mirror needs a
 * whole copy: returns STALE, or LOST if its image does not count, with *why set. The image must not
 * show a reverted owner (ps_claim_shows_reverted_owner). Caller holds p->lock. */
enum perseas_mirror_state ps_granted_image_judge(struct perseas *p, const struct ps_mirror *m,
                                                 const Perseas__ClaimReply *claim,
                                                 const char **why);

/* Returns why the mirror's image must not be copied over, or NULL if it may be. This owner may have
 * opened the store from an outdated image. Then the store's newest state is on this mirror: as a
 * member of a newer roster, or as an image that does not descend from this owner's rosters. */
const char *ps_granted_image_reason_to_keep(const struct perseas *p, const struct ps_mirror *m);

#endif
