/*
 * test_contract_env.c - has the real env (env_posix.c, control_socket.c) and the simulator's
 * (tests/sim/env_sim.c) keep the contract of client/core/env.h (tests/support/contract_env.h), and
 * that of the unit tests (env_direct.c), which has no threads, what is about connections that end.
 */
#include "../sim/contract.h"
#include "../support/contract_env.h"
#include "../support/env_direct.h"
#include "../../proto/control/envelope.h"
#include "../../proto/data/frame.h"
#include "../support/unit.h"

#include <sys/un.h>

/* A mirror in a thread: it refuses everything, at once or when it may. */
struct real_stage {
	struct stage stage; /* first */
	char folder[64];
	int listener, fd; /* fd -1: nobody is connected */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t came;
	bool held, stopped;
	uint64_t ids[PS_REGIONS_MAX]; /* of requests that wait */
	unsigned waiting;
};

static struct real_stage *of(struct stage *stage)
{
	return (struct real_stage *)stage;
}

static void send_reply(struct real_stage *r, Perseas__Reply *reply)
{
	uint8_t *bytes;
	size_t len;

	assert_int_equal(ps_reply_pack(reply, &bytes, &len), 0);
	(void)!send(r->fd, bytes, len, MSG_NOSIGNAL);
	free(bytes);
}

static void refuse(struct real_stage *r, uint64_t id)
{
	Perseas__Reply reply = PERSEAS__REPLY__INIT;

	reply.id = id;
	reply.status = PERSEAS__STATUS__STATUS_NO_STORE;
	reply.message = (char *)(uintptr_t) "there is no such store";
	send_reply(r, &reply);
}

static void answer_sign(const struct real_stage *r)
{
	const uint32_t nothing = 0;

	if (!r->stopped)
		(void)!send(r->fd, &nothing, sizeof(nothing), MSG_NOSIGNAL);
}

/* Returns true if a request arrived, with its id in *id, or a sign of life, with 0. */
static bool hear(int fd, uint64_t *id)
{
	uint8_t bytes[4096];
	Perseas__Request *request;
	const char *why;
	uint32_t len;

	*id = 0;
	if (recv(fd, &len, sizeof(len), MSG_WAITALL) != sizeof(len) || len > sizeof(bytes))
		return false;
	if (len == 0)
		return true;
	if (recv(fd, bytes, len, MSG_WAITALL) != (ssize_t)len)
		return false;
	request = ps_request_unpack(bytes, len, &why);
	if (!request)
		return false;
	*id = request->id;
	perseas__request__free_unpacked(request, NULL);
	return true;
}

static void serve(struct real_stage *r, int fd)
{
	struct ps_control_hello hello = { PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION };
	uint64_t id;

	(void)!send(fd, &hello, sizeof(hello), MSG_NOSIGNAL);
	if (recv(fd, &hello, sizeof(hello), MSG_WAITALL) != sizeof(hello))
		return;
	pthread_mutex_lock(&r->lock);
	r->fd = fd;
	r->waiting = 0;
	pthread_mutex_unlock(&r->lock);
	while (hear(fd, &id)) {
		pthread_mutex_lock(&r->lock);
		if (id == 0)
			answer_sign(r);
		else if (r->held)
			r->ids[r->waiting++] = id;
		else
			refuse(r, id);
		pthread_cond_broadcast(&r->came);
		pthread_mutex_unlock(&r->lock);
	}
}

static void *mirror(void *arg)
{
	struct real_stage *r = arg;
	int fd;

	while ((fd = accept(r->listener, NULL, NULL)) >= 0) {
		serve(r, fd);
		pthread_mutex_lock(&r->lock);
		r->fd = -1;
		close(fd);
		pthread_mutex_unlock(&r->lock);
	}
	return NULL;
}

/* Locked. */
static void await(struct real_stage *r, unsigned requests)
{
	while (r->waiting < requests)
		pthread_cond_wait(&r->came, &r->lock);
}

static void hold(struct stage *stage)
{
	pthread_mutex_lock(&of(stage)->lock);
	of(stage)->held = true;
	pthread_mutex_unlock(&of(stage)->lock);
}

static void sign(struct stage *stage, uint64_t done)
{
	Perseas__Reply reply = PERSEAS__REPLY__INIT;
	Perseas__WorkingReply working = PERSEAS__WORKING_REPLY__INIT;
	struct real_stage *r = of(stage);

	pthread_mutex_lock(&r->lock);
	await(r, 1);
	working.done = done;
	working.total = 100;
	reply.id = r->ids[0];
	reply.body_case = PERSEAS__REPLY__BODY_WORKING;
	reply.working = &working;
	send_reply(r, &reply);
	pthread_mutex_unlock(&r->lock);
}

