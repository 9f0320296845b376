/*
 * native_standby.c - standbys for the Python package (native.h).
 */
#include "native_state.h"

#include <stdlib.h>

static void on_standby_event(void *arg, const struct perseas_event *event)
{
	struct ps_py_standby *b = arg;

	/* Under the lock: a store is not freed while it is the listener. */
	pthread_mutex_lock(&b->hold.lock);
	if (b->listener)
		ps_py_push_event(b->listener, event);
	pthread_mutex_unlock(&b->hold.lock);
}

void ps_py_standby_let_go(struct ps_py_standby *b)
{
	if (ps_py_hold_unshare(&b->hold))
		free(b);
}

struct ps_py_standby *ps_py_standby_new(void)
{
	struct ps_py_standby *b = calloc(1, sizeof(*b));

	if (b)
		ps_py_hold_init(&b->hold);
	return b;
}

void ps_py_standby_free(struct ps_py_standby *b)
{
	if (ps_py_is_foreign(&b->hold))
		return;
	ps_py_standby_close(b);
	ps_py_standby_let_go(b);
}

int ps_py_standby(struct ps_py_standby *b, const char *store, const char *mirrors,
                  struct perseas_options *options)
{
	int rc;

	options->on_event = on_standby_event;
	options->event_arg = b;
	rc = perseas_standby(store, mirrors, options, &b->standby);
	if (!rc)
		b->hold.is_closing = false;
	return rc;
}

int ps_py_standby_close(struct ps_py_standby *b)
{
	perseas_standby_t *standby;

	if (ps_py_is_foreign(&b->hold))
		return PS_PY_FORKED;
	pthread_mutex_lock(&b->hold.lock);
	b->hold.is_closing = true;
	if (b->standby && b->hold.calls)
		perseas_standby_cancel(b->standby);
	while (b->hold.calls)
		pthread_cond_wait(&b->hold.idle, &b->hold.lock);
	standby = b->standby;
	b->standby = NULL;
	pthread_mutex_unlock(&b->hold.lock);
	return perseas_standby_close(standby);
}

static void listen_to(struct ps_py_standby *b, struct ps_py_store *s)
{
	pthread_mutex_lock(&b->hold.lock);
	b->listener = s;
	pthread_mutex_unlock(&b->hold.lock);
}

int ps_py_standby_wait(struct ps_py_standby *b, int64_t timeout_ms, struct ps_py_store *s)
{
	perseas_t *p;
	int rc = ps_py_enter(&b->hold);

	if (rc)
		return rc;
	if (!s->opener) {
		ps_py_hold_share(&b->hold);
		s->opener = b;
	}
	listen_to(b, s);
	rc = perseas_standby_wait(b->standby, timeout_ms, &p);
	if (rc)
		listen_to(b, NULL);
	else
		ps_py_store_take(s, p);
	ps_py_leave(&b->hold);
	return rc;
}

#define WITH_STANDBY(call)                      \
	do {                                    \
		int rc = ps_py_enter(&b->hold); \
                                                \
		if (rc)                         \
			return rc;              \
		rc = (call);                    \
		ps_py_leave(&b->hold);          \
		return rc;                      \
	} while (0)

int ps_py_standby_stat(struct ps_py_standby *b, struct perseas_standby_stat *stat)
{
	WITH_STANDBY(perseas_standby_stat(b->standby, stat));
}

int ps_py_standby_mirror(struct ps_py_standby *b, unsigned index,
                         struct perseas_standby_mirror *mirror)
{
	WITH_STANDBY(perseas_standby_mirror(b->standby, index, mirror));
}

int ps_py_standby_fd(struct ps_py_standby *b)
{
	WITH_STANDBY(perseas_standby_fd(b->standby));
}

int ps_py_standby_cancel(struct ps_py_standby *b)
{
	WITH_STANDBY(perseas_standby_cancel(b->standby));
}
