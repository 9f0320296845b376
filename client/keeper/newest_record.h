/*
 * newest_record.h - copies the undo record of the newest transaction to a mirror that is copied
 * whole.
 *
 * A whole copy begins with an empty ring. Its history would begin with the next transaction, and no
 * reader could tell when the newest one was committed. So the copy begins with that record, which
 * is read from another mirror, and with the slot that counts it. The record is left out if no whole
 * mirror has it, if it is longer than a chunk, or if a transaction is sent meanwhile, which brings
 * its own record. resync.c calls this, and holds admin.
 */
#ifndef PERSEAS_CLIENT_NEWEST_RECORD_H
#define PERSEAS_CLIENT_NEWEST_RECORD_H

#include "../core/handle.h"

/* Returns true if the copy still has to read the record, before the bytes of segments. */
static inline bool ps_newest_record_is_next(const struct ps_resync *r)
{
	return r->read_region == PS_REGION_LOG;
}

/* Asks the next mirror for the record, and moves the copy to READING. Returns false if no mirror is
 * left or the record is not needed: then the copy goes on without it, as COPYING. */
bool ps_newest_record_ask(struct perseas *p);

/* Sends the record that was read, if it is still the newest. The mirror that it was read from has
 * confirmed this owner's claim (VOUCHING). */
void ps_newest_record_send(struct perseas *p);

#endif
