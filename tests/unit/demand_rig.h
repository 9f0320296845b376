/*
 * demand_rig.h - what the tests of recovery on demand share: mirrors that are processes of their
 * own, which can be killed and started again, a store in them, and a gate through which nothing is
 * fetched while it is shut.
 */
#ifndef PERSEAS_TESTS_DEMAND_RIG_H
#define PERSEAS_TESTS_DEMAND_RIG_H

#include "../../client/core/env.h"
#include "../../client/core/handle.h"
#include "../../proto/image/sigbus_guard.h"
#include "../support/memory_folder.h"
#include "../support/patient_daemon.h"
#include "apart.h"

#define STORE "bank"

#ifndef RIG_SIZE
#define RIG_SIZE ((4 << 20) + 1234) /* no multiple of anything */
#endif

enum {
	MIRRORS = 2,
	SIZE = RIG_SIZE,
	PATIENCE = 500000, /* milliseconds: ends a test that hangs, just before its alarm does */
};

/* Looks until the condition holds, for work of another process or thread that nothing here reports.
 * Fails the test if it never holds. */
#define RIG_UNTIL(condition)                                       \
	do {                                                       \
		for (int looks = 0; !(condition); looks++) {       \
			if (looks == PATIENCE)                     \
				fail_msg("never: %s", #condition); \
			poll(NULL, 0, 1);                          \
		}                                                  \
	} while (0)

struct rig_mirror {
	char directory[64];
	char keys[64]; /* a folder with the certificates of all; "": connections are plain text */
	uint16_t port; /* 0: has never run */
	pid_t pid;
};

struct rig {
	struct rig_mirror mirrors[MIRRORS];
	char list[256];
	perseas_t *p;
	uint8_t *bytes;                         /* of segment "accounts" */
	_Atomic unsigned waits, wholes;         /* events of these kinds */
	char told[256];                         /* by the last of `waits` */
	uint64_t rate;                          /* perseas_options.fetch_rate */
	unsigned patience_ms;                   /* with a mirror that hangs; 0: none does */
	void (*change)(struct ps_env_ops *ops); /* of the next open; NULL: nothing */
};

/* --- the gate --- */

static struct ps_pager_ops rig_pager;
static atomic_bool rig_shut;
static _Atomic uint64_t rig_first = UINT64_MAX; /* offset of the first that was asked for */

static bool rig_ask(struct ps_pager *pager, unsigned which, const struct ps_fetch_request *missing)
{
	uint64_t none = UINT64_MAX;

	atomic_compare_exchange_strong(&rig_first, &none, missing->offset);
	return !atomic_load(&rig_shut) && ps_pager_uffd.ask(pager, which, missing);
}

/* --- memory --- */

/* The kernel gets no further than the end of `part`, as where it has no memory for more. */
static inline uint32_t rig_fill_part(struct ps_pager *pager, uint8_t *to, const uint8_t *bytes,
                                     uint32_t part, uint32_t length, bool watched)
{
	uint8_t *copy = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	                     0);
	uint32_t came;

	assert_ptr_not_equal(copy, MAP_FAILED);
	memcpy(copy, bytes, part);
	assert_int_equal(mprotect(copy + part, length - part, PROT_NONE), 0);
	came = ps_pager_uffd.fill(pager, to, copy, length, watched);
	assert_int_equal(munmap(copy, length), 0);
	assert_int_equal(came, part);
	return came;
}

/* --- names --- */

static atomic_bool rig_moved; /* names lead to a port where nobody listens */

static int rig_look_up(struct ps_pager *pager, const struct ps_address *address,
                       struct ps_known_addresses *way, struct ps_error *error)
{
	struct ps_address to = *address;

	if (atomic_load(&rig_moved))
		strcpy(to.host, "127.0.0.2");
	return ps_pager_uffd.look_up(pager, &to, way, error);
}

/* --- who waits --- */

static struct ps_env_ops rig_ops;
static void (*rig_real_wait)(struct ps_env *env, pthread_cond_t *cond, pthread_mutex_t *lock,
                             uint64_t until_ns);
