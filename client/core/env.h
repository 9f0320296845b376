/*
 * env.h - everything that is not deterministic: time, randomness, waiting, threads, control
 * connections, fabrics. env_posix.c is the real implementation. The simulator in tests/sim has its
 * own and runs the same core.
 *
 * Each handle has an env of its own. tests/support/contract_env.h checks every clause of the
 * contract for both implementations.
 */
#ifndef PERSEAS_CLIENT_ENV_H
#define PERSEAS_CLIENT_ENV_H

#include "control.pb-c.h"
#include "address.h"
#include "demand.h"
#include "error.h"
#include "../../proto/base/expiry.h"
#include "../../proto/control/envelope.h"
#include "fabric.h"
#include "inherited.h"
#include "written.h"

#include <poll.h>
#include <pthread.h>

/* The environment variable with the list of mirrors, for opens that name none and for COMMAND of
 * `perseas run`. */
#define PS_MIRRORS_VARIABLE "PERSEAS_MIRRORS"

struct ps_control;
struct ps_env;
struct ps_list_lookup;
struct ps_tls;

/* What a thread sleeps as, which says who wakes it. PS_COMMITTER: the thread that sleeps on the
 * links for all waiting commits. PS_KEEPER, PS_COLLECTOR: the threads of these names. wake() wakes
 * each of them, and only one thread at a time sleeps as each. PS_UNWOKEN: wake() wakes none of
 * these threads, which sleep until a descriptor is ready or the time is over, and there may be any
 * number of them. */
enum ps_sleeper { PS_COMMITTER, PS_KEEPER, PS_COLLECTOR, PS_SLEEPERS, PS_UNWOKEN = PS_SLEEPERS };

#define PS_NEVER UINT64_MAX

/* Converts milliseconds to nanoseconds, the unit of all times here. */
static inline uint64_t ps_ms(uint64_t ms)
{
	return ms * 1000000;
}

struct ps_env_ops {
	uint64_t (*now)(struct ps_env *env);   /* monotonic time in ns */
	uint64_t (*clock)(struct ps_env *env); /* ns since 1970; may be coarse */
	void (*random)(struct ps_env *env, void *bytes, size_t len);

	/* pause sleeps until a descriptor of `fds` is ready, until wake() is called for this
	 * sleeper (a call before pause counts, too), or until until_ns. May return early. Caller
	 * does not hold p->lock. Two threads never sleep as the same sleeper, except as PS_UNWOKEN,
	 * since one would take the other's wake. */
	void (*pause)(struct ps_env *env, enum ps_sleeper who, struct pollfd *fds, unsigned count,
	              uint64_t until_ns);
	void (*wake)(struct ps_env *env, enum ps_sleeper who);

	/* Like pthread_cond_timedwait and pthread_cond_broadcast; wait may return early. */
	void (*wait)(struct ps_env *env, pthread_cond_t *cond, pthread_mutex_t *lock,
	             uint64_t until_ns);
	void (*broadcast)(struct ps_env *env, pthread_cond_t *cond);

	/* Returns true after every thread of this process has executed a full fence: the caller
	 * sees what they stored before it. Returns false if the system cannot do that. */
	bool (*barrier)(struct ps_env *env);

	/* Returns a number for the calling thread that no other living thread of the process has.
	 * NULL: threads are those of the C library. */
	uintptr_t (*thread)(struct ps_env *env);

	/* spawn runs fn(arg) in a new thread, the only one of this kind of sleeper; join waits
	 * until fn has returned. Returns 0, or PERSEAS_ESYSTEM. */
	int (*spawn)(struct ps_env *env, enum ps_sleeper who, void (*fn)(void *arg), void *arg);
	void (*join)(struct ps_env *env, enum ps_sleeper who);

