/*
 * perseas_threads.h - transactions that are kept apart, parts of transactions that are taken back,
 * and errors that are copied. perseas.h includes it; what that says of return values holds here,
 * too.
 *
 * Threads that use the same memory need either PERSEAS_SERIAL for all their transactions, or locks
 * (perseas_lock) for whatever they read or change, or locks of the application's own.
 *
 * Processes: turns and locks are those of one process, and mirrors know nothing of them. A child of
 * fork does not wait for threads of its parent, which it has not: it gets EINVAL.
 *
 * Several stores: a thread that has a turn or a lock in one store and waits in another can close a
 * cycle of threads that wait for each other. The wait that would close it (perseas_begin with
 * PERSEAS_SERIAL, perseas_lock, perseas_retry) is refused at once with ECONFLICT, and no other wait
 * is. The thread must abort its transactions in all stores, and may then begin them again. A
 * transaction that is handed to another thread counts as that of the thread that began it
 * (PERSEAS_SERIAL), or asked for its last lock.
 */
#ifndef PERSEAS_THREADS_H
#define PERSEAS_THREADS_H

#include "perseas.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bits of perseas_begin's flags. */
enum perseas_begin_flag {
	/*
	 * The transaction waits until no other of this kind is open with this handle: first come,
	 * first served. So threads that begin all their transactions with it, also those that only
	 * read, need nothing else: the outcome is that of running one transaction after another.
	 *
	 * The turn passes on as soon as the transaction is sent, or aborted, and not only when
	 * mirrors have acknowledged it: several threads wait for mirrors at the same time. Nobody
	 * is misled by that, since mirrors take transactions in order: none survives without those
	 * whose results it saw. Commit of one that changed nothing waits until W mirrors hold
	 * whatever it may have read, and returns EINDOUBT, like others, when that takes too long.
	 * It does not ask whether another owner has the store by now: perseas_confirm does.
	 * With PERSEAS_NOWAIT it does not wait: its token names what it may have read.
	 *
	 * A thread must end its SERIAL transaction before it begins another one: perseas_begin
	 * returns EINVAL otherwise. It returns EBLOCKED and EFENCED also when they come to be while
	 * it waits for its turn, and ECONFLICT if the wait would deadlock (see above).
	 */
	PERSEAS_SERIAL = 1
};

enum perseas_lock_mode {
	PERSEAS_LOCK_SHARED = 1, /* to read: several transactions may have it */
	PERSEAS_LOCK_EXCLUSIVE   /* to change: nobody else has it */
};

/*
 * Takes a lock for the transaction: key is what the application lets it stand for, such as the
 * number of an account or the hash of a name. mode is of enum perseas_lock_mode. A transaction that
 * has the lock SHARED may ask for it EXCLUSIVE; what it has already it gets again. Locks are kept
 * until the transaction is sent, or aborted; so none is released by hand, and if every transaction
 * locks what it reads and changes before it does, the outcome is that of running one after another.
 * Commit of one that has locks and changed nothing waits until W mirrors hold whatever it may have
 * read.
 *
 * If the lock cannot be had, the older transaction waits, and the younger one gets ECONFLICT
 * (wait-die: so no two wait for each other). The age is that of its first lock. After ECONFLICT the
 * transaction is as it was: call perseas_retry, or perseas_abort. A transaction with PERSEAS_SERIAL
 * never waits for a lock, nor does a thread with another open transaction in this store that is
 * SERIAL or has locks: they get ECONFLICT. So does a wait that would deadlock (see above).
 *
 * Errors: EINVAL (also: it would wait for a thread of the parent process), EENDED, ENOMEM,
 * ECONFLICT, EBLOCKED and EFENCED (while it waited). The transaction stays open, with the locks
 * that it had.
 */
int perseas_lock(perseas_tx_t *tx, uint64_t key, int mode);