static _Atomic(pthread_cond_t *) rig_watched;
static atomic_bool rig_waited; /* somebody, for rig_watched, or has its lock and is about to */

static void rig_wait(struct ps_env *env, pthread_cond_t *cond, pthread_mutex_t *lock,
                     uint64_t until_ns)
{
	if (cond == atomic_load(&rig_watched))
		atomic_store(&rig_waited, true);
	rig_real_wait(env, cond, lock, until_ns);
}

/* --- certificates --- */

struct rig_files {
	char cert[128], key[128], ca[128];
};

static struct rig_files rig_files_of(const char *keys, const char *stem)
{
	struct rig_files files;

	snprintf(files.cert, sizeof(files.cert), "%s/%s.pem", keys, stem);
	snprintf(files.key, sizeof(files.key), "%s/%s.key", keys, stem);
	snprintf(files.ca, sizeof(files.ca), "%s/ca.pem", keys);
	return files;
}

static int rig_secure(struct daemon *daemon, const char *keys)
{
	const struct rig_files files = rig_files_of(keys, "mirror");
	const struct ps_tls_files named = { files.cert, files.key, files.ca, NULL };
	char why[512];

	return *keys ? daemon_load_tls(daemon, &named, why, sizeof(why)) : 0;
}

/* --- mirrors --- */

static struct apart rig_apart; /* of the test that runs */

static void rig_complain(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

static int rig_serve(void *bytes)
{
	const struct rig_mirror *m = bytes;
	struct endpoint tcp = { .host = "127.0.0.1" }, local = { .local = true };
	char path[128], why[512];
	const char *text;
	struct stores *stores;
	struct daemon *daemon;

	/* Installs the guard in front of the test runner's handler. */
	ps_guard_reinstall_handler();
	log_init(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	snprintf(path, sizeof(path), "%s/memory", m->directory);
	stores = stores_new(memory_file_new(path, 0, false, &text));
	stores_load(stores, rig_complain, NULL);
	daemon = patient_daemon_new(stores);
	snprintf(tcp.port, sizeof(tcp.port), "%u", m->port);
	snprintf(local.host, sizeof(local.host), "%s/socket", m->directory);
	unlink(local.host);
	snprintf(path, sizeof(path), "%s/port", m->directory);
	if (lanes_open(daemon, 1) || rig_secure(daemon, m->keys) ||
	    daemon_listen(daemon, &tcp, why, sizeof(why)) ||
	    daemon_listen(daemon, &local, why, sizeof(why)) ||
	    daemon_write_ports(daemon, path, why, sizeof(why)))
		return 1;
	daemon_run(daemon);
	return 0;
}

/* The port that is in the file; 0: not yet. */
static uint16_t rig_port(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned port = 0;

	if (file && fscanf(file, "%u", &port) != 1)
		port = 0;
	if (file)
		fclose(file);
	return (uint16_t)port;
}

static void rig_start(struct rig_mirror *m)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/port", m->directory);
	unlink(path);
	m->pid = apart_start(&rig_apart, rig_serve, m, sizeof(*m));
	m->port = 0;
	RIG_UNTIL((m->port = rig_port(path)) != 0);
}

static void rig_kill(struct rig_mirror *m)
{
	kill(m->pid, SIGKILL);
	apart_wait(&rig_apart, m->pid);
	m->pid = 0;
}

/* --- owners --- */

static void rig_event(void *arg, const struct perseas_event *event)
{
	struct rig *rig = arg;

	if (event->kind == PERSEAS_EVENT_MEMORY_WAITS)
		strcpy(rig->told, event->text);
	rig->waits += event->kind == PERSEAS_EVENT_MEMORY_WAITS;
	rig->wholes += event->kind == PERSEAS_EVENT_WHOLE;
}

static int rig_open(struct rig *rig, uint32_t flags, uint32_t recovery)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	const struct rig_files files = rig_files_of(rig->mirrors[0].keys, "owner");
	struct ps_error error = { 0 };
	struct ps_env *env;
	int rc;

	if (*rig->mirrors[0].keys) {
		options.tls_cert = files.cert;
		options.tls_key = files.key;
		options.tls_ca = files.ca;
	}
	options.flags = flags;
	options.recovery = recovery;
	options.fetch_rate = rig->rate;
	options.ring_size = 1 << 20;
	/* Unless a test lets a mirror hang, only a very busy machine reaches this limit. */
	options.connect_timeout_ms = rig->patience_ms ? rig->patience_ms : 30000;
	options.commit_timeout_ms = 30000;
	if (flags & PERSEAS_CREATE)
		options.mirror_timeout_ms = 30000;
	options.on_event = rig_event;
	options.event_arg = rig;
	env = ps_env_posix(&options, &error);
	assert_non_null(env);
	rig_pager = ps_pager_uffd;
	rig_pager.ask = rig_ask;
	rig_pager.look_up = rig_look_up;
	env->pager = &rig_pager;
	rig_ops = *env->ops;
	rig_real_wait = rig_ops.wait;
	rig_ops.wait = rig_wait;
	if (rig->change)
		rig->change(&rig_ops);
	env->ops = &rig_ops;
	rc = ps_open(env, STORE, rig->list, &options, &rig->p, &error);
	if (rc)
		ps_fail(NULL, rc, "%s", error.text);
	return rc;
}

