/*
 * outside.c - chains and reads that are no transactions: they are waited for. What copies a store
 * calls it, exclusively or before the store is open. It must not wait for a mirror that gives
 * nothing, nor give one up that is only slow.
 */
#include "mirror.h"

#include "detour.h"

#include <assert.h>
#include <stdio.h>

/* May this thread post to the link, and read from it, without the lock? */
static bool has_link(const struct perseas *p, const struct ps_mirror *m)
{
	return !p->open || (p->admin && (p->gate || !m->active));
}

/* Waits until the chain that was posted outside of transactions is complete. A commit that has too
 * few mirrors may sleep meanwhile, as the committer. */
static int complete(struct perseas *p, struct ps_mirror *m, uint64_t until_ns)
{
	for (;;) {
		struct pollfd fd = { -1, 0, 0 };
		int done = m->fabric->poll(m->link);
		bool waits;

		if (done)
			return done < 0 ? done : 0;
		if (ps_now(p) >= until_ns)
			return PS_LINK_BROKEN;
		waits = m->fabric->waits(m->link, &fd);
		p->env->ops->pause(p->env, PS_UNWOKEN, &fd, waits, until_ns);
	}
}

/* A link that broke outside of transactions; before open there is no state to move. */
static int give_up(struct perseas *p, struct ps_mirror *m, int rc)
{
	if (!p->open) {
		ps_detour_broke(p, m, rc);
		ps_link_end(p, m);
		snprintf(m->trouble, sizeof(m->trouble), "%s", ps_link_trouble(rc));
		return rc;
	}
	pthread_mutex_lock(&p->lock);
	ps_mirror_lost_link(p, m, rc);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

/* An answer's time, and what a slow link (1 MiB a second) needs for the bytes. */
static uint64_t until_copied(struct perseas *p, uint64_t bytes)
{
	return ps_now(p) + ps_ms(p->options.connect_timeout_ms + bytes / 1024);
}

unsigned ps_mirrors_write(struct perseas *p, const bool *to, const struct ps_chain *chain)
{
	uint64_t until = until_copied(p, chain->count ? chain->writes[0].length : 0);
	int rc[PS_MIRRORS_MAX];
	unsigned done = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		assert(!to[i] || has_link(p, m));
		rc[i] = to[i] && m->link ? m->fabric->post(m->link, chain) : PS_LINK_BROKEN;
	}
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (!rc[i])
			rc[i] = complete(p, m, until);
		done += !rc[i];
		if (rc[i] && to[i] && m->link)
			give_up(p, m, rc[i]);
	}
	return done;
}

int ps_mirror_write(struct perseas *p, struct ps_mirror *m, const struct ps_chain *chain)
{
	bool to[PS_MIRRORS_MAX] = { false };

	to[m - p->mirrors] = true;
	return ps_mirrors_write(p, to, chain) ? 0 : PS_LINK_BROKEN;
}

int ps_mirror_read(struct perseas *p, struct ps_mirror *m, uint32_t region, uint64_t offset,
                   void *bytes, uint64_t length)
{
	uint64_t until = until_copied(p, length);
	int rc;

	assert(has_link(p, m));
	rc = m->link ? m->fabric->read(m->link, region, offset, bytes, length, until)
	             : PS_LINK_BROKEN;
	return rc && m->link ? give_up(p, m, rc) : rc;
}
