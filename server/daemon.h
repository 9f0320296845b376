/*
 * daemon.h - the daemon around the store logic: one thread, one libevent loop.
 *
 *   main.c             what happens in which order from start to end
 *   activation.c       sockets that a service manager has opened
 *   listen.c           sockets that wait for connections
 *   connection_loop.c  control connections: who they are, and how long they may take
 *   control_loop.c     what they ask; tells them from data connections
 *   crowd.c            how many there may be, and which one goes
 *   target_tcp.c       data connections
 *   target_shm.c       descriptors and processes on this host
 *   target_verbs.c     memory registered for RDMA (with *_verbs.c, left out by RDMA=0)
 *   http_loop.c        pages for who watches it: metrics.c, status_json.c, page.html
 *   journal.c          what happens to stores, in the log
 *   daemon.c           the loop itself
 */
#ifndef PERSEAS_SERVER_DAEMON_H
#define PERSEAS_SERVER_DAEMON_H

#include "../proto/tls.h"
#include "config.h"
#include "counters.h"
#include "crowd.h"
#include "log.h"
#include "target.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>

struct connection;
struct data_link;
struct event;
struct http;
struct listener;
struct ps_verbs;
struct verbs_target;

enum {
	HANDSHAKE_SECONDS = 5,  /* until a connection must have said what it is */
	MESSAGE_SECONDS = 10,   /* until a request has come, or a reply was taken, whole; unless
	                           another time is set */
	CONNECTIONS_MAX = 1024, /* of all kinds, unless another number is set */
	CONNECTIONS_KEPT = 4,   /* one in so many is not for plain connections (crowd.h) */
	ORIGIN_MAX = 160,       /* bytes of the name of an origin */
	PRIORITY_OWNERS = 0,    /* of the loop's events: .. */
	PRIORITY_OTHERS = 1,    /* .. one of these, and then all that owners wait for */
	OTHERS_WAIT_MS = 5,     /* for one of theirs, where owners never pause */
	PRIORITIES = 2,
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
	struct data_link *links;
	struct verbs_target *rdma; /* NULL: built or started without */
	struct http *http;         /* NULL: nobody watches */
	struct ps_tls *tls;        /* of TCP connections that come; NULL: they are plain text. The
	                              daemon's */
	bool exposed;              /* plain text also where others than this host can connect */
	uint8_t *buffer;           /* of target_tcp: what recv() fills */
	struct crowd crowd;        /* connections of all kinds */
	size_t held;               /* bytes of large messages that are under way */
	uint64_t message_ns;       /* as MESSAGE_SECONDS */
	struct log_limit told[REFUSALS]; /* of connections that were refused */
	unsigned unix_mode;              /* of the files of Unix sockets; 0: 0600 */
	uint64_t spin_ns;                /* how long the loop spins after data arrived; 0: never */
	uint64_t spins; /* times that it has spun: marks the links that moved since */
	struct counters counters;
	uint64_t began_ns;   /* by daemon_now_ns() */
	struct event *last;  /* comes when no event of the others waits before it .. */
	uint64_t last_since; /* .. which it does since then; 0: it does not */
	uint64_t others_at;  /* when one of theirs came last */
	enum daemon_phase phase;
	bool running; /* daemon_run() */
	bool moved;   /* data arrived since the loop last asked */
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
/* Counts a connection that is refused. The limit for what is to be told of it: anybody can have
 * himself refused as often as he likes. */
struct log_limit *daemon_refuse(struct daemon *daemon, enum refusal refusal);
/* There is no room for that connection. */
void daemon_tell_crowded(struct daemon *daemon, const char *peer);
/* Adds to a grant what the fabrics offer. */
void daemon_grant(struct daemon *daemon, struct session *session, Perseas__Grant *grant);
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

/* journal.c: as stores_on_news() wants it. */
void journal_tell(void *arg, const struct store_news *news);

/* listen.c. 0, or -1 with a sentence in why. */
int daemon_listen(struct daemon *daemon, const struct endpoint *endpoint, char *why, size_t size);
/* Takes a socket of activation_take(), whose path stays when the daemon ends. On failure the
 * descriptor is closed. */
int daemon_adopt(struct daemon *daemon, const struct activated *socket, char *why, size_t size);
void daemon_unlisten(struct daemon *daemon);
/* Writes the port of each TCP listener, a line each, whole or not at all. */
int daemon_write_ports(const struct daemon *daemon, const char *path, char *why, size_t size);

/* .. opens and binds a socket that listens; -1: why. exposed: what there is to say of an address
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
extern const struct target target_tcp;
void data_accept(struct daemon *daemon, struct ps_stream *stream, const char *peer,
                 const char *identity, const char *origin);
void data_links_close(struct daemon *daemon);

/* target_shm.c */
extern const struct target target_shm;
/* A pidfd of the process at the other end of a Unix socket, -1: it cannot be told. */
int shm_process(int fd);
/* False only when the process is known to have ended. */
bool shm_lives(int pidfd);
struct holder *shm_holder(int pidfd);
/* Sends bytes, and the descriptors with the first of them. As sendmsg(). */
ssize_t shm_send(int fd, const void *bytes, size_t len, const int *fds, unsigned count);

/* target_verbs.c */
extern const struct target target_rdma;
/* verbs: whose calls are made; NULL: rdma-core's. Looks for the host's devices, which may also come
 * later. -1: out of memory. */
int rdma_start(struct daemon *daemon, const struct ps_verbs *verbs,
               const struct rdma_options *options);
/* After every session has ended. */
void rdma_stop(struct daemon *daemon);

#endif
