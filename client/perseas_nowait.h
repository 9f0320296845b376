/*
 * perseas_nowait.h - commits that do not wait for mirrors (RVM, section 5.2: no_flush; Vista,
 * figure 6), how to learn when W mirrors hold them, and whether this process still owns the store.
 * perseas.h includes this header. Its rules for return values and sentences apply here, too.
 *
 * With PERSEAS_NOWAIT a commit returns when the transaction is on its way to the mirrors, or, if
 * the options ask for it, is held back for a while. With and without this flag, transactions reach
 * every mirror in the order of their commits. So a prefix of them survives a crash: if this process
 * dies before W mirrors hold a transaction, this transaction and all after it may be lost.
 *
 * If for commit_timeout_ms no further transaction becomes durable on W mirrors, the remaining ones
 * are in doubt, as after EINDOUBT, although no thread waits: PERSEAS_EVENT_IN_DOUBT reports it, and
 * perseas_begin returns EBLOCKED until W mirrors hold them.
 *
 * Back-pressure: transactions on their way may fill half of the ring (options.ring_size). Then a
 * commit waits until mirrors complete some of them: as long as the mirrors make progress, and
 * commit_timeout_ms longer (EBLOCKED). With PERSEAS_NOBLOCK it returns EAGAIN instead. After either
 * error the transaction is still open. If W other mirrors hold everything, a mirror that makes no
 * progress for commit_timeout_ms is dropped, even while no thread commits. The descriptor of
 * perseas_fd becomes readable when such a mirror makes progress or is dropped. It does not become
 * readable when EAGAIN came because segments or claims were being changed.
 *
 * Bounded persistence (options.flush_within_ms; RVM, section 5.2): a commit with PERSEAS_NOWAIT
 * posts its transaction only if W mirrors hold all transactions whose commits had returned
 * flush_within_ms before, or up to an eighth less. So a crash loses at most what was committed
 * within this time before the last posted transaction. If the commit has to wait for that, it waits
 * or returns EAGAIN as under back-pressure. Without further commits no thread waits: what is on its
 * way arrives, or is in doubt after commit_timeout_ms.
 *
 * Group commit (options.gather_us; RVM, section 5.2): a commit may be held back for this time, to
 * be sent together with later ones as one record, which has the first before-image and the last
 * after-image of each byte. Nothing can undo such a commit, but a crash before it is sent loses it.
 * All transactions of a group have the same token. A group is sent early if a thread waits for it
 * (perseas_wait, perseas_flush, perseas_close, or the commit of a serial or locking transaction
 * that only read: perseas_threads.h); before a commit that waits; before segments are mapped,
 * published or unmapped; when it would exceed options.gather_bytes of the ring or 1024 changed
 * pieces of 64 bytes; and when another commit is in doubt. Doubt and flush_within_ms count from the
 * commit, so that it is held back for at most half of commit_timeout_ms and of flush_within_ms. A
 * transaction that exceeds these limits by itself is sent alone, and so is every one while there is
 * no memory for a group.
 *
 * Threads: any thread may call these functions, except on_event (perseas.h). perseas_durable and
 * the descriptor of perseas_fd are for one thread at a time.
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
 * Names a transaction, or all transactions of a group. seq numbers the transactions of one epoch in
 * the order of their commits. An owner that takes the store over begins a new epoch, and may use
 * the same seq again.
 */
struct perseas_token {
	uint64_t epoch, seq;
};

/*
 * Commits like perseas_commit, and fills in the transaction's token. This is done if the call
 * returns 0 or EINDOUBT, that is, if the transaction was sent or is held back; otherwise *token is
 * unchanged. A transaction without ranges gets the token of the last transaction that was committed
 * before it: when W mirrors hold that one, they hold everything that this one read.
 *
 * Errors: those of perseas_commit; EAGAIN (PERSEAS_NOBLOCK: it would have to wait for mirrors, or
 * segments are being mapped or published; the transaction is still open), ESYSTEM (a thread of the
 * library did not start; the transaction is still open).
 */
int perseas_commit_token(perseas_tx_t *tx, unsigned flags, struct perseas_token *token);

/*
 * Fills in the token of the last transaction that any thread committed on this handle. Waiting for
 * it means waiting for all before it. Errors: EINVAL.
 */
int perseas_posted(perseas_t *p, struct perseas_token *token);

/*
 * Waits until W mirrors hold the transaction of a token, and so all before it; for at most
 * timeout_ms. Negative: without a limit; 0: does not wait. A transaction that is held back is sent
 * first, even with 0; perseas_durable looks without sending. Other threads may go on. Once W
 * mirrors held a transaction, this function always succeeds for it, whatever becomes of these
 * mirrors. Tokens stay valid if the library claims mirrors again (PERSEAS_EVENT_RENEWED).
 *
 * Errors: EINVAL (also: there was no such transaction), ETIMEOUT (W mirrors do not hold it yet; it
 * may be in doubt), EEPOCH (the token is of another handle, such as the previous owner's; the data
 * shows whether its transaction survived), EFENCED (the outcome is unknown), ESALVAGE.
 */
int perseas_wait(perseas_t *p, const struct perseas_token *token, int64_t timeout_ms);

/*
 * Returns a descriptor that tells of durable commits (for poll, select and epoll), or an error
 * code. It becomes readable when W mirrors hold more than at the last call of perseas_durable, or
 * if that was never called; and when a mirror that caused EAGAIN makes progress or is dropped. When
 * another owner has taken the store over, it stays readable. The handle owns the descriptor and
 * closes it: only wait for it. Every call of perseas_durable resets it, so only one thread should
 * use it. Errors: EINVAL (also: the handle is being closed), ESYSTEM (no descriptor, or a thread of
 * the library did not start).
 */
int perseas_fd(perseas_t *p);

/*
 * Fills in the token of the last transaction that W mirrors hold, and resets the descriptor of
 * perseas_fd. Does not wait. Errors: EINVAL; EFENCED, with *token the last transaction that W
 * mirrors are known to have held under this owner.
 */
int perseas_durable(perseas_t *p, struct perseas_token *token);

/*
 * Asks the mirrors whether this process still owns the store. Without it, an owner that was
 * replaced while it slept, or while the network was cut, answers from its own memory. Returns 0 if
 * R mirrors of each roster in force confirmed the owner after the call began, and W mirrors hold
 * everything that was committed on this handle before the call. Then
 * - what was read before the call was the newest state of the store when it was read, and no
 *   failover undoes it. So read, call this function, and answer;
 * - what is read after the call includes all that any other owner acknowledged before the call. It
 *   may also include later commits of this process, which W mirrors need not hold yet.
 *
 * It takes one network round trip, which threads that call it at the same time share. If claims
 * have to be renewed (PERSEAS_EVENT_RENEWED), it waits for that and asks again.
 *
 * It does not protect an owner whose remaining mirrors were made enough by an operator, who called
 * others gone (perseas_roster_change.gone) or accepted a state without them (accept_epoch).
 *
 * Errors: EINVAL, EFENCED, ESALVAGE, EINDOUBT (for commit_timeout_ms too few mirrors answered, or
 * too few hold what was committed: another owner may have the store; call again).
 */
int perseas_confirm(perseas_t *p);

#ifdef __cplusplus
}
#endif

#endif
