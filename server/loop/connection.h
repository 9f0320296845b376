/*
 * connection.h - a control connection, for the files that implement it: control_loop.c reads
 * requests, output_loop.c sends replies, jobs_loop.c runs long requests as jobs, watch_loop.c lets
 * requests wait, and connection_loop.c has accepting, timers and rate limits.
 */
#ifndef PERSEAS_SERVER_CONNECTION_H
#define PERSEAS_SERVER_CONNECTION_H

#include "daemon.h"

#include "../store/control.h"
#include "../host/jobs.h"

enum { INPUT_FIRST = 4096 }; /* first size of the input buffer; larger messages count as large */

/*
 *   TLS --handshake--> SNIFF --control magic--> HELLO --good version--> OPEN
 *                        |                        |                       |
 *                        +--data magic--> (data_accept takes the stream)  +--too long--> FLUSHING
 *                                                 +--bad version--> FLUSHING
 */
enum stage {
	STAGE_TLS,      /* TLS handshake */
	STAGE_SNIFF,    /* the first four bytes must come */
	STAGE_HELLO,    /* the rest of the hello must come */
	STAGE_OPEN,     /* requests are received and answered */
	STAGE_FLUSHING, /* unsent bytes are sent, then the connection is closed */
};

/* What must have happened, or happens, when the connection's timer ends. */
enum due {
	DUE_NOTHING,  /* the timer is not running */
	DUE_HELLO,    /* the hello must have come (after the TLS handshake) */
	DUE_REQUEST,  /* the rest of the request must have come */
	DUE_REPLY,    /* the peer must have taken the reply */
	DUE_RESUME,   /* reading resumes after a rate limit */
	DUE_PROGRESS, /* a sign of progress is due, because the request waits or runs as a job */
	DUE_WATCH,    /* the state that a Watch waits for must be checked again */
};

struct connection {
	struct session session; /* must be first: session functions cast it to the connection */
	struct admitted admitted;
	struct daemon *daemon;
	struct connection *next;
	struct connection **link;
	struct ps_stream stream;
	int pidfd; /* pidfd of a peer on this host; -1: none */
	enum stage stage;
	struct event *readable;
	struct event *writable;
	struct event *due_timer; /* ends when `due` must have happened */
	enum due due;
	uint64_t hello_until_ns;       /* time until which the hello must have come */
	struct bucket bucket;          /* rate limit of requests while the session holds a claim */
	bool passed_rate_limit;        /* the rate limit has admitted the present request */
	struct bucket priority_bucket; /* rate limit of requests with priority */
	bool has_priority;             /* the next request has priority over other connections */
	uint8_t *input;
	size_t input_length, input_capacity; /* bytes in `input`, and its size */
	struct control_reply output;
	size_t sent;        /* bytes of `output` that are sent */
	size_t large_bytes; /* the connection's share of daemon->large_bytes */
	/* The following members belong to jobs_loop.c. */
	struct control_subject subject; /* what the request that waits or runs is about */
	struct job job;                 /* the job that runs the request */
	struct connection *parked_next;
	struct event *hangup_event; /* detects a hangup while a request waits or runs */
	bool is_parked;             /* the request waits for jobs or other requests */
	bool runs_as_job;           /* the request runs as a job */
	bool close_after_job;       /* close the connection when the job ends: nobody waits for the
	                               reply */
	bool has_hung_up;           /* the peer has closed the connection or has died */
	/* The following members belong to watch_loop.c. */
	/* List of connections that wait in a Watch; watch_link NULL: not in the list. */
	struct connection *watch_next, **watch_link;
	uint64_t watch_until_ns; /* time at which the Watch is answered in any case */
	int handle_result;       /* result of control_handle() */
	uint64_t began_ns;       /* time at which the request began */
	uint64_t progress_base,
		progress_last;        /* offset and last value of `done` in signs of progress */
	bool peer_expects_heartbeats; /* the peer sends heartbeats, so it expects ours */
};

