/*
 * test_rights.c - which right each request needs; what is denied changes nothing and tells nothing.
 */
#include "access_rig.h"

#include "../../server/control.h"
#include "../../server/rights.h"

/* A request of each kind; all that name a store name "bank". */
struct any {
	Perseas__Request request;
	Perseas__Header header;
	Perseas__Order order;
	uint8_t body[512];
};

static const ProtobufCFieldDescriptor *field_of(unsigned i)
{
	return &perseas__request__descriptor.fields[i];
}

/* Its first string is the store's name, in each that has one. */
static void any_request(struct any *any, unsigned i, char *store)
{
	const ProtobufCMessageDescriptor *kind = field_of(i)->descriptor;
	const ProtobufCFieldDescriptor *name;

	assert_true(kind->sizeof_message <= sizeof(any->body));
	perseas__request__init(&any->request);
	perseas__header__init(&any->header);
	perseas__order__init(&any->order);
	protobuf_c_message_init(kind, any->body);
	any->request.body_case = (Perseas__Request__BodyCase)field_of(i)->id;
	any->request.list = (void *)any->body;
	any->header.store = store;
	name = protobuf_c_message_descriptor_get_field_by_name(kind, "store");
	if (name)
		memcpy(any->body + name->offset, &store, sizeof(store));
	if (any->request.body_case == PERSEAS__REQUEST__BODY_REBUILD)
		any->request.rebuild->header = &any->header;
	if (any->request.body_case == PERSEAS__REQUEST__BODY_ORDER)
		any->request.order->order = &any->order;
}

static const struct {
	const char *name;
	unsigned rights; /* 0: none */
	bool session;    /* it needs none without a claim */
} table[] = {
	{ "list", 0, false },
	{ "status", RIGHT_READ, false },
	{ "create", RIGHT_CREATE, false },
	{ "settle", RIGHT_CREATE, false },
	{ "abandon", RIGHT_CREATE, false },
	{ "claim", RIGHT_OWN, false },
	{ "confirm", RIGHT_OWN, true },
	{ "add_segments", RIGHT_OWN, true },
	{ "drop_segments", RIGHT_OWN, true },
	{ "publish", RIGHT_OWN, true },
	{ "rebuild", RIGHT_OWN, false },
	{ "finish", RIGHT_OWN, true },
	{ "joining", RIGHT_OWN, true },
	{ "roster", RIGHT_OWN, true },
	{ "release", RIGHT_OWN, true },
	{ "digest", RIGHT_READ, false },
	{ "read", RIGHT_READ, false },
	{ "order", RIGHT_ADMIN, false },
	{ "drop", RIGHT_ADMIN, false },
	{ "spill", RIGHT_ADMIN, false },
};

/* Every request of control.proto, under rules that give one right each. */
static void each_request_needs_its_one_right(void **state)
{
	struct mirror *mirror = *state;
	struct peer holder, other;

	mirror_bank(mirror, &holder, false);
	strcpy(holder.session.identity.name, "uid:7");
	peer_named(&other, "uid:7");
	assert_int_equal(perseas__request__descriptor.n_fields, sizeof(table) / sizeof(table[0]));
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct any any;

		assert_string_equal(field_of(i)->name, table[i].name);
		any_request(&any, i, (char *)(uintptr_t) "bank");
		for (unsigned right = RIGHT_CREATE; right <= RIGHT_ADMIN; right <<= 1) {
			char text[64];
			int due = table[i].rights && right != table[i].rights ? -STATUS(DENIED) : 0;
			struct session *session = table[i].session ? &holder.session
			                                           : &other.session;

			/* So that the holder is not cut by the rules themselves. */
			snprintf(text, sizeof(text), "allow uid:8 own\nallow uid:7 %s",
			         right_name((enum right)right));
			strcpy(holder.session.identity.name, "uid:8");
			set_rules(mirror, text);
			strcpy(holder.session.identity.name, "uid:7");
			assert_int_equal(rights_check(mirror->stores, session, &any.request,
			                              &mirror->why),
			                 due);
			if (table[i].session)
				assert_int_equal(rights_check(mirror->stores, &other.session,
				                              &any.request, &mirror->why),
				                 0);
		}
	}
}

/* The right is there on another store only; and on some stores, not on all. */
static void a_right_on_another_store_is_none(void **state)
{
	struct mirror *mirror = *state;
	struct peer peer;

	peer_named(&peer, "uid:7");
	set_rules(mirror, "allow uid:7 all store ban\nallow uid:7 all store bank-*\n");
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct any any;

		any_request(&any, i, (char *)(uintptr_t) "bank");
		assert_int_equal(rights_check(mirror->stores, &peer.session, &any.request,
		                              &mirror->why),
		                 table[i].rights && !table[i].session ? -STATUS(DENIED) : 0);
	}
}

