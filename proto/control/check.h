/*
 * check.h - the valid ranges of all fields of control messages. envelope.c checks every message
 * that it unpacks; no other code needs to.
 *
 * Each function returns NULL, or a sentence that says which field is wrong and which values it may
 * have.
 */
#ifndef PERSEAS_PROTO_CHECK_H
#define PERSEAS_PROTO_CHECK_H

#include "control.pb-c.h"

const char *ps_request_fault(const Perseas__Request *request);
const char *ps_reply_fault(const Perseas__Reply *reply);
const char *ps_header_fault(const Perseas__Header *header);
/* Checks the header of an image in a file. If the store has level 1, the header must have the
 * store's key (key.h), which headers shown to other clients do not have. */
const char *ps_image_fault(const Perseas__Header *header);
const char *ps_roster_fault(const Perseas__Roster *roster);
/* Accepts NULL. */
const char *ps_slot_fault(const Perseas__Slot *slot);

#endif
