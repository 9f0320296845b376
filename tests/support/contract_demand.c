/*
 * contract_demand.c - the clauses of recovery on demand. test_contract_demand.c runs each with the
 * real pager, test_contract_demand_sim.c with the simulator's. No clause may look into
 * client/demand.
 */
#include "contract_demand_rig.h"

/* Both mirrors are asked for some of the bulk, and no mirror answers yet. */
static bool begins_asked(struct demand_stage *s, struct owner *o)
{
	if (!begin(s, o))
		return false;
	set_all(true, false);
	return map(o) && asked(PS_BULK_LANE, 2);
}

/* The bulk does not come for now; what somebody waits for does. */
static bool begins_without_bulk(struct demand_stage *s, struct owner *o)
{
	if (!begins_asked(s, o))
		return false;
	set_lane(PS_FAULT_LANE, false, false);
	return true;
}

/* Whoever touches a byte finds it, up to the last one; and what nobody touches comes too. */
static void what_is_touched_comes(struct demand_stage *s)
{
	struct owner o;
	bool here;

	CHECK(begin(s, &o));
	CHECK(map(&o));
	CHECK(look(&o, o.segment.size - 1) == byte(o.segment.size - 1, 0));
	CHECK(look(&o, 3 * o.granule + 5) == byte(3 * o.granule + 5, 0));
	CHECK(comes(&o));
	CHECK(has(&o, 0));
	CHECK(!ps_demand_has_missing(o.p, &o.segment));
	CHECK(ps_demand_uniform_run(o.p, &o.segment, 0, o.segment.size, &here) == o.segment.size &&
	      here);
	CHECK(fills() == GRANULES);
	end(&o);
}

/* The memory was touched, and locked where that is allowed, before it was covered: the zeros in it
 * are no bytes of the store. */
static void what_was_there_before_is_fetched_all_the_same(struct demand_stage *s)
{
	struct owner o;

	CHECK(begin(s, &o));
	script.touched = true;
	CHECK(map(&o));
	script.touched = false;
	CHECK(look(&o, 2 * o.granule) == byte(2 * o.granule, 0));
	CHECK(comes(&o));
	CHECK(has(&o, 0));
	end(&o);
}

static void what_is_here_stays(struct demand_stage *s)
{
	struct owner o;
	unsigned before;

	CHECK(begin(s, &o));
	CHECK(map(&o));
	CHECK(comes(&o));
	before = asks(PS_BULK_LANE);
	o.segment.base[3] = 77;
	age();
	CHECK(!perseas_prefetch(o.p, o.segment.base, o.segment.size));
	for (uint64_t g = 0; g < GRANULES; g++)
		CHECK(want(&o, g));
	/* Other sources, and other epochs, are no reason either. */
	o.p->epoch++;
	o.p->mirrors[0].image_id[0]++;
	step(&o);
	rest(PS_KEEPER, s->short_ns);
	CHECK(asks(PS_BULK_LANE) == before && !asks(PS_FAULT_LANE) && fills() == GRANULES);
	CHECK(o.segment.base[3] == 77);
	o.segment.base[3] = byte(3, 0);
	CHECK(has(&o, 0));
	end(&o);
}

/* Also what the bulk lane has asked for: its answers do not come. */
static void what_is_wanted_does_not_wait_for_the_bulk(struct demand_stage *s)
{
	static const uint64_t order[] = { 5, 3, 0 };
	struct owner o;
	bool here;

	CHECK(begins_without_bulk(s, &o));
	CHECK(ps_demand_uniform_run(o.p, &o.segment, 0, o.segment.size, &here) == o.segment.size &&
	      !here);
	for (unsigned i = 0; i < 3; i++) {
		CHECK(!want(&o, order[i]));
		CHECK(filled(i + 1));
	}
	CHECK(asked_in_order(PS_FAULT_LANE, order, 3) && asks(PS_BULK_LANE) == 2);
	set_all(false, false);
	CHECK(comes(&o));
	CHECK(has(&o, 0));
	CHECK(fills() == GRANULES);
	end(&o);
}

