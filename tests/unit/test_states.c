/*
 * test_states.c - tables of states allow the moves that are listed here, one by one, and no others;
 * a move that a table does not allow ends the process; and each move is traced in one line.
 */
#include "owner.h"

#include "../../client/keeper/session.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOVES_MAX = 40, LINES_MAX = 64 };

struct drawn {
	const struct ps_states *states;
	unsigned count;
	const char *moves[MOVES_MAX]; /* "from, then to" */
};

/* By hand, from what each state means: not from the tables. */
static const struct drawn drawn[] = {
	{ &ps_session_states,
	  4,
	  { "none, then claiming", "none, then up", "claiming, then attaching", "claiming, then up",
	    "claiming, then none", "attaching, then up", "attaching, then none",
	    "up, then none" } },
};

enum { TABLES = sizeof(drawn) / sizeof(drawn[0]) };

static bool is_drawn(const struct drawn *d, unsigned from, unsigned to)
{
	char text[80];

	snprintf(text, sizeof(text), "%s, then %s", d->states->rows[from].name,
	         d->states->rows[to].name);
	for (unsigned i = 0; i < MOVES_MAX && d->moves[i]; i++)
		if (!strcmp(text, d->moves[i]))
			return true;
	return false;
}

static unsigned count_moves(const struct drawn *d)
{
	unsigned count = 0;

	while (count < MOVES_MAX && d->moves[count])
		count++;
	return count;
}

static void tables_allow_what_is_drawn_and_no_more(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TABLES; i++) {
		const struct drawn *d = &drawn[i];
		unsigned allowed = 0;

		assert_int_equal(d->states->count, d->count);
		for (unsigned from = 0; from < d->count; from++) {
			for (unsigned to = 0; to < d->count; to++) {
				const bool leads = ps_states_lead(d->states, from, to);

				allowed += leads;
				if (leads != is_drawn(d, from, to))
					fail_msg("%s, then %s: %s", d->states->rows[from].name,
					         d->states->rows[to].name,
					         leads ? "allowed" : "not allowed");
			}
		}
		assert_int_equal(allowed, count_moves(d));
	}
}

static unsigned reached_from(const struct ps_states *states, unsigned first)
{
	unsigned reached = PS_TO(first);

	for (unsigned round = 0; round < states->count; round++)
		for (unsigned i = 0; i < states->count; i++)
			if (reached & PS_TO(i))
				reached |= states->rows[i].leads_to;
	return reached;
}

/* From the first state to each, and from each to the first: nothing gets stuck. */
static void every_state_is_reached_and_is_left(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TABLES; i++) {
		const struct ps_states *states = drawn[i].states;

		assert_int_equal(reached_from(states, 0), PS_TO(states->count) - 1);
		for (unsigned from = 0; from < states->count; from++)
			assert_true(reached_from(states, from) & PS_TO(0));
	}
}

static void states_that_do_not_exist_lead_nowhere(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TABLES; i++) {
		const struct ps_states *states = drawn[i].states;

		for (unsigned known = 0; known < states->count; known++) {
			assert_false(ps_states_lead(states, known, states->count));
			assert_false(ps_states_lead(states, states->count, known));
		}
	}
}

/* None is up without a claim that was granted, or an open that had it. */
static void a_move_that_is_not_allowed_ends_the_process(void **state)
{
	struct owner *o = *state;
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		const struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		ps_states_move(o->p->env, &ps_session_states, PS_SESSION_UP, PS_SESSION_CLAIMING,
		               "session");
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

struct traced {
	char lines[LINES_MAX][128];
	unsigned count;
};

static void take_line(void *arg, const char *line)
{
	struct traced *t = arg;

	assert_true(t->count < LINES_MAX);
	snprintf(t->lines[t->count++], sizeof(t->lines[0]), "%s", line);
}

static void listen_to(struct owner *o, struct traced *t)
{
	o->d->on_trace = take_line;
	o->d->on_trace_arg = t;
}

/* The lines that begin so, in their order, must be these; the last is followed by NULL. */
static void assert_traced(const struct traced *t, const char *what, const char *const *moves)
{
	const size_t length = strlen(what);

	for (unsigned i = 0; i < t->count; i++) {
		if (strncmp(t->lines[i], what, length) != 0)
			continue;
		if (!*moves)
			fail_msg("not expected: %s", t->lines[i]);
		assert_string_equal(t->lines[i] + length, *moves++);
	}
	if (*moves)
		fail_msg("not traced: %s%s", what, *moves);
}

/* A mirror's daemon is started again. */
static void the_moves_of_a_session_are_traced(void **state)
{
	static const char *const moves[] = { "up, then none", "none, then claiming",
		                             "claiming, then attaching", "attaching, then up",
		                             NULL };
	static const char *const none[] = { NULL };
	struct traced t = { .count = 0 };
	struct owner *o = *state;

	listen_to(o, &t);
	direct_crash(o->d, 1);
	direct_start(o->d, 1);
	direct_keep(o->d, o->p);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	o->d->on_trace = NULL;
	assert_traced(&t, "session with sim://1: ", moves);
	assert_traced(&t, "session with sim://2: ", none);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, owner_setup_three, owner_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_allow_what_is_drawn_and_no_more),
		cmocka_unit_test(every_state_is_reached_and_is_left),
		cmocka_unit_test(states_that_do_not_exist_lead_nowhere),
		TEST(a_move_that_is_not_allowed_ends_the_process),
		TEST(the_moves_of_a_session_are_traced),
	};

	return cmocka_run_group_tests_name("states", tests, NULL, NULL);
}
