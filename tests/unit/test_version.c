/*
 * test_version.c - which version two ends of a connection speak, and of which version a message is.
 */
#include "../../proto/control/version.h"
#include "../../proto/control/envelope.h"
#include "../../proto/control/message_fields.h"
#include "../../proto/data/frame.h"
#include "../support/unit.h"

#include <stdlib.h>
#include <string.h>

enum { NOW = PS_PROTOCOL_VERSION, BEFORE = PS_PROTOCOL_LEAST };

static uint32_t both(unsigned least, unsigned most)
{
	return least << 16 | most;
}

static int unlimited(void **state)
{
	(void)state;
	ps_version_limit(NOW);
	return 0;
}

struct unit_fixture unit_fixture = { unlimited, NULL };

/* A mirror of both versions answers owners of each kind. */
TEST(a_mirror_answers_with_the_highest_common_version)
{
	static const struct {
		unsigned least, most; /* of the owner; 0: it names one version */
		unsigned version;     /* 0: none is common */
	} table[] = {
		{ 0, BEFORE, BEFORE },  { 0, NOW, NOW },       { BEFORE, NOW, NOW },
		{ NOW, NOW + 1, NOW },  { 1, BEFORE, BEFORE }, { 0, NOW + 1, 0 },
		{ 0, BEFORE - 1, 0 },   { 0, 0, 0 },           { NOW + 1, NOW + 2, 0 },
		{ 1, BEFORE - 1, 0 },   { NOW, BEFORE, 0 },    { UINT16_MAX, UINT16_MAX, 0 },
		{ 1, UINT16_MAX, NOW },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const uint32_t hello = both(table[i].least, table[i].most);
		const uint32_t answer = ps_version_answer(hello);

		assert_int_equal(ps_version_common(hello), table[i].version);
		if (table[i].version)
			assert_int_equal(answer, table[i].version);
		else
			assert_int_equal(answer, table[i].least ? both(BEFORE, NOW) : NOW);
	}
}

/* A process that is held to the version before speaks no later one. */
TEST(a_mirror_of_the_version_before_answers_a_range_with_it)
{
	ps_version_limit(BEFORE);
	assert_int_equal(ps_version_greeting(), both(BEFORE, BEFORE));
	assert_int_equal(ps_version_common(both(BEFORE, NOW)), BEFORE);
	assert_int_equal(ps_version_answer(both(BEFORE, NOW)), BEFORE);
	assert_int_equal(ps_version_answer(both(1, BEFORE)), BEFORE);
	assert_int_equal(ps_version_answer(BEFORE), BEFORE);
	assert_int_equal(ps_version_answer(NOW), BEFORE);
}

/* An owner gets every answer near its versions, and ranges of them. */
TEST(an_owner_takes_only_a_version_that_it_offered)
{
	const uint32_t sent = ps_version_greeting();

	assert_int_equal(sent, both(BEFORE, NOW));
	assert_int_equal(ps_version_agreed(BEFORE, BEFORE), BEFORE);
	assert_int_equal(ps_version_agreed(BEFORE, NOW), 0);
	for (uint32_t version = BEFORE; version <= NOW; version++)
		assert_int_equal(ps_version_agreed(sent, version), version);
	for (uint32_t least = 0; least < 16; least++)
		for (uint32_t most = 0; most < 16; most++) {
			if (least == 0 && most >= BEFORE && most <= NOW)
				continue;
			assert_int_equal(ps_version_agreed(sent, both(least, most)), 0);
			assert_int_equal(ps_version_agreed(BEFORE, both(least, most)), 0);
		}
}

/* Both ends by themselves come to the same: an owner that was answered knows it, too. */
TEST(both_ends_agree_whatever_they_are)
{
	for (unsigned owner = BEFORE; owner <= NOW; owner++)
		for (unsigned mirror = BEFORE; mirror <= NOW; mirror++) {
			const unsigned lower = owner < mirror ? owner : mirror;
			uint32_t sent, answer;

			ps_version_limit(owner);
			sent = ps_version_greeting();
			ps_version_limit(mirror);
			assert_int_equal(ps_version_common(sent), lower);
			answer = ps_version_answer(sent);
			ps_version_limit(owner);
			assert_int_equal(ps_version_agreed(sent, answer), lower);
		}
}

