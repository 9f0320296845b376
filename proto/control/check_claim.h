/*
 * check_claim.h - checks the ids in claims and Joinings, for the table of messages (check.c). No
 * I/O.
 */
#ifndef PERSEAS_PROTO_CHECK_CLAIM_H
#define PERSEAS_PROTO_CHECK_CLAIM_H

#include "control.pb-c.h"

/* Return NULL, or a sentence if an id is neither empty nor valid. */
const char *ps_claim_ids_fault(const Perseas__ClaimRequest *claim);
const char *ps_joining_fault(const Perseas__JoiningRequest *joining);

#endif
