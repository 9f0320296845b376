/*
 * test_version.c - which version two ends of a connection speak, and of which version a message is.
 */
#include "../../proto/control/version.h"
#include "../../proto/control/envelope.h"
#include "../../proto/control/fields.h"
#include "../../proto/data/frame.h"
#include "../support/unit.h"

#include <stdlib.h>
#include <string.h>

enum { NOW = PS_PROTOCOL_VERSION, LAST = NOW - 1, BEFORE = PS_PROTOCOL_LEAST };

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

/* What a mirror of both versions says to owners of each kind. */
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

/* A process that is held to the version before is to others as one that knows no other. */
TEST(a_mirror_of_the_version_before_knows_no_ranges)
{
	ps_version_limit(BEFORE);
	assert_int_equal(ps_version_greeting(), BEFORE);
	assert_int_equal(ps_version_common(BEFORE), BEFORE);
	assert_int_equal(ps_version_common(both(BEFORE, NOW)), 0);
	assert_int_equal(ps_version_answer(both(BEFORE, NOW)), BEFORE);
	assert_int_equal(ps_version_answer(NOW), BEFORE);
}

/* One that is held to the last version names that and what is older. */
TEST(a_mirror_of_the_last_version_answers_a_range_with_it)
{
	ps_version_limit(LAST);
	assert_int_equal(ps_version_greeting(), both(BEFORE, LAST));
	assert_int_equal(ps_version_common(both(BEFORE, NOW)), LAST);
	assert_int_equal(ps_version_answer(both(BEFORE, NOW)), LAST);
	assert_int_equal(ps_version_answer(LAST), LAST);
	assert_int_equal(ps_version_answer(BEFORE), BEFORE);
	assert_int_equal(ps_version_answer(NOW), LAST);
}

/* What the owner makes of any answer: of every version near, and of ranges of them. */
TEST(an_owner_takes_only_a_version_that_it_offered)
{
	const uint32_t sent = ps_version_greeting();
	uint32_t again;

	assert_int_equal(sent, both(BEFORE, NOW));
	assert_int_equal(ps_version_agreed(sent, NOW, &again), NOW);
	assert_int_equal(again, 0);
	assert_int_equal(ps_version_agreed(sent, LAST, &again), LAST);
	assert_int_equal(again, 0);
	assert_int_equal(ps_version_agreed(sent, BEFORE, &again), 0);
	assert_int_equal(again, BEFORE);
	assert_int_equal(ps_version_agreed(BEFORE, BEFORE, &again), BEFORE);
	assert_int_equal(again, 0);
	for (uint32_t between = BEFORE + 1; between < NOW; between++) {
		assert_int_equal(ps_version_agreed(sent, between, &again), between);
		assert_int_equal(again, 0);
	}
	for (uint32_t least = 0; least < 16; least++)
		for (uint32_t most = 0; most < 16; most++) {
			const uint32_t answer = both(least, most);

			if (least == 0 && most >= BEFORE && most <= NOW)
				continue;
			assert_int_equal(ps_version_agreed(sent, answer, &again), 0);
			assert_int_equal(again, 0);
			assert_int_equal(ps_version_agreed(BEFORE, answer, &again), 0);
			assert_int_equal(again, 0);
		}
	assert_int_equal(ps_version_agreed(BEFORE, NOW, &again), 0);
	assert_int_equal(again, 0);
}

/* Both ends by themselves come to the same: an owner that was answered knows it, too. */
TEST(both_ends_agree_whatever_they_are)
{
	for (unsigned owner = BEFORE; owner <= NOW; owner++)
		for (unsigned mirror = BEFORE; mirror <= NOW; mirror++) {
			uint32_t sent, answer, again;
			unsigned spoken, common;

			ps_version_limit(owner);
			sent = ps_version_greeting();
			for (int dialled = 0; dialled < 2; dialled++) {
				ps_version_limit(mirror);
				common = ps_version_common(sent);
				answer = ps_version_answer(sent);
				ps_version_limit(owner);
				spoken = ps_version_agreed(sent, answer, &again);
				assert_int_equal(spoken, common);
				if (spoken)
					break;
				assert_int_equal(again, BEFORE);
				sent = again;
			}
			assert_int_equal(spoken, owner < mirror ? owner : mirror);
		}
}

