/*
 * check_grant.h - checks grants, digest requests and read requests, for check.c.
 */
#ifndef PERSEAS_CHECK_GRANT_H
#define PERSEAS_CHECK_GRANT_H

#include "control.pb-c.h"

#include <stdbool.h>

/* Returns true if images have a region with this number. */
bool ps_region_valid(uint32_t region);

/* Returns NULL, or a sentence that says what is wrong. Does not check the text in the grant. */
const char *ps_grant_fault(const Perseas__Grant *grant);

/* Return NULL, or a sentence that says what is wrong. */
const char *ps_digest_fault(const Perseas__DigestRequest *digest);
const char *ps_digest_reply_fault(const Perseas__DigestReply *reply);
const char *ps_read_fault(const Perseas__ReadRequest *read);
const char *ps_read_reply_fault(const Perseas__ReadReply *read);

#endif
