/*
 * mirror.c - what a daemon does around the store logic, without sockets: it passes messages on to
 * the real logic, and sends the replies. It must not judge a request: that is what is tested.
 */
#include "mirror.h"

#include "../../server/store/control.h"
#include "../../server/store/store_private.h"
#include "cable.h"
#include "creators.h"
#include "fillers.h"
#include "long.h"
#include "mistakes.h"
#include "oracle.h"
#include "rivals.h"
#include "rosters.h"
#include "schedule.h"

static void drop_header(struct sim_mirror *m)
{
	if (m->header)
		perseas__header__free_unpacked(m->header, NULL);
	m->header = NULL;
}

/* Counts the lost image among the losses, with what its header said. */
static void forget(struct sim_mirror *m)
{
	if (m->header) {
		sim_creators_lost(m, m->header->store_id.data);
		if (m->lost)
			perseas__header__free_unpacked(m->lost, NULL);
		m->lost = m->header;
		m->header = NULL;
	}
	sim_oracle_lost(m);
	m->granted = 0;
}

/* --- sessions --- */

static void refuse_data(struct ps_link *link)
{
	if (link->session)
		link->session->data = NULL;
	link->session = NULL;
	if (!sim_mistake_lands(link))
		sim_pipe_break(&link->out);
	sim_pipe_send(&link->in, sim_message_new(link->owner->world, SIM_END, NULL, 0));
}

static void session_cut(struct session *session)
{
	struct sim_session *end = (struct sim_session *)session;

	if (end->data)
		refuse_data(end->data);
}

static bool session_may_write(struct session *session)
{
	return !((struct sim_session *)session)->control->owner->dead;
}

struct sim_holder {
	struct holder holder;
	struct sim_owner *owner;
};

static bool holder_may_write(struct holder *holder)
{
	return !((struct sim_holder *)holder)->owner->dead;
}

static void holder_free(struct holder *holder)
{
	(void)holder;
}

static struct holder *session_keep(struct session *session)
{
	struct sim_owner *o = ((struct sim_session *)session)->control->owner;
	struct sim_holder *keeper = sim_alloc(o->world, sizeof(*keeper));

	keeper->holder.may_write = holder_may_write;
	keeper->holder.await_end = NULL;
	keeper->holder.free = holder_free;
	keeper->owner = o;
	return &keeper->holder;
}

static void session_offers(struct session *session, Perseas__Grant *grant)
{
	sim_cable_grant(((struct sim_session *)session)->control->mirror, grant);
}

static const struct session_ops session_functions = {
	.grant = session_offers,
	.cut = session_cut,
	.may_write = session_may_write,
	.get_holder = session_keep,
};

/* --- control connections --- */

static void accept_control(struct ps_control *control)
{
	struct sim_mirror *m = control->mirror;
	struct sim_session *end = &control->server;

	end->open = true;
	end->session.ops = &session_functions;
	end->session.local = control->owner->local[m->index];
	snprintf(end->session.peer, sizeof(end->session.peer), "owner %u", control->owner->index);
	control->other = m->controls;
	m->controls = control;
}

static void end_control(struct ps_control *control)
{
	struct ps_control **link = &control->mirror->controls;

	if (!control->server.open)
		return;
	control->server.open = false;
	while (*link != control)
		link = &(*link)->other;
	*link = control->other;
	sim_trace(control->mirror->world, "mirror %u: a connection of owner %u ends",
	          control->mirror->index, control->owner->index);
	store_session_ended(&control->server.session);
	sim_oracle_look(control->mirror);
}

void sim_mirror_ended(struct sim_world *w, void *control, uint64_t ticket)
{
	(void)w;
	(void)ticket;
	end_control(control);
}

/* The session's process gets the pieces as they are now, whatever becomes of them. */
static struct sim_memory *give_memory(struct ps_control *control)
{
	struct sim_mirror *m = control->mirror;
	const struct image *image = session_image(&control->server.session);
	struct sim_memory *given = sim_alloc(m->world, sizeof(*given));

