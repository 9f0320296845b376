/*
 * test_demand_straight.c - memory that comes on demand from mirrors on this host: it is read over
 * the links that they gave this owner, as long as these last, and counts while their promises are
 * this owner's.
 */
#include "demand_rig.h"

#include "../../client/core/mirror.h"
#include "../../client/demand/demand.h"
#include "../../client/perseas_segments.h"

#include <semaphore.h>

static const struct ps_fabric *(*real_fabric)(struct ps_env *env, const struct ps_address *address,
                                              const Perseas__Grant *grant, unsigned tried);
static struct ps_fabric fabric;
static _Atomic unsigned peeks, connections; /* of segments; how often they were asked over */
static atomic_bool fails;
static atomic_bool stays; /* the next, once the bytes are here: until `go` */
static sem_t reached, go;
static _Atomic uint64_t shortest;            /* no shorter one stays */
static _Atomic(const struct ps_link *) held; /* that one's link */
static atomic_bool ended;                    /* and it is detached */

static void await(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

static int peek(const struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
                uint64_t length)
{
	int rc;

	if (region < PS_REGION_SEGMENT)
		return ps_fabric_shm.peek(link, region, offset, bytes, length);
	peeks++;
	if (atomic_load(&fails))
		return PS_LINK_BROKEN;
	rc = ps_fabric_shm.peek(link, region, offset, bytes, length);
	if (rc || length < atomic_load(&shortest) || !atomic_exchange(&stays, false))
		return rc;
	atomic_store(&held, link);
	sem_post(&reached);
	await(&go);
	return ps_fabric_shm.peek(link, region, offset, bytes, length);
}

static void detach(struct ps_link *link)
{
	if (link == atomic_load(&held))
		atomic_store(&ended, true);
	ps_fabric_shm.detach(link);
}

static const struct ps_fabric *choose(struct ps_env *env, const struct ps_address *address,
                                      const Perseas__Grant *grant, unsigned tried)
{
	const struct ps_fabric *chosen = real_fabric(env, address, grant, tried);

	return chosen == &ps_fabric_shm ? &fabric : chosen;
}

static bool ask(struct ps_pager *pager, unsigned which, const struct ps_fetch_request *missing)
{
	connections += !missing->direct_link.fabric;
	return rig_ask(pager, which, missing);
}

static void watch(struct ps_env_ops *ops)
{
	real_fabric = ops->fabric;
	fabric = ps_fabric_shm;
	fabric.peek = peek;
	fabric.detach = detach;
	ops->fabric = choose;
	rig_pager.ask = ask;
	/* Else another mirror gives what one is held with. */
	rig_pager.second_request_after_ns = PS_NEVER;
}

static int setup(void **state)
{
	int rc = rig_setup(state, true);
	struct rig *rig = *state;

	rig->change = watch;
	peeks = connections = 0;
	atomic_store(&fails, false);
	atomic_store(&stays, false);
	atomic_store(&shortest, 0);
	atomic_store(&ended, false);
	atomic_store(&held, NULL);
	sem_init(&reached, 0, 0);
	sem_init(&go, 0, 0);
	return rc;
}

/* Also where a test has failed, and one is held. */
static int teardown(void **state)
{
	int rc;

	atomic_store(&stays, false);
	sem_post(&go);
	rc = rig_teardown(state);
	sem_destroy(&reached);
	sem_destroy(&go);
	return rc;
}

struct unit_fixture unit_fixture = { setup, teardown };

/* The gate is open from the beginning. */
static void begin(struct rig *rig)
{
	atomic_store(&rig_shut, false);
	assert_int_equal(rig_open(rig, PERSEAS_TAKEOVER, PERSEAS_RECOVERY_ON_DEMAND), 0);
	assert_int_equal(rig_map(rig), 0);
}

/* The same; returns when a read has its bytes, and is held. */
static void begin_held(struct rig *rig)
{
	atomic_store(&stays, true);
	begin(rig);
	await(&reached);
}

TEST(test_memory_is_read_over_links, struct rig *rig)
{
	begin(rig);
	assert_int_equal(rig_look(rig->bytes + SIZE - 1), rig_byte(SIZE - 1));
	rig_fetch_unchanged(rig);
	assert_int_equal(rig_stat(rig).fetched, SIZE);
	assert_true(peeks > 0);
	assert_int_equal(connections, 0);
}

/* Whatever is wrong with it, a mirror can say over a connection. */
TEST(test_what_no_link_gives_comes_over_connections, struct rig *rig)
{
	atomic_store(&fails, true);
	begin(rig);
	rig_fetch_unchanged(rig);
	/* One of each mirror at most: from then on it is asked over a connection. */
	assert_true(peeks <= MIRRORS && connections > 0);
}

static void *break_link(void *arg)
{
	struct perseas *p = arg;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < MIRRORS; i++)
		if (p->mirrors[i].link == atomic_load(&held))
			ps_mirror_break_link(p, &p->mirrors[i], PS_LINK_BROKEN,
			                     "the test breaks it");
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Its memory must not be unmapped under who reads it, nor later than the link says. */
TEST(test_a_link_ends_when_it_is_read_no_more, struct rig *rig)
{
	pthread_t thread;

	begin_held(rig);
	thread = rig_begin_waiting(break_link, rig->p, &rig->p->demand->changed);
	assert_false(atomic_load(&ended));
	sem_post(&go);
	pthread_join(thread, NULL);
	assert_true(atomic_load(&ended));
	atomic_store(&rig_watched, NULL);
	/* The keeper connects again, and what is missing still comes. */
	rig_fetch_unchanged(rig);
}

/* What others have comes from them, and the link stays for as long as it is read. */
TEST(test_memory_that_hangs_holds_up_nobody, struct rig *rig)
{
	pthread_t thread;

	rig->patience_ms = 2000;
	/* Not what the thread that fetches reads itself. */
	atomic_store(&shortest, ps_pager_uffd.granule + 1);
	begin_held(rig);
	rig_fetch_unchanged(rig);
	atomic_store(&rig_waited, false);
	atomic_store(&rig_watched, &rig->p->demand->changed);
	assert_int_equal(pthread_create(&thread, NULL, break_link, rig->p), 0);
	RIG_UNTIL(atomic_load(&rig_waited) || atomic_load(&ended));
	assert_false(atomic_load(&ended));
	sem_post(&go);
	pthread_join(thread, NULL);
	assert_true(atomic_load(&ended));
	atomic_store(&rig_watched, NULL);
	assert_int_equal(rig_wrong(rig), 0);
}

/* Regions are granted anew when a segment is destroyed. */
static void *unmap_and_destroy(void *arg)
{
	struct rig *rig = arg;

	if (perseas_unmap(rig->p, rig->bytes) || perseas_segment_destroy(rig->p, "accounts"))
		return NULL;
	return rig;
}

TEST(test_regions_are_not_taken_from_who_reads_them, struct rig *rig)
{
	pthread_t thread;
	void *destroyed;

	/* Nothing else is asked for, so that nobody waits for anything else. */
	rig->rate = 1;
	begin_held(rig);
	/* Where nobody waits, the memory goes, and the process ends when it is read on. */
	thread = rig_begin_waiting(unmap_and_destroy, rig, &rig->p->demand->changed);
	sem_post(&go);
	pthread_join(thread, &destroyed);
	atomic_store(&rig_watched, NULL);
	assert_ptr_equal(destroyed, rig);
}

/* The mirror of the link that is held loses its segments. */
static void cut_short(struct rig *rig)
{
	char command[200];

	for (unsigned i = 0; i < MIRRORS; i++) {
		if (rig->p->mirrors[i].link != atomic_load(&held))
			continue;
		snprintf(command, sizeof(command),
		         "truncate -s 0 $(find %s/memory -name 'segment-*')",
		         rig->mirrors[i].directory);
		assert_int_equal(system(command), 0);
	}
}

TEST(test_a_file_is_cut_short_under_who_reads_it, struct rig *rig)
{
	/* Over the one of whoever runs the tests. */
	ps_guard_reinstall_handler();
	atomic_store(&shortest, ps_pager_uffd.granule + 1);
	begin_held(rig);
	cut_short(rig);
	sem_post(&go);
	rig_fetch_unchanged(rig);
}

static bool is_found(struct rig *rig, unsigned mirror)
{
	struct ps_demand *d = rig->p->demand;
	bool found;

	pthread_mutex_lock(&d->lock);
	found = d->sources[mirror].direct_link.link != NULL;
	pthread_mutex_unlock(&d->lock);
	return found;
}

/* What was no good by one link may be good by the next. */
TEST(test_another_link_is_read_again, struct rig *rig)
{
	unsigned before;

	atomic_store(&fails, true);
	begin(rig);
	assert_int_equal(perseas_wait_whole(rig->p, PATIENCE), 0);
	for (unsigned i = 0; i < MIRRORS; i++) {
		RIG_UNTIL(is_found(rig, i));
		pthread_mutex_lock(&rig->p->lock);
		atomic_store(&held, rig->p->mirrors[i].link);
		pthread_mutex_unlock(&rig->p->lock);
		break_link(rig->p);
		RIG_UNTIL(is_found(rig, i));
	}
	atomic_store(&fails, false);
	assert_int_equal(perseas_unmap(rig->p, rig->bytes), 0);
	before = connections;
	peeks = 0;
	assert_int_equal(rig_map(rig), 0);
	rig_fetch_unchanged(rig);
	assert_true(peeks > 0);
	assert_int_equal(connections, before);
}

static int no_thread(struct ps_pager *pager, unsigned which)
{
	(void)pager;
	(void)which;
	return -1;
}

static void watch_without_threads(struct ps_env_ops *ops)
{
	watch(ops);
	rig_pager.start_direct_reader = no_thread;
}

TEST(test_without_a_thread_to_read_it_comes_over_connections, struct rig *rig)
{
	rig->change = watch_without_threads;
	begin(rig);
	rig_fetch_unchanged(rig);
	assert_int_equal(peeks, 0);
	assert_true(connections > 0);
}

static _Atomic(struct ps_env *) env_of_open;
static int ends[2]; /* of a pipe */

static int hire_over(struct ps_pager *pager, unsigned which)
{
	const int number = atomic_load(&env_of_open)->wake_fds[PS_KEEPER], saved = dup(number);
	const uint64_t one = 1;
	int rc;

	dup2(ends[1], number);
	rc = ps_pager_uffd.start_direct_reader(pager, which);
	dup2(saved, number);
	/* What was to wake the keeper meanwhile went to the pipe. */
	(void)!write(number, &one, sizeof(one));
	close(saved);
	return rc;
}

static const struct ps_fabric *choose_and_note(struct ps_env *env, const struct ps_address *address,
                                               const Perseas__Grant *grant, unsigned tried)
{
	atomic_store(&env_of_open, env);
	return choose(env, address, grant, tried);
}

static void watch_hires(struct ps_env_ops *ops)
{
	watch(ops);
	ops->fabric = choose_and_note;
	rig_pager.start_direct_reader = hire_over;
}

/* After closefrom() a number of the library's may be a file of the application's. */
TEST(test_who_reads_has_no_file_of_the_application, struct rig *rig)
{
	struct pollfd fd;

	assert_int_equal(pipe(ends), 0);
	rig->change = watch_hires;
	begin(rig);
	rig_fetch_unchanged(rig);
	for (unsigned i = 0; i < MIRRORS; i++)
		RIG_UNTIL(is_found(rig, i));
	close(ends[1]);
	fd = (struct pollfd){ ends[0], POLLIN, 0 };
	assert_int_equal(poll(&fd, 1, 0), 1);
	assert_true(fd.revents & POLLHUP);
	close(ends[0]);
}

static int take_over(struct rig *rig)
{
	rig->change = NULL;
	return rig_open(rig, PERSEAS_TAKEOVER, 0) || rig_map(rig) || rig_put(rig, 0, 1000, 0x55);
}

/* The bytes are here, and then another owner claims the store: they come too late. */
TEST(test_a_promise_goes_while_it_is_read, struct rig *rig)
{
	/* Nothing else is asked for. */
	rig->rate = 1;
	begin_held(rig);
	assert_int_equal(rig_by_another(rig, take_over), 0);
	sem_post(&go);
	assert_int_equal(rig_look(rig->bytes), -1);
	assert_int_equal(rig_look(rig->bytes + SIZE - 1), -1);
}
