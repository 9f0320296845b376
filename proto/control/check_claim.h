/*
 * check_claim.h - what is wrong with the ids of a claim, for the table of messages (check.c). No
 * I/O.
 */
#ifndef PERSEAS_PROTO_CHECK_CLAIM_H
#define PERSEAS_PROTO_CHECK_CLAIM_H

#include "control.pb-c.h"

/* Returns NULL, or a sentence if an id is neither left out nor valid. */
const char *ps_claim_ids_fault(const Perseas__ClaimRequest *claim);

#endif
