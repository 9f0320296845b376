/*
 * verbs_mirror.h - a mirror for the tests of the owner's end of RDMA: an end made by hand over the
 * fake devices, whose memory is two regions. It answers from within connect(), so that all is in
 * one thread.
 */
#ifndef PERSEAS_TESTS_VERBS_MIRROR_H
#define PERSEAS_TESTS_VERBS_MIRROR_H

#include "../support/unit.h"
#include "../support/verbs_peer.h"

#include "../../client/core/address.h"
#include "../../client/core/env.h"
#include "../../client/host/socket.h"
#include "../../client/fabric/verbs_device.h"
#include "../../client/fabric/verbs_link.h"
#include "../../proto/data/frame.h"

#define SEGMENT_SIZE ((size_t)12 << 20)
#define STAGING_SIZE ((size_t)12 << 20)

enum { LOG_SIZE = PS_RING_OFFSET + 65536 };

struct verbs_mirror {
	struct verbs_fake_device *here, *there; /* the owner's and the mirror's */
	struct verbs_peer peer;
	struct rdma_cm_id *path; /* NULL: nobody has connected */
	uint8_t *log, *segment;
	struct ibv_mr *log_mr, *segment_mr;
	/* How it answers. */
	enum ps_answer_status status;
	bool silent;
	const void *greeting; /* instead of an answer; accepted with it */
	unsigned greeting_len;
	struct ps_hello hello; /* that came */
	/* The owner's side. */
	struct ps_verbs verbs; /* the fake's, for tests to put something in front */
	struct ps_env env;
	struct ps_address address;
	uint8_t token[PS_ID_SIZE];
	Perseas__Region regions[2], *list[2];
	Perseas__Grant grant;
};

#define PATIENCE 20000000000ULL /* ns: longer than anything here takes */

static uint64_t soon(void)
{
	return ps_monotonic() + PATIENCE;
}

static void *pages(size_t size)
{
	void *memory = aligned_alloc(PS_PAGE, size);

	assert_non_null(memory);
	memset(memory, 0, size);
	return memory;
}

/* The mirror looks at what has come. */
static void answer(void *arg)
{
	struct verbs_mirror *m = arg;
	struct ps_answer answer_ = { .op = PS_OP_HELLO, .status = (uint8_t)m->status };
	struct rdma_cm_id *id;
	int type;

	while (!m->silent && (type = peer_event(&m->peer, &id)) >= 0) {
		if (type != RDMA_CM_EVENT_CONNECT_REQUEST)
			continue;
		memcpy(&m->hello, m->peer.given, sizeof(m->hello));
		if (m->path)
			peer_drop(m->path);
		m->path = id;
		if (m->greeting)
			peer_accept(&m->peer, id, m->greeting, m->greeting_len);
		else if (m->status)
			m->verbs.reject(id, &answer_, sizeof(answer_));
		else
			peer_accept(&m->peer, id, &answer_, sizeof(answer_));
	}
}

static void set_grant(struct verbs_mirror *m)
{
	perseas__grant__init(&m->grant);
	for (int i = 0; i < 2; i++) {
		perseas__region__init(&m->regions[i]);
		m->list[i] = &m->regions[i];
	}
	m->regions[0].id = PS_REGION_LOG;
	m->regions[0].length = LOG_SIZE;
	m->regions[0].address = (uintptr_t)m->log;
	m->regions[0].key = m->log_mr->rkey;
	m->regions[1].id = PS_REGION_SEGMENT;
	m->regions[1].length = SEGMENT_SIZE;
	m->regions[1].address = (uintptr_t)m->segment;
	m->regions[1].key = m->segment_mr->rkey;
	m->grant.regions = m->list;
	m->grant.n_regions = 2;
	m->grant.token = (ProtobufCBinaryData){ PS_ID_SIZE, m->token };
}