/* What was to come before the rest, and the rest. */
static void what_is_prefetched_comes_next(struct demand_stage *s)
{
	static const uint64_t order[GRANULES] = { 0, 1, 4, 5, 6, 2, 3 };
	struct owner o;

	CHECK(begins_asked(s, &o));
	CHECK(!perseas_prefetch(o.p, o.segment.base + 4 * o.granule,
	                        o.segment.size - 4 * o.granule));
	set_all(false, false);
	CHECK(comes(&o));
	CHECK(asked_in_order(PS_BULK_LANE, order, GRANULES) && !asks(PS_FAULT_LANE));
	end(&o);
}

/* Nothing is filled in once unmap has returned. */
static void unmap_waits_for_a_fill(struct demand_stage *s)
{
	struct owner o;

	CHECK(begin(s, &o));
	script.slow = s->short_ns;
	CHECK(map(&o));
	while (!fills())
		rest(PS_KEEPER, s->short_ns / 100);
	unmap(&o);
	CHECK(none_is_filling());
	end(&o);
}

/* Each mapping has a number: what was asked for before is nothing to the one after. */
static void an_answer_for_an_earlier_mapping_is_dropped(struct demand_stage *s)
{
	struct owner o;

	CHECK(begins_asked(s, &o));
	CHECK(!want(&o, 0));
	CHECK(asked(PS_FAULT_LANE, 1));
	unmap(&o);
	age();
	CHECK(map(&o));
	/* The other one is asked for the same granule of the new mapping. */
	set(PS_BULK_LANE, 1, true, true);
	CHECK(died(1));
	set(PS_BULK_LANE, 1, true, false);
	CHECK(asked(PS_BULK_LANE, 3) && script.asking[PS_BULK_LANE].granules[2] == 0);
	set_lane(PS_FAULT_LANE, false, false);
	set(PS_BULK_LANE, 0, false, false);
	CHECK(filled(GRANULES - 1));
	rest(PS_KEEPER, s->short_ns);
	CHECK(fills() == GRANULES - 1);
	set(PS_BULK_LANE, 1, false, false);
	CHECK(comes(&o));
	CHECK(has(&o, 1));
	end(&o);
}

/* They die while they are asked, and one returns. */
static void without_a_source_memory_waits(struct demand_stage *s)
{
	struct owner o;

	CHECK(begins_asked(s, &o));
	CHECK(!want(&o, 4));
	CHECK(asked(PS_FAULT_LANE, 1));
	set_all(false, true);
	CHECK(died(3));
	CHECK(does_not_come(&o));
	CHECK(asks(PS_BULK_LANE) == 2 && asks(PS_FAULT_LANE) == 1 && !fills());
	CHECK(ps_demand_has_missing(o.p, &o.segment));
	set(PS_FAULT_LANE, 1, false, false);
	CHECK(filled(1) && script.asking[PS_FAULT_LANE].granules[1] == 4);
	set(PS_BULK_LANE, 1, false, false);
	CHECK(comes(&o));
	CHECK(has(&o, 0));
	CHECK(fills() == GRANULES);
	end(&o);
}

/* A lane's connections are lost, and the other's are not: it brings what it is to bring. */
static void one_lane_loses_its_sources(struct demand_stage *s)
{
	struct owner o;

	CHECK(begins_asked(s, &o));
	set_lane(PS_BULK_LANE, false, true);
	set_lane(PS_FAULT_LANE, false, false);
	CHECK(died(2));
	CHECK(!want(&o, 0));
	CHECK(filled(1));
	CHECK(does_not_come(&o));
	CHECK(fills() == 1);
	/* Now the other one: the bulk has what somebody waits for in vain, too. */
	set_lane(PS_FAULT_LANE, true, false);
	CHECK(!want(&o, 3));
	CHECK(asked(PS_FAULT_LANE, 2));
	set_lane(PS_FAULT_LANE, false, true);
	CHECK(died(3));
	set_lane(PS_BULK_LANE, false, false);
	CHECK(comes(&o));
	CHECK(has(&o, 0));
	CHECK(fills() == GRANULES);
	end(&o);
}

/* Both lanes asked for it. What came first has been changed since, and what comes second is older.
 */
