/*
 * desk.h - runs an owner by commands on standard input, one a line. Each is answered by one line on
 * standard output that begins with "ok", or with "error" and the error's name.
 *
 *   create STORE MIRRORS [option...]     open STORE MIRRORS [option...]     close
 *   books                                maps what content.h describes; "ok k"
 *   run N                                N transactions; "ok k"
 *   start, halt                          runs transactions in a thread until halt; "ok k"
 *   check                                "ok k", or "error CONTENT" and where
 *   map SEGMENT SIZE, publish
 *   begin, range SEGMENT OFFSET LENGTH, store SEGMENT OFFSET LENGTH BYTE, commit, abort
 *   load SEGMENT OFFSET                  "ok BYTE"
 *   forge AHEAD LOG                      stores a forged record where the log looks for the next
 *                                        one, and old contents of the file LOG (forgery.h)
 *   flush, stat, mirrors, message, report, exit
 *   events                               "ok kind:mirror …", all events of the library so far
 *
 * Options: create, takeover, acks=N, log=BYTES, ring=BYTES, connect-ms=N, commit-ms=N, open-ms=N,
 * mirror-ms=N, pace-ms=N, shape=SEED (content.h), demand (PERSEAS_RECOVERY_ON_DEMAND), fetch-rate=N
 * and resync-rate=N (bytes a second).
 */
#ifndef PERSEAS_DRILLS_DESK_H
#define PERSEAS_DRILLS_DESK_H

#include "owner.h"

/* Sets the defaults of options. Timeouts are longer than the library's, because a busy machine
 * delays answers by seconds. In an emulated machine (PERSEAS_GUEST) the ring is smaller, because
 * registering it takes most of the time of an open there. */
void options_init(struct perseas_options *options);

/* Applies an option such as "takeover" or "acks=2". Returns false if there is no such option. */
bool option_set(struct perseas_options *options, const char *word);

/* Serves commands until "exit" or the end of input. */
void desk_serve(struct owner *owner);

#endif
