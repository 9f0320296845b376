/*
 * test_rights.c - which right each request needs; what is denied changes nothing and tells nothing.
 */
#include "access_rig.h"

#include "../../server/store/rights.h"

struct unit_fixture unit_fixture = { setup_bank, teardown_rules };

static char bank_name[] = "bank";

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
static void any_request(struct any *any, unsigned i)
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
	any->header.store = bank_name;
	name = protobuf_c_message_descriptor_get_field_by_name(kind, "store");
	if (name)
		memcpy(any->body + name->offset, &(char *){ bank_name }, sizeof(char *));
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
	{ "watch", RIGHT_READ, false },
	{ "move", RIGHT_OWN | RIGHT_RECOVER, false },
	{ "destroy", RIGHT_OWN, true },
	{ "host", RIGHT_READ, false },
	{ "lifeline", 0, false },
	{ "copy_turn", RIGHT_OWN, false },
};

enum { REQUESTS = sizeof(table) / sizeof(table[0]) };

/* Returns what the mirror answers when a session makes request i of the table: 0, or -STATUS. */
static int check_right(struct mirror *mirror, struct session *session, unsigned i)
{
	struct any any;

	any_request(&any, i);
	return rights_check(mirror->stores, session, &any.request, &mirror->why);
}

/* Returns the right that a sentence names of several that are missing. */
static enum right lowest_of(unsigned rights)
{
	return (enum right)(rights & -rights);
}

/* The bank's owner is uid:7, and sees these rules. */
static void own_bank(struct mirror *mirror, const char *text)
{
	strcpy(holder.session.identity.name, "uid:7");
	set_rules(mirror, text);
}

/* Every request of control.proto, under rules that give one right each. */
TEST(each_request_needs_its_rights, struct mirror *mirror)
{
	peer_named(&rival, "uid:7");
	/* One field is the request's id. */
	assert_int_equal(perseas__request__descriptor.n_fields - 1, REQUESTS);
	for (unsigned i = 0; i < REQUESTS; i++) {
		assert_string_equal(field_of(i)->name, table[i].name);
		for (unsigned right = RIGHT_CREATE; right <= RIGHT_ADMIN; right <<= 1) {
			char text[64];
			int due = table[i].rights & ~right ? -STATUS(DENIED) : 0;

			/* Keeps the right that the holder needs, so that the rules do not cut its
			 * session. */
			snprintf(text, sizeof(text), "allow uid:8 own\nallow uid:7 %s",
			         right_name((enum right)right));
			strcpy(holder.session.identity.name, "uid:8");
			set_rules(mirror, text);
			strcpy(holder.session.identity.name, "uid:7");
			if (table[i].session) {
				assert_int_equal(check_right(mirror, &holder.session, i), due);
				due = 0;
			}
			assert_int_equal(check_right(mirror, &rival.session, i), due);
		}
	}
}

TEST(both_rights_of_a_move_are_enough, struct mirror *mirror)
{
	const unsigned move = PERSEAS__REQUEST__BODY_MOVE;
	unsigned i = 0;

	peer_named(&rival, "uid:7");
	while (field_of(i)->id != move)
		i++;
	set_rules(mirror, "allow uid:7 create,own,read,admin,share");
	assert_int_equal(check_right(mirror, &rival.session, i), -STATUS(DENIED));
	assert_non_null(strstr(mirror->why.text, "\"recover\""));
	set_rules(mirror, "allow uid:7 own,recover");
	assert_int_equal(check_right(mirror, &rival.session, i), 0);
}

/* The right is there on another store only; and on some stores, not on all. */
TEST(a_right_on_another_store_is_none, struct mirror *mirror)
{
	peer_named(&rival, "uid:7");
	set_rules(mirror, "allow uid:7 all store ban\nallow uid:7 all store bank-*\n");
	for (unsigned i = 0; i < REQUESTS; i++)
		assert_int_equal(check_right(mirror, &rival.session, i),
		                 table[i].rights && !table[i].session ? -STATUS(DENIED) : 0);
}

/* Asked by somebody who may see neither: a store that is there, and one that is not. */
TEST(what_one_may_not_read_may_not_be_there, struct mirror *mirror)
{
	Perseas__Reply *bank, *none;

	own_bank(mirror, "allow uid:7 all");
	peer_named(&rival, "anonymous");
	bank = ask_status(mirror, &rival, "bank");
	none = ask_status(mirror, &rival, "none");
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
	const Perseas__Request request = PS_REQUEST(list, LIST, &list);
	Perseas__Reply *reply;
	struct peer peer;
	size_t count;

	peer_named(&peer, name);
	reply = ask_control(mirror, &peer, &request);
	assert_int_equal(reply->status, STATUS(OK));
	count = reply->list->n_stores;
	*used = reply->list->memory_used;
	perseas__reply__free_unpacked(reply, NULL);
	return count;
}

