/*
 * daemon.h - the daemon around the store logic: one libevent loop, threads that take turns with it
 * for what takes long, and threads that carry the data of owners.
 *
 *   main.c             what happens in which order from start to end
 *   activation.c       sockets that a service manager has opened
 *   listen.c           sockets that wait for connections
 *   connection_loop.c  control connections: who they are, and how long they may take
 *   control_loop.c     what they ask; tells them from data connections
 *   jobs_loop.c        what takes long, in turns with the loop (jobs.c)
 *   watch_loop.c       requests that wait until a store gets or loses its owner
 *   names_loop.c       whether files of images were removed
 *   expiry_loop.c      whether certificates will expire
 *   crowd.c            how many there may be, and which one goes
 *   target_tcp.c       data connections (with answers_tcp.c)
 *   lanes.c            their threads, and the lock that keeps them and the loop apart
 *   target_shm.c       descriptors and processes on this host
 *   target_verbs.c     memory registered for RDMA (with *_verbs.c, left out by RDMA=0)
 *   http_loop.c        pages for monitoring: metrics.c, status_json.c, page.html
 *   journal.c          what happens to stores, in the log (log.c, log_out.c)
 *   daemon.c           the loop itself
 */
#ifndef PERSEAS_SERVER_DAEMON_H
#define PERSEAS_SERVER_DAEMON_H

#include "../../proto/base/tls.h"
#include "config.h"
#include "counters.h"
#include "crowd.h"
#include "lanes.h"
#include "../host/jobs.h"
#include "../host/log.h"
#include "../store/target.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>

struct connection;
struct data_link;
struct event;
struct http;
struct listener;
struct names_loop;
struct ps_verbs;
struct verbs_target;
struct job;
struct jobs;

enum {
	HANDSHAKE_SECONDS = 5,  /* until a connection must have said what it is */
	MESSAGE_SECONDS = 10,   /* until a request has come, or a reply was taken, whole; unless
	                           another time is set */
	CONNECTIONS_MAX = 1024, /* of all kinds, unless another number is set */
	CONNECTIONS_KEPT = 4,   /* one in so many is not for plain connections (crowd.h) */
	OPERATORS_KEPT = 16,    /* one place in so many is not for owners */
	ORIGIN_MAX = 160,       /* bytes of the name of an origin */
	PRIORITY_OWNERS = 0,    /* of the loop's events: what owners wait for, all of it first */
	PRIORITY_OTHERS = 1,    /* what others wait for: one of these, then owners' again */
	OTHERS_WAIT_MS = 5,     /* for one of theirs, where owners never pause */
	PRIORITIES = 2,
	LISTEN_TEXT = 272,  /* bytes of listen_text() */
	WATCHERS_MAX = 256, /* requests that wait for news, unless another number is set */
};

enum daemon_phase {
	DAEMON_LOADING, /* until it listens for owners */
	DAEMON_SERVING,
	DAEMON_ENDING, /* sessions are over */
};

struct daemon {
	struct event_base *base;
	struct stores *stores;
	struct listener *listeners;
	struct connection *connections;
	struct verbs_target *rdma; /* NULL: built or started without */
	struct http *http;         /* NULL: nobody watches */
	struct names_loop *names;  /* NULL: nobody looks after the names of files */
	struct ps_tls *tls;        /* of TCP connections that come; NULL: they are plain text. The
	                              daemon's */
	bool exposed;              /* plain text also where others than this host can connect */
	struct lane lane;          /* the data connections that the loop serves */
	struct lanes *lanes;       /* threads that serve all others; NULL: there are none */
	struct crowd crowd;        /* connections of all kinds */
	size_t held;               /* bytes of large messages that are under way */
	uint64_t message_ns;       /* as MESSAGE_SECONDS */
	struct log_limit told[REFUSALS]; /* of connections that were refused */
	unsigned unix_mode;              /* of the files of Unix sockets; 0: 0600 */
	uint64_t spin_ns;                /* how long the loop spins after data arrived; 0: never */
	struct counters counters;
	uint64_t began_ns;        /* by daemon_now_ns() */
	struct event *last;       /* comes when no event of the others waits before it */
	uint64_t last_since;      /* since when `last` waits for that; 0: it does not */
	uint64_t others_at;       /* when one of theirs came last */
	uint64_t others_until_ns; /* until when they wait, beside threads that carry data */
	struct jobs *jobs;
	struct event *flush;                      /* writes what the log's reader did not take */
	struct event *turns;                      /* a job waits for its turn */
	int turns_fd;                             /* an eventfd that tells so */
	struct connection *parked, **parked_last; /* whose requests wait for jobs, in order */
	const struct connection *released;        /* waited longest, and goes on now; or NULL */
	const struct job *alone;                  /* that no request may begin beside; NULL: none */
	struct event *deferred;                   /* to come when no job is under way; NULL: none */
	struct event *second;                     /* looks for owners that exceed their share */
	struct job excess;                        /* cuts them off */
	struct event *expiry;                     /* checks when certificates expire */
	struct ps_expiries expiries;              /* of `tls`, as of the last check */
	uint64_t (*wall_s)(void);                 /* seconds since 1970 */
	struct connection *watchers, **watchers_last; /* that wait for news, in their order */
	unsigned watcher_count, watchers_max;         /* as WATCHERS_MAX */
	uint64_t watch_ns;                            /* as PS_WATCH_MS */
	bool stirred; /* there is news that they have not been told of */
	int farewell; /* a descriptor of the connection that asked for a spill; -1: none did */
	enum daemon_phase phase;
	bool running; /* daemon_run() */
	bool stopping;
};

