/*
 * standby_thread.c - the thread of a standby. It has a handle that is ready to be opened, and the
 * connections with which the store is followed (standby.h). It must never open the store: the
 * thread in perseas_standby_wait does.
 */
#include "standby.h"

#include "../../proto/base/text.h"
#include "../core/quorum.h"
#include "../core/segment.h"
#include "../core/flag_fd.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct ps_state_row stages[] = {
	[PS_STANDBY_IDLE] = { "idle", PS_TO(PS_STANDBY_FOLLOWING) },
	[PS_STANDBY_FOLLOWING] = { "following", PS_TO(PS_STANDBY_HANDED) | PS_TO(PS_STANDBY_IDLE) },
	[PS_STANDBY_HANDED] = { "handed", PS_TO(PS_STANDBY_IDLE) },
};

const struct ps_states ps_standby_stages = { stages, sizeof(stages) / sizeof(stages[0]) };

/* Changes the stage. Caller holds s->lock. */
static void move_stage(struct perseas_standby *s, enum ps_standby_stage to)
{
	assert(pthread_mutex_trylock(&s->lock) == EBUSY);
	s->stage = ps_states_move(s->env, &ps_standby_stages, s->stage, to,
	                          "standby for store '%s'", s->store);
	if (to == PS_STANDBY_IDLE) {
		s->stat = (struct perseas_standby_stat){ .opens = s->stat.opens };
		s->fault.code = 0;
		snprintf(s->stat.text, sizeof(s->stat.text), "it does not follow the store");
	}
	ps_standby_signal(s);
}

enum ps_standby_stage ps_standby_stage(struct perseas_standby *s)
{
	enum ps_standby_stage stage;

	pthread_mutex_lock(&s->lock);
	stage = s->stage;
	pthread_mutex_unlock(&s->lock);
	return stage;
}

void ps_standby_signal(struct perseas_standby *s)
{
	assert(pthread_mutex_trylock(&s->lock) == EBUSY);
	if (s->stat.state == PERSEAS_STANDBY_DUE || s->fault.code) {
		ps_flag_fd_raise(s->flag_fd);
		return;
	}
	ps_flag_fd_lower(s->flag_fd);
	/* perseas_standby_cancel sets `cancelled` before it raises the flag. */
	if (atomic_load(&s->cancelled))
		ps_flag_fd_raise(s->flag_fd);
}

/* --- the result of a look --- */

static void note_mirrors(struct perseas_standby *s, const struct ps_images *images)
{
	s->stat.mirrors = images->peers->count;
	s->stat.reached = images->answered;
	for (unsigned i = 0; i < images->peers->count; i++) {
		struct perseas_standby_mirror *mirror = &s->mirrors_seen[i];

		snprintf(mirror->address, sizeof(mirror->address), "%s",
		         images->peers->addresses[i].text);
		mirror->reached = ps_peers_answered(images->peers, i);
		ps_text_format(mirror->trouble, sizeof(mirror->trouble), "%s",
		               images->errors[i].code ? images->errors[i].text : "");
	}
}

static void note_owner(struct perseas_standby *s, const struct ps_images *images)
{
	const int at = ps_images_find_owner(images);
	const Perseas__StoreStatus *status = at < 0 ? NULL : images->told[at];

	s->stat.epoch = status ? status->header->promised_epoch : 0;
	snprintf(s->stat.owner, sizeof(s->stat.owner), "%s", status ? status->owner_address : "");
}

/* Returns true if an error with this code may pass without people: the mirror may be restarted, or
 * get room. */
static bool is_temporary_error(int code)
{
	return code != PERSEAS_ETLS && code != PERSEAS_EVERSION && code != PERSEAS_EPROTOCOL &&
	       code != PERSEAS_EDENIED && code != PERSEAS_ERDMA;
}

/* Returns true if a mirror had the store once, perhaps before this thread began. */
static bool was_store_seen(const struct perseas_standby *s)
{
	return s->follow.settled.roster;
}

/* Returns true if an open may create the store. If the store existed, its mirrors may have been
 * replaced since the last look, and another store would be empty. */
static bool may_create(const struct perseas_standby *s)
{
	return s->options.flags & PERSEAS_CREATE && !was_store_seen(s);
}

