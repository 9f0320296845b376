/*
 * verbs_daemon.h - a daemon over fake RDMA devices, and owners that are made by hand.
 */
#ifndef PERSEAS_TESTS_VERBS_DAEMON_H
#define PERSEAS_TESTS_VERBS_DAEMON_H

#include "../support/daemon_fixture.h"
#include "../support/unit.h"
#include "../support/verbs_peer.h"

#include "../../proto/data/frame.h"

#include <event2/event.h>

/* The daemon's device, and the one that connections come from. */
static struct verbs_fake_device *rxe, *far;

/* A control connection, its claim, and a data path. */
struct far_owner {
	int control;
	uint8_t token[PS_ID_SIZE];
	unsigned port;
	char trouble[400];
	Perseas__Region regions[PS_REGIONS_MAX]; /* by region; id 0 and length 0: none */
	struct verbs_peer peer;
};

/* The owner of the store "bank", and one that comes later: the next owner of "bank", or that of
 * another store. */
static struct far_owner alice, bob;

static inline void leave(struct far_owner *owner)
{
	peer_close(&owner->peer);
	if (owner->control)
		close(owner->control);
	owner->control = 0;
}

static int start(void **state, const struct ps_verbs *verbs, const struct rdma_options *options)
{
	struct fixture *fixture;

	memset(&alice, 0, sizeof(alice));
	memset(&bob, 0, sizeof(bob));
	verbs_fake_begin();
	rxe = verbs_fake_device("rxe0", "127.0.0.1");
	far = verbs_fake_device("rxe9", "10.9.0.9");
	verbs_fake_source(far);
	if (fixture_setup(state))
		return -1;
	fixture = *state;
	return rdma_start(fixture->daemon, verbs, options);
}

static inline int setup(void **state)
{
	const struct rdma_options options = { .enabled = true };

	return start(state, &verbs_fake_table, &options);
}

static int teardown(void **state)
{
	int rc;

	leave(&alice);
	leave(&bob);
	rc = fixture_teardown(state);

	if (verbs_fake_end())
		fail_msg("%s", verbs_fake_trouble());
	return rc;
}

/* Lets the daemon do all that there is to do. */
static inline void settle(struct fixture *fixture)
{
	for (int i = 0; i < 20; i++)
		event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
}

static inline void take_grant(struct far_owner *owner, const Perseas__Grant *grant)
{
	memcpy(owner->token, grant->token.data, PS_ID_SIZE);
	owner->port = grant->rdma_port;
	snprintf(owner->trouble, sizeof(owner->trouble), "%s", grant->rdma_trouble);
	memset(owner->regions, 0, sizeof(owner->regions));
	for (size_t i = 0; i < grant->n_regions; i++)
		owner->regions[grant->regions[i]->id] = *grant->regions[i];
}

static inline void ask_claim(int fd, const char *store, uint64_t epoch, bool rdma)
{
	Perseas__ClaimRequest claim = PERSEAS__CLAIM_REQUEST__INIT;
	uint8_t id[PS_ID_SIZE] = { (uint8_t)epoch };

	claim.store = (char *)(uintptr_t)store;
	claim.epoch = epoch;
	claim.owner = (ProtobufCBinaryData){ PS_ID_SIZE, id };
	claim.takeover = true;
	claim.rdma = rdma;
	fixture_ask(fd, PERSEAS__REQUEST__BODY_CLAIM, &claim);
}

/* The next reply, which must grant what was asked. The caller frees it. */
static inline Perseas__Reply *granted_reply(struct fixture *fixture, const struct far_owner *owner)
{
	Perseas__Reply *reply = fixture_reply(fixture, owner->control);

	if (reply->status != STATUS(OK))
		fail_msg("%s", reply->message);
	return reply;
}

/* Claims over a control connection that has greeted. The caller frees the reply. */
static inline Perseas__Reply *claim_reply(struct fixture *fixture, struct far_owner *owner,
                                          const char *store, uint64_t epoch)
{
	Perseas__Reply *reply;

	ask_claim(owner->control, store, epoch, true);
	reply = granted_reply(fixture, owner);
	take_grant(owner, reply->claim->grant);
	return reply;
}

/* Opens a control connection, and greets. */
static inline void greet(struct fixture *fixture, struct far_owner *owner)
{
	memset(owner, 0, sizeof(*owner));
	owner->control = fixture_tcp(fixture);
	fixture_greet(fixture, owner->control);
}

