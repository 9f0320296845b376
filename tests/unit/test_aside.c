/*
 * test_aside.c - who is told of images that were set aside: peers that may read the store, and
 * whose version knows of it.
 */
#include "access_rig.h"

#include "../../server/store/control.h"

struct unit_fixture unit_fixture = { setup, teardown_rules };

static void ignore_complaint(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

/* The daemon starts over memory in which somebody put these two images back. */
static void put_back(struct mirror *mirror)
{
	assert_int_equal(mirror_create(mirror, "bank", 1), 0);
	assert_int_equal(mirror_create(mirror, "bank.old", 2), 0);
	memory_heap_put_back(mirror->memory, 7);
	stores_free(mirror->stores);
	mirror->stores = stores_new(mirror->memory);
	assert_int_equal(stores_load(mirror->stores, ignore_complaint, NULL), 0);
}

/* Returns how many folders a list names to this peer. */
static unsigned count_told(struct mirror *mirror, struct peer *peer)
{
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	Perseas__ListRequest list = PERSEAS__LIST_REQUEST__INIT;
	struct control_reply control;
	const char *why = NULL;
	Perseas__Reply *reply;
	unsigned count;
	uint8_t *bytes;
	size_t len;

	request.body_case = PERSEAS__REQUEST__BODY_LIST;
	request.list = &list;
	assert_int_equal(ps_request_pack(&request, &bytes, &len), 0);
	assert_int_equal(control_handle(mirror->stores, &peer->session, "1", bytes + 4, len - 4,
	                                &control),
	                 0);
	free(bytes);
	reply = ps_reply_unpack(control.bytes + 4, control.len - 4, &why);
	assert_non_null(reply);
	free(control.bytes);
	assert_int_equal(reply->status, STATUS(OK));
	assert_int_equal(reply->list->n_stores, 0);
	count = (unsigned)reply->list->n_set_aside;
	for (unsigned i = 0; i < count; i++)
		assert_non_null(strstr(reply->list->set_aside[i]->folder, ".aside-1"));
	perseas__reply__free_unpacked(reply, NULL);
	return count;
}

TEST(a_list_names_what_was_set_aside, struct mirror *mirror)
{
	struct peer peer;

	put_back(mirror);
	peer_init(&peer);
	assert_int_equal(count_told(mirror, &peer), 2);
}

/* A field that the peer does not know would end its connection. */
TEST(an_older_version_is_not_told, struct mirror *mirror)
{
	struct peer peer;

	put_back(mirror);
	peer_init(&peer);
	peer.session.version = 9;
	assert_int_equal(count_told(mirror, &peer), 2);
	peer.session.version = 8;
	assert_int_equal(count_told(mirror, &peer), 0);
}

/* The name of a folder tells that there is such a store. */
TEST(who_may_not_read_a_store_is_not_told, struct mirror *mirror)
{
	struct peer peer;

	put_back(mirror);
	set_rules(mirror, "allow cert:a read store bank\nallow cert:b read store other\n");
	peer_named(&peer, "cert:a");
	assert_int_equal(count_told(mirror, &peer), 1);
	peer_named(&peer, "cert:b");
	assert_int_equal(count_told(mirror, &peer), 0);
}