static int setup(void **state)
{
	struct verbs_mirror *m = calloc(1, sizeof(*m));
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	verbs_fake_begin();
	m->here = verbs_fake_device("rxe9", "10.9.0.9");
	m->there = verbs_fake_device("rxe0", "127.0.0.1");
	verbs_fake_source(m->here);
	m->log = pages(LOG_SIZE);
	m->segment = pages(SEGMENT_SIZE);
	m->verbs = verbs_fake_table;
	memset(m->token, 't', sizeof(m->token));
	ps_address_parse("127.0.0.1:7170", &m->address, NULL);
	m->grant.rdma_port = peer_listen(&m->peer, "127.0.0.1");
	m->log_mr = verbs_fake_table.reg_mr(m->peer.pd, m->log, LOG_SIZE, access);
	m->segment_mr = verbs_fake_table.reg_mr(m->peer.pd, m->segment, SEGMENT_SIZE, access);
	set_grant(m);
	m->grant.rdma_port = ntohs(m->peer.id->route.addr.src_sin.sin_port);
	m->env.verbs = &m->verbs;
	m->env.staging_memory = pages(STAGING_SIZE);
	m->env.staging_bytes = STAGING_SIZE;
	verbs_fake_on_request(answer, m);
	*state = m;
	return 0;
}

/* Everything of the owner's must be gone but what it shares; teardown ends that too. */
static int teardown(void **state)
{
	struct verbs_mirror *m = *state;

	if (m->path)
		peer_drop(m->path);
	ps_devices_free(m->env.devices);
	m->verbs.dereg_mr(m->log_mr);
	m->verbs.dereg_mr(m->segment_mr);
	peer_close(&m->peer);
	if (verbs_fake_end())
		fail_msg("%s", verbs_fake_trouble());
	free(m->log);
	free(m->segment);
	free(m->env.staging_memory);
	free(m);
	return 0;
}

static inline struct ps_link *attach(struct verbs_mirror *m, struct ps_error *error)
{
	return ps_fabric_rdma.attach(&m->env, &m->address, &m->grant, NULL, 5, soon(), error);
}

static inline struct ps_link *attach_well(struct verbs_mirror *m)
{
	struct ps_error error;
	struct ps_link *link = attach(m, &error);

	if (!link)
		fail_msg("%s", error.text);
	return link;
}

/* A write from the ring. */
static inline struct ps_write staged(struct verbs_mirror *m, size_t from, uint32_t region,
                                     uint64_t offset, uint32_t length)
{
	return (struct ps_write){ (uint8_t *)m->env.staging_memory + from, offset, region, length };
}

/* A transaction: its record, two ranges and its slot, from the ring. */
struct transaction {
	struct ps_write writes[3];
	struct ps_chain chain;
};

enum { RECORD_AT = PS_RING_OFFSET + 1024, RECORD_LENGTH = 600 };

static inline void fill_transaction(struct verbs_mirror *m, struct transaction *t, uint8_t value)
{
	uint8_t *ring = m->env.staging_memory;

	memset(ring, value, 2048);
	t->writes[0] = staged(m, 0, PS_REGION_LOG, RECORD_AT, RECORD_LENGTH);
	t->writes[1] = staged(m, 1024, PS_REGION_SEGMENT, 100, 64);
	t->writes[2] = staged(m, 1100, PS_REGION_SEGMENT, 8000, 300);
	t->chain = (struct ps_chain){
		.writes = t->writes,
		.write_count = 3,
		.undo_write_count = 1,
		.slot = staged(m, 1600, PS_REGION_LOG, 0, sizeof(struct ps_slot)),
	};
}

/* Moves bytes and looks until so many chains have completed. */
static inline void settle(struct ps_link *link, int chains)
{
	for (int rounds = 0; chains > 0; rounds++) {
		int n = ps_fabric_rdma.poll(link);

		assert_true(n >= 0);
		assert_true(rounds < 100000);
		chains -= n;
		if (n == 0)
			verbs_fake_run();
	}
	assert_int_equal(chains, 0);
}

/* A transaction reaches the mirror, and the link is detached. */
static inline void is_up(struct verbs_mirror *m, struct ps_link *link)
{
	struct transaction t;
	static uint8_t value;

	fill_transaction(m, &t, ++value);
	assert_int_equal(ps_fabric_rdma.post(link, &t.chain), PS_LINK_OK);
	settle(link, 1);
	assert_int_equal(m->segment[100], value);
	ps_fabric_rdma.detach(link);
}

static inline void works(struct verbs_mirror *m)
{
	is_up(m, attach_well(m));
}

#endif