/* Claims again over the same control connection. */
static inline void claim_again(struct fixture *fixture, struct far_owner *owner, uint64_t epoch)
{
	fixture_done(claim_reply(fixture, owner, "bank", epoch));
}

static inline void claim(struct fixture *fixture, struct far_owner *owner, const char *store,
                         uint64_t epoch)
{
	greet(fixture, owner);
	fixture_done(claim_reply(fixture, owner, store, epoch));
}

/* The path is asked for, and the daemon has not looked at that. */
static inline void begin_path(struct far_owner *owner, const struct ps_hello *hello)
{
	peer_open(&owner->peer, "127.0.0.1", owner->port);
	assert_int_equal(peer_connect(&owner->peer, hello, sizeof(*hello)), 0);
}

/* Asks for the data path. The type of the event that answers; private data in peer.given. */
static inline int ask_path(struct fixture *fixture, struct far_owner *owner,
                           const struct ps_hello *hello, unsigned length)
{
	peer_open(&owner->peer, "127.0.0.1", owner->port);
	assert_int_equal(peer_connect(&owner->peer, hello, length), 0);
	settle(fixture);
	return peer_event(&owner->peer, NULL);
}

static inline struct ps_hello hello_of(const struct far_owner *owner)
{
	struct ps_hello hello = { .magic = PS_DATA_MAGIC, .version = PS_DATA_VERSION };

	memcpy(hello.token, owner->token, PS_ID_SIZE);
	return hello;
}

static inline void open_path(struct fixture *fixture, struct far_owner *owner)
{
	struct ps_hello hello = hello_of(owner);
	struct ps_answer answer;

	if (!owner->port)
		fail_msg("no rdma: %s", owner->trouble);
	assert_int_equal(ask_path(fixture, owner, &hello, sizeof(hello)),
	                 RDMA_CM_EVENT_ESTABLISHED);
	memcpy(&answer, owner->peer.given, sizeof(answer));
	assert_int_equal(answer.op, PS_OP_HELLO);
	assert_int_equal(answer.status, PS_ANSWER_OK);
	settle(fixture);
}

/* The status of the answer that refuses the path. */
static inline int refused_with(struct fixture *fixture, struct far_owner *owner,
                               const struct ps_hello *hello, unsigned length)
{
	struct ps_answer answer;

	assert_int_equal(ask_path(fixture, owner, hello, length), RDMA_CM_EVENT_REJECTED);
	assert_int_equal(owner->peer.status, 28);
	memcpy(&answer, owner->peer.given, sizeof(answer));
	assert_int_equal(answer.op, PS_OP_HELLO);
	assert_true(ps_answer_valid(&answer));
	peer_close(&owner->peer);
	return answer.status;
}

/* A store with an owner that has a data path. */
static inline void begin(struct fixture *fixture)
{
	fixture_bank(fixture);
	claim(fixture, &alice, "bank", 5);
	open_path(fixture, &alice);
}

static inline uint64_t at(const struct far_owner *owner, uint32_t region, uint64_t offset)
{
	return owner->regions[region].address + offset;
}

/* A write of `length` bytes of this value; the status of its completion. */
static inline int put(struct far_owner *owner, uint32_t region, uint64_t offset, unsigned length,
                      uint8_t value)
{
	memset(owner->peer.bytes, value, length);
	assert_int_equal(peer_write(&owner->peer, 0, length, at(owner, region, offset),
	                            owner->regions[region].key),
	                 0);
	return peer_settle(&owner->peer);
}

static inline int get(struct far_owner *owner, uint32_t region, uint64_t offset, unsigned length)
{
	assert_int_equal(peer_read(&owner->peer, 0, length, at(owner, region, offset),
	                           owner->regions[region].key),
	                 0);
	return peer_settle(&owner->peer);
}

/* The image as the daemon sees it. */
static inline const uint8_t *seen(struct fixture *fixture, const struct far_owner *owner,
                                  uint32_t region, uint64_t offset)
{
	struct session *session = stores_find_session(fixture->stores, owner->token);
	const uint8_t *bytes;

	assert_non_null(session);
	bytes = session_memory(session, region, offset, 1, false);
	assert_non_null(bytes);
	return bytes;
}

#endif
