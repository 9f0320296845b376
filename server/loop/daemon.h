/*
 * daemon.h - the daemon around the store logic: one libevent loop, threads that take turns with it
 * for what takes long, and threads that carry the data of owners.
 *
 *   main.c             start and end of the daemon
 *   activation.c       sockets that a service manager has opened
 *   listen.c           listening sockets
 *   connection_loop.c  control connections: identities, timers, rate limits
 *   control_loop.c     control connections: requests
 *   output_loop.c      control connections: replies
 *   jobs_loop.c        long requests, as jobs that take turns with the loop (jobs.c)
 *   watch_loop.c       requests that wait until a store gains or loses its owner
 *   reload.c           access rules and TLS files, which SIGHUP reads again
 *   names_loop.c       images whose files were removed
 *   expiry_loop.c      certificates that are about to expire
 *   admission.c        admission control and rate limits of connections
 *   target_tcp.c       data connections (with answers_tcp.c)
 *   lanes.c            threads of data connections, and the lock between them and the loop
 *   target_shm.c       descriptors and processes on this host
 *   target_verbs.c     memory registered for RDMA (with *_verbs.c, left out by RDMA=0)
 *   http_loop.c        pages for monitoring: metrics.c, status_json.c, page.html
 *   journal.c          events of stores in the log (log.c, log_out.c)
 *   daemon.c           the loop itself
 */
#ifndef PERSEAS_SERVER_DAEMON_H
#define PERSEAS_SERVER_DAEMON_H

#include "../../proto/base/tls.h"
#include "config.h"
#include "counters.h"
#include "admission.h"
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
	HANDSHAKE_SECONDS = 5,  /* default limit for the hello of a new connection */
	MESSAGE_SECONDS = 10,   /* default limit for receiving a request or sending a reply */
	CONNECTIONS_MAX = 1024, /* default limit of connections of all kinds */
	/* Plain TCP connections do not get one in this many places (admission.h). */
	CONNECTIONS_RESERVED_PART = 4,
	/* Owners do not get one in this many places, so that operators can connect. */
	OPERATORS_RESERVED_PART = 16,
	ORIGIN_MAX = 160, /* size of an origin's name */
	/* Priority of events that owners wait for: all of these run first. */
	PRIORITY_OWNERS = 0,
	/* Priority of other events: one of these runs, then owners' again. */
	PRIORITY_NON_OWNERS = 1,
	NON_OWNERS_WAIT_MS = 5, /* longest wait of other events while owners are busy */
	PRIORITIES = 2,         /* number of priorities */
	LISTEN_TEXT = 272,      /* size of listen_text() */
	WATCHERS_MAX = 256,     /* default limit of requests that wait in a Watch */
};

enum daemon_phase {
	DAEMON_LOADING, /* images are loaded; owners cannot connect yet */
	DAEMON_SERVING,
	DAEMON_ENDING, /* all sessions have ended */
};

