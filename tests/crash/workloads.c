/*
 * workloads.c - what owners do while the journal is written.
 */
#include "crash.h"

static const uint32_t ids[] = { 0, 1, 2, 3 };

static void begin_store(struct work *w, uint64_t first, uint64_t second)
{
	const uint64_t sizes[] = { first, second };

	work_create(w);
	if (work_open(w))
		work_publish(w, ids, sizes, 2);
}

/* A transaction of some ranges that overlap, touch or lie apart, within [from, from + size) of
 * a segment, and one byte of another. */
static void fill(struct work *w, struct change *change, uint32_t id, uint64_t from, uint64_t size,
                 uint64_t longest)
{
	unsigned ranges = 1 + (unsigned)work_draw(w, 5);
	uint64_t offset = from + work_draw(w, size), length;

	for (unsigned i = 0; i < ranges; i++) {
		length = 1 + work_draw(w, longest);
		if (length > from + size - offset)
			length = from + size - offset;
		work_change(w, change, id, offset, length);
		switch (work_draw(w, 3)) {
		case 0: /* the next one touches this one */
			offset = offset + length < from + size ? offset + length : from;
			break;
		case 1: /* or overlaps it */
			offset += length / 2;
			break;
		default:
			offset = from + work_draw(w, size);
		}
	}
}

static void finish(struct work *w, struct change *change)
{
	if (work_draw(w, 4))
		work_commit(w, change);
	else
		work_abort(w, change);
}

/* Commits small and large transactions one after the other and aborts some, for several laps of the
 * log. */
static void one_by_one(struct work *w, unsigned count)
{
	static struct change change;

	for (unsigned i = 0; i < count; i++) {
		work_begin(w, &change);
		fill(w, &change, 0, 0, 700, 60);
		if (work_draw(w, 2))
			fill(w, &change, 1, 0, 1500, i % 8 ? 100 : 1500);
		finish(w, &change);
	}
}

/* Three transactions at the same time, on ranges that lie apart, ended in turns. */
static void interleaved(struct work *w, unsigned rounds)
{
	static struct change changes[3];

	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned k = 0; k < 3; k++)
			work_begin(w, &changes[k]);
		for (unsigned k = 0; k < 3; k++)
			fill(w, &changes[k], 1, k * 500, 500, 40);
		for (unsigned k = 0; k < 3; k++)
			finish(w, &changes[(k + i) % 3]);
	}
}

static void run_ranges(struct work *w)
{
	begin_store(w, 700, 1500);
	one_by_one(w, 60);
	interleaved(w, 10);
	work_close(w);
}

/* Chains longer than one frame of the tcp path takes. */
static void run_many(struct work *w)
{
	static struct change change;

	begin_store(w, 6300, 1);
	for (unsigned i = 0; i < 2; i++) {
		work_begin(w, &change);
		for (unsigned k = 0; k < 260; k++)
			work_change(w, &change, 0, k * 24 + work_draw(w, 8), 1 + work_draw(w, 10));
		work_change(w, &change, 1, 0, 1);
		if (i == 0)
			work_abort(w, &change);
		else
			work_commit(w, &change);
	}
	work_close(w);
}

/* Two segments come and go; the id of one is given again, and one goes while a mirror is away. */
static void run_destroy(struct work *w)
{
	static struct change change;
	const uint64_t sizes[] = { 300, 4097 }, other = 500;

	begin_store(w, 700, 1500);
	one_by_one(w, 3);
	work_publish(w, &ids[2], sizes, 2);
	work_begin(w, &change);
	fill(w, &change, 2, 0, 300, 100);
	fill(w, &change, 3, 4000, 97, 50);
	work_commit(w, &change);
	work_destroy(w, 2);
	one_by_one(w, 2);
	work_publish(w, &ids[2], &other, 1);
	work_begin(w, &change);
	fill(w, &change, 2, 0, 500, 100);
	work_commit(w, &change);
	if (w->d->count > 2)
		direct_cut(w->d, 2);
	work_destroy(w, 3);
	one_by_one(w, 3);
	direct_keep(w->d, w->p);
	one_by_one(w, 3);
	work_die(w);
	if (!work_open(w))
		return;
	work_destroy(w, 2);
	one_by_one(w, 3);
	work_close(w);
}

/* A segment grows, also while a mirror is away; transactions change what is on both sides of where
 * it ended. Then it ends, with all of it. */
