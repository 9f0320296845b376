/*
 * native_state.h - what native.c and native_heap.c keep of handles, and how they count calls.
 */
#ifndef PERSEAS_PYTHON_NATIVE_STATE_H
#define PERSEAS_PYTHON_NATIVE_STATE_H

#include "native.h"

#include <pthread.h>
#include <stdbool.h>

enum { PS_PY_EVENTS = 256 };

/* The calls of a handle that are under way. */
struct ps_py_hold {
	pthread_mutex_t lock;
	pthread_cond_t idle; /* a call has returned */
	unsigned calls;
	unsigned users;      /* objects that point to it: the last one frees it */
	bool is_closing;     /* no further calls */
	unsigned generation; /* the process it is of */
};

struct ps_py_events {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct perseas_event ring[PS_PY_EVENTS];
	unsigned first, count;
	uint32_t missed; /* for want of room, before the next one that is kept */
	bool is_over;
};

struct ps_py_store {
	struct ps_py_hold hold;
	struct ps_py_standby *opener; /* that its events come by way of, or NULL */
	perseas_t *p;
	struct ps_py_tx *open;
	struct ps_py_events *events; /* NULL: nobody listens */
};

struct ps_py_tx {
	struct ps_py_store *store;
	perseas_tx_t *tx; /* NULL: it is not open */
	pthread_t thread; /* that began it */
	bool is_busy;     /* a call is under way */
	bool is_committed;
	struct perseas_token token; /* of its commit */
	struct ps_py_tx *next;
};

struct ps_py_standby {
	struct ps_py_hold hold;
	perseas_standby_t *standby;
	struct ps_py_store *listener; /* whom events are for */
};

/* Python frees objects in any order, also a store before its transactions. */
void ps_py_hold_share(struct ps_py_hold *hold);
/* Is nobody left? */
bool ps_py_hold_unshare(struct ps_py_hold *hold);
void ps_py_hold_init(struct ps_py_hold *hold);
bool ps_py_is_foreign(const struct ps_py_hold *hold);
/* 0, or PS_PY_CLOSED or PS_PY_FORKED; after 0 the handle stays until ps_py_leave. */
int ps_py_enter(struct ps_py_hold *hold);
void ps_py_leave(struct ps_py_hold *hold);
/* The same for a transaction of the calling thread; is_over: the call has ended it. */
int ps_py_tx_enter(struct ps_py_tx *t);
void ps_py_tx_leave(struct ps_py_tx *t, bool is_over);

void ps_py_push_event(struct ps_py_store *s, const struct perseas_event *event);
/* There will be none any more. */
void ps_py_end_events(struct ps_py_store *s);
/* The store has this handle from now on. 0. */
int ps_py_store_take(struct ps_py_store *s, perseas_t *p);
/* The transaction has ended. With the lock. */
void ps_py_tx_forget(struct ps_py_tx *t);
/* One that points to it is gone; the last one frees it. */
void ps_py_store_let_go(struct ps_py_store *s);
void ps_py_standby_let_go(struct ps_py_standby *b);

/* The bodies of functions that only call the library, of a store `s` and of a transaction `t`. */
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

/* 0 or ENOMEM. *room: what bytes->at has room for. */
int ps_py_bytes_append(struct ps_py_bytes *bytes, size_t *room, const void *data, size_t size);

#endif