/* Three stores; one may be read, all, or none. */
TEST_WITH(a_list_shows_what_one_may_read, setup, teardown_rules, struct mirror *mirror)
{
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
TEST_WITH(what_is_denied_touches_nobody, setup_shared_bank, teardown_rules, struct mirror *mirror)
{
	Perseas__Header *before;
	uint64_t used;
	uint8_t token[PS_ID_SIZE];

	used = mirror->memory->ops->used(mirror->memory);
	strcpy(holder.session.identity.name, "uid:7");
	set_rules(mirror, "allow uid:7 all");
	before = ps_header_copy(mirror_header(mirror, "bank"));
	memcpy(token, holder.session.token, sizeof(token));
	peer_named(&rival, "anonymous");
	for (unsigned i = 0; i < REQUESTS; i++) {
		if (!table[i].rights || table[i].session)
			continue;
		assert_int_equal(check_right(mirror, &rival.session, i), -STATUS(DENIED));
		assert_non_null(strstr(mirror->why.text, "anonymous"));
		assert_non_null(strstr(mirror->why.text, right_name(lowest_of(table[i].rights))));
	}
	assert_int_equal(holder.cuts, 0);
	assert_memory_equal(holder.session.token, token, sizeof(token));
	assert_int_equal(mirror_header(mirror, "bank")->promised_epoch, before->promised_epoch);
	assert_int_equal(mirror->memory->ops->used(mirror->memory), used);
	perseas__header__free_unpacked(before, NULL);
}

static int claim_as(struct mirror *mirror, struct peer *peer, uint64_t epoch,
                    ProtobufCBinaryData owner, bool takeover)
{
	Perseas__ClaimRequest body = PERSEAS__CLAIM_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(claim, CLAIM, &body);
	Perseas__Reply *reply;
	int status;

	body.store = bank_name;
	body.epoch = epoch;
	body.owner = owner;
	body.takeover = takeover;
	reply = ask_control(mirror, peer, &request);
	status = reply->status;
	perseas__reply__free_unpacked(reply, NULL);
	return status;
}

static int claim(struct mirror *mirror, struct peer *peer, uint64_t epoch, bool takeover)
{
	return claim_as(mirror, peer, epoch, OWNER(77), takeover);
}

/* Somebody learned the id of the owner that lives, and claims as that owner. Only the identity of
 * its session is believed to be that owner. */
TEST(an_owners_id_is_no_right_to_recover, struct mirror *mirror)
{
	own_bank(mirror, "allow uid:7 own\nallow uid:8 own,read\nallow uid:9 own,recover");
	peer_named(&rival, "uid:8");
	assert_int_equal(claim_as(mirror, &rival, BANK_EPOCH, OWNER(BANK_OWNER), false),
	                 STATUS(BUSY));
	assert_int_equal(claim_as(mirror, &rival, 9, OWNER(BANK_OWNER), false), STATUS(BUSY));
	assert_int_equal(claim_as(mirror, &rival, 9, OWNER(BANK_OWNER), true), STATUS(DENIED));
	assert_int_equal(holder.cuts, 0);
	peer_named(&rival, "uid:7");
	assert_int_equal(claim_as(mirror, &rival, 9, OWNER(BANK_OWNER), false), STATUS(OK));
	assert_int_equal(holder.cuts, 1);
	peer_named(&holder, "uid:9");
	assert_int_equal(claim_as(mirror, &holder, 10, OWNER(BANK_OWNER), true), STATUS(OK));
	assert_int_equal(rival.cuts, 1);
}

/* The part of an owner's id that others see tells owners apart, and is too little for a claim. */
TEST(nobody_is_told_an_owners_whole_id, struct mirror *mirror)
{
	static const uint8_t whole[PS_ID_SIZE] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 9, 9, 9, 9 };
	Perseas__ReadRequest read = PERSEAS__READ_REQUEST__INIT;
	Perseas__ReadReply bytes = PERSEAS__READ_REPLY__INIT;
	Perseas__DigestRequest digest = PERSEAS__DIGEST_REQUEST__INIT;
	Perseas__DigestReply crc = PERSEAS__DIGEST_REPLY__INIT;
	Perseas__Reply *reply;

	assert_int_equal(claim_as(mirror, &holder, 9,
	                          (ProtobufCBinaryData){ PS_ID_SIZE, (uint8_t *)(uintptr_t)whole },
	                          true),
	                 STATUS(OK));
	reply = ask_status(mirror, &holder, "bank");
	assert_true(ps_is_same_owner(reply->store->status->header->promised_owner, whole));
	for (unsigned i = PS_OWNER_SHOWN_SIZE; i < PS_ID_SIZE; i++)
		assert_int_equal(reply->store->status->header->promised_owner.data[i], 0);
	perseas__reply__free_unpacked(reply, NULL);
	read.store = digest.store = bank_name;
	read.region = digest.region = PS_REGION_PROMISE;
	read.length = digest.length = 24;
	assert_int_equal(store_read(mirror->stores, &read, &bytes, &mirror->why),
	                 -STATUS(BAD_REQUEST));
	assert_int_equal(store_digest(mirror->stores, &digest, &crc, &mirror->why),
	                 -STATUS(BAD_REQUEST));
}

