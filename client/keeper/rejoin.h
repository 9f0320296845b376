/*
 * rejoin.h - the requests that make a mirror's image again: in place if that harms no acknowledged
 * transaction (I8), or beside the old image, and finally Finish, by which it counts. Callers hold
 * admin, or the store is not open yet.
 */
#ifndef PERSEAS_CLIENT_REJOIN_H
#define PERSEAS_CLIENT_REJOIN_H

#include "../core/handle.h"

/* Tells the mirror that its image is about to be changed in place. The caller has checked that W
 * others hold all that was acknowledged. `whole`: all of it is replaced. Returns 0 or an error
 * code. */
int ps_rejoin_begin_in_place(struct perseas *p, struct ps_mirror *m, bool whole,
                             struct ps_error *error);

/* Returns true if the image has the regions and segments that the store has now. A copy in place
 * keeps the image's table of segments, so the contents would get the names of other segments. */
bool ps_rejoin_has_regions_of_store(const struct perseas *p, const Perseas__Header *header);

/* Makes an empty image of this store beside the old one, and connects the link to it. If the old
 * image was loaded from a spill, the new one keeps its id: with the parent's id the image could be
 * missing from a roster that was recorded since. Returns 0 or an error code. */
int ps_rejoin_make_image_beside(struct perseas *p, struct ps_mirror *m, struct ps_error *error);

/* Makes the finished image count. Returns 0 or an error code. */
int ps_rejoin_have_image_counted(struct perseas *p, struct ps_mirror *m, struct ps_error *error);

/* Adds the segments that are mapped here and not published, which a claim drops. Returns 0 or an
 * error code. */
int ps_rejoin_add_unpublished(struct perseas *p, struct ps_mirror *m, struct ps_error *error);

/* Send the requests of ps_rejoin_begin_in_place, ps_rejoin_make_image_beside and
 * ps_rejoin_add_unpublished without waiting. The caller takes the answer (ps_await_answer), and the
 * grant that Rebuild and AddSegments bring. ps_rejoin_has_unpublished returns true if there is a
 * segment to add. new_id: the id that the image gets, or NULL; needs protocol version 9.
 * ps_rejoin_make_finish_request makes the request that ps_rejoin_have_image_counted sends. */
int ps_rejoin_ask_to_begin_in_place(struct perseas *p, struct ps_mirror *m, bool whole,
                                    const uint8_t *new_id, struct ps_error *error);
int ps_rejoin_ask_to_make_image_beside(struct perseas *p, struct ps_mirror *m,
                                       struct ps_error *error);
bool ps_rejoin_has_unpublished(const struct perseas *p);
int ps_rejoin_ask_to_add_unpublished(struct perseas *p, struct ps_mirror *m,
                                     struct ps_error *error);
void ps_rejoin_make_finish_request(Perseas__FinishRequest *finish, Perseas__Request *request);

#endif
