/*
 * check_grant.h - the checks of check_grant.c. check.c calls them.
 */
#ifndef PERSEAS_CHECK_GRANT_H
#define PERSEAS_CHECK_GRANT_H

#include "control.pb-c.h"

#include <stdbool.h>

/* Returns true if images have a region of this number. */
bool ps_region_valid(uint32_t region);

/* Returns NULL, or a sentence that says what is wrong. The text in the grant is the caller's to
 * check. */
const char *ps_grant_fault(const Perseas__Grant *grant);

/* Each returns NULL, or a sentence that says what is wrong. */
const char *ps_digest_fault(const Perseas__DigestRequest *digest);
const char *ps_read_fault(const Perseas__ReadRequest *read);

#endif
