/*
 * connection.h - a control connection, for the files that share it: control_loop.c, which reads
 * requests and sends replies, jobs_loop.c, which has them worked on aside, and connection_loop.c,
 * which has its beginning, its timer and its turns.
 */
#ifndef PERSEAS_SERVER_CONNECTION_H
#define PERSEAS_SERVER_CONNECTION_H

#include "daemon.h"

#include "../store/control.h"
#include "../host/jobs.h"

enum { INPUT_FIRST = 4096 }; /* bytes of input buffer at first; what is no more is small */

/*
 *   TLS --handshake--> SNIFF --control magic--> HELLO --good version--> OPEN
 *                        |                        |                       |
 *                        +--data magic--> (data_accept takes the stream)  +--too long--> LAST
 *                                                 +--bad version--> LAST
 */
enum stage {
	STAGE_TLS,   /* the handshake is not over; only with TLS */
	STAGE_SNIFF, /* the magic is due */
	STAGE_HELLO, /* the rest of the hello is due */
	STAGE_OPEN,  /* requests */
	STAGE_LAST,  /* what is unsent is sent, then it is closed */
};

/* What the timer of a connection is for. */
enum due {
	DUE_NOTHING,
	DUE_HELLO,   /* it must have said what it is, after the handshake of TLS */
	DUE_REQUEST, /* the rest of the request must have come */
	DUE_REPLY,   /* the reply must have been taken */
	DUE_TURN,    /* it is read again */
	DUE_SIGN,    /* its request waits, or is worked on: a sign of progress */
	DUE_WATCH,   /* nothing is new to it: whether that is still so */
};

struct connection {
	struct session session; /* first: its functions find the connection by it */
	struct guest guest;
	struct daemon *daemon;
	struct connection *next;
	struct connection **link;
	struct ps_stream stream;
	int process; /* pidfd of a peer on this host, else -1 */
	enum stage stage;
	struct event *readable;
	struct event *writable;
	struct event *timer;
	enum due due;
	uint64_t hello_until_ns;
	struct bucket bucket; /* while it holds a claim */
	bool has_turn;        /* it has waited for what it asks now */
	struct bucket haste;  /* of requests that come before the others' */
	bool hurries;         /* what it asks next does */
	uint8_t *input;
	size_t have, room;
	struct control_reply output;
	size_t sent;
	size_t held; /* its part of daemon->held */
	/* jobs_loop.c's: */
	struct control_subject subject; /* of the request that waits, or is worked on */
	struct job job;                 /* that works on it */
	struct connection *parked_next;
	struct event *hangup; /* while it waits, or is worked on */
	bool parked;          /* the request waits for what is under way */
	bool working;         /* it is worked on aside */
	bool gone;            /* nobody waits for the answer: it is closed afterwards */
	bool hung_up;         /* the other end closed it, or is no more */
	/* watch_loop.c's: */
	struct connection *watch_next, **watch_link; /* watch_link NULL: it does not wait there */
	uint64_t watch_until_ns;
	int handled; /* what control_handle() said */
	uint64_t began_ns;
	uint64_t sign_base, sign_last; /* of `done` in signs of progress */
	bool listens;                  /* it has sent a sign of life: it waits for ours */
};

/* connection_loop.c */
uint64_t connection_now_ms(void);
/* Runs its timer; one that runs for the same already goes on. */
void connection_wait(struct connection *connection, enum due due, uint64_t ns);
/* Stops the timer, if it runs for that. */
void connection_wait_no_more(struct connection *connection, enum due due);
/* Counts what it holds of large messages, while it holds no claim. */
void connection_weigh(struct connection *connection);
/* All of them hold so much that this one, which holds no claim, is to wait. */
bool connection_is_too_much(const struct connection *connection);
/* Takes its turn for the request that has come. True: it has to wait for it, is not read from
 * meanwhile, and is read again then. */
bool connection_must_wait(struct connection *connection);
/* It asks no more: gives back the turn that it waits for. */
void connection_give_up_turn(struct connection *connection);
/* After each request: whether the next one comes before the others'. */
void connection_rank(struct connection *connection);
/* Messages that it gets before the others' turn. */
unsigned connection_rounds(const struct connection *connection);
/*
 * Says who is at the other end, once that is known: for this, one place. certificate: the name in
 * the one that was verified; NULL: there is none. -1: it has too many connections, or a name that
 * is none; it is of no more use.
 */
int connection_identify(struct connection *connection, const char *certificate);
/*
 * Whose lifeline the connection was, once its other end has hung up: that session is over, as if
 * its own connection had ended. NULL: nobody's. What this daemon closes, or a network that carries
 * nothing, says nothing of the owner.
 */
struct connection *connection_kept_by(const struct connection *connection);

/* expiry_loop.c: what expires of the files that the daemon uses, as of its last check. */
const struct ps_expiries *connection_expiries(struct session *session);

/* control_loop.c */
extern const struct session_ops connection_session;
void connection_read(struct connection *connection);
void connection_write(struct connection *connection);
/* What was worked on is done: its reply goes out, and the next request is read. */
void connection_handled(struct connection *connection);
void connection_close(struct connection *connection);
/* Sends a sign of life. False: it is of no more use. */
bool connection_beat(struct connection *connection);

/* jobs_loop.c */
/* Handles the request that is whole. False: it waits, or is worked on; connection_handled() comes
 * then. */
bool connection_handle(struct connection *connection);
/* The event of `hangup`. */
void connection_on_hangup(int fd, short what, void *arg);
/* Its timer has come, to give a sign of progress. */
void connection_sign(struct connection *connection);
/* It is about to be freed: it waits for nothing any more. */
void connection_unpark(struct connection *connection);

/* watch_loop.c */
/* Does its request wait until something is new to it? connection_handled() comes then. */
bool connection_watches(struct connection *connection);
/* Its timer has come, to see whether something is. */
void connection_watch(struct connection *connection);
/* Bytes of it have come: it is noted when, and an owner that was silent for long may be back. */
void connection_heard(struct connection *connection);
/* It waits there no more; nothing when it did not. */
void connection_unwatch(struct connection *connection);

#endif