/*
 * Takes back all that the transaction changed, as perseas_abort, releases its locks, and begins it
 * again with the same flags. It stays as old as it was, so that it gets its locks in the end. If
 * perseas_lock refused it a lock, this waits until no older transaction keeps it from that one,
 * unless the thread has other locks; perseas_lock waits for the younger ones, and they are refused
 * meanwhile. With PERSEAS_SERIAL, which never waits for a lock, it waits, with the same exception,
 * until all locks that it was refused are free for it, and then for its turn. From when it was
 * refused a lock until it ends, in all of its tries, younger transactions do not get that lock
 * before it: so only older ones can make it begin again twice for one lock in one mode, and none
 * come to be. The same holds, but for the turn, if perseas_lock refused a wait that would deadlock.
 *
 * Errors: EINVAL, EENDED; those of perseas_begin, and ECONFLICT if the wait would deadlock (see
 * above), after which the transaction has ended, as if by perseas_abort.
 */
int perseas_retry(perseas_tx_t *tx);

/*
 * What a loop does that met ECONFLICT, whatever conflicted. tx is the open transaction that met it,
 * or NULL if perseas_begin did. *tries counts, for one piece of work, and is 0 before its first
 * conflict; it is the caller's, and other threads must not use it meanwhile.
 *
 * If perseas_lock refused tx a lock, this is perseas_retry, and does not count. Nobody says when
 * another conflict is over, as with PERSEAS_TRACK, PERSEAS_CHECK_OVERLAP or a root that another
 * transaction sets: such a one is tried again 16 times, after pauses of 1 us and each time twice as
 * long, 65 ms in all. Before its pause tx is taken back, so that others may go on.
 *
 * After 0, tx has begun again as by perseas_retry; with NULL, perseas_begin is to be called again.
 *
 * Errors: EINVAL (also: tx is another handle's), EENDED; ECONFLICT (it was tried often enough: tx
 * is open and as it was, and perseas_error still has what conflicted; such work needs locks, or
 * PERSEAS_SERIAL for all. Or waiting would deadlock, as perseas_error says: tx is open, has no
 * locks and no changes, and must be aborted); the others of perseas_retry, after which tx has
 * ended.
 */
int perseas_retry_conflict(perseas_t *p, perseas_tx_t *tx, unsigned *tries);

/*
 * Marks where the transaction is now, so that perseas_rollback_to can take back what it changes
 * from here on. *savepoint becomes a number that names no other savepoint of this handle; 0 on an
 * error. Any number of them, one inside another; all end with the transaction. Sends nothing.
 *
 * From here on every byte that is going to change must be declared again by perseas_set_range, also
 * if it was declared before: what it holds then is kept. PERSEAS_CHECK_WRITES finds bytes that were
 * not: perseas_rollback_to reports them.
 *
 * Errors: EINVAL, EENDED, ENOMEM.
 */
int perseas_savepoint(perseas_tx_t *tx, uint64_t *savepoint);

/*
 * Gives all bytes that were declared since the savepoint what they held then. Those that were first
 * declared after it are not declared any more. The transaction stays open, and so does the
 * savepoint: it can be rolled back to again. Later savepoints are gone. Locks are kept
 * (perseas_lock). Sends nothing, and works whatever the mirrors do.
 *
 * Errors: EINVAL (the transaction has no such savepoint, or no longer), EENDED, EUNDECLARED
 * (PERSEAS_CHECK_WRITES: a byte was changed since the newest savepoint and not declared since;
 * nothing is taken back).
 */
int perseas_rollback_to(perseas_tx_t *tx, uint64_t savepoint);

/*
 * Copies the sentence of the last error on this handle in the calling thread, which perseas_message
 * returns, to buffer, and its code to *code: "" and 0 if there was none. What does not fit loses
 * words at its end. buffer may be NULL if size is 0, and code may be NULL. The copy is the
 * caller's: unlike the text of perseas_message it stays as it is.
 *
 * What failed last is kept for each thread of the operating system. So a green thread must call
 * this before it lets another one run, and before it is moved to another thread. Where a runtime
 * may move it between any two calls, as Go does, it must be tied to its thread for the two. If
 * *code is not what the failed call returned, it was moved.
 *
 * Errors: EINVAL, which is not kept as the last error.
 */
int perseas_error(const perseas_t *p, char *buffer, size_t size, int *code);

#ifdef __cplusplus
}
#endif

#endif
