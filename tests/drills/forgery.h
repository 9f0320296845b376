/*
 * forgery.h - stores bytes that look like a log record where the log looks for the next one, as a
 * user could who only stores data through an application.
 */
#ifndef PERSEAS_DRILLS_FORGERY_H
#define PERSEAS_DRILLS_FORGERY_H

#include "owner.h"

/*
 * Commits transactions to the segment "forgery" until the bytes of a record with a valid checksum
 * lie at `next`, as a before-image of the previous lap. The record names bytes of the first book
 * and has this owner's epoch plus `ahead`. The rest of the log then contains, also as
 * before-images, slots of later transactions, headers, rosters, segment tables, and contents of
 * `log`, a mirror's file of this store's log. Creates the segment if needed. No other thread may
 * commit in the meantime. Returns 0 or an error, with its message in owner->message.
 */
int forgery_store(struct owner *owner, uint64_t ahead, const char *log);

#endif
