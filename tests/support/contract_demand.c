/*
 * contract_demand.c - the clauses of recovery on demand. test_contract_demand.c runs each with the
 * real pager, test_contract_demand_sim.c with the simulator's. No clause may look into
 * client/demand.
 */
#include "contract_demand_rig.h"

/* Both mirrors are asked for something, and do not answer yet. */
static bool begins_asked(struct demand_stage *s, struct owner *o)
{
	if (!begin(s, o))
		return false;
	set_all(true, false);
	return map(o) && asked(2);
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
	CHECK(asks() == GRANULES);
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

	CHECK(begin(s, &o));
	CHECK(map(&o));
	CHECK(comes(&o));
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
	CHECK(asks() == GRANULES && fills() == GRANULES);
	CHECK(o.segment.base[3] == 77);
	o.segment.base[3] = byte(3, 0);
	CHECK(has(&o, 0));
	end(&o);
}

static void what_is_wanted_comes_first(struct demand_stage *s)
{
	static const uint64_t order[GRANULES] = { 0, 1, 5, 3, 2, 4, 6 };
	struct owner o;
	bool here;

	CHECK(begin(s, &o));
	set_all(true, false);
	CHECK(map(&o));
	CHECK(asked(2));
	CHECK(!want(&o, 5) && !want(&o, 3) && !want(&o, 5));
	CHECK(ps_demand_uniform_run(o.p, &o.segment, 0, o.segment.size, &here) == o.segment.size &&
	      !here);
	set_all(false, false);
	CHECK(comes(&o));
	CHECK(asks() == GRANULES);
	for (unsigned i = 0; i < GRANULES; i++)
		CHECK(script.granules[i] == order[i]);
	end(&o);
}

/* What somebody waits for, what was to come before the rest, and the rest. */
static void what_is_prefetched_comes_next(struct demand_stage *s)
{
	static const uint64_t order[GRANULES] = { 0, 1, 6, 4, 5, 2, 3 };
	struct owner o;

	CHECK(begins_asked(s, &o));
	CHECK(!perseas_prefetch(o.p, o.segment.base + 4 * o.granule,
	                        o.segment.size - 4 * o.granule));
	CHECK(!want(&o, 6));
	set_all(false, false);
	CHECK(comes(&o));
	CHECK(asks() == GRANULES);
	for (unsigned i = 0; i < GRANULES; i++)
		CHECK(script.granules[i] == order[i]);
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
	unmap(&o);
	age();
	CHECK(map(&o));
	/* The other one is asked for the same granule of the new mapping. */
	set(1, true, true);
	CHECK(died(1));
	set(1, true, false);
	CHECK(asked(3) && script.granules[2] == script.granules[0]);
	set(0, false, false);
	CHECK(filled(GRANULES - 1));
	rest(PS_KEEPER, s->short_ns);
	CHECK(fills() == GRANULES - 1);
	set(1, false, false);
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
	set_all(false, true);
	CHECK(died(2));
	CHECK(does_not_come(&o));
	CHECK(asks() == 2 && !fills());
	CHECK(ps_demand_has_missing(o.p, &o.segment));
	set(1, false, false);
	CHECK(comes(&o));
	CHECK(has(&o, 0));
	/* What was wanted, or asked for in vain, before the rest. */
	for (unsigned i = 2; i < 5; i++)
		CHECK(script.granules[i] < 2 || script.granules[i] == 4);
	end(&o);
}

/* What it was asked for comes of another one, and counts once: its own answer comes too late. */
static void a_source_that_hangs_holds_up_nobody(struct demand_stage *s)
{
	unsigned times = 0;
	struct owner o;

	CHECK(begin(s, &o));
	script.ops.late = s->short_ns / 10;
	set(0, true, false);
	CHECK(map(&o));
	/* Not for as long as that source may take. */
	CHECK(!perseas_wait_whole(o.p, FAR / 2 / 1000000));
	CHECK(asks() == GRANULES + 1);
	for (unsigned i = 0; i < asks(); i++)
		times += script.granules[i] == script.granules[0];
	CHECK(times == 2);
	age();
	set(0, false, false);
	rest(PS_KEEPER, s->short_ns);
	CHECK(fills() == GRANULES);
	CHECK(has(&o, 0));
	end(&o);
}

/* Over a slow link a run takes longer than an answer may, and than a source that says nothing is
 * waited for. */
static void a_source_that_goes_on_is_not_given_up(struct demand_stage *s)
{
	struct owner o;

	CHECK(begin(s, &o));
	script.ops.run = RUN;
	o.p->demand->patience = 2 * s->short_ns;
	set_all(true, false);
	CHECK(map(&o));
	CHECK(asked(2));
	for (unsigned i = 0; i < 30; i++) {
		go_on(o.granule);
		rest(PS_KEEPER, s->short_ns / 10);
	}
	CHECK(asks() == 2);
	/* A few bytes now and then are none of a link. */
	for (unsigned i = 0; i < 100 && asks() == 2; i++) {
		go_on(1);
		rest(PS_KEEPER, s->short_ns / 10);
	}
	CHECK(asks() > 2);
	set_all(false, false);
	CHECK(comes(&o));
	CHECK(has(&o, 0));
	end(&o);
}

