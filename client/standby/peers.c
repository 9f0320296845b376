/*
 * peers.c - sends control requests to several mirrors in parallel (peers.h).
 */
#include "peers.h"

#include "../../proto/control/envelope.h"
#include "../host/asked.h"

#include <assert.h>
#include <poll.h>
#include <string.h>

enum {
	LAGGARD_MIN_MS = 500, /* least time for the other peers once the answers suffice */
	LAGGARD_FACTOR = 10,  /* or this many times as long as the answers took */
	/* Longest sleep: a connection in progress may have no descriptor to poll. */
	TICK_MS = 20,
};

static void connect_listed(struct ps_peers *peers)
{
	peers->listed_count = peers->count;
	for (unsigned i = 0; i < peers->count; i++)
		ps_peers_connect(peers, i);
}

int ps_peers_begin(struct ps_peers *peers, struct ps_env *env, const char *mirrors,
                   uint32_t timeout_ms, struct ps_error *error)
{
	*peers = (struct ps_peers){ .env = env, .timeout_ms = timeout_ms };
	if (ps_env_resolve_list(env, mirrors, timeout_ms, peers->addresses, &peers->count, error))
		return error->code;
	connect_listed(peers);
	return 0;
}

int ps_peers_begin_known(struct ps_peers *peers, struct ps_env *env, const char *mirrors,
                         uint32_t timeout_ms, struct ps_list_lookup **lookup,
                         struct ps_error *error)
{
	*peers = (struct ps_peers){ .env = env, .timeout_ms = timeout_ms };
	if (ps_env_resolve_list_quickly(env, mirrors, timeout_ms, peers->addresses, &peers->count,
	                                lookup, error))
		return error->code;
	connect_listed(peers);
	return 0;
}

void ps_peers_connect(struct ps_peers *peers, unsigned i)
{
	assert(i < peers->count);
	if (peers->controls[i])
		return;
	peers->errors[i].code = 0;
	peers->controls[i] = peers->env->ops->connect(peers->env, &peers->addresses[i],
	                                              &peers->errors[i]);
}

static void forget_replies(struct ps_peers *peers)
{
	for (unsigned i = 0; i < peers->count; i++) {
		perseas__reply__free_unpacked(peers->replies[i], NULL);
		peers->replies[i] = NULL;
		/* A refusal concerns one request; a broken connection stays broken. */
		if (peers->controls[i])
			peers->errors[i].code = 0;
	}
}

static void peers_disconnect(struct ps_peers *peers, unsigned i)
{
	peers->env->ops->disconnect(peers->controls[i]);
	peers->controls[i] = NULL;
}

/* Receives one reply. Returns NULL with *error if the peer did not answer, or refused. */
static Perseas__Reply *peers_receive_until(struct ps_peers *peers, unsigned i, uint64_t until_ns,
                                           struct ps_error *error)
{
	Perseas__Reply *reply = NULL;

	if (peers->env->ops->receive(peers->controls[i], until_ns, &reply, NULL, NULL, error)) {
		peers_disconnect(peers, i);
		return NULL;
	}
	ps_copy_daemon_id(peers->daemons[i], reply);
	if (!ps_asked_refusal(reply, peers->addresses[i].text, error))
		return reply;
	perseas__reply__free_unpacked(reply, NULL);
	return NULL;
}

/* Takes the answers that have arrived, and removes their peers from *awaited. Returns how many are
 * left, with what to poll for. */
static unsigned take_answers(struct ps_peers *peers, uint32_t *awaited, uint64_t until_ns,
                             struct pollfd fds[PS_MIRRORS_MAX], unsigned *count)
{
	unsigned rest = 0;

	*count = 0;
	for (unsigned i = 0; i < peers->count; i++) {
		if (!(*awaited >> i & 1))
			continue;
		if (peers->env->ops->answered(peers->controls[i])) {
			*awaited &= ~((uint32_t)1 << i);
			peers->replies[i] = peers_receive_until(peers, i, until_ns,
			                                        &peers->errors[i]);
			continue;
		}
		rest++;
		*count += peers->env->ops->fill_control_pollfd(peers->controls[i], &fds[*count]);
	}
	return rest;
}

/* Waits until all awaited peers answered, or until the answers suffice and the other peers had
 * their time. Returns the peers that are left. */
