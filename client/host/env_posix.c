/*
 * env_posix.c - the real env: this host's clocks, threads and sockets. ps_env_posix makes it for
 * every handle and standby.
 */
#include "control_socket.h"
#include "../core/env.h"
#include "list_lookup.h"
#include "resolver.h"
#include "secure.h"
#include "socket.h"
#include "../../proto/base/boot.h"
#include "../../proto/control/version.h"
#include "../../proto/data/frame.h"
#include "../../proto/base/standard_streams.h"
#include "../core/cancel.h"

#include <assert.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Returns true if the environment variable has the value "off". */
static bool is_switched_off(const char *variable)
{
	const char *wanted = getenv(variable);

	return wanted && strcmp(wanted, "off") == 0;
}

#if PERSEAS_RDMA

#define WITHOUT_RDMA "RDMA is switched off (PERSEAS_RDMA=off in the environment)"

static const struct ps_verbs *verbs_of_process(void)
{
	return is_switched_off("PERSEAS_RDMA") ? NULL : &ps_verbs_system;
}

static void free_devices(struct ps_env *env)
{
	ps_devices_free(env->devices);
}

/* Returns 0 if this process can use RDMA to the address, or an error code. */
static int check_rdma(struct ps_env *env, const struct ps_address *address, struct ps_error *error)
{
	return ps_verbs_check_possible(env->verbs, address, error);
}

#else

#define WITHOUT_RDMA "this libperseas was built without RDMA"

static const struct ps_verbs *verbs_of_process(void)
{
	return NULL;
}

static void free_devices(struct ps_env *env)
{
	(void)env;
}

static int check_rdma(struct ps_env *env, const struct ps_address *address, struct ps_error *error)
{
	(void)env;
	(void)address;
	(void)error;
	return 0;
}

#endif

enum { PAUSE_MAX = 4 * PS_MIRRORS_MAX }; /* descriptors in one call of pause, at most */

/* Waking a thread that is awake costs no system call: the thread checks `woken` before it sleeps,
 * and the waker writes to the eventfd only if `asleep` is set. */
struct sleeper {
	int fd;
	atomic_bool asleep;
	atomic_bool woken;
};

struct posix_env {
	struct ps_env env;
	struct ps_controls controls;
	struct sleeper sleepers[PS_SLEEPERS];
	struct thread {
		pthread_t id;
		bool spawned;
		void (*fn)(void *arg);
		void *arg;
	} threads[PS_SLEEPERS];
};

static struct posix_env *posix_env_of(struct ps_env *env)
{
	return (struct posix_env *)env;
}

static uint64_t posix_now(struct ps_env *env)
{
	(void)env;
	return ps_monotonic();
}

