/*
 * test_envelope.c - messages and header files come back as they were packed; what is not
 * one, takes too much memory or is longer than it may be is refused.
 */
#include "check_rig.h"

/* Packs a request and unpacks it again. */
static Perseas__Request *through(const Perseas__Request *request, const char **why)
{
	Perseas__Request *result;
	uint8_t *bytes;
	uint32_t length;
	size_t len;

	assert_int_equal(ps_request_pack(request, &bytes, &len), 0);
	memcpy(&length, bytes, sizeof length);
	assert_int_equal(length, len - sizeof length);
	result = ps_request_unpack(bytes + sizeof length, length, why);
	free(bytes);
	assert_true(result ? !*why : *why && **why);
	return result;
}

/* A claim, through the wire and back. */
TEST(a_request_comes_back_as_it_was)
{
	Perseas__ClaimRequest claim = MESSAGE_OF(ClaimRequest, claim_request, .store = message_bank,
	                                         .epoch = PS_EPOCH_MAX, .owner = message_id(1),
	                                         .takeover = true);
	Perseas__Request request = message_request(&claim), *back;
	const char *why;

	back = through(&request, &why);
	assert_non_null(back);
	assert_string_equal(back->claim->store, "bank");
	assert_int_equal(back->claim->epoch, PS_EPOCH_MAX);
	assert_true(ps_id_equal(back->claim->owner, message_id(1).data));
	assert_true(back->claim->takeover);
	perseas__request__free_unpacked(back, NULL);
}

/* A mirror's sentence with what an 8-bit terminal obeys, what turns the direction of writing, half
 * a character at its end, and letters of two, three and four bytes. */
TEST(what_is_told_of_a_peer_is_printable)
{
	Perseas__Reply reply = PERSEAS__REPLY__INIT, *back;
	const char *why;
	uint8_t *bytes;
	size_t len;

	reply.status = PERSEAS__STATUS__STATUS_BUSY;
	reply.message = (char *)(uintptr_t) "a\x9b"
					    "31m \xe2\x80\xae \xe2\x80\xa8 \xc3\xa9"
					    "\xe2\x82\xac\xf0\x9f\x99\x82 \xe2\x82";
	assert_int_equal(ps_reply_pack(&reply, &bytes, &len), 0);
	back = ps_reply_unpack(bytes + sizeof(uint32_t), len - sizeof(uint32_t), &why);
	assert_non_null(back);
	assert_string_equal(back->message, "a?31m ? ? \xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82 ??");
	perseas__reply__free_unpacked(back, NULL);
	free(bytes);
}

/* A request without a body; bytes that are none; more of them than a message may have. */
TEST(what_is_no_request_is_refused)
{
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	static uint8_t zeros[PS_MESSAGE_MAX + 1];
	const char *why = NULL;

	assert_null(through(&request, &why));
	assert_null(ps_request_unpack((const uint8_t *)"\xff\xff\xff", 3, &why));
	assert_non_null(why);
	assert_null(ps_request_unpack(zeros, sizeof zeros, &why));
	assert_non_null(why);
	assert_null(ps_reply_unpack(zeros, sizeof zeros, &why));
	assert_non_null(why);
}

/* A field that a later version may have, in the request and in a message inside it. */
TEST(unknown_fields_are_refused)
{
	const uint8_t outside[] = { 1 << 3 | 2, 0, 0xf8, 1, 1 };
	const uint8_t inside[] = { 1 << 3 | 2, 3, 0xf8, 1, 1 };
	const uint8_t deep[] = { 4 << 3 | 2, 5, 1 << 3 | 2, 3, 0xf8, 1, 1 };
	const char *why[3] = { NULL };

	assert_null(ps_request_unpack(outside, sizeof outside, &why[0]));
	assert_null(ps_request_unpack(inside, sizeof inside, &why[1]));
	assert_null(ps_reply_unpack(deep, sizeof deep, &why[2]));
	for (unsigned i = 0; i < 3; i++)
		assert_non_null(strstr(why[i], "does not know"));
}