	given->memory = m->memory;
	given->open = true;
	given->number = sim_endpoint_new(m->world, given);
	given->next = m->given;
	m->given = given;
	for (uint32_t id = 0; id < PS_REGIONS_MAX; id++) {
		if (!image->regions[id].base)
			continue;
		memory_heap_give(m->memory, &image->regions[id], &given->pieces[id]);
		given->count++;
	}
	return given;
}

static void note_request(struct ps_control *control, const struct sim_message *message,
                         bool had_store)
{
	struct sim_mirror *m = control->mirror;
	const struct session *session = &control->server.session;
	bool claim = message->a == PERSEAS__REQUEST__BODY_CLAIM;
	bool rebuild = message->a == PERSEAS__REQUEST__BODY_REBUILD;

	if ((claim || rebuild) && session->store && session->epoch == message->b)
		m->granted = message->b;
	if (rebuild && session->store && !had_store)
		sim_count(m->world, SIM_ANEW, 1);
	sim_trace(m->world, "mirror %u: request %d of owner %u, session %s", m->index,
	          (int)message->a, control->owner->index, session->store ? "held" : "none");
}

/* Notes that a copy made while transactions went on is whole. */
static void note_finish(const struct ps_control *control, const struct sim_message *message,
                        bool beside)
{
	const struct session *session = &control->server.session;

	if (message->a != PERSEAS__REQUEST__BODY_FINISH || !control->owner->opened ||
	    !session->store || session->store->header->state != STATE(CONSISTENT))
		return;
	sim_count(control->mirror->world, beside ? SIM_BESIDE : SIM_IN_PLACE, 1);
}

/* A claim needs no memory beyond the header's, so it must not be refused because memory is full;
 * only a copy may. */
static void check_claim(const struct sim_mirror *m, const struct control_reply *reply)
{
	if (reply->request == PERSEAS__REQUEST__BODY_CLAIM && reply->status == STATUS(NO_MEMORY) &&
	    strstr(reply->refusal, "header"))
		sim_fail(m->world, "mirror %u is full, and refuses a claim: %s", m->index,
		         reply->refusal);
}

/* Copies the memory to the disk at times: on some hosts the memory directory is on a disk. */
static void write_back(struct sim_mirror *m)
{
	if (!m->world->schedule->disks || m->gone_count == SIM_GONE)
		return;
	memory_heap_free(m->disk);
	m->disk = memory_heap_copy(m->memory);
	if (!m->disk)
		sim_fail(m->world, "out of memory");
}

void sim_mirror_handle(struct ps_control *control, struct sim_message *message)
{
	struct sim_mirror *m = control->mirror;
	struct sim_world *w = m->world;
	struct session *session = &control->server.session;
	bool had_store = session->store != NULL, beside = session->is_rebuilding;
	const Perseas__Header *header = sim_rosters_header(m);
	uint8_t store_id[PS_ID_SIZE] = { 0 };
	struct control_reply reply;
	struct sim_message *answer;

	sim_mistake_before(control, message);
	if (header)
		memcpy(store_id, header->store_id.data, PS_ID_SIZE);
	if (message->a == PERSEAS__REQUEST__BODY_CLAIM && store_find(m->stores, SIM_STORE))
		write_back(m);
	if (control_handle(m->stores, session, "sim", message->bytes + 4, message->len - 4, &reply))
		sim_fail(w, "mirror %u is out of memory", m->index);
	if (control_copy_read(m->stores, &reply, 0))
		sim_fail(w, "the image of mirror %u is torn", m->index);
	check_claim(m, &reply);
	note_request(control, message, had_store);
	note_finish(control, message, beside);
	if (reply.request == PERSEAS__REQUEST__BODY_SETTLE && reply.status == STATUS(OK))
		sim_creators_settled(m);
	if (reply.request == PERSEAS__REQUEST__BODY_DROP && reply.status == STATUS(OK))
		sim_fillers_dropped(m, store_id);
	sim_mistake_after(control, message);
	sim_rivals_told(control->owner, message->a);
	answer = sim_message_new(w, SIM_REPLY, reply.bytes, reply.len);
	free(reply.bytes);
	if (reply.fd_count)
		answer->with = give_memory(control);
	sim_oracle_look(m);
	sim_pipe_send(&control->in, answer);
}

