/*
 * perseas_nowait.h - commits that do not wait for mirrors, how to learn when W of them hold what
 * was committed so (RVM, section 5.2: no_flush; Vista, figure 6), and whether this process still
 * owns the store. perseas.h includes it; what that says of return values and sentences holds here,
 * too.
 *
 * With PERSEAS_NOWAIT a commit returns when the transaction is on its way to the mirrors, or is
 * held back for a while, where the options ask for that.
 * Transactions reach every mirror in the order of their commits, with and without this flag, so
 * what survives a crash is always a prefix of them: if this process dies before W mirrors hold a
 * transaction, it may be lost, and with it all after it.
 *
 * If W mirrors come to hold no more of these transactions for commit_timeout_ms, those that are
 * left are in doubt, as after EINDOUBT, although no thread waits: PERSEAS_EVENT_IN_DOUBT says so,
 * and perseas_begin returns EBLOCKED until W mirrors hold them.
 *
 * Half of the ring (options.ring_size) may be on its way. Then a commit waits for mirrors to
 * complete some of it, for as long as they get on and then for commit_timeout_ms (EBLOCKED), or it
 * returns EAGAIN where PERSEAS_NOBLOCK is set. The transaction is still open after either. A mirror
 * without which W hold everything, and which makes no room, is dropped when it has not got on for
 * commit_timeout_ms, also while nobody commits. The descriptor of perseas_fd can be read as soon as
 * it gets on, or is away. Only where EAGAIN came since segments or claims are changed does the
 * descriptor not say when to try again.
 *
 * Bounded persistence (options.flush_within_ms; RVM, section 5.2): a commit with PERSEAS_NOWAIT
 * posts its transaction only when W mirrors hold every other one whose commit had returned that
 * long before, or up to an eighth less. So a crash loses what was committed within that time before
 * the last one that was posted, and nothing before it. The commit waits, or returns EAGAIN, as it
 * does for room. While nothing is committed nobody waits: what is on its way gets there, or is in
 * doubt after commit_timeout_ms.
 *
 * Commits that are gathered (options.gather_us; RVM, section 5.2): such a commit may be held back
 * for so long, to be sent as one with those after it: of each byte only the first value before them
 * and the last one after them. Nobody can take it back, but until it is sent no mirror has it, and
 * a crash loses it. All that are sent together have the same token. They are sent at once if
 * anything is waited for (perseas_wait, perseas_flush, perseas_close), also by one that only read
 * (perseas_threads.h); before a commit that waits, and before segments are mapped, published or
 * unmapped; when they would take more than options.gather_bytes of the ring, or change more than
 * 1024 pieces of 64 bytes; and when another commit is in doubt. Doubt and flush_within_ms count
 * from the commit: it is held back for half of commit_timeout_ms and of flush_within_ms at most. A
 * transaction that is larger alone is sent alone, and so is each while there is no memory to hold
 * it back with.
 *
 * Threads: any thread may call these functions, but on_event must not (perseas.h). Only
 * perseas_durable and the descriptor of perseas_fd are for one thread at a time.
 */
#ifndef PERSEAS_NOWAIT_H
#define PERSEAS_NOWAIT_H

#include "perseas.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bits of the flags of perseas_commit. */
enum perseas_commit_flag {
	PERSEAS_NOWAIT = 1, /* return when the transaction is on its way */
	PERSEAS_NOBLOCK = 2 /* with PERSEAS_NOWAIT: EAGAIN instead of waiting for room */
};

/*
 * Names a transaction, or all that are sent as one. Those of one epoch are numbered in the order of
 * their commits, and an owner that takes the store over begins another epoch. seq alone names
 * nothing: what the next owner commits may get the same.
 */
struct perseas_token {
	uint64_t epoch, seq;
};

/*
 * As perseas_commit, and fills in the transaction's token once it is sent, or is held back to be
 * sent with others, that is, for 0 and EINDOUBT; otherwise *token is as it was. A transaction
 * without ranges gets the token of the last one that was committed before it: what it has read is
 * held by W mirrors when that one is.
 *
 * Errors: those of perseas_commit; EAGAIN (PERSEAS_NOBLOCK: it would have to wait for mirrors, or
 * segments are being mapped or published; the transaction is still open), ESYSTEM (a thread of the
 * library did not start; the transaction is still open).
 */
int perseas_commit_token(perseas_tx_t *tx, unsigned flags, struct perseas_token *token);

/*
 * Fills in the token of the last transaction that any thread committed on this handle. To wait for
 * it is to wait for all before it. Errors: EINVAL.
 */
int perseas_posted(perseas_t *p, struct perseas_token *token);

/*
 * Waits until W mirrors hold the transaction of a token, and so all before it; for timeout_ms at
 * most, negative: for ever, 0: it does not wait. If that one is held back, it is sent first, also
 * with 0; to look without sending it, ask perseas_durable. Other threads may go on. A transaction
 * that W mirrors held stays so for this function, whatever becomes of these mirrors. Tokens stay
 * good if the library has to claim mirrors again (PERSEAS_EVENT_RENEWED).
 *
 * Errors: EINVAL (also: there was no such transaction), ETIMEOUT (they do not hold it yet; it may
 * be in doubt), EEPOCH (the token is of another handle, as of the owner before; the data shows
 * whether its transaction survived), EFENCED (the outcome is unknown), ESALVAGE.
 */
int perseas_wait(perseas_t *p, const struct perseas_token *token, int64_t timeout_ms);

/*
 * A descriptor for poll, select and epoll, which can be read if W mirrors have come to hold more
 * since the last call of perseas_durable, or if that was never called; and if a mirror that was in
 * the way of a commit (EAGAIN) has got on since, or is away. When another owner has taken the store
 * over, it stays readable. It is the handle's, and closed with it: only wait for it. One
 * thread should use it, since any call of perseas_durable resets it. Otherwise an error code:
 * EINVAL (also: the handle is being closed), ESYSTEM (no descriptor, or a thread of the library did
 * not start).
 */
int perseas_fd(perseas_t *p);

/*
 * Fills in the token of the last transaction that W mirrors hold, and resets the descriptor of
 * perseas_fd. It does not wait. Errors: EINVAL; EFENCED, and *token is the last that W mirrors are
 * known to have held under this owner.
 */
int perseas_durable(perseas_t *p, struct perseas_token *token);

/*
 * Asks the mirrors whether this process still owns the store, so that an owner that was replaced
 * while it slept, or while the network was cut, does not answer from its own memory. Returns 0 if R
 * mirrors of each roster in force said so after the call began, and W mirrors hold everything that
 * was committed on this handle before the call. Then
 * - what was read before the call was the newest state of the store when it was read, and no
 *   failover takes it back. So read, call this function, and answer;
 * - what is read after the call has all that any other owner acknowledged before the call. It may
 *   also have later commits of this process, which W mirrors need not hold yet.
 *
 * It takes one network round trip, which threads that call it at the same time share. If claims
 * have to be renewed (PERSEAS_EVENT_RENEWED), it waits for that and asks again.
 *
 * It does not protect an owner that is left with mirrors which an operator called gone
 * (perseas_roster_change.gone), or without which an operator had the store opened (accept_epoch).
 *
 * Errors: EINVAL, EFENCED, ESALVAGE, EINDOUBT (for commit_timeout_ms too few mirrors answered, or
 * took what was committed: another owner may have the store; call again).
 */
int perseas_confirm(perseas_t *p);

#ifdef __cplusplus
}
#endif

#endif