static void the_same_granule_comes_of_both_lanes(struct demand_stage *s)
{
	struct owner o;

	CHECK(begins_without_bulk(s, &o));
	CHECK(!want(&o, 0));
	CHECK(filled(1));
	CHECK(look(&o, 5) == byte(5, 0));
	o.segment.base[5] = 77;
	set_lane(PS_FAULT_LANE, true, false);
	CHECK(!want(&o, 1));
	CHECK(asked(PS_FAULT_LANE, 2));
	set_lane(PS_BULK_LANE, false, false);
	CHECK(filled(GRANULES));
	CHECK(comes(&o));
	CHECK(o.segment.base[5] == 77);
	o.segment.base[5] = byte(5, 0);
	/* The fault lane's own answer comes last. */
	o.segment.base[o.granule] = 78;
	set_lane(PS_FAULT_LANE, false, false);
	rest(PS_KEEPER, s->short_ns);
	CHECK(fills() == GRANULES);
	CHECK(o.segment.base[o.granule] == 78);
	o.segment.base[o.granule] = byte(o.granule, 0);
	CHECK(has(&o, 0));
	end(&o);
}

/* What it was asked for comes of another one, and counts once: its own answer comes too late. */
static void a_source_that_hangs_holds_up_nobody(struct demand_stage *s)
{
	const uint64_t *granules = script.asking[PS_BULK_LANE].granules;
	unsigned twice = 0;
	struct owner o;

	CHECK(begin(s, &o));
	script.ops.second_request_after_ns = s->short_ns / 10;
	set(PS_BULK_LANE, 0, true, false);
	CHECK(map(&o));
	/* Not for as long as that source may take. */
	CHECK(!perseas_wait_whole(o.p, FAR / 2 / 1000000));
	CHECK(asks(PS_BULK_LANE) == GRANULES + 1);
	for (unsigned i = 0; i < asks(PS_BULK_LANE); i++)
		for (unsigned j = 0; j < i; j++)
			twice += granules[i] == granules[j];
	CHECK(twice == 1);
	age();
	set_all(false, false);
	rest(PS_KEEPER, s->short_ns);
	CHECK(fills() == GRANULES);
	CHECK(has(&o, 0));
	end(&o);
}

/* The same where somebody waits for it: the other mirror is asked, too. */
static void a_source_that_hangs_holds_up_no_wait(struct demand_stage *s)
{
	static const uint64_t order[] = { 5, 5 };
	struct owner o;

	CHECK(begins_asked(s, &o));
	script.ops.second_request_after_ns = s->short_ns / 10;
	set(PS_FAULT_LANE, 1, false, false);
	CHECK(!want(&o, 5));
	CHECK(filled(1));
	CHECK(asked_in_order(PS_FAULT_LANE, order, 2));
	CHECK(look(&o, 5 * o.granule) == byte(5 * o.granule, 0));
	set_all(false, false);
	CHECK(comes(&o));
	CHECK(has(&o, 0));
	end(&o);
}

/* The first mirror brings bulk, and the second none, since that way to it is lost. */
static void who_waits_asks_the_mirror_that_brings_no_bulk(struct demand_stage *s)
{
	struct owner o;

	CHECK(begin(s, &o));
	set_all(true, false);
	set(PS_BULK_LANE, 1, false, true);
	set(PS_FAULT_LANE, 1, false, false);
	CHECK(map(&o));
	CHECK(asked(PS_BULK_LANE, 1));
	CHECK(!want(&o, 5));
	CHECK(filled(1) && asks(PS_FAULT_LANE) == 1);
	set_all(false, false);
	CHECK(comes(&o));
	end(&o);
}

/* Over a slow link a run takes longer than an answer may, and than a source that says nothing is
 * waited for. */
static void a_source_that_goes_on_is_not_given_up(struct demand_stage *s)
{
	struct owner o;

	CHECK(begin(s, &o));
	script.ops.run = RUN;
	o.p->demand->answer_timeout_ns = 2 * s->short_ns;
	set_all(true, false);
	CHECK(map(&o));
	CHECK(asked(PS_BULK_LANE, 2));
	for (unsigned i = 0; i < 30; i++) {
		go_on(o.granule);
		rest(PS_KEEPER, s->short_ns / 10);
	}
	CHECK(asks(PS_BULK_LANE) == 2);
	/* A few bytes now and then are none of a link. */
	for (unsigned i = 0; i < 100 && asks(PS_BULK_LANE) == 2; i++) {
		go_on(1);
		rest(PS_KEEPER, s->short_ns / 10);
	}
	CHECK(asks(PS_BULK_LANE) > 2);
	set_all(false, false);
	CHECK(comes(&o));
	CHECK(has(&o, 0));
	end(&o);
}

