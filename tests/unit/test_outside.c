/*
 * test_outside.c - what is no transaction, over links that are slow: bytes take as long as they
 * take, and a mirror that gives nothing is left.
 */
#include "owner.h"

#include "../../client/core/mirror.h"

struct unit_fixture unit_fixture = { owner_setup_one, owner_teardown };

enum {
	LARGE = 3 << 20, /* bytes of a segment */
	TICK = 100,      /* ms */
	QUEUE = 256,
};

/* A fabric that completes so many bytes a tick, the oldest first; a pause lasts a tick. */
static struct {
	struct ps_env_ops ops;
	const struct ps_env_ops *real_ops;
	struct ps_fabric fabric;
	const struct ps_fabric *real;
	struct direct *d;
	uint64_t rate; /* bytes; 0: nothing comes */
	uint64_t came, chains[QUEUE];
	unsigned count, most;
} slow;

static uint64_t bytes_of(const struct ps_chain *chain)
{
	uint64_t bytes = chain->slot.length;

	for (unsigned i = 0; i < chain->write_count; i++)
		bytes += chain->writes[i].length;
	return bytes;
}

static int slow_post(struct ps_link *link, const struct ps_chain *chain)
{
	assert_true(slow.count < QUEUE);
	slow.chains[slow.count++] = bytes_of(chain);
	if (slow.count > slow.most)
		slow.most = slow.count;
	return slow.real->post(link, chain);
}

static int slow_poll(struct ps_link *link)
{
	const int rc = slow.real->poll(link);

	if (rc < 0)
		return rc;
	if (!slow.count || slow.came < slow.chains[0])
		return 0;
	slow.came -= slow.chains[0];
	memmove(slow.chains, slow.chains + 1, --slow.count * sizeof(slow.chains[0]));
	return 1;
}

static void slow_pause(struct ps_env *env, enum ps_sleeper who, struct pollfd *fds, unsigned count,
                       uint64_t until_ns)
{
	const uint64_t next = slow.d->now + ps_ms(TICK);

	slow.came = slow.count ? slow.came + slow.rate : 0;
	slow.real_ops->pause(env, who, fds, count, next < until_ns ? next : until_ns);
}

/* The only mirror, or the first, is behind a link of so many bytes a second from now on. */
static void go_slowly(struct owner *o, uint64_t rate)
{
	struct ps_mirror *m = &o->p->mirrors[0];

	memset(&slow, 0, sizeof(slow));
	slow.d = o->d;
	slow.rate = rate / (1000 / TICK);
	slow.real = m->fabric;
	slow.fabric = *slow.real;
	slow.fabric.post = slow_post;
	slow.fabric.poll = slow_poll;
	m->fabric = &slow.fabric;
	slow.real_ops = o->p->env->ops;
	slow.ops = *slow.real_ops;
	slow.ops.pause = slow_pause;
	o->p->env->ops = &slow.ops;
}

static uint8_t *map_large(struct owner *o)
{
	void *addr;

	assert_int_equal(perseas_map(o->p, "large", LARGE, &addr), 0);
	return addr;
}

static void make_large(struct owner *o)
{
	uint8_t *bytes = map_large(o);

	for (unsigned i = 0; i < LARGE; i++)
		bytes[i] = (uint8_t)(i % 251);
}

/* At 64 KiB a second a segment takes longer than a minute. */
TEST(test_a_slow_link_takes_its_time, struct owner *o)
{
	uint64_t began;
	uint8_t *bytes;

	make_large(o);
	began = o->d->now;
	go_slowly(o, 64 << 10);
	assert_int_equal(perseas_publish(o->p), 0);
	assert_true(o->d->now - began > LARGE / (64 << 10) * ps_ms(900));
	assert_true(slow.most > 1);
	owner_next(o);
	bytes = map_large(o);
	for (unsigned i = 0; i < LARGE; i++)
		assert_int_equal(bytes[i], i % 251);
}

/* The mirror is left once its time is over, and is asked as long again who the owner is. */
static void leave(struct owner *o, uint64_t rate)
{
	uint64_t began;

	make_large(o);
	began = o->d->now;
	go_slowly(o, rate);
	assert_int_equal(perseas_publish(o->p), PERSEAS_EUNREACHABLE);
	assert_in_range(o->d->now - began, ps_ms(3000), ps_ms(2 * 3000 + 2 * TICK));
	assert_int_equal(owner_state(o, 0), PERSEAS_MIRROR_DOWN);
}

TEST(test_a_mirror_that_gives_nothing_is_left, struct owner *o)
{
	leave(o, 0);
}

TEST(test_a_link_that_trickles_is_left, struct owner *o)
{
	leave(o, 1000);
}

/* The writes that arrived, in their order. */
struct came {
	struct direct_write writes[64];
	unsigned count;
};

static void note_write(void *arg, const struct direct_write *write)
{
	struct came *came = arg;

	assert_true(came->count < 64);
	came->writes[came->count++] = *write;
}

/* F1: a large transaction is cut, too: its record comes first, its slot last, each byte once. */
TEST(test_a_chain_that_is_cut_keeps_its_order, struct owner *o)
{
	enum { STRIDE = PS_COPY_PART, COUNT = 6 };
	static const uint32_t lengths[COUNT] = { 100, 5 * STRIDE / 2, 7, 20, STRIDE - 8, 9 };
	struct came came = { .count = 0 };
	const struct direct_tap tap = { .write = note_write, .arg = &came };
	uint8_t *bytes = malloc(LARGE);
	struct ps_write writes[COUNT];
	struct ps_chain chain = { writes, COUNT, 3, { bytes, 64, PS_REGION_LOG, 8 } };
	uint64_t at = 0;
	unsigned w = 0, done = 0;

	assert_non_null(bytes);
	make_large(o);
	memset(bytes, 0x5a, LARGE);
	for (unsigned i = 0; i < COUNT; at += lengths[i++])
		writes[i] = (struct ps_write){ bytes + at, at, PS_REGION_SEGMENT + 1, lengths[i] };
	o->d->tap = &tap;
	o->p->is_admin_taken = o->p->is_gate_raised = true;
	assert_int_equal(ps_mirror_write(o->p, &o->p->mirrors[0], &chain), 0);
	o->p->is_admin_taken = o->p->is_gate_raised = false;
	o->d->tap = NULL;
	for (unsigned i = 0; i + 1 < came.count; i++) {
		const struct direct_write *one = &came.writes[i];

		assert_int_equal(one->offset, writes[w].offset + done);
		assert_ptr_equal(one->bytes, bytes + one->offset);
		assert_in_range(one->length, 1, STRIDE);
		assert_true(!i || one->chain > one[-1].chain || w != chain.undo_write_count ||
		            done);
		done += one->length;
		assert_in_range(done, 1, lengths[w]);
		if (done == lengths[w]) {
			w++;
			done = 0;
		}
	}
	assert_int_equal(w, COUNT);
	assert_int_equal(came.writes[came.count - 1].region, PS_REGION_LOG);
	assert_true(came.writes[came.count - 1].chain > came.writes[came.count - 2].chain);
	free(bytes);
}
