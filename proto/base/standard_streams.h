/*
 * standard_streams.h - keeps descriptors away from the numbers 0 to 2 in a process that was started
 * with some of these closed. Such a process still reads and writes the numbers: what it prints must
 * not reach a socket or a store's memory. The library moves what it opens; perseasd and perseas
 * fill the numbers at their start.
 *
 * Nothing here may be called after vfork or in a signal handler.
 */
#ifndef PERSEAS_PROTO_STANDARD_STREAMS_H
#define PERSEAS_PROTO_STANDARD_STREAMS_H

/* Returns the descriptor if it is above 2, or negative. Else moves it above 2, closes the old
 * number and returns the new one, which closes on exec. Returns -1 with errno set if no number is
 * free; the descriptor is closed then, too. */
int ps_above_standard(int fd);

/* Moves both descriptors of a pair. Returns 0, or -1 with errno set and both closed. `made` is the
 * result of the call that made the pair: if it is negative, returns it and touches nothing. */
int ps_pair_above_standard(int made, int pair[2]);

/* Opens /dev/null at each of the numbers 0 to 2 that is closed, so that using the number still
 * fails with EBADF: 0 can only be written, 1 and 2 can only be read. They close on exec. Returns 0,
 * or -1 with errno set. */
int ps_standard_fill(void);

/* Does the same until as many releases have followed, around calls in which other code, such as the
 * kernel that receives descriptors, chooses the numbers. If /dev/null cannot be opened, the numbers
 * stay closed. Keeps errno. Any thread. */
void ps_standard_hold(void);
void ps_standard_release(void);

#endif
