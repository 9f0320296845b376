/*
 * work.c - begins, fills and commits transactions with random ranges. application.c calls it from
 * each of its threads. It declares every byte that it changes, and keeps ranges of open
 * transactions apart, as an application must.
 */
#include "work.h"

#include "../../client/core/handle.h"
#include "disguise.h"
#include "env_sim.h"
#include "grown.h"
#include "heap_work.h"
#include "mistakes.h"
#include "mixed.h"
#include "pager_sim.h"
#include "schedule.h"

enum {
	RANGES_MAX = 8,
	UNIFORM = 80, /* bytes of a transaction where all are alike */
};

struct range {
	unsigned segment;
	uint32_t offset, length;
};

/* What keeps a transaction's bytes apart from others'. */
enum kind {
	PLAIN,  /* by this file */
	SERIAL, /* by its turn, from others of this kind */
	LOCKED, /* by the locks of segments, from others of this kind */
};

/* A transaction: open, then sent. */
struct work {
	struct work *next; /* in the list of open transactions */
	struct sim_application *application;
	perseas_tx_t *tx;
	enum kind kind;
	struct sim_node *saw; /* the last that was sent when it got its turn or its last lock */
	unsigned locked;      /* segments, a bit for each */
	bool refused;         /* a lock */
	struct range ranges[RANGES_MAX];
	unsigned count;
	bool tracks;           /* it declares nothing */
	bool publish;          /* no transaction: the segments that are not published */
	unsigned destroyed;    /* no transaction: this segment, counted from 1; 0: none */
	bool trims;            /* no transaction: segments of the heap */
	unsigned grown;        /* no transaction: this segment, counted from 1; 0: none */
	struct sim_node *node; /* the state that it made; NULL: it sent nothing */
	bool joins;            /* others that were held back */
};

static int begin(struct sim_application *a, struct work *work, enum kind kind)
{
	const struct sim_schedule *schedule = a->world->schedule;
	int rc;

	*work = (struct work){ .application = a, .kind = kind };
	work->saw = kind == SERIAL ? a->at : NULL;
	work->tracks = schedule->tracks && sim_chance(a->world, schedule->tracks);
	rc = perseas_begin(a->p,
	                   kind == SERIAL ? PERSEAS_SERIAL
	                   : work->tracks ? PERSEAS_TRACK | sim_mixed_turn(a->world, !a->open)
	                                  : 0,
	                   &work->tx);
	if (rc == PERSEAS_EBLOCKED || (rc == PERSEAS_ECONFLICT && schedule->tracks))
		return BLOCKED;
	if (rc)
		return rc == PERSEAS_EFENCED ? LEAVE : sim_unexpected(a, "begin", rc);
	work->next = a->open;
	a->open = work;
	return GO_ON;
}

/* Takes the transaction out of the list of open ones. */
static void leave(struct work *work)
{
	struct work **link = &work->application->open;

	while (*link != work)
		link = &(*link)->next;
	*link = work->next;
}

static void end(struct work *work)
{
	leave(work);
	sim_heap_end(work->application, work->tx, work->node);
}

static bool overlaps(const struct work *work, const struct range *range)
{
	for (unsigned i = 0; i < work->count; i++)
		if (work->ranges[i].segment == range->segment &&
		    work->ranges[i].offset < range->offset + range->length &&
		    range->offset < work->ranges[i].offset + work->ranges[i].length)
			return true;
	return false;
}

static bool taken(const struct work *work, const struct range *range)
{
	const struct work *other = work->application->open;

	/* Transactions that the library serializes may use the same bytes. */
	for (; other; other = other->next)
		if (other != work && (other->kind != work->kind || other->kind == PLAIN) &&
		    overlaps(other, range))
			return true;
	return false;
}

/* The segment's lock, where it takes one. */
static bool may_have(struct work *work, unsigned segment)
{
	struct sim_application *a = work->application;
	int rc;

	if (work->kind != LOCKED)
		return true;
	rc = perseas_lock(work->tx, segment, PERSEAS_LOCK_EXCLUSIVE);
	if (!rc && !(work->locked >> segment & 1))
		work->saw = a->at;
	work->locked |= (unsigned)!rc << segment;
	work->refused = rc == PERSEAS_ECONFLICT;
	if (rc && rc != PERSEAS_ECONFLICT && rc != PERSEAS_EBLOCKED && rc != PERSEAS_EFENCED)
		sim_unexpected(a, "lock", rc);
	sim_count(a->world, SIM_REFUSED, work->refused);
	return !rc;
}

