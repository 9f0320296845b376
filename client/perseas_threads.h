/*
 * perseas_threads.h - isolation: serial transactions, locks, retries; savepoints; and copies of
 * errors. perseas.h includes this header. Its rules for return values apply here, too.
 *
 * Threads that use the same memory need one of three: PERSEAS_SERIAL for all their transactions;
 * locks (perseas_lock) for everything that they read or change; or locks of the application.
 *
 * Processes: turns and locks exist within one process, and mirrors do not know them. A child of
 * fork does not wait for threads of its parent; it gets EINVAL.
 *
 * Several stores: a thread that has a turn or a lock in one store and waits in another can close a
 * cycle of threads that wait for each other. Only the wait that would close it (perseas_begin
 * with PERSEAS_SERIAL, perseas_lock, perseas_retry) is refused, at once, with ECONFLICT. The thread
 * must then abort its transactions in all stores, and may begin them again. If a transaction is
 * handed to another thread, its turn counts as that of the thread that began it, and its locks as
 * those of the thread that took its last lock.
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
	 * The transaction waits until no other transaction with this flag is open with this handle;
	 * turns are given in the order of the calls. If threads begin all their transactions with
	 * it, also those that only read, they need nothing else: the outcome is that of running one
	 * transaction after another.
	 *
	 * A transaction gives its turn up when it is sent or aborted, before mirrors acknowledge
	 * it, so that several threads wait for mirrors at the same time. That is safe, because
	 * mirrors take transactions in order: no transaction survives without those whose results
	 * it saw. The commit of a transaction that changed nothing waits until W mirrors hold
	 * everything that it may have read, and returns EINDOUBT, like others, if that takes too
	 * long. It does not ask whether another owner has the store by now: perseas_confirm does.
	 * With PERSEAS_NOWAIT it does not wait: its token names what it may have read.
	 *
	 * A thread must end its serial transaction before it begins another one: otherwise
	 * perseas_begin returns EINVAL. While it waits for its turn, perseas_begin may also return
	 * EBLOCKED and EFENCED; it returns ECONFLICT if the wait would deadlock (see above).
	 */
	PERSEAS_SERIAL = 1
};

enum perseas_lock_mode {
	PERSEAS_LOCK_SHARED = 1, /* for reading: several transactions may have it */
	PERSEAS_LOCK_EXCLUSIVE   /* for changing: only one transaction has it */
};

/*
 * Takes a lock for the transaction. key is a number to which the application gives a meaning, such
 * as the number of an account or the hash of a name. mode is of enum perseas_lock_mode. A
 * transaction may ask again for a lock that it has, and may ask for EXCLUSIVE when it has SHARED.
 * It keeps its locks until it is sent or aborted; no call releases one. If every transaction locks
 * everything before it reads or changes it, the outcome is that of running one transaction after
 * another. The commit of a transaction that has locks and changed nothing waits until W mirrors
 * hold everything that it may have read.
 *
 * If the lock is taken, an older transaction waits for it, and a younger one gets ECONFLICT
 * (wait-die), so that no two transactions wait for each other. A transaction's age is that of its
 * first lock. After ECONFLICT the transaction is unchanged: call perseas_retry or perseas_abort.
 * Two kinds of callers never wait, and get ECONFLICT: a transaction with PERSEAS_SERIAL, and a
 * thread with another open transaction in this store that is serial or has locks. ECONFLICT is also
 * returned if the wait would deadlock (see above).
 *
 * Errors: EINVAL (also: it would wait for a thread of the parent process), EENDED, ENOMEM,
 * ECONFLICT, EBLOCKED and EFENCED (while it waited). The transaction stays open, with the locks
 * that it had.
 */
int perseas_lock(perseas_tx_t *tx, uint64_t key, int mode);