	/*
	 * Control connections. They are never used under the handle's lock, and each by one thread
	 * at a time, with fewer than PS_ASKED_MAX unanswered requests. Both directions keep order.
	 *
	 * connect starts to connect and may return before the connection is up; a failure then
	 * shows at send or receive. It never waits for the name service.
	 *
	 * send gives the request an id that was not used on this connection before. If the
	 * connection has ended, it sends nothing, so no answer will come, and returns the code with
	 * which the connection ended. *error describes every failure.
	 */
	struct ps_control *(*connect)(struct ps_env *env, const struct ps_address *address,
	                              struct ps_error *error);
	int (*send)(struct ps_control *control, const Perseas__Request *request,
	            struct ps_error *error);
	/*
	 * Waits for the answer to the oldest unanswered request. It has that request's id, and is
	 * of its kind or refuses it. The caller frees *reply. fds takes up to PS_REGIONS_MAX
	 * descriptors, which the caller then owns; *count says how many. If the mirror signals
	 * progress, now or before the call, the time limit starts again at that signal.
	 *
	 * Returns 0; PERSEAS_EUNREACHABLE if the time is over or the connection broke;
	 * PERSEAS_EPROTOCOL if anything else came; PERSEAS_EVERSION; PERSEAS_ETLS. An error ends
	 * the connection: ended() is true, no later call gives a reply, and nothing more is read.
	 * The mirror may have carried out the request, or may still do so.
	 */
	int (*receive)(struct ps_control *control, uint64_t until_ns, Perseas__Reply **reply,
	               int *fds, unsigned *count, struct ps_error *error);
	/* Returns true if receive would not wait, because the oldest request is answered or the
	 * connection has ended. A signal of progress is not an answer. */
	bool (*answered)(struct ps_control *control);
	/* Returns true if the connection has ended: by the peer, by a failure of receive, or by
	 * bytes that came while no answer was due. Never blocks. */
	bool (*ended)(struct ps_control *control);
	/* Returns the protocol version in use; 0: the mirror has not answered the greeting yet.
	 * NULL: always the present version. */
	unsigned (*version)(struct ps_control *control);
	/* Returns a descriptor that is readable when the connection ends; -1: there is no such
	 * descriptor. */
	int (*control_fd)(struct ps_control *control);
	/* Fills in the event to wait for before answered() can change, also while the connection is
	 * being made. Returns false if no event tells: ask again after a while. */
	bool (*fill_control_pollfd)(struct ps_control *control, struct pollfd *fd);
	/* Returns when the mirror last signaled progress on this connection; 0: never. */
	uint64_t (*last_progress_at)(struct ps_control *control);
	/* From now on sends a heartbeat, which asks for nothing, whenever nothing was sent for
	 * every_ns; 0 stops them. A thread of the env sends them, so they do not stop when the
	 * handle or its keeper waits. If no such thread can be started, none are sent. NULL: the
	 * env has no heartbeats. */
	void (*beat)(struct ps_control *control, uint64_t every_ns);
	/* From now on sends at least four heartbeats in limit_ns, which the mirror answers. If
	 * nothing comes for limit_ns, the connection ends, also for a thread that waits on it. 0
	 * stops that. Time during which this process does not run is not silence. If no thread can
	 * be started, nothing is watched. NULL: the env watches no connection. */
	void (*expect_heartbeats)(struct ps_control *control, uint64_t limit_ns);
	/* Returns true if `expect_heartbeats` ended the connection. Set whenever
	 * `expect_heartbeats` is. */
	bool (*silent)(struct ps_control *control);
	/*
	 * Hands the connection, on which no answer is due, to an idle thread with a descriptor
	 * table of its own.
	 *
	 * When a process is killed, each of its threads gives up its memory before its descriptors,
	 * so descriptors that the last thread holds close only after the kernel has freed all
	 * memory. Of two connections in different tables, one therefore ends at once. Only
	 * disconnect may follow. Returns false if no such thread exists, and the connection is as
	 * it was. May be NULL if has_lifelines is false.
	 */
	bool (*give_to_lifeline_thread)(struct ps_control *control);
	void (*disconnect)(struct ps_control *control); /* accepts NULL */

	/* Lists what expires of this process's TLS files, as a connection that begins now would use
	 * them; nothing without TLS. NULL, like shown_expiries, in an env without TLS. */
	void (*expiries)(struct ps_env *env, struct ps_expiries *expiries);
	/* Lists what expires of the certificates that the mirror presented on this connection;
	 * nothing if it presented none. */
	void (*shown_expiries)(struct ps_control *control, struct ps_expiries *expiries);

	/* Begins to look up the list of mirrors that `text` names. Sets *lookup to NULL if the text
	 * is itself a list. Returns 0, PERSEAS_ESYSTEM or PERSEAS_ENOMEM. NULL: the env has no
	 * names. */
	int (*list_begin)(struct ps_env *env, const char *text, struct ps_list_lookup **lookup,
	                  struct ps_error *error);
	/* Waits for the lookup, until until_ns at most. Returns false if it has not ended.
	 * Otherwise error->code is 0 and `list` is set, or it is PERSEAS_EINVAL, PERSEAS_ESYSTEM,
	 * PERSEAS_EUNREACHABLE, PERSEAS_EPROTOCOL, PERSEAS_ELIMIT or PERSEAS_ENOMEM. */
	bool (*list_await)(struct ps_list_lookup *lookup, uint64_t until_ns,
	                   char list[PS_LIST_TEXT], struct ps_error *error);
	/* Returns a descriptor that is readable once the lookup has ended. */
	int (*list_fd)(const struct ps_list_lookup *lookup);
	/* Frees the lookup, which may go on in the background. Call it once for each lookup. */
	void (*list_drop)(struct ps_list_lookup *lookup);

