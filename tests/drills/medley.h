/*
 * medley.h - an owner that uses every feature besides plain transactions, one after the other, over
 * any fabric.
 */
#ifndef PERSEAS_DRILLS_MEDLEY_H
#define PERSEAS_DRILLS_MEDLEY_H

#include "owner.h"

/*
 * Tests commits that do not wait, with a descriptor and with a time bound; savepoints; serial
 * threads, and threads with locks; objects of a heap; checked writes, and tracked writes. Each must
 * work as its header says. Then prints "done" and waits for standard input, so that the drill can
 * kill the process. Returns the exit status.
 */
int medley_run(struct owner *owner, const char *store, const char *mirrors,
               const struct perseas_options *options);

/* Checks that the store has what medley_run leaves, byte by byte and object by object. Returns the
 * exit status. */
int medley_check(struct owner *owner, const char *store, const char *mirrors,
                 const struct perseas_options *options);

/* Changes the objects of a heap (objects.h) up to transaction `last`, after it checked that the
 * existing objects match their counter. Stores that counter in the page, and from then on counts
 * transactions begun and acknowledged there. With owner->unwaited no commit waits. Returns the exit
 * status. */
int medley_objects(struct owner *owner, const char *store, const char *mirrors,
                   const struct perseas_options *options, uint64_t last);

#endif