void sim_mirror_control(void *arg, struct sim_message *message)
{
	struct ps_control *control = arg;
	struct sim_mirror *m = control->mirror;

	if (message->kind == SIM_CONNECT && m->stores) {
		accept_control(control);
	} else if (message->kind == SIM_CONNECT) {
		sim_pipe_break(&control->out);
		if (!m->silent)
			sim_pipe_send(&control->in, sim_message_new(m->world, SIM_END, NULL, 0));
	} else if (message->kind == SIM_END) {
		end_control(control);
	} else if (control->server.open) {
		sim_long_take(control, message);
	}
}

/* --- data connections --- */

void sim_mirror_socket(struct ps_link *link)
{
	link->window = link->mirror->window;
	link->packet = link->mirror->packet;
}

static void greet(struct ps_link *link, struct sim_message *message)
{
	struct sim_mirror *m = link->mirror;
	struct sim_message *answer = sim_message_new(m->world, SIM_HELLO_ANSWER, NULL, 0);
	struct session *session = m->stores ? stores_find_session(m->stores, message->bytes) : NULL;

	if (session) {
		struct sim_session *end = (struct sim_session *)session;

		/* A session has one data path: writes of an earlier one must not arrive. */
		if (end->data)
			refuse_data(end->data);
		end->data = link;
		link->session = end;
	}
	answer->a = session != NULL;
	sim_pipe_send(&link->in, answer);
}

/* Puts the bytes of a packet in their places. False: one of them is outside of the image. */
static bool apply(struct ps_link *link, const struct sim_message *message)
{
	const uint8_t *at = message->bytes, *end = at + message->len;

	while (at < end) {
		struct sim_extent part;
		uint8_t *to;

		memcpy(&part, at, sizeof(part));
		at += sizeof(part);
		to = session_memory(&link->session->session, part.region, part.offset, part.length,
		                    true);
		if (!to)
			return false;
		sim_oracle_wrote(link->mirror, link->epoch, to);
		memcpy(to, at, part.length);
		at += part.length;
	}
	return true;
}

static void take_data(struct ps_link *link, struct sim_message *message)
{
	struct sim_mirror *m = link->mirror;
	struct sim_message *answer;

	if (!apply(link, message))
		sim_fail(m->world, "owner %u writes outside of the image on mirror %u",
		         link->owner->index, m->index);
	sim_oracle_look(m);
	answer = sim_message_new(m->world, SIM_ANSWER, NULL, 0);
	answer->a = message->a;
	answer->b = message->b;
	sim_pipe_send(&link->in, answer);
}

static void take_read(struct ps_link *link, struct sim_message *message)
{
	struct sim_extent asked;
	struct sim_message *answer;
	const uint8_t *from;

	memcpy(&asked, message->bytes, sizeof(asked));
	from = session_memory(&link->session->session, asked.region, asked.offset, asked.length,
	                      false);
	answer = sim_message_new(link->mirror->world, SIM_READ_ANSWER, from,
	                         from ? asked.length : 0);
	answer->a = from != NULL;
	sim_pipe_send(&link->in, answer);
}

void sim_mirror_data(void *arg, struct sim_message *message)
{
	struct ps_link *link = arg;

	if (message->kind == SIM_HELLO) {
		greet(link, message);
	} else if (!link->session) {
		if (message->kind == SIM_DATA)
			sim_mistake_stray(link, message);
	} else if (message->kind == SIM_END) {
		link->session->data = NULL;
		link->session = NULL;
	} else if (message->kind == SIM_READ) {
		take_read(link, message);
	} else {
		take_data(link, message);
	}
}

/* --- life --- */

