/*
 * standby_rig.h - what the tests of standbys share: owners that are other processes, and how a
 * standby stands.
 */
#ifndef PERSEAS_TESTS_STANDBY_RIG_H
#define PERSEAS_TESTS_STANDBY_RIG_H

#include "demand_rig.h"

#include "../../client/standby/images.h"
#include "../../client/standby/standby.h"

enum { SHORT_MS = 30 };

/* The standby of the test, which its teardown closes. */
static perseas_standby_t *standby_of_test;

static inline void close_standby(void)
{
	perseas_standby_close(standby_of_test);
	standby_of_test = NULL;
}

static inline int teardown_standby(void **state)
{
	close_standby();
	return rig_teardown(state);
}

static inline int setup_tcp(void **state)
{
	return rig_setup(state, false);
}

static inline int setup_shared(void **state)
{
	return rig_setup(state, true);
}

static inline struct perseas_options standby_options(void)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;

	options.ring_size = 1 << 20;
	options.connect_timeout_ms = 18000;
	return options;
}

static inline perseas_standby_t *begin_with(const char *store, const char *mirrors,
                                            const struct perseas_options *options)
{
	assert_int_equal(perseas_standby(store, mirrors, options, &standby_of_test), 0);
	return standby_of_test;
}

static inline perseas_standby_t *begin(struct rig *rig)
{
	const struct perseas_options options = standby_options();

	return begin_with(STORE, rig->list, &options);
}

/* The rig's handle is what the standby gives. */
static inline void become_owner(struct rig *rig, perseas_standby_t *s)
{
	int rc = perseas_standby_wait(s, -1, &rig->p);

	if (rc)
		print_message("%s\n", perseas_message(NULL));
	assert_int_equal(rc, 0);
	assert_int_equal(rig_map(rig), 0);
}

static inline void end_owner(struct rig *rig)
{
	perseas_close(rig->p);
	rig->p = NULL;
}

/* --- others --- */

enum { READY = 'r', UNREADY = 'u' };

static bool is_ready; /* this process */

static inline void say_ready(void)
{
	const char said = READY;

	is_ready = true;
	(void)!write(rig_apart.tell, &said, 1);
}

static inline int process_do(void *bytes)
{
	struct rig_deed *deed = bytes;
	const int status = deed->fn(&deed->rig);
	const char said = UNREADY;

	if (!is_ready)
		(void)!write(rig_apart.tell, &said, 1);
	return status;
}

/* A process that runs this, and says that it is ready: what it returns is its status. */
static inline pid_t start_process(struct rig *rig, int (*fn)(struct rig *rig))
{
	const struct rig_deed deed = { fn, *rig };
	const pid_t pid = apart_start(&rig_apart, process_do, &deed, sizeof(deed));
	char said = 0;

	assert_int_equal(read(rig_apart.told, &said, 1), 1);
	assert_int_equal(said, READY);
	return pid;
}

/* The mirror runs again, and has lost what it had. */
static inline void owner_lose(struct rig_mirror *m)
{
	char command[128];

	rig_kill(m);
	snprintf(command, sizeof(command), "rm -rf '%s/memory'", m->directory);
	assert_int_equal(system(command), 0);
	rig_start(m);
}

/* Owns the store until it is killed. */
static inline int own(struct rig *rig)
{
	if (rig_open(rig, 0, 0) || rig_map(rig) || rig_put(rig, 0, 8, 42))
		return 1;
	say_ready();
	for (;;)
		pause();
}

/* Owns the store by means of a standby. */
static inline int own_in_turn(struct rig *rig)
{
	const struct perseas_options options = standby_options();
	struct perseas_standby_stat stat = { 0 };
	perseas_standby_t *s;

	if (perseas_standby(STORE, rig->list, &options, &s))
		return 1;
	while (stat.state != PERSEAS_STANDBY_OWNED)
		if (perseas_standby_wait(s, 1, &rig->p) != PERSEAS_ETIMEOUT ||
		    perseas_standby_stat(s, &stat))
			return 2;
	say_ready();
	if (perseas_standby_wait(s, -1, &rig->p) || rig_map(rig))
		return 3;
	/* One process at a time has the store, and adds one. */
	if (rig_put(rig, 0, 1, (uint8_t)(rig->bytes[0] + 1)))
		return 4;
	perseas_close(rig->p);
	return perseas_standby_close(s);
}

static inline void kill_process(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	apart_wait(&rig_apart, pid);
}

/* The process that owns the store, which start_owner has started. */
static pid_t owner_process;

static inline void start_owner(struct rig *rig, int (*fn)(struct rig *rig))
{
	owner_process = start_process(rig, fn);
}

static inline void kill_owner(void)
{
	kill_process(owner_process);
}

/* The owner dies, and the rig's handle is what the standby gives. */
static inline void take_over(struct rig *rig, perseas_standby_t *s)
{
	kill_owner();
	become_owner(rig, s);
}

