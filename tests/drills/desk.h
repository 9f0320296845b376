/*
 * desk.h - drives an owner by commands, a line each on standard input; each is answered by one
 * line on standard output that begins with "ok", or with "error" and the error's name.
 *
 *   create STORE MIRRORS [option...]     open STORE MIRRORS [option...]     close
 *   books                                maps what content.h describes; "ok k"
 *   run N                                N transactions; "ok k"
 *   start, halt                          the same, in a thread of their own until halt; "ok k"
 *   check                                "ok k", or "error CONTENT" and where
 *   map SEGMENT SIZE, publish
 *   begin, range SEGMENT OFFSET LENGTH, store SEGMENT OFFSET LENGTH BYTE, commit, abort
 *   load SEGMENT OFFSET                  "ok BYTE"
 *   forge AHEAD LOG                      a stored record lies where the next one is looked for, and
 *                                        old contents of this file in the log (forgery.h)
 *   flush, stat, mirrors, message, report, exit
 *   events                               "ok kind:mirror …", all that the library told of
 *
 * Options: create, takeover, acks=N, log=BYTES, ring=BYTES, connect-ms=N, commit-ms=N, open-ms=N,
 * mirror-ms=N, pace-ms=N, shape=SEED (content.h), demand (PERSEAS_RECOVERY_ON_DEMAND), fetch-rate=N
 * (bytes a second).
 */
#ifndef PERSEAS_DRILLS_DESK_H
#define PERSEAS_DRILLS_DESK_H

#include "owner.h"

/* Sets the options of an owner that the command does not mention. It waits longer for answers than
 * by the library's defaults, because a busy machine delays them by seconds. In an emulated machine
 * (PERSEAS_GUEST) its ring is smaller, because registering the ring is most of what an open costs
 * there. */
void options_init(struct perseas_options *options);

/* Sets what a word such as "takeover" or "acks=2" says. False: there is no such option. */
bool option_set(struct perseas_options *options, const char *word);

/* Serves until exit, or the end of input. */
void desk_serve(struct owner *owner);

#endif
