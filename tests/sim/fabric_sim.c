/*
 * fabric_sim.c - the links of the two simulated fabrics. The library calls them through struct
 * ps_fabric, and mirror.c ends them. Where a clause of client/core/fabric.h leaves an order or a
 * moment open, chance chooses it here.
 */
#include "fabric_sim.h"

#include "mirror.h"
#include "misled.h"
#include "mistakes.h"
#include "oracle.h"
#include "straight.h"

static struct ps_link *link_new(struct ps_env *env, const struct ps_address *address,
                                uint64_t epoch)
{
	struct sim_owner *o = (struct sim_owner *)env;
	struct ps_link *link = sim_alloc(o->world, sizeof(*link));

	link->owner = o;
	link->mirror = sim_misled_leads(sim_mirror_find(o->world, address));
	link->epoch = epoch;
	link->next = o->links;
	o->links = link;
	link->fd = sim_endpoint_new(o->world, link);
	return link;
}

/* --- stream --- */

static bool stream_ready(const struct sim_endpoint *endpoint, short events)
{
	const struct ps_link *link = (const struct ps_link *)endpoint;

	if (link->detached)
		return false;
	if (link->broken || link->completed > 0)
		return true;
	if (!link->up)
		return link->greeted;
	return (events & POLLOUT) && link->count > 0 && link->under_way < link->window;
}

static void break_link(struct ps_link *link)
{
	link->broken = true;
	link->answered = true;
	link->greeted = true;
	sim_owner_poke(link->owner);
}

static void stream_arrived(void *arg, struct sim_message *message)
{
	struct ps_link *link = arg;

	if (link->broken || (link->detached && !link->count))
		return;
	switch ((enum sim_kind)message->kind) {
	case SIM_END:
		break_link(link);
		return;
	case SIM_HELLO_ANSWER:
		link->greeted = true;
		link->accepted = message->a != 0;
		break;
	case SIM_ANSWER:
		if (!sim_mistake_early(link) && !sim_mistake_told(link, (unsigned)message->a))
			link->completed += (unsigned)message->a;
		link->under_way -= message->b;
		break;
	case SIM_READ_ANSWER:
		link->answer = message;
		link->answered = true;
		break;
	default:
		sim_fail(link->owner->world, "message %d came to an owner's end", message->kind);
	}
	sim_owner_poke(link->owner);
}

/* The bytes of one packet: parts of writes, until it is full or a chain ends. */
static struct sim_message *make_packet(struct ps_link *link, uint64_t budget)
{
	struct sim_world *w = link->owner->world;
	struct sim_message *packet = sim_message_new(w, SIM_DATA, NULL,
	                                             budget * (1 + sizeof(struct sim_extent)));
	uint8_t *to = packet->bytes;

	while (link->count > 0 && budget > 0 && !packet->a) {
		struct sim_queued *write = &link->queue[link->first];
		struct sim_extent part = { write->region, write->length, write->offset };

		if (part.length > budget)
			part.length = (uint32_t)budget;
		memcpy(to, &part, sizeof(part));
		memcpy(to + sizeof(part), write->src, part.length);
		to += sizeof(part) + part.length;
		budget -= part.length;
		packet->b += part.length;
		write->src += part.length;
		write->offset += part.length;
		write->length -= part.length;
		if (write->length > 0)
			break;
		packet->a = write->last;
		link->first++;
		link->count--;
	}
	packet->len = (uint32_t)(to - packet->bytes);
	return packet;
}

void sim_link_flush(struct ps_link *link)
{
	struct sim_world *w = link->owner->world;

	while (link->count > 0 && link->under_way < link->window) {
		uint64_t budget = 1 + sim_below(w, link->packet);
		struct sim_message *packet;

		if (budget > link->window - link->under_way)
			budget = link->window - link->under_way;
		packet = make_packet(link, budget);
		link->under_way += packet->b;
		sim_pipe_send(&link->out, packet);
	}
	if (link->count == 0)
		link->first = 0;
}

static void enqueue(struct ps_link *link, const struct ps_write *write, bool last)
{
	struct sim_queued *to;

	if (link->first + link->count == link->room) {
		link->room = link->room ? 2 * link->room : 64;
		link->queue = realloc(link->queue, link->room * sizeof(*link->queue));
		if (!link->queue)
			abort();
	}
	to = &link->queue[link->first + link->count++];
	*to = (struct sim_queued){ write->src, write->region, sim_mistake_length(link, write),
		                   write->offset, last };
}

