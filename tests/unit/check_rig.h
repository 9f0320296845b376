/*
 * check_rig.h - is a message, packed and unpacked again, accepted? One that is not must be refused
 * with a sentence that says why.
 */
#ifndef PERSEAS_TESTS_CHECK_RIG_H
#define PERSEAS_TESTS_CHECK_RIG_H

#include "../support/messages.h"
#include "../support/unit.h"

#include <stdlib.h>
#include <string.h>

/* A request or a reply: its descriptor says which. */
static inline bool message_accepted(const ProtobufCMessage *message)
{
	const bool request = message->descriptor == &perseas__request__descriptor;
	const char *why = NULL;
	ProtobufCMessage *result;
	uint8_t *bytes;
	size_t len;

	if (request) {
		assert_int_equal(ps_request_pack((const void *)message, &bytes, &len), 0);
		result = (void *)ps_request_unpack(bytes + 4, len - 4, &why);
	} else {
		assert_int_equal(ps_reply_pack((const void *)message, &bytes, &len), 0);
		result = (void *)ps_reply_unpack(bytes + 4, len - 4, &why);
	}
	free(bytes);
	assert_true(result ? !why : why && *why);
	if (result)
		protobuf_c_message_free_unpacked(result, NULL);
	return result != NULL;
}

static inline bool accepted(const Perseas__Request *request)
{
	return message_accepted(&request->base);
}

static inline bool reply_accepted(const Perseas__Reply *reply)
{
	return message_accepted(&reply->base);
}

#endif
