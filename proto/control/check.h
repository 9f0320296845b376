/*
 * check.h - what the fields of control messages may be. envelope.c applies it to all that
 * it unpacks; nothing else needs it.
 *
 * Each function gives NULL, or a sentence that says which field is wrong and what it
 * may be.
 */
#ifndef PERSEAS_PROTO_CHECK_H
#define PERSEAS_PROTO_CHECK_H

#include "control.pb-c.h"

const char *ps_request_fault(const Perseas__Request *request);
const char *ps_reply_fault(const Perseas__Reply *reply);
const char *ps_header_fault(const Perseas__Header *header);
/* Of an image's own header: at level 1 it must have the key as well, which headers that are told to
 * others lack. */
const char *ps_image_fault(const Perseas__Header *header);
const char *ps_roster_fault(const Perseas__Roster *roster);
/* NULL is allowed. */
const char *ps_slot_fault(const Perseas__Slot *slot);

#endif