static int rig_map(struct rig *rig)
{
	void *addr;
	int rc = perseas_map(rig->p, "accounts", 0, &addr);

	rig->bytes = addr;
	return rc;
}

static uint8_t rig_byte(uint64_t i)
{
	return (uint8_t)(i * 7 + (i >> 12));
}

/* Commits one transaction. */
static inline int rig_put(struct rig *rig, uint64_t offset, uint64_t length, uint8_t value)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(rig->p, 0, &tx);

	if (!rc)
		rc = perseas_set_range(tx, rig->bytes + offset, length);
	if (rc)
		return rc;
	memset(rig->bytes + offset, value, length);
	return perseas_commit(tx, 0);
}

/* Opens on demand, with the gate shut. */
static inline void rig_begin(struct rig *rig)
{
	atomic_store(&rig_shut, true);
	assert_int_equal(rig_open(rig, PERSEAS_TAKEOVER, PERSEAS_RECOVERY_ON_DEMAND), 0);
	assert_string_equal(strstr(perseas_report(rig->p), "read first") ? "read first" : "", "");
	assert_int_equal(rig_map(rig), 0);
}

/* A function of an owner that runs in a process of its own. */
struct rig_deed {
	int (*fn)(struct rig *rig);
	struct rig rig;
};

static int rig_do(void *bytes)
{
	struct rig_deed *deed = bytes;

	return deed->fn(&deed->rig);
}

/* Runs the function in another process. Returns its result. */
static int rig_by_another(struct rig *rig, int (*fn)(struct rig *rig))
{
	const struct rig_deed deed = { fn, *rig };

	return apart_run(&rig_apart, rig_do, &deed, sizeof(deed));
}

/* Fences the owner here, by an owner in another process. */
static inline int rig_take_over(struct rig *rig)
{
	return rig_open(rig, PERSEAS_TAKEOVER, 0);
}

/* Returns when the owner here knows that it is fenced. Memory that is still missing then never
 * arrives. */
static inline void rig_be_fenced(struct rig *rig)
{
	atomic_store(&rig_shut, true);
	assert_int_equal(rig_by_another(rig, rig_take_over), 0);
	RIG_UNTIL(rig->p->is_superseded);
}

static int rig_make(struct rig *rig)
{
	void *addr;

	if (rig_open(rig, PERSEAS_CREATE, 0) || perseas_map(rig->p, "accounts", SIZE, &addr)) {
		fprintf(stderr, "# no store is made: %s\n", perseas_message(rig->p));
		return 1;
	}
	rig->bytes = addr;
	for (uint64_t i = 0; i < SIZE; i++)
		rig->bytes[i] = rig_byte(i);
	if (perseas_publish(rig->p)) {
		fprintf(stderr, "# it is not published: %s\n", perseas_message(rig->p));
		return 1;
	}
	perseas_close(rig->p);
	return 0;
}