/* Sends the chain's groups in order, and the writes within a group in any order. */
static void enqueue_data(struct ps_link *link, const struct ps_chain *chain, unsigned from,
                         unsigned to, bool last)
{
	bool backwards = sim_chance(link->owner->world, 30);

	for (unsigned i = from; i < to; i++)
		enqueue(link, &chain->writes[backwards ? to - 1 - (i - from) : i],
		        last && i + 1 == to);
}

static int stream_post(struct ps_link *link, const struct ps_chain *chain)
{
	bool slot = chain->slot.length > 0;

	if (link->broken && !sim_mistake_kept(link))
		return PS_LINK_BROKEN;
	link->due++;
	if (link->broken || sim_mistake_unadopted(link, chain)) {
		link->completed++;
		return PS_LINK_OK;
	}
	if (sim_mistake_chunk(link, chain)) {
		if (slot)
			enqueue(link, &chain->slot, true);
		else
			link->completed++;
	} else if (!sim_mistake_order(link, chain, enqueue)) {
		enqueue_data(link, chain, 0, chain->undo_write_count,
		             !slot && chain->undo_write_count == chain->write_count);
		enqueue_data(link, chain, chain->undo_write_count, chain->write_count, !slot);
		if (slot)
			enqueue(link, &chain->slot, true);
	}
	sim_link_flush(link);
	if (sim_mistake_early(link))
		link->completed++;
	return PS_LINK_OK;
}

/* Sends posted writes at once even while corked: nobody can see the difference. */
static void stream_cork(struct ps_link *link, bool corked)
{
	(void)link;
	(void)corked;
}

static int stream_poll(struct ps_link *link)
{
	unsigned completed = link->completed + sim_mistake_ahead(link);

	if (!link->broken)
		sim_link_flush(link);
	link->completed = 0;
	link->due -= completed;
	if (completed > 0)
		return (int)completed;
	return link->broken ? PS_LINK_BROKEN : PS_LINK_OK;
}

static bool stream_waits(struct ps_link *link, struct pollfd *fd)
{
	fd->fd = link->fd;
	fd->events = (short)(link->count > 0 ? POLLIN | POLLOUT : POLLIN);
	fd->revents = 0;
	return link->broken || !link->up || link->due > 0;
}

/* Sends the writes that were posted earlier. */
static void send_queued(struct ps_link *link, uint64_t until_ns)
{
	struct sim_owner *o = link->owner;

	sim_link_flush(link);
	while (link->count > 0 && !link->broken && !o->dead && sim_owner_now(o) < until_ns) {
		sim_owner_sleep(o, SIM_US);
		sim_link_flush(link);
	}
}

static int stream_read(struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
                       uint64_t length, uint64_t patience_ns)
{
	struct sim_owner *o = link->owner;
	const uint64_t until_ns = sim_owner_now(o) + patience_ns;
	struct sim_extent ask = { region, (uint32_t)length, offset };
	struct sim_wait wait = { .until = until_ns, .sleeper = -1, .flag = &link->answered };

	if (link->broken)
		return PS_LINK_BROKEN;
	if (!length)
		return PS_LINK_OK;
	if (link->count > 0)
		send_queued(link, until_ns);
	link->answered = link->broken;
	link->answer = NULL;
	sim_pipe_send(&link->out, sim_message_new(o->world, SIM_READ, &ask, sizeof(ask)));
	while (!link->answered && !o->dead && sim_owner_now(o) < until_ns)
		sim_task_block(o, &wait);
	if (o->dead || link->broken || !link->answer || !link->answer->a) {
		link->broken = true;
		return PS_LINK_BROKEN;
	}
	memcpy(bytes, link->answer->bytes, length);
	return PS_LINK_OK;
}

static struct ps_link *stream_attach_begin(struct ps_env *env, const struct ps_address *address,
                                           const Perseas__Grant *grant, const int *fds,
                                           uint64_t epoch, struct ps_error *error)
{
	struct ps_link *link = link_new(env, address, epoch);
	struct sim_owner *o = link->owner;
	struct sim_path *path = &o->paths[link->mirror->index];

	(void)fds;
	(void)error;
	link->endpoint.ready = stream_ready;
	sim_pipe_init(o->world, &link->out, path, SIM_OUT, sim_mirror_data, link);
	sim_pipe_init(o->world, &link->in, path, SIM_IN, stream_arrived, link);
	sim_mirror_socket(link);
	sim_pipe_send(&link->out,
	              sim_message_new(o->world, SIM_HELLO, grant->token.data, grant->token.len));
	return link;
}