/*
 * Undoes all changes of the transaction, as perseas_abort does, releases its locks, and begins it
 * again with the same flags and the same age, so that it gets its locks in the end.
 *
 * If perseas_lock refused it a lock, the call first waits until no older transaction keeps it from
 * that lock, unless the thread has other locks. The next perseas_lock then waits for younger
 * transactions that still have the lock. A transaction with PERSEAS_SERIAL, which never waits in
 * perseas_lock, waits here until all locks that it was refused are free for it, with the same
 * exception, and then for its turn. If perseas_lock refused a wait that would deadlock, the call
 * waits in the same way, but not for a turn.
 *
 * From the refusal of a lock until the transaction ends, in all its tries, younger transactions do
 * not get that lock before it. So only older transactions can make it begin again a second time for
 * the same lock and mode, and no older ones are added.
 *
 * Errors: EINVAL, EENDED; those of perseas_begin, and ECONFLICT if the wait would deadlock (see
 * above): after these the transaction has ended, as if by perseas_abort.
 */
int perseas_retry(perseas_tx_t *tx);

/*
 * Handles ECONFLICT for a loop that retries its work, whatever the conflict was. tx is the open
 * transaction that got ECONFLICT, or NULL if perseas_begin returned it. *tries is a counter of the
 * caller's for one piece of work, 0 before its first conflict; no other thread may use it.
 *
 * If perseas_lock refused tx a lock, this is perseas_retry, and does not count. For other conflicts
 * (PERSEAS_TRACK, PERSEAS_CHECK_OVERLAP, a root that another transaction sets) no event tells that
 * they are over: tx is undone, so that other transactions can go on, and begun again after a pause.
 * This is done 16 times, with pauses of 1 us and twice as long each time, 65 ms in all.
 *
 * After 0, tx has begun again as after perseas_retry; if tx is NULL, call perseas_begin again.
 *
 * Errors: EINVAL (also: tx is another handle's), EENDED; ECONFLICT after the last try: tx is open
 * and unchanged, and perseas_error still tells the conflict (such work needs locks, or
 * PERSEAS_SERIAL for all); ECONFLICT if waiting would deadlock, which perseas_error then says: tx
 * is open, has no locks and no changes, and must be aborted; the others of perseas_retry, after
 * which tx has ended.
 */
int perseas_retry_conflict(perseas_t *p, perseas_tx_t *tx, unsigned *tries);

/*
 * Marks the present state of the transaction, so that perseas_rollback_to can undo what it changes
 * afterwards. Sets *savepoint to a number that no other savepoint of this handle has; 0 on an
 * error. A transaction may have any number of savepoints, which end with it. Sends nothing.
 *
 * After a savepoint, every byte that will change must be declared again by perseas_set_range, even
 * if it was declared before, since its present contents are saved then. PERSEAS_CHECK_WRITES finds
 * bytes that were not declared again: perseas_rollback_to reports them.
 *
 * Errors: EINVAL, EENDED, ENOMEM.
 */
int perseas_savepoint(perseas_tx_t *tx, uint64_t *savepoint);

/*
 * Restores all bytes that were declared since the savepoint to their contents at that time. Bytes
 * that were first declared after it are no longer declared. The transaction and this savepoint stay
 * open, so that the transaction can roll back to it again; later savepoints end. Locks are kept
 * (perseas_lock). Sends nothing, and works in every state of the mirrors.
 *
 * Errors: EINVAL (the transaction has no such savepoint, or it has ended), EENDED, EUNDECLARED
 * (PERSEAS_CHECK_WRITES: a byte was changed since the newest savepoint and not declared since;
 * nothing is restored).
 */
int perseas_rollback_to(perseas_tx_t *tx, uint64_t savepoint);

/*
 * Copies the text that perseas_message returns for the calling thread's last error on this handle
 * to buffer, and its code to *code; "" and 0 if there was no error. A text that does not fit loses
 * words at its end. buffer may be NULL if size is 0, and code may be NULL. Unlike the text of
 * perseas_message, the copy belongs to the caller and does not change.
 *
 * The last error is kept for each thread of the operating system. So a green thread must call this
 * before another green thread runs, and before it moves to another system thread. Where a runtime
 * may move it between any two calls, as Go does, tie it to its thread for both calls. If *code is
 * not what the failed call returned, it was moved.
 *
 * Errors: EINVAL, which is not kept as the last error.
 */
int perseas_error(const perseas_t *p, char *buffer, size_t size, int *code);

#ifdef __cplusplus
}
#endif

#endif
