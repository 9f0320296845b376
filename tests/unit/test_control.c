/*
 * test_control.c - from the bytes of a request to the bytes of its reply.
 */
#include "store_rig.h"

#include "../support/messages.h"

#include "../../proto/data/frame.h"
#include "../../server/store/store_private.h"
#include "../../server/store/control.h"

struct unit_fixture unit_fixture = { setup, teardown };

/* The reply to bytes, which must always be one that a client accepts. */
static Perseas__Reply *handle(struct mirror *mirror, struct peer *peer, const uint8_t *bytes,
                              size_t len, unsigned *fds)
{
	struct control_reply control;
	Perseas__Reply *reply;
	const char *why = NULL;

	assert_int_equal(control_handle(mirror->stores, &peer->session, "1.2.3", bytes, len,
	                                &control),
	                 0);
	assert_true(control.len >= 4);
	reply = ps_reply_unpack(control.bytes + 4, control.len - 4, &why);
	assert_non_null(reply);
	if (fds)
		*fds = control.fd_count;
	free(control.bytes);
	return reply;
}

static Perseas__Reply *ask(struct mirror *mirror, struct peer *peer,
                           const Perseas__Request *request, unsigned *fds)
{
	Perseas__Reply *reply;
	uint8_t *bytes;
	size_t len;

	assert_int_equal(ps_request_pack(request, &bytes, &len), 0);
	reply = handle(mirror, peer, bytes + 4, len - 4, fds);
	free(bytes);
	return reply;
}

static void done(Perseas__Reply *reply)
{
	perseas__reply__free_unpacked(reply, NULL);
}

/* The status of a reply, which is freed. */
static Perseas__Status status_of(Perseas__Reply *reply)
{
	const Perseas__Status status = reply->status;

	done(reply);
	return status;
}

static Perseas__Reply *ask_status(struct mirror *mirror, struct peer *peer, const char *store)
{
	Perseas__StatusRequest status = MESSAGE_OF(StatusRequest, status_request,
	                                           .store = (char *)store);
	const Perseas__Request request = message_request(&status);
	unsigned fds;
	Perseas__Reply *reply = ask(mirror, peer, &request, &fds);

	assert_int_equal(fds, 0);
	return reply;
}

static Perseas__Reply *ask_claim(struct mirror *mirror, struct peer *peer, uint64_t epoch,
                                 bool shared, unsigned *fds)
{
	Perseas__ClaimRequest claim = MESSAGE_OF(ClaimRequest, claim_request, .store = message_bank,
	                                         .epoch = epoch, .owner = OWNER(BANK_OWNER),
	                                         .shared = shared);
	const Perseas__Request request = message_request(&claim);

	return ask(mirror, peer, &request, fds);
}

static Perseas__Reply *ask_list(struct mirror *mirror, struct peer *peer)
{
	Perseas__ListRequest list = PERSEAS__LIST_REQUEST__INIT;
	const Perseas__Request request = message_request(&list);

	return ask(mirror, peer, &request, NULL);
}

/* Random bytes, nothing at all, and a request with a field out of range. */
TEST(what_is_not_a_request_gets_a_refusal, struct mirror *mirror)
{
	const uint8_t noise[] = { 0xff, 0x01, 0x99, 0x80, 0x80, 0x80 };
	struct peer peer;
	Perseas__Reply *reply;

	peer_init(&peer);
	reply = handle(mirror, &peer, noise, sizeof(noise), NULL);
	assert_true(strlen(reply->message) > 10);
	assert_int_equal(status_of(reply), STATUS(BAD_REQUEST));
	assert_int_equal(status_of(handle(mirror, &peer, noise, 0, NULL)), STATUS(BAD_REQUEST));
	assert_int_equal(status_of(handle(mirror, &peer, NULL, PS_MESSAGE_MAX + 1, NULL)),
	                 STATUS(BAD_REQUEST));
	assert_int_equal(status_of(ask_status(mirror, &peer, "../etc")), STATUS(BAD_REQUEST));
}

/* A refusal carries its sentence, the promise, and no body of a grant. */
TEST(a_refusal_says_why, struct mirror *mirror)
{
	struct peer holder, peer;
	Perseas__Reply *reply;
	unsigned fds;

	mirror_bank(mirror, &holder, false);
	peer_init(&peer);
	reply = ask_claim(mirror, &peer, BANK_EPOCH - 1, true, &fds);
	assert_int_equal(reply->status, STATUS(STALE_EPOCH));
	assert_int_equal(reply->promised_epoch, BANK_EPOCH);
	assert_non_null(strstr(reply->message, "bank"));
	assert_int_equal(reply->body_case, PERSEAS__REPLY__BODY__NOT_SET);
	assert_int_equal(fds, 0);
	done(reply);
	assert_int_equal(status_of(ask_status(mirror, &peer, "none")), STATUS(NO_STORE));
}

