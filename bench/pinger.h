/*
 * pinger.h - bare sockets between two processes on this host: what a round trip costs without
 * Perseas, when both ends wait as Perseas does.
 */
#ifndef PERSEAS_BENCH_PINGER_H
#define PERSEAS_BENCH_PINGER_H

#include <stdbool.h>
#include <stdint.h>

struct pinger;

/*
 * Forks the far end, pinned to `cpu`, and connects to it over the loopback, or by a pair of Unix
 * sockets. Both ends spin for their time with receives that do not block before they sleep in poll.
 * Fork before a store is opened. NULL, and errno set, on failure, after which the caller ends.
 */
struct pinger *pinger_new(bool unix_sockets, unsigned bytes, uint64_t spin_us, uint64_t far_spin_us,
                          int cpu);

/* One message there and back. 0, or -1: the far end is gone. */
int pinger_step(void *pinger);

/* Ends the far end and waits for it. NULL is allowed. */
void pinger_free(struct pinger *pinger);

/* Pins the calling thread. 0 or -1 with errno. */
int pin_to_cpu(int cpu);

/* A processor that this process may use, other than `cpu` when there is one. */
int other_cpu(int cpu);

#endif