TEST(names_are_checked)
{
	static const char *const good[] = { "aZ09._-", "-" };
	static const char *const bad[] = {
		"", ".", "..", ".hidden", "a/b", "a b", "a\n", "\xc3\xa4"
	};
	char name[PS_NAME_MAX + 2];

	memset(name, 'x', sizeof name);
	name[PS_NAME_MAX + 1] = 0;
	assert_false(ps_name_valid(name));
	name[PS_NAME_MAX] = 0;
	assert_true(ps_name_valid(name));
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!ps_name_valid(good[i]))
			fail_msg("\"%s\" is refused", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (ps_name_valid(bad[i]))
			fail_msg("\"%s\" is taken", bad[i]);
}

/* A header file, whole; then with each of its bits flipped, and cut at each byte. */
TEST(a_header_file_with_any_bit_flipped_is_refused)
{
	struct message_header *h = message_header_new();
	Perseas__Header *back;
	const char *why;
	uint8_t *bytes;
	size_t len;

	assert_int_equal(ps_header_pack(&h->header, &bytes, &len), 0);
	back = ps_header_unpack(bytes, len, &why);
	assert_non_null(back);
	assert_string_equal(back->store, "bank");
	assert_int_equal(back->promised_epoch, 9);
	assert_int_equal(back->n_segments, 2);
	assert_string_equal(back->segments[1]->name, "s1");
	assert_string_equal(back->creator, "ledger");
	assert_string_equal(back->roster->members[1]->address, "[::1]:7170");
	perseas__header__free_unpacked(back, NULL);
	for (size_t bit = 0; bit < 8 * len; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_null(ps_header_unpack(bytes, len, &why));
		assert_non_null(why);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (size_t cut = 0; cut < len; cut++)
		assert_null(ps_header_unpack(bytes, cut, &why));
	free(bytes);
	h->header.state = PERSEAS__STATE__STATE_NONE;
	assert_int_equal(ps_header_pack(&h->header, &bytes, &len), 0);
	assert_null(ps_header_unpack(bytes, len, &why));
	free(bytes);
	free(h);
}

TEST(a_copy_shares_nothing_with_the_header)
{
	struct message_header *h = message_header_new();
	Perseas__Header *header = ps_header_copy(&h->header);
	Perseas__Roster *roster = ps_roster_copy(&h->roster);

	assert_ptr_not_equal(header->store, message_bank);
	assert_ptr_not_equal(header->segments[0]->name, h->segments[0].name);
	free(h);
	assert_string_equal(header->store, "bank");
	assert_string_equal(header->segments[1]->name, "s1");
	assert_int_equal(ps_log_region_size(header), PS_RING_OFFSET + (1 << 20));
	assert_int_equal(ps_image_size(header), PS_RING_OFFSET + (1 << 20) + 2000);
	assert_int_equal(roster->n_members, 3);
	assert_string_equal(roster->members[2]->address, "unix:///run/perseas");
	perseas__header__free_unpacked(header, NULL);
	perseas__roster__free_unpacked(roster, NULL);
}

/* Many empty elements, which would take a hundred times as much in memory. */
TEST(a_message_that_expands_too_much_is_refused)
{
	const uint32_t body = PS_MESSAGE_MAX / 4;
	uint8_t *bytes = calloc(1, PS_MESSAGE_MAX);
	const char *why = NULL;
	size_t len = 0;

	bytes[len++] = 4 << 3 | 2; /* Reply.list */
	for (uint32_t rest = body; rest; rest >>= 7)
		bytes[len++] = (uint8_t)(rest & 127) | (rest > 127 ? 128 : 0);
	for (uint32_t i = 0; i < body; i += 2)
		bytes[len + i] = 1 << 3 | 2; /* ListReply.stores, no bytes */
	assert_true(len + body <= PS_MESSAGE_MAX);
	assert_null(ps_reply_unpack(bytes, len + body, &why));
	assert_non_null(strstr(why, "the bytes are not a message"));
	free(bytes);
}

/* Allocates from a room that starts empty when *data, the bytes in use, is 0. */
static void *take_room(void *data, size_t size)
{
	static _Alignas(16) uint8_t room[4096];
	size_t *used = data, at = *used;

	*used += (size + 15) & ~(size_t)15;
	assert_true(*used <= sizeof(room));
	return room + at;
}

static void keep_room(void *data, void *memory)
{
	(void)data;
	(void)memory;
}

/* Puts a reply to a Read of `length` bytes together of its parts: it must be the same bytes as one
 * that is packed as a whole. Its rest makes the reply only with the body beside it. */
static void check_read_reply(size_t length)
{
	uint8_t *read = malloc(length), head[PS_READ_REPLY_HEAD], *whole, *parts;
	Perseas__ReadReply body = MESSAGE_OF(ReadReply, read_reply, .bytes = { length, read });
	Perseas__Reply reply = message_reply(&body), *back;
	size_t whole_len, len, at, rest, used = 0;
	ProtobufCAllocator memory = { take_room, keep_room, &used };
	const char *why = NULL;

	memset(read, 0x5a, length);
	reply.id = 300;
	reply.daemon = message_id(3);
	assert_int_equal(ps_reply_pack(&reply, &whole, &whole_len), 0);
	assert_int_equal(ps_read_reply_pack(&reply, &parts, &len, &at), 0);
	assert_int_equal(len, whole_len);
	memcpy(parts + at, read, length);
	assert_memory_equal(parts, whole, len);
	assert_int_equal(ps_read_reply_head((uint32_t)length, head), at - sizeof(uint32_t));
	assert_memory_equal(head, whole + sizeof(uint32_t), at - sizeof(uint32_t));
	rest = at + length;
	assert_null(ps_reply_unpack_in(&memory, whole + rest, len - rest, NULL, &why));
	back = ps_reply_unpack_in(&memory, whole + rest, len - rest, &body, &why);
	assert_non_null(back);
	assert_ptr_equal(back->read, &body);
	assert_int_equal(back->id, 300);
	free(read);
	free(whole);
	free(parts);
}

TEST(a_read_is_the_same_whole_or_in_parts)
{
	const size_t lengths[] = { 1,     124,   125,   126,   127,   128,
		                   16379, 16380, 16381, 16383, 16384, PS_READ_REQUEST_MAX };

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		check_read_reply(lengths[i]);
}

/* Two bodies, one beside the message and one in it. */
TEST(a_reply_has_one_body)
{
	Perseas__ReadReply body = MESSAGE_OF(ReadReply, read_reply, .bytes = message_id(1));
	const Perseas__Reply reply = message_reply(&body);
	size_t len, used = 0;
	ProtobufCAllocator memory = { take_room, keep_room, &used };
	const char *why = NULL;
	uint8_t *bytes;

	assert_int_equal(ps_reply_pack(&reply, &bytes, &len), 0);
	assert_null(ps_reply_unpack_in(&memory, bytes + 4, len - 4, &body, &why));
	assert_non_null(why);
	free(bytes);
}

/* A list of many stores with as many segments as a store can have. */
TEST(a_list_of_large_stores_is_accepted)
{
	enum { STORES = 100 };
	struct message_header *h = message_header_new();
	Perseas__StoreStatus status = MESSAGE_OF(StoreStatus, store_status, .header = &h->header);
	Perseas__StoreStatus *stores[STORES];
	Perseas__ListReply list = MESSAGE_OF(ListReply, list_reply, .stores = stores,
	                                     .n_stores = STORES);
	Perseas__Reply reply = message_reply(&list);

	h->header.n_segments = PS_SEGMENTS_MAX;
	for (int i = 0; i < STORES; i++)
		stores[i] = &status;
	assert_accepted(reply);
	assert_refused_with(reply, h->header.store, message_address[0]);
	assert_refused_with(reply, status.header, NULL);
	free(h);
}

/* A message that would be longer than one may be. */
TEST(a_message_that_is_too_long_is_not_packed)
{
	Perseas__StatusRequest status = PERSEAS__STATUS_REQUEST__INIT;
	Perseas__Request request = message_request(&status);
	char *text = malloc(PS_MESSAGE_MAX + 1);
	uint8_t *bytes;
	size_t len;

	memset(text, 'a', PS_MESSAGE_MAX);
	text[PS_MESSAGE_MAX] = 0;
	status.store = text;
	assert_int_equal(ps_request_pack(&request, &bytes, &len), -1);
	status.store = message_ledger;
	assert_int_equal(ps_request_pack(&request, &bytes, &len), 0);
	free(bytes);
	free(text);
}