	/* Returns 0 if this host can carry data over the route that the address asks for; or
	 * PERSEAS_ERDMA, and the sentence says what is missing and what to do. Called before any
	 * mirror is asked. NULL: every route works. */
	int (*has_route)(struct ps_env *env, const struct ps_address *address,
	                 struct ps_error *error);
	/* Returns the next fabric to try for an address, best first, after `tried` fabrics failed
	 * with PERSEAS_ERDMA. The grant says what the mirror offers. Returns NULL if no fabric is
	 * left; never for tried 0. */
	const struct ps_fabric *(*fabric)(struct ps_env *env, const struct ps_address *address,
	                                  const Perseas__Grant *grant, unsigned tried);
	/* Gets a line of text for each move in a table of states (states.h). NULL: no tracing. */
	void (*trace)(struct ps_env *env, const char *line);
	void (*free)(struct ps_env *env);
};

/* Parses a list of addresses as ps_address_parse_list does. If the text is the name of a list,
 * looks it up first, and waits timeout_ms at most. Returns 0, or an error of list_begin or
 * list_await; PERSEAS_EUNREACHABLE also if the lookup timed out. */
int ps_env_resolve_list(struct ps_env *env, const char *text, uint32_t timeout_ms,
                        struct ps_address *addresses, unsigned *count, struct ps_error *error);

/* Does what ps_env_resolve_list does, with a shortcut: if looking up a name takes more than 0.2 s
 * and `perseas run` told which mirrors the name stood for, returns those mirrors. *lookup is then
 * the lookup that goes on, and the caller must drop it; otherwise *lookup is NULL. */
int ps_env_resolve_list_quickly(struct ps_env *env, const char *text, uint32_t timeout_ms,
                                struct ps_address *addresses, unsigned *count,
                                struct ps_list_lookup **lookup, struct ps_error *error);

/* Sets *error for a lookup of `text` that took more than timeout_ms. Returns the code. */
int ps_env_list_fail_timeout(const char *text, uint32_t timeout_ms, struct ps_error *error);

/* Takes the result of a lookup of `text`, and parses it as ps_env_resolve_list does. Returns false
 * if the lookup has not ended by until_ns. Otherwise error->code is 0, or an error of
 * ps_env_resolve_list. */
bool ps_env_list_take_result(struct ps_env *env, struct ps_list_lookup *lookup, uint64_t until_ns,
                             const char *text, struct ps_address *addresses, unsigned *count,
                             struct ps_error *error);

struct ps_verbs;
struct ps_devices;

/* Built with RDMA=1: the calls of rdma-core, and the function that frees what links share after the
 * last link is detached. It accepts NULL. */
extern const struct ps_verbs ps_verbs_system;
void ps_devices_free(struct ps_devices *devices);
/* Does has_route's check for an address that asks for RDMA. */
int ps_verbs_check_possible(const struct ps_verbs *verbs, const struct ps_address *address,
                            struct ps_error *error);

struct ps_env {
	const struct ps_env_ops *ops;
	const struct ps_verbs *verbs; /* NULL: this process has no RDMA */
	struct ps_devices *devices;   /* what RDMA links share; NULL until the first link */
	/* First bytes of this process's owner ids, if has_owner_mark. By these the process that
	 * started this one (`perseas run`) recognizes them. */
	uint8_t owner_mark[PS_OWNER_MARK];
	bool has_owner_mark;         /* owner_mark is set */
	uint8_t boot_id[PS_ID_SIZE]; /* the id of this host's boot, if has_boot_id */
	bool has_boot_id;
	const struct ps_inherited *told_by_run; /* NULL: `perseas run` told nothing */
	/* Over tcp: how long sent data may stay unacknowledged by the mirror's host before the link
	 * is PS_LINK_LOST; 0: 10 s. The handle sets it before the first attach. */
	uint32_t unacknowledged_limit_ms;
	bool has_lifelines; /* `give_to_lifeline_thread` is set and may be used */
	struct ps_tls *tls; /* the TLS of tcp connections; NULL: plain text */
	/* The memory that all chains are sent from. Fabrics that must register memory do so before
	 * they attach; the handle sets it before the first attach. */
	void *staging_memory;
	size_t staging_bytes;                 /* bytes of staging_memory */
	const struct ps_pager_ops *pager;     /* NULL: no recovery on demand */
	const struct ps_written_ops *written; /* NULL: written pages are not tracked */
	/* Real env only: descriptors that wake() writes to, for threads with a descriptor table of
	 * their own. */
	int wake_fds[PS_SLEEPERS];
};

/* Makes the real env. Only the tls_ members of options are read; NULL: no TLS (secure.h). Returns
 * NULL on failure, with *error set. */
struct ps_env *ps_env_posix(const struct perseas_options *options, struct ps_error *error);

/* Implement perseas_open and perseas_create over any env. The handle owns the env, even if they
 * fail. */
int ps_open(struct ps_env *env, const char *store, const char *mirrors,
            const struct perseas_options *options, perseas_t **p, struct ps_error *error);
int ps_create(struct ps_env *env, const char *store, const char *mirrors,
              const struct perseas_options *options, struct ps_error *error);

#endif
