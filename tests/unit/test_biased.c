/*
 * test_biased.c - the biased lock (client/core/biased.h): who becomes its favorite, and that no
 * two threads ever have it at once: when the other comes before any instruction of the favorite's,
 * and on two processors, while the favorite changes all the time. What makes that sure is a second
 * look, and a barrier, whose lack only the latter shows. The race goes on until it has its rounds,
 * however busy the machine is. On one processor it has fewer, and the threads yield to each other.
 */
#include "../../client/core/biased.h"

#include "barrier_env.h"
#include "stepping.h"
#include "two_processors.h"

enum {
	ROUNDS = 500, /* in which the favorite loses the lock */
	ALONE = 100,  /* such rounds on one processor, each of which waits for its scheduler */
	SOON = 4,     /* times in a row after which a thread is the favorite here */
	DELAYS = 256,
	STAY = 10000, /* turns of a loop */
};

static struct ps_biased lock;

static int setup(void **state)
{
	(void)state;
	barrier_env_reset();
	ps_biased_init(&lock, &env);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ps_biased_destroy(&lock);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };
struct unit_fixture unit_group = { unit_limit_time, NULL };

static void take(unsigned times)
{
	while (times-- > 0) {
		ps_biased_lock(&lock);
		ps_biased_unlock(&lock);
	}
}

static bool has_favorite(void)
{
	return atomic_load(&lock.favorite) != NULL;
}

static void *take_once(void *arg)
{
	take(1);
	return arg;
}

static void *take_often(void *arg)
{
	take(*(const unsigned *)arg);
	return arg;
}

static void beside(void *(*does)(void *), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, does, arg), 0);
	pthread_join(thread, NULL);
}

/* --- the tests --- */

TEST(a_thread_that_takes_it_often_is_the_favorite)
{
	take(PS_BIASED_FIRST_THRESHOLD - 1);
	assert_false(has_favorite());
	take(1);
	assert_true(has_favorite());
	assert_true(atomic_load(&lock.favorite)->thread == ps_biased_this_thread());
	ps_biased_lock(&lock);
	assert_ptr_equal(lock.held_seat, atomic_load(&lock.favorite));
	assert_int_equal(pthread_mutex_trylock(&lock.mutex), 0);
	pthread_mutex_unlock(&lock.mutex);
	ps_biased_unlock(&lock);
	assert_int_equal(barriers, 0);
}

/* Another thread in between begins the count anew. */
TEST(threads_that_take_it_by_turns_have_no_favorite)
{
	for (unsigned i = 0; i < 4; i++) {
		take(PS_BIASED_FIRST_THRESHOLD - 1);
		beside(take_once, NULL);
	}
	assert_false(has_favorite());
	assert_int_equal(barriers, 0);
}

TEST(another_thread_makes_the_next_favorite_wait_longer)
{
	unsigned threshold = PS_BIASED_FIRST_THRESHOLD;

	for (unsigned i = 0; i < 4; i++, threshold *= 2) {
		take(threshold - 1);
		assert_false(has_favorite());
		take(1);
		assert_true(has_favorite());
		beside(take_once, NULL);
		assert_false(has_favorite());
		assert_int_equal(barriers, i + 1);
	}
}

/* The former favorite may still be about to say that it is not inside after all. */
TEST(each_favorite_has_a_seat_of_its_own)
{
	unsigned often = 2 * PS_BIASED_FIRST_THRESHOLD;
	struct ps_seat *mine;

	take(PS_BIASED_FIRST_THRESHOLD);
	mine = atomic_load(&lock.favorite);
	beside(take_often, &often);
	assert_true(has_favorite());
	assert_ptr_not_equal(atomic_load(&lock.favorite), mine);
	take(4 * PS_BIASED_FIRST_THRESHOLD);
	assert_ptr_equal(atomic_load(&lock.favorite), mine);
}

TEST(without_barriers_there_is_no_favorite)
{
	ps_biased_destroy(&lock);
	ps_biased_init(&lock, NULL);
	take(4 * PS_BIASED_FIRST_THRESHOLD);
	assert_false(has_favorite());
}

TEST(a_barrier_that_fails_is_tried_again)
{
	take(PS_BIASED_FIRST_THRESHOLD);
	failures = 3;
	beside(take_once, NULL);
	assert_int_equal(barriers, 4);
	assert_int_equal(atomic_load(&pauses), 3);
	assert_false(has_favorite());
}

static atomic_bool got;

static void *take_and_tell(void *arg)
{
	ps_biased_lock(&lock);
	atomic_store(&got, true);
	ps_biased_unlock(&lock);
	return arg;
}

TEST(another_thread_waits_while_the_favorite_is_inside)
{
	pthread_t thread;

	take(PS_BIASED_FIRST_THRESHOLD);
	atomic_store(&got, false);
	ps_biased_lock(&lock);
	assert_int_equal(pthread_create(&thread, NULL, take_and_tell, NULL), 0);
	while (atomic_load(&pauses) < 2 && !atomic_load(&got))
		sched_yield();
	assert_false(atomic_load(&got));
	ps_biased_unlock(&lock);
	pthread_join(thread, NULL);
	assert_true(atomic_load(&got));
}

/* --- before each instruction --- */

#if defined(__x86_64__)
static struct {
	unsigned left;           /* instructions of the favorite until the other comes */
	atomic_bool come, leave; /* what the other is told */
	atomic_bool inside;      /* it has the lock */
} visit;

