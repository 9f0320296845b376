/*
 * test_verbs_prefix.c - an owner dies after any packet that its device has sent: the image
 * recovers to a state that the store was in, also in a fabric that reorders.
 */
#include "verbs_nodes.h"

enum {
	SIZE = 3000,
	COMMITS = 60,
	PACKET = 64, /* bytes */
	LOG = PS_RING_OFFSET + 64 * 1024,
};

/* The mirror's memory as its daemon registered it, and as it was when the journal began. */
static struct {
	uint8_t *log, *segment;
} live;

static struct ps_verbs watching;

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *base, size_t length, int access)
{
	struct ibv_mr *mr = verbs_fake_table.reg_mr(pd, base, length, access);

	if (access & IBV_ACCESS_REMOTE_WRITE) {
		if (length == LOG)
			live.log = base;
		else
			live.segment = base;
	}
	return mr;
}

struct image {
	uint8_t log[LOG];
	uint8_t segment[SIZE];
};

struct history {
	uint8_t states[COMMITS + 1][SIZE];
	uint64_t seq; /* of states[0] */
	struct image now, recovered;
};

/* A few ranges of different lengths, made of the commit's number; then the memory is noted. */
static void commit(struct history *h, perseas_t *p, uint8_t *bytes, unsigned number)
{
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(p, 0, &tx), 0);
	for (unsigned i = 0; i < 1 + number % 4; i++) {
		unsigned at = (number * 577 + i * 701) % (SIZE - 400);
		unsigned length = 1 + (number * 37 + i * 101) % 400;

		assert_int_equal(perseas_set_range(tx, bytes + at, length), 0);
		for (unsigned b = 0; b < length; b++)
			bytes[at + b] = (uint8_t)(number * 3 + i + b);
	}
	if (perseas_commit(tx, 0))
		fail_msg("%s", perseas_message(p));
	memcpy(h->states[number], bytes, SIZE);
}

static void apply(struct image *image, const struct verbs_fake_write *write)
{
	uint64_t log = (uintptr_t)live.log, segment = (uintptr_t)live.segment;

	if (write->address >= log && write->address < log + LOG)
		memcpy(image->log + (write->address - log), write->bytes, write->length);
	else
		memcpy(image->segment + (write->address - segment), write->bytes, write->length);
}

/* Recovers what there is now. The transaction that it is, counted from the first state, or -1: no
 * state that ever was. */
static int recovered_state(struct history *h)
{
	struct ps_image image = { .log = h->recovered.log, .ring_size = LOG - PS_RING_OFFSET };
	struct ps_slot slot;
	uint64_t state;

	h->recovered = h->now;
	image.segments[0].base = h->recovered.segment;
	image.segments[0].size = SIZE;
	if (ps_image_recover(&image, &slot) < 0)
		return -1;
	state = slot.seq - h->seq;
	if (state > COMMITS || memcmp(h->recovered.segment, h->states[state], SIZE) != 0)
		return -1;
	return (int)state;
}

/* After how many packets the owner must not have died. */
static unsigned bad_instants(struct history *h)
{
	unsigned count, bad = 0;
	int last = 0;
	const struct verbs_fake_write *writes = verbs_fake_writes(&count);

	assert_true(count > COMMITS * 8);
	for (unsigned i = 0; i <= count; i++) {
		int state = recovered_state(h);

		bad += state < last;
		if (state >= 0)
			last = state;
		if (i < count)
			apply(&h->now, &writes[i]);
	}
	assert_int_equal(last, COMMITS);
	return bad;
}

/* Runs the transactions, and looks at every instant of them. */
static unsigned run(const struct rdma_options *rdma, bool reorder)
{
	struct history *h = calloc(1, sizeof(*h));
	struct perseas_stat stat;
	struct nodes *n;
	perseas_t *p;
	uint8_t *bytes;
	unsigned bad;

	watching = verbs_fake_table;
	watching.reg_mr = reg_mr;
	node_verbs = &watching;
	n = nodes_new(1, rdma, "rdma://");
	p = nodes_open_well(n, PERSEAS_CREATE);
	bytes = map(p, SIZE);
	memset(bytes, 0x5a, SIZE);
	assert_int_equal(perseas_publish(p), 0);
	assert_int_equal(perseas_stat(p, &stat), 0);
	h->seq = stat.seq;
	memcpy(h->states[0], bytes, SIZE);
	memcpy(h->now.log, live.log, LOG);
	memcpy(h->now.segment, live.segment, SIZE);
	verbs_fake_mode.packet = PACKET;
	verbs_fake_mode.reorder = reorder;
	verbs_fake_journal(true);
	for (unsigned i = 1; i <= COMMITS; i++)
		commit(h, p, bytes, i);
	bad = bad_instants(h);
	perseas_close(p);
	nodes_teardown(NULL);
	free(h);
	return bad;
}

/* Fabrics promise that writes are placed in the order in which they were posted. */
TEST(every_instant_recovers)
{
	const struct rdma_options rdma = { .enabled = true };

	assert_int_equal(run(&rdma, false), 0);
}

/* A fabric that does not promise it, and a mirror that knows. */
TEST(every_instant_recovers_in_phases)
{
	const struct rdma_options rdma = { .enabled = true, .phased = true };

	assert_int_equal(run(&rdma, true), 0);
}

/* The operator asked for flushes, over a fabric that reorders. */
TEST(every_instant_recovers_with_flushes)
{
	const struct rdma_options rdma = { .enabled = true, .flush_by_read = true };

	assert_int_equal(run(&rdma, true), 0);
}

/* The phases are needed: without them such a fabric does harm, and this test sees it. */
TEST(without_phases_a_fabric_that_reorders_does_harm)
{
	const struct rdma_options rdma = { .enabled = true };

	assert_true(run(&rdma, true) > COMMITS);
}
