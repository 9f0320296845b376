/*
 * perseas_track.h - transactions without perseas_set_range: the library finds what they changed.
 * perseas.h includes this header.
 *
 * Some programs cannot say beforehand what they will change, for example because another library
 * stores into the segments. Such a program opens the store with PERSEAS_TRACKED, and begins
 * transactions with PERSEAS_TRACK. The process then keeps a second copy of every mapped segment. A
 * commit compares the segments with this copy and sends the bytes that differ, as if they had been
 * declared. An abort copies them back.
 *
 * A commit compares each page that was written, and looks through the page tables of all mapped
 * memory. The first store to a page after it was compared causes a page fault, which the kernel
 * handles. The first store to a large page splits it into small ones. Before Linux 6.7, or where
 * userfaultfd(2) is refused, a commit compares all mapped memory. perseas_report tells which of the
 * two is in use. PERSEAS_WRITTEN_PAGES=off in the environment forces comparing all memory. All this
 * also applies to PERSEAS_CHECK_WRITES.
 *
 * Processes: a child of fork does not have the memory to compare. In a child, perseas_commit,
 * perseas_abort and perseas_retry return EINVAL with either flag, and change nothing.
 */
#ifndef PERSEAS_TRACK_H
#define PERSEAS_TRACK_H

enum perseas_track {
	/*
	 * A bit of perseas_begin's flags. The transaction need not declare its changes:
	 * perseas_set_range only checks its arguments. Bytes that are stored with the value that
	 * they had already are not sent.
	 *
	 * A page does not tell which transaction changed it. So this must be the only open
	 * transaction of the handle: perseas_begin returns ECONFLICT while another one is open, and
	 * every other perseas_begin returns it until this one has ended. With PERSEAS_SERIAL as
	 * well, perseas_begin first waits for its turn among serial transactions. Everything that
	 * any thread stored into published segments since the last commit, without declaring it,
	 * belongs to this transaction, even if it was stored before the transaction began.
	 *
	 * While the transaction is open, no segment can be unmapped (ECONFLICT), savepoints are
	 * refused, and heap objects can be neither allocated nor freed (EINVAL). perseas_commit
	 * returns ETOOBIG if too much was changed for one transaction: then nothing was sent, and
	 * the transaction is still open.
	 */
	PERSEAS_TRACK = 2,

	/*
	 * A bit of perseas_options.flags: allows PERSEAS_TRACK. Transactions with and without it
	 * may alternate. With PERSEAS_RECOVERY_ON_DEMAND the second copy is filled as memory
	 * arrives, and a commit compares no memory that is missing.
	 */
	PERSEAS_TRACKED = 64
};

#endif