/* Of what nobody waits for, several granules at once. They are filled in one by one, so that nobody
 * waits for all of them. */
static void the_rest_comes_in_runs(struct demand_stage *s)
{
	static const uint64_t order[] = { 0, RUN };
	struct owner o;

	CHECK(begin(s, &o));
	script.ops.run = RUN;
	CHECK(map(&o));
	CHECK(comes(&o));
	CHECK(asked_in_order(PS_BULK_LANE, order, 2) && fills() == GRANULES);
	CHECK(has(&o, 0));
	end(&o);
}

static bool moves_all(const struct ps_pager *pager, const uint8_t *to, uint32_t length,
                      bool watched)
{
	(void)pager;
	(void)to;
	(void)length;
	(void)watched;
	return true;
}

/* A whole run that is moved takes no longer than a granule. */
static void a_run_that_is_moved_is_filled_at_once(struct demand_stage *s)
{
	struct owner o;

	CHECK(begin(s, &o));
	script.ops.run = RUN;
	script.ops.can_move = moves_all;
	CHECK(map(&o));
	CHECK(comes(&o));
	CHECK(asks(PS_BULK_LANE) == 2 && fills() == 1 + GRANULES - RUN);
	CHECK(has(&o, 0));
	end(&o);
}

/* What is here of a run stays, and the rest is filled in granule by granule. */
static void a_run_of_which_some_is_here_is_not_moved(struct demand_stage *s)
{
	struct owner o;

	CHECK(begin(s, &o));
	script.ops.run = RUN;
	script.ops.can_move = moves_all;
	set_lane(PS_BULK_LANE, true, false);
	CHECK(map(&o));
	CHECK(asked(PS_BULK_LANE, 2));
	CHECK(!want(&o, 1));
	CHECK(filled(1));
	o.segment.base[o.granule] = 77;
	set_lane(PS_BULK_LANE, false, false);
	CHECK(comes(&o));
	CHECK(fills() == GRANULES && asks(PS_FAULT_LANE) == 1);
	CHECK(o.segment.base[o.granule] == 77);
	o.segment.base[o.granule] = byte(o.granule, 0);
	CHECK(has(&o, 0));
	end(&o);
}

/* One source has a run, and hangs; the other one gives it, and dies with another one before. */
static void a_run_comes_twice(struct demand_stage *s)
{
	struct owner o;

	CHECK(begin(s, &o));
	script.ops.run = RUN;
	script.ops.second_request_after_ns = s->short_ns / 10;
	set_all(true, false);
	CHECK(map(&o));
	CHECK(asked(PS_BULK_LANE, 2));
	set(PS_BULK_LANE, 1, true, true);
	CHECK(died(1));
	set(PS_BULK_LANE, 1, false, false);
	CHECK(!perseas_wait_whole(o.p, FAR / 2 / 1000000));
	CHECK(fills() == GRANULES);
	age();
	set_all(false, false);
	rest(PS_KEEPER, s->short_ns);
	CHECK(fills() == GRANULES);
	CHECK(has(&o, 0));
	end(&o);
}

/* What had been asked for before, and comes of the state that was adopted, comes too late. */
static void who_is_fenced_gets_nothing(struct demand_stage *s)
{
	struct owner o;

	CHECK(begins_asked(s, &o));
	CHECK(!want(&o, 2));
	CHECK(asked(PS_FAULT_LANE, 1));
	o.p->is_superseded = true;
	step(&o);
	CHECK(perseas_wait_whole(o.p, -1) == PERSEAS_EFENCED);
	set_all(false, false);
	rest(PS_KEEPER, s->short_ns);
	CHECK(ps_demand_await(o.p, (uint64_t)(uintptr_t)o.segment.base,
	                      (uint64_t)(uintptr_t)o.segment.base + 1) == PERSEAS_EFENCED);
	CHECK(look(&o, 0) == -1 && look(&o, o.granule) == -1);
	CHECK(look(&o, o.segment.size - 1) == -1);
	CHECK(!fills() && asks(PS_BULK_LANE) == 2 && asks(PS_FAULT_LANE) == 1);
	end(&o);
}

