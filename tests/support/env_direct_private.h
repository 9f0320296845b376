/*
 * env_direct_private.h - what env_direct.c and env_direct_link.c share.
 */
#ifndef PERSEAS_TESTS_ENV_DIRECT_PRIVATE_H
#define PERSEAS_TESTS_ENV_DIRECT_PRIVATE_H

#include "../../client/host/asked.h"
#include "env_direct.h"

#include <stdlib.h>

struct direct_env {
	struct ps_env env;
	struct direct *d;
	void (*fn[PS_SLEEPERS])(void *arg); /* that were spawned */
	void *arg;
	bool asleep[PS_SLEEPERS + 1];
};

struct answer;
struct held;

/* Both ends of a control connection. */
struct ps_control {
	struct session session; /* the mirror's end; first, so that ops find the rest */
	struct ps_control *next;
	struct direct *d;
	unsigned mirror;
	unsigned id;
	char name[32];
	bool broken;
	bool owing;                     /* it was asked something while its mirror hung */
	struct answer *answers, **last; /* given, and not yet received */
	struct ps_asked asked;
};

static inline struct direct_mirror *mirror_of(const struct ps_control *control)
{
	return &control->d->mirrors[control->mirror];
}

struct ps_link {
	struct ps_link *next;
	struct direct *d;
	struct ps_control *control; /* NULL: the connection is gone */
	unsigned mirror;
	int dead; /* PS_LINK_…, not OK once the data path is over */
	unsigned done;
	struct held *held, **last; /* chains that are held back, the oldest first */
};

static inline struct direct_env *of(struct ps_env *env)
{
	return (struct direct_env *)env;
}

static inline unsigned direct_at(const struct direct *d, const struct ps_address *address)
{
	const int port = atoi(address->port);

	return port < PS_MIRRORS_MAX ? d->leads[port] : PS_MIRRORS_MAX;
}

/* env_direct.c: a control connection is over, for both ends. */
void direct_break(struct ps_control *control);

/* env_direct_link.c: the fabric of the moment. */
const struct ps_fabric *direct_fabric(struct ps_env *env, const struct ps_address *address,
                                      const Perseas__Grant *grant, unsigned tried);

#endif