static void run_grow(struct work *w)
{
	static struct change change;
	const uint64_t other = 700;

	begin_store(w, 4096, 1500);
	one_by_one(w, 2);
	work_begin(w, &change);
	work_change(w, &change, 0, 4000, 90);
	work_grow(w, 0, 4096);
	work_change_across(w, &change, 0, 2, 50);
	work_commit(w, &change);
	one_by_one(w, 2);
	if (w->d->count > 2)
		direct_cut(w->d, 2);
	work_grow(w, 0, 8192);
	work_begin(w, &change);
	work_change_across(w, &change, 2, 3, 100);
	work_change_across(w, &change, 0, 2, 20);
	work_commit(w, &change);
	direct_keep(w->d, w->p);
	one_by_one(w, 2);
	work_begin(w, &change);
	work_change_across(w, &change, 0, 2, 200);
	work_die(w);
	if (!work_open(w))
		return;
	work_begin(w, &change);
	work_change_across(w, &change, 0, 2, 30);
	work_change(w, &change, 3, 8000, 192);
	work_commit(w, &change);
	one_by_one(w, 1);
	work_destroy(w, 0);
	work_publish(w, ids, &other, 1);
	one_by_one(w, 1);
	work_close(w);
}

/* A segment is mapped and taken back, others are published while transactions go on. */
static void run_publish(struct work *w)
{
	static struct change change;
	const uint64_t sizes[] = { 300, 4097 };
	void *addr;

	begin_store(w, 700, 1500);
	one_by_one(w, 5);
	if (!perseas_map(w->p, "nothing", 100, &addr))
		perseas_unmap(w->p, addr);
	one_by_one(w, 3);
	work_begin(w, &change);
	fill(w, &change, 0, 0, 700, 100);
	/* One mirror misses the publish, and comes back. */
	if (w->d->count > 2)
		direct_cut(w->d, 2);
	work_publish(w, &ids[2], sizes, 2);
	fill(w, &change, 2, 0, 300, 100);
	work_commit(w, &change);
	direct_keep(w->d, w->p);
	for (unsigned i = 0; i < 6; i++) {
		work_begin(w, &change);
		fill(w, &change, 3, 4000, 97, 50);
		fill(w, &change, 0, 0, 700, 50);
		finish(w, &change);
	}
	work_die(w);
	if (!work_open(w))
		return;
	one_by_one(w, 3);
	work_close(w);
}

/* Owners die between transactions, with some open; the next one goes on. */
static void run_owners(struct work *w)
{
	static struct change change;

	begin_store(w, 700, 1500);
	for (unsigned owner = 0; owner < 5; owner++) {
		one_by_one(w, 6);
		work_begin(w, &change);
		fill(w, &change, 0, 0, 700, 200);
		work_die(w);
		if (!work_open(w))
			return;
	}
	one_by_one(w, 3);
	work_close(w);
}

/* Mirrors lag, are dropped for it, lose their sessions, and are taken up again. */
static void run_lagging(struct work *w)
{
	begin_store(w, 700, 1500);
	for (unsigned i = 0; i < 50; i++) {
		struct direct_mirror *m = &w->d->mirrors[1 + work_draw(w, 2)];

		switch (work_draw(w, 8)) {
		case 0:
			m->hold = w->d->staged ? DIRECT_HOLD_WRITES : DIRECT_HOLD_COMPLETIONS;
			break;
		case 1:
			m->hold = DIRECT_HOLD_NOTHING;
			break;
		case 2:
			m->writes_left = (long)work_draw(w, 6);
			break;
		case 3:
			direct_keep(w->d, w->p);
			break;
		default:
			break;
		}
		direct_release(w->d, 1, (unsigned)work_draw(w, 3));
		direct_release(w->d, 2, (unsigned)work_draw(w, 3));
		one_by_one(w, 1);
		if (w->p->commit.in_doubt_seq) {
			direct_keep(w->d, w->p);
			direct_release(w->d, 1, 1000);
			direct_release(w->d, 2, 1000);
			/* A mirror that broke within a chain that it was sent directly is stale:
			 * where two are, only the next owner can mend them. */
			if (work_flush(w)) {
				work_die(w);
				if (!work_open(w))
					return;
			}
		}
	}
	work_die(w);
	if (work_open(w)) {
		one_by_one(w, 3);
		work_close(w);
	}
}

