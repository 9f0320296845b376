/*
 * net.c - delays, order and breaks of messages, as events of the world. env_sim.c and
 * fabric_sim.c send by it. It never looks into a message.
 */
#include "net.h"

void sim_pipe_init(struct sim_world *w, struct sim_pipe *pipe, struct sim_path *path,
                   enum sim_direction direction,
                   void (*deliver)(void *arg, struct sim_message *message), void *arg)
{
	memset(pipe, 0, sizeof(*pipe));
	pipe->world = w;
	pipe->path = path;
	pipe->direction = direction;
	pipe->deliver = deliver;
	pipe->arg = arg;
	pipe->next = path->pipes;
	path->pipes = pipe;
}

struct sim_message *sim_message_new(struct sim_world *w, int kind, const void *bytes, size_t len)
{
	struct sim_message *message = sim_alloc(w, sizeof(*message) + len);

	message->kind = kind;
	message->len = (uint32_t)len;
	if (bytes)
		memcpy(message->bytes, bytes, len);
	return message;
}

static void arrive(struct sim_world *w, void *arg, uint64_t ticket);

static void arm(struct sim_pipe *pipe)
{
	if (pipe->armed || pipe->broken || !pipe->first || pipe->path->blocked[pipe->direction])
		return;
	pipe->armed = true;
	sim_at(pipe->world, pipe->first->arrival, arrive, pipe, 0);
}

static void arrive(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_pipe *pipe = arg;
	struct sim_message *message = pipe->first;

	(void)w;
	(void)ticket;
	pipe->armed = false;
	if (pipe->broken || !message || pipe->path->blocked[pipe->direction])
		return;
	pipe->first = message->next;
	if (!pipe->first)
		pipe->last = NULL;
	pipe->deliver(pipe->arg, message);
	arm(pipe);
}

void sim_pipe_send(struct sim_pipe *pipe, struct sim_message *message)
{
	struct sim_world *w = pipe->world;
	const struct sim_path *path = pipe->path;
	uint64_t delay = path->delay + sim_below(w, path->jitter);

	if (pipe->broken)
		return;
	/* Now and then a packet is lost and sent again. */
	if (sim_below(w, 200) == 0)
		delay *= 20;
	message->arrival = w->now + delay;
	if (message->arrival < pipe->arrival)
		message->arrival = pipe->arrival;
	message->arrival += message->len * path->byte_ns;
	pipe->arrival = message->arrival;
	message->next = NULL;
	if (pipe->last)
		pipe->last->next = message;
	else
		pipe->first = message;
	pipe->last = message;
	arm(pipe);
}

void sim_pipe_break(struct sim_pipe *pipe)
{
	pipe->broken = true;
	pipe->first = pipe->last = NULL;
}

static void block(struct sim_path *path, enum sim_direction direction, bool blocked)
{
	path->blocked[direction] = blocked;
	for (struct sim_pipe *pipe = path->pipes; pipe && !blocked; pipe = pipe->next)
		arm(pipe);
}

void sim_path_block(struct sim_path *path, bool out, bool in)
{
	block(path, SIM_OUT, out);
	block(path, SIM_IN, in);
}

void sim_path_unblock(struct sim_world *w, void *path, uint64_t ticket)
{
	(void)w;
	(void)ticket;
	sim_path_block(path, false, false);
}