static void fill_range(struct sim_application *a, uint8_t *bytes, uint32_t length)
{
	sim_fill(a->world, bytes, length);
	sim_disguise(a, bytes, length);
}

/* Declares and changes some bytes that no other open transaction uses. */
static void change(struct work *work, bool large)
{
	struct sim_application *a = work->application;
	struct sim_world *w = a->world;
	struct range range = { .segment = a->forger.length ? a->forger.segment
		                                           : (unsigned)sim_below(w, SIM_SEGMENTS) };
	const struct mapped *m = &a->mapped[range.segment];
	const uint32_t size = sim_grown_size(a, range.segment);
	int rc;

	if (!m->base || !a->at->segments[range.segment].present || work->count == RANGES_MAX)
		return;
	range.length = (uint32_t)sim_between(w, 1, large ? size : 1 + size / 16);
	if (w->schedule->uniform)
		range.length = UNIFORM;
	range.offset = (uint32_t)sim_below(w, size - range.length + 1);
	if (a->forger.length)
		range = (struct range){ range.segment, 0, a->forger.length };
	sim_count(w, SIM_ACROSS, range.offset < m->size && range.offset + range.length > m->size);
	if (!may_have(work, range.segment) || !m->base || a->unmaps == range.segment + 1 ||
	    taken(work, &range))
		return;
	/* The range is in the list already, so that no other thread takes it while this one
	 * waits. */
	work->ranges[work->count++] = range;
	rc = work->tracks ? sim_pager_touch(a->owner, m->base + range.offset, range.length)
	                  : perseas_set_range(work->tx, m->base + range.offset, range.length);
	if (rc) {
		work->count--;
		/* An owner may be fenced while it waits for memory. */
		if (rc != PERSEAS_ETOOBIG && (rc != PERSEAS_EFENCED || !w->schedule->demand))
			sim_unexpected(a, "set_range", rc);
		return;
	}
	if (a->forger.length)
		memcpy(m->base, a->forger.bytes, range.length);
	else
		fill_range(a, m->base + range.offset, range.length);
}

static void fill(struct work *work)
{
	struct sim_world *w = work->application->world;
	bool large = sim_chance(w, w->schedule->large);
	const bool one = w->schedule->uniform || work->application->forger.length;

	for (uint64_t n = one ? 1 : sim_between(w, 1, large ? 3 : 5); n > 0; n--)
		change(work, large);
	if (!work->tracks)
		sim_heap_fill(work->application, work->tx);
	/* Others are at work while it is open. */
	if (work->tracks && sim_chance(w, 40))
		sim_owner_sleep(work->application->owner, sim_below(w, 20 * SIM_MS));
}

/* Declares and changes some declared bytes again. */
static void change_again(struct work *work, const struct range *range)
{
	struct sim_application *a = work->application;
	struct sim_world *w = a->world;
	uint32_t length = (uint32_t)sim_between(w, 1, range->length);
	uint8_t *bytes = a->mapped[range->segment].base + range->offset +
	                 sim_below(w, range->length - length + 1);
	int rc = 0;

	if (!sim_mistake_is(w, SIM_MISTAKE_COVERED))
		rc = perseas_set_range(work->tx, bytes, length);
	if (!rc)
		fill_range(a, bytes, length);
	else if (rc != PERSEAS_EFENCED && rc != PERSEAS_ETOOBIG)
		sim_unexpected(a, "set_range behind a savepoint", rc);
}

/* Goes on from a savepoint, and takes it back: what was there at the savepoint is there again. */
static void attempt(struct work *work)
{
	static uint8_t kept[SIM_OWNERS_MAX][RANGES_MAX][SIM_RANGE_MAX];
	struct sim_application *a = work->application;
	uint8_t(*then)[SIM_RANGE_MAX] = kept[a->owner->index];
	const unsigned count = work->count;
	uint64_t savepoint;
	int rc = perseas_savepoint(work->tx, &savepoint);

	if (rc)
		sim_unexpected(a, "savepoint", rc);
	if (a->owner->dead || rc || a->attempting)
		return;
	a->attempting = true;
	for (unsigned i = 0; i < count; i++)
		memcpy(then[i], a->mapped[work->ranges[i].segment].base + work->ranges[i].offset,
		       work->ranges[i].length);
	for (unsigned i = 0; i < count; i++)
		if (sim_chance(a->world, 60))
			change_again(work, &work->ranges[i]);
	change(work, false);
	rc = perseas_rollback_to(work->tx, savepoint);
	a->attempting = false;
	if (rc)
		sim_unexpected(a, "roll-back to a savepoint", rc);
	work->count = count;
	sim_count(a->world, SIM_ROLL_BACKS, 1);
	for (unsigned i = 0; i < count && !a->owner->dead; i++) {
		const struct range *range = &work->ranges[i];

		if (memcmp(a->mapped[range->segment].base + range->offset, then[i],
		           range->length) != 0)
			sim_fail(a->world, "owner %u: a roll-back to a savepoint lost bytes",
			         a->owner->index);
	}
}

