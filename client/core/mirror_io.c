/*
 * mirror_io.c - chains and reads outside of transactions, which are waited for. Opens, maps and
 * copies call it, exclusively or before the store is open. It must not wait for a mirror that makes
 * no progress, nor give up one that is only slow.
 */
#include "mirror.h"

#include "detour.h"

#include <assert.h>
#include <stdio.h>

/* The chains in flight to one mirror. */
struct in_flight {
	unsigned due;   /* chains that have not completed */
	uint64_t until; /* when the next chain must have completed */
	int rc;         /* PS_LINK_OK, or why the link is given up */
};

/* Returns true if this thread may use the mirror's link without the lock. */
static bool may_use_link(const struct perseas *p, const struct ps_mirror *m)
{
	return !p->is_open || (p->is_admin_taken && (p->is_gate_raised || !m->is_active));
}

/* Returns the time that a mirror has to answer, and, over a slow link, for each part of a longer
 * write or read. */
static uint64_t answer_timeout(const struct perseas *p)
{
	return ps_ms(p->options.connect_timeout_ms);
}

/* Gives up a link that failed outside of transactions. Before the store is open, the mirror has no
 * state to move from. */
static int give_up_link_and_return_rc(struct perseas *p, struct ps_mirror *m, int link_rc)
{
	if (!p->is_open) {
		ps_detour_note_break(p, m, link_rc);
		ps_link_end(p, m);
		snprintf(m->trouble_text, sizeof(m->trouble_text), "%s",
		         ps_link_trouble_text(link_rc));
		return link_rc;
	}
	pthread_mutex_lock(&p->lock);
	ps_mirror_handle_lost_link(p, m, link_rc);
	pthread_mutex_unlock(&p->lock);
	return link_rc;
}

/* --- chains --- */

static int post_chain(struct ps_mirror *m, const struct ps_chain *chain, struct in_flight *s)
{
	s->due++;
	return m->fabric->post(m->link, chain);
}

/* Returns how many writes from `first` on, all of the same group, fit into one part; 0 if the first
 * write alone is larger than a part. */
static unsigned count_writes_in_part(const struct ps_chain *chain, unsigned first)
{
	const unsigned end = first < chain->undo_write_count ? chain->undo_write_count
	                                                     : chain->write_count;
	uint64_t bytes = 0;
	unsigned n = 0;

	while (first + n < end && (bytes += chain->writes[first + n].length) <= PS_COPY_PART)
		n++;
	return n;
}

static int post_large_write(struct ps_mirror *m, const struct ps_write *write, struct in_flight *s)
{
	struct ps_write some = *write;
	struct ps_chain chain = { .writes = &some, .write_count = 1 };
	int rc = 0;

	for (uint32_t done = 0; done < write->length && !rc; done += some.length) {
		const uint32_t rest = write->length - done;

		some.src = (const uint8_t *)write->src + done;
		some.offset = write->offset + done;
		some.length = rest < PS_COPY_PART ? rest : PS_COPY_PART;
		rc = post_chain(m, &chain, s);
	}
	return rc;
}

static bool fits_one_part(const struct ps_chain *chain)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < chain->write_count && bytes <= PS_COPY_PART; i++)
		bytes += chain->writes[i].length;
	return bytes <= PS_COPY_PART;
}

/* Posts a chain in parts, whose completions show that the link makes progress. The parts keep the
 * chain's order (F1): the slot comes last. */
static int post_in_parts(struct ps_mirror *m, const struct ps_chain *chain, struct in_flight *s)
{
	const struct ps_chain slot = { .slot = chain->slot };
	int rc = 0;

	for (unsigned i = 0, n; i < chain->write_count && !rc; i += n) {
		const struct ps_chain part = {
			&chain->writes[i], n = count_writes_in_part(chain, i), 0, { 0 }
		};

		rc = n ? post_chain(m, &part, s) : post_large_write(m, &chain->writes[i], s);
		n += !n;
	}
	return rc || !slot.slot.length ? rc : post_chain(m, &slot, s);
}

static int post_any_chain(struct ps_mirror *m, const struct ps_chain *chain, struct in_flight *s)
{
	int rc;

	if (fits_one_part(chain))
		return post_chain(m, chain, s);
	if (m->fabric->cork)
		m->fabric->cork(m->link, true);
	rc = post_in_parts(m, chain, s);
	if (m->fabric->cork)
		m->fabric->cork(m->link, false);
	return rc;
}

/* Collects completions of one mirror. Sets s->rc if the link broke, or if the next chain did not
 * complete in time. Returns true if completions are still to come. */
static bool collect_or_time_out(struct perseas *p, struct ps_mirror *m, struct in_flight *s)
{
	int done = 0;

	if (s->rc)
		return false;
	while (s->due && (done = m->fabric->poll(m->link)) > 0) {
		assert((unsigned)done <= s->due);
		s->due -= (unsigned)done;
		s->until = ps_now(p) + answer_timeout(p);
	}
	if (s->due && (done < 0 || ps_now(p) >= s->until))
		s->rc = done < 0 ? done : PS_LINK_BROKEN;
	return s->due && !s->rc;
}

/* Waits until each mirror has completed the chains that were posted to it, or its link is given up.
 * Sleeps as PS_UNWOKEN, because a waiting commit may sleep as PS_COMMITTER at the same time, and
 * two threads that sleep as the same would take each other's wakes. */
static void await_completions(struct perseas *p, struct in_flight *in_flight)
{
	for (;;) {
		struct pollfd fds[PS_MIRRORS_MAX];
		uint64_t until = PS_NEVER;
		unsigned count = 0;

		for (unsigned i = 0; i < p->mirror_count; i++) {
			struct ps_mirror *m = &p->mirrors[i];

			if (!collect_or_time_out(p, m, &in_flight[i]))
				continue;
			count += m->fabric->waits(m->link, &fds[count]);
			if (in_flight[i].until < until)
				until = in_flight[i].until;
		}
		if (until == PS_NEVER)
			return;
		p->env->ops->pause(p->env, PS_UNWOKEN, fds, count, until);
	}
}

unsigned ps_mirrors_write(struct perseas *p, const bool *to, const struct ps_chain *chain)
{
	struct in_flight in_flight[PS_MIRRORS_MAX] = { 0 };
	unsigned done = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];
		struct in_flight *s = &in_flight[i];

		assert(!to[i] || may_use_link(p, m));
		s->rc = to[i] && m->link ? post_any_chain(m, chain, s) : PS_LINK_BROKEN;
		s->until = ps_now(p) + answer_timeout(p);
	}
	await_completions(p, in_flight);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		done += !in_flight[i].rc;
		if (in_flight[i].rc && to[i] && m->link)
			give_up_link_and_return_rc(p, m, in_flight[i].rc);
	}
	return done;
}

int ps_mirror_write(struct perseas *p, struct ps_mirror *m, const struct ps_chain *chain)
{
	bool to[PS_MIRRORS_MAX] = { false };

	to[m - p->mirrors] = true;
	return ps_mirrors_write(p, to, chain) ? 0 : PS_LINK_BROKEN;
}

/* --- reads --- */

int ps_mirror_read(struct perseas *p, struct ps_mirror *m, uint32_t region, uint64_t offset,
                   void *bytes, uint64_t length)
{
	int rc;

	assert(may_use_link(p, m));
	rc = m->link ? m->fabric->read(m->link, region, offset, bytes, length, answer_timeout(p))
	             : PS_LINK_BROKEN;
	return rc && m->link ? give_up_link_and_return_rc(p, m, rc) : rc;
}