static void on_fence(void *arg)
{
	struct sim_mirror *m = arg;
	struct sim_world *w = m->world;

	/* Another processor runs on while this one fences. */
	for (unsigned i = 0; i < w->owner_count; i++)
		if (w->owners[i]->inside && sim_chance(w, 60))
			sim_owner_lurch(w->owners[i], sim_between(w, 1, 400));
}

static void complain(void *arg, const char *text)
{
	struct sim_mirror *m = arg;

	if (!strstr(text, "set aside as"))
		sim_fail(m->world, "mirror %u started, and complains: %s", m->index, text);
	sim_count(m->world, strstr(text, "put back") ? SIM_PUT_BACK : SIM_SET_ASIDE, 1);
	sim_trace(m->world, "mirror %u: %s", m->index, text);
}

/* Too little memory, or none that can be written: what was spilled waits for the next start. */
static void not_loaded(void *arg, const char *text)
{
	struct sim_mirror *m = arg;

	sim_trace(m->world, "mirror %u: %s", m->index, text);
}

void sim_mirror_start(struct sim_mirror *m)
{
	struct sim_world *w = m->world;
	const struct store *store;

	sim_trace(w, "mirror %u starts", m->index);
	m->stores = stores_new(m->memory);
	m->silent = false;
	if (!m->stores)
		sim_fail(w, "out of memory");
	stores_set_spill(m->stores, m->spill);
	stores_load(m->stores, complain, m);
	sim_mistake_unspill(m);
	sim_count(w, SIM_LOADS, stores_load_spills(m->stores, not_loaded, m));
	sim_mistake_unspilled(m);
	sim_mistake_disguised(m);
	store = store_find(m->stores, SIM_STORE);
	if (m->away && !store) {
		sim_count(w, SIM_LOSSES, 1);
		forget(m);
	}
	drop_header(m);
	m->away = store && store->is_only_spilled; /* there was no room for the image */
	sim_oracle_look(m);
}

void sim_mirror_start_again(struct sim_world *w, void *mirror, uint64_t ticket)
{
	struct sim_mirror *m = mirror;

	(void)w;
	(void)ticket;
	if (!m->stores)
		sim_mirror_start(m);
}

struct sim_mirror *sim_mirror_new(struct sim_world *w)
{
	struct sim_mirror *m = sim_alloc(w, sizeof(*m));

	m->world = w;
	m->index = w->mirror_count;
	snprintf(m->address, sizeof(m->address), "unix:///m%u", m->index);
	m->memory = memory_heap_new(0, sim_draw(w));
	if (!m->memory)
		sim_fail(w, "out of memory");
	m->spill = spill_heap_new();
	memory_heap_on_fence(m->memory, on_fence, m);
	sim_mistake_begin(m);
	w->mirrors[w->mirror_count++] = m;
	sim_mirror_start(m);
	return m;
}

void sim_mirror_free(struct sim_mirror *m)
{
	for (struct sim_memory *given = m->given; given; given = given->next)
		sim_memory_close(given);
	stores_free(m->stores);
	m->stores = NULL;
	drop_header(m);
	if (m->lost)
		perseas__header__free_unpacked(m->lost, NULL);
	spill_heap_free(m->spill);
	spill_heap_free(m->old_spill);
	spill_heap_free(m->early);
	memory_heap_free(m->memory);
	memory_heap_free(m->before);
	memory_heap_free(m->disk);
	for (unsigned i = 0; i < m->gone_count; i++)
		memory_heap_free(m->gone[i]);
}

struct sim_mirror *sim_mirror_find(struct sim_world *w, const struct ps_address *address)
{
	for (unsigned i = 0; i < w->mirror_count; i++)
		if (!strcmp(w->mirrors[i]->address, address->text))
			return w->mirrors[i];
	sim_fail(w, "the library looks for a mirror at %s", address->text);
}