static inline int status_of_process(pid_t pid)
{
	const int status = apart_wait(&rig_apart, pid);

	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* --- what mirrors tell of standbys --- */

/* Somebody who asks the mirrors. */
struct asker {
	struct ps_env *env;
	struct ps_peers peers;
	/* Of the standby that all mirrors knew last, and of the store at that time. */
	uint8_t mark[PS_OWNER_MARK];
	uint32_t order;
	uint64_t epoch;
};

static inline void asker_begin(struct asker *asker, struct rig *rig)
{
	struct ps_error error = { 0 };

	asker->env = ps_env_posix(NULL, &error);
	assert_non_null(asker->env);
	assert_int_equal(ps_peers_begin(&asker->peers, asker->env, rig->list, 2000, &error), 0);
}

static inline void asker_end(struct asker *asker)
{
	ps_peers_end(&asker->peers);
	asker->env->ops->free(asker->env);
}

/* Returns true if all mirrors know exactly this standby, or, for NULL, none. */
static inline bool is_told_of(struct asker *asker, const char *name)
{
	struct ps_images images;
	bool told = true;

	ps_images_fetch(&images, &asker->peers, STORE);
	for (unsigned i = 0; i < MIRRORS; i++) {
		const Perseas__StoreStatus *status = images.told[i];

		told &= status && status->n_standbys == (name ? 1 : 0) &&
		        (!name || !strcmp(status->standbys[0]->name, name));
		if (!told || !name)
			continue;
		asker->order = status->standbys[0]->order;
		memcpy(asker->mark, status->standbys[0]->mark.data, PS_OWNER_MARK);
		asker->epoch = status->header->promised_epoch;
	}
	ps_images_free(&images);
	return told;
}

/* Asks the owner, as perseas move does, to hand the store to the standby that mirrors knew last. */
static inline void move_to(struct asker *asker, const char *name)
{
	uint8_t id[PS_ID_SIZE] = { 1, (uint8_t)asker->epoch };
	Perseas__MoveRequest ask = PERSEAS__MOVE_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(move, MOVE, &ask);

	ask.store = (char *)(uintptr_t)STORE;
	ask.id = (ProtobufCBinaryData){ sizeof(id), id };
	ask.epoch = asker->epoch;
	ask.to = (ProtobufCBinaryData){ PS_OWNER_MARK, asker->mark };
	ask.name = (char *)(uintptr_t)name;
	ask.within_ms = 60000;
	ps_peers_ask_all(&asker->peers, &request);
	for (unsigned i = 0; i < MIRRORS; i++)
		assert_non_null(asker->peers.replies[i]);
}

/* --- how it stands --- */

static inline struct perseas_standby_stat stat_of(perseas_standby_t *s)
{
	struct perseas_standby_stat stat;

	assert_int_equal(perseas_standby_stat(s, &stat), 0);
	return stat;
}

static inline void await_state(perseas_standby_t *s, int state)
{
	RIG_UNTIL(stat_of(s).state == state);
}

/* A standby of a store that another process owns. */
static inline perseas_standby_t *begin_behind_owner(struct rig *rig)
{
	perseas_standby_t *s;

	start_owner(rig, own);
	s = begin(rig);
	await_state(s, PERSEAS_STANDBY_OWNED);
	return s;
}

static inline void set_waits(perseas_standby_t *s, bool waits)
{
	pthread_mutex_lock(&s->lock);
	s->can_hand_over = waits;
	pthread_mutex_unlock(&s->lock);
}

/* Lets the standby take the store over as if a thread waited for it. */
static inline void await_handed(perseas_standby_t *s)
{
	set_waits(s, true);
	s->env->ops->wake(s->env, PS_KEEPER);
	RIG_UNTIL(ps_standby_stage(s) == PS_STANDBY_HANDED);
}

/* Lets it take the store over for a wait that ends at that moment. */
static inline void hand_to_nobody(perseas_standby_t *s)
{
	await_state(s, PERSEAS_STANDBY_DUE);
	await_handed(s);
	set_waits(s, false);
}

/* The standby waits that long, and the store does not become free for it. */
static inline void wait_in_vain(struct rig *rig, perseas_standby_t *s, int ms)
{
	assert_int_equal(perseas_standby_wait(s, ms, &rig->p), PERSEAS_ETIMEOUT);
}

/* A wait that is called off before it begins. */
static inline void call_off(struct rig *rig, perseas_standby_t *s)
{
	assert_int_equal(perseas_standby_cancel(s), 0);
	assert_int_equal(perseas_standby_wait(s, -1, &rig->p), PERSEAS_ECANCELLED);
}

static inline bool can_read(perseas_standby_t *s, int for_ms)
{
	struct pollfd fd = { .fd = perseas_standby_fd(s), .events = POLLIN };

	return poll(&fd, 1, for_ms) == 1;
}

#endif
