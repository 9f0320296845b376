/*
 * pace.c - waiting for mirrors that cannot keep up, and dropping them (pace.h).
 */
#include "pace.h"

#include "commit.h"
#include "event.h"
#include "gather.h"
#include "mirror.h"
#include "nowait.h"
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
			ps_event(p, PERSEAS_EVENT_MIRROR_LAGS, ps_last(p), m, "mirror %s " PACED,
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

int ps_fail_again(const struct perseas *p, const char *when)
{
	return ps_fail(p, PERSEAS_EAGAIN, "the commit would have to wait %s: try again", when);
}

/* Are there not W without these? */
static bool are_needed(const struct perseas *p, uint32_t slow)
{
	const uint32_t whole = ps_mirrors_whole(p);

	return slow & whole && !ps_quorum_acks(p, whole & ~slow);
}

static int fail_full(const struct perseas *p)
{
	return ps_fail(p, PERSEAS_EBLOCKED,
	               "mirrors have not completed enough of what was committed before: the ring "
	               "is full, or flush_within_ms is over");
}

/* What those that are waited for have acknowledged, added up: it changes when any gets on. */
static uint64_t acknowledged(const struct perseas *p, uint32_t slow)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].active && (!slow || slow >> i & 1))
			sum += p->mirrors[i].acked;
	return sum;
}

/* For how long they are waited for, from when they got on last. */
static uint64_t patience(const struct perseas *p, bool needed, unsigned flags)
{
	return ps_ms(needed || flags & PERSEAS_NOWAIT ? p->options.commit_timeout_ms
	                                              : p->options.pace_ms);
}

/* --- commits that are not to wait --- */

/* Those that have not got on for as long as a commit would wait for them. */
static uint32_t find_stuck(struct perseas *p)
{
	const uint64_t now = ps_now(p), most = patience(p, false, PERSEAS_NOWAIT);
	uint32_t stuck = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (m->stuck_at && now - m->stuck_at >= most)
			stuck |= ps_bit(p, m);
	}
	return stuck;
}

static bool drop_stuck(struct perseas *p)
{
	const uint32_t stuck = find_stuck(p);

	if (!stuck || are_needed(p, stuck))
		return false;
	drop(p, stuck);
	return true;
}

void ps_pace_forget(struct perseas *p, struct ps_mirror *m)
{
	/* Whoever was refused room for it may look again. */
	if (m->stuck_at)
		ps_unwaited_tell(p);
	m->stuck_at = 0;
}

static bool is_any_in_the_way(const struct perseas *p)
{
	bool any = false;

	for (unsigned i = 0; i < p->mirror_count; i++)
		any |= p->mirrors[i].stuck_at != 0;
	return any;
}

static void forget_who_got_on(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].acked != p->mirrors[i].stuck_acked)
			ps_pace_forget(p, &p->mirrors[i]);
}

bool ps_pace_look(struct perseas *p)
{
	ps_assert_locked(p);
	if (!is_any_in_the_way(p))
		return false;
	/* This process may have been stopped, and the answers have been there for long. */
	ps_mirrors_poll(p);
	forget_who_got_on(p);
	drop_stuck(p);
	return is_any_in_the_way(p);
}

/* These stand in the way: it is noted since when each has not got on. */
static int refuse(struct perseas *p, uint32_t slow)
{
	const uint64_t now = ps_now(p);

	forget_who_got_on(p);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (!(slow >> i & 1) || m->stuck_at)
			continue;
		m->stuck_at = now;
		m->stuck_acked = m->acked;
	}
	if (drop_stuck(p))
		return 1;
	if (slow && p->commit.unwaited.idle)
		p->env->ops->wake(p->env, PS_COLLECTOR);
	return ps_fail_again(p, "for mirrors, which have not completed enough");
}

/* --- all --- */

int ps_pace(struct perseas *p, uint32_t slow, unsigned flags, struct ps_pacing *pacing)
{
	const bool needed = !slow || are_needed(p, slow), first = !pacing->since;
	/* Commits that nobody waits for fill the ring in no time: then much is under way. */
	const bool counts = p->commit.unwaited.collector;
	const uint64_t now = ps_now(p), acked = acknowledged(p, slow);
	uint64_t until;

	ps_assert_locked(p);
	if (flags & PERSEAS_NOBLOCK)
		return refuse(p, slow);
	if (first)
		pacing->since = now;
	if (first || (counts && acked != pacing->acked)) {
		pacing->acked = acked;
		pacing->moved_at = now;
	}
	until = pacing->moved_at + patience(p, needed, flags);
	if (now < until) {
		p->commit.stat.paced += first;
		note(p, slow, now);
		ps_commit_sleep(p, until);
		p->commit.stat.paced_ns += ps_now(p) - now;
		ps_mirrors_poll(p);
		return 1;
	}
	if (needed)
		return fail_full(p);
	drop(p, slow);
	return 1;
}
