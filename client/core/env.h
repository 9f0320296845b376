/*
 * env.h - everything that is not deterministic: time, randomness, waiting, the
 * keeper's thread, control connections, fabrics. env_posix.c is the real one; the simulator
 * of tests/sim brings its own, under which the same core runs.
 *
 * One env belongs to one handle. tests/support/contract_env.h asks each clause of the real one and
 * of the simulator's.
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

/* The list of mirrors where none is given, and COMMAND's of `perseas run`. */
#define PS_MIRRORS_VARIABLE "PERSEAS_MIRRORS"

struct ps_control;
struct ps_env;
struct ps_list_lookup;
struct ps_tls;

/* Who sleeps. PS_UNWOKEN: one that nobody wakes, since what it waits for shows in the descriptors,
 * or as time passes; it takes nobody's wake, however many threads sleep so. */
enum ps_sleeper { PS_COMMITTER, PS_KEEPER, PS_COLLECTOR, PS_SLEEPERS, PS_UNWOKEN = PS_SLEEPERS };

#define PS_NEVER UINT64_MAX

/* Times here are in ns. */
static inline uint64_t ps_ms(uint64_t ms)
{
	return ms * 1000000;
}

struct ps_env_ops {
	uint64_t (*now)(struct ps_env *env);   /* monotonic, ns */
	uint64_t (*clock)(struct ps_env *env); /* ns since 1970; coarse will do */
	void (*random)(struct ps_env *env, void *bytes, size_t len);

	/* Sleeps without the lock until one of the fds is ready, wake() was called for this
	 * sleeper (also before pause began), or until_ns. May return early. Two threads never sleep
	 * as the same sleeper at the same time: one would take the other's wake. */
	void (*pause)(struct ps_env *env, enum ps_sleeper who, struct pollfd *fds, unsigned count,
	              uint64_t until_ns);
	void (*wake)(struct ps_env *env, enum ps_sleeper who);

	/* As pthread_cond_timedwait and pthread_cond_broadcast; may return early. */
	void (*wait)(struct ps_env *env, pthread_cond_t *cond, pthread_mutex_t *lock,
	             uint64_t until_ns);
	void (*broadcast)(struct ps_env *env, pthread_cond_t *cond);

	/* After it returns true, every thread of this process has executed a full fence: what they
	 * stored before, the caller sees. False: it cannot be had here. */
	bool (*barrier)(struct ps_env *env);

	/* The calling thread: a number that no other thread of the process has now. NULL: threads
	 * are those of the C library. */
	uintptr_t (*thread)(struct ps_env *env);

	/* Runs fn(arg) beside the caller, in the thread of this sleeper, of which there is one at
	 * a time; join waits until it has returned. 0, or PERSEAS_ESYSTEM. */
	int (*spawn)(struct ps_env *env, enum ps_sleeper who, void (*fn)(void *arg), void *arg);
	void (*join)(struct ps_env *env, enum ps_sleeper who);

