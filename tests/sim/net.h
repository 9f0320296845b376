/*
 * net.h - what lies between owners and mirrors: a path for each pair, with a delay and two
 * directions that can be blocked, and pipes over it, in which messages keep their order.
 */
#ifndef PERSEAS_SIM_NET_H
#define PERSEAS_SIM_NET_H

#include "world.h"

enum sim_direction { SIM_OUT, SIM_IN }; /* owner to mirror, mirror to owner */

struct sim_message {
	struct sim_message *next;
	uint64_t arrival;
	int kind;
	uint32_t len;  /* of bytes */
	uint64_t a, b; /* what the kind says */
	void *with;
	uint8_t bytes[];
};

struct sim_pipe;

struct sim_path {
	uint64_t delay;   /* ns, at least */
	uint64_t jitter;  /* ns, up to so much more */
	uint64_t byte_ns; /* what a byte takes */
	bool blocked[2];  /* by direction: messages wait */
	struct sim_pipe *pipes;
};

struct sim_pipe {
	struct sim_pipe *next; /* of the path */
	struct sim_world *world;
	struct sim_path *path;
	enum sim_direction direction;
	bool broken; /* messages are lost */
	bool armed;  /* an event for the first message is due */
	struct sim_message *first, *last;
	uint64_t arrival; /* of the last message that was sent */
	void (*deliver)(void *arg, struct sim_message *message);
	void *arg;
};

void sim_pipe_init(struct sim_world *w, struct sim_pipe *pipe, struct sim_path *path,
                   enum sim_direction direction,
                   void (*deliver)(void *arg, struct sim_message *message), void *arg);

/* Returns a new message of `len` bytes, which may be NULL. */
struct sim_message *sim_message_new(struct sim_world *w, int kind, const void *bytes, size_t len);

void sim_pipe_send(struct sim_pipe *pipe, struct sim_message *message);

/* Loses all messages in flight, and all later ones. */
void sim_pipe_break(struct sim_pipe *pipe);

/* Blocks or opens the directions: messages in a blocked direction wait. */
void sim_path_block(struct sim_path *path, bool out, bool in);
/* Event: both directions are open. */
void sim_path_unblock(struct sim_world *w, void *path, uint64_t ticket);

#endif