/* A mirror takes nothing until half of the ring waits for it; it is dropped, connects again, and
 * is sent everything from the ring while transactions go on. */
static void run_dropped(struct work *w)
{
	static struct change change;

	w->options.ring_size = 64 * 1024;
	begin_store(w, 700, 1500);
	w->d->mirrors[2].hold = DIRECT_HOLD_WRITES;
	for (unsigned i = 0; i < 18; i++) {
		work_begin(w, &change);
		work_change(w, &change, 1, i, 1400);
		work_commit(w, &change);
		if (i != 13)
			continue;
		direct_keep(w->d, w->p);
		w->d->mirrors[2].hold = DIRECT_HOLD_COMPLETIONS;
		direct_release(w->d, 2, 7);
	}
	direct_release(w->d, 2, 100);
	work_flush(w);
	work_close(w);
}

/* The mirrors lose their memory one after the other, and are made anew while the next owner goes
 * on. */
static void run_lost(struct work *w)
{
	begin_store(w, 700, 1500);
	for (unsigned mirror = 0; mirror < 3; mirror++) {
		one_by_one(w, 4);
		work_lose(w, mirror);
		one_by_one(w, 2);
		work_die(w);
		if (!work_open(w))
			return;
		one_by_one(w, 1);
		work_keep_until_live(w);
	}
	one_by_one(w, 2);
	work_close(w);
}

/* The mirrors, both of which are needed, lose their memory one after the other, and are made anew
 * by the open. */
static void run_lost_needed(struct work *w)
{
	begin_store(w, 700, 1500);
	for (unsigned mirror = 0; mirror < 2; mirror++) {
		one_by_one(w, 4);
		work_die(w);
		work_lose(w, mirror);
		if (!work_open(w))
			return;
	}
	one_by_one(w, 2);
	work_close(w);
}

/* All mirrors are left behind with their last chains at different writes; then they are opened
 * without the first, which comes back with a history of its own. */
static void run_parted(struct work *w)
{
	static struct change change;

	begin_store(w, 700, 1500);
	one_by_one(w, 3);
	w->d->mirrors[2].hold = DIRECT_HOLD_WRITES;
	one_by_one(w, 2);
	w->from = w->journal.count;
	w->d->mirrors[0].writes_left = (long)w->break_first;
	w->d->mirrors[0].torn = 33;
	w->d->mirrors[1].writes_left = (long)w->break_second;
	w->d->mirrors[1].torn = 30;
	work_begin(w, &change);
	work_change(w, &change, 0, 100, 200);
	work_change(w, &change, 0, 400, 50);
	work_change(w, &change, 1, 1300, 90);
	work_commit(w, &change);
	direct_release(w->d, 2, 1);
	work_die(w);
	direct_crash(w->d, 0);
	if (!work_open(w))
		return;
	one_by_one(w, 3);
	work_die(w);
	direct_start(w->d, 0);
	if (!work_open(w))
		return;
	one_by_one(w, 2);
	work_close(w);
}

/* A few small transactions, for what grows with the square of their number. */
static void run_short(struct work *w)
{
	static struct change change;

	begin_store(w, 200, 100);
	for (unsigned i = 0; i < 6; i++) {
		work_begin(w, &change);
		work_change(w, &change, 0, i * 20, 30);
		work_change(w, &change, 1, i * 7, 5);
		work_commit(w, &change);
	}
	work_close(w);
}