static uint32_t await_enough_answers(struct ps_peers *peers, uint32_t awaited, uint64_t *until_ns)
{
	const struct ps_env_ops *ops = peers->env->ops;
	const uint64_t began_ns = ops->now(peers->env);
	struct pollfd fds[PS_MIRRORS_MAX];
	uint64_t now_ns, late_ns, tick_ns;
	unsigned count;
	bool hurries = false;

	while (take_answers(peers, &awaited, *until_ns, fds, &count)) {
		now_ns = ops->now(peers->env);
		if (!hurries && peers->enough(peers->enough_arg, peers)) {
			hurries = true;
			late_ns = LAGGARD_FACTOR * (now_ns - began_ns);
			late_ns = now_ns + (late_ns > ps_ms(LAGGARD_MIN_MS)
			                            ? late_ns
			                            : ps_ms(LAGGARD_MIN_MS));
			*until_ns = late_ns < *until_ns ? late_ns : *until_ns;
		}
		if (now_ns >= *until_ns)
			break;
		tick_ns = now_ns + ps_ms(TICK_MS);
		ops->pause(peers->env, PS_UNWOKEN, fds, count,
		           tick_ns < *until_ns ? tick_ns : *until_ns);
	}
	return awaited;
}

void ps_peers_ask(struct ps_peers *peers, const Perseas__Request *const requests[PS_MIRRORS_MAX])
{
	uint32_t awaited = 0;
	uint64_t until_ns;

	forget_replies(peers);
	until_ns = peers->env->ops->now(peers->env) + ps_ms(peers->timeout_ms);
	for (unsigned i = 0; i < peers->count; i++) {
		if (!requests[i] || !peers->controls[i])
			continue;
		if (peers->env->ops->send(peers->controls[i], requests[i], &peers->errors[i]))
			peers_disconnect(peers, i);
		else
			awaited |= (uint32_t)1 << i;
	}
	if (peers->enough)
		awaited = await_enough_answers(peers, awaited, &until_ns);
	for (unsigned i = 0; i < peers->count; i++)
		if (awaited >> i & 1)
			peers->replies[i] = peers_receive_until(peers, i, until_ns,
			                                        &peers->errors[i]);
}

bool ps_peers_send(struct ps_peers *peers, unsigned i, const Perseas__Request *request)
{
	assert(i < peers->count);
	if (peers->controls[i] &&
	    peers->env->ops->send(peers->controls[i], request, &peers->errors[i]))
		peers_disconnect(peers, i);
	return peers->controls[i] != NULL;
}

Perseas__Reply *ps_peers_receive(struct ps_peers *peers, unsigned i)
{
	uint64_t until_ns = peers->env->ops->now(peers->env) + ps_ms(peers->timeout_ms);

	assert(i < peers->count);
	if (!peers->controls[i])
		return NULL;
	return peers_receive_until(peers, i, until_ns, &peers->errors[i]);
}

void ps_peers_ask_all(struct ps_peers *peers, const Perseas__Request *request)
{
	const Perseas__Request *requests[PS_MIRRORS_MAX];

	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
		requests[i] = request;
	ps_peers_ask(peers, requests);
}

void ps_peers_remove(struct ps_peers *peers, unsigned i)
{
	const unsigned behind = peers->count - i - 1;

	assert(i >= peers->listed_count && i < peers->count && !peers->replies[i]);
	peers_disconnect(peers, i);
	memmove(&peers->addresses[i], &peers->addresses[i + 1],
	        behind * sizeof(peers->addresses[0]));
	memmove(&peers->controls[i], &peers->controls[i + 1], behind * sizeof(peers->controls[0]));
	memmove(&peers->daemons[i], &peers->daemons[i + 1], behind * sizeof(peers->daemons[0]));
	memmove(&peers->replies[i], &peers->replies[i + 1], behind * sizeof(peers->replies[0]));
	memmove(&peers->errors[i], &peers->errors[i + 1], behind * sizeof(peers->errors[0]));
	peers->count--;
	peers->controls[peers->count] = NULL;
	memset(peers->daemons[peers->count], 0, sizeof(peers->daemons[0]));
	peers->replies[peers->count] = NULL;
	peers->errors[peers->count].code = 0;
}

void ps_peers_end(struct ps_peers *peers)
{
	forget_replies(peers);
	for (unsigned i = 0; i < peers->count; i++)
		peers_disconnect(peers, i);
}

const uint8_t *ps_peers_daemon_id(const struct ps_peers *peers, unsigned i)
{
	assert(i < peers->count);
	return ps_known_daemon_id(peers->daemons[i]);
}

bool ps_peers_answered(const struct ps_peers *peers, unsigned i)
{
	assert(i < peers->count);
	return peers->controls[i] != NULL;
}
