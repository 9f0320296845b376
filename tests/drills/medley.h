/*
 * medley.h - an owner that uses what a program may use beside plain transactions, each after the
 * other, over whatever fabric its mirrors are on.
 */
#ifndef PERSEAS_DRILLS_MEDLEY_H
#define PERSEAS_DRILLS_MEDLEY_H

#include "owner.h"

/*
 * Commits that do not wait, with a descriptor and with a bound in time; savepoints; threads that
 * take turns, and threads with locks; objects of a heap; writes that are checked, and writes that
 * are found. Each must do here what its header says. Then "done" is said, and standard input is
 * waited for, so that the drill can kill it. Returns the exit status.
 */
int medley_run(struct owner *owner, const char *store, const char *mirrors,
               const struct perseas_options *options);

/* What the above must have left, byte by byte and object by object. Returns the exit status. */
int medley_check(struct owner *owner, const char *store, const char *mirrors,
                 const struct perseas_options *options);

/* Changes the objects of a heap (objects.h) up to transaction number `last`. Those that it finds
 * must be as the counter says that is among them; the page has how far that is, and what is begun
 * and acknowledged from then on. owner->unwaited: no commit waits. Returns the exit status. */
int medley_objects(struct owner *owner, const char *store, const char *mirrors,
                   const struct perseas_options *options, uint64_t last);

#endif