static Perseas__Reply *ask(struct mirror *mirror, struct peer *peer,
                           const Perseas__Request *request)
{
	struct control_reply control;
	Perseas__Reply *reply;
	const char *why = NULL;
	uint8_t *bytes;
	size_t len;

	assert_int_equal(ps_request_pack(request, &bytes, &len), 0);
	assert_int_equal(control_handle(mirror->stores, &peer->session, "1.2.3", bytes + 4, len - 4,
	                                &control),
	                 0);
	reply = ps_reply_unpack(control.bytes + 4, control.len - 4, &why);
	assert_non_null(reply);
	assert_int_equal(control.fd_count, 0);
	free(control.bytes);
	free(bytes);
	return reply;
}

static Perseas__Reply *ask_status(struct mirror *mirror, struct peer *peer, const char *store)
{
	Perseas__StatusRequest status = PERSEAS__STATUS_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;

	status.store = (char *)(uintptr_t)store;
	request.body_case = PERSEAS__REQUEST__BODY_STATUS;
	request.status = &status;
	return ask(mirror, peer, &request);
}

/* Asked by somebody who may see neither: a store that is there, and one that is not. */
static void what_one_may_not_read_may_not_be_there(void **state)
{
	struct mirror *mirror = *state;
	Perseas__Reply *bank, *none;
	struct peer holder, peer;

	mirror_bank(mirror, &holder, false);
	strcpy(holder.session.identity.name, "uid:7");
	set_rules(mirror, "allow uid:7 all");
	peer_named(&peer, "anonymous");
	bank = ask_status(mirror, &peer, "bank");
	none = ask_status(mirror, &peer, "none");
	assert_int_equal(bank->status, STATUS(DENIED));
	assert_int_equal(none->status, STATUS(DENIED));
	assert_string_equal(bank->message, "anonymous lacks the right \"read\" on store bank; the "
	                                   "access rules of this mirror give rights");
	memcpy(strstr(bank->message, "bank"), "none", 4);
	assert_string_equal(bank->message, none->message);
	assert_int_equal(bank->promised_epoch, 0);
	assert_int_equal(bank->body_case, PERSEAS__REPLY__BODY__NOT_SET);
	perseas__reply__free_unpacked(bank, NULL);
	perseas__reply__free_unpacked(none, NULL);
}

static size_t listed(struct mirror *mirror, const char *name, uint64_t *used)
{
	Perseas__ListRequest list = PERSEAS__LIST_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	Perseas__Reply *reply;
	struct peer peer;
	size_t count;

	peer_named(&peer, name);
	request.body_case = PERSEAS__REQUEST__BODY_LIST;
	request.list = &list;
	reply = ask(mirror, &peer, &request);
	assert_int_equal(reply->status, STATUS(OK));
	count = reply->list->n_stores;
	*used = reply->list->memory_used;
	perseas__reply__free_unpacked(reply, NULL);
	return count;
}

/* Three stores; one may be read, all, or none. */
static void a_list_shows_what_one_may_read(void **state)
{
	struct mirror *mirror = *state;
	uint64_t one, all, none, total;

	assert_int_equal(mirror_create(mirror, "bank-1", 1), 0);
	assert_int_equal(mirror_create(mirror, "bank-2", 2), 0);
	assert_int_equal(mirror_create(mirror, "ledger", 3), 0);
	set_rules(mirror, "allow uid:1 read store ledger\nallow uid:2 read\nallow uid:3 all\n"
	                  "allow uid:4 own,create,recover\n");
	assert_int_equal(listed(mirror, "uid:1", &one), 1);
	assert_int_equal(listed(mirror, "uid:2", &all), 3);
	assert_int_equal(listed(mirror, "uid:3", &total), 3);
	assert_int_equal(listed(mirror, "uid:4", &none), 0);
	assert_int_equal(none, 0);
	assert_true(one > 0 && one < all);
	assert_int_equal(total, mirror->memory->ops->used(mirror->memory));
}

/* Everything that can be asked of a store whose owner lives, by one who may do nothing. */
static void what_is_denied_touches_nobody(void **state)
{
	struct mirror *mirror = *state;
	Perseas__Header *before;
	struct peer holder, peer;
	uint64_t used;
	uint8_t token[PS_ID_SIZE];

	mirror_bank(mirror, &holder, true);
	used = mirror->memory->ops->used(mirror->memory);
	strcpy(holder.session.identity.name, "uid:7");
	set_rules(mirror, "allow uid:7 all");
	before = ps_header_copy(mirror_header(mirror, "bank"));
	memcpy(token, holder.session.token, sizeof(token));
	peer_named(&peer, "anonymous");
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct any any;

		any_request(&any, i, (char *)(uintptr_t) "bank");
		if (!table[i].rights || table[i].session)
			continue;
		assert_int_equal(rights_check(mirror->stores, &peer.session, &any.request,
		                              &mirror->why),
		                 -STATUS(DENIED));
		assert_non_null(strstr(mirror->why.text, "anonymous"));
		assert_non_null(strstr(mirror->why.text, right_name(table[i].rights)));
	}
	assert_int_equal(holder.cuts, 0);
	assert_memory_equal(holder.session.token, token, sizeof(token));
	assert_int_equal(mirror_header(mirror, "bank")->promised_epoch, before->promised_epoch);
	assert_int_equal(mirror->memory->ops->used(mirror->memory), used);
	perseas__header__free_unpacked(before, NULL);
}

