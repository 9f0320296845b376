/*
 * broken_copy.c - see broken_copy.h. mirror.c calls it when a copy breaks, resync.c when one
 * begins, and session.c to learn when to try again.
 */
#include "broken_copy.h"

#include "mirror.h"
#include "quorum.h"
#include "../../proto/base/text.h"

#define FIRST_PAUSE ps_ms(1000)
#define LONGEST_PAUSE ps_ms(300000)
/* The pause while commits cannot succeed without the mirror: then no transactions compete with the
 * copy for its link. */
#define NEEDED_PAUSE ps_ms(5000)

enum { DOUBLINGS = 16 }; /* enough to reach the longest pause */

void ps_broken_copy_note_begin(struct perseas *p, struct ps_mirror *m)
{
	ps_assert_locked(p);
	m->broken_copies.copy_begun_at = ps_now(p);
	m->broken_copies.ring_position_at_begin = p->commit.ring.append_position;
	m->broken_copies.commit_pauses = (struct ps_commit_pauses){
		.acked_at_pause = m->acked_seq
	};
}

/* Returns the bytes per second that transactions put into the ring since the copy began. */
static uint64_t rate_of_transactions(const struct perseas *p, const struct ps_mirror *m,
                                     uint64_t now)
{
	const uint64_t bytes = p->commit.ring.append_position -
	                       m->broken_copies.ring_position_at_begin;
	const uint64_t took_ms = (now - m->broken_copies.copy_begun_at) / ps_ms(1) + 1;

	return bytes / took_ms * 1000;
}

static void count_broken_copy(struct perseas *p, struct ps_mirror *m)
{
	struct ps_broken_copies *broken = &m->broken_copies;
	const uint64_t now = ps_now(p);
	const unsigned doublings = broken->broken_copy_count < DOUBLINGS ? broken->broken_copy_count
	                                                                 : DOUBLINGS;

	broken->transaction_bytes_per_s = rate_of_transactions(p, m, now);
	broken->last_broke_at = now;
	broken->sent_bytes += p->upkeep.resync.sent_bytes;
	broken->broken_copy_count++;
	broken->pause_before_next_ns = FIRST_PAUSE << doublings;
	if (broken->pause_before_next_ns > LONGEST_PAUSE)
		broken->pause_before_next_ns = LONGEST_PAUSE;
	m->retry.delay_ns = broken->pause_before_next_ns;
}

const char *ps_broken_copy_note_and_explain(struct perseas *p, struct ps_mirror *m, const char *why,
                                            char *text, size_t size)
{
	const struct ps_resync *r = &p->upkeep.resync;

	ps_assert_locked(p);
	count_broken_copy(p, m);
	ps_text_format(text, size,
	               "%.130s; copy %u in a row that did not end, after %llu of %llu bytes; the "
	               "next begins in %llu s",
	               why, m->broken_copies.broken_copy_count, (unsigned long long)r->sent_bytes,
	               (unsigned long long)r->total_bytes,
	               (unsigned long long)(m->broken_copies.pause_before_next_ns / ps_ms(1000)));
	return text;
}

const char *ps_broken_copy_blame_link(struct perseas *p, const struct ps_mirror *m, const char *why,
                                      char *text, size_t size)
{
	const uint64_t rate = rate_of_transactions(p, m, ps_now(p));

	if (!rate)
		return why;
	ps_text_format(text, size,
	               "%.60s; its link must carry more than %llu bytes/s of transactions", why,
	               (unsigned long long)rate);
	return text;
}

uint64_t ps_broken_copy_retry_at(struct perseas *p, const struct ps_mirror *m)
{
	const uint64_t soon = m->broken_copies.last_broke_at + NEEDED_PAUSE;
	bool needed;

	pthread_mutex_lock(&p->lock);
	needed = !ps_quorum_is_w(p, ps_mirrors_with_whole_image(p));
	pthread_mutex_unlock(&p->lock);
	if (!needed || ps_broken_copy_pause_end(m) <= soon)
		return ps_broken_copy_reconnect_at(m);
	return soon > m->retry.next_try_at ? soon : m->retry.next_try_at;
}
