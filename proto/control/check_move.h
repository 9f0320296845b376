/*
 * check_move.h - checks the messages of standbys and planned handovers, for check.c. Each function
 * returns NULL, or a sentence that says what is wrong.
 */
#ifndef PERSEAS_CHECK_MOVE_H
#define PERSEAS_CHECK_MOVE_H

#include "control.pb-c.h"

const char *ps_standbys_fault(Perseas__Standby *const *standbys, size_t count);
const char *ps_handover_fault(const Perseas__Handover *handover);
const char *ps_move_fault(const Perseas__MoveRequest *move);
const char *ps_watch_fault(const Perseas__WatchRequest *watch);
const char *ps_watch_reply_fault(const Perseas__WatchReply *watch);

#endif
