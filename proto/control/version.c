/*
 * version.c - see version.h. A new message or field of control.proto gets a row in `added_fields`
 * with the version that adds it. Rows of versions that are no longer spoken can be deleted.
 */
#include "version.h"

#include "message_fields.h"
#include "control.pb-c.h"
#include "envelope.h"
#include "../base/number.h"
#include "../data/frame.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>

enum { VERSION_BITS = 16, VERSION_MASK = (1 << VERSION_BITS) - 1 };

static_assert(PS_PROTOCOL_LEAST < PS_PROTOCOL_VERSION, "the version before is spoken, too");
static_assert(PS_LEVEL_MAX == 1, "the levels that versions read");

enum {
	LEVEL_1 = 9, /* the first version that reads level 1 */
	REPAIRS = 9, /* the first version with ORDER_REPAIR */
};

static atomic_uint highest_spoken = PS_PROTOCOL_VERSION;

static unsigned lowest_of(uint32_t greeting)
{
	return greeting >> VERSION_BITS ? greeting >> VERSION_BITS : greeting;
}

static unsigned highest_of(uint32_t greeting)
{
	return greeting >> VERSION_BITS ? greeting & VERSION_MASK : greeting;
}

void ps_version_limit(unsigned most)
{
	assert(most >= PS_PROTOCOL_LEAST && most <= PS_PROTOCOL_VERSION);
	atomic_store(&highest_spoken, most);
}

bool ps_version_limit_from_text(const char *text)
{
	const char *end;
	uint64_t most;

	if (!text) {
		ps_version_limit(PS_PROTOCOL_VERSION);
		return true;
	}
	if (!ps_number_read(text, &end, &most) || *end || most < PS_PROTOCOL_LEAST ||
	    most > PS_PROTOCOL_VERSION)
		return false;
	ps_version_limit((unsigned)most);
	return true;
}

uint32_t ps_version_greeting(void)
{
	return atomic_load(&highest_spoken) | (uint32_t)PS_PROTOCOL_LEAST << VERSION_BITS;
}

unsigned ps_version_common(uint32_t theirs)
{
	const uint32_t ours = ps_version_greeting();
	const unsigned most = highest_of(theirs) < highest_of(ours) ? highest_of(theirs)
	                                                            : highest_of(ours);

	assert(lowest_of(ours) <= highest_of(ours));
	return most >= lowest_of(theirs) && most >= lowest_of(ours) ? most : 0;
}

uint32_t ps_version_answer(uint32_t theirs)
{
	const unsigned common = ps_version_common(theirs);
	const uint32_t ours = ps_version_greeting();

	if (common)
		return common;
	/* A peer that sent a single version cannot read a range. */
	return theirs >> VERSION_BITS ? ours : highest_of(ours);
}

unsigned ps_version_agreed(uint32_t sent, uint32_t answer)
{
	if (answer >> VERSION_BITS || answer < lowest_of(sent) || answer > highest_of(sent))
		return 0;
	return answer;
}

const char *ps_version_text(char text[PS_VERSION_TEXT], uint32_t greeting)
{
	if (greeting >> VERSION_BITS && lowest_of(greeting) != highest_of(greeting))
		snprintf(text, PS_VERSION_TEXT, "versions %u to %u", lowest_of(greeting),
		         highest_of(greeting));
	else
		snprintf(text, PS_VERSION_TEXT, "version %u", highest_of(greeting));
	return text;
}