static void *come_when_told(void *arg)
{
	while (!atomic_load(&visit.come))
		sched_yield();
	ps_biased_lock(&lock);
	atomic_store(&visit.inside, true);
	while (!atomic_load(&visit.leave))
		sched_yield();
	atomic_store(&visit.inside, false);
	ps_biased_unlock(&lock);
	return arg;
}

/* The favorite goes on when the other has the lock, or waits for it. The other leaves as soon as
 * the favorite is about to wait for it. */
static void before_instruction(const uint8_t *instruction)
{
	if (visit.left > 0 && --visit.left == 0) {
		atomic_store(&visit.come, true);
		while (!atomic_load(&visit.inside) && !atomic_load(&pauses))
			sched_yield();
	}
	if (instruction == (const uint8_t *)(uintptr_t)ps_biased_lock_slowly) {
		atomic_store(&visit.leave, true);
		step_end();
	}
}

/* The favorite takes the lock, and the other comes before its `at`th instruction; false: it takes
 * fewer. */
static bool come_before(unsigned at)
{
	pthread_t other;
	bool together, came;

	lock.takes_in_a_row_until_favorite = SOON;
	take(SOON);
	assert_true(has_favorite());
	memset(&visit, 0, sizeof(visit));
	visit.left = at;
	atomic_store(&pauses, 0);
	assert_int_equal(pthread_create(&other, NULL, come_when_told, NULL), 0);
	step_begin(before_instruction);
	ps_biased_lock(&lock);
	step_end();
	together = atomic_load(&visit.inside);
	came = visit.left == 0;
	atomic_store(&visit.come, true);
	atomic_store(&visit.leave, true);
	ps_biased_unlock(&lock);
	pthread_join(other, NULL);
	assert_false(together);
	return came;
}

TEST(another_may_come_before_each_instruction)
{
	unsigned at = 1;

	while (come_before(at))
		at++;
	/* It looks who is the favorite, twice, and says that it is inside in between. */
	assert_true(at > 4);
}
#else
TEST(another_may_come_before_each_instruction)
{
	print_message("SKIP: this processor does not trap after each instruction\n");
	skip();
}
#endif

/* --- two threads --- */

static struct {
	int processors[2]; /* of the two threads, which may be the same one */
	atomic_bool stop;
	volatile uint64_t inside; /* which of the two threads has the lock: 1, 2; 0: none */
	volatile uint64_t taken;  /* so often it was taken */
	uint64_t favorite, other; /* so often each took it */
} race;

/* On two processors a thread that waits must not yield: rounds go on only while both run, and each
 * yield ends that on a busy machine. */
static void let_run(void)
{
	if (race.processors[0] == race.processors[1])
		sched_yield();
}

/* A lock that let two threads in may never be free again, and then neither could end the test. */
static void expect_alone(bool alone)
{
	if (alone)
		return;
	print_error("two threads have the lock at once\n");
	abort();
}

static void be_inside(uint64_t thread, unsigned turns)
{
	expect_alone(race.inside == 0);
	race.inside = thread;
	race.taken++;
	while (turns-- > 0)
		__asm__ volatile("" ::: "memory");
	expect_alone(race.inside == thread);
	race.inside = 0;
}

static void *be_the_favorite(void *arg)
{
	stay_on(race.processors[1]);
	while (!atomic_load_explicit(&race.stop, memory_order_relaxed)) {
		ps_biased_lock(&lock);
		be_inside(1, (unsigned)(race.favorite++ % 8));
		ps_biased_unlock(&lock);
		if (has_favorite())
			let_run();
	}
	return arg;
}

/* Takes the lock from the favorite, which becomes the favorite again soon. Holds the lock for long
 * enough to meet a favorite that the barrier interrupted while it was taking the lock. */
static void come_between(unsigned delay)
{
	while (!has_favorite())
		let_run();
	while (delay-- > 0)
		__asm__ volatile("" ::: "memory");
	ps_biased_lock(&lock);
	be_inside(2, STAY);
	expect_alone(!lock.held_seat); /* this thread is never the favorite */
	race.other++;
	lock.takes_in_a_row_until_favorite = SOON;
	ps_biased_unlock(&lock);
}

TEST(no_two_threads_have_it_at_once)
{
	const uint64_t rounds = find_two(race.processors) ? ROUNDS : ALONE;
	pthread_t thread;
	cpu_set_t before;

	if (rounds == ALONE)
		race.processors[0] = race.processors[1] = sched_getcpu();
	sched_getaffinity(0, sizeof(before), &before);
	lock.takes_in_a_row_until_favorite = SOON;
	assert_int_equal(pthread_create(&thread, NULL, be_the_favorite, NULL), 0);
	stay_on(race.processors[0]);
	while (race.other < rounds) {
		come_between((unsigned)(race.other * 7919 % DELAYS));
		/* Each round takes two turns of busy processors; one that ends is no hang. */
		unit_limit_time(NULL);
		if (race.other % 1000 == 0)
			print_message("%u rounds\n", (unsigned)race.other);
	}
	atomic_store(&race.stop, true);
	pthread_join(thread, NULL);
	sched_setaffinity(0, sizeof(before), &before);
	assert_int_equal(race.taken, race.favorite + race.other);
}
