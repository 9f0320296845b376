/*
 * test_messages.c - the table of messages (proto/control/messages.h) against control.proto itself.
 */
#include "control.pb-c.h"
#include "../support/unit.h"

#include <stdbool.h>

static const struct {
	const char *request, *reply; /* the names of the bodies */
} rows[] = {
#define MESSAGE(field, FIELD, Type, replied, ...) { #field, #replied },
#include "../../proto/control/messages.h"
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Returns true if the field belongs to the oneof `body`, and so is a body case. */
static bool is_body(const ProtobufCFieldDescriptor *field)
{
	return field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
}

static unsigned rows_of(const char *request, const char *reply)
{
	unsigned count = 0;

	for (unsigned i = 0; i < ROWS; i++)
		count += (!request || strcmp(rows[i].request, request) == 0) &&
		         (!reply || strcmp(rows[i].reply, reply) == 0);
	return count;
}

TEST(every_request_has_a_row)
{
	const ProtobufCMessageDescriptor *request = &perseas__request__descriptor;
	unsigned bodies = 0;

	for (unsigned i = 0; i < request->n_fields; i++) {
		if (!is_body(&request->fields[i]))
			continue;
		bodies++;
		assert_int_equal(rows_of(request->fields[i].name, NULL), 1);
	}
	assert_int_equal(bodies, ROWS);
}

/* Signs of progress answer every request, and so none. */
TEST(every_reply_is_the_answer_of_a_row)
{
	const ProtobufCMessageDescriptor *reply = &perseas__reply__descriptor;

	for (unsigned i = 0; i < reply->n_fields; i++)
		if (is_body(&reply->fields[i]))
			assert_int_equal(rows_of(NULL, reply->fields[i].name),
			                 strcmp(reply->fields[i].name, "working") != 0);
}

/* A status is answered with what is told of a store; all others by a body of their own name. */
TEST(a_reply_has_the_name_of_its_request)
{
	for (unsigned i = 0; i < ROWS; i++)
		assert_string_equal(rows[i].reply, strcmp(rows[i].request, "status") == 0
		                                           ? "store"
		                                           : rows[i].request);
}
