/*
 * access_rig.h - a mirror under rules, for the tests of rights and of quotas.
 */
#ifndef PERSEAS_TESTS_ACCESS_RIG_H
#define PERSEAS_TESTS_ACCESS_RIG_H

#include "bank_rig.h"

/* The rules in force, until the test is over. */
static struct access *rules;

static bool find_nobody(const char *name, uint32_t *number)
{
	(void)name;
	(void)number;
	return false;
}

static void set_rules(struct mirror *mirror, const char *text)
{
	static const struct access_names names = { find_nobody, find_nobody };
	struct access_fault fault;
	struct access *old = rules;

	rules = access_parse(text, strlen(text), &names, &fault);
	assert_non_null(rules);
	stores_set_access(mirror->stores, rules);
	access_free(old);
}

static int teardown_rules(void **state)
{
	int ret = teardown(state);

	access_free(rules);
	rules = NULL;
	return ret;
}

static struct identity identity(const char *name)
{
	struct identity who = { .name = "" };

	snprintf(who.name, sizeof(who.name), "%s", name);
	return who;
}

static void peer_named(struct peer *peer, const char *name)
{
	peer_init(peer);
	peer->session.identity = identity(name);
}

#endif