/* daemon.c */
struct daemon *daemon_new(struct stores *stores, uint64_t spin_us); /* NULL: out of memory */
/* Ends all connections, and so all sessions; images stay. */
void daemon_free(struct daemon *daemon);
void daemon_set_connections(struct daemon *daemon, unsigned max);
void daemon_run(struct daemon *daemon); /* until daemon_stop */
void daemon_stop(struct daemon *daemon);
/* Ends all connections but those for HTTP, and so all sessions. */
void daemon_end_sessions(struct daemon *daemon);
/* For whoever is busy outside of daemon_run(): answers HTTP that is due. */
void daemon_breathe(struct daemon *daemon);
uint64_t daemon_now_ns(void); /* CLOCK_MONOTONIC */
/* I5: ends the session's data paths, of every fabric. */
void daemon_cut(struct daemon *daemon, struct session *session);
/* Counts a connection that is refused. Returns the rate limit for messages about it: a peer can
 * provoke them at will. */
struct log_limit *daemon_refuse(struct daemon *daemon, enum refusal refusal);
/* There is no room for that connection. */
void daemon_tell_crowded(struct daemon *daemon, const char *peer);
/* Adds to a grant what the fabrics offer. */
void daemon_grant(struct daemon *daemon, struct session *session, Perseas__Grant *grant);
/* Could the session go over RDMA? If not, `why` becomes the reason. */
bool daemon_offers_rdma(struct daemon *daemon, struct session *session, char *why, size_t size);
/* TLS from these files, to be freed by the caller; a key that others may read is warned of. NULL,
 * with a sentence in why. */
struct ps_tls *daemon_read_tls(const struct ps_tls_files *files, char *why, size_t size);
/* TLS for the connections that come from now on, from these files. -1, with a sentence in why: what
 * was there before is kept. */
int daemon_load_tls(struct daemon *daemon, const struct ps_tls_files *files, char *why,
                    size_t size);

/* The event of a stream of which bytes are here that no poll tells of (ps_stream_pending()): it
 * comes again, after the others had their turn. */
void daemon_run_again(struct daemon *daemon, struct event *readable);

/* Owners' events come first: those of one that never pauses would keep the others' away for ever.
 * True: whoever asks, as an owner's data is here, is to leave it there until target.resume(). */
bool daemon_owners_pause(struct daemon *daemon);
/* One of the others' events has come. */
void daemon_others_came(struct daemon *daemon);

/* jobs_loop.c. -1: out of memory. */
int daemon_open_jobs(struct daemon *daemon);
void daemon_close_jobs(struct daemon *daemon);
/* Has the job run beside the loop, which goes on until it is over: for the start of the daemon. */
void daemon_work(struct daemon *daemon, struct job *job);
/* Has the job run while no request but those that only look begins; none is under way before it
 * (daemon_defer). It may be over when this returns, or later. Inside. */
void daemon_alone(struct daemon *daemon, struct job *job);
/* For what must not come between the steps of a request, such as other rules. True: something is
 * worked on; nothing else begins until it is over, and then the event comes. */
bool daemon_defer(struct daemon *daemon, struct event *event);

/* excess_loop.c. -1: out of memory. */
int daemon_open_excess(struct daemon *daemon);
void daemon_close_excess(struct daemon *daemon);
/* Memory is shared: has the loop look every second, as long as it is, whether an owner takes more
 * than its share. */
void daemon_watch_excess(struct daemon *daemon);

