/*
 * test_detour.c - a mirror is reached over another fabric than the best one: whether that works
 * again is asked beside the session, which loses nothing by it, and nobody waits for the answer.
 * The best fabric here is the other one, with a question that the test answers.
 */
#include "owner.h"

#include "../../client/core/detour.h"

#define MS (uint64_t)1000000

struct rig {
	struct owner *o;
	struct ps_env_ops ops;
	struct ps_fabric best;
	const struct ps_fabric *real;
	char question;                /* its address is the link that asks */
	unsigned asked, begun, ended; /* questions that are there, and were */
	int answer;                   /* of attach_step; 0: silence */
};

static struct rig *rig;

static bool is_question(const struct ps_link *link)
{
	return (const char *)link == &rig->question;
}

static struct ps_link *best_leads_begin(struct ps_env *env, const struct ps_address *address,
                                        const Perseas__Grant *grant, struct ps_error *error)
{
	(void)env;
	(void)address;
	(void)error;
	assert_int_equal(rig->asked, 0);
	assert_int_equal(grant->rdma_port, 7);
	assert_int_equal(grant->token.len, PS_ID_SIZE);
	rig->asked = 1;
	rig->begun++;
	return (struct ps_link *)&rig->question;
}

static int best_attach_step(struct ps_link *link, uint64_t until_ns, struct ps_error *error)
{
	if (!is_question(link))
		return 1;
	if (rig->answer || rig->o->d->now < until_ns)
		return rig->answer;
	return ps_error_set(error, PERSEAS_ERDMA, "silence");
}

static bool best_waits(struct ps_link *link, struct pollfd *fd)
{
	*fd = (struct pollfd){ -1, 0, 0 };
	return is_question(link) || rig->real->waits(link, fd);
}

static void best_detach(struct ps_link *link)
{
	if (!is_question(link)) {
		rig->real->detach(link);
		return;
	}
	assert_int_equal(rig->asked, 1);
	rig->asked = 0;
	rig->ended++;
}

static const struct ps_fabric *find_fabric(struct ps_env *env, const struct ps_address *address,
                                           const Perseas__Grant *grant, unsigned tried)
{
	(void)env;
	(void)address;
	(void)grant;
	return tried ? NULL : &rig->best;
}

