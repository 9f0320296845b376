/*
 * messages.h - valid control messages for tests, which then spoil one thing each.
 */
#ifndef PERSEAS_TESTS_MESSAGES_H
#define PERSEAS_TESTS_MESSAGES_H

#include "../../proto/control/envelope.h"

/* message_id returns an all-zero, and so invalid, id for NO_ID, and distinct ids for 0 to NO_ID -
 * 1. */
enum { NO_ID = 20 };

ProtobufCBinaryData message_id(int i);

/* Words, in memory that may be pointed to from a message. */
extern char message_bank[], message_ledger[], message_accounts[], message_control_character[];
extern char message_address[3][32];

/*
 * A header of the store "bank" with everything it points to: three mirrors, W = 2, segments s0 and
 * s1. There is room for 17 members and 129 segments, one more than allowed.
 */
struct message_header {
	Perseas__Header header;
	Perseas__Roster roster;
	Perseas__Roster next; /* not yet in the header */
	Perseas__Member members[17];
	Perseas__Member *member_list[17];
	Perseas__Segment segments[129];
	Perseas__Segment *segment_list[129];
	char names[129][8];
};

/* Free with free(). */
struct message_header *message_header_new(void);

/* Fills in the status of mirror i of that store, with a slot of 100 transactions of an epoch. The
 * status points to slot and header; free the header with free(). */
struct message_header *message_status(Perseas__StoreStatus *status, Perseas__Slot *slot, unsigned i,
                                      uint64_t epoch);

/* A message with these members, as in MESSAGE_OF(ClaimRequest, claim_request, .epoch = 1). Other
 * members are empty; texts among them are NULL, which packs as an empty text. */
#define MESSAGE_OF(Type, type, ...)                                                          \
	(Perseas__##Type)                                                                    \
	{                                                                                    \
		.base = PROTOBUF_C_MESSAGE_INIT(&perseas__##type##__descriptor), __VA_ARGS__ \
	}

/* Return a request around the body, whose type decides which request; and a reply with status
 * OK. */
Perseas__Request message_request(const void *body);
Perseas__Reply message_reply(const void *body);

/* A request, or a reply with status OK, around a body. */
#define MESSAGE_REQUEST(field, FIELD, content)                                  \
	(Perseas__Request)                                                      \
	{                                                                       \
		.base = PROTOBUF_C_MESSAGE_INIT(&perseas__request__descriptor), \
		.body_case = PERSEAS__REQUEST__BODY_##FIELD,                    \
		{                                                               \
			.field = (content)                                      \
		}                                                               \
	}

#define MESSAGE_REPLY(field, FIELD, content)                                  \
	(Perseas__Reply)                                                      \
	{                                                                     \
		.base = PROTOBUF_C_MESSAGE_INIT(&perseas__reply__descriptor), \
		.message = (char *)protobuf_c_empty_string,                   \
		.body_case = PERSEAS__REPLY__BODY_##FIELD,                    \
		{                                                             \
			.field = (content)                                    \
		}                                                             \
	}

#endif