/* Of what nobody waits for, several granules at once. */
static void the_rest_comes_in_runs(struct demand_stage *s)
{
	struct owner o;

	CHECK(begin(s, &o));
	script.ops.run = RUN;
	set_all(true, false);
	CHECK(map(&o));
	CHECK(asked(2) && script.granules[0] == 0 && script.granules[1] == RUN);
	CHECK(!want(&o, 1) && !want(&o, GRANULES - 1));
	set_all(false, false);
	CHECK(comes(&o));
	CHECK(asks() == 2 && fills() == 2);
	CHECK(has(&o, 0));
	end(&o);
}

/* Whoever waits gets a run where runs come fast, unless he is one of the first; and only what he
 * waits for elsewhere. */
static bool comes_in_the_order(struct demand_stage *s, uint64_t fast, uint32_t singles,
                               const uint64_t *order, unsigned count)
{
	struct owner o;
	bool in_order;

	if (!begin(s, &o))
		return false;
	script.ops.run = 2;
	script.ops.fast = fast;
	script.ops.singles = singles;
	set_all(true, false);
	if (!map(&o) || !asked(2) || want(&o, 5) || want(&o, 4))
		return false;
	set_all(false, false);
	in_order = comes(&o) && has(&o, 0) && asks() == count && fills() == count;
	for (unsigned i = 0; i < count; i++)
		in_order &= script.granules[i] == order[i];
	end(&o);
	return in_order;
}

static void who_waits_gets_a_run_where_that_is_fast(struct demand_stage *s)
{
	static const uint64_t fast[] = { 0, 2, 4, 6 }, slow[] = { 0, 2, 5, 4, 6 };

	CHECK(comes_in_the_order(s, PS_NEVER, 0, fast, 4));
	CHECK(comes_in_the_order(s, PS_NEVER, 2, slow, 5));
	CHECK(comes_in_the_order(s, 0, 0, slow, 5));
}

/* Who opens a store touches it soon: what he waits for does not come behind runs. */
static void soon_after_it_is_mapped_granules_come(struct demand_stage *s)
{
	struct owner o;

	CHECK(begin(s, &o));
	script.ops.run = RUN;
	script.ops.settle = FAR;
	CHECK(map(&o));
	CHECK(filled(GRANULES));
	CHECK(comes(&o));
	CHECK(asks() == GRANULES && fills() == GRANULES);
	CHECK(has(&o, 0));
	end(&o);
}

/* Whoever waits for all of it touches nothing before that is over. The mirrors' answers are held
 * until the wait has woken the thread that fetches. */
static void who_waits_for_all_of_it_gets_runs_at_once(struct demand_stage *s)
{
	struct owner o;

	CHECK(begin(s, &o));
	script.ops.run = RUN;
	script.ops.settle = FAR;
	set_all(true, false);
	CHECK(map(&o));
	CHECK(asked(2));
	answer_at_a_wake();
	CHECK(comes(&o));
	CHECK(asks() < GRANULES && fills() == asks());
	CHECK(has(&o, 0));
	end(&o);
}

/* Both sources have runs, and one of them hangs. The other one brings what somebody waits for. */
static bool begins_with_a_wait(struct demand_stage *s, struct owner *o, uint64_t quiet)
{
	if (!begin(s, o))
		return false;
	script.ops.run = 2;
	script.ops.fast = PS_NEVER;
	script.ops.singles = GRANULES;
	script.ops.quiet = quiet;
	set_all(true, false);
	if (!map(o) || !asked(2) || want(o, 6))
		return false;
	set(0, false, false);
	/* Where that is soon over, more may have come by the time this thread looks. */
	return comes_to(&script.fills, 2) && script.granules[2] == 6;
}

/* Somebody waited, and is likely to wait again: no second run is asked for. */
static void behind_a_wait_one_run_is_under_way(struct demand_stage *s)
{
	struct owner o;

	CHECK(begins_with_a_wait(s, &o, FAR));
	rest(PS_KEEPER, s->short_ns);
	CHECK(asks() == 3 && fills() == 2);
	CHECK(!want(&o, 5));
	CHECK(filled(3));
	rest(PS_KEEPER, s->short_ns);
	CHECK(asks() == 4 && script.granules[3] == 5);
	set(1, false, false);
	CHECK(comes(&o));
	CHECK(has(&o, 0));
	end(&o);
}

/* The run of a source that hangs has come of another one, and holds up no other run. */
static void behind_a_wait_a_late_run_counts_no_more(struct demand_stage *s)
{
	struct owner o;

	CHECK(begins_with_a_wait(s, &o, FAR));
	script.ops.late = s->short_ns / 10;
	script.ops.wake(script.pager);
	for (unsigned i = 0; i < 20 && ps_demand_has_missing(o.p, &o.segment); i++)
		rest(PS_KEEPER, s->short_ns / 10);
	CHECK(!ps_demand_has_missing(o.p, &o.segment));
	CHECK(has(&o, 0));
	end(&o);
}

