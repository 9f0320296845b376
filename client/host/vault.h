/*
 * vault.h - a thread that has a table of descriptors of its own, and keeps connections in it for
 * control_socket.c: their other ends hear of the end of this process though the system is still
 * freeing its memory (env.h, `entrust`). It is begun when the first connection is given to it. It
 * must never read or write what it keeps, open anything else, or call what may do so, as the
 * resolver: numbers of descriptors mean others there than in the rest of the process.
 */
#ifndef PERSEAS_CLIENT_VAULT_H
#define PERSEAS_CLIENT_VAULT_H

#include "../../proto/base/stream.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct ps_vault {
	pthread_t thread;
	bool tried, running;
	int here;       /* the end of a pair of sockets that says what to keep, and what to drop */
	int there;      /* the thread's end, which is in its own table, too */
	unsigned count; /* descriptors that it keeps */
	uint64_t last;  /* the newest number */
};

/* Begins nothing yet. The caller sees to it that one thread at a time calls these functions. */
void ps_vault_init(struct ps_vault *vault);

/* Keeps a copy of the descriptor, which the caller closes in its own table. Its number, never one
 * that was given before; 0: it cannot be kept, as there is no such thread (Linux 5.9 or later is
 * needed, and a memory limit or seccomp may be in the way), or it keeps as many as it can. */
uint64_t ps_vault_give(struct ps_vault *vault, int fd);

/* The same with a connection, which is over in the caller's table if it is kept, though its other
 * end hears nothing of that. */
uint64_t ps_vault_take(struct ps_vault *vault, struct ps_stream *stream);

/* Closes the copy of that number, soon; 0: nothing. */
void ps_vault_drop(struct ps_vault *vault, uint64_t number);

/* Ends the thread, and with it all that it keeps. */
void ps_vault_close(struct ps_vault *vault);

#endif
