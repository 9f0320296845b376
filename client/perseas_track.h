/*
 * perseas_track.h - transactions without perseas_set_range: the library finds what they changed.
 * perseas.h includes it.
 *
 * A program that cannot say beforehand what it will change, such as one whose stores are made by a
 * library that knows nothing of Perseas, opens the store with PERSEAS_TRACKED, and begins
 * transactions with PERSEAS_TRACK. The process then has a second copy of every segment that is
 * mapped. At commit the bytes that differ from it are the transaction's ranges: they are sent, as
 * if they had been declared. Abort puts them back.
 *
 * The cost of a commit grows with the pages that were written, of which each is compared, and with
 * the memory that is mapped, whose page tables are looked through. The first store to a page since
 * it was compared last is a fault, which the kernel handles. A large page that is stored to is
 * parted into small ones, once. Before Linux 6.7, or where userfaultfd(2) is refused, a commit
 * compares all memory that is mapped. perseas_report says which it is, and
 * PERSEAS_WRITTEN_PAGES=off in the environment chooses the latter. The same holds for
 * PERSEAS_CHECK_WRITES.
 *
 * Processes: a child of fork does not have the memory that would be compared. With either flag
 * perseas_commit, perseas_abort and perseas_retry return EINVAL to it, and change nothing.
 */
#ifndef PERSEAS_TRACK_H
#define PERSEAS_TRACK_H

enum perseas_track {
	/*
	 * A bit of perseas_begin's flags. What the transaction changes need not be declared:
	 * perseas_set_range checks its arguments, and does nothing else. What it writes over with
	 * the same bytes is not sent.
	 *
	 * A page does not say whose store it was. So this transaction must be the only one that is
	 * open, whoever began it: perseas_begin returns ECONFLICT while another one is open, and
	 * any other perseas_begin returns it until this one has ended. With PERSEAS_SERIAL beside
	 * it, perseas_begin first waits for its turn among transactions of that kind. To this
	 * transaction belongs whatever was stored to published segments since the last commit and
	 * was not declared, also by other threads, or before it began.
	 *
	 * No segment can be unmapped meanwhile (ECONFLICT), there are no savepoints, and objects of
	 * a heap can neither be allocated nor freed (EINVAL). perseas_commit returns ETOOBIG where
	 * what was changed is too much for one transaction: nothing was sent then, and the
	 * transaction is still open.
	 */
	PERSEAS_TRACK = 2,

	/*
	 * A bit of perseas_options.flags: transactions may begin with PERSEAS_TRACK. Others may be
	 * used, too, one after another with these. With PERSEAS_RECOVERY_ON_DEMAND the second copy
	 * comes with the memory, and a commit compares nothing that is missing.
	 */
	PERSEAS_TRACKED = 64
};

#endif