/* A status is asked for while an owner is connected. */
TEST(a_status_tells_header_slot_and_owner, struct mirror *mirror)
{
	struct peer holder, peer;
	Perseas__Reply *reply;

	mirror_bank(mirror, &holder, false);
	holder.session.fabric = "tcp";
	peer_init(&peer);
	reply = ask_status(mirror, &peer, "bank");
	assert_int_equal(reply->status, STATUS(OK));
	assert_int_equal(reply->store->status->header->promised_epoch, BANK_EPOCH);
	assert_int_equal(reply->store->status->slot->seq, 1);
	assert_true(reply->store->status->live);
	assert_string_equal(reply->store->status->owner_address, "test");
	assert_string_equal(reply->store->status->fabric, "tcp");
	assert_int_equal(reply->store->status->bytes, 4096 + 4096 + BANK_SIZE);
	done(reply);
}

/* Descriptors go with a grant of shared memory, and with nothing else. */
TEST(descriptors_go_with_a_shared_grant_alone, struct mirror *mirror)
{
	struct peer first, peer;
	Perseas__Reply *reply;
	unsigned fds;

	mirror_bank(mirror, &first, false);
	peer_init(&peer);
	reply = ask_claim(mirror, &peer, BANK_EPOCH, false, &fds);
	assert_int_equal(reply->status, STATUS(OK));
	assert_int_equal(reply->claim->grant->n_regions, 3);
	assert_int_equal(reply->claim->grant->descriptors, 0);
	assert_int_equal(fds, 0);
	done(reply);
	reply = ask_claim(mirror, &peer, BANK_EPOCH, true, &fds);
	assert_int_equal(reply->claim->grant->descriptors, 3);
	assert_int_equal(fds, 3);
	done(reply);
	assert_int_equal(status_of(ask_status(mirror, &peer, "bank")), STATUS(OK));
}

/* Each request without arguments is answered by the reply of its name. */
TEST(each_request_is_answered_by_its_reply, struct mirror *mirror)
{
	Perseas__ConfirmRequest confirm = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__FinishRequest finish = PERSEAS__FINISH_REQUEST__INIT;
	Perseas__JoiningRequest joining = PERSEAS__JOINING_REQUEST__INIT;
	Perseas__ReleaseRequest release = PERSEAS__RELEASE_REQUEST__INIT;
	const struct {
		void *request;
		Perseas__Reply__BodyCase reply;
	} bare[] = {
		{ &confirm, PERSEAS__REPLY__BODY_CONFIRM },
		{ &finish, PERSEAS__REPLY__BODY_FINISH },
		{ &joining, PERSEAS__REPLY__BODY_JOINING },
		{ &release, PERSEAS__REPLY__BODY_RELEASE },
	};
	struct peer peer;

	mirror_bank(mirror, &peer, false);
	for (unsigned i = 0; i < sizeof(bare) / sizeof(bare[0]); i++) {
		const Perseas__Request request = message_request(bare[i].request);
		Perseas__Reply *reply = ask(mirror, &peer, &request, NULL);

		assert_int_equal(reply->body_case, bare[i].reply);
		assert_int_equal(status_of(reply), STATUS(OK));
	}
	assert_null(peer.session.store);
}

static void create_with_long_roster(struct mirror *mirror, const char *store)
{
	char address[256] = "";
	struct message_header *h = message_header_new();
	Perseas__CreateRequest request = MESSAGE_OF(CreateRequest, create_request,
	                                            .store = (char *)store, .store_id = OWNER(1),
	                                            .image_id = message_id(0),
	                                            .log_size = PS_LOG_MIN, .roster = &h->roster);

	memset(address, 'a', 255);
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
		h->members[i].address = address;
	h->roster.n_members = PS_MIRRORS_MAX;
	assert_int_equal(store_create(mirror->stores, NULL, &request, &mirror->why), 0);
	free(h);
}

/* The list of these stores is longer than a message may be. */
TEST(a_list_that_is_too_long_is_refused, struct mirror *mirror)
{
	char store[16];
	Perseas__Reply *reply;
	struct peer peer;

	peer_init(&peer);
	create_with_long_roster(mirror, "store");
	reply = ask_list(mirror, &peer);
	assert_string_equal(reply->list->version, "1.2.3");
	assert_int_equal(reply->list->n_stores, 1);
	assert_int_equal(status_of(reply), STATUS(OK));
	for (int i = 0; i < 260; i++) {
		snprintf(store, sizeof(store), "store-%d", i);
		create_with_long_roster(mirror, store);
	}
	assert_int_equal(status_of(ask_list(mirror, &peer)), STATUS(LIMIT));
}