TEST(a_limit_is_a_version_that_there_is)
{
	static const char *const wrong[] = { "",   "7",  "10",         "8x",
		                             " 8", "-8", "4294967304", "99999999999999999999" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(ps_version_limit_from_text(wrong[i]));
	assert_true(ps_version_limit_from_text(NULL));
	assert_int_equal(ps_version_greeting(), both(BEFORE, NOW));
	assert_true(ps_version_limit_from_text("8"));
	assert_int_equal(ps_version_greeting(), both(BEFORE, BEFORE));
	assert_false(ps_version_limit_from_text("10"));
	assert_int_equal(ps_version_greeting(), both(BEFORE, BEFORE));
	assert_true(ps_version_limit_from_text(NULL));
	assert_int_equal(ps_version_greeting(), both(BEFORE, NOW));
}

TEST(versions_are_named_for_people)
{
	char text[PS_VERSION_TEXT];

	assert_string_equal(ps_version_text(text, 8), "version 8");
	assert_string_equal(ps_version_text(text, both(8, 9)), "versions 8 to 9");
	assert_string_equal(ps_version_text(text, both(8, 8)), "version 8");
	assert_string_equal(ps_version_text(text, UINT32_MAX), "version 65535");
}

static const ProtobufCFieldDescriptor *field(const ProtobufCMessage *message, const char *name)
{
	return protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
}

/* Gives a field of a message a value, whatever its type. */
static void fill_field(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	static uint8_t id[PS_ID_SIZE] = { 1 };
	uint8_t *at = (uint8_t *)message + field->offset;

	if (field->type == PROTOBUF_C_TYPE_BYTES)
		*(ProtobufCBinaryData *)at = (ProtobufCBinaryData){ sizeof(id), id };
	else if (field->type == PROTOBUF_C_TYPE_STRING)
		*(char **)at = (char *)(uintptr_t) "here";
	else
		*at = 1;
}

/* The messages are older than these fields of theirs. */
TEST(a_field_is_of_the_version_that_brought_it)
{
	static const struct {
		const ProtobufCMessageDescriptor *message;
		const char *field;
		unsigned version;
	} fields[] = {
		{ &perseas__reply__descriptor, "daemon", 9 },
		{ &perseas__claim_request__descriptor, "daemon", 9 },
		{ &perseas__claim_request__descriptor, "image_id", 9 },
		{ &perseas__store_status__descriptor, "files_missing", 9 },
		{ &perseas__store_status__descriptor, "host", 9 },
		{ &perseas__store_status__descriptor, "rack", 9 },
		{ &perseas__store_status__descriptor, "zone", 9 },
		{ &perseas__store_status__descriptor, "owner_boot", 9 },
		{ &perseas__confirm_request__descriptor, "boot", 9 },
		{ &perseas__joining_request__descriptor, "whole", BEFORE },
		{ &perseas__joining_request__descriptor, "image_id", 9 },
		{ &perseas__mirror_report__descriptor, "copy_place", 9 },
		{ &perseas__order_result__descriptor, "done", BEFORE },
		{ &perseas__order_result__descriptor, "members_before", 9 },
		{ &perseas__order_result__descriptor, "acks_before", 9 },
		{ &perseas__order_result__descriptor, "members", 9 },
		{ &perseas__order_result__descriptor, "acks", 9 },
		{ &perseas__order_result__descriptor, "sent", 9 },
		{ &perseas__order_result__descriptor, "whole", 9 },
		{ &perseas__standby__descriptor, "order", BEFORE },
	};

	for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		_Alignas(8) uint8_t room[512];
		ProtobufCMessage *message = (void *)room;

		assert_true(fields[i].message->sizeof_message <= sizeof(room));
		protobuf_c_message_init(fields[i].message, message);
		assert_int_equal(ps_version_needed_by(message), BEFORE);
		fill_field(message, field(message, fields[i].field));
		if (ps_version_needed_by(message) != fields[i].version)
			fail_msg("%s.%s is of version %u", fields[i].message->name, fields[i].field,
			         ps_version_needed_by(message));
	}
}

enum {
	MESSAGES = 100,
	ROOM = 512,
	FIELDS_OF_BEFORE = 273, /* all of version 8 but Roster.level, of which 1 is a later value */
};

static void prepare(uint8_t room[ROOM], const ProtobufCMessageDescriptor *message)
{
	assert_true(message->sizeof_message <= ROOM);
	memset(room, 0, ROOM);
	protobuf_c_message_init(message, (void *)room);
}

/* Returns the version of a field: that of a message in which nothing else is set. */
static unsigned version_of(const ProtobufCMessageDescriptor *message,
                           const ProtobufCFieldDescriptor *field)
{
	_Alignas(8) uint8_t room[ROOM], inner[ROOM], *elements[1] = { inner };
	void *at = room + field->offset;

	prepare(room, message);
	if (field->type == PROTOBUF_C_TYPE_MESSAGE)
		prepare(inner, field->descriptor);
	if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		*(uint32_t *)(void *)(room + field->quantifier_offset) = field->id;
	if (field->label == PROTOBUF_C_LABEL_REPEATED) {
		*(size_t *)(void *)(room + field->quantifier_offset) = 1;
		*(uint8_t ***)at = elements;
	} else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
		*(uint8_t **)at = inner;
	} else {
		fill_field((void *)room, field);
	}
	return ps_version_needed_by((void *)room);
}

/* Returns how many fields the version before knows in the messages of a list, and appends messages
 * below these to it. */
static unsigned count_fields_of_before(const ProtobufCMessageDescriptor *list[MESSAGES],
                                       unsigned messages)
{
	unsigned count = 0;

	for (unsigned m = 0; m < messages; m++)
		for (unsigned f = 0; f < list[m]->n_fields; f++) {
			const ProtobufCFieldDescriptor *field = &list[m]->fields[f];
			unsigned known = 0;

			if (version_of(list[m], field) > BEFORE)
				continue;
			count++;
			while (known < messages && list[known] != field->descriptor)
				known++;
			if (field->type == PROTOBUF_C_TYPE_MESSAGE && known == messages) {
				assert_true(messages < MESSAGES);
				list[messages++] = field->descriptor;
			}
		}
	return count;
}

