/*
 * mirror.h - the owner's side of one mirror: its session, what was posted to it, what it has.
 *
 *            open: adopted            link breaks                 claim: promised higher
 *   (open) ----------------> LIVE ----------------> DOWN ------------------------> FENCED
 *                            ^  ^                   |  |
 *                            |  |   all posted      |  +-- no such image ----> LOST
 *                            |  +---- REPLAYING <---+  +-- more than the ring
 *                            |                              holds was missed -> STALE
 *                            |   all copied
 *                            +----------------- RESYNCING <-- DOWN, STALE or LOST
 *
 * Only LIVE, REPLAYING and RESYNCING mirrors are active: transactions are posted to their links.
 * One that is RESYNCING gets them too, in order, with chunks of the image between them; it holds
 * nothing until it is whole. What leaves the roster is REMOVED, from any state.
 */
#ifndef PERSEAS_CLIENT_MIRROR_H
#define PERSEAS_CLIENT_MIRROR_H

#include "handle.h"

/* A place for one more mirror, at this address, not in the roster; NULL: there is none. */
struct ps_mirror *ps_mirror_add(struct perseas *p, const struct ps_address *address);

/* Has it an image of the handle's store, by what it told last, that can be used? So can one from
 * before the store was raised, which is copied over, unless another owner has it. */
static inline bool ps_has_store(const struct perseas *p, const struct ps_mirror *m)
{
	const Perseas__Header *header = m->found.header;

	return !m->found.code && header &&
	       (ps_store_is(header, p->store_id, p->roster) ||
	        (!m->found.live && ps_store_precedes(header, p->store_id)));
}

/* Moves to another state; the move must be in the diagram. */
void ps_mirror_move(struct perseas *p, struct ps_mirror *m, enum perseas_mirror_state state,
                    const char *why);

/*
 * Notes whether the mirror stopped on purpose, and what it spilled was loaded again: the same
 * image, under an id of its own. The roster lists its parent, so it counts all the same; its own id
 * is recorded as soon as W can take it.
 */
void ps_mirror_loaded(struct ps_mirror *m, const Perseas__Header *header);

/*
 * Ends the data path, if there is one: what was under way on it is unknown. The one place that does
 * so. A mirror that is active takes part in commits, so that the lock must be held; it is active no
 * more, and whoever sleeps on the link looks again. What the mirror is then is the caller's to say
 * (ps_mirror_move), before it lets go of the lock.
 */
void ps_link_end(struct perseas *p, struct ps_mirror *m);

/* The link of an active mirror is of no more use: ends it, and the mirror is DOWN, or FENCED. rc is
 * PS_LINK_…; why is told. */
void ps_mirror_break(struct perseas *p, struct ps_mirror *m, int rc, const char *why);

/* The same of one that has said nothing for mirror_timeout_ms. */
void ps_mirror_silent(struct perseas *p, struct ps_mirror *m);

/* The mirror has all up to transaction seq, and its slot that counts is the one of this index: the
 * next one goes to the other. Nothing is under way to it. */
void ps_mirror_stands(struct ps_mirror *m, unsigned slot, uint64_t seq);

/* The link of an active mirror ended by itself, with this code, which is returned. */
int ps_mirror_lost_link(struct perseas *p, struct ps_mirror *m, int rc);

/* Posts a chain to an active mirror. A link that does not take it is broken: the code says so. */
static inline int ps_mirror_post(struct perseas *p, struct ps_mirror *m,
                                 const struct ps_chain *chain)
{
	int rc = m->fabric->post(m->link, chain);

	if (rc)
		return ps_mirror_lost_link(p, m, rc);
	if (chain->slot.length)
		m->slot = !m->slot;
	m->outstanding++;
	return 0;
}

/* This owner is about to write a slot of its epoch to the mirror's image, or wrote one. */
static inline void ps_mirror_wrote(struct ps_mirror *m, uint64_t epoch)
{
	if (m->own.wrote[1] == epoch)
		return;
	m->own.wrote[0] = m->own.wrote[1];
	m->own.wrote[1] = epoch;
}

/* Did this owner write that epoch to this very image, or may it have? An epoch that only was tried
 * is no owner's own, and two owners can have the same. */
static inline bool ps_mirror_has_written(const struct ps_mirror *m, uint64_t epoch)
{
	return epoch == m->own.wrote[0] || epoch == m->own.wrote[1];
}

/* A mirror that was claimed just now told a slot: where that is this owner's, none that it sent
 * after it can be there any more. */
static inline void ps_mirror_saw(const struct perseas *p, struct ps_mirror *m, uint64_t epoch)
{
	if (ps_mirror_has_written(m, epoch) || epoch == p->opened_as)
		m->own.wrote[0] = m->own.wrote[1] = epoch;
}

/* Is its session one that is not up yet? Its connection is for nothing else. */
static inline bool ps_session_under_way(const struct ps_mirror *m)
{
	return m->session.state == PS_SESSION_ASKING || m->session.state == PS_SESSION_CLAIMING ||
	       m->session.state == PS_SESSION_ATTACHING || m->session.state == PS_SESSION_PREPARING;
}