/* The mirror has nothing of the store: to rebuild it here is to make it. Where there is something,
 * it is the owner's to mend. */
TEST(a_store_is_made_by_a_rebuild_with_the_right_to_create, struct mirror *mirror)
{
	Perseas__RebuildRequest request = PERSEAS__REBUILD_REQUEST__INIT;
	Perseas__RebuildReply reply = PERSEAS__REBUILD_REPLY__INIT;

	request.header = ps_header_copy(mirror_header(mirror, "bank"));
	request.epoch = 9;
	request.owner = OWNER(77);
	free(request.header->store);
	request.header->store = strdup("ledger");
	peer_named(&rival, "uid:7");
	set_rules(mirror,
	          "allow uid:7 own,read,recover,admin,share\nallow uid:7 create store other");
	assert_int_equal(store_rebuild(mirror->stores, &rival.session, &request, &reply,
	                               &mirror->why),
	                 -STATUS(DENIED));
	assert_string_equal(
		mirror->why.text,
		"uid:7 lacks the right \"create\" on store ledger, which this mirror does "
		"not have; the access rules of this mirror give rights");
	assert_int_equal(mirror_claim(mirror, &rival, "ledger", 9, 77, NULL), -STATUS(NO_STORE));
	set_rules(mirror, "allow uid:7 own,create");
	assert_int_equal(store_rebuild(mirror->stores, &rival.session, &request, &reply,
	                               &mirror->why),
	                 0);
	perseas__header__free_unpacked(request.header, NULL);
}

/* The owner lives. The right to own gets an answer that it is busy; with recover, the store. */
TEST(a_takeover_needs_the_right_to_recover, struct mirror *mirror)
{
	own_bank(mirror, "allow uid:7 all\nallow uid:8 own,read\nallow uid:9 recover\n"
	                 "allow uid:10 own,recover");
	peer_named(&rival, "uid:8");
	assert_int_equal(claim(mirror, &rival, 9, false), STATUS(BUSY));
	assert_int_equal(claim(mirror, &rival, 9, true), STATUS(DENIED));
	peer_named(&rival, "uid:9");
	assert_int_equal(claim(mirror, &rival, 9, true), STATUS(DENIED));
	assert_int_equal(holder.cuts, 0);
	assert_ptr_equal(holder.session.store,
	                 stores_find_session(mirror->stores, holder.session.token)->store);
	peer_named(&rival, "uid:10");
	assert_int_equal(claim(mirror, &rival, 9, true), STATUS(OK));
	assert_int_equal(holder.cuts, 1);
}

/* Other rules: those who still may own go on, who may not is cut before it asks again. */
TEST(who_may_no_longer_own_is_cut_at_once, struct mirror *mirror)
{
	Perseas__ConfirmRequest confirm = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__ConfirmReply reply = PERSEAS__CONFIRM_REPLY__INIT;

	own_bank(mirror, "allow uid:7 own");
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

/* A claim that wants the memory itself is granted without it, and a session that has it ends with
 * the right. */
TEST(memory_is_shared_with_those_who_may, struct mirror *mirror)
{
	store_session_ended(&holder.session);
	peer_named(&holder, "uid:7");
	set_rules(mirror, "allow uid:7 own");
	assert_int_equal(mirror_share(mirror, &holder, "bank", 9, 2, &granted), 0);
	assert_int_equal(granted.grant->descriptors, 0);
	assert_false(granted.grant->barrier);
	assert_false(holder.session.shared);
	assert_false(mirror_header(mirror, "bank")->shared);
	set_rules(mirror, "allow uid:7 own,share");
	assert_int_equal(holder.cuts, 0);
	assert_int_equal(mirror_share(mirror, &holder, "bank", 10, 2, &granted), 0);
	assert_int_equal(granted.grant->descriptors, granted.grant->n_regions);
	assert_true(mirror_header(mirror, "bank")->shared);
	assert_string_equal(mirror_header(mirror, "bank")->sharer, "uid:7");
	holder.cuts = 0;
	set_rules(mirror, "allow uid:7 own\nallow * share store other");
	assert_int_equal(holder.cuts, 1);
	assert_null(session_store(&holder.session));
}

/* The owner on this host has the memory, and is in the middle of a transaction. What it writes
 * after the rules changed is in no image any more. */
TEST_WITH(memory_that_was_given_is_copied_away, setup_shared_bank, teardown_rules,
          struct mirror *mirror)
{
	const struct ps_promise *page;
	struct writer writer;
	uint64_t generation;
	uint8_t seven[64];

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
	peer_named(&rival, "uid:8");
	assert_int_equal(claim(mirror, &rival, 9, false), STATUS(OK));
	assert_memory_equal(session_memory(&rival.session, PS_REGION_SEGMENT, 0, 4, false), "made",
	                    4);
}
