/*
 * standard_streams.h - keeps new descriptors away from the numbers 0 to 2. In a process that was
 * started with a standard stream closed, open() may return its number, and what the process prints
 * would then go to a socket or into a store's memory. The library moves its descriptors above 2;
 * perseasd and perseas open /dev/null at closed numbers when they start.
 *
 * Nothing here may be called after vfork() or in a signal handler.
 */
#ifndef PERSEAS_PROTO_STANDARD_STREAMS_H
#define PERSEAS_PROTO_STANDARD_STREAMS_H

/* Moves a descriptor above 2 and closes the old number. Returns the new descriptor, which is
 * close-on-exec; or fd unchanged if it is negative or above 2; or -1 with errno set and fd
 * closed. */
int ps_above_standard(int fd);

/* Moves both descriptors of a pair. Returns 0, or -1 with errno set and both closed. `made` is the
 * result of the call that created the pair: if it is negative, it is returned and nothing is
 * touched. */
int ps_pair_above_standard(int made, int pair[2]);

/* Opens /dev/null at each closed number from 0 to 2, in the wrong direction: 0 for writing, 1 and 2
 * for reading, so that using the stream still fails with EBADF. Returns 0, or -1 with errno set. */
int ps_standard_fds_fill(void);

/* Keep the closed numbers from 0 to 2 open, on /dev/null, while another function creates
 * descriptors at numbers that we cannot choose, as rdma-core's functions and recvmsg() with
 * SCM_RIGHTS do. Calls nest; the last release closes the numbers. If /dev/null cannot be opened,
 * the numbers stay closed. Preserve errno; any thread may call them. */
void ps_standard_fds_reserve(void);
void ps_standard_fds_release(void);

#endif
