/*
 * large.h - an owner of one large segment, most of which no transaction changes, for drills about
 * recovery on demand.
 */
#ifndef PERSEAS_DRILLS_LARGE_H
#define PERSEAS_DRILLS_LARGE_H

#include "owner.h"

/*
 * Opens the store, creates the segment with `mib` MiB if it does not exist, prints one line, and
 * runs transactions until the page says stop or `count` are done. Then, if `check`, waits until all
 * of the segment has arrived and compares every byte with what the counter implies. The line:
 *
 * open=NS first=NS found=K acked=K missing=BYTES
 *
 * `open` and `first` are the times from the call of perseas_open to its return and to the return of
 * the first commit. `found` counts the transactions in the store, `acked` those that the page says
 * were acknowledged before, and `missing` is what had not arrived after the first commit. Returns
 * the exit status.
 */
int large_run(struct owner *owner, const char *store, const char *mirrors,
              const struct perseas_options *options, uint64_t mib, uint64_t count, bool check);

#endif
