/*
 * doubt.c - puts a commit in doubt, for which too few mirrors answered in time. commit_wait.c and
 * nowait.c detect that; no transaction begins until W mirrors hold the commit (durable.c).
 */
#include "nowait.h"

#include "serialization.h"
#include "event.h"
#include "gather.h"

void ps_put_commits_in_doubt(struct perseas *p, uint64_t seq, uint64_t now)
{
	ps_assert_locked(p);
	/* Posts the group first: otherwise its commits would wait until the doubt is over, possibly
	 * forever. */
	ps_gather_send_if_any(p);
	if (!p->commit.in_doubt_seq) {
		p->commit.first_in_doubt_at = now;
		ps_event(p, PERSEAS_EVENT_IN_DOUBT, seq, NULL,
		         "transaction %llu is in doubt: fewer than %u mirrors hold it",
		         (unsigned long long)seq, p->acks);
	}
	if (seq > p->commit.in_doubt_seq)
		p->commit.in_doubt_seq = seq;
	ps_wake_blocked(p);
}
