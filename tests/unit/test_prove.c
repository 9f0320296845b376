/*
 * test_prove.c - what it costs to learn that a standby's copy is of no use: it is on the way to the
 * first commit, so no mirror is read, or lost, for what another one has shown already.
 */
#include "resync_rig.h"

#include "../../client/demand/warm.h"

struct unit_fixture unit_fixture = { setup, teardown };

/* A fabric that counts what is read, and whose reads of one mirror may break its link, or bring
 * nothing of what is there. */
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

static void count_reads(struct owner *o)
{
	counting.real = o->p->mirrors[0].fabric;
	counting.fabric = *counting.real;
	counting.fabric.read = counting_read;
	counting.reads = 0;
	counting.damaged = NULL;
	counting.breaks = false;
	for (unsigned i = 0; i < 3; i++)
		o->p->mirrors[i].fabric = &counting.fabric;
}

/* The last transaction by its record, as a standby would have noted it; some follow. */
static struct ps_warm_point note_point(struct fixture *f)
{
	struct owner *o = f->o;
	struct ps_warm_point point;
	const struct ps_record *record;

	assert_int_equal(owner_put(o, 0, 100, 7), 0);
	record = (const void *)(memory_heap_piece(o->d->mirrors[0].memory, STORE, "log.1", NULL) +
	                        PS_RING_OFFSET + o->p->commit.last % o->p->log_size);
	assert_true(record->seq == o->p->commit.seq);
	point = (struct ps_warm_point){ record->epoch, record->seq, record->position, record->crc };
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(owner_put(o, i, 100, (uint8_t)i), 0);
	return point;
}

/* What an open does; how many reads did it take? */
static unsigned prove(struct owner *o, const struct ps_warm_point *point, bool *proven)
{
	ps_admin_enter(o->p);
	o->p->gate = true;
	o->p->warm = ps_warm_new(o->p->store_id);
	assert_non_null(o->p->warm);
	o->p->warm->point = *point;
	counting.reads = 0;
	ps_warm_prove(o->p);
	*proven = o->p->warm;
	ps_warm_free(o->p->warm);
	o->p->warm = NULL;
	o->p->gate = false;
	ps_admin_leave(o->p);
	return counting.reads;
}

TEST(test_one_mirror_shows_it, struct fixture *f)
{
	const struct ps_warm_point point = note_point(f);
	struct ps_warm_point other = point;
	bool proven;

	count_reads(f->o);
	assert_int_equal(prove(f->o, &point, &proven), 1);
	assert_true(proven);
	other.epoch++;
	assert_int_equal(prove(f->o, &other, &proven), 1);
	assert_false(proven);
}

TEST(test_what_no_log_can_have_is_not_looked_for, struct fixture *f)
{
	struct ps_warm_point point = note_point(f);
	bool proven;

	count_reads(f->o);
	point.seq += 100;
	assert_int_equal(prove(f->o, &point, &proven), 0);
	assert_false(proven);
	point.seq -= 100;
	while (f->o->p->commit.next - point.position <= f->o->p->log_size)
		assert_int_equal(owner_put(f->o, 0, 100, 1), 0);
	assert_int_equal(prove(f->o, &point, &proven), 0);
	assert_false(proven);
}

/* That is of this mirror alone. */
TEST(test_a_damaged_log_is_read_from_another_mirror, struct fixture *f)
{
	const struct ps_warm_point point = note_point(f);
	bool proven;

	count_reads(f->o);
	counting.damaged = f->o->p->mirrors[0].link;
	assert_int_equal(prove(f->o, &point, &proven), 2);
	assert_true(proven);
}

/* A read that fails takes the link with it, and commits need the others. */
TEST(test_a_read_that_fails_costs_one_link, struct fixture *f)
{
	const struct ps_warm_point point = note_point(f);
	bool proven;

	count_reads(f->o);
	counting.breaks = true;
	assert_int_equal(prove(f->o, &point, &proven), 1);
	assert_false(proven);
	assert_true(f->o->p->mirrors[1].active && f->o->p->mirrors[2].active);
	assert_int_equal(owner_put(f->o, 0, 100, 8), 0);
}
