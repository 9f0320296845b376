/*
 * test_prove.c - what it costs to learn that a standby's copy is of no use: it is on the way to the
 * first commit, so no mirror is read, or lost, for what another one has shown already.
 */
#include "resync_rig.h"

#include "../../client/demand/warm.h"

/* A fabric that counts what is read, and whose reads of one mirror may break its link, or return
 * other bytes than the mirror has. */
static struct {
	struct ps_fabric fabric;
	const struct ps_fabric *real;
	unsigned reads;
	const struct ps_link *damaged;
	bool breaks;
} counting;

static int counting_read(struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
                         uint64_t length, uint64_t patience_ns)
{
	int rc;

	counting.reads++;
	if (counting.breaks)
		return PS_LINK_BROKEN;
	rc = counting.real->read(link, region, offset, bytes, length, patience_ns);
	if (link == counting.damaged)
		memset(bytes, 0, length);
	return rc;
}

static int setup_counting(void **state)
{
	struct owner *o;

	setup(state);
	o = ((struct fixture *)*state)->o;
	counting.real = o->p->mirrors[0].fabric;
	counting.fabric = *counting.real;
	counting.fabric.read = counting_read;
	counting.damaged = NULL;
	counting.breaks = false;
	for (unsigned i = 0; i < 3; i++)
		o->p->mirrors[i].fabric = &counting.fabric;
	return 0;
}

struct unit_fixture unit_fixture = { setup_counting, teardown };

/* The last transaction by its record, as a standby would have noted it; some follow. */
static struct ps_warm_point note_point(struct fixture *f)
{
	struct owner *o = f->o;
	struct ps_warm_point point;
	const struct ps_record *record;

	assert_int_equal(owner_put(o, 0, 100, 7), 0);
	record = (const void *)(memory_heap_piece(o->d->mirrors[0].memory, STORE, "log.1", NULL) +
	                        PS_RING_OFFSET + o->p->commit.last_position % o->p->log_size);
	assert_true(record->seq == o->p->commit.seq);
	point = (struct ps_warm_point){ record->epoch, record->seq, record->position, record->crc };
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(owner_put(o, i, 100, (uint8_t)i), 0);
	return point;
}

/* Checks whether an open proves the copy, and with how many reads. */
static void assert_proves(struct fixture *f, const struct ps_warm_point *point, unsigned reads,
                          bool proven)
{
	struct perseas *p = f->o->p;

	ps_admin_enter(p);
	p->is_gate_raised = true;
	p->warm_copy = ps_warm_new(p->store_id);
	assert_non_null(p->warm_copy);
	p->warm_copy->point = *point;
	counting.reads = 0;
	ps_warm_prove(p);
	assert_int_equal(counting.reads, reads);
	assert_int_equal(p->warm_copy != NULL, proven);
	ps_warm_free(p->warm_copy);
	p->warm_copy = NULL;
	p->is_gate_raised = false;
	ps_admin_leave(p);
}

TEST(test_one_mirror_shows_it, struct fixture *f)
{
	const struct ps_warm_point point = note_point(f);
	struct ps_warm_point other = point;

	assert_proves(f, &point, 1, true);
	other.epoch++;
	assert_proves(f, &other, 1, false);
}

TEST(test_what_no_log_can_have_is_not_looked_for, struct fixture *f)
{
	struct ps_warm_point point = note_point(f);

	point.seq += 100;
	assert_proves(f, &point, 0, false);
	point.seq -= 100;
	while (f->o->p->commit.next_position - point.position <= f->o->p->log_size)
		assert_int_equal(owner_put(f->o, 0, 100, 1), 0);
	assert_proves(f, &point, 0, false);
}

/* That is of this mirror alone. */
TEST(test_a_damaged_log_is_read_from_another_mirror, struct fixture *f)
{
	const struct ps_warm_point point = note_point(f);

	counting.damaged = f->o->p->mirrors[0].link;
	assert_proves(f, &point, 2, true);
}

/* A read that fails takes the link with it, and commits need the others. */
TEST(test_a_read_that_fails_costs_one_link, struct fixture *f)
{
	const struct ps_warm_point point = note_point(f);

	counting.breaks = true;
	assert_proves(f, &point, 1, false);
	assert_true(f->o->p->mirrors[1].is_active && f->o->p->mirrors[2].is_active);
	assert_int_equal(owner_put(f->o, 0, 100, 8), 0);
}
