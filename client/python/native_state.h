/*
 * native_state.h - the structures behind native.h, and the functions that count the calls of a
 * handle.
 */
#ifndef PERSEAS_PYTHON_NATIVE_STATE_H
#define PERSEAS_PYTHON_NATIVE_STATE_H

#include "native.h"

#include <pthread.h>
#include <stdbool.h>

enum { PS_PY_EVENTS = 256 };

/* Counts the calls of a handle that are in progress. */
struct ps_py_hold {
	pthread_mutex_t lock;
	pthread_cond_t idle; /* signaled when a call has returned */
	unsigned calls;
	unsigned users;  /* objects that point to the handle; the last one frees it */
	bool is_closing; /* the handle takes no further calls */
	/* Value of `generation` (native.c) in the process that created the handle. */
	unsigned generation;
};

/* A queue of events for Python. */
struct ps_py_events {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct perseas_event ring[PS_PY_EVENTS];
	unsigned first, count;
	/* Events dropped because the ring was full, before the next one that is queued. */
	uint32_t missed;
	bool is_over;
};

struct ps_py_store {
	struct ps_py_hold hold;
	/* The standby that opened the store and forwards its events, or NULL. */
	struct ps_py_standby *opener;
	perseas_t *p;
	struct ps_py_tx *open;
	struct ps_py_events *events; /* NULL if nothing listens */
};

struct ps_py_tx {
	struct ps_py_store *store;
	perseas_tx_t *tx; /* NULL while the transaction is not open */
	pthread_t thread; /* the thread that began the transaction */
	bool is_busy;     /* a call of the transaction is in progress */
	bool is_committed;
	struct perseas_token token; /* token of its commit */
	struct ps_py_tx *next;
};

struct ps_py_standby {
	struct ps_py_hold hold;
	perseas_standby_t *standby;
	struct ps_py_store *listener; /* the store that gets the events */
};

/* Counts another object that points to the handle. Python frees objects in any order, even a store
 * before its transactions. */
void ps_py_hold_share(struct ps_py_hold *hold);
/* Counts one object less. Returns true if none is left. */
bool ps_py_hold_unshare(struct ps_py_hold *hold);
void ps_py_hold_init(struct ps_py_hold *hold);
/* Returns true in a child of fork of the process that created the handle. */
bool ps_py_is_foreign(const struct ps_py_hold *hold);
/* Begins a call. Returns 0, and the handle stays valid until ps_py_leave; or PS_PY_CLOSED or
 * PS_PY_FORKED. */
int ps_py_enter(struct ps_py_hold *hold);
void ps_py_leave(struct ps_py_hold *hold);
/* Begin and end a call of one of the calling thread's transactions. is_over: the call has ended the
 * transaction. */
int ps_py_tx_enter(struct ps_py_tx *t);
void ps_py_tx_leave(struct ps_py_tx *t, bool is_over);

/* Queues an event for Python. Called by a thread of the library. */
void ps_py_push_event(struct ps_py_store *s, const struct perseas_event *event);
/* Marks the end of the store's events. */
void ps_py_end_events(struct ps_py_store *s);
/* Gives the store its handle. Returns 0. */
int ps_py_store_take(struct ps_py_store *s, perseas_t *p);
/* Removes a transaction that has ended from its store. Caller holds the store's lock. */
void ps_py_tx_forget(struct ps_py_tx *t);
/* Drop one object's pointer to the store or the standby; the last one frees it. */
void ps_py_store_let_go(struct ps_py_store *s);
void ps_py_standby_let_go(struct ps_py_standby *b);

/* Bodies of functions that only call the library, for a store `s` and for a transaction `t`. */
#define GUARDED(call)                           \
	do {                                    \
		int rc = ps_py_enter(&s->hold); \
                                                \
		if (rc)                         \
			return rc;              \
		rc = (call);                    \
		ps_py_leave(&s->hold);          \
		return rc;                      \
	} while (0)

#define WITH_TX(call)                       \
	do {                                \
		int rc = ps_py_tx_enter(t); \
                                            \
		if (rc)                     \
			return rc;          \
		rc = (call);                \
		ps_py_tx_leave(t, false);   \
		return rc;                  \
	} while (0)

/* Appends bytes. *room is the capacity of bytes->at. Returns 0 or ENOMEM. */
int ps_py_bytes_append(struct ps_py_bytes *bytes, size_t *room, const void *data, size_t size);

#endif