/* connection_loop.c */
/* Moves the connection to another stage, which must be one that may follow. */
void connection_set_stage(struct connection *connection, enum stage to);
/* Returns the time of the monotonic clock in milliseconds. */
uint64_t connection_now_ms(void);
/* Starts the timer. If it is already running for the same purpose, it continues. */
void connection_start_timer(struct connection *connection, enum due due, uint64_t ns);
/* Stops the timer if it is running for this purpose. */
void connection_stop_timer(struct connection *connection, enum due due);
/* Updates the bytes of large messages that are charged to the connection. A connection with a claim
 * is not charged. */
void connection_update_large_bytes(struct connection *connection);
/* Returns true if the connection has no claim and must wait, because all connections together have
 * too many bytes of large messages. */
bool connection_exceeds_large_bytes(const struct connection *connection);
/* Applies the rate limits to a received request. Returns true if the request must wait: the
 * connection stops reading and resumes later. */
bool connection_pause_if_limited(struct connection *connection);
/* Gives the token of the rate limit back if the connection is closed while its request waits for
 * that limit. */
void connection_return_token(struct connection *connection);
/* Decides whether the next request has priority. Called after each request. */
void connection_set_priority(struct connection *connection);
/* Returns how many messages of the peer are handled before other connections have their turn. */
unsigned connection_message_budget(const struct connection *connection);
/* Sets the identity of the peer once it is known: now, or after the TLS handshake. `certificate` is
 * the name in the verified certificate; NULL: none. Returns 0, or -1 if the identity has too many
 * connections or an invalid name; the caller must then close the connection. */
int connection_set_identity(struct connection *connection, const char *certificate);
/* If this connection was a lifeline and its peer has hung up, returns the owner's connection, whose
 * session must end, too. Returns NULL otherwise. A close by this daemon, or a network failure, does
 * not end the owner's session. */
struct connection *connection_of_ended_lifeline(const struct connection *connection);

/* expiry_loop.c: returns the expiry dates of the daemon's TLS files, as of the last check. */
const struct ps_expiries *connection_get_tls_expiries(struct session *session);

/* control_loop.c */
extern const struct session_ops connection_session;
/* Reads and handles messages until the input is empty, the connection must wait, or other
 * connections have their turn. */
void connection_read(struct connection *connection);
void connection_write(struct connection *connection);
/* Called when the job of a request has ended: sends its reply and reads the next request. */
void connection_reply_after_job(struct connection *connection);
void connection_close(struct connection *connection);

/* output_loop.c */
/* Sends what the socket takes. Returns 0, or -1 if the connection must be closed. */
int connection_send_output(struct connection *connection);
/* Frees the output, which was sent or never will be. */
void connection_free_output(struct connection *connection);
/* Sends a heartbeat. Returns false if the connection must be closed. */
bool connection_send_heartbeat(struct connection *connection);

/* jobs_loop.c */
/* Handles a complete request. Returns false if the request waits or runs as a job;
 * connection_reply_after_job() follows later. */
bool connection_handle_or_defer_request(struct connection *connection);
/* Callback of the `hangup` event. */
void connection_on_hangup(int fd, short what, void *arg);
/* Sends a sign of progress. Called by the timer. */
void connection_send_progress(struct connection *connection);
/* Removes the connection from the list of those whose requests wait for jobs. Does nothing if the
 * connection is not in the list. */
void connection_leave_parked(struct connection *connection);

/* watch_loop.c */
/* Returns true if the connection's request is a Watch that must wait; connection_reply_after_job()
 * follows later. */
bool connection_wait_in_watch(struct connection *connection);
/* Checks whether the Watch can be answered. Called by the timer. */
void connection_recheck_watch(struct connection *connection);
/* Records that bytes have arrived. Wakes watchers if an owner has returned after a long silence. */
void connection_note_received(struct connection *connection);
/* Removes the connection from the list of watchers. Does nothing if the connection is not in the
 * list. */
void connection_leave_watchers(struct connection *connection);

#endif
