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

/* A place for one more mirror, at this address, not in the roster; NULL: there is none. Locked once
 * the store is open. */
struct ps_mirror *ps_mirror_add(struct perseas *p, const struct ps_address *address);

/* Moves to another state; the move must be in the diagram. */
void ps_mirror_move(struct perseas *p, struct ps_mirror *m, enum perseas_mirror_state state,
                    const char *why);

/*
 * Notes whether the mirror stopped on purpose, and what it spilled was loaded again: the same
 * image, under an id of its own. The roster lists its parent, so it counts all the same; its own id
 * is recorded as soon as W can take it.
 */
void ps_mirror_loaded(struct ps_mirror *m, const Perseas__Header *header);

/* The link is of no more use: detaches it. rc is PS_LINK_…. Locked once the store is open. */
void ps_mirror_break(struct perseas *p, struct ps_mirror *m, int rc, const char *why);

/* Posts what the ring holds and the mirror has not been sent. Locked. */
void ps_mirror_pump(struct perseas *p, struct ps_mirror *m);

/* Collects completions of all links, and pumps. Never blocks. Locked. */
void ps_mirrors_poll(struct perseas *p);

/* Asks links on which nothing is under way for a sign of life; polling sees whether it comes.
 * Locked. */
void ps_mirrors_beat(struct perseas *p);

/* Posts a chain that is no transaction to the mirrors with to[i] set, and waits for all of them.
 * Exclusive or before open. A link that fails is broken. Returns how many completed it. */
unsigned ps_mirrors_write(struct perseas *p, const bool *to, const struct ps_chain *chain);
int ps_mirror_write(struct perseas *p, struct ps_mirror *m, const struct ps_chain *chain);

/* Reads from a mirror into memory; the link is broken on failure. Exclusive or before open. */
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

/* Ends the doubt about a commit that W have come to hold. Locked. */
void ps_mirrors_settle_doubt(struct perseas *p);

/* Posts a chain that is no transaction between those that are; m->bulk is 0 again when it is
 * complete, until when its sources must stay. Locked. */
int ps_mirror_bulk(struct perseas *p, struct ps_mirror *m, const struct ps_chain *chain);

/* Decides whether transactions go through the ring: unless every mirror that may still come
 * takes them at once. Locked. */
void ps_mirrors_staging(struct perseas *p);

/* Have so many mirrors promised another owner that W can no longer be reached? */
bool ps_fenced_for_good(const struct perseas *p);

static inline bool ps_fenced(const struct perseas *p)
{
	return p->fenced && ps_fenced_for_good(p);
}

/* PERSEAS_EFENCED, with its message. */
int ps_fail_fenced(const struct perseas *p);

/* Is the handle's state such that transactions may go on? 0, EBLOCKED, EFENCED or ESALVAGE. */
int ps_hardly_ready(struct perseas *p);

static inline int ps_ready(struct perseas *p)
{
	return p->salvage || p->fenced || p->in_doubt ? ps_hardly_ready(p) : 0;
}

/* rpc.c: control messages. */

/* One request to one mirror, and its answer. A status that is not OK is an error. The caller
 * frees *reply. fds of the reply's grant are taken over by *grant_fds (may be NULL: closed). */
int ps_ask(struct perseas *p, struct ps_mirror *m, const Perseas__Request *request,
           uint64_t until_ns, Perseas__Reply **reply, int *fds, struct ps_error *error);

/* What a reply gives access to, or NULL. */
const Perseas__Grant *ps_grant_of(const Perseas__Reply *reply);

/* The same request to every mirror with ask[i] set, at the same time. replies[i] is NULL where
 * it failed, with errors[i] set, and where nobody was asked. */
struct ps_round {
	bool ask[PS_MIRRORS_MAX]; /* this, requests and errors are zeroed before */
	const Perseas__Request *requests[PS_MIRRORS_MAX];
	Perseas__Reply *replies[PS_MIRRORS_MAX];
	struct ps_error errors[PS_MIRRORS_MAX];
	int fds[PS_MIRRORS_MAX][PS_REGIONS_MAX];
};

void ps_round_run(struct perseas *p, struct ps_round *round, uint64_t until_ns);
void ps_round_free(struct ps_round *round); /* replies, and descriptors not taken */

/* One request, whose answer holds nothing that is wanted, to the mirrors of a set at the same time.
 * Those that granted it. */
uint32_t ps_ask_set(struct perseas *p, uint32_t set, const Perseas__Request *request);

/* Those of a set that say, asked just now, that they are still claimed by this owner. */
uint32_t ps_confirmed(struct perseas *p, uint32_t set);

/* By when an answer that is asked for now must be there. */
static inline uint64_t ps_answer_by(struct perseas *p)
{
	return ps_now(p) + ps_ms(p->options.connect_timeout_ms);
}

/* The claim's request body; `owner` and `store` are the handle's. */
void ps_claim_request(struct perseas *p, struct ps_mirror *m, bool quiesced,
                      Perseas__ClaimRequest *claim, Perseas__Request *request);

/* Are keys to the mirror's memory asked for, so that its data path can go over RDMA? */
bool ps_wants_rdma(const struct perseas *p, const struct ps_mirror *m);

/* Takes up the data path that a reply's grant describes, over the best fabric that works. */
int ps_mirror_attach(struct perseas *p, struct ps_mirror *m, const Perseas__Grant *grant,
                     const int *fds, struct ps_error *error);
int ps_mirror_regrant(struct perseas *p, struct ps_mirror *m, const Perseas__Grant *grant,
                      const int *fds, struct ps_error *error);

/* Ends the control connection; with it the link, if they are there. */
void ps_mirror_hang_up(struct perseas *p, struct ps_mirror *m);
void ps_mirror_disconnect(struct perseas *p, struct ps_mirror *m);

/* keeper.c: takes broken sessions up again. */
void ps_keeper(void *arg);

#endif