struct daemon {
	struct event_base *base;
	struct stores *stores;
	struct listener *listeners;
	struct connection *connections;
	struct verbs_target *rdma; /* NULL: built or started without RDMA */
	struct http *http;         /* NULL: no HTTP */
	struct names_loop *names;  /* NULL: the names of files are not checked regularly */
	struct ps_tls *tls;        /* for new TCP connections; NULL: no TLS. Owned by the daemon */
	bool allows_exposed_plaintext; /* plain TCP is allowed on addresses that other hosts
	                                  reach */
	struct lane loop_lane;         /* the data connections that the loop serves */
	struct lanes *lanes;        /* threads that serve the other data connections; NULL: none */
	struct admission admission; /* connections of all kinds */
	size_t large_bytes;         /* bytes of large messages that connections hold now */
	uint64_t handshake_ns;      /* time limit for a hello (HANDSHAKE_SECONDS) */
	uint64_t message_ns;        /* time limit for a message (MESSAGE_SECONDS) */
	/* Rate limits of log messages about refused connections. */
	struct log_limit refusal_log_limits[REFUSALS];
	unsigned unix_mode; /* permissions of Unix sockets; 0: 0600 */
	/* How long the loop polls after data arrived; 0: not at all. */
	uint64_t spin_ns;
	struct counters counters;
	uint64_t began_ns;                   /* start time, by daemon_now_ns() */
	struct event *lowest_priority_event; /* runs when no event of other clients is waiting */
	/* Time since when lowest_priority_event waits to run; 0: it does not. */
	uint64_t lowest_priority_event_since_ns;
	uint64_t last_non_owner_event_ns;     /* time of the last event of another client */
	uint64_t unprioritized_wait_until_ns; /* until when other clients wait while threads move
	                                         data */
	struct jobs *jobs;
	/* Writes log lines that their reader did not take. */
	struct event *log_flush_timer;
	struct event *jobs_event; /* runs when a job waits for its turn */
	int jobs_fd;              /* eventfd that activates jobs_event */
	/* Connections whose requests are parked, that is, wait for jobs, in order. */
	struct connection *parked, **parked_last;
	/* Connection whose request waited long enough and must begin now; NULL: none. */
	const struct connection *connection_to_resume;
	/* Job during which no request may begin; NULL: none. */
	const struct job *exclusive_job;
	struct event *event_after_jobs; /* event to run when no job is left; NULL: none */
	/* Checks once a second for owners that use more memory than was reserved for them. */
	struct event *memory_excess_timer;
	struct job cut_excess_job;   /* cuts the sessions of these owners */
	struct event *expiry_timer;  /* checks when certificates expire */
	struct ps_expiries expiries; /* expiry dates of `tls`, as of the last check */
	uint64_t (*wall_s)(void);    /* returns seconds since 1970 */
	/* Connections that wait in a Watch, in order. */
	struct connection *watchers, **watchers_last;
	unsigned watcher_count, watchers_max; /* their number and its limit (WATCHERS_MAX) */
	uint64_t longest_watch_ns;            /* longest wait in a Watch (PS_WATCH_MS) */
	bool has_news; /* stores have events that watchers were not told of */
	/* Copy of the socket of the client that asked for a spill, which is closed when the process
	 * exits; -1: none. */
	int spill_requester_fd;
	enum daemon_phase phase;
	bool is_loop_running; /* inside daemon_run() */
	bool is_stopping;
};

/* daemon.c */
/* Makes a daemon that polls for spin_us after data arrived. Returns NULL if memory is out. */
struct daemon *daemon_new(struct stores *stores, uint64_t spin_us);
/* Ends all connections, and with them all sessions. Images stay in memory. */
void daemon_free(struct daemon *daemon);
/* Sets the maximum number of connections of all kinds. */
void daemon_set_max_connections(struct daemon *daemon, unsigned max);
/* Runs the loop until daemon_stop() is called. */
void daemon_run(struct daemon *daemon);
void daemon_stop(struct daemon *daemon);
/* Ends all connections except those for HTTP, and with them all sessions. */
void daemon_end_sessions(struct daemon *daemon);
/* Answers pending HTTP requests. Called by code that works for long outside of daemon_run(). */
void daemon_serve_http(struct daemon *daemon);
uint64_t daemon_now_ns(void); /* CLOCK_MONOTONIC */
/* Ends the session's data paths of every fabric (I5). */
void daemon_cut_data_paths(struct daemon *daemon, struct session *session);
/* Counts a refused connection. Returns the rate limit for the log message about it, because a peer
 * could cause many. */