/* A new field or message without a row in version.c changes the number of fields that the version
 * before seems to know. The number may only change when another version becomes the lowest. */
TEST(every_new_field_has_its_version)
{
	const ProtobufCMessageDescriptor *list[MESSAGES] = { &perseas__request__descriptor,
		                                             &perseas__reply__descriptor };

	assert_int_equal(count_fields_of_before(list, 2), FIELDS_OF_BEFORE);
}

/* The messages inside a message count. */
TEST(a_message_is_of_the_version_of_those_in_it)
{
	Perseas__ConfirmRequest confirm = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__OrderResult result = PERSEAS__ORDER_RESULT__INIT;

	confirm.result = &result;
	assert_int_equal(ps_version_needed_by(&confirm.base), BEFORE);
	result.acks = 1;
	assert_int_equal(ps_version_needed_by(&confirm.base), 9);
}

/* A location is of the version that brought it, whatever it says. */
TEST(a_location_is_of_its_version)
{
	Perseas__Location location = PERSEAS__LOCATION__INIT;
	Perseas__MirrorReport report = PERSEAS__MIRROR_REPORT__INIT;
	Perseas__ConfirmReply answer = PERSEAS__CONFIRM_REPLY__INIT;

	assert_int_equal(ps_version_needed_by(&report.base), BEFORE);
	assert_int_equal(ps_version_needed_by(&answer.base), BEFORE);
	report.location = answer.location = &location;
	assert_int_equal(ps_version_needed_by(&report.base), 9);
	assert_int_equal(ps_version_needed_by(&answer.base), 9);
}

/* The field of a roster's level is older than level 1, and so are orders. */
TEST(a_level_is_of_the_version_that_reads_it)
{
	Perseas__Roster roster = PERSEAS__ROSTER__INIT;
	Perseas__Segment segment = PERSEAS__SEGMENT__INIT;
	Perseas__Order order = PERSEAS__ORDER__INIT;
	uint8_t id[PS_ID_SIZE] = { 1 };
	unsigned version;

	assert_int_equal(ps_version_needed_by(&roster.base), BEFORE);
	for (roster.level = 1; roster.level <= PS_LEVEL_MAX; roster.level++) {
		version = ps_version_needed_by(&roster.base);
		assert_in_range(version, BEFORE + 1, NOW);
		assert_int_equal(ps_version_highest_level(version), roster.level);
		assert_true(ps_version_highest_level(version - 1) < roster.level);
	}
	order.kind = PERSEAS__ORDER_KIND__ORDER_CANCEL;
	assert_int_equal(ps_version_needed_by(&order.base), BEFORE);
	order.kind = PERSEAS__ORDER_KIND__ORDER_RAISE;
	assert_int_equal(ps_version_highest_level(ps_version_needed_by(&order.base)), PS_LEVEL_MAX);
	order.kind = PERSEAS__ORDER_KIND__ORDER_REPAIR;
	assert_int_equal(ps_version_needed_by(&order.base), 9);
	assert_int_equal(ps_version_highest_level(ps_version_needed_by(&segment.base)), 0);
	segment.random_id = (ProtobufCBinaryData){ PS_ID_SIZE, id };
	assert_int_equal(ps_version_highest_level(ps_version_needed_by(&segment.base)), 1);
}

/* Each kind of field that messages have, without anything in it and with. */
TEST_WITH(a_field_is_set_when_something_of_it_is_sent, NULL, NULL)
{
	uint8_t byte = 0;
	Perseas__Segment segment = PERSEAS__SEGMENT__INIT, *segments[] = { &segment };
	Perseas__Header header = PERSEAS__HEADER__INIT;
	Perseas__Roster roster = PERSEAS__ROSTER__INIT;

	for (unsigned i = 0; i < header.base.descriptor->n_fields; i++)
		assert_false(ps_field_is_set(&header.base, &header.base.descriptor->fields[i]));
	header.store = (char *)(uintptr_t) "bank";
	header.store_id = (ProtobufCBinaryData){ 1, &byte };
	header.promised_epoch = (uint64_t)1 << 40;
	header.state = PERSEAS__STATE__STATE_JOINING;
	header.harmless = true;
	header.roster = &roster;
	header.segments = segments;
	header.n_segments = 1;
	static const char *const names[] = { "store",    "store_id", "promised_epoch", "state",
		                             "harmless", "roster",   "segments" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_true(ps_field_is_set(&header.base, field(&header.base, names[i])));
	assert_ptr_equal(ps_field_message(&header.base, field(&header.base, "segments"), 0),
	                 &segment);
	assert_null(ps_field_message(&header.base, field(&header.base, "segments"), 1));
	assert_ptr_equal(ps_field_message(&header.base, field(&header.base, "roster"), 0), &roster);
	assert_null(ps_field_message(&header.base, field(&header.base, "roster"), 1));
}