static void bear(struct sim_application *a, struct sim_node *node)
{
	for (unsigned i = 0; i < SIM_SEGMENTS; i++) {
		if (!a->mapped[i].base || node->segments[i].present)
			continue;
		memcpy(sim_node_edit(a->world, node, i), a->mapped[i].base, a->mapped[i].size);
		sim_node_bear(a->owner, node, i, sim_grown_segment(a, i));
	}
}

/* The state has what the transaction changed, as it is now. */
static void edit(const struct work *work, struct sim_node *node)
{
	struct sim_application *a = work->application;

	for (unsigned i = 0; i < work->count; i++) {
		const struct range *range = &work->ranges[i];

		sim_grown_edit(a, node, range->segment, range->offset, range->length);
	}
	sim_heap_seal(a, work->tx, node);
}

/* Makes the state when the transaction takes its seq: the parent's, with the present bytes of its
 * ranges. */
static void sealing(void *arg)
{
	struct work *work = arg;
	struct sim_application *a = work->application;
	struct sim_node *node = sim_node_new(a->world, a->at, a->p->epoch, a->p->commit.seq + 1);

	if (work->publish)
		bear(a, node);
	if (work->destroyed)
		sim_grown_end(node, work->destroyed - 1);
	if (work->grown)
		sim_grown_seal(a, node, work->grown - 1);
	if (work->trims)
		sim_heap_shrinks(a, node);
	edit(work, node);
	work->node = node;
	a->at = node;
}

/* Makes one state of all transactions that are held back together, with the present bytes of their
 * ranges. */
static void holding(void *arg)
{
	struct work *work = arg;
	struct sim_application *a = work->application;
	struct sim_owner *o = a->owner;

	work->joins = o->held != NULL;
	if (!o->held)
		o->held = sim_node_new(a->world, a->at, a->p->epoch, a->p->commit.seq + 1);
	o->held->sealed_at = a->world->now;
	edit(work, o->held);
	work->node = a->at = o->held;
	sim_count(a->world, SIM_HELD, 1);
	sim_count(a->world, SIM_HELD_TOGETHER, work->joins);
}

static void expect_seal(struct work *work)
{
	struct sim_task *task = work->application->owner->running;

	sim_heap_commits(work->application, work->tx);
	task->sealing = sealing;
	task->holding = holding;
	task->sealed = work;
}

/* The outcome is known, or known to be unknown. */
static int outcome(struct work *work, int rc)
{
	struct sim_application *a = work->application;
	struct sim_world *w = a->world;

	a->owner->running->sealing = NULL;
	if (a->owner->dead)
		return LEAVE;
	sim_trace(w, "owner %u: %llu:%llu: %s", a->owner->index, (unsigned long long)a->p->epoch,
	          (unsigned long long)(work->node ? work->node->seq : 0), perseas_error_name(rc));
	switch (rc) {
	case 0:
		/* A tracked transaction that left every byte as it was sends nothing. */
		if (!work->node && work->tracks)
			return GO_ON;
		if (!work->node)
			return sim_unexpected(a, "commit of what was not sent", rc);
		sim_oracle_acknowledged(w, work->node);
		sim_count(w, SIM_COMMITS, 1);
		return GO_ON;
	case PERSEAS_EINDOUBT:
		if (sim_schedule_spares_w(a->owner))
			sim_fail(w, "a commit is in doubt, and nothing went wrong");
		sim_count(w, SIM_IN_DOUBT, 1);
		return GO_ON;
	case PERSEAS_EFENCED:
		sim_count(w, SIM_FENCED, 1);
		return LEAVE;
	case PERSEAS_ETOOBIG:
		return work->tracks ? GO_ON : sim_unexpected(a, "commit", rc);
	case PERSEAS_EBLOCKED:
	case PERSEAS_EAGAIN:
	case PERSEAS_EUNREACHABLE:
		return GO_ON;
	default:
		return sim_unexpected(a, "commit", rc);
	}
}

