/*
 * test_aside.c - who is told of images that were set aside or are refused: peers that may read the
 * store, and whose version knows of it.
 */
#include "access_rig.h"

#include "../../server/store/control.h"

struct unit_fixture unit_fixture = { setup, teardown_rules };

static void ignore_complaint(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

static const char *const names[] = { "bank", "bank.old" };

/* The daemon starts over memory in which somebody put two images back, or spoiled their headers. */
static void put_back(struct mirror *mirror, bool spoiled)
{
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(mirror_create(mirror, names[i], (uint8_t)(i + 1)), 0);
		if (spoiled)
			memory_heap_piece(mirror->memory, names[i], "header", NULL)[30] ^= 1;
	}
	if (!spoiled)
		memory_heap_put_back(mirror->memory, 7);
	stores_free(mirror->stores);
	mirror->stores = stores_new(mirror->memory);
	assert_int_equal(stores_load(mirror->stores, ignore_complaint, NULL), 0);
}

/* Returns how many of the two images a list names to this peer. */
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
	count = (unsigned)(reply->list->n_set_aside + reply->list->n_refused);
	for (size_t i = 0; i < reply->list->n_refused; i++)
		assert_non_null(strstr(reply->list->refused[i]->why, "header is not valid"));
	for (size_t i = 0; i < reply->list->n_set_aside; i++)
		assert_non_null(strstr(reply->list->set_aside[i]->folder, ".aside-1"));
	perseas__reply__free_unpacked(reply, NULL);
	return count;
}

TEST(a_list_names_what_is_not_used, struct mirror *mirror)
{
	for (int spoiled = 0; spoiled <= 1; spoiled++) {
		struct peer peer;

		put_back(mirror, spoiled);
		peer_init(&peer);
		assert_int_equal(count_told(mirror, &peer), 2);
		mirror = unit_begin_again();
	}
}

/* A field that the peer does not know would end its connection. */
TEST(an_older_version_is_not_told, struct mirror *mirror)
{
	for (int spoiled = 0; spoiled <= 1; spoiled++) {
		struct peer peer;

		put_back(mirror, spoiled);
		peer_init(&peer);
		peer.session.version = 9;
		assert_int_equal(count_told(mirror, &peer), 2);
		peer.session.version = 8;
		assert_int_equal(count_told(mirror, &peer), 0);
		mirror = unit_begin_again();
	}
}

/* The name tells that there is such a store. */
TEST(who_may_not_read_a_store_is_not_told, struct mirror *mirror)
{
	for (int spoiled = 0; spoiled <= 1; spoiled++) {
		struct peer peer;

		put_back(mirror, spoiled);
		set_rules(mirror, "allow cert:a read store bank\n"
		                  "allow cert:b read store other\n");
		peer_named(&peer, "cert:a");
		assert_int_equal(count_told(mirror, &peer), 1);
		peer_named(&peer, "cert:b");
		assert_int_equal(count_told(mirror, &peer), 0);
		mirror = unit_begin_again();
	}
}
