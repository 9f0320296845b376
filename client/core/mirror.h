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
 * Only LIVE, REPLAYING and RESYNCING mirrors are active: transactions are posted to their links. A
 * RESYNCING mirror gets every transaction in order, with chunks of the image in between; until the
 * image is whole it counts as holding no transaction. A mirror that leaves the roster becomes
 * REMOVED, from any state.
 */
#ifndef PERSEAS_CLIENT_MIRROR_H
#define PERSEAS_CLIENT_MIRROR_H

#include "handle.h"

/* Adds a mirror with this address to the handle. It takes the place of the REMOVED mirror of this
 * address, or else of another REMOVED one. No roster lists it yet. Returns NULL if the handle has
 * as many mirrors as it can. */
struct ps_mirror *ps_mirror_add(struct perseas *p, const struct ps_address *address);

/* Returns true if the header that the mirror told last is of a usable image of the handle's store.
 * An image from before the store was raised to level 1 counts, too, unless another owner has it: it
 * will be copied over. */
static inline bool ps_has_store(const struct perseas *p, const struct ps_mirror *m)
{
	const Perseas__Header *header = m->probe.header;

	return !m->probe.code && header &&
	       (ps_image_is_of_store(header, p->store_id, p->roster) ||
	        (!m->probe.has_owner && ps_image_is_of_level_0(header, p->store_id)));
}

/* Moves the mirror to another state. The move must be in the diagram above. `why` is shown to
 * people. */
void ps_mirror_move_to_state(struct perseas *p, struct ps_mirror *m,
                             enum perseas_mirror_state state, const char *why);

/* Returns true if the header is of the image that was live in this epoch, or of a child of it. */
bool ps_mirror_was_live(const struct perseas *p, const struct ps_mirror *m,
                        const Perseas__Header *header);

/* Notes whether the mirror stopped on purpose and came back with its image. The image is the same
 * but has a new id. It counts while the roster still lists the id of its parent; its own id is
 * recorded as soon as W mirrors can take it. */
void ps_mirror_note_loaded(struct ps_mirror *m, const Perseas__Header *header);

/* Ends the data path, if there is one; the outcome of everything in flight on it is unknown. Every
 * link is detached here. If the mirror is active, the caller holds p->lock. Afterwards the mirror
 * is not active, and the threads that sleep on the link are awake. The caller moves it to its next
 * state (ps_mirror_move_to_state) before it releases the lock. */
void ps_link_end(struct perseas *p, struct ps_mirror *m);

/* Ends the link of an active mirror, which becomes DOWN, or FENCED if `rc` is PS_LINK_FENCED. `rc`
 * is a PS_LINK code; `why` is shown to people. */
void ps_mirror_break_link(struct perseas *p, struct ps_mirror *m, int rc, const char *why);

/* Ends the link of an active mirror that sent nothing for mirror_timeout_ms. */
void ps_mirror_break_silent_link(struct perseas *p, struct ps_mirror *m);

/* Records that the mirror has every transaction up to `seq`, and that its valid commit slot is
 * `slot`: the next transaction writes the other one. Nothing may be in flight to the mirror. */
void ps_mirror_note_position(struct ps_mirror *m, unsigned slot, uint64_t seq);
/* Notes that the mirror's copy is lost, if it refused a request with one of the codes that say so.
 * Caller does not hold the lock. */
void ps_mirror_note_lost_copy(struct perseas *p, struct ps_mirror *m, int code);

/* Handles the end of an active mirror's link, with the PS_LINK code that the link gave. Returns
 * that code. */
int ps_mirror_handle_lost_link(struct perseas *p, struct ps_mirror *m, int rc);

/* Ends the link of an active mirror that does not complete in time what was posted to it. If the
 * link has completed nothing at all, it also counts as broken for a detour: a fabric may take
 * longer to notice that its path is out than commits wait for the mirror, and would then never
 * report this. */
void ps_mirror_break_stalled_link(struct perseas *p, struct ps_mirror *m, const char *why);

/* Posts a chain to an active mirror. If the link fails, breaks it and returns its PS_LINK code;
 * otherwise returns 0. */