/* Posts the transactions in the ring that the mirror has not been sent. Caller holds p->lock. */
void ps_mirror_pump(struct perseas *p, struct ps_mirror *m);

/* Pumps all mirrors, except for transactions that wait in the ring to be sent together with later
 * ones (wait_line.h). Caller holds p->lock. */
void ps_mirrors_send(struct perseas *p);

/* Collects completions of all links, and pumps. Never blocks. Locked. */
void ps_mirrors_poll(struct perseas *p);

/* Asks links on which nothing is under way for a sign of life; polling sees whether it comes. */
void ps_mirrors_beat(struct perseas *p);

/* Why a link is of no more use, for people. */
const char *ps_link_trouble(int rc);

/* The trouble of a mirror whose link was PS_LINK_LOST, until something arrives again. */
#define PS_UNARRIVED                                                                               \
	"nothing of what was sent on the data connection arrived; if the mirror answers all the "  \
	"same, packets of full size are lost on the way: compare the MTU of both hosts with that " \
	"of the path (ping -M do -s 1472)"

/* What is written outside of transactions goes in parts of so many bytes: each has its time. */
enum { PS_COPY_PART = 128 << 10 };

/* Posts a chain that is no transaction to the mirrors with to[i] set, and waits for all of them.
 * Exclusive, or to mirrors that are not active. A link that fails is broken. Returns how many
 * completed it. */
unsigned ps_mirrors_write(struct perseas *p, const bool *to, const struct ps_chain *chain);
int ps_mirror_write(struct perseas *p, struct ps_mirror *m, const struct ps_chain *chain);

/* Reads from a mirror into memory; the link is broken on failure. Exclusive, or from a mirror that
 * is not active. */
int ps_mirror_read(struct perseas *p, struct ps_mirror *m, uint32_t region, uint64_t offset,
                   void *bytes, uint64_t length);

/* The last transaction that it is known to hold; none while its image is being copied. */
static inline uint64_t ps_mirror_seq(const struct ps_mirror *m)
{
	return m->state == PERSEAS_MIRROR_RESYNCING ? 0 : m->acked;
}

/* The mirrors that hold transaction seq, by what they have acknowledged; are they W? */
uint32_t ps_mirrors_holding(const struct perseas *p, uint64_t seq);
bool ps_mirrors_hold(const struct perseas *p, uint64_t seq);

/* Those that are connected, and whole. */
uint32_t ps_mirrors_whole(const struct perseas *p);

/* Returns the whole mirrors that were asked after this call of perseas_confirm, and said that this
 * owner's claim stands. */
uint32_t ps_mirrors_confirmed(const struct perseas *p, uint64_t call);

/* Those that are LIVE: connected, and all transactions were sent to them. */
uint32_t ps_mirrors_live(const struct perseas *p);

/* What W hold has changed: ends the doubt about a commit that they hold now, and tells who wants to
 * know. */
void ps_mirrors_settle_doubt(struct perseas *p);

/* Posts a chain that is no transaction between those that are; m->bulk is 0 again when it is
 * complete, until when its sources must stay. */
int ps_mirror_bulk(struct perseas *p, struct ps_mirror *m, const struct ps_chain *chain);

/* Decides whether transactions go through the ring: unless every mirror that may still come
 * takes them at once. */
void ps_mirrors_staging(struct perseas *p);

/* Have so many mirrors promised another owner that W cannot be reached without them? */
bool ps_fenced_for_good(const struct perseas *p);

/* Do the access rules of so many mirrors refuse this owner that W cannot be reached without them?
 * Then one of these; else NULL. It ends when they allow it again. */
const struct ps_mirror *ps_denied(const struct perseas *p);

/* Returns how many mirrors lost their memory, if none of them may be made anew (I9) even once all
 * others are live; else 0. Caller holds p->lock. */
unsigned ps_mirrors_lost(const struct perseas *p);

/* Writes what to do when ps_mirrors_lost is not 0. Returns text. */
const char *ps_lost_text(const struct perseas *p, char *text, size_t size);

/* What is to be done about a commit in doubt, as the end of a sentence. */
const char *ps_doubt_advice(const struct perseas *p, char *text, size_t size);

/* Has another owner the store? Only the keeper finds out: of mirrors that promised one who is gone
 * it may claim more, and go on (renew.h). */
static inline bool ps_fenced(const struct perseas *p)
{
	return p->superseded;
}

/* Says why the handle is fenced: another owner has the store, or this one went back in time. The
 * result is `text` or lasts as long as the handle. */
const char *ps_fenced_text(const struct perseas *p, char *text, size_t size);

/* PERSEAS_EFENCED, with its message. */
int ps_fail_fenced(const struct perseas *p);

/* A failure of sessions may be another owner's doing, which cuts them: EFENCED where the keeper
 * finds that out within a round of answers, else rc as it is. Not with admin. */
int ps_fail_why(struct perseas *p, int rc);

/* Is the handle's state such that transactions may go on? 0, EBLOCKED, EFENCED or ESALVAGE. */
int ps_hardly_ready(struct perseas *p);

static inline int ps_ready(struct perseas *p)
{
	return p->salvage || p->superseded || p->commit.in_doubt ? ps_hardly_ready(p) : 0;
}

#endif