/* Returns true if no mirror has the store, and this standby does not create it. With PERSEAS_CREATE
 * it waits for people to repair an image that cannot be read: its process, started again, might
 * create a store on the mirrors of its list. */
static bool is_store_gone(const struct perseas_standby *s, bool has_no_image)
{
	return s->options.flags & PERSEAS_CREATE ? s->is_uncreated && was_store_seen(s)
	                                         : has_no_image;
}

/* Sets s->fault if all mirrors have errors that only people can mend, or if the store is gone. */
static void note_fault(struct perseas_standby *s, const struct ps_images *images, bool has_no_image)
{
	const struct ps_peers *peers = images->peers;
	unsigned lasting = 0, last = 0;

	s->fault.code = 0;
	for (unsigned i = 0; i < peers->count; i++) {
		if (!images->errors[i].code || is_temporary_error(images->errors[i].code))
			continue;
		lasting++;
		last = i;
	}
	if (lasting == peers->count)
		s->fault = images->errors[last];
	else if (is_store_gone(s, has_no_image))
		ps_error_set(&s->fault, PERSEAS_ENOSTORE,
		             "%u mirrors answered, and none has a store '%s' that can be read%s: "
		             "create it, or give the mirrors that have it",
		             images->answered, s->store,
		             was_store_seen(s) ? ", though one had it before" : "");
}

/* Reserves the addresses of the store's segments in this process, as far as possible. Caller holds
 * s->lock. */
static void reserve_addresses(struct perseas_standby *s, const struct ps_images *images)
{
	assert(pthread_mutex_trylock(&s->lock) == EBUSY);
	s->stat.warning[0] = 0;
	if (images->newest)
		ps_segments_reserve_addresses(s->p, images->newest->header, s->stat.warning,
		                              sizeof(s->stat.warning));
}

static void note_images(void *arg, const struct ps_images *images,
                        const struct ps_follow_result *now)
{
	struct perseas_standby *s = arg;

	pthread_mutex_lock(&s->lock);
	note_mirrors(s, images);
	note_owner(s, images);
	s->is_uncreated = now->is_uncreated;
	note_fault(s, images, now->has_no_image);
	reserve_addresses(s, images);
	pthread_mutex_unlock(&s->lock);
	/* Without an owner the store does not change: let the copy complete from its present
	 * source. */
	if (s->warmth && now->ownership == PS_OWNER_LIVES)
		ps_warm_thread_choose_source(s->warmth, images);
}

static enum perseas_standby_state standby_state(enum ps_ownership ownership, bool due)
{
	if (due)
		return PERSEAS_STANDBY_DUE;
	switch (ownership) {
	case PS_OWNER_LIVES:
		return PERSEAS_STANDBY_OWNED;
	case PS_OWNER_NONE:
		return PERSEAS_STANDBY_FREE;
	case PS_OWNER_UNKNOWN:
		break;
	}
	return PERSEAS_STANDBY_UNKNOWN;
}

/* Returns true if this standby may open the store now. If a handover names it, it may at once;
 * otherwise standbys of a lower order come first. Sets *held to true if the store is left to
 * another standby. */
static bool is_turn(struct perseas_standby *s, const struct ps_follow_result *now,
                    enum ps_ownership ownership, bool *held)
{
	/* A COMMAND of perseas run may contain this standby, and then has its mark. */
	const uint8_t *mark = s->env->has_owner_mark ? s->env->owner_mark : NULL;
	const uint64_t now_ns = ps_follow_now_ns(&s->follow);

	*held = ps_turn_must_yield(&s->turn, now, mark, now_ns, &s->next_look_at_ns);
	if (*held)
		return false;
	return ps_turn_is_named(&s->turn, now, mark, now_ns) ||
	       ps_turn_is_due(&s->turn, ownership, now_ns, &s->next_look_at_ns);
}