TEST(a_limit_is_a_version_that_there_is)
{
	static const char *const wrong[] = { "",   "6",  "10",         "7x",
		                             " 7", "-7", "4294967303", "99999999999999999999" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(ps_version_limit_by(wrong[i]));
	assert_true(ps_version_limit_by(NULL));
	assert_int_equal(ps_version_greeting(), both(BEFORE, NOW));
	assert_true(ps_version_limit_by("7"));
	assert_int_equal(ps_version_greeting(), BEFORE);
	assert_false(ps_version_limit_by("10"));
	assert_int_equal(ps_version_greeting(), BEFORE);
	assert_true(ps_version_limit_by("8"));
	assert_int_equal(ps_version_greeting(), both(BEFORE, LAST));
	assert_true(ps_version_limit_by(NULL));
	assert_int_equal(ps_version_greeting(), both(BEFORE, NOW));
}

TEST(versions_are_named_for_people)
{
	char text[PS_VERSION_TEXT];

	assert_string_equal(ps_version_text(text, 7), "version 7");
	assert_string_equal(ps_version_text(text, both(7, 8)), "versions 7 to 8");
	assert_string_equal(ps_version_text(text, both(8, 8)), "version 8");
	assert_string_equal(ps_version_text(text, UINT32_MAX), "version 65535");
}

/* Only the message that version 8 brought is of version 8, in either direction. */
TEST(a_message_is_of_the_version_that_brought_it)
{
	Perseas__HostRequest host = PERSEAS__HOST_REQUEST__INIT;
	Perseas__HostReply told = PERSEAS__HOST_REPLY__INIT;
	Perseas__ListRequest list = PERSEAS__LIST_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	Perseas__Reply reply = PERSEAS__REPLY__INIT;

	request.id = 5;
	assert_int_equal(ps_version_of(&request.base), 7);
	request.body_case = PERSEAS__REQUEST__BODY_LIST;
	request.list = &list;
	assert_int_equal(ps_version_of(&request.base), 7);
	request.body_case = PERSEAS__REQUEST__BODY_HOST;
	request.host = &host;
	assert_int_equal(ps_version_of(&request.base), 8);
	reply.body_case = PERSEAS__REPLY__BODY_HOST;
	reply.host = &told;
	assert_int_equal(ps_version_of(&reply.base), 8);
	reply.body_case = PERSEAS__REPLY__BODY__NOT_SET;
	assert_int_equal(ps_version_of(&reply.base), 7);
}

/* Every answer says which daemon it is from, since version 9. */
TEST(an_identity_is_of_the_version_that_brought_it)
{
	uint8_t id[PS_ID_SIZE] = { 1 };
	Perseas__Reply reply = PERSEAS__REPLY__INIT;
	Perseas__ClaimRequest claim = PERSEAS__CLAIM_REQUEST__INIT;

	reply.daemon = (ProtobufCBinaryData){ sizeof(id), id };
	assert_int_equal(ps_version_of(&reply.base), 9);
	assert_int_equal(ps_version_of(&claim.base), 7);
	claim.daemon = reply.daemon;
	assert_int_equal(ps_version_of(&claim.base), 9);
	claim.daemon.len = 0;
	claim.image_id = reply.daemon;
	assert_int_equal(ps_version_of(&claim.base), 9);
}

/* So is what became of an image's files. */
TEST(missing_files_are_of_the_version_that_brought_them)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;

	assert_int_equal(ps_version_of(&status.base), 7);
	status.files_missing = (char *)(uintptr_t) "its files were removed";
	assert_int_equal(ps_version_of(&status.base), 9);
}