static uint64_t posix_clock(struct ps_env *env)
{
	struct timespec now;

	(void)env;
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void posix_random(struct ps_env *env, void *bytes, size_t len)
{
	uint8_t *at = bytes;
	ssize_t n;

	(void)env;
	while (len > 0) {
		n = getrandom(at, len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		/* Ids that are not random could collide. */
		if (n <= 0)
			abort();
		at += n;
		len -= (size_t)n;
	}
}

static void posix_pause(struct ps_env *env, enum ps_sleeper who, struct pollfd *fds, unsigned count,
                        uint64_t until_ns)
{
	PS_UNCANCELLED;
	struct sleeper *sleeper;
	struct pollfd all[PAUSE_MAX + 1];
	uint64_t drained;
	bool twice;

	assert(count <= PAUSE_MAX);
	if (who == PS_UNWOKEN) {
		ps_poll(fds, count, until_ns);
		return;
	}
	sleeper = &posix_env_of(env)->sleepers[who];
	if (count)
		memcpy(all, fds, count * sizeof(*fds));
	all[count].fd = sleeper->fd;
	all[count].events = POLLIN;
	all[count].revents = 0;

	twice = atomic_exchange(&sleeper->asleep, true);
	assert(!twice);
	(void)twice;
	ps_poll(all, count + 1, atomic_load(&sleeper->woken) ? 0 : until_ns);
	atomic_store(&sleeper->asleep, false);
	if (all[count].revents)
		(void)!read(sleeper->fd, &drained, sizeof(drained));
	/* Orders everything that the waker did before what the caller does next. */
	atomic_exchange(&sleeper->woken, false);
	if (count)
		memcpy(fds, all, count * sizeof(*fds));
}

static void posix_wake(struct ps_env *env, enum ps_sleeper who)
{
	PS_UNCANCELLED;
	struct sleeper *sleeper = &posix_env_of(env)->sleepers[who];
	const uint64_t one = 1;

	atomic_store(&sleeper->woken, true);
	if (atomic_load(&sleeper->asleep))
		(void)!write(sleeper->fd, &one, sizeof(one));
}

static void posix_wait(struct ps_env *env, pthread_cond_t *cond, pthread_mutex_t *lock,
                       uint64_t until_ns)
{
	PS_UNCANCELLED;
	struct timespec until = {
		.tv_sec = (time_t)(until_ns / 1000000000),
		.tv_nsec = (long)(until_ns % 1000000000),
	};

	(void)env;
	if (until_ns == PS_NEVER)
		pthread_cond_wait(cond, lock);
	else
		pthread_cond_timedwait(cond, lock, &until);
}

static void posix_broadcast(struct ps_env *env, pthread_cond_t *cond)
{
	(void)env;
	pthread_cond_broadcast(cond);
}

static bool posix_barrier(struct ps_env *env)
{
	(void)env;
	/* A second registration costs nothing, and a child of fork needs it. */
	return syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
	       syscall(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static void *run_thread(void *arg)
{
	struct thread *thread = arg;

	thread->fn(thread->arg);
	return NULL;
}

static int posix_spawn_thread(struct ps_env *env, enum ps_sleeper who, void (*fn)(void *arg),
                              void *arg)
{
	struct thread *thread = &posix_env_of(env)->threads[who];
	sigset_t all, before;
	int error;

	assert(!thread->spawned);
	thread->fn = fn;
	thread->arg = arg;
	/* Signals are for the application's threads, except SIGBUS: a fault in memory that a mirror
	 * shares concerns the thread that touches it (proto/image/sigbus_guard.h). */
	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread->id, NULL, run_thread, thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	thread->spawned = error == 0;
	return error == 0 ? 0 : PERSEAS_ESYSTEM;
}

static void posix_join(struct ps_env *env, enum ps_sleeper who)
{
	struct thread *thread = &posix_env_of(env)->threads[who];

	if (thread->spawned)
		pthread_join(thread->id, NULL);
	thread->spawned = false;
}

static struct ps_control *posix_connect(struct ps_env *env, const struct ps_address *address,
                                        struct ps_error *error)
{
	char ignored[512];

	/* Certificates may be renewed while an owner runs. If the new ones cannot be used, the old
	 * ones may still be valid, or the handshake reports the error. */
	if (env->tls)
		(void)ps_tls_refresh(env->tls, ignored, sizeof(ignored));
	return ps_control_connect(&posix_env_of(env)->controls, env->tls, address, error);
}

static void posix_expiries(struct ps_env *env, struct ps_expiries *expiries)
{
	char ignored[512];

	memset(expiries, 0, sizeof(*expiries));
	if (!env->tls)
		return;
	(void)ps_tls_refresh(env->tls, ignored, sizeof(ignored));
	ps_tls_own_expiries(env->tls, posix_clock(env) / 1000000000, expiries);
}

static int fail_without_rdma(const struct ps_address *address, struct ps_error *error)
{
	return ps_error_set(error, PERSEAS_ERDMA,
	                    "%s: " WITHOUT_RDMA "; without RDMA it is tcp://%s:%s", address->text,
	                    address->host, address->port);
}

static int posix_has_route(struct ps_env *env, const struct ps_address *address,
                           struct ps_error *error)
{
	if (address->scheme != PS_SCHEME_TCP || address->route != PS_ROUTE_RDMA)
		return 0;
	return env->verbs ? check_rdma(env, address, error) : fail_without_rdma(address, error);
}

/* Attach of the fabric `no_rdma`: fails with the reason why this process has no RDMA. */
static struct ps_link *refuse_rdma(struct ps_env *env, const struct ps_address *address,
                                   const Perseas__Grant *grant, const int *fds, uint64_t epoch,
                                   uint64_t until_ns, struct ps_error *error)
{
	(void)env;
	(void)epoch;
	(void)until_ns;
	ps_close_all(fds, grant->descriptors);
	fail_without_rdma(address, error);
	return NULL;
}

static const struct ps_fabric no_rdma = { .name = "rdma", .attach = refuse_rdma };

#define FABRIC(name) &ps_fabric_##name,
static const struct ps_fabric *const fabrics[] = { PS_FABRICS(FABRIC) };
#undef FABRIC

static const struct ps_fabric *posix_fabric(struct ps_env *env, const struct ps_address *address,
                                            const Perseas__Grant *grant, unsigned tried)
{
	if (address->route == PS_ROUTE_RDMA && !env->verbs)
		return tried == 0 ? &no_rdma : NULL;
	for (size_t i = 0; i < sizeof(fabrics) / sizeof(*fabrics); i++)
		if (fabrics[i]->is_usable_for(env, address, grant) && tried-- == 0)
			return fabrics[i];
	return NULL;
}

static void posix_free(struct ps_env *env)
{
	struct posix_env *posix = posix_env_of(env);
	int i;

	if (!env)
		return;
	free_devices(env);
	free((struct ps_inherited *)(uintptr_t)env->told_by_run);
	ps_controls_close(&posix->controls);
	ps_tls_free(env->tls);
	for (i = 0; i < PS_SLEEPERS; i++) {
		assert(!posix->threads[i].spawned);
		if (posix->sleepers[i].fd >= 0)
			close(posix->sleepers[i].fd);
	}
	free(posix);
}

static const struct ps_env_ops posix_ops = {
	.now = posix_now,
	.clock = posix_clock,
	.random = posix_random,
	.pause = posix_pause,
	.wake = posix_wake,
	.wait = posix_wait,
	.broadcast = posix_broadcast,
	.barrier = posix_barrier,
	.spawn = posix_spawn_thread,
	.join = posix_join,
	.connect = posix_connect,
	.send = ps_control_send,
	.receive = ps_control_receive,
	.answered = ps_control_answered,
	.ended = ps_control_ended,
	.control_fd = ps_control_fd,
	.version = ps_control_version,
	.fill_control_pollfd = ps_control_waits,
	.last_progress_at = ps_control_worked_at,
	.beat = ps_control_beat,
	.expect_heartbeats = ps_control_hear,
	.silent = ps_control_silent,
	.give_to_lifeline_thread = ps_control_entrust,
	.disconnect = ps_control_disconnect,
	.expiries = posix_expiries,
	.shown_expiries = ps_control_shown_expiries,
	.list_begin = ps_list_lookup_begin,
	.list_await = ps_list_lookup_wait,
	.list_fd = ps_list_lookup_fd,
	.list_drop = ps_list_lookup_drop,
	.has_route = posix_has_route,
	.fabric = posix_fabric,
	.free = posix_free,
};

/* Reads what `perseas run` passed to this process. Returns 0, or PERSEAS_ENOMEM. */
static int read_inherited(struct ps_env *env)
{
	const char *text = getenv(PS_INHERITED_VARIABLE);
	struct ps_inherited *inherited;

	if (!text)
		return 0;
	inherited = malloc(sizeof(*inherited));
	if (!inherited)
		return PERSEAS_ENOMEM;
	ps_inherited_read(inherited, text);
	env->told_by_run = inherited;
	env->has_owner_mark = inherited->has_mark;
	memcpy(env->owner_mark, inherited->mark, sizeof(env->owner_mark));
	ps_resolver_import(inherited->answered_addresses);
	return 0;
}

struct ps_env *ps_env_posix(const struct perseas_options *options, struct ps_error *error)
{
	const char *protocol = getenv(PS_PROTOCOL_VARIABLE);
	struct posix_env *posix;
	int failed = 0;
	int i;

	if (!ps_version_limit_from_text(protocol)) {
		ps_error_set(error, PERSEAS_EINVAL,
		             PS_PROTOCOL_VARIABLE
		             "=%.40s: this library speaks versions %d to %d of "
		             "the protocol; unset it, or name one of these",
		             protocol, PS_PROTOCOL_LEAST, PS_PROTOCOL_VERSION);
		return NULL;
	}
	posix = calloc(1, sizeof(*posix));
	if (!posix || read_inherited(&posix->env)) {
		free(posix);
		ps_error_set(error, PERSEAS_ENOMEM, "no memory for a handle");
		return NULL;
	}
	posix->env.ops = &posix_ops;
	posix->env.verbs = verbs_of_process();
	posix->env.has_boot_id = ps_boot_id(posix->env.boot_id);
	posix->env.pager = &ps_pager_uffd;
	posix->env.has_lifelines = !is_switched_off("PERSEAS_LIFELINES");
	if (!is_switched_off("PERSEAS_WRITTEN_PAGES"))
		posix->env.written = &ps_written_pages;
	ps_controls_init(&posix->controls);
	for (i = 0; i < PS_SLEEPERS; i++) {
		posix->sleepers[i].fd = ps_above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
		if (posix->sleepers[i].fd < 0)
			failed = errno;
		posix->env.wake_fds[i] = posix->sleepers[i].fd;
	}
	if (failed) {
		ps_error_set(error, PERSEAS_ESYSTEM,
		             "no eventfd (%s); raise the limit on open files", strerror(failed));
		posix_free(&posix->env);
		return NULL;
	}
	if (ps_secure_load_files(options, &posix->env.tls, error)) {
		posix_free(&posix->env);
		return NULL;
	}
	return &posix->env;
}
