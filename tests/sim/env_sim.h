/*
 * env_sim.h - client/core/env.h over the simulated world: time, waiting, and control connections to
 * the mirrors' real store logic.
 */
#ifndef PERSEAS_SIM_ENV_SIM_H
#define PERSEAS_SIM_ENV_SIM_H

#include "../../client/host/asked.h"
#include "../../server/store/store.h"
#include "process.h"

extern const struct ps_env_ops sim_env_ops;

/* The mirror's end of a control connection. */
struct sim_session {
	struct session session; /* first: session_ops find the rest by it */
	struct ps_control *control;
	bool open;
	struct ps_link *data; /* the data connection that opened with its token */
};

struct ps_control {
	struct sim_endpoint endpoint;
	struct sim_owner *owner;
	struct sim_mirror *mirror;
	struct sim_mirror *called; /* whose address was dialled (misled.h) */
	struct ps_control *next;   /* of the owner */
	struct ps_control *other;  /* of the mirror */
	struct sim_pipe out, in;
	struct sim_message *first, *last; /* replies that have arrived */
	bool arrived;                     /* there is one, or none will come */
	bool ended;                       /* the peer has ended it */
	bool strange;                     /* this end has, since something came that did not fit */
	bool closed;                      /* this end has */
	int fd;
	struct ps_asked due;       /* requests not yet answered */
	int asked;                 /* body case of the last one */
	uint64_t made_up;          /* for a mistake: the request whose reply is; 0: none */
	uint64_t signed_at;        /* when the last sign of progress came */
	uint64_t last_progress_at; /* the same, or when an answer was waited for last */
	uint64_t hear_ns;          /* how long it may be silent; 0: as long as it likes */
	uint64_t hearings;         /* number of calls of sim_hear */
	bool cut;                  /* the last look found it so */
	bool silent;               /* it ended by that */
	bool forged; /* a reply was, so that an answer may come that is no longer due */
	struct sim_session server;
	/* The mirror's side: the slow request (or NULL), the requests behind it, and the signs of
	 * progress given so far and to be given. */
	struct sim_message *job, *waiting;
	uint64_t signs, signs_due;
};

enum sim_kind {
	SIM_CONNECT = 1,
	SIM_REQUEST,      /* a: body case; b: epoch of a claim or a rebuild */
	SIM_SIGN,         /* of progress */
	SIM_REPLY,        /* with: the memory that goes along */
	SIM_END,          /* of a connection */
	SIM_HELLO,        /* of a data connection: bytes are the token */
	SIM_HELLO_ANSWER, /* a: accepted */
	SIM_DATA,         /* bytes of writes; a: chains that end with them */
	SIM_ANSWER,       /* a: chains completed; b: bytes taken */
	SIM_READ,         /* bytes: an extent */
	SIM_READ_ANSWER,  /* bytes; a: there were any */
};

/* Returns the address that mirrors recorded for one that this owner sees. */
uint64_t sim_recorded(const struct sim_owner *o, uint64_t address);

/* Breaks the connection: messages in flight are lost, and each end learns of it in its own time. */
void sim_control_reset(struct ps_control *control);

/* The mirror's host is gone: this end learns of it late. */
void sim_control_lost(struct ps_control *control);

/* The process is gone, and with it its ends of the connections. */
void sim_controls_died(struct sim_owner *o, bool silent);

#endif
