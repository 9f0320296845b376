/*
 * standby.c - perseas_standby and the other functions of perseas_standby.h. They never touch what
 * the thread owns while it runs (standby.h).
 */
#include "standby.h"

#include "../core/flag_fd.h"
#include "../open/open.h"
#include "../core/cancel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- opening and closing --- */

static int check_arguments(const char *store, const char *mirrors,
                           const struct perseas_options *options, struct ps_error *error)
{
	/* ps_handle_new checks names, list and options. */
	if (!store || !mirrors)
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "a standby needs the name of a store and a list of mirrors");
	if (options && (options->size < sizeof(size_t) || options->size > sizeof(*options)))
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "options.size is %zu: begin with PERSEAS_OPTIONS_INIT",
		                    options->size);
	return 0;
}

static int check_options(const struct perseas_options *options, struct ps_error *error)
{
	if (options->name && !ps_name_valid(options->name))
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "options.name cannot name a standby: 1 to %d of A-Z a-z 0-9 . "
		                    "_ -, not beginning with a dot",
		                    PS_NAME_MAX);
	if (options->name && options->order > PS_ORDER_MAX)
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "options.order of a standby with a name is %d at most",
		                    PS_ORDER_MAX);
	if (options->flags & PERSEAS_TAKEOVER)
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "a standby never fences a live owner: leave out "
		                    "PERSEAS_TAKEOVER, or call perseas_open");
	if (options->flags & PERSEAS_SALVAGE)
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "a standby cannot salvage a store: call perseas_open with "
		                    "PERSEAS_SALVAGE");
	if (options->flags & PERSEAS_CANCEL)
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "a standby cannot take back a change of the roster: call "
		                    "perseas_open with PERSEAS_CANCEL");
	return 0;
}

/* Replaces *string by a copy. Returns false if there is no memory. */
static bool copy_string(const char **string)
{
	if (*string)
		*string = strdup(*string);
	return *string;
}

/* Copies the arguments, with the strings of the options, because every new handle needs them. */
static int copy_arguments(struct perseas_standby *s, const char *store, const char *mirrors,
                          const struct perseas_options *options, struct ps_error *error)
{
	const char **strings[] = { &s->options.tls_cert, &s->options.tls_key, &s->options.tls_ca,
		                   &s->options.tls_crl, &s->options.name };
	bool short_of = false;

	if (options)
		memcpy(&s->options, options, options->size);
	s->options.size = sizeof(s->options);
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		short_of |= *strings[i] && !copy_string(strings[i]);
	snprintf(s->store, sizeof(s->store), "%s", store);
	s->mirrors = strdup(mirrors);
	s->turn.order = s->options.order;
	if (short_of || !s->mirrors)
		return ps_error_set(error, PERSEAS_ENOMEM, "out of memory");
	return check_options(&s->options, error);
}

