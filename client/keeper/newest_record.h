/*
 * newest_record.h - the undo record of the newest transaction, for a mirror that is copied to.
 *
 * The ring of an image that is copied whole is zeroed, so its history would begin with the next
 * transaction, and nobody could read from it when the newest one was committed. So the copy begins
 * with that record, which it reads from another mirror, and the slot that counts it. The record is
 * left out if no whole mirror has it, if it is longer than a chunk, or if a transaction is sent
 * meanwhile, which brings a record of its own. resync.c calls this, with admin.
 */
#ifndef PERSEAS_CLIENT_NEWEST_RECORD_H
#define PERSEAS_CLIENT_NEWEST_RECORD_H

#include "../core/handle.h"

/* Does the copy look for the record, and not for bytes of a segment? */
static inline bool ps_newest_record_is_next(const struct ps_resync *r)
{
	return r->region == PS_REGION_LOG;
}

/* Asks the next mirror for the record: the copy is READING then. Returns false if there is nobody
 * to ask, or no need: the copy goes on without it, as COPYING. */
bool ps_newest_record_ask(struct perseas *p);

/* VOUCHING is over, and the claim stands: sends what was read, if it is still the newest record. */
void ps_newest_record_take(struct perseas *p);

#endif
