/*
 * check_claim.c - checks the ids in claims and Joinings, for check.c.
 */
#include "check_claim.h"

#include "envelope.h"

const char *ps_claim_ids_fault(const Perseas__ClaimRequest *claim)
{
	if (claim->store_id.len > 0 && !ps_id_valid(claim->store_id))
		return "a claim's store id must be 16 bytes, not all zero, or left out";
	if (claim->daemon.len > 0 && !ps_id_valid(claim->daemon))
		return "a claim's daemon must be 16 bytes, not all zero, or left out";
	if (claim->image_id.len > 0 && !ps_id_valid(claim->image_id))
		return "a claim's image id must be 16 bytes, not all zero, or left out";
	return NULL;
}

const char *ps_joining_fault(const Perseas__JoiningRequest *joining)
{
	return joining->image_id.len == 0 || ps_id_valid(joining->image_id)
	               ? NULL
	               : "an image's new id must be 16 bytes, not all zero, or left out";
}
