/*
 * test_host.c - what a daemon tells of where it runs and of what it has left.
 */
#include "../../server/store/control.h"
#include "../../server/store/store.h"
#include "../support/mirror.h"
#include "../support/unit.h"

static int setup(void **state)
{
	struct mirror *mirror = calloc(1, sizeof(*mirror));

	assert_non_null(mirror);
	mirror_open(mirror);
	*state = mirror;
	return 0;
}

static int teardown(void **state)
{
	mirror_close(*state);
	free(*state);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static void host_of(struct mirror *mirror, Perseas__HostReply *reply)
{
	perseas__host_reply__init(reply);
	store_host(mirror->stores, reply);
}

TEST(a_daemon_tells_its_labels, struct mirror *mirror)
{
	const struct labels labels = { "h1", "r2", "" };
	Perseas__HostReply reply;

	host_of(mirror, &reply);
	assert_string_equal(reply.host, "");
	stores_set_labels(mirror->stores, &labels);
	host_of(mirror, &reply);
	assert_string_equal(reply.host, "h1");
	assert_string_equal(reply.rack, "r2");
	assert_string_equal(reply.zone, "");
}

/* Under a limit, and when a store has taken some of it. */
TEST(what_is_left_is_what_images_can_still_take, struct mirror *mirror)
{
	Perseas__HostReply before, after;
	struct peer peer;

	memory_heap_set_limit(mirror->memory, 1 << 20);
	host_of(mirror, &before);
	assert_int_equal(before.memory_limit, 1 << 20);
	assert_int_equal(before.memory_room, (1 << 20) - before.memory_used);
	assert_int_equal(before.stores + before.owners, 0);
	mirror_bank(mirror, &peer, false);
	host_of(mirror, &after);
	assert_true(after.memory_used > before.memory_used);
	assert_int_equal(after.memory_room, (1 << 20) - after.memory_used);
	assert_int_equal(after.stores, 1);
	assert_int_equal(after.owners, 1);
	store_session_ended(&peer.session);
	host_of(mirror, &after);
	assert_int_equal(after.stores, 1);
	assert_int_equal(after.owners, 0);
}

/* The reply of a mirror that names what is no label, or more owners than stores. */
TEST_WITH(a_reply_that_cannot_be_is_refused, NULL, NULL)
{
	static const char *const wrong[] = { ".h", "a b", "a\n", "a=b",
		                             ("0123456789012345678901234567890123456789"
		                              "012345678901234567890123") };
	Perseas__HostReply host = PERSEAS__HOST_REPLY__INIT;
	Perseas__Reply reply = PERSEAS__REPLY__INIT;

	reply.id = 1;
	reply.body_case = PERSEAS__REPLY__BODY_HOST;
	reply.host = &host;
	for (size_t i = 0; i < 3 * sizeof(wrong) / sizeof(wrong[0]) + 3; i++) {
		char **const labels[] = { &host.host, &host.rack, &host.zone };
		const bool right = i < 3;
		Perseas__Reply *read;
		const char *why;
		uint8_t *bytes;
		size_t len;

		*labels[i % 3] = (char *)(uintptr_t)(right ? "r-1.A_z" : wrong[i / 3 - 1]);
		assert_int_equal(ps_reply_pack(&reply, &bytes, &len), 0);
		read = ps_reply_unpack(bytes + 4, len - 4, &why);
		assert_true((read != NULL) == right);
		if (read)
			perseas__reply__free_unpacked(read, NULL);
		free(bytes);
		*labels[i % 3] = (char *)(uintptr_t) "";
	}
}