/* Checks flush_within_ms: when this one was posted, W mirrors held every commit that had returned
 * longer before, unless the process was stopped in between. */
static void check_bound(const struct sim_application *a, const struct work *work)
{
	const uint64_t most = a->p->options.flush_within_ms * SIM_MS;
	const struct sim_node *posted = work->node, *node = work->joins ? posted : posted->parent;

	for (; most && node && node->seq > a->p->commit.durable_seq; node = node->parent)
		if (node->returned_at && node->returned_at + most <= posted->sealed_at)
			sim_fail(a->world, "owner %u: %s was posted, and W do not hold %s",
			         a->owner->index, sim_state(a->world, posted->epoch, posted->seq),
			         sim_state(a->world, node->epoch, node->seq));
}

/* The transaction is in flight, with the seq of its record. */
static int posted(struct work *work, const struct perseas_token *token)
{
	struct sim_application *a = work->application;

	a->owner->running->sealing = NULL;
	if (a->owner->dead)
		return LEAVE;
	if (!work->node && work->tracks)
		return GO_ON;
	if (!work->node || token->epoch != work->node->epoch || token->seq != work->node->seq)
		sim_fail(a->world, "owner %u: a token says %s", a->owner->index,
		         sim_state(a->world, token->epoch, token->seq));
	sim_trace(a->world, "owner %u: %s: posted", a->owner->index,
	          sim_state(a->world, token->epoch, token->seq));
	sim_count(a->world, SIM_UNWAITED, 1);
	a->unwaited = work->node;
	check_bound(a, work);
	if (!work->joins)
		work->node->returned_at = a->world->now;
	return GO_ON;
}

/* Posts an unawaited commit. */
static int post(struct work *work)
{
	struct sim_application *a = work->application;
	const unsigned flags = PERSEAS_NOWAIT | (sim_chance(a->world, 30) ? PERSEAS_NOBLOCK : 0);
	struct perseas_token token = { 0, 0 };
	int rc;

	expect_seal(work);
	rc = perseas_commit_token(work->tx, flags, &token);
	if ((rc == PERSEAS_EBLOCKED || rc == PERSEAS_EAGAIN || rc == PERSEAS_ETOOBIG) &&
	    (!a->owner->dead || work->kind != PLAIN))
		perseas_abort(work->tx);
	end(work);
	sim_count(a->world, SIM_UNWAITED_FULL, rc == PERSEAS_EAGAIN);
	return rc ? outcome(work, rc) : posted(work, &token);
}

/* Commits a transaction that only read, and so waits until W mirrors hold what it may have read.
 * Afterwards its handle may belong to another thread. */
static int commit_reader(struct work *work)
{
	struct sim_application *a = work->application;
	struct sim_world *w = a->world;
	int rc;

	sim_mistake_apart_commits(a->owner, work->tx);
	sim_heap_end(a, work->tx, NULL);
	rc = perseas_commit(work->tx, 0);
	if (rc == PERSEAS_EBLOCKED)
		perseas_abort(work->tx);
	leave(work);
	if (a->owner->dead || rc == PERSEAS_EFENCED)
		return LEAVE;
	if (rc && rc != PERSEAS_EBLOCKED && rc != PERSEAS_EINDOUBT)
		return sim_unexpected(a, "commit of one that read", rc);
	if (!rc && work->saw) {
		sim_oracle_acknowledged(w, work->saw);
		sim_count(w, SIM_READERS, 1);
	}
	return GO_ON;
}

static int commit(struct work *work)
{
	struct sim_application *a = work->application;
	const bool changes = work->count || sim_heap_changes(a, work->tx);
	int rc;

	if (!changes && work->kind != PLAIN)
		return commit_reader(work);
	if (!changes || sim_chance(a->world, 7)) {
		rc = perseas_abort(work->tx);
		end(work);
		sim_count(a->world, SIM_ABORTS, 1);
		return rc ? sim_unexpected(a, "abort", rc) : GO_ON;
	}
	if (a->world->schedule->nowait && sim_chance(a->world, a->world->schedule->nowait))
		return post(work);
	if (work->kind != PLAIN)
		sim_mistake_apart_commits(a->owner, work->tx);
	expect_seal(work);
	rc = perseas_commit(work->tx, 0);
	if (!a->owner->dead && (rc == PERSEAS_EBLOCKED || rc == PERSEAS_ETOOBIG))
		sim_mistake_refused(a->owner);
	/* The dead let go of what others of them wait for. */
	if ((rc == PERSEAS_EBLOCKED || rc == PERSEAS_ETOOBIG) &&
	    (!a->owner->dead || work->kind != PLAIN))
		perseas_abort(work->tx);
	end(work);
	return outcome(work, rc);
}