/* shared: over Unix sockets, so that mirrors share their memory. keys: see rig_mirror. */
static int rig_setup_with(void **state, bool shared, const char *keys)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	size_t used = 0;

	assert_non_null(rig);
	apart_begin(&rig_apart);
	for (unsigned i = 0; i < MIRRORS; i++) {
		struct rig_mirror *m = &rig->mirrors[i];

		memory_folder(m->directory, sizeof(m->directory), "demand");
		strcpy(m->keys, keys);
		rig_start(m);
		used += (size_t)(shared ? snprintf(rig->list + used, sizeof(rig->list) - used,
		                                   "%sunix://%s/socket", i ? "," : "", m->directory)
		                        : snprintf(rig->list + used, sizeof(rig->list) - used,
		                                   "%stcp://127.0.0.1:%u", i ? "," : "", m->port));
	}
	/* Far more than a test takes: one that waits for ever ends. */
	alarm(600);
	assert_int_equal(rig_by_another(rig, rig_make), 0);
	*state = rig;
	return 0;
}

static inline int rig_setup(void **state, bool shared)
{
	return rig_setup_with(state, shared, "");
}

static inline int rig_setup_tcp(void **state)
{
	return rig_setup(state, false);
}

static inline int rig_setup_shm(void **state)
{
	return rig_setup(state, true);
}

static int rig_teardown(void **state)
{
	struct rig *rig = *state;

	atomic_store(&rig_shut, false);
	atomic_store(&rig_moved, false);
	perseas_close(rig->p);
	for (unsigned i = 0; i < MIRRORS; i++) {
		if (rig->mirrors[i].pid)
			rig_kill(&rig->mirrors[i]);
		unit_remove_folder(rig->mirrors[i].directory);
	}
	free(rig);
	apart_end(&rig_apart);
	alarm(0);
	return 0;
}

/* --- looking --- */

static inline struct perseas_stat rig_stat(const struct rig *rig)
{
	struct perseas_stat stat;

	assert_int_equal(perseas_stat(rig->p, &stat), 0);
	return stat;
}

static _Thread_local sigjmp_buf *rig_way_out;

static void rig_bus(int signal)
{
	(void)signal;
	if (!rig_way_out)
		_exit(99);
	siglongjmp(*rig_way_out, 1);
}

/* The byte, or -1: the access ended in SIGBUS. */
static inline int rig_look(const uint8_t *at)
{
	const struct sigaction action = { .sa_handler = rig_bus };
	sigjmp_buf out;
	volatile int found = -1;

	sigaction(SIGBUS, &action, NULL);
	rig_way_out = &out;
	if (!sigsetjmp(out, 1))
		found = *(const volatile uint8_t *)at;
	rig_way_out = NULL;
	return found;
}

/* Returns how many bytes differ from the initial ones. */
static inline uint64_t rig_wrong(const struct rig *rig)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < SIZE; i++)
		wrong += rig->bytes[i] != rig_byte(i);
	return wrong;
}

/* Opens the gate, and waits until all memory is here. */
static inline void rig_fetch(const struct rig *rig)
{
	atomic_store(&rig_shut, false);
	assert_int_equal(perseas_wait_whole(rig->p, PATIENCE), 0);
}

/* Fetches all memory, which must be as it was at the beginning. */
static inline void rig_fetch_unchanged(const struct rig *rig)
{
	rig_fetch(rig);
	assert_int_equal(rig_wrong(rig), 0);
}

/* Joins the thread. Returns its result as a number. */
static inline intptr_t rig_join(pthread_t thread)
{
	void *result;

	pthread_join(thread, &result);
	return (intptr_t)result;
}

/* Begins a thread; returns when one waits for `what`. */
static inline pthread_t rig_begin_waiting(void *(*fn)(void *arg), void *arg, pthread_cond_t *what)
{
	pthread_t thread;

	atomic_store(&rig_waited, false);
	atomic_store(&rig_watched, what);
	assert_int_equal(pthread_create(&thread, NULL, fn, arg), 0);
	RIG_UNTIL(atomic_load(&rig_waited));
	return thread;
}

#endif