static int stream_attach_step(struct ps_link *link, uint64_t until_ns, struct ps_error *error)
{
	struct sim_owner *o = link->owner;

	link->up = !o->dead && link->accepted && !link->broken;
	if (link->up)
		return 1;
	if (!link->greeted && !o->dead && sim_owner_now(o) < until_ns)
		return 0;
	return ps_error_set(error, PERSEAS_EUNREACHABLE, "%s: the data connection %s",
	                    link->mirror->address,
	                    link->greeted && !link->broken ? "was refused" : "did not come up");
}

static struct ps_link *stream_attach(struct ps_env *env, const struct ps_address *address,
                                     const Perseas__Grant *grant, const int *fds, uint64_t epoch,
                                     uint64_t until_ns, struct ps_error *error)
{
	struct ps_link *link = stream_attach_begin(env, address, grant, fds, epoch, error);
	struct sim_wait wait = { .until = until_ns, .sleeper = -1, .flag = &link->greeted };
	int rc;

	while ((rc = stream_attach_step(link, until_ns, error)) == 0)
		sim_task_block(link->owner, &wait);
	if (rc > 0)
		return link;
	sim_fabric_stream.detach(link);
	return NULL;
}

static int stream_update(struct ps_link *link, const Perseas__Grant *grant, const int *fds,
                         struct ps_error *error)
{
	(void)grant;
	(void)fds;
	(void)error;
	sim_straight_ends(link);
	return 0;
}

static void stream_detach(struct ps_link *link)
{
	struct sim_world *w;

	if (!link || link->detached)
		return;
	w = link->owner->world;
	sim_straight_ends(link);
	link->detached = true;
	if (sim_mistake_lingers(link))
		return;
	free(link->queue);
	link->queue = NULL;
	link->count = 0;
	if (link->owner->dead || link->broken)
		return;
	/* A reset with writes in flight lets some of them arrive. */
	if (link->due > 0 && sim_chance(w, 50))
		sim_pipe_break(&link->out);
	else
		sim_pipe_send(&link->out, sim_message_new(w, SIM_END, NULL, 0));
}

const struct ps_fabric sim_fabric_stream = {
	.name = "stream",
	.staged = true,
	.attach = stream_attach,
	.attach_begin = stream_attach_begin,
	.attach_step = stream_attach_step,
	.update = stream_update,
	.post = stream_post,
	.cork = stream_cork,
	.poll = stream_poll,
	.read = stream_read,
	.peek = sim_stream_peek,
	.waits = stream_waits,
	.detach = stream_detach,
};

static void learns(struct sim_world *w, void *arg, uint64_t ticket)
{
	(void)w;
	(void)ticket;
	break_link(arg);
}

void sim_link_reset(struct ps_link *link)
{
	struct sim_world *w = link->owner->world;

	if (link->memory || link->detached || link->out.broken)
		return;
	sim_pipe_break(&link->out);
	sim_pipe_break(&link->in);
	sim_at(w, w->now + sim_below(w, sim_chance(w, 50) ? SIM_MS : 200 * SIM_MS), learns, link,
	       0);
}

void sim_link_lost(struct ps_link *link)
{
	struct sim_world *w = link->owner->world;

	sim_pipe_break(&link->in);
	sim_at(w, w->now + sim_between(w, 300 * SIM_MS, 5000 * SIM_MS), learns, link, 0);
}

/* Writes that the kernel accepted still arrive, unless the whole host died. */
void sim_links_died(struct sim_owner *o, bool silent)
{
	for (struct ps_link *link = o->links; link; link = link->next) {
		link->broken = true;
		link->answered = true;
		if (link->memory || link->detached)
			continue;
		if (!silent)
			sim_pipe_send(&link->out, sim_message_new(o->world, SIM_END, NULL, 0));
	}
}

/* --- shared memory --- */

unsigned sim_memory_numbers(const struct sim_memory *memory, int *fds)
{
	for (unsigned i = 0; memory && i < memory->count; i++)
		fds[i] = memory->number;
	return memory ? memory->count : 0;
}

void sim_memory_close(struct sim_memory *memory)
{
	if (!memory || !memory->open)
		return;
	memory->open = false;
	for (unsigned i = 0; i < PS_REGIONS_MAX; i++)
		if (memory->pieces[i].base)
			memory->memory->ops->close(memory->memory, &memory->pieces[i]);
}

static uint64_t promised(const struct ps_link *link)
{
	const struct ps_promise *promise =
		(const void *)link->memory->pieces[PS_REGION_PROMISE].base;

	return promise->epoch;
}

static bool fenced(const struct ps_link *link)
{
	return promised(link) != link->epoch;
}

/* Ends the link as client/fabric/fabric_shm.c does. */
static int lose(struct ps_link *link)
{
	return link->code = promised(link) == PS_PROMISE_RETIRED ? PS_LINK_BROKEN : PS_LINK_FENCED;
}

