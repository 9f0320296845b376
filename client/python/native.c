/*
 * native.c - handles that Python cannot misuse (native.h). Each call is counted, so that a close
 * waits for calls in progress and refuses later ones. A transaction knows its thread, and knows
 * whether it has ended before any signal is handled. A child of fork touches nothing. The package's
 * compiled module contains this file, which never calls into Python.
 */
#include "native_state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* How many forks lie between the process that loaded the package and this one. */
static unsigned generation;

static void count_fork(void)
{
	generation++;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, count_fork);
}

/* --- calls --- */

void ps_py_hold_init(struct ps_py_hold *hold)
{
	pthread_mutex_init(&hold->lock, NULL);
	pthread_cond_init(&hold->idle, NULL);
	hold->users = 1;
	hold->is_closing = true; /* until the object has a handle */
	hold->generation = generation;
}

void ps_py_hold_share(struct ps_py_hold *hold)
{
	pthread_mutex_lock(&hold->lock);
	hold->users++;
	pthread_mutex_unlock(&hold->lock);
}

bool ps_py_hold_unshare(struct ps_py_hold *hold)
{
	bool is_last;

	pthread_mutex_lock(&hold->lock);
	is_last = --hold->users == 0;
	pthread_mutex_unlock(&hold->lock);
	return is_last;
}

bool ps_py_is_foreign(const struct ps_py_hold *hold)
{
	return hold->generation != generation;
}

int ps_py_enter(struct ps_py_hold *hold)
{
	int rc = 0;

	if (ps_py_is_foreign(hold))
		return PS_PY_FORKED;
	pthread_mutex_lock(&hold->lock);
	if (hold->is_closing)
		rc = PS_PY_CLOSED;
	else
		hold->calls++;
	pthread_mutex_unlock(&hold->lock);
	return rc;
}

void ps_py_leave(struct ps_py_hold *hold)
{
	pthread_mutex_lock(&hold->lock);
	hold->calls--;
	pthread_cond_broadcast(&hold->idle);
	pthread_mutex_unlock(&hold->lock);
}

void ps_py_bytes_free(struct ps_py_bytes *bytes)
{
	free(bytes->at);
	bytes->at = NULL;
	bytes->size = 0;
}

int ps_py_bytes_append(struct ps_py_bytes *bytes, size_t *room, const void *data, size_t size)
{
	if (*room - bytes->size < size) {
		size_t more = 2 * (bytes->size + size) + 64;
		char *at = realloc(bytes->at, more);

		if (!at)
			return PERSEAS_ENOMEM;
		bytes->at = at;
		*room = more;
	}
	if (size)
		memcpy(bytes->at + bytes->size, data, size);
	bytes->size += size;
	return 0;
}

static void on_store_event(void *arg, const struct perseas_event *event)
{
	ps_py_push_event(arg, event);
}

struct ps_py_store *ps_py_store_new(int listens)
{
	struct ps_py_store *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	ps_py_hold_init(&s->hold);
	if (!listens)
		return s;
	s->events = calloc(1, sizeof(*s->events));
	if (!s->events) {
		free(s);
		return NULL;
	}
	pthread_mutex_init(&s->events->lock, NULL);
	pthread_cond_init(&s->events->changed, NULL);
	return s;
}

void ps_py_store_let_go(struct ps_py_store *s)
{
	if (!ps_py_hold_unshare(&s->hold))
		return;
	if (s->opener)
		ps_py_standby_let_go(s->opener);
	free(s->events);
	free(s);
}

void ps_py_store_free(struct ps_py_store *s)
{
	if (ps_py_is_foreign(&s->hold))
		return;
	ps_py_close(s);
	ps_py_store_let_go(s);
}

int ps_py_store_take(struct ps_py_store *s, perseas_t *p)
{
	pthread_mutex_lock(&s->hold.lock);
	s->p = p;
	s->hold.is_closing = false;
	pthread_mutex_unlock(&s->hold.lock);
	return 0;
}

int ps_py_open(struct ps_py_store *s, const char *store, const char *mirrors,
               struct perseas_options *options)
{
	perseas_t *p;
	int rc;

	if (s->events) {
		options->on_event = on_store_event;
		options->event_arg = s;
	}
	rc = perseas_open(store, mirrors, options, &p);
	return rc ? rc : ps_py_store_take(s, p);
}

static struct ps_py_tx *find_idle(struct ps_py_store *s)
{
	struct ps_py_tx *t = s->open;

	while (t && t->is_busy)
		t = t->next;
	return t;
}

int ps_py_close(struct ps_py_store *s)
{
	struct ps_py_tx *t;
	perseas_t *p;

	if (ps_py_is_foreign(&s->hold))
		return PS_PY_FORKED;
	pthread_mutex_lock(&s->hold.lock);
	s->hold.is_closing = true;
	/* Aborting a transaction may release what a call of another thread waits for. */
	while ((t = find_idle(s)) || s->hold.calls) {
		if (t) {
			perseas_abort(t->tx);
			ps_py_tx_forget(t);
		} else {
			pthread_cond_wait(&s->hold.idle, &s->hold.lock);
		}
	}
	p = s->p;
	s->p = NULL;
	pthread_mutex_unlock(&s->hold.lock);
	int rc = p ? perseas_close(p) : 0;

	ps_py_end_events(s);
	return rc;
}

