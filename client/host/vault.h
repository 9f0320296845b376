/*
 * vault.h - keeps connections open until the whole process has ended, for control_socket.c. A
 * thread with a descriptor table of its own holds copies of their descriptors. When the process
 * dies, the kernel closes these at once, so the other ends notice its death while its memory is
 * still being freed (env.h, `give_to_lifeline_thread`). The thread starts with the first
 * connection. It must never read or write what it keeps, open anything else, or call code that may
 * do so, such as the resolver: in its table, descriptor numbers mean other files than in the rest
 * of the process.
 */
#ifndef PERSEAS_CLIENT_VAULT_H
#define PERSEAS_CLIENT_VAULT_H

#include "../../proto/base/stream.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct ps_vault {
	pthread_t thread;
	bool was_tried, running;
	/* The end of a socket pair on which this process sends messages to the thread. */
	int send_fd;
	int thread_fd;  /* the thread's end, which has the same number in the thread's table */
	unsigned count; /* number of descriptors that the thread keeps */
	uint64_t last_number; /* the last number that was given out */
};

/* Initializes a vault without a thread. Only one thread at a time may call these functions. */
void ps_vault_init(struct ps_vault *vault);

/* Keeps a copy of the descriptor; the caller then closes its own. Returns a number that was never
 * given out before, or 0 if the descriptor cannot be kept: the vault is full, or has no thread
 * because the kernel is older than Linux 5.9, or a memory limit or seccomp prevents it. */
uint64_t ps_vault_keep_fd(struct ps_vault *vault, int fd);

/* Does the same with a connection, and frees the caller's stream without closing the connection. */
uint64_t ps_vault_keep_stream(struct ps_vault *vault, struct ps_stream *stream);

/* Closes the copy with this number soon. Does nothing if number is 0. */
void ps_vault_drop(struct ps_vault *vault, uint64_t number);

/* Ends the thread, which closes everything that it keeps. */
void ps_vault_close(struct ps_vault *vault);

#endif