static inline int ps_mirror_post(struct perseas *p, struct ps_mirror *m,
                                 const struct ps_chain *chain)
{
	int rc = m->fabric->post(m->link, chain);

	if (rc)
		return ps_mirror_handle_lost_link(p, m, rc);
	if (chain->slot.length)
		m->valid_slot = !m->valid_slot;
	m->chains_in_flight++;
	return 0;
}

/* Records that this owner writes, or is about to write, a slot of this epoch to the mirror's
 * image. */
static inline void ps_mirror_note_own_slot(struct ps_mirror *m, uint64_t epoch)
{
	if (m->own_image.written_epochs[1] == epoch)
		return;
	m->own_image.written_epochs[0] = m->own_image.written_epochs[1];
	m->own_image.written_epochs[1] = epoch;
}

/* Returns true if this owner wrote, or may have written, a slot of this epoch to this very image.
 * To have tried an epoch is not enough: two owners can try the same one. */
static inline bool ps_mirror_may_have_own_slot(const struct ps_mirror *m, uint64_t epoch)
{
	return epoch == m->own_image.written_epochs[0] || epoch == m->own_image.written_epochs[1];
}

/* Called with the epoch of the slot that a mirror told right after its claim was granted. If this
 * owner wrote that slot, none of its later slots can arrive any more, so they are forgotten. */
static inline void ps_mirror_forget_unarrived_slots(const struct perseas *p, struct ps_mirror *m,
                                                    uint64_t epoch)
{
	if (ps_mirror_may_have_own_slot(m, epoch) || epoch == p->opened_epoch)
		m->own_image.written_epochs[0] = m->own_image.written_epochs[1] = epoch;
}

/* Returns true while the mirror's session is being set up. Its connection must be used for nothing
 * else meanwhile. */
static inline bool ps_session_under_way(const struct ps_mirror *m)
{
	return m->session.state != PS_SESSION_NONE && m->session.state != PS_SESSION_UP;
}

/* Posts to the mirror the transactions in the ring that it was not sent yet. Caller holds
 * p->lock. */
void ps_mirror_post_from_ring(struct perseas *p, struct ps_mirror *m);

/* Does ps_mirror_post_from_ring for all mirrors, except where transactions stay in the ring to be
 * sent together with later ones (wait_line.h). Caller holds p->lock. */
void ps_mirrors_post_from_ring(struct perseas *p);

/* Collects the completions of all links, and posts from the ring. Never blocks. Caller holds
 * p->lock. */
void ps_mirrors_poll(struct perseas *p);

/* Asks for a sign of life on links with nothing in flight. A later poll sees whether it comes.
 * Caller holds p->lock. */
void ps_mirrors_send_heartbeats(struct perseas *p);

/* Returns a sentence for people that says why a link ended with this PS_LINK code. */
const char *ps_link_trouble_text(int rc);

/* What is wrong with a mirror whose link was PS_LINK_LOST, until something arrives again. */
#define PS_NOTHING_ARRIVED                                                                       \
	"nothing that was sent on the data connection arrived; if the mirror still answers, "    \
	"full-size packets are lost on the way: compare the MTU of both hosts with that of the " \
	"path (ping -M do -s 1472)"

/* Writes outside of transactions are posted in parts of this many bytes. The mirror has its full
 * time for each part. */
enum { PS_COPY_PART = 128 << 10 };

/* ps_mirrors_write posts a chain that is not a transaction to the mirrors with to[i] set, and waits
 * for all of them. The caller is exclusive, or the mirrors are not active. A link that fails is
 * broken. Returns how many mirrors completed the chain. ps_mirror_write does the same for one
 * mirror. Returns 0, or a PS_LINK code. */
unsigned ps_mirrors_write(struct perseas *p, const bool *to, const struct ps_chain *chain);
int ps_mirror_write(struct perseas *p, struct ps_mirror *m, const struct ps_chain *chain);

/* Reads from a mirror into memory. The caller is exclusive, or the mirror is not active. Returns 0,
 * or a PS_LINK code, and then the link is broken. */
int ps_mirror_read(struct perseas *p, struct ps_mirror *m, uint32_t region, uint64_t offset,
                   void *bytes, uint64_t length);

/* Returns true if the mirror is known to hold nothing: its image is lost, or being copied. */
static inline bool ps_mirror_holds_nothing(const struct ps_mirror *m)
{
	return m->is_copy_lost || m->state == PERSEAS_MIRROR_RESYNCING;
}