	/*
	 * Control connections. connect begins; it may return before the connection is up, a
	 * failure then shows at send or receive. Both directions keep order. None of these is
	 * called under the handle's lock. A control connection is used by one thread at a time, and
	 * has fewer than PS_ASKED_MAX requests under way. send numbers the request: its id is none
	 * that was sent on this connection before. Where the connection is over, send takes
	 * nothing, so that no answer is due: it returns the code with which the connection ended.
	 * Any error of send is told in *error. connect never waits for the name service.
	 */
	struct ps_control *(*connect)(struct ps_env *env, const struct ps_address *address,
	                              struct ps_error *error);
	int (*send)(struct ps_control *control, const Perseas__Request *request,
	            struct ps_error *error);
	/*
	 * The answer to the oldest request not yet answered, with its id and of its kind, or a
	 * refusal of it; the caller frees *reply. fds takes up to PS_REGIONS_MAX descriptors (the
	 * caller's then), *count says how many. A sign of progress that comes meanwhile, or
	 * came before the call, moves until_ns to as long after it as it was after the request.
	 * PERSEAS_EUNREACHABLE: not in time, or the connection broke; PERSEAS_EPROTOCOL: something
	 * else came; PERSEAS_EVERSION, PERSEAS_ETLS. After any error the connection is over:
	 * ended() is true, no later call gives a reply, and what still comes is never looked at.
	 * The request may have been carried out, or still be.
	 */
	int (*receive)(struct ps_control *control, uint64_t until_ns, Perseas__Reply **reply,
	               int *fds, unsigned *count, struct ps_error *error);
	/* Is the answer to the oldest request here, or the connection over, so that receive would
	 * not wait? A sign of progress is no answer. */
	bool (*answered)(struct ps_control *control);
	/* Is it over: ended by the peer, by a failure of receive, or by bytes that nobody asked for
	 * (seen while no answer is due)? Never blocks. */
	bool (*ended)(struct ps_control *control);
	/* The version of the protocol that is spoken on it; 0: the mirror has not answered the
	 * greeting yet. NULL: the present one. */
	unsigned (*version)(struct ps_control *control);
	/* Readable when it ends. -1: there is none to wait for. */
	int (*control_fd)(struct ps_control *control);
	/* What to wait for until answered() may say something else, also while the connection is
	 * being made: fills *fd in. False: nothing shows when it is time to ask again. */
	bool (*control_waits)(struct ps_control *control, struct pollfd *fd);
	/* When a sign of progress came last for a request on this connection; 0: none has. */
	uint64_t (*worked_at)(struct ps_control *control);
	/* From now on a sign of life, which asks for nothing, is sent whenever nothing was sent on
	 * this connection for every_ns; 0: no more of them. They come from a thread of the env's
	 * own, so that nothing holds them up that the handle or its keeper waits for. Where no
	 * thread can be had there are none. NULL: there never are. */
	void (*beat)(struct ps_control *control, uint64_t every_ns);
	/* From now on signs of life are sent, at least four in limit_ns, which the mirror answers;
	 * and once nothing has come on this connection for limit_ns it is over, for who waits on
	 * it, too. 0: no more of it. While this process does not run, nothing counts as silence.
	 * Where no thread can be had nobody looks. NULL: nobody ever does. */
	void (*hear)(struct ps_control *control, uint64_t limit_ns);
	/* Did it end by that? With `hear`. */
	bool (*silent)(struct ps_control *control);
	/*
	 * Leaves the connection, on which no answer is due, to a thread that has a table of
	 * descriptors of its own, and does nothing. When this process is killed its threads give up
	 * its memory one after the other, each before its descriptors: what the last one has ends
	 * only when the system has freed the memory. So of two connections in two tables one ends
	 * at once. Only disconnect may follow. False: there is no such thread, and the connection
	 * is as it was. May be NULL without
	 * `lifelines`.
	 */
	bool (*entrust)(struct ps_control *control);
	void (*disconnect)(struct ps_control *control); /* NULL is allowed */

	/* Lists what expires of the TLS files of this process, as a connection that begins now
	 * would use them: none without TLS. NULL, like shown_expiries, in an env without TLS. */
	void (*expiries)(struct ps_env *env, struct ps_expiries *expiries);
	/* Lists what expires of the certificates that the mirror showed on this connection: none if
	 * it showed none. */
	void (*shown_expiries)(struct ps_control *control, struct ps_expiries *expiries);

	/* Begins to look up the list of mirrors that the text names. Sets *lookup to NULL if the
	 * text is a list itself. Returns 0, PERSEAS_ESYSTEM or PERSEAS_ENOMEM. NULL: there are no
	 * names. */
	int (*list_begin)(struct ps_env *env, const char *text, struct ps_list_lookup **lookup,
	                  struct ps_error *error);
	/* Waits for the lookup until then at most. Returns false if it has not ended. Otherwise
	 * *error has code 0 and `list` is set, or one of PERSEAS_EINVAL, PERSEAS_ESYSTEM,
	 * PERSEAS_EUNREACHABLE, PERSEAS_EPROTOCOL, PERSEAS_ELIMIT, PERSEAS_ENOMEM. */
	bool (*list_wait)(struct ps_list_lookup *lookup, uint64_t until_ns, char list[PS_LIST_TEXT],
	                  struct ps_error *error);
	/* Returns a descriptor that is readable from when the lookup has ended. */
	int (*list_fd)(const struct ps_list_lookup *lookup);
	/* Must be called once for each lookup, which may go on unseen. */
	void (*list_drop)(struct ps_list_lookup *lookup);

