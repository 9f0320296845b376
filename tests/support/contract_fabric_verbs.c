/*
 * The stage of rdma: an end made by hand over the fake devices. All is in one thread: the fake
 * moves on when the owner looks at its completions.
 */
#include "contract_fabric.h"
#include "verbs_peer.h"

#include "../../client/host/socket.h"
#include "../../client/fabric/verbs_device.h"
#include "../../proto/data/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GIVEN = 2, PATHS_MAX = 32 };

struct verbs_stage {
	struct fabric_stage stage; /* first */
	struct verbs_fake_device *here, *there;
	struct verbs_peer peer;
	struct rdma_cm_id *paths[PATHS_MAX];
	unsigned path_count;
	uint8_t *log, *segment;
	struct ibv_mr *log_mr, *segment_mr;
	struct ps_verbs verbs;
	struct ps_env env;
	struct stage_grant grant;
	bool stopped;
};

/* The stage whose owner looks at its completions. */
static struct verbs_stage *only;

static struct verbs_stage *of(struct fabric_stage *stage)
{
	return (struct verbs_stage *)stage;
}

/* The mirror looks at what has come. */
static void answer(void *arg)
{
	struct verbs_stage *v = arg;
	const struct ps_answer welcome = { .op = PS_OP_HELLO };
	struct rdma_cm_id *id;
	int type;

	while (!v->stopped && (type = peer_event(&v->peer, &id)) >= 0) {
		if (type != RDMA_CM_EVENT_CONNECT_REQUEST)
			continue;
		assert_true(v->path_count < PATHS_MAX);
		v->paths[v->path_count++] = id;
		(void)peer_accept(&v->peer, id, &welcome, sizeof(welcome));
	}
}

/* Carries out the newest link's work requests, and then the others'. */
static void move_on(struct verbs_stage *v)
{
	struct ibv_qp *newest = verbs_fake_active_qp();

	if (v->stopped)
		return;
	while (newest && verbs_fake_step_qp(newest->qp_num, 1000))
		;
	verbs_fake_run();
}

static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *done)
{
	move_on(only);
	return verbs_fake_table.poll_cq(cq, count, done);
}

static bool pause_moving(struct fabric_stage *stage, struct pollfd *fd, uint64_t until_ns)
{
	move_on(of(stage));
	return stage_pause(stage, fd, until_ns);
}

static void stop(struct fabric_stage *stage)
{
	of(stage)->stopped = true;
}

static void go(struct fabric_stage *stage)
{
	of(stage)->stopped = false;
	answer(of(stage));
}

static void step(struct fabric_stage *stage)
{
	(void)stage;
	verbs_fake_step(1);
}

static void cut(struct fabric_stage *stage)
{
	(void)stage;
	verbs_fake_break(verbs_fake_active_qp());
}

static const Perseas__Grant *grant(struct fabric_stage *stage, int *fds, uint64_t *epoch)
{
	*epoch = 1;
	for (unsigned i = 0; i < GIVEN; i++)
		fds[i] = stage_file(1);
	return &of(stage)->grant.grant;
}

static unsigned left(struct fabric_stage *stage)
{
	(void)stage;
	return stage_files();
}

static uint8_t *memory(struct fabric_stage *stage, uint32_t region)
{
	return region == PS_REGION_LOG ? of(stage)->log : of(stage)->segment;
}

static uint8_t *pages(size_t size)
{
	uint8_t *memory = aligned_alloc(PS_PAGE, size);

	assert_non_null(memory);
	return memset(memory, 0, size);
}

static void begin_mirror(struct verbs_stage *v)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
	                   IBV_ACCESS_REMOTE_READ;
	struct stage_grant *g = &v->grant;

	v->log = pages(STAGE_LOG);
	v->segment = pages(STAGE_SEGMENT);
	stage_grant_init(g);
	g->grant.rdma_port = peer_listen(&v->peer, "127.0.0.1");
	g->grant.descriptors = GIVEN;
	v->log_mr = verbs_fake_table.reg_mr(v->peer.pd, v->log, STAGE_LOG, access);
	v->segment_mr = verbs_fake_table.reg_mr(v->peer.pd, v->segment, STAGE_SEGMENT, access);
	stage_add_region(g, PS_REGION_LOG, STAGE_LOG);
	stage_add_region(g, PS_REGION_SEGMENT, STAGE_SEGMENT);
	g->regions[0].address = (uintptr_t)v->log;
	g->regions[0].key = v->log_mr->rkey;
	g->regions[1].address = (uintptr_t)v->segment;
	g->regions[1].key = v->segment_mr->rkey;
	verbs_fake_on_request(answer, v);
}

struct fabric_stage *fabric_stage_verbs(bool phased, bool flush)
{
	struct verbs_stage *v = calloc(1, sizeof(*v));

	verbs_fake_begin();
	verbs_fake_mode.packet = 64;
	verbs_fake_mode.reorder = phased;
	v->here = verbs_fake_device("rxe9", "10.9.0.9");
	v->there = verbs_fake_device("rxe0", "127.0.0.1");
	verbs_fake_source(v->here);
	begin_mirror(v);
	v->grant.grant.phased = phased;
	v->grant.grant.flush = flush;
	v->verbs = verbs_fake_table;
	v->verbs.poll_cq = poll_cq;
	only = v;
	v->stage = (struct fabric_stage){
		.fabric = &ps_fabric_rdma,
		.env = &v->env,
		.short_ns = 10000000,
		.flood = 16,
		.now = stage_now,
		.pause = pause_moving,
		.grant = grant,
		.left = left,
		.memory = memory,
		.stop = stop,
		.go = go,
		.step = step,
		.cut = cut,
	};
	v->stage.ring = pages(STAGE_RING);
	v->env.verbs = &v->verbs;
	v->env.staging_memory = v->stage.ring;
	v->env.staging_bytes = STAGE_RING;
	assert_int_equal(ps_address_parse("127.0.0.1:7170", &v->stage.address, NULL), 0);
	return &v->stage;
}

const char *fabric_stage_verbs_end(struct fabric_stage *stage)
{
	static char trouble[400];
	struct verbs_stage *v = of(stage);

	for (unsigned i = 0; i < v->path_count; i++)
		peer_drop(v->paths[i]);
	ps_devices_free(v->env.devices);
	verbs_fake_table.dereg_mr(v->log_mr);
	verbs_fake_table.dereg_mr(v->segment_mr);
	peer_close(&v->peer);
	trouble[0] = '\0';
	if (verbs_fake_end())
		strncpy(trouble, verbs_fake_trouble(), sizeof(trouble) - 1);
	free(v->log);
	free(v->segment);
	free(stage->ring);
	free(v);
	return trouble;
}