struct log_limit *daemon_count_refusal(struct daemon *daemon, enum refusal refusal);
/* Logs that the connection of `peer` is closed because there are too many connections. */
void daemon_log_too_many_connections(struct daemon *daemon, const char *peer);
/* Adds to a grant what the daemon's fabrics offer the session. */
void daemon_fill_grant(struct daemon *daemon, struct session *session, Perseas__Grant *grant);
/* Returns true if the session could use RDMA. Otherwise `why` has the reason. */
bool daemon_offers_rdma(struct daemon *daemon, struct session *session, char *why, size_t size);
/* Loads TLS files. Warns if others can read the key. The caller frees the result. Returns NULL with
 * a sentence in `why` on failure. */
struct ps_tls *daemon_read_tls(const struct ps_tls_files *files, char *why, size_t size);
/* Loads TLS files for new connections. Returns 0, or -1 with a sentence in `why`: the old files
 * stay in use. */
int daemon_load_tls(struct daemon *daemon, const struct ps_tls_files *files, char *why,
                    size_t size);

/* Runs the event `readable` again after other events had their turn. For a stream with bytes that
 * poll() does not report (ps_stream_pending()). */
void daemon_rerun_event(struct daemon *daemon, struct event *readable);

/* Returns true if the caller must leave an owner's data unread until target.resume(). Otherwise an
 * owner that never pauses would starve other clients, because owners' events run first. */
bool daemon_must_pause_owners(struct daemon *daemon);
/* Records that an event of another client than an owner has run. */
void daemon_note_non_owner_event(struct daemon *daemon);

/* jobs_loop.c. Returns 0, or -1 if memory is out. */
int daemon_open_jobs(struct daemon *daemon);
void daemon_close_jobs(struct daemon *daemon);
/* Runs the job in a thread, and the loop until the job has ended. For the start of the daemon. */
void daemon_run_job_to_end(struct daemon *daemon, struct job *job);
/* Runs the job. While it runs, no request may begin, except those that only read. No other job may
 * be running (see daemon_defer_event_until_no_jobs()). The job may end before or after this
 * returns. Call inside the lock. */
void daemon_run_exclusive_job(struct daemon *daemon, struct job *job);
/* If any job is running, returns true, lets no further job begin, and runs `event` when the last
 * one has ended. For actions that must not happen between the steps of a request, such as changing
 * the access rules. */
bool daemon_defer_event_until_no_jobs(struct daemon *daemon, struct event *event);

/* excess_loop.c. Returns 0, or -1 if memory is out. */
int daemon_open_excess_check(struct daemon *daemon);
void daemon_close_excess_check(struct daemon *daemon);
/* Starts checking once a second whether an owner uses more memory than was reserved for its image.
 * Called when memory was shared with an owner; continues as long as any memory is shared. */
void daemon_start_excess_checks(struct daemon *daemon);

/* Wakes the loop to look at waiting jobs and watchers. Any thread may call it. */
void daemon_wake(const struct daemon *daemon);

/* expiry_loop.c. Returns 0, or -1 if memory is out. */
int daemon_open_expiry_timer(struct daemon *daemon);
void daemon_close_expiry_timer(struct daemon *daemon);
/* Logs a warning for each expiry date that is near, and sets the timer for the next check. Does
 * nothing without TLS. Call inside the lock. */
void daemon_check_expiry_dates(struct daemon *daemon);
/* Lists the expiry dates of these files, and logs a warning for each that is near. */
void expiry_log_warnings(struct ps_tls *tls, uint64_t now_s, struct ps_expiries *expiries);

/* watch_loop.c: answers the waiting Watches of stores whose state has changed. */
void daemon_answer_watchers(struct daemon *daemon);

/* names_loop.c: starts checking whether files of images were removed or renamed. If memory is out,
 * only claims check that. */
void names_loop_open(struct daemon *daemon);
void names_loop_close(struct daemon *daemon);

/* journal.c: logs an event of a store. A callback for stores_on_event(). */
void journal_log_event(void *arg, const struct store_event_info *news);

/* listen.c. Formats the address of a listener for logs and the status page. */
const char *listen_text(char text[LISTEN_TEXT], bool local, const char *host, unsigned port);
/* Opens a listener. Returns 0, or -1 with a sentence in `why`. The first listener names the daemon
 * in its log. */
