/*
 * detour.h - detours: a mirror whose best fabric does not work, or breaks again and again, is
 * reached over another fabric until the best one works again. rpc.c reports detours, mirror.c
 * reports broken links, and the keeper looks for the end of a detour.
 */
#ifndef PERSEAS_CLIENT_DETOUR_H
#define PERSEAS_CLIENT_DETOUR_H

#include "handle.h"

/* Begins a detour over fabric `next`, because the fabric before it failed with *error, which is
 * cleared. `grant` came with the mirror's claim. */
void ps_detour_begin(struct perseas *p, struct ps_mirror *m, const Perseas__Grant *grant,
                     const struct ps_fabric *next, struct ps_error *error);

/* Notes that a link of the mirror broke with this PS_LINK code. */
void ps_detour_note_break(struct perseas *p, struct ps_mirror *m, int rc);

/* Returns true if links over the mirror's best fabric come up and break again and again. *error
 * then says so. */
bool ps_detour_is_needed(const struct ps_mirror *m, const struct ps_fabric *best,
                         struct ps_error *error);

/* Tests the best fabrics of mirrors on a detour, when a test is due. If one works, ends the
 * session, and the next session uses that fabric. Waits for no answer: ps_detour_fill_test_pollfd
 * says what to wait for. Called by the keeper, which is exclusive. */
void ps_detour_step(struct perseas *p, uint64_t now);

/* Returns when ps_detour_step has to be called next at the latest. */
uint64_t ps_detour_next_test_at(const struct perseas *p);

/* Fills in the event to wait for while the mirror's best fabric is being tested. Returns false if
 * no test is under way. */
bool ps_detour_fill_test_pollfd(const struct ps_mirror *m, struct pollfd *fd);

/* Cancels the test of the mirror's best fabric, because the session has ended. */
void ps_detour_cancel_test(struct ps_mirror *m);

#endif