/*	name, mirrors, acks, log, staged; torn, instants, pairs; run */
const struct workload workloads[] = {
	{ "ranges, one mirror, staged", 1, 1, 4096, true, true, false, false, run_ranges, 0, 0 },
	{ "ranges, one mirror, direct", 1, 1, 4096, false, true, false, false, run_ranges, 0, 0 },
	{ "ranges, 2 of 3, staged", 3, 2, 4096, true, true, true, false, run_ranges, 0, 0 },
	{ "ranges, 2 of 3, direct", 3, 2, 8192, false, false, false, false, run_ranges, 0, 0 },
	{ "ranges, 2 of 2, staged", 2, 2, 8192, true, false, true, false, run_ranges, 0, 0 },
	{ "many ranges, staged", 1, 1, 65536, true, false, false, false, run_many, 0, 0 },
	{ "many ranges, direct", 1, 1, 65536, false, false, false, false, run_many, 0, 0 },
	{ "publish, one mirror, staged", 1, 1, 4096, true, true, false, false, run_publish, 0, 0 },
	{ "publish, 2 of 3, direct", 3, 2, 4096, false, false, true, false, run_publish, 0, 0 },
	{ "destroy, one mirror, staged", 1, 1, 4096, true, true, true, false, run_destroy, 0, 0 },
	{ "destroy, 2 of 3, staged", 3, 2, 4096, true, false, true, false, run_destroy, 0, 0 },
	{ "destroy, 2 of 3, direct", 3, 2, 8192, false, false, true, false, run_destroy, 0, 0 },
	{ "grow, one mirror, staged", 1, 1, 4096, true, true, true, false, run_grow, 0, 0 },
	{ "grow, 2 of 3, staged", 3, 2, 4096, true, false, true, false, run_grow, 0, 0 },
	{ "grow, 2 of 3, direct", 3, 2, 8192, false, false, true, false, run_grow, 0, 0 },
	{ "owners, one mirror, staged", 1, 1, 4096, true, true, false, false, run_owners, 0, 0 },
	{ "owners, 2 of 3, staged", 3, 2, 4096, true, false, true, false, run_owners, 0, 0 },
	{ "owners, 1 of 3, direct", 3, 1, 4096, false, false, true, false, run_owners, 0, 0 },
	{ "lagging, 2 of 3, staged", 3, 2, 8192, true, true, true, false, run_lagging, 0, 0 },
	{ "lagging, 2 of 3, direct", 3, 2, 8192, false, false, true, false, run_lagging, 0, 0 },
	{ "dropped, 2 of 3, staged", 3, 2, 8192, true, false, true, false, run_dropped, 0, 0 },
	{ "lost, 2 of 3, staged", 3, 2, 4096, true, false, true, false, run_lost, 0, 0 },
	{ "lost, 2 of 3, direct", 3, 2, 8192, false, false, true, false, run_lost, 0, 0 },
	{ "lost, 2 of 2, staged", 2, 2, 4096, true, false, true, false, run_lost_needed, 0, 0 },
	{ "lost, 2 of 2, direct", 2, 2, 8192, false, false, true, false, run_lost_needed, 0, 0 },
	{ "heap, one mirror, staged", 1, 1, 16384, true, false, true, false, run_heap, 0, 0 },
	{ "heap, one mirror, direct", 1, 1, 16384, false, false, true, false, run_heap, 0, 0 },
	{ "heap, 2 of 3, staged", 3, 2, 16384, true, false, true, false, run_heap, 0, 0 },
	{ "heap that shrinks, one mirror", 1, 1, 16384, true, false, true, false, run_heap_shrinks,
	  0, 0 },
	{ "heap that shrinks, 2 of 3", 3, 2, 16384, false, false, true, false, run_heap_shrinks, 0,
	  0 },
	{ "containers, one mirror", 1, 1, 65536, true, false, true, false, run_containers, 0, 0 },
	{ "rds, one mirror, staged", 1, 1, 65536, true, false, true, false, run_rds, 0, 0 },
	{ "rds, 2 of 3, direct", 3, 2, 65536, false, false, true, false, run_rds, 0, 0 },
	{ "forged, one mirror, staged", 1, 1, 4096, true, true, true, false, run_forged, 0, 0 },
	{ "forged, 2 of 3, direct", 3, 2, 4096, false, false, true, false, run_forged, 0, 0 },
	{ "short, 2 of 3, staged", 3, 2, 4096, true, true, true, true, run_short, 0, 0 },
	{ "short, 2 of 3, direct", 3, 2, 4096, false, true, true, true, run_short, 0, 0 },
};

const unsigned workload_count = sizeof(workloads) / sizeof(workloads[0]);

struct workload workload_parted(unsigned first, unsigned second, char *name, size_t size)
{
	struct workload parted = { name, 3,     2,          4096,  true,  false,
		                   true, false, run_parted, first, second };

	snprintf(name, size, "parted after %u and %u writes", first, second);
	return parted;
}

struct work *workload_run(const struct workload *workload)
{
	struct work *w = work_new(workload->name, workload->mirrors, workload->acks,
	                          workload->log_size, workload->staged);

	w->break_first = workload->first;
	w->break_second = workload->second;
	workload->run(w);
	return w;
}