int daemon_listen(struct daemon *daemon, const struct endpoint *endpoint, char *why, size_t size);
/* Listens at a socket that the service manager has opened (activation_take()). Does not remove the
 * socket's path when the daemon exits. Closes the descriptor on failure. */
int daemon_adopt_socket(struct daemon *daemon, const struct activated *socket, char *why,
                        size_t size);
void daemon_close_listeners(struct daemon *daemon);
/* Writes the port of each TCP listener to a file, one per line, atomically. */
int daemon_write_ports(const struct daemon *daemon, const char *path, char *why, size_t size);

/* Opens a listening TCP socket. If `exposed` is not NULL, an address that other hosts can reach is
 * refused with that text. Returns the socket, or -1 with a sentence in `why`. */
int listen_tcp(const struct endpoint *endpoint, const char *exposed, char *why, size_t size);
/* Returns the port of a listening TCP socket. */
unsigned listen_get_port(int fd);
/* Writes a file atomically. */
int listen_write_file_atomically(const char *path, const char *text, char *why, size_t size);

/* http_loop.c. Returns 0, or -1 with a sentence in `why`. */
int http_open(struct daemon *daemon, const struct http_options *options, char *why, size_t size);
void http_close(struct daemon *daemon);
unsigned http_connections(const struct http *http); /* number of open connections; 0 for NULL */

/* control_loop.c: takes over a socket that was just accepted. */
void connection_accept(struct daemon *daemon, int fd, const struct sockaddr *from, bool local);
void connections_close(struct daemon *daemon);
/* Returns the origin of the session's control connection, as admission_admit() takes it. */
const char *connection_get_origin(const struct session *session);
/* Stores the address of this host to which the session connected. Returns false for a Unix
 * socket. */
bool connection_get_address(const struct session *session, struct sockaddr_storage *address);

/* target_tcp.c: takes over a stream whose first four bytes were PS_DATA_MAGIC. `identity` is the
 * name in session.identity. */
void data_accept(struct daemon *daemon, struct ps_stream *stream, const char *peer,
                 const char *identity, const char *origin);
/* Closes data connections of which a lane's thread reported the end. */
void data_links_close_ended(struct daemon *daemon);
/* Allocates a lane's buffer. Returns NULL if memory is out. */
uint8_t *data_buffer(void);
/* The following functions are for a lane's thread, inside the lock. */
/* Returns the next link of the lane. */
struct data_link *data_link_next(const struct data_link *link);
/* Returns true if the link has received bytes that poll() does not report. */
bool data_link_has_pending(const struct data_link *link);
/* Returns true if the link has moved data since the lane's thread last slept. */
bool data_link_moved(const struct data_link *link);
/* Reads the bytes that have arrived, or sends what the socket takes. Returns true if any data
 * moved. */
bool data_link_serve(struct data_link *link);

/* target_shm.c */
/* Returns a pidfd of the process at the other end of a Unix socket, or -1 if it is unknown. */
int shm_peer_pidfd(int fd);
/* Returns false only if the process is known to have ended. */
bool shm_process_is_alive(int pidfd);
/* Makes a holder for the process, with a copy of its pidfd. Returns NULL if memory is out. */
struct holder *shm_holder_new(int pidfd);
/* Sends bytes, and the descriptors with the first byte. Returns as sendmsg(). */
ssize_t shm_send(int fd, const void *bytes, size_t len, const int *fds, unsigned count);

/* target_verbs.c */
/* Starts RDMA. `verbs` are the functions to use; NULL: those of rdma-core. Looks for the host's
 * devices, which may also appear later. Returns 0, or -1 if memory is out. */
int rdma_start(struct daemon *daemon, const struct ps_verbs *verbs,
               const struct rdma_options *options);
/* Call after every session has ended. */
void rdma_stop(struct daemon *daemon);

#endif