/* Has the loop look at what waits; for any thread. */
void daemon_wake(const struct daemon *daemon);

/* expiry_loop.c. Returns 0, or -1 if memory is short. */
int daemon_open_expiry(struct daemon *daemon);
void daemon_close_expiry(struct daemon *daemon);
/* Warns of what expires soon, and sets the timer for the next check. Does nothing without TLS.
 * Inside. */
void daemon_check_expiry(struct daemon *daemon);
/* Lists what expires of these files, and logs a warning for each that does so soon. */
void expiry_warn(struct ps_tls *tls, uint64_t now_s, struct ps_expiries *expiries);

/* watch_loop.c: something happened to a store. */
void daemon_tell_watchers(struct daemon *daemon);

/* names_loop.c. Without memory for it, claims alone look after the names. */
void names_open(struct daemon *daemon);
void names_close(struct daemon *daemon);

/* journal.c: as stores_on_event() wants it. */
void journal_tell(void *arg, const struct store_event_info *news);

/* listen.c. Where owners are to come to, as logs and the status page say it. */
const char *listen_text(char text[LISTEN_TEXT], bool local, const char *host, unsigned port);
/* 0, or -1 with a sentence in why. The first that listens names the daemon in its log. */
int daemon_listen(struct daemon *daemon, const struct endpoint *endpoint, char *why, size_t size);
/* Takes a socket of activation_take(), whose path stays when the daemon ends. On failure the
 * descriptor is closed. */
int daemon_adopt(struct daemon *daemon, const struct activated *socket, char *why, size_t size);
void daemon_unlisten(struct daemon *daemon);
/* Writes the port of each TCP listener, a line each, whole or not at all. */
int daemon_write_ports(const struct daemon *daemon, const char *path, char *why, size_t size);

/* Opens and binds a socket that listens; -1: why. exposed: what there is to say of an address
 * that others than this host can reach, which is refused then; NULL: it may be one. */
int listen_tcp(const struct endpoint *endpoint, const char *exposed, char *why, size_t size);
unsigned listen_port(int fd);
/* Writes a file whole or not at all. */
int listen_write_file(const char *path, const char *text, char *why, size_t size);

/* http_loop.c. 0, or -1 with a sentence in why. */
int http_open(struct daemon *daemon, const struct http_options *options, char *why, size_t size);
void http_close(struct daemon *daemon);
unsigned http_connections(const struct http *http); /* of NULL: 0 */

/* control_loop.c: takes a socket that was just accepted. */
void connection_accept(struct daemon *daemon, int fd, const struct sockaddr *from, bool local);
void connections_close(struct daemon *daemon);
/* Where the session's control connection comes from, as crowd_enter() takes it. */
const char *connection_origin(const struct session *session);
/* The address of this host that it came to. False: a Unix socket. */
bool connection_address(const struct session *session, struct sockaddr_storage *address);

/* target_tcp.c: takes a stream whose first four bytes were PS_DATA_MAGIC. identity: the name in
 * session.identity. */
void data_accept(struct daemon *daemon, struct ps_stream *stream, const char *peer,
                 const char *identity, const char *origin);
/* Closes those of which a lane's thread has seen the end. */
void data_links_end(struct daemon *daemon);
uint8_t *data_buffer(void); /* of a lane; NULL: out of memory */
/* These are for a lane's thread, inside. The next link of the lane: */
struct data_link *data_link_next(const struct data_link *link);
/* Does it have bytes that no poll tells of? Did it move since the lane last slept? */
bool data_link_again(const struct data_link *link);
bool data_link_moved(const struct data_link *link);
/* Reads what is there, or sends what the socket takes. True: something moved. */
bool data_link_serve(struct data_link *link);

/* target_shm.c */
/* A pidfd of the process at the other end of a Unix socket, -1: it cannot be told. */
int shm_process(int fd);
/* False only when the process is known to have ended. */
bool shm_lives(int pidfd);
struct holder *shm_holder(int pidfd);
/* Sends bytes, and the descriptors with the first of them. As sendmsg(). */
ssize_t shm_send(int fd, const void *bytes, size_t len, const int *fds, unsigned count);

/* target_verbs.c */
/* verbs: whose calls are made; NULL: rdma-core's. Looks for the host's devices, which may also come
 * later. -1: out of memory. */
int rdma_start(struct daemon *daemon, const struct ps_verbs *verbs,
               const struct rdma_options *options);
/* After every session has ended. */
void rdma_stop(struct daemon *daemon);

#endif