/* Copies one write. Returns false if the process died meanwhile. */
static bool put(struct ps_link *link, const struct ps_write *write)
{
	struct piece *piece = &link->memory->pieces[write->region];
	const uint8_t *from = write->src;
	uint64_t left = sim_mistake_length(link, write);
	uint8_t *to;

	if (!piece->base || write->length > piece->size ||
	    write->offset > piece->size - write->length)
		sim_fail(link->owner->world, "a write of %u bytes at %llu is not inside region %u",
		         write->length, (unsigned long long)write->offset, write->region);
	to = piece->base + write->offset;
	while (left > 0) {
		uint64_t part = sim_owner_stores(link->owner, left);

		sim_oracle_wrote(link->mirror, link->epoch, to);
		memcpy(to, from, part);
		to += part;
		from += part;
		left -= part;
		if (left == 0)
			break;
		sim_oracle_look(link->mirror);
		if (!sim_owner_halt(link->owner))
			return false;
	}
	return true;
}

static int shared_post(struct ps_link *link, const struct ps_chain *chain)
{
	bool slot = chain->slot.length > 0 && !sim_mistake_unadopted(link, chain), alive = true;
	bool data = !sim_mistake_chunk(link, chain);

	if (link->code || link->owner->dead)
		return link->code ? link->code : PS_LINK_BROKEN;
	for (unsigned i = 0; alive && data && i < chain->write_count; i++)
		alive = put(link, &chain->writes[i]);
	if (alive && slot)
		alive = put(link, &chain->slot);
	sim_oracle_look(link->mirror);
	if (!alive)
		return link->code = PS_LINK_BROKEN;
	if (fenced(link) && !sim_mistake_blind(link))
		return lose(link);
	link->completed++;
	return PS_LINK_OK;
}

static int shared_poll(struct ps_link *link)
{
	unsigned completed = link->completed;

	link->completed = 0;
	if (completed > 0)
		return (int)completed;
	if (link->owner->dead)
		return PS_LINK_BROKEN;
	if (!link->code && fenced(link) && !sim_mistake_blind(link))
		lose(link);
	return link->code;
}

static int shared_read(struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
                       uint64_t length, uint64_t patience_ns)
{
	const struct piece *piece = &link->memory->pieces[region];

	(void)patience_ns;
	if (link->code || link->owner->dead)
		return link->code ? link->code : PS_LINK_BROKEN;
	if (!piece->base || length > piece->size || offset > piece->size - length)
		return link->code = PS_LINK_BROKEN;
	memcpy(bytes, piece->base + offset, length);
	/* Bytes that were read after a fence may be another owner's. */
	if (fenced(link) && !sim_mistake_blind(link))
		return lose(link);
	return PS_LINK_OK;
}

static bool shared_waits(struct ps_link *link, struct pollfd *fd)
{
	(void)link;
	(void)fd;
	return false;
}

static struct ps_link *shared_attach(struct ps_env *env, const struct ps_address *address,
                                     const Perseas__Grant *grant, const int *fds, uint64_t epoch,
                                     uint64_t until_ns, struct ps_error *error)
{
	struct ps_link *link = link_new(env, address, epoch);

	(void)until_ns;
	if (!grant->descriptors)
		sim_fail(link->owner->world, "a mirror on the owner's host gave no memory");
	link->memory = sim_endpoint(link->owner->world, fds[0]);
	if (!link->owner->dead && !fenced(link))
		return link;
	if (promised(link) == PS_PROMISE_RETIRED)
		ps_error_set(error, PERSEAS_EUNREACHABLE, "%s has taken its promise back",
		             address->text);
	else
		ps_error_set(error, PERSEAS_EFENCED, "%s: another owner has claimed the store",
		             address->text);
	sim_fabric_shared.detach(link);
	return NULL;
}

static int shared_update(struct ps_link *link, const Perseas__Grant *grant, const int *fds,
                         struct ps_error *error)
{
	(void)grant;
	(void)error;
	sim_straight_ends(link);
	sim_memory_close(link->memory);
	link->memory = sim_endpoint(link->owner->world, fds[0]);
	return 0;
}

static void shared_detach(struct ps_link *link)
{
	if (!link)
		return;
	sim_straight_ends(link);
	link->detached = true;
	sim_memory_close(link->memory);
}

const struct ps_fabric sim_fabric_shared = {
	.name = "shared",
	.staged = false,
	.attach = shared_attach,
	.update = shared_update,
	.post = shared_post,
	.poll = shared_poll,
	.read = shared_read,
	.peek = sim_shared_peek,
	.waits = shared_waits,
	.detach = shared_detach,
};
