/*
 * check_rig.h - asserts that a message is accepted when it is packed and unpacked again, or that it
 * is refused with a sentence that says why. A message is a Perseas__Request, a Perseas__Reply, or a
 * Perseas__Header, which is not packed.
 */
#ifndef PERSEAS_TESTS_CHECK_RIG_H
#define PERSEAS_TESTS_CHECK_RIG_H

#include "../support/messages.h"
#include "../support/unit.h"

static inline bool message_accepted(const ProtobufCMessage *message)
{
	const char *why = NULL;
	ProtobufCMessage *result = NULL;
	uint8_t *bytes = NULL;
	bool good;
	size_t len;

	if (message->descriptor == &perseas__header__descriptor) {
		good = ps_header_valid((const void *)message, &why);
	} else if (message->descriptor == &perseas__request__descriptor) {
		assert_int_equal(ps_request_pack((const void *)message, &bytes, &len), 0);
		result = (void *)ps_request_unpack(bytes + 4, len - 4, &why);
		good = result != NULL;
	} else {
		assert_int_equal(ps_reply_pack((const void *)message, &bytes, &len), 0);
		result = (void *)ps_reply_unpack(bytes + 4, len - 4, &why);
		good = result != NULL;
	}
	free(bytes);
	if (result)
		protobuf_c_message_free_unpacked(result, NULL);
	assert_true(good ? !why : why && *why);
	return good;
}

/* Fails unless the message is accepted, or refused if not `good`; `described` names the row. */
static inline void assert_verdict(const ProtobufCMessage *message, bool good, const char *described)
{
	if (message_accepted(message) != good)
		fail_msg("%s with %s", good ? "refused" : "accepted", described);
}

#define assert_accepted(message) assert_verdict(&(message).base, true, "nothing changed")
#define assert_refused(message) assert_verdict(&(message).base, false, "nothing changed")

/* Sets one field to each of the values in turn, asserts, and sets the field back. */
#define assert_accepted_with(message, field, ...) \
	assert_verdict_with(true, message, field, __VA_ARGS__)
#define assert_refused_with(message, field, ...) \
	assert_verdict_with(false, message, field, __VA_ARGS__)
#define assert_verdict_with(good, message, field, ...)                                 \
	do {                                                                           \
		__typeof__(field) before_it = field, values[] = { __VA_ARGS__ };       \
		for (size_t at = 0; at < sizeof(values) / sizeof(values[0]); at++) {   \
			char row[200];                                                 \
			snprintf(row, sizeof(row), "value %zu of %s = %s", at, #field, \
			         #__VA_ARGS__);                                        \
			field = values[at];                                            \
			assert_verdict(&(message).base, good, row);                    \
		}                                                                      \
		field = before_it;                                                     \
	} while (0)

#endif