static void standby_free(struct perseas_standby *s)
{
	ps_warm_thread_end(s->warmth);
	if (s->env)
		s->env->ops->free(s->env);
	if (s->flag_fd >= 0)
		close(s->flag_fd);
	free((void *)(uintptr_t)s->options.tls_cert);
	free((void *)(uintptr_t)s->options.tls_key);
	free((void *)(uintptr_t)s->options.tls_ca);
	free((void *)(uintptr_t)s->options.tls_crl);
	free((void *)(uintptr_t)s->options.name);
	free(s->mirrors);
	ps_known_store_release(s->known);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int standby_begin(struct perseas_standby *s, const char *store, const char *mirrors,
                         const struct perseas_options *options, struct ps_error *error)
{
	int rc = copy_arguments(s, store, mirrors, options, error);

	if (rc)
		return rc;
	s->env = ps_env_posix(&s->options, error);
	if (!s->env)
		return error->code;
	/* perseas run gives the process that it starts the mark that it has told the mirrors. */
	if (s->options.name && !s->env->has_owner_mark) {
		s->env->ops->random(s->env, s->env->owner_mark, sizeof(s->env->owner_mark));
		s->env->has_owner_mark = true;
	}
	s->known = ps_known_store_new();
	if (!s->known)
		return ps_error_set(error, PERSEAS_ENOMEM, "out of memory");
	s->flag_fd = ps_flag_fd_new(error);
	return s->flag_fd < 0 ? error->code : ps_standby_thread_begin(s, error);
}

int perseas_standby(const char *store, const char *mirrors, const struct perseas_options *options,
                    perseas_standby_t **out)
{
	PS_UNCANCELLED;
	struct ps_error error = { 0 };
	struct perseas_standby *s;
	int rc;

	if (!out)
		return ps_fail(NULL, PERSEAS_EINVAL, "a standby needs a place for its handle");
	*out = NULL;
	if (check_arguments(store, mirrors, options, &error))
		return ps_fail_error(NULL, &error);
	s = calloc(1, sizeof(*s));
	if (!s)
		return ps_fail(NULL, PERSEAS_ENOMEM, "out of memory");
	s->pid = getpid();
	s->flag_fd = -1;
	pthread_mutex_init(&s->lock, NULL);
	rc = standby_begin(s, store, mirrors, options, &error);
	if (rc) {
		standby_free(s);
		return ps_fail_error(NULL, &error);
	}
	*out = s;
	return 0;
}

int perseas_standby_close(perseas_standby_t *s)
{
	PS_UNCANCELLED;
	if (!s || s->pid != getpid())
		return 0;
	if (ps_standby_stage(s) != PS_STANDBY_IDLE)
		ps_standby_thread_end(s);
	standby_free(s);
	return 0;
}

/* Returns 0, or PERSEAS_EINVAL if this process did not make the standby. */
static int check_standby(const struct perseas_standby *s)
{
	if (!s)
		return ps_fail(NULL, PERSEAS_EINVAL, "s is NULL");
	if (s->pid != getpid())
		return ps_fail(NULL, PERSEAS_EINVAL,
		               "this standby belongs to process %ld: a child of fork makes its own",
		               (long)s->pid);
	return 0;
}

/* --- waiting --- */

static uint64_t deadline_ns(struct perseas_standby *s, int64_t timeout_ms)
{
	const uint64_t now_ns = s->env->ops->now(s->env);

	if (timeout_ms < 0 || (uint64_t)timeout_ms > (PS_NEVER - 1 - now_ns) / 1000000)
		return PS_NEVER;
	return now_ns + (uint64_t)timeout_ms * 1000000;
}

/* The parts of a standby that a wait needs, read at one moment. */
struct wait_view {
	bool handed, due;
	struct ps_error fault;
	char text[sizeof(((struct perseas_standby_stat *)NULL)->text)];
};

static void read_wait_view(struct perseas_standby *s, struct wait_view *wait_view)
{
	pthread_mutex_lock(&s->lock);
	wait_view->handed = s->stage == PS_STANDBY_HANDED;
	wait_view->due = s->stat.state == PERSEAS_STANDBY_DUE;
	wait_view->fault = s->fault;
	memcpy(wait_view->text, s->stat.text, sizeof(wait_view->text));
	pthread_mutex_unlock(&s->lock);
}

/* Waits until the thread has handed the store over. Returns 0 or an error code. */
static int await_turn(struct perseas_standby *s, uint64_t until_ns, struct ps_error *error)
{
	struct wait_view now;

	for (;;) {
		read_wait_view(s, &now);
		if (atomic_exchange(&s->cancelled, false))
			return ps_error_set(error, PERSEAS_ECANCELLED,
			                    "the wait for store '%s' was cancelled", s->store);
		if (now.handed)
			return 0;
		if (now.fault.code) {
			*error = now.fault;
			return error->code;
		}
		/* After until_ns, wait no longer for a turn; but if the turn has come, the handover
		 * is a matter of moments. */
		if (!now.due && s->env->ops->now(s->env) >= until_ns)
			return ps_error_set(error, PERSEAS_ETIMEOUT,
			                    "store '%s' was not free in time: %s", s->store,
			                    now.text);
		s->env->ops->pause(s->env, PS_COMMITTER, NULL, 0, now.due ? PS_NEVER : until_ns);
	}
}

/* Returns true if a wait goes on after an open failed with rc: another process was faster, or
 * mirrors disappeared. */
static bool is_retryable(int rc)
{
	return rc == PERSEAS_EBUSY || rc == PERSEAS_EFENCED || rc == PERSEAS_EQUORUM ||
	       rc == PERSEAS_EUNREACHABLE;
}

static int open_store(struct perseas_standby *s, perseas_t **p, struct ps_error *error)
{
	const int rc = ps_open_handle(ps_standby_thread_take(s), p, error);

	ps_standby_thread_end_watches(s);
	if (!rc)
		ps_turn_reset(&s->turn);
	/* If another owner has the store, the next look sees it, and the rest ends. */
	else
		ps_turn_note_failure(&s->turn, s->env->ops->now(s->env));
	return rc;
}

static int become_owner(struct perseas_standby *s, uint64_t until_ns, perseas_t **p,
                        struct ps_error *error)
{
	int rc = 0;

	for (;;) {
		if (ps_standby_stage(s) == PS_STANDBY_IDLE)
			rc = ps_standby_thread_begin(s, error);
		if (rc)
			return rc;
		s->env->ops->wake(s->env, PS_KEEPER);
		rc = await_turn(s, until_ns, error);
		if (rc)
			return rc;
		rc = open_store(s, p, error);
		if (!rc || !is_retryable(rc))
			return rc;
		rc = 0;
	}
}

/* Returns false if another thread is waiting. */
static bool begin_wait(struct perseas_standby *s)
{
	bool free;

	pthread_mutex_lock(&s->lock);
	free = !s->is_waiting;
	if (free)
		s->is_waiting = s->can_hand_over = true;
	pthread_mutex_unlock(&s->lock);
	return free;
}

/* Ends a wait. After an error the standby follows the store as before, even if the store was just
 * handed to this wait. No other thread can wait before this returns, because it frees what the
 * standby's thread used. */
static void end_wait(struct perseas_standby *s, bool wait_failed)
{
	struct ps_error ignored;
	enum ps_standby_stage stage;

	pthread_mutex_lock(&s->lock);
	s->can_hand_over = false;
	ps_standby_signal(s);
	pthread_mutex_unlock(&s->lock);
	stage = ps_standby_stage(s);
	if (stage == PS_STANDBY_HANDED)
		ps_standby_thread_end(s);
	/* If this fails, the next wait tries again. */
	if (wait_failed && stage != PS_STANDBY_FOLLOWING)
		ps_standby_thread_begin(s, &ignored);
	pthread_mutex_lock(&s->lock);
	s->is_waiting = false;
	pthread_mutex_unlock(&s->lock);
}

int perseas_standby_wait(perseas_standby_t *s, int64_t timeout_ms, perseas_t **p)
{
	PS_UNCANCELLED;
	struct ps_error error = { 0 };
	int rc;

	if (!p)
		return ps_fail(NULL, PERSEAS_EINVAL, "a wait needs a place for the store's handle");
	*p = NULL;
	rc = check_standby(s);
	if (rc)
		return rc;
	if (!begin_wait(s))
		return ps_fail(NULL, PERSEAS_EINVAL,
		               "another thread is already waiting with this standby");
	rc = become_owner(s, deadline_ns(s, timeout_ms), p, &error);
	end_wait(s, rc != 0);
	return rc ? ps_fail_error(NULL, &error) : 0;
}

int perseas_standby_cancel(perseas_standby_t *s)
{
	const int rc = s && s->pid == getpid() ? 0 : PERSEAS_EINVAL;

	if (rc)
		return rc;
	atomic_store(&s->cancelled, true);
	ps_flag_fd_raise(s->flag_fd);
	s->env->ops->wake(s->env, PS_COMMITTER);
	return 0;
}

/* --- state --- */

int perseas_standby_fd(perseas_standby_t *s)
{
	const int rc = check_standby(s);

	return rc ? rc : s->flag_fd;
}

int perseas_standby_stat(perseas_standby_t *s, struct perseas_standby_stat *stat)
{
	PS_UNCANCELLED;
	struct ps_warm_thread_figures figures;
	const int rc = check_standby(s);

	if (rc)
		return rc;
	if (!stat)
		return ps_fail(NULL, PERSEAS_EINVAL, "stat is NULL");
	pthread_mutex_lock(&s->lock);
	*stat = s->stat;
	if (s->warmth) {
		ps_warm_thread_read_figures(s->warmth, &figures);
		stat->memory = figures.total;
		stat->warm = figures.here;
	}
	pthread_mutex_unlock(&s->lock);
	return 0;
}

int perseas_standby_mirror(perseas_standby_t *s, unsigned index,
                           struct perseas_standby_mirror *mirror)
{
	PS_UNCANCELLED;
	const int rc = check_standby(s);
	bool there;

	if (rc)
		return rc;
	if (!mirror)
		return ps_fail(NULL, PERSEAS_EINVAL, "mirror is NULL");
	pthread_mutex_lock(&s->lock);
	there = index < s->stat.mirrors;
	if (there)
		*mirror = s->mirrors_seen[index];
	pthread_mutex_unlock(&s->lock);
	return there ? 0 : ps_fail(NULL, PERSEAS_EINVAL, "the standby has no mirror %u", index);
}

const char *perseas_standby_state_name(int state)
{
	switch (state) {
	case PERSEAS_STANDBY_IDLE:
		return "idle";
	case PERSEAS_STANDBY_UNKNOWN:
		return "unknown-owner";
	case PERSEAS_STANDBY_OWNED:
		return "owned";
	case PERSEAS_STANDBY_FREE:
		return "free";
	case PERSEAS_STANDBY_DUE:
		return "due";
	default:
		return "unknown";
	}
}