/* Runs a transaction that the library keeps apart from others; it may only read. */
static int work_apart(struct sim_application *a)
{
	struct sim_world *w = a->world;
	struct work work;
	int rc = begin(a, &work, sim_chance(w, 60) ? SERIAL : LOCKED);

	if (rc != GO_ON)
		return rc;
	for (unsigned tries = 0; !rc; tries++) {
		if (sim_chance(w, 70))
			fill(&work);
		else
			may_have(&work, (unsigned)sim_below(w, SIM_SEGMENTS));
		if (sim_chance(w, 40))
			attempt(&work);
		if (sim_chance(w, 30))
			sim_owner_sleep(a->owner, sim_below(w, SIM_MS));
		if (!work.refused || tries == 3)
			break;
		work.count = work.locked = 0;
		work.saw = NULL;
		sim_heap_end(a, work.tx, NULL);
		rc = perseas_retry(work.tx);
	}
	if (!rc)
		return commit(&work);
	/* A refused retry has ended the transaction. */
	end(&work);
	if (rc == PERSEAS_EBLOCKED)
		return GO_ON;
	return rc == PERSEAS_EFENCED ? LEAVE : sim_unexpected(a, "retry", rc);
}

int sim_work_one(struct sim_application *a)
{
	struct work work;
	int rc;

	if (a->world->schedule->apart && sim_chance(a->world, 60))
		return work_apart(a);
	rc = begin(a, &work, PLAIN);
	if (rc != GO_ON)
		return rc;
	fill(&work);
	return commit(&work);
}

/* Two that are open at the same time; the first may end after the second. */
int sim_work_two(struct sim_application *a)
{
	bool backwards = sim_chance(a->world, 50);
	struct work one, two;
	int rc = begin(a, &one, PLAIN), second;

	if (rc != GO_ON)
		return rc;
	fill(&one);
	if (begin(a, &two, PLAIN) != GO_ON)
		return commit(&one);
	fill(&two);
	rc = commit(backwards ? &two : &one);
	/* The other one ends too, whatever became of it. */
	second = commit(backwards ? &one : &two);
	return rc == GO_ON ? second : rc;
}

int sim_work_publish(struct sim_application *a)
{
	struct work work = { .application = a, .publish = true };
	bool any = false;

	for (unsigned i = 0; i < SIM_SEGMENTS; i++)
		any |= a->mapped[i].base && !a->at->segments[i].present;
	if (!any)
		return GO_ON;
	sim_count(a->world, SIM_PUBLISHES, 1);
	expect_seal(&work);
	return outcome(&work, perseas_publish(a->p));
}

int sim_work_destroy(struct sim_application *a, unsigned segment)
{
	struct work work = { .application = a, .destroyed = segment + 1 };
	int rc;

	expect_seal(&work);
	rc = outcome(&work, perseas_segment_destroy(a->p, sim_segment_name(segment)));
	sim_count(a->world, SIM_DESTROYS, work.node != NULL);
	return rc;
}

int sim_work_grow(struct sim_application *a, unsigned segment)
{
	struct work work = { .application = a, .grown = segment + 1 };
	int rc;

	if (!sim_grown_can(a, segment))
		return GO_ON;
	expect_seal(&work);
	rc = perseas_segment_grow(a->p, sim_segment_name(segment),
	                          sim_grown_size(a, segment) + SIM_PAGE);
	sim_count(a->world, SIM_ENLARGED, work.node != NULL);
	if (rc == PERSEAS_EINDOUBT && sim_mistake_is(a->world, SIM_MISTAKE_GROWN_EARLY))
		rc = 0;
	/* A mirror has no memory, or another owner in this process uses the address. */
	if ((rc == PERSEAS_EMIRRORMEM || rc == PERSEAS_EADDRESS) && !work.node)
		rc = PERSEAS_EUNREACHABLE;
	return outcome(&work, rc);
}

int sim_work_trim(struct sim_application *a)
{
	struct work work = { .application = a, .trims = true };
	int rc;

	if (!a->heap)
		return GO_ON;
	expect_seal(&work);
	rc = sim_heap_trim(a);
	/* No extent was empty. */
	if (!rc && !work.node) {
		a->owner->running->sealing = NULL;
		return a->owner->dead ? LEAVE : GO_ON;
	}
	return outcome(&work, rc);
}