static int claim(struct mirror *mirror, struct peer *peer, uint64_t epoch, bool takeover)
{
	Perseas__ClaimRequest body = PERSEAS__CLAIM_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	Perseas__Reply *reply;
	int status;

	body.store = (char *)(uintptr_t) "bank";
	body.epoch = epoch;
	body.owner = OWNER(77);
	body.takeover = takeover;
	request.body_case = PERSEAS__REQUEST__BODY_CLAIM;
	request.claim = &body;
	reply = ask(mirror, peer, &request);
	status = reply->status;
	perseas__reply__free_unpacked(reply, NULL);
	return status;
}

/* The owner lives. Who may own is told that it is busy, who may also recover gets it. */
static void a_takeover_needs_the_right_to_recover(void **state)
{
	struct mirror *mirror = *state;
	struct peer holder, peer;

	mirror_bank(mirror, &holder, false);
	strcpy(holder.session.identity.name, "uid:7");
	set_rules(mirror, "allow uid:7 all\nallow uid:8 own,read\nallow uid:9 recover\n"
	                  "allow uid:10 own,recover");
	peer_named(&peer, "uid:8");
	assert_int_equal(claim(mirror, &peer, 9, false), STATUS(BUSY));
	assert_int_equal(claim(mirror, &peer, 9, true), STATUS(DENIED));
	peer_named(&peer, "uid:9");
	assert_int_equal(claim(mirror, &peer, 9, true), STATUS(DENIED));
	assert_int_equal(holder.cuts, 0);
	assert_ptr_equal(holder.session.store,
	                 stores_session(mirror->stores, holder.session.token)->store);
	peer_named(&peer, "uid:10");
	assert_int_equal(claim(mirror, &peer, 9, true), STATUS(OK));
	assert_int_equal(holder.cuts, 1);
}

/* Other rules: those who still may own go on, who may not is cut before it asks again. */
static void who_may_no_longer_own_is_cut_at_once(void **state)
{
	struct mirror *mirror = *state;
	Perseas__ConfirmRequest confirm = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__ConfirmReply reply = PERSEAS__CONFIRM_REPLY__INIT;
	struct peer holder;

	mirror_bank(mirror, &holder, false);
	strcpy(holder.session.identity.name, "uid:7");
	set_rules(mirror, "allow uid:7 own");
	assert_int_equal(holder.cuts, 0);
	assert_int_equal(store_confirm(&holder.session, &confirm, &reply, &mirror->why), 0);
	set_rules(mirror, "allow uid:7 read");
	assert_int_equal(holder.cuts, 1);
	assert_int_equal(store_confirm(&holder.session, &confirm, &reply, &mirror->why),
	                 -STATUS(NO_SESSION));
	assert_int_equal(claim(mirror, &holder, 9, false), STATUS(DENIED));
	set_rules(mirror, "allow uid:7 own");
	assert_int_equal(claim(mirror, &holder, 9, false), STATUS(OK));
}

/* The owner on this host has the memory, and is in the middle of a transaction. What it writes
 * after the rules changed is in no image any more. */
static void memory_that_was_given_is_copied_away(void **state)
{
	struct mirror *mirror = *state;
	const struct ps_promise *page;
	struct peer holder, next;
	struct writer writer;
	uint64_t generation;
	uint8_t seven[64];

	mirror_bank(mirror, &holder, true);
	strcpy(holder.session.identity.name, "uid:7");
	generation = mirror_header(mirror, "bank")->generation;
	writer_init(&writer, &holder.session);
	page = (const void *)session_memory(&holder.session, PS_REGION_PROMISE, 0, sizeof(*page),
	                                    false);
	memset(seven, 7, sizeof(seven));
	writer_write(&writer, 0, 0, seven, sizeof(seven), WRITE_RECORD | WRITE_DATA);
	memory_heap_keep_removed(mirror->memory, true);
	set_rules(mirror, "allow uid:8 all");
	assert_true(page->epoch == UINT64_MAX);
	assert_false(mirror_header(mirror, "bank")->shared);
	assert_int_equal(mirror_header(mirror, "bank")->generation, generation + 1);
	writer_write(&writer, 0, 0, seven, sizeof(seven), WRITE_ALL);
	peer_named(&next, "uid:8");
	assert_int_equal(claim(mirror, &next, 9, false), STATUS(OK));
	assert_memory_equal(session_memory(&next.session, PS_REGION_SEGMENT, 0, 4, false), "made",
	                    4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown_rules)
		TEST(each_request_needs_its_one_right),
		TEST(a_right_on_another_store_is_none),
		TEST(what_one_may_not_read_may_not_be_there),
		TEST(a_list_shows_what_one_may_read),
		TEST(what_is_denied_touches_nobody),
		TEST(a_takeover_needs_the_right_to_recover),
		TEST(who_may_no_longer_own_is_cut_at_once),
		TEST(memory_that_was_given_is_copied_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
