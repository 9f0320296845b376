/*
 * check_rig.h - is a message, packed and unpacked again, accepted? One that is not must be refused
 * with a sentence that says why.
 */
#ifndef PERSEAS_TESTS_CHECK_RIG_H
#define PERSEAS_TESTS_CHECK_RIG_H

#include "../support/messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static inline bool accepted(const Perseas__Request *request)
{
	const char *why = NULL;
	Perseas__Request *result;
	uint8_t *bytes;
	size_t len;

	assert_int_equal(ps_request_pack(request, &bytes, &len), 0);
	result = ps_request_unpack(bytes + 4, len - 4, &why);
	free(bytes);
	assert_true(result ? !why : why && *why);
	if (result)
		perseas__request__free_unpacked(result, NULL);
	return result != NULL;
}

static inline bool reply_accepted(const Perseas__Reply *reply)
{
	const char *why = NULL;
	Perseas__Reply *result;
	uint8_t *bytes;
	size_t len;

	assert_int_equal(ps_reply_pack(reply, &bytes, &len), 0);
	result = ps_reply_unpack(bytes + 4, len - 4, &why);
	free(bytes);
	assert_true(result ? !why : why && *why);
	if (result)
		perseas__reply__free_unpacked(result, NULL);
	return result != NULL;
}

#endif
