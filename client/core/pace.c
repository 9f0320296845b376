/*
 * pace.c - waiting for mirrors that cannot keep up, and dropping them (pace.h).
 */
#include "pace.h"

#include "commit.h"
#include "event.h"
#include "mirror.h"
#include "quorum.h"

/* A mirror that commits did not wait for in this time keeps up again. */
#define EPISODE ps_ms(10000)

#define PACED "cannot keep up: commits wait for it"

/* Do commits wait for it, or did they a moment ago? */
static bool is_paced(struct perseas *p, const struct ps_mirror *m)
{
	return m->paced_at && ps_now(p) - m->paced_at < EPISODE;
}

const char *ps_trouble(struct perseas *p, const struct ps_mirror *m)
{
	ps_assert_locked(p);
	return m->state == PERSEAS_MIRROR_LIVE && is_paced(p, m) ? "it " PACED : m->trouble;
}

/* Says once in a while which mirrors commits wait for. */
static void note(struct perseas *p, uint32_t slow, uint64_t now)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (!(slow >> i & 1))
			continue;
		if (!is_paced(p, m))
			ps_event(p, PERSEAS_EVENT_MIRROR_LAGS, p->commit.seq, m, "mirror %s " PACED,
			         m->address.text);
		m->paced_at = now;
	}
}

static void drop(struct perseas *p, uint32_t slow)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		if (!(slow >> i & 1))
			continue;
		ps_mirror_break(p, &p->mirrors[i], PS_LINK_BROKEN,
		                "dropped: it lags by half of the ring");
		p->commit.stat.dropped++;
	}
}

int ps_pace(struct perseas *p, uint32_t slow, uint64_t *since)
{
	const uint32_t whole = ps_mirrors_whole(p);
	const bool needed = slow & whole && !ps_quorum_acks(p, whole & ~slow);
	const uint64_t now = ps_now(p);
	const uint64_t patience = ps_ms(needed ? p->options.commit_timeout_ms : p->options.pace_ms);
	const bool first = !*since;

	ps_assert_locked(p);
	if (first)
		*since = now;
	if (now < *since + patience) {
		p->commit.stat.paced += first;
		note(p, slow, now);
		ps_commit_sleep(p, *since + patience);
		p->commit.stat.paced_ns += ps_now(p) - now;
		ps_mirrors_poll(p);
		return 1;
	}
	if (needed)
		return ps_fail(p, PERSEAS_EBLOCKED,
		               "the ring is full of transactions that mirrors have not completed");
	drop(p, slow);
	return 0;
}
