/*
 * test_surplus_descriptors.c - an answer comes with other descriptors than its grant accounts for.
 * The connection to the mirror is played.
 */
#include "../support/unit.h"

#include "../../client/core/mirror.h"
#include "../../client/keeper/rpc.h"
#include "../../client/keeper/session.h"

#include <fcntl.h>
#include <unistd.h>

static int sent[3];
static int connection; /* stands for the control connection, which only `receive` gets */

static int receive(struct ps_control *control, uint64_t until_ns, Perseas__Reply **reply, int *fds,
                   unsigned *count, struct ps_error *error)
{
	Perseas__Grant grant = PERSEAS__GRANT__INIT;
	Perseas__ClaimReply claim = PERSEAS__CLAIM_REPLY__INIT;
	Perseas__Reply told = PERSEAS__REPLY__INIT;
	uint8_t bytes[256];
	size_t length;

	(void)control;
	(void)until_ns;
	(void)error;
	grant.descriptors = 1;
	claim.grant = &grant;
	told.body_case = PERSEAS__REPLY__BODY_CLAIM;
	told.claim = &claim;
	length = perseas__reply__pack(&told, bytes);
	*reply = perseas__reply__unpack(NULL, length, bytes);
	assert_non_null(*reply);
	for (*count = 0; *count < 3; ++*count)
		fds[*count] = sent[*count] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return 0;
}

/* Both numbers are told, and nothing stays open. */
TEST(descriptors_that_are_too_many_are_counted)
{
	const struct ps_env_ops ops = { .receive = receive };
	struct ps_env env = { .ops = &ops };
	struct perseas *p = calloc(1, sizeof(*p));
	struct ps_error error = { 0 };
	Perseas__Reply *reply = NULL;
	struct ps_mirror *m;

	assert_non_null(p);
	p->env = &env;
	m = &p->mirrors[0];
	m->control = (struct ps_control *)(void *)&connection;
	snprintf(m->address.text, sizeof(m->address.text), "mirror:1");
	assert_int_equal(ps_await_answer(p, m, 0, &reply, NULL, &error), PERSEAS_EPROTOCOL);
	assert_string_equal(error.text,
	                    "mirror:1 sent 3 descriptors, and its answer accounts for 1");
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(fcntl(sent[i], F_GETFD), -1);
	free(p);
}