static void let_go(struct stage *stage, unsigned requests)
{
	struct real_stage *r = of(stage);

	pthread_mutex_lock(&r->lock);
	await(r, requests);
	for (unsigned i = 0; i < r->waiting; i++)
		refuse(r, r->ids[i]);
	r->waiting = 0;
	r->held = false;
	pthread_mutex_unlock(&r->lock);
}

static void stop(struct stage *stage)
{
	pthread_mutex_lock(&of(stage)->lock);
	of(stage)->stopped = true;
	pthread_mutex_unlock(&of(stage)->lock);
}

static void stray(struct stage *stage)
{
	struct real_stage *r = of(stage);

	pthread_mutex_lock(&r->lock);
	if (r->held)
		await(r, 1);
	r->held = false;
	refuse(r, 1000);
	pthread_mutex_unlock(&r->lock);
}

static void end(struct stage *stage)
{
	pthread_mutex_lock(&of(stage)->lock);
	shutdown(of(stage)->fd, SHUT_RDWR);
	pthread_mutex_unlock(&of(stage)->lock);
}

static void begin(struct real_stage *r)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char text[128];

	*r = (struct real_stage){ .fd = -1,
		                  .folder = "/tmp/perseas-contract-XXXXXX",
		                  .lock = PTHREAD_MUTEX_INITIALIZER,
		                  .came = PTHREAD_COND_INITIALIZER,
		                  .stage = { .short_ns = 400000000,
		                             .hold = hold,
		                             .sign = sign,
		                             .let_go = let_go,
		                             .stop = stop,
		                             .stray = stray,
		                             .end = end } };
	assert_non_null(mkdtemp(r->folder));
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/socket", r->folder);
	r->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(r->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(r->listener, 4), 0);
	snprintf(text, sizeof(text), "unix://%s", at.sun_path);
	assert_int_equal(ps_address_parse(text, &r->stage.mirror, NULL), 0);
	snprintf(text, sizeof(text), "unix://%s/nobody", r->folder);
	assert_int_equal(ps_address_parse(text, &r->stage.nobody, NULL), 0);
	r->stage.env = ps_env_posix(NULL, NULL);
	assert_non_null(r->stage.env);
	assert_int_equal(pthread_create(&r->thread, NULL, mirror, r), 0);
}

static void finish(struct real_stage *r)
{
	char path[128];

	shutdown(r->listener, SHUT_RDWR);
	pthread_mutex_lock(&r->lock);
	if (r->fd >= 0)
		shutdown(r->fd, SHUT_RDWR);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	close(r->listener);
	snprintf(path, sizeof(path), "%s/socket", r->folder);
	unlink(path);
	rmdir(r->folder);
}

static void assert_kept(const struct clause *clause)
{
	if (clause_broken[0])
		fail_msg("%s: %s", clause->name, clause_broken);
}

TEST(the_real_env_keeps_the_contract)
{
	struct real_stage r;

	for (unsigned i = 0; i < env_clause_count; i++) {
		begin(&r);
		env_clauses[i].check(&r.stage);
		assert_kept(&env_clauses[i]);
		r.stage.env->ops->free(r.stage.env);
		finish(&r);
	}
}

TEST(the_simulated_env_keeps_the_contract)
{
	for (unsigned i = 0; i < env_clause_count; i++) {
		sim_contract(i);
		assert_kept(&env_clauses[i]);
	}
}

/* A mirror of env_direct.c. Once it has hung, its connections are over. */
struct direct_stage {
	struct stage stage; /* first */
	struct direct *d;
};

static struct direct *direct_of(struct stage *stage)
{
	return ((struct direct_stage *)stage)->d;
}

static void direct_stage_hold(struct stage *stage)
{
	direct_hang(direct_of(stage), 0);
}

static void direct_stage_let_go(struct stage *stage, unsigned requests)
{
	(void)requests;
	direct_unhang(direct_of(stage), 0);
}

static void direct_stage_end(struct stage *stage)
{
	direct_cut(direct_of(stage), 0);
}

static void the_direct_env_keeps(const char *clause)
{
	struct direct_stage s = { .stage = { .short_ns = 1000000,
		                             .hold = direct_stage_hold,
		                             .let_go = direct_stage_let_go,
		                             .end = direct_stage_end },
		                  .d = direct_new(1, 1) };
	unsigned i = 0;

	while (strcmp(env_clauses[i].name, clause))
		assert_true(++i < env_clause_count);
	s.stage.env = direct_env(s.d);
	assert_int_equal(ps_address_parse(direct_list(s.d), &s.stage.mirror, NULL), 0);
	env_clauses[i].check(&s.stage);
	assert_kept(&env_clauses[i]);
	s.stage.env->ops->free(s.stage.env);
	direct_free(s.d);
}

TEST(the_direct_env_keeps_the_contract_of_what_is_over)
{
	the_direct_env_keeps("a_late_answer_answers_nothing");
	the_direct_env_keeps("what_is_over_takes_no_request");
}