static void look_at_store(struct perseas_standby *s)
{
	struct ps_warm_thread_figures figures = { 0 };
	struct ps_follow_result now;
	enum ps_ownership ownership;
	bool held, due;

	if (s->warmth)
		ps_warm_thread_read_figures(s->warmth, &figures);
	s->follow.has_copy = s->warmth != NULL;
	s->follow.store_bytes = figures.total;
	s->follow.copied_bytes = figures.here;
	ps_follow_look_at_store(&s->follow, &now);
	pthread_mutex_lock(&s->lock);
	/* PERSEAS_CREATE: the open creates a store that no mirror has. */
	ownership = s->is_uncreated && may_create(s) ? PS_OWNER_NONE : now.ownership;
	due = is_turn(s, &now, ownership, &held);
	s->stat.state = standby_state(ownership, due);
	if (held)
		snprintf(s->stat.text, sizeof(s->stat.text),
		         "it has no owner, and is handed over to standby '%s'", now.handover.name);
	else
		snprintf(s->stat.text, sizeof(s->stat.text), "%s", now.text);
	ps_standby_signal(s);
	pthread_mutex_unlock(&s->lock);
	s->env->ops->wake(s->env, PS_COMMITTER);
}

/* --- the thread --- */

/* Hands the store to the waiting thread if it is this standby's turn. Returns true if the thread
 * must end. */
static bool try_hand_over(struct perseas_standby *s)
{
	bool over;

	pthread_mutex_lock(&s->lock);
	if (!s->is_ending && s->can_hand_over && s->stat.state == PERSEAS_STANDBY_DUE)
		move_stage(s, PS_STANDBY_HANDED);
	over = s->is_ending || s->stage == PS_STANDBY_HANDED;
	pthread_mutex_unlock(&s->lock);
	if (over)
		s->env->ops->wake(s->env, PS_COMMITTER);
	return over;
}

/* Sleeps until another look is due. Returns false if the thread must end. */
static bool await_next_look(struct perseas_standby *s)
{
	struct pollfd fds[PS_FOLLOW_FDS];

	while (!try_hand_over(s)) {
		uint64_t until_ns = s->next_look_at_ns;
		const unsigned count = ps_follow_fill_pollfds(&s->follow, fds, &until_ns);

		s->env->ops->pause(s->env, PS_KEEPER, fds, count, until_ns);
		if (ps_follow_is_look_due(&s->follow) ||
		    ps_follow_now_ns(&s->follow) >= s->next_look_at_ns)
			return true;
	}
	return false;
}

static void run_thread(void *arg)
{
	struct perseas_standby *s = arg;

	do {
		look_at_store(s);
	} while (await_next_look(s));
}

/* --- beginning and ending --- */

/* Returns a handle for the next open, with an env of its own, or NULL with *error. */
static struct perseas *make_handle(struct perseas_standby *s, struct ps_error *error)
{
	struct ps_env *env = ps_env_posix(&s->options, error);

	if (!env)
		return NULL;
	/* With the same mark, the process that hands the store over recognizes the next owner as
	 * this standby. */
	memcpy(env->owner_mark, s->env->owner_mark, sizeof(env->owner_mark));
	env->has_owner_mark = s->env->has_owner_mark;
	return ps_handle_new(env, s->store, s->mirrors, &s->options, error);
}

static void replace_warm_thread(struct perseas_standby *s, struct ps_warm_thread *warmth)
{
	struct ps_warm_thread *before;

	pthread_mutex_lock(&s->lock);
	before = s->warmth;
	s->warmth = warmth;
	pthread_mutex_unlock(&s->lock);
	ps_warm_thread_end(before);
}

/* Starts a new copy thread, and ends the previous one, which may still wait for a mirror. */
static int start_warm_thread(struct perseas_standby *s, struct ps_error *error)
{
	struct ps_warm_thread *warmth = ps_warm_thread_begin(s->store, &s->options,
	                                                     s->p->options.connect_timeout_ms,
	                                                     error);

	if (!warmth)
		return error->code;
	replace_warm_thread(s, warmth);
	return 0;
}

/* Keeps what is known of the store for the next thread, with the mirrors that only rosters name:
 * the mirrors of the list may have left the store by then. */
static void save_known_store(struct perseas_standby *s)
{
	const struct ps_peers *looks = &s->follow.status_peers;
	struct ps_roster_places places = { .epoch = s->follow.roster_epoch,
		                           .version = s->follow.roster_version,
		                           .count = looks->count - looks->listed_count };

	memcpy(places.addresses, &looks->addresses[looks->listed_count],
	       places.count * sizeof(places.addresses[0]));
	ps_known_store_put(s->known, &places, &s->follow.settled);
}