static void runs_go_on_when_nobody_has_waited_for_a_while(struct demand_stage *s)
{
	struct owner o;

	CHECK(begins_with_a_wait(s, &o, s->short_ns));
	CHECK(asked(4) && script.granules[3] == 4);
	set(1, false, false);
	CHECK(comes(&o));
	CHECK(has(&o, 0));
	end(&o);
}

/* One source has a run, and hangs; the other one gives it, and dies with another one before. */
static void a_run_comes_twice(struct demand_stage *s)
{
	struct owner o;

	CHECK(begin(s, &o));
	script.ops.run = RUN;
	script.ops.late = s->short_ns / 10;
	set_all(true, false);
	CHECK(map(&o));
	CHECK(asked(2));
	set(1, true, true);
	CHECK(died(1));
	set(1, false, false);
	CHECK(!perseas_wait_whole(o.p, FAR / 2 / 1000000));
	CHECK(fills() == GRANULES - RUN + 1);
	age();
	set(0, false, false);
	rest(PS_KEEPER, s->short_ns);
	CHECK(fills() == GRANULES - RUN + 1);
	CHECK(has(&o, 0));
	end(&o);
}

/* What had been asked for before, and comes of the state that was adopted, comes too late. */
static void who_is_fenced_gets_nothing(struct demand_stage *s)
{
	struct owner o;

	CHECK(begins_asked(s, &o));
	o.p->superseded = true;
	step(&o);
	CHECK(perseas_wait_whole(o.p, -1) == PERSEAS_EFENCED);
	set_all(false, false);
	rest(PS_KEEPER, s->short_ns);
	CHECK(ps_demand_await(o.p, (uint64_t)(uintptr_t)o.segment.base,
	                      (uint64_t)(uintptr_t)o.segment.base + 1) == PERSEAS_EFENCED);
	CHECK(look(&o, 0) == -1 && look(&o, o.granule) == -1);
	CHECK(look(&o, o.segment.size - 1) == -1);
	CHECK(!fills() && asks() == 2);
	end(&o);
}

static struct owner *to_be_fenced;

static void be_fenced(void)
{
	to_be_fenced->p->superseded = true;
	step(to_be_fenced);
}

/* The answer is there, and good. */
static void a_fence_comes_just_before_the_fill(struct demand_stage *s)
{
	struct owner o;

	CHECK(begin(s, &o));
	set(0, true, false);
	set(1, true, true);
	CHECK(map(&o));
	CHECK(asked(1));
	to_be_fenced = &o;
	script.answers = be_fenced;
	set(0, false, false);
	CHECK(perseas_wait_whole(o.p, -1) == PERSEAS_EFENCED);
	rest(PS_KEEPER, s->short_ns);
	CHECK(!fills());
	CHECK(look(&o, 0) == -1);
	end(&o);
}

/* Nothing is asked for then. What was asked before counts if the promise is still that of before;
 * what spans the renewal does not, and is asked for again. */
static void a_renewal_divides(struct demand_stage *s)
{
	struct owner o;

	CHECK(begins_asked(s, &o));
	o.p->renewing = true;
	step(&o);
	set(0, false, false);
	CHECK(filled(1));
	CHECK(does_not_come(&o));
	CHECK(asks() == 2 && fills() == 1);
	promise(0, EPOCH + 1);
	promise(1, EPOCH + 1);
	set(1, false, false);
	CHECK(does_not_come(&o));
	CHECK(asks() == 2 && fills() == 1);
	o.p->epoch = EPOCH + 1;
	o.p->renewing = false;
	step(&o);
	CHECK(comes(&o));
	CHECK(has(&o, 0));
	CHECK(asks() == GRANULES + 1 && fills() == GRANULES);
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
	CLAUSE(what_is_wanted_comes_first),
	CLAUSE(what_is_prefetched_comes_next),
	CLAUSE(unmap_waits_for_a_fill),
	CLAUSE(an_answer_for_an_earlier_mapping_is_dropped),
	CLAUSE(without_a_source_memory_waits),
	CLAUSE(a_source_that_hangs_holds_up_nobody),
	CLAUSE(a_source_that_goes_on_is_not_given_up),
	CLAUSE(the_rest_comes_in_runs),
	CLAUSE(who_waits_gets_a_run_where_that_is_fast),
	CLAUSE(soon_after_it_is_mapped_granules_come),
	CLAUSE(who_waits_for_all_of_it_gets_runs_at_once),
	CLAUSE(behind_a_wait_one_run_is_under_way),
	CLAUSE(behind_a_wait_a_late_run_counts_no_more),
	CLAUSE(runs_go_on_when_nobody_has_waited_for_a_while),
	CLAUSE(a_run_comes_twice),
	CLAUSE(who_is_fenced_gets_nothing),
	CLAUSE(a_fence_comes_just_before_the_fill),
	CLAUSE(a_renewal_divides),
};

const unsigned demand_clause_count = sizeof(demand_clauses) / sizeof(demand_clauses[0]);