static struct owner *to_be_fenced;

static void be_fenced(void)
{
	to_be_fenced->p->is_superseded = true;
	step(to_be_fenced);
}

/* The answer is there, and good. */
static bool fills_nothing_after_a_fence(struct demand_stage *s, enum ps_lane lane)
{
	struct owner o;
	bool nothing;

	if (!begins_asked(s, &o) || want(&o, 2) || !asked(PS_FAULT_LANE, 1))
		return false;
	to_be_fenced = &o;
	script.answers = be_fenced;
	set(lane, 0, false, false);
	nothing = perseas_wait_whole(o.p, -1) == PERSEAS_EFENCED;
	rest(PS_KEEPER, s->short_ns);
	nothing &= !fills() && look(&o, 0) == -1 && look(&o, 2 * o.granule) == -1;
	end(&o);
	return nothing;
}

static void a_fence_comes_just_before_the_fill(struct demand_stage *s)
{
	CHECK(fills_nothing_after_a_fence(s, PS_FAULT_LANE));
	CHECK(fills_nothing_after_a_fence(s, PS_BULK_LANE));
}

/* Nothing is asked for then. What was asked before counts if the promise is still that of before;
 * what spans the renewal does not, and is asked for again. */
static void a_renewal_divides(struct demand_stage *s)
{
	struct owner o;

	CHECK(begins_asked(s, &o));
	CHECK(!want(&o, 5) && !want(&o, 6));
	CHECK(asked(PS_FAULT_LANE, 2));
	o.p->is_renewing = true;
	step(&o);
	set(PS_BULK_LANE, 0, false, false);
	set(PS_FAULT_LANE, 0, false, false);
	CHECK(filled(2));
	CHECK(!want(&o, 4));
	CHECK(does_not_come(&o));
	CHECK(asks(PS_BULK_LANE) == 2 && asks(PS_FAULT_LANE) == 2 && fills() == 2);
	promise(0, EPOCH + 1);
	promise(1, EPOCH + 1);
	set_all(false, false);
	CHECK(does_not_come(&o));
	CHECK(asks(PS_BULK_LANE) == 2 && asks(PS_FAULT_LANE) == 2 && fills() == 2);
	o.p->epoch = EPOCH + 1;
	o.p->is_renewing = false;
	step(&o);
	CHECK(comes(&o));
	CHECK(has(&o, 0));
	CHECK(fills() == GRANULES);
	end(&o);
}

#define CLAUSE(name)        \
	{                   \
#name, name \
	}

const struct demand_clause demand_clauses[] = {
	CLAUSE(what_is_touched_comes),
	CLAUSE(what_was_there_before_is_fetched_all_the_same),
	CLAUSE(what_is_here_stays),
	CLAUSE(what_is_wanted_does_not_wait_for_the_bulk),
	CLAUSE(what_is_prefetched_comes_next),
	CLAUSE(unmap_waits_for_a_fill),
	CLAUSE(an_answer_for_an_earlier_mapping_is_dropped),
	CLAUSE(without_a_source_memory_waits),
	CLAUSE(one_lane_loses_its_sources),
	CLAUSE(the_same_granule_comes_of_both_lanes),
	CLAUSE(a_source_that_hangs_holds_up_nobody),
	CLAUSE(a_source_that_hangs_holds_up_no_wait),
	CLAUSE(who_waits_asks_the_mirror_that_brings_no_bulk),
	CLAUSE(a_source_that_goes_on_is_not_given_up),
	CLAUSE(the_rest_comes_in_runs),
	CLAUSE(a_run_that_is_moved_is_filled_at_once),
	CLAUSE(a_run_of_which_some_is_here_is_not_moved),
	CLAUSE(a_run_comes_twice),
	CLAUSE(who_is_fenced_gets_nothing),
	CLAUSE(a_fence_comes_just_before_the_fill),
	CLAUSE(a_renewal_divides),
};

const unsigned demand_clause_count = sizeof(demand_clauses) / sizeof(demand_clauses[0]);