/* Returns the last transaction that the mirror is known to hold, or 0. */
static inline uint64_t ps_mirror_held_seq(const struct ps_mirror *m)
{
	return ps_mirror_holds_nothing(m) ? 0 : m->acked_seq;
}

/* ps_mirrors_holding returns the set of mirrors that have acknowledged transaction `seq`;
 * ps_w_mirrors_hold returns true if they are W. */
uint32_t ps_mirrors_holding(const struct perseas *p, uint64_t seq);
bool ps_w_mirrors_hold(const struct perseas *p, uint64_t seq);

/* Returns the set of active mirrors whose image is whole. */
uint32_t ps_mirrors_with_whole_image(const struct perseas *p);

/* Returns the set of whole mirrors that were asked after this call of perseas_confirm, and answered
 * that this owner's claim stands. */
uint32_t ps_mirrors_that_confirmed_call(const struct perseas *p, uint64_t call);

/* Returns the set of LIVE mirrors: all transactions were sent to them. */
uint32_t ps_mirrors_live(const struct perseas *p);

/* Called when the set of transactions that W mirrors hold may have grown: ends the doubt about a
 * commit that they hold now, and notifies the application. Caller holds p->lock. */
void ps_end_doubt_if_durable(struct perseas *p);

/* Posts a chain that is not a transaction, between transactions. The sources of the chain must stay
 * unchanged until m->completions_until_chunk is 0 again. Returns 0, or a PS_LINK code. Caller holds
 * p->lock. */
int ps_mirror_post_bulk(struct perseas *p, struct ps_mirror *m, const struct ps_chain *chain);

/* Decides whether transactions go through the ring. They need not if each mirror that may still get
 * them has a fabric that copies at once. Caller holds p->lock. */
void ps_mirrors_decide_staging(struct perseas *p);

/* Returns true if so many mirrors promised another owner that W cannot be reached without them. */
bool ps_fences_prevent_w(const struct perseas *p);

/* If the access rules of so many mirrors refuse this owner that W cannot be reached without them,
 * returns one of these mirrors, otherwise NULL. The condition ends when they allow it again. */
const struct ps_mirror *ps_mirror_whose_refusal_prevents_w(const struct perseas *p);

/* Returns how many mirrors lost their memory, if none of them may be made anew (I9) even once all
 * others are live; else 0. Caller holds p->lock. */
unsigned ps_count_lost_if_none_can_be_remade(const struct perseas *p);

/* Writes what to do when ps_count_lost_if_none_can_be_remade is not 0. Returns text. */
const char *ps_lost_mirrors_advice(const struct perseas *p, char *text, size_t size);

/* Returns advice about a commit in doubt, as the end of a sentence. The result is `text` or a
 * literal. */
const char *ps_doubt_advice(const struct perseas *p, char *text, size_t size);

/* Returns true if another owner has the store for good. Only the keeper finds that out: if a mirror
 * promised an owner that is gone, this owner may claim a higher epoch and go on (renew.h). */
static inline bool ps_is_fenced(const struct perseas *p)
{
	return p->is_superseded;
}

/* Says why the handle is fenced: another owner has the store, or this process's state went back in
 * time. The result is `text` or lasts as long as the handle. */
const char *ps_fenced_text(const struct perseas *p, char *text, size_t size);

/* Fails with EFENCED, and says why. Returns the code. */
int ps_fail_fenced(const struct perseas *p);

/* Decides what a failed session means, since another owner that takes over cuts the sessions. Waits
 * up to connect_timeout_ms for the keeper to find out. Returns EFENCED if it finds such an owner,
 * else `rc`. The caller does not have admin. */
int ps_judge_failed_session(struct perseas *p, int rc);

/* ps_check_may_transact returns 0 if transactions may go on, or ESALVAGE, EFENCED, EBLOCKED;
 * ps_check_may_transact_slowly is its slow path. */
int ps_check_may_transact_slowly(struct perseas *p);

static inline int ps_check_may_transact(struct perseas *p)
{
	return p->is_salvage || p->is_superseded || p->commit.in_doubt_seq
	               ? ps_check_may_transact_slowly(p)
	               : 0;
}

#endif