/* Mirror 1 of three is over a detour, and a question is due. */
static int setup(void **state)
{
	struct ps_mirror *m;
	struct perseas *p;

	rig = calloc(1, sizeof(*rig));
	assert_non_null(rig);
	rig->o = owner_new(3);
	rig->o->options.acks = 2;
	owner_begin(rig->o);
	p = rig->o->p;
	m = &p->mirrors[1];
	rig->real = m->fabric;
	rig->best = *rig->real;
	rig->best.begin_route_test = best_leads_begin;
	rig->best.attach_step = best_attach_step;
	rig->best.waits = best_waits;
	rig->best.detach = best_detach;
	rig->ops = *p->env->ops;
	rig->ops.fabric = find_fabric;
	p->env->ops = &rig->ops;
	snprintf(m->detour_reason, sizeof(m->detour_reason), "over another one");
	m->way_back.rdma_port = 7;
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	owner_free(r->o);
	assert_int_equal(r->asked, 0);
	free(r);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static struct ps_mirror *mirror(unsigned i)
{
	return &rig->o->p->mirrors[i];
}

/* Runs the keeper once after so much time. Returns the number of questions in flight. */
static unsigned keep_after(uint64_t ns)
{
	direct_keep_after(rig->o->d, rig->o->p, ns);
	return rig->asked;
}

/* The best fabric says nothing: rounds of the keeper take no time, and another mirror is taken up
 * meanwhile. The question ends by itself, and is put again later; the session is the same. */
TEST(test_silence_holds_nobody_up)
{
	struct ps_link *link = mirror(1)->link;
	struct direct *d = rig->o->d;
	uint64_t start;

	direct_crash(d, 2);
	assert_int_equal(keep_after(MS), 1);
	assert_int_equal(owner_state(rig->o, 2), PERSEAS_MIRROR_DOWN);
	direct_start(d, 2);
	start = d->now;
	for (unsigned i = 0; i < 20; i++)
		keep_after(5 * MS);
	assert_true(d->now - start < 200 * MS);
	assert_int_equal(rig->asked, 1);
	assert_int_equal(owner_state(rig->o, 2), PERSEAS_MIRROR_LIVE);
	for (unsigned i = 0; i < 100; i++)
		keep_after(5 * MS);
	assert_int_equal(rig->asked, 0);
	assert_int_equal(rig->begun, 1);
	for (unsigned i = 0; i < 20 && !rig->asked; i++)
		keep_after(100 * MS);
	assert_int_equal(rig->begun, 2);
	assert_ptr_equal(mirror(1)->link, link);
	assert_int_equal(owner_state(rig->o, 1), PERSEAS_MIRROR_LIVE);
}

/* The answer comes after a while: the session is taken up over the best fabric. */
TEST(test_an_answer_ends_the_detour)
{
	keep_after(MS);
	assert_int_equal(keep_after(MS), 1);
	assert_int_equal(owner_state(rig->o, 1), PERSEAS_MIRROR_LIVE);
	rig->answer = 1;
	assert_int_equal(keep_after(MS), 0);
	owner_keep(rig->o, 1, PERSEAS_MIRROR_LIVE);
	assert_ptr_equal(mirror(1)->fabric, &rig->best);
	assert_int_equal(mirror(1)->detour_reason[0], 0);
	assert_int_equal(rig->begun, 1);
}

/* A refusal leaves the session as it is. */
TEST(test_a_refusal_changes_nothing)
{
	struct ps_link *link = mirror(1)->link;

	rig->answer = PERSEAS_ERDMA;
	keep_after(MS);
	assert_int_equal(rig->begun, 1);
	assert_int_equal(rig->asked, 0);
	assert_ptr_equal(mirror(1)->link, link);
	keep_after(MS);
	assert_int_equal(rig->begun, 1);
}

/* The session ends, and with it what is asked of it. */
TEST(test_a_question_ends_with_its_session)
{
	assert_int_equal(keep_after(MS), 1);
	direct_crash(rig->o->d, 1);
	assert_int_equal(keep_after(MS), 0);
	direct_start(rig->o->d, 1);
	owner_keep(rig->o, 1, PERSEAS_MIRROR_LIVE);
	assert_int_equal(rig->begun, 1);
}

/* Links of the detour break, one after the other, since the mirror cannot keep up: the next look
 * for the better fabric, whose links are avoided, comes when it was to come. One that is due is put
 * off. */
TEST(test_a_detour_that_breaks_puts_no_look_off)
{
	struct ps_way_back *way = &mirror(1)->way_back;
	Perseas__Grant grant = PERSEAS__GRANT__INIT;
	const uint64_t due = rig->o->d->now + 1000 * MS;
	struct ps_error error = { 0 };

	way->break_count = 3;
	way->test_at = due;
	way->best_fabric_retest_delay_ns = 1000 * MS;
	for (unsigned i = 0; i < 10; i++)
		ps_detour_begin(rig->o->p, mirror(1), &grant, rig->real, &error);
	assert_int_equal(way->test_at, due);
	assert_int_equal(way->best_fabric_retest_delay_ns, 1000 * MS);
	rig->o->d->now = due;
	ps_detour_begin(rig->o->p, mirror(1), &grant, rig->real, &error);
	assert_true(way->test_at >= due + 2000 * MS);
}

/* The handle is closed while it asks: teardown sees that nothing is left. */
TEST(test_a_handle_is_closed_while_it_asks)
{
	assert_int_equal(keep_after(MS), 1);
}