/* So is where the daemon runs. */
TEST(labels_with_a_store_are_of_the_version_that_brought_them)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	char **const labels[] = { &status.host, &status.rack, &status.zone };

	for (unsigned i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
		char *const none = *labels[i];

		assert_int_equal(ps_version_of(&status.base), 7);
		*labels[i] = (char *)(uintptr_t) "here";
		assert_int_equal(ps_version_of(&status.base), 9);
		*labels[i] = none;
	}
}

/* So is where the owner runs. */
TEST(the_boot_of_an_owner_is_of_the_version_that_brought_it)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	Perseas__ConfirmRequest confirm = PERSEAS__CONFIRM_REQUEST__INIT;
	uint8_t id[PS_ID_SIZE] = { 1 };

	assert_int_equal(ps_version_of(&confirm.base), 7);
	status.owner_boot = confirm.boot = (ProtobufCBinaryData){ PS_ID_SIZE, id };
	assert_int_equal(ps_version_of(&status.base), 9);
	assert_int_equal(ps_version_of(&confirm.base), 9);
}

/* So are the sizes of the rosters that a change began and ended with. */
TEST(the_sizes_of_rosters_are_of_the_version_that_brought_them)
{
	Perseas__ConfirmRequest confirm = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__OrderResult result = PERSEAS__ORDER_RESULT__INIT;
	uint32_t *const sizes[] = { &result.members_before, &result.acks_before, &result.members,
		                    &result.acks };

	confirm.result = &result;
	result.done = true;
	assert_int_equal(ps_version_of(&confirm.base), 7);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		*sizes[i] = 1;
		assert_int_equal(ps_version_of(&confirm.base), 9);
		*sizes[i] = 0;
	}
}

/* A standby is older than what it says of its copy, and how soon it says that again. */
TEST(a_copy_is_of_the_version_that_brought_it)
{
	Perseas__WatchRequest watch = PERSEAS__WATCH_REQUEST__INIT;
	Perseas__Standby standby = PERSEAS__STANDBY__INIT;

	watch.standby = &standby;
	standby.order = 1;
	assert_int_equal(ps_version_of(&watch.base), 7);
	watch.within_ms = 1000;
	assert_int_equal(ps_version_of(&watch.base), 8);
	watch.within_ms = 0;
	standby.memory = 1;
	assert_int_equal(ps_version_of(&watch.base), 8);
	standby.memory = 0;
	standby.warm = 1;
	assert_int_equal(ps_version_of(&watch.base), 8);
}

/* The field of a roster's level is older than level 1, and so are orders. */
TEST(a_level_is_of_the_version_that_reads_it)
{
	Perseas__Roster roster = PERSEAS__ROSTER__INIT;
	Perseas__Segment segment = PERSEAS__SEGMENT__INIT;
	Perseas__Order order = PERSEAS__ORDER__INIT;
	uint8_t id[PS_ID_SIZE] = { 1 };
	unsigned version;

	assert_int_equal(ps_version_of(&roster.base), BEFORE);
	for (roster.level = 1; roster.level <= PS_LEVEL_MAX; roster.level++) {
		version = ps_version_of(&roster.base);
		assert_in_range(version, BEFORE + 1, NOW);
		assert_int_equal(ps_version_level(version), roster.level);
		assert_true(ps_version_level(version - 1) < roster.level);
	}
	order.kind = PERSEAS__ORDER_KIND__ORDER_CANCEL;
	assert_int_equal(ps_version_of(&order.base), BEFORE);
	order.kind = PERSEAS__ORDER_KIND__ORDER_RAISE;
	assert_int_equal(ps_version_level(ps_version_of(&order.base)), PS_LEVEL_MAX);
	assert_int_equal(ps_version_level(ps_version_of(&segment.base)), 0);
	segment.random_id = (ProtobufCBinaryData){ PS_ID_SIZE, id };
	assert_int_equal(ps_version_level(ps_version_of(&segment.base)), 1);
}

static const ProtobufCFieldDescriptor *field(const ProtobufCMessage *message, const char *name)
{
	return protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
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
