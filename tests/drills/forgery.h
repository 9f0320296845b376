/*
 * forgery.h - has stored bytes lie where the log looks for the next record: what a user could do
 * who only stores data through an application.
 */
#ifndef PERSEAS_DRILLS_FORGERY_H
#define PERSEAS_DRILLS_FORGERY_H

#include "owner.h"

/*
 * Commits transactions to the segment "forgery" until the bytes of a record with a right checksum
 * lie at `next`, as a before-image of the lap before. The record names bytes of the first book, and
 * is made for the epoch of this owner plus `ahead`. The rest of the log then holds slots of later
 * transactions, headers, rosters, segment tables, and contents of `log`, a mirror's file of this
 * store's log, as before-images too. Makes the segment if it is missing. No other thread may commit
 * meanwhile. Returns 0 or an error, which owner->message describes.
 */
int forgery_store(struct owner *owner, uint64_t ahead, const char *log);

#endif
