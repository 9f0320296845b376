/*
 * test_lifeline_owner.c - what an owner does with its lifelines: when it asks for them, when it
 * ends them, and what becomes of those that a mirror of the version before does not know. Every
 * call of the connections is noted on its way to a mirror in this process.
 */
#include "owner.h"

#include "../../proto/control/envelope.h"

enum { TRIO = 3, LINES = 64, ROUNDS = 5 };

enum what { LINE_ASKED, LINE_ENTRUSTED, LINE_ENDED, SESSION_ENDED, RELEASED, KINDS };

/* When the owner finds out that a mirror has the previous version. */
enum age { PRESENT, REFUSED_WHEN_SENT, REFUSED_WHEN_ANSWERED };

static struct {
	struct ps_env_ops ops;
	const struct ps_env_ops *real;
	enum age ages[TRIO];
	/* Connections that were made: to which mirror, and what for. */
	struct line {
		const struct ps_control *control;
		unsigned mirror;
		bool is_line, releases;
	} lines[LINES];
	unsigned count;
	unsigned at[TRIO][KINDS]; /* when it happened last; 0: never */
	unsigned times[TRIO][KINDS];
	unsigned now;
} seen;

/* The newest: a connection may be at the place of one that was ended. */
static struct line *line_of(const struct ps_control *control)
{
	for (unsigned i = seen.count; i > 0; i--)
		if (seen.lines[i - 1].control == control)
			return &seen.lines[i - 1];
	fail_msg("nobody made this connection");
	return NULL;
}

static void note(const struct line *line, enum what what)
{
	seen.at[line->mirror][what] = ++seen.now;
	seen.times[line->mirror][what]++;
}

static struct ps_control *see_connect(struct ps_env *env, const struct ps_address *address,
                                      struct ps_error *error)
{
	struct ps_control *control = seen.real->connect(env, address, error);

	assert_non_null(control);
	assert_true(seen.count < LINES);
	seen.lines[seen.count++] = (struct line){
		.control = control,
		.mirror = (unsigned)(address->text[strlen(address->text) - 1] - '0'),
	};
	return control;
}

static int refuse(struct ps_error *error)
{
	return ps_error_set(error, PERSEAS_EVERSION, "the mirror is of the version before");
}

static int see_send(struct ps_control *control, const Perseas__Request *request,
                    struct ps_error *error)
{
	struct line *line = line_of(control);

	line->releases = request->body_case == PERSEAS__REQUEST__BODY_RELEASE;
	if (request->body_case == PERSEAS__REQUEST__BODY_LIFELINE) {
		line->is_line = true;
		note(line, LINE_ASKED);
		if (seen.ages[line->mirror] == REFUSED_WHEN_SENT)
			return refuse(error);
	}
	return seen.real->send(control, request, error);
}

static int see_receive(struct ps_control *control, uint64_t until_ns, Perseas__Reply **reply,
                       int *fds, unsigned *count, struct ps_error *error)
{
	struct line *line = line_of(control);
	int rc = seen.real->receive(control, until_ns, reply, fds, count, error);

	if (!rc && line->is_line && seen.ages[line->mirror] == REFUSED_WHEN_ANSWERED) {
		perseas__reply__free_unpacked(*reply, NULL);
		return refuse(error);
	}
	if (!rc && line->releases) {
		assert_int_equal((*reply)->status, PERSEAS__STATUS__STATUS_OK);
		note(line, RELEASED);
	}
	return rc;
}

static bool see_entrust(struct ps_control *control)
{
	note(line_of(control), LINE_ENTRUSTED);
	return true;
}

static void see_disconnect(struct ps_control *control)
{
	if (control)
		note(line_of(control), line_of(control)->is_line ? LINE_ENDED : SESSION_ENDED);
	seen.real->disconnect(control);
}

/* An owner of a new store on three mirrors, which may have lifelines. */
static struct owner *begin(void)
{
	struct owner *o = owner_new(TRIO);
	struct ps_env *env = direct_env(o->d);

	seen.real = env->ops;
	seen.ops = *env->ops;
	seen.ops.connect = see_connect;
	seen.ops.send = see_send;
	seen.ops.receive = see_receive;
	seen.ops.give_to_lifeline_thread = see_entrust;
	seen.ops.disconnect = see_disconnect;
	env->ops = &seen.ops;
	env->has_lifelines = true;
	o->options.flags |= PERSEAS_CREATE;
	if (ps_open(env, STORE, "sim://0,sim://1,sim://2", &o->options, &o->p, &o->error))
		fail_msg("%s", o->error.text);
	return o;
}

static void keep(struct owner *o)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		direct_keep_after(o->d, o->p, 200000000);
}

static int setup(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	return 0;
}

struct unit_fixture unit_fixture = { setup, NULL };

/* A mirror takes the end of a lifeline for that of its owner, unless the session is over. */
TEST(a_lifeline_ends_after_the_release_and_the_session)
{
	struct owner *o = begin();

	keep(o);
	for (unsigned i = 0; i < TRIO; i++) {
		assert_int_equal(seen.times[i][LINE_ASKED], 1);
		assert_int_equal(seen.times[i][LINE_ENTRUSTED], 1);
		assert_int_equal(seen.times[i][LINE_ENDED], 0);
	}
	owner_close(o);
	for (unsigned i = 0; i < TRIO; i++) {
		assert_int_equal(seen.times[i][RELEASED], 1);
		assert_int_equal(seen.times[i][LINE_ENDED], 1);
		assert_true(seen.at[i][RELEASED] < seen.at[i][SESSION_ENDED]);
		assert_true(seen.at[i][SESSION_ENDED] < seen.at[i][LINE_ENDED]);
	}
	owner_free(o);
}

/* The mirror is asked once for each session, and the owner goes on without a lifeline. A mirror
 * that was asked may have granted it, so such a connection stays as long as the session. */
TEST(a_mirror_of_the_version_before_has_no_lifeline)
{
	struct owner *o;

	seen.ages[0] = REFUSED_WHEN_SENT;
	seen.ages[1] = REFUSED_WHEN_ANSWERED;
	o = begin();
	keep(o);
	for (unsigned i = 0; i < TRIO; i++) {
		assert_int_equal(owner_state(o, i), PERSEAS_MIRROR_LIVE);
		assert_int_equal(seen.times[i][LINE_ASKED], 1);
		assert_int_equal(seen.times[i][LINE_ENTRUSTED], i == 2);
		assert_int_equal(seen.times[i][LINE_ENDED], i == 0);
	}
	owner_close(o);
	for (unsigned i = 0; i < TRIO; i++) {
		assert_int_equal(seen.times[i][LINE_ENDED], 1);
		assert_int_equal(seen.times[i][RELEASED], 1);
	}
	assert_true(seen.at[1][SESSION_ENDED] < seen.at[1][LINE_ENDED]);
	owner_free(o);
}
