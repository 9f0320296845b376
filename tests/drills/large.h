/*
 * large.h - an owner of one large segment, most of which no transaction touches, for drills about
 * recovery on demand.
 */
#ifndef PERSEAS_DRILLS_LARGE_H
#define PERSEAS_DRILLS_LARGE_H

#include "owner.h"

/*
 * Makes the segment with so many MiB where there is none, says by one line what it did, and runs
 * transactions until the page says stop, or `count` are done. Then, if `check`, waits until all of
 * it is here and compares every byte with what the counter says. The line:
 *
 *   open=NS first=NS found=K acked=K missing=BYTES
 *
 * from the call of perseas_open to its return and to that of the first commit, the transactions
 * that were found, those that the page says were acknowledged before, and what was missing after
 * the first commit. Returns the exit status.
 */
int large_run(struct owner *owner, const char *store, const char *mirrors,
              const struct perseas_options *options, uint64_t mib, uint64_t count, bool check);

#endif