int ps_py_error(struct ps_py_store *s, char *buffer, size_t size, int *code)
{
	GUARDED(perseas_error(s->p, buffer, size, code));
}

static int copy_report(struct ps_py_store *s, struct ps_py_bytes *text)
{
	const char *report = perseas_report(s->p);
	size_t room = 0;

	return ps_py_bytes_append(text, &room, report, strlen(report));
}

int ps_py_report(struct ps_py_store *s, struct ps_py_bytes *text)
{
	GUARDED(copy_report(s, text));
}

int ps_py_map(struct ps_py_store *s, const char *segment, size_t size, void *at, int here,
              void **addr, ptrdiff_t *moved)
{
	*moved = 0;
	GUARDED(here ? perseas_map_at(s->p, segment, size, at, addr, moved)
	             : perseas_map(s->p, segment, size, addr));
}

int ps_py_map_reserve(struct ps_py_store *s, const char *segment, size_t size, size_t most,
                      void **addr)
{
	GUARDED(perseas_map_reserve(s->p, segment, size, most, addr, NULL));
}

int ps_py_grow(struct ps_py_store *s, const char *segment, size_t size)
{
	GUARDED(perseas_segment_grow(s->p, segment, size));
}

int ps_py_map_over(struct ps_py_store *s, const char *segment, void *retained)
{
	GUARDED(perseas_map_over(s->p, segment, retained));
}

int ps_py_publish(struct ps_py_store *s)
{
	GUARDED(perseas_publish(s->p));
}

int ps_py_unmap(struct ps_py_store *s, void *addr)
{
	GUARDED(perseas_unmap(s->p, addr));
}

int ps_py_retain(struct ps_py_store *s, void *addr)
{
	GUARDED(perseas_retain(s->p, addr));
}

int ps_py_destroy(struct ps_py_store *s, const char *segment)
{
	GUARDED(perseas_segment_destroy(s->p, segment));
}

int ps_py_flush(struct ps_py_store *s)
{
	GUARDED(perseas_flush(s->p));
}

int ps_py_confirm(struct ps_py_store *s)
{
	GUARDED(perseas_confirm(s->p));
}

int ps_py_stat(struct ps_py_store *s, struct perseas_stat *stat)
{
	GUARDED(perseas_stat(s->p, stat));
}

int ps_py_mirror_stat(struct ps_py_store *s, unsigned index, struct perseas_mirror_stat *stat)
{
	GUARDED(perseas_mirror_stat(s->p, index, stat));
}

int ps_py_latency(struct ps_py_store *s, struct perseas_latency *latency)
{
	GUARDED(perseas_latency(s->p, latency));
}

int ps_py_segment_at(struct ps_py_store *s, unsigned index, struct perseas_segment_info *info)
{
	GUARDED(perseas_segment_at(s->p, index, info));
}

int ps_py_segment(struct ps_py_store *s, const char *name, struct perseas_segment_info *info)
{
	GUARDED(perseas_segment(s->p, name, info));
}

int ps_py_wait_whole(struct ps_py_store *s, int64_t timeout_ms)
{
	GUARDED(perseas_wait_whole(s->p, timeout_ms));
}

int ps_py_prefetch(struct ps_py_store *s, const void *addr, size_t len)
{
	GUARDED(perseas_prefetch(s->p, addr, len));
}

int ps_py_wait(struct ps_py_store *s, const struct perseas_token *token, int64_t timeout_ms)
{
	GUARDED(perseas_wait(s->p, token, timeout_ms));
}

int ps_py_posted(struct ps_py_store *s, struct perseas_token *token)
{
	GUARDED(perseas_posted(s->p, token));
}

int ps_py_durable(struct ps_py_store *s, struct perseas_token *token)
{
	GUARDED(perseas_durable(s->p, token));
}

int ps_py_fd(struct ps_py_store *s)
{
	GUARDED(perseas_fd(s->p));
}

int ps_py_here(struct ps_py_store *s, const void *recorded, void **here)
{
	GUARDED(!(*here = perseas_here(s->p, recorded)) ? PERSEAS_ERANGE : 0);
}

int ps_py_recorded(struct ps_py_store *s, const void *here, void **recorded)
{
	GUARDED(!(*recorded = perseas_recorded(s->p, here)) ? PERSEAS_ERANGE : 0);
}

int ps_py_open_transactions(struct ps_py_store *s, struct perseas_transaction *list, size_t max,
                            size_t *count)
{
	GUARDED(perseas_open_transactions(s->p, list, max, count));
}

int ps_py_copy_committed(struct ps_py_store *s, const struct perseas_piece *pieces, size_t count,
                         struct perseas_token *token)
{
	GUARDED(perseas_copy_committed(s->p, pieces, count, token));
}

int ps_py_roster(struct ps_py_store *s, const struct perseas_roster_change *change)
{
	GUARDED(perseas_roster(s->p, change));
}

int ps_py_inherit(void *addr, size_t size, int yes)
{
	return madvise(addr, size, yes ? MADV_DOFORK : MADV_DONTFORK);
}

int ps_py_let_go(void *addr, size_t size)
{
	return munmap(addr, size);
}