	/* Can this host carry data over what the address asks for? 0; or PERSEAS_ERDMA, with a
	 * sentence that says what is missing and what to do. Asked before anything is done at a
	 * mirror. NULL: it can, whatever that is. */
	int (*has_route)(struct ps_env *env, const struct ps_address *address,
	                 struct ps_error *error);
	/* The fabrics to try for an address, best first; the reply's grant says what the mirror
	 * offers. NULL: there are no more; never for 0 tried. `tried`: how many have failed with
	 * PERSEAS_ERDMA. */
	const struct ps_fabric *(*fabric)(struct ps_env *env, const struct ps_address *address,
	                                  const Perseas__Grant *grant, unsigned tried);
	/* Told of every move of what has a table of states (states.h), by one line of text. NULL:
	 * nobody wants to know. */
	void (*trace)(struct ps_env *env, const char *line);
	void (*free)(struct ps_env *env);
};

/* Reads a list of addresses as ps_address_list does. If the text is the name of a list, the
 * function looks it up and waits for timeout_ms at most. All errors of list_begin and list_wait;
 * PERSEAS_EUNREACHABLE also if the list was not found in time. */
int ps_env_list(struct ps_env *env, const char *text, uint32_t timeout_ms,
                struct ps_address *addresses, unsigned *count, struct ps_error *error);

/* Does what ps_env_list does, unless the lookup of a name takes more than 0.2 s and `perseas run`
 * told which mirrors the name stood for. Then the function returns these mirrors, and *lookup is
 * the lookup that goes on, which the caller must drop. Otherwise *lookup is NULL. */
int ps_env_list_known(struct ps_env *env, const char *text, uint32_t timeout_ms,
                      struct ps_address *addresses, unsigned *count, struct ps_list_lookup **lookup,
                      struct ps_error *error);

/* Sets the error of a list that was not looked up in time, and returns its code. */
int ps_env_list_late(const char *text, uint32_t timeout_ms, struct ps_error *error);

/* Takes what a lookup of the text found, as ps_env_list does. Returns false if it has not ended by
 * then. Otherwise error->code is 0, or an error of ps_env_list. */
bool ps_env_list_found(struct ps_env *env, struct ps_list_lookup *lookup, uint64_t until_ns,
                       const char *text, struct ps_address *addresses, unsigned *count,
                       struct ps_error *error);

struct ps_verbs;
struct ps_devices;

/* Built with RDMA=1: the calls of rdma-core, and the end of what links shared, when there is none
 * left (NULL is allowed). */
extern const struct ps_verbs ps_verbs_system;
void ps_devices_free(struct ps_devices *devices);
/* As has_route, for an address that asks for RDMA. */
int ps_verbs_possible(const struct ps_verbs *verbs, const struct ps_address *address,
                      struct ps_error *error);

struct ps_env {
	const struct ps_env_ops *ops;
	const struct ps_verbs *verbs; /* NULL: this process has no RDMA */
	struct ps_devices *devices;   /* verbs: what links share; NULL: none yet */
	/* With what its owners' ids begin, where `marked`: so who started this process knows
	 * them. */
	uint8_t mark[PS_OWNER_MARK];
	bool marked;
	uint8_t boot[PS_ID_SIZE]; /* the id of this host's boot, where boot_known */
	bool boot_known;
	const struct ps_inherited *inherited; /* NULL: `perseas run` told this process nothing */
	/* For how long a mirror's host may leave what was sent unacknowledged, over tcp, until the
	 * link is PS_LINK_LOST; 0: 10 s. Set by the handle before the first attach. */
	uint32_t unarrived_ms;
	bool lifelines;     /* there is `entrust`, and it may be used */
	struct ps_tls *tls; /* of connections over tcp; NULL: they are plain text */
	/* All memory that chains are sent from, for fabrics that must register it before they
	 * attach; set by the handle before the first attach. */
	void *staging;
	size_t staging_size;
	const struct ps_pager_ops *pager;     /* NULL: memory cannot be fetched on demand */
	const struct ps_written_ops *written; /* NULL: nobody says which pages were written */
	/* What wake() writes to, for a thread that has descriptors of its own; only of the real
	 * one. */
	int wakers[PS_SLEEPERS];
};

/* The real one. options: whose tls_… count, NULL: none (secure.h). NULL on failure, with *error
 * set. */
struct ps_env *ps_env_posix(const struct perseas_options *options, struct ps_error *error);

/* Opens a handle over an env, which the handle then owns (also on failure): what perseas_open
 * does with ps_env_posix. */
int ps_open(struct ps_env *env, const char *store, const char *mirrors,
            const struct perseas_options *options, perseas_t **p, struct ps_error *error);
int ps_create(struct ps_env *env, const char *store, const char *mirrors,
              const struct perseas_options *options, struct ps_error *error);

#endif