/* The fields that each version added, for all versions that are spoken except the lowest. */
static const struct {
	const ProtobufCMessageDescriptor *message;
	unsigned field;   /* the field's number in control.proto */
	unsigned version; /* the first version that knows the field */
} added_fields[] = {
	/* Reply.daemon */
	{ &perseas__reply__descriptor, 60, 9 },
	/* StoreStatus.files_missing */
	{ &perseas__store_status__descriptor, 70, 9 },
	/* The labels of the daemon in StoreStatus. */
	{ &perseas__store_status__descriptor, 130, 9 },
	{ &perseas__store_status__descriptor, 131, 9 },
	{ &perseas__store_status__descriptor, 132, 9 },
	/* The boot id of the owner's host. */
	{ &perseas__store_status__descriptor, 133, 9 },
	{ &perseas__confirm_request__descriptor, 130, 9 },
	/* The boot id of a daemon's host. */
	{ &perseas__host_reply__descriptor, 121, 9 },
	/* ListReply.set_aside: images that were set aside */
	{ &perseas__list_reply__descriptor, 65, 9 },
	/* ListReply.refused: images that are not served */
	{ &perseas__list_reply__descriptor, 66, 9 },
	/* Expiry dates of a daemon's TLS files: all dates, and the dates that are near. */
	{ &perseas__list_reply__descriptor, 125, 9 },
	{ &perseas__confirm_reply__descriptor, 125, 9 },
	/* ClaimRequest.daemon and image_id */
	{ &perseas__claim_request__descriptor, 60, 9 },
	{ &perseas__claim_request__descriptor, 61, 9 },
	/* The record of the commit slot of a claimed image. */
	{ &perseas__claim_reply__descriptor, 65, 9 },
	/* Failed copies in an owner's report on a mirror. */
	{ &perseas__mirror_report__descriptor, 145, 9 },
	/* The rate of a resync in an owner's report, and the bytes that resyncs sent. */
	{ &perseas__mirror_report__descriptor, 151, 9 },
	{ &perseas__owner_figures__descriptor, 151, 9 },
	/* The place in line of a mirror that waits to be copied to. */
	{ &perseas__mirror_report__descriptor, 152, 9 },
	/* JoiningRequest.image_id */
	{ &perseas__joining_request__descriptor, 152, 9 },
	/* Request.copy_turn and Reply.copy_turn */
	{ &perseas__request__descriptor, 26, 9 },
	{ &perseas__reply__descriptor, 31, 9 },
	/* Locations: a daemon reports its own to its owner, and the owner reports it to mirrors. */
	{ &perseas__confirm_reply__descriptor, 106, 9 },
	{ &perseas__mirror_report__descriptor, 106, 9 },
	/* Digests of granules. */
	{ &perseas__digest_request__descriptor, 150, 9 },
	{ &perseas__digest_reply__descriptor, 150, 9 },
	/* Sizes of the rosters in OrderResult. */
	{ &perseas__order_result__descriptor, 130, 9 },
	{ &perseas__order_result__descriptor, 131, 9 },
	{ &perseas__order_result__descriptor, 132, 9 },
	{ &perseas__order_result__descriptor, 133, 9 },
	/* OrderResult.sent and whole */
	{ &perseas__order_result__descriptor, 152, 9 },
	{ &perseas__order_result__descriptor, 153, 9 },
	/* Stores of level 1, which have a secret key (key.h): the key's hash in a roster, and the
	 * key. */
	{ &perseas__roster__descriptor, 80, LEVEL_1 },
	{ &perseas__roster__descriptor, 81, LEVEL_1 },
	{ &perseas__header__descriptor, 80, LEVEL_1 },
	{ &perseas__create_request__descriptor, 80, LEVEL_1 },
	{ &perseas__roster_request__descriptor, 80, LEVEL_1 },
	/* Roster.filling and DropRequest.claimed */
	{ &perseas__roster__descriptor, 100, LEVEL_1 },
	{ &perseas__drop_request__descriptor, 100, 9 },
	/* Stores of level 1: Segment.random_id. */
	{ &perseas__segment__descriptor, 105, LEVEL_1 },
};

static unsigned version_of_field(const ProtobufCMessageDescriptor *message, unsigned field)
{
	for (unsigned i = 0; i < sizeof(added_fields) / sizeof(added_fields[0]); i++)
		if (added_fields[i].message == message && added_fields[i].field == field)
			return added_fields[i].version;
	return PS_PROTOCOL_LEAST;
}

uint32_t ps_version_highest_level(unsigned version)
{
	return version >= LEVEL_1;
}

/* Returns the lowest version that knows the values in the message's own fields. */
static unsigned version_of_values(const ProtobufCMessage *message)
{
	if (message->descriptor == &perseas__roster__descriptor &&
	    ((const Perseas__Roster *)message)->level > 0)
		return LEVEL_1;
	if (message->descriptor == &perseas__order__descriptor &&
	    ((const Perseas__Order *)message)->kind == PERSEAS__ORDER_KIND__ORDER_RAISE)
		return LEVEL_1;
	if (message->descriptor == &perseas__order__descriptor &&
	    ((const Perseas__Order *)message)->kind == PERSEAS__ORDER_KIND__ORDER_REPAIR)
		return REPAIRS;
	return PS_PROTOCOL_LEAST;
}

unsigned ps_version_needed_by(const ProtobufCMessage *message)
{
	unsigned version = version_of_values(message);

	for (unsigned f = 0; f < message->descriptor->n_fields; f++) {
		const ProtobufCFieldDescriptor *field = &message->descriptor->fields[f];
		const ProtobufCMessage *inner;
		unsigned of = ps_field_is_set(message, field)
		                      ? version_of_field(message->descriptor, field->id)
		                      : 0;

		if (of > version)
			version = of;
		for (size_t i = 0; (inner = ps_field_message(message, field, i)); i++)
			if ((of = ps_version_needed_by(inner)) > version)
				version = of;
	}
	return version;
}
