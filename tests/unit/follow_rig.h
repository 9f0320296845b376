/*
 * follow_rig.h - a standby that follows the store of roster_rig.h. A test has one at a time.
 */
#ifndef PERSEAS_TESTS_FOLLOW_RIG_H
#define PERSEAS_TESTS_FOLLOW_RIG_H

#include "roster_rig.h"

#include "../../client/standby/follow.h"

#define LONG_NS 60000000000ULL /* after which a standby looks at everything again */

static const uint8_t mark[PS_OWNER_MARK] = { 1 };
static struct ps_follow follow;
static struct ps_follow_result now; /* what the last look found */

/* Follows the store by this list. The standby owns `looks`, the env of its looks. */
static inline void follow_list(struct owner *o, const char *list, struct ps_env *looks)
{
	assert_int_equal(ps_follow_open(&follow, STORE, list, NULL, looks, direct_env(o->d), 1000,
	                                &o->error),
	                 0);
}

/* Ends the standby, if the test has begun one. */
static inline void follow_end(void)
{
	struct ps_env *envs[] = { follow.status_peers.env, follow.watch_peers.env };

	if (!follow.store)
		return;
	ps_follow_close(&follow);
	for (int i = 0; i < 2; i++)
		envs[i]->ops->free(envs[i]);
	memset(&follow, 0, sizeof(follow));
}

static inline void peers_add(struct ps_peers *peers, const char *text)
{
	struct ps_error error;

	assert_int_equal(ps_address_parse(text, &peers->addresses[peers->count++], &error), 0);
}

static inline void peers_begin(struct ps_peers *peers, struct direct *d, unsigned given)
{
	peers->env = direct_env(d);
	peers->timeout_ms = 1000;
	for (peers->count = 0; peers->count < given;) {
		char text[24];

		snprintf(text, sizeof(text), "sim://%u", peers->count);
		peers_add(peers, text);
	}
	peers->listed_count = peers->count;
}

/* Begins a standby that was given the first `given` mirrors, and learned of `others` later. */
static inline void follow_begin(struct owner *o, unsigned given, unsigned others)
{
	follow.store = STORE;
	follow.list = "sim://0";
	follow.mark = mark;
	peers_begin(&follow.status_peers, o->d, given);
	peers_begin(&follow.watch_peers, o->d, given);
	while (follow.status_peers.count < given + others) {
		peers_add(&follow.status_peers, "sim://4");
		peers_add(&follow.watch_peers, "sim://4");
	}
}

/* Checks that both sets of peers have the same mirrors, the last of which has this address. */
static inline void expect_last(unsigned count, const char *address)
{
	assert_int_equal(follow.status_peers.count, count);
	assert_int_equal(follow.watch_peers.count, count);
	for (unsigned i = 0; i < count; i++)
		assert_string_equal(follow.status_peers.addresses[i].text,
		                    follow.watch_peers.addresses[i].text);
	assert_string_equal(follow.status_peers.addresses[count - 1].text, address);
}

/* Looks at the store. Returns who owns it. */
static inline enum ps_ownership look(void)
{
	ps_follow_look_at_store(&follow, &now);
	return now.ownership;
}

#endif