/* The other ends of its connections: told now, or much later. */
static void end_connections(struct sim_mirror *m, bool silent)
{
	struct sim_world *w = m->world;

	for (struct ps_control *control = m->controls; control; control = control->other) {
		control->server.open = false;
		sim_pipe_break(&control->out);
		if (silent)
			sim_control_lost(control);
		else
			sim_pipe_send(&control->in, sim_message_new(w, SIM_END, NULL, 0));
	}
	m->controls = NULL;
	for (unsigned i = 0; i < w->owner_count; i++)
		for (struct ps_link *link = w->owners[i]->links; link; link = link->next) {
			if (link->mirror != m || link->memory || link->out.broken)
				continue;
			sim_pipe_break(&link->out);
			if (silent)
				sim_link_lost(link);
			else
				sim_pipe_send(&link->in, sim_message_new(w, SIM_END, NULL, 0));
		}
}

/* The owners that run on its host go along. */
static void end_host(struct sim_mirror *m, bool silent)
{
	struct sim_world *w = m->world;

	for (unsigned i = 0; i < w->owner_count; i++)
		if (w->owners[i]->local[m->index])
			sim_owner_kill(w->owners[i], silent);
}

/* The memory stays for now, and what its header says. */
static void end_daemon(struct sim_mirror *m, bool silent)
{
	const struct store *store = store_find(m->stores, SIM_STORE);

	m->header = store && store->header ? ps_header_copy(store->header) : NULL;
	end_connections(m, silent);
	stores_free(m->stores);
	m->stores = NULL;
}

/* Returns true if the memory is a backup that was put back within the same boot. Otherwise the host
 * lost its power, and the memory is what the disk has. */
static bool is_put_back(const struct sim_world *w)
{
	return w->mistake ? w->mistake == SIM_MISTAKE_PUT_BACK : w->seed / 4 % 2;
}

/* Puts an older image in the place of the lost memory. */
static void come_back(struct sim_mirror *m)
{
	if (!m->disk)
		return;
	/* Clients may still map the lost memory, so it stays until the schedule ends. */
	m->gone[m->gone_count++] = m->memory;
	m->memory = m->disk;
	m->disk = NULL;
	if (is_put_back(m->world))
		memory_heap_put_back(m->memory, sim_draw(m->world));
	else
		memory_heap_reboot(m->memory, sim_draw(m->world));
	memory_heap_on_fence(m->memory, on_fence, m);
	sim_mistake_begin(m);
}

static void lose(struct sim_mirror *m)
{
	memory_heap_lose(m->memory, NULL);
	forget(m);
	m->away = false;
	sim_mistake_remember(m);
	come_back(m);
}

void sim_mirror_stop(struct sim_mirror *m, enum sim_stopping how)
{
	static const char *const texts[] = { "", ", and its host does",
		                             ", its host does, and the spill is lost" };
	struct sim_world *w = m->world;
	struct spill_sum sum;

	if (!m->stores || (how == SIM_HOST_ENDS && sim_mistake_stops(m)))
		return;
	sim_trace(w, "mirror %u ends%s", m->index, texts[how]);
	m->silent = false;
	if (how != SIM_MEMORY_KEPT)
		end_host(m, false);
	stores_spill(m->stores, &sum, complain, m);
	sim_count(w, SIM_SPILLS, sum.stores);
	sim_oracle_look(m);
	end_daemon(m, false);
	if (how == SIM_HOST_ENDS && sum.stores) {
		memory_heap_lose(m->memory, NULL);
		m->away = true;
	} else if (how == SIM_SPILL_LOST) {
		sim_count(w, SIM_MEDIA, 1);
		spill_heap_free(m->spill);
		m->spill = spill_heap_new();
		lose(m);
	}
}

void sim_mirror_crash(struct sim_mirror *m, bool silent, bool lost)
{
	struct sim_world *w = m->world;

	if (!m->stores)
		return;
	sim_trace(w, "mirror %u %s%s", m->index, lost ? "loses its memory" : "crashes",
	          silent ? ", silently" : "");
	sim_count(w, lost ? SIM_LOSSES : SIM_CRASHES, 1);
	m->silent = silent;
	if (lost)
		end_host(m, silent);
	end_daemon(m, silent);
	if (lost)
		lose(m);
}