/* The owner has changed the roster, as it was ordered to. */
static void tell_result(struct mirror *mirror)
{
	Perseas__Order order = MESSAGE_OF(Order, order, .id = OWNER(9),
	                                  .kind = PERSEAS__ORDER_KIND__ORDER_ADD,
	                                  .with = (char *)(uintptr_t) "m9:7170");
	Perseas__OrderRequest request = MESSAGE_OF(OrderRequest, order_request,
	                                           .store = message_bank, .order = &order);
	Perseas__OrderResult result = MESSAGE_OF(OrderResult, order_result, .id = OWNER(9),
	                                         .done = true, .members_before = 1,
	                                         .acks_before = 1, .members = 2, .acks = 2,
	                                         .sent = 1 << 20,
	                                         .whole = (char *)(uintptr_t) "joins");
	Perseas__Location location = MESSAGE_OF(Location, location, .host = message_bank);
	Perseas__MirrorReport report = MESSAGE_OF(MirrorReport, mirror_report,
	                                          .address = (char *)(uintptr_t) "m1:7170",
	                                          .state = (char *)(uintptr_t) "live",
	                                          .location = &location, .copy_place = 3);
	Perseas__MirrorReport *reports[] = { &report };
	Perseas__ConfirmRequest confirm = MESSAGE_OF(ConfirmRequest, confirm_request,
	                                             .n_mirrors = 1, .mirrors = reports,
	                                             .boot = OWNER(8), .result = &result);

	order.address = report.trouble = result.text = (char *)(uintptr_t) "";
	assert_int_equal(store_order(mirror->stores, &request, &mirror->why), 0);
	assert_int_equal(owner_reports_update(store_find(mirror->stores, "bank"), &confirm,
	                                      &mirror->why),
	                 0);
}

/* A standby has a warm copy, the store's roster was changed, and its files were moved. */
static void have_news(struct mirror *mirror, struct peer *standby)
{
	uint8_t mark[PS_OWNER_MARK] = { 1 };
	Perseas__Standby told = MESSAGE_OF(Standby, standby, .name = (char *)(uintptr_t) "node",
	                                   .mark = { sizeof(mark), mark }, .memory = 1, .warm = 1);
	Perseas__WatchRequest watch = MESSAGE_OF(WatchRequest, watch_request, .store = message_bank,
	                                         .standby = &told);
	bool again;

	peer_init(standby);
	standby_record(mirror->stores, &standby->session, &watch);
	tell_result(mirror);
	memory_heap_move(mirror->memory, "bank", ".away");
	assert_false(stores_check_names(mirror->stores, &again));
}

/* A List and a Status have nothing that the version before does not know. */
TEST(an_older_version_is_told_no_news, struct mirror *mirror)
{
	const struct labels labels = { "h1", "r2", "z3" };
	struct peer owner, standby, asker;

	stores_set_labels(mirror->stores, &labels);
	mirror_bank(mirror, &owner, false);
	have_news(mirror, &standby);
	peer_init(&asker);
	for (unsigned version = PS_PROTOCOL_LEAST; version <= PS_PROTOCOL_VERSION; version++) {
		Perseas__Reply *reply, *status;

		asker.session.version = version;
		reply = ask_list(mirror, &asker);
		status = ask_status(mirror, &asker, "bank");
		assert_int_equal(reply->status, STATUS(OK));
		assert_int_equal(reply->list->stores[0]->files_missing[0] != 0, version >= 9);
		assert_int_equal(status->store->status->files_missing[0] != 0, version >= 9);
		assert_string_equal(reply->list->stores[0]->host, version >= 9 ? "h1" : "");
		assert_string_equal(status->store->status->rack, version >= 9 ? "r2" : "");
		assert_string_equal(status->store->status->zone, version >= 9 ? "z3" : "");
		assert_int_equal(reply->list->stores[0]->owner_boot.len, version >= 9 ? 16 : 0);
		assert_int_equal(reply->list->stores[0]->mirrors[0]->location != NULL,
		                 version >= 9);
		assert_int_equal(status->store->status->mirrors[0]->copy_place,
		                 version >= 9 ? 3 : 0);
		assert_int_equal(status->store->status->owner_boot.len, version >= 9 ? 16 : 0);
		assert_int_equal(reply->list->stores[0]->result->acks, version >= 9 ? 2 : 0);
		assert_int_equal(status->store->status->result->members_before, version >= 9);
		assert_int_equal(reply->list->stores[0]->result->sent, version >= 9 ? 1 << 20 : 0);
		assert_string_equal(status->store->status->result->whole,
		                    version >= 9 ? "joins" : "");
		done(reply);
		done(status);
	}
	memory_heap_move(mirror->memory, ".away", "bank");
	store_session_ended(&standby.session);
	store_session_ended(&owner.session);
}