static void follow_known_store(struct perseas_standby *s)
{
	struct ps_roster_places places;

	ps_known_store_take(s->known, &places, &s->follow.settled);
	ps_follow_add_mirrors(&s->follow, &places);
}

int ps_standby_thread_begin(struct perseas_standby *s, struct ps_error *error)
{
	assert(ps_standby_stage(s) == PS_STANDBY_IDLE);
	s->p = make_handle(s, error);
	if (!s->p)
		return error->code;
	if (ps_follow_open(&s->follow, s->store, s->mirrors,
	                   s->options.name ? s->env->owner_mark : NULL, s->p->env, s->env,
	                   s->p->options.connect_timeout_ms, error)) {
		ps_handle_free(s->p);
		return error->code;
	}
	s->follow.name = s->options.name;
	s->follow.order = s->options.order;
	if (s->options.warm && start_warm_thread(s, error)) {
		ps_follow_close(&s->follow);
		ps_handle_free(s->p);
		return error->code;
	}
	follow_known_store(s);
	s->follow.on_result = note_images;
	s->follow.on_result_arg = s;
	s->is_ending = false;
	pthread_mutex_lock(&s->lock);
	move_stage(s, PS_STANDBY_FOLLOWING);
	s->stat.state = PERSEAS_STANDBY_UNKNOWN;
	snprintf(s->stat.text, sizeof(s->stat.text), "it asks its mirrors");
	pthread_mutex_unlock(&s->lock);
	if (!s->env->ops->spawn(s->env, PS_KEEPER, run_thread, s))
		return 0;
	ps_standby_thread_end(s);
	return ps_error_set(error, PERSEAS_ESYSTEM,
	                    "the thread that follows store '%s' did not start", s->store);
}

static void become_idle(struct perseas_standby *s)
{
	s->p = NULL;
	pthread_mutex_lock(&s->lock);
	move_stage(s, PS_STANDBY_IDLE);
	pthread_mutex_unlock(&s->lock);
}

/* Adds the mirrors that only rosters name to the handle. If no mirror of an old list had the store,
 * an open with PERSEAS_CREATE would create another one. */
static void add_unlisted_members_to_handle(struct perseas_standby *s)
{
	const struct ps_peers *looks = &s->follow.status_peers;

	for (unsigned i = 0; i < looks->count; i++) {
		if (ps_follow_is_unlisted_member(&s->follow, i))
			ps_handle_add_unlisted_mirror(s->p, &looks->addresses[i]);
	}
}

struct perseas *ps_standby_thread_take(struct perseas_standby *s)
{
	struct perseas *p = s->p;

	s->env->ops->join(s->env, PS_KEEPER);
	assert(ps_standby_stage(s) == PS_STANDBY_HANDED);
	pthread_mutex_lock(&s->lock);
	s->stat.opens++;
	pthread_mutex_unlock(&s->lock);
	if (!may_create(s))
		p->options.flags &= ~PERSEAS_CREATE;
	save_known_store(s);
	ps_known_store_learn_from(s->known, p);
	add_unlisted_members_to_handle(s);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		m->control = ps_follow_take_connection(&s->follow, m->address.text);
		m->was_left_connected = m->control != NULL;
		m->was_silent = !m->was_left_connected &&
		                ps_follow_is_silent(&s->follow, m->address.text);
	}
	p->opening.is_known_ownerless = true;
	ps_follow_close_look_connections(&s->follow);
	if (s->warmth)
		p->warm_copy = ps_warm_thread_take(s->warmth);
	become_idle(s);
	return p;
}

/* `looks` has ended before: its env belongs to the handle, which may be freed. */
void ps_standby_thread_end_watches(struct perseas_standby *s)
{
	ps_peers_end(&s->follow.watch_peers);
}

void ps_standby_thread_end(struct perseas_standby *s)
{
	struct perseas *p = s->p;

	pthread_mutex_lock(&s->lock);
	s->is_ending = true;
	pthread_mutex_unlock(&s->lock);
	s->env->ops->wake(s->env, PS_KEEPER);
	s->env->ops->join(s->env, PS_KEEPER);
	save_known_store(s);
	ps_follow_close(&s->follow);
	become_idle(s);
	ps_handle_free(p);
}
