/*
 * test_litmus.c - the fences and the order of stores between a mirror and an owner on the same
 * host, on two processors at once: the real fabric_shm.c against the real memory_file.c. No
 * functional test notices that a fence is missing; what is looked at here is what a processor may
 * then do.
 *
 * The owner is a process of its own, since a membarrier(2) reaches a process that registered, and
 * the mirror's does not. On one processor the tests are skipped. On busy ones they take longer:
 * each goes on until it has its rounds. With an argument only tests whose names it matches run.
 */
#include "../../client/core/address.h"
#include "../../client/core/fabric.h"
#include "../../server/store/store_private.h"
#include "../support/unit.h"

#include <dlfcn.h>
#include <malloc.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "small_caches.h"
#include "two_processors.h"

enum {
	EPOCH = 7,
	ROUNDS = 100000,  /* in which both write, and then look, at least */
	LEAST = 50,       /* rounds that end in each of the two ways, at least */
	LOOKS = 200000,   /* at what an owner writes without a pause, at least */
	CHAINS = 5000,    /* that it writes meanwhile, at least: long ones take their time */
	REPORT = 1 << 16, /* rounds or looks, after which a test says how far it is */
	PATIENCE = 20000, /* turns of a loop, before the other is let run */
	LINES = 16,       /* of cache, that the owner writes to before its slot */
	LINE = 64,        /* bytes */
	RECORD = 128,     /* bytes, at the start of the ring */
	FIRST = 512,      /* bytes of data, written first */
	DELAYS = 512,     /* turns of a loop */
	SEGMENT_SIZE = 1 << 20,
	REGIONS = 3,
};

/* Memory that both processes share besides the image. */
struct desk {
	_Alignas(LINE) _Atomic uint64_t go;   /* the round that has begun */
	_Alignas(LINE) _Atomic uint64_t done; /* the last round that the owner ended */
	_Atomic bool acknowledged;            /* what it was told in that round */
	_Atomic bool ready, stop;
};

struct place {
	char directory[64];
	struct memory *memory;
	struct image image;
	struct desk *desk;
	pid_t owner;
	int processors[2];
};

static const struct ps_address here = { .scheme = PS_SCHEME_UNIX, .text = "unix:///mirror" };
static const uint32_t ids[REGIONS] = { PS_REGION_LOG, PS_REGION_PROMISE, PS_REGION_SEGMENT };
static const char *const names[REGIONS] = { "log.1", "promise.1", "segment-0.1" };
static const uint64_t sizes[REGIONS] = { PS_RING_OFFSET + 8192, PS_PAGE, SEGMENT_SIZE };

/* --- membarrier(2), which hosts may lack --- */

enum barriers {
	REAL,
	NONE,      /* the call is not there */
	FOR_OTHERS /* it is, and this owner may not register: it reaches others alone */
};

static enum barriers barriers;

/* In the place of the C library's, for the code under test. */
long syscall(long number, ...)
{
	static long (*real)(long, ...);
	long a[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == __NR_membarrier && barriers == FOR_OTHERS &&
	    a[0] != MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)
		return a[0] == MEMBARRIER_CMD_QUERY ? MEMBARRIER_CMD_GLOBAL_EXPEDITED : 0;
	if (number == __NR_membarrier && barriers != REAL) {
		errno = ENOSYS;
		return -1;
	}
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* --- processors --- */

static void turn(unsigned turns)
{
	while (turns-- > 0)
		__asm__ volatile("" ::: "memory");
}

/* Waits for the other process, which may have to be let run on this processor. */
static void rest(unsigned *turns)
{
	if (++*turns % PATIENCE == 0)
		sched_yield();
}

/* A test takes as long as the machine makes it take; this shows that it goes on. */
static void report(uint64_t turns, const char *what)
{
	if (turns % REPORT == 0)
		print_message("# %llu %s\n", (unsigned long long)turns, what);
}

/* --- the mirror --- */

static int setup(void **state)
{
	static struct place place;
	const char *why = NULL;

	if (!find_two(place.processors)) {
		*state = NULL;
		return 0;
	}
	strcpy(place.directory, "/dev/shm/perseas-litmus-XXXXXX");
	if (!mkdtemp(place.directory))
		return -1;
	barriers = *state ? *(enum barriers *)*state : REAL;
	place.memory = memory_file_new(place.directory, 0, false, &why);
	if (!place.memory)
		return -1;
	image_init(&place.image);
	for (unsigned i = 0; i < REGIONS; i++)
		if (place.memory->ops->make(place.memory, "bank", names[i], sizes[i],
		                            &place.image.regions[ids[i]]))
			return -1;
	place.desk = mmap(NULL, sizeof(*place.desk), PROT_READ | PROT_WRITE,
	                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*state = &place;
	return place.desk == MAP_FAILED ? -1 : 0;
}

static int teardown(void **state)
{
	struct place *place = *state;
	char command[128];

	if (!place)
		return 0;
	for (unsigned i = 0; i < REGIONS; i++)
		place->memory->ops->close(place->memory, &place->image.regions[ids[i]]);
	memory_file_free(place->memory);
	munmap(place->desk, sizeof(*place->desk));
	snprintf(command, sizeof(command), "rm -rf '%s'", place->directory);
	return system(command);
}

static struct place *place_of(void **state)
{
	struct place *place = *state;

	if (!place) {
		print_message("SKIP: a fence orders what two processors do, and there is one\n");
		skip();
	}
	return place;
}

static void promise(struct place *place, uint64_t epoch)
{
	static const ProtobufCBinaryData nobody = { 0, NULL };

	image_write_promise(&place->image, epoch, nobody);
}

/* --- the owner --- */

static struct ps_link *attach(struct place *place, bool barrier)
{
	Perseas__Region regions[REGIONS], *list[REGIONS];
	Perseas__Grant grant = PERSEAS__GRANT__INIT;
	struct ps_error error;
	int fds[REGIONS];

	for (unsigned i = 0; i < REGIONS; i++) {
		const struct piece *piece = &place->image.regions[ids[i]];

		perseas__region__init(&regions[i]);
		regions[i].id = ids[i];
		regions[i].length = sizes[i];
		list[i] = &regions[i];
		fds[i] = dup(ids[i] == PS_REGION_PROMISE ? piece->fd_readonly : piece->fd);
	}
	grant.regions = list;
	grant.n_regions = grant.descriptors = REGIONS;
	grant.barrier = barrier;
	return ps_fabric_shm.attach(NULL, &here, &grant, fds, EPOCH, 0, &error);
}

/* A chain of transaction `seq`: a record, `count` writes of data, a slot. */
struct chain {
	uint64_t record[RECORD / 8];
	uint64_t data[SEGMENT_SIZE / 8];
	struct ps_slot slot;
	struct ps_write writes[1 + LINES];
	struct ps_chain chain;
};

static void fill(struct chain *c, uint64_t seq, unsigned count, uint32_t length)
{
	for (unsigned i = 0; i < RECORD / 8; i++)
		c->record[i] = seq;
	for (unsigned i = 0; i < length / 8; i++)
		c->data[i] = seq;
	ps_slot_encode(&c->slot, EPOCH, seq, 64, 0);
	c->writes[0] = (struct ps_write){ c->record, PS_RING_OFFSET, PS_REGION_LOG, RECORD };
	/* The writes are two lines apart, so that the processor prefetches no other one. */
	for (unsigned i = 0; i < count; i++)
		c->writes[1 + i] = (struct ps_write){ c->data, (uint64_t)i * PS_PAGE,
			                              PS_REGION_SEGMENT, length };
	c->chain = (struct ps_chain){ c->writes,
		                      1 + count,
		                      1,
		                      { &c->slot, ps_slot_offset((int)(seq % 2)), PS_REGION_LOG,
		                        sizeof(c->slot) } };
}

/*
 * Posts one chain a round. A fenced link stays fenced, so its state when it was new is put back;
 * attaching anew would take longer than everything else.
 */
static void post_in_rounds(struct place *place, struct ps_link *link)
{
	const volatile uint64_t *promised = (void *)place->image.regions[PS_REGION_PROMISE].base;
	const size_t size = malloc_usable_size(link);
	struct desk *desk = place->desk;
	void *new = malloc(size);
	struct chain *chain = calloc(1, sizeof(*chain));

	memcpy(new, link, size);
	for (uint64_t round = 1;; round++) {
		unsigned turns = 0;

		fill(chain, round, LINES, 8);
		while (atomic_load(&desk->go) < round)
			if (rest(&turns), atomic_load(&desk->stop))
				_exit(0);
		memcpy(link, new, size);
		(void)*promised;
		turn((unsigned)(round * 7919 % DELAYS) / 4);
		atomic_store(&desk->acknowledged,
		             ps_fabric_shm.post(link, &chain->chain) == PS_LINK_OK);
		atomic_store(&desk->done, round);
	}
}

static void post_without_pause(struct place *place, struct ps_link *link, uint32_t length)
{
	struct chain *chain = calloc(1, sizeof(*chain));

	for (uint64_t seq = 1; !atomic_load(&place->desk->stop); seq++) {
		fill(chain, seq, 1, length);
		if (ps_fabric_shm.post(link, &chain->chain))
			_exit(1);
	}
	_exit(0);
}

/* length 0: in rounds. */
static void start_owner(struct place *place, bool barrier, uint32_t length)
{
	promise(place, EPOCH);
	memset(place->image.regions[PS_REGION_LOG].base, 0, sizes[0]);
	memset(place->image.regions[PS_REGION_SEGMENT].base, 0, SEGMENT_SIZE);
	memset((void *)place->desk, 0, sizeof(*place->desk));
	place->owner = fork();
	if (place->owner == 0) {
		struct ps_link *link = attach(place, barrier);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!link)
			_exit(2);
		stay_on(place->processors[1]);
		atomic_store(&place->desk->ready, true);
		if (length)
			post_without_pause(place, link, length);
		else
			post_in_rounds(place, link);
	}
	stay_on(place->processors[0]);
	while (!atomic_load(&place->desk->ready) && kill(place->owner, 0) == 0)
		sched_yield();
}

static void end_owner(struct place *place)
{
	cpu_set_t both;
	int status;

	atomic_store(&place->desk->stop, true);
	assert_int_equal(waitpid(place->owner, &status, 0), place->owner);
	CPU_ZERO(&both);
	CPU_SET(place->processors[0], &both);
	CPU_SET(place->processors[1], &both);
	sched_setaffinity(0, sizeof(both), &both);
	assert_int_equal(status, 0);
}

/* --- the tests --- */

/* Takes the lines that the owner is about to write to, so that its stores have to wait for them. */
static void take_lines(struct place *place, uint64_t round)
{
	for (unsigned i = 0; i < LINES; i++)
		*(volatile uint64_t *)(place->image.regions[PS_REGION_SEGMENT].base +
		                       (size_t)i * PS_PAGE) = round;
}

/* Takes over once. Returns true if the mirror misses a slot that the owner was told is good. */
static bool loses_slot(struct place *place, uint64_t round)
{
	struct desk *desk = place->desk;
	struct ps_slot slot;
	unsigned turns = 0;
	bool seen;

	promise(place, EPOCH);
	take_lines(place, round);
	atomic_store(&desk->go, round);
	turn((unsigned)(round * 104729 % DELAYS));
	promise(place, EPOCH + 1);
	place->memory->ops->fence(place->memory);
	seen = image_slot(&place->image, &slot) >= 0 && slot.seq == round;
	while (atomic_load(&desk->done) < round)
		rest(&turns);
	return atomic_load(&desk->acknowledged) && !seen;
}

static void take_over_again_and_again(struct place *place, bool barrier)
{
	uint64_t lost = 0, acknowledged = 0, round = 0;

	start_owner(place, barrier, 0);
	while (round < ROUNDS || acknowledged < LEAST || round - acknowledged < LEAST) {
		lost += loses_slot(place, ++round);
		acknowledged += atomic_load(&place->desk->acknowledged);
		report(round, "rounds");
	}
	end_owner(place);
	if (lost)
		fail_msg("%llu of %llu slots were acknowledged and not seen",
		         (unsigned long long)lost, (unsigned long long)round);
}

/* A host without membarrier(2): the owner stores its slot while it is fenced. */
static void a_full_fence_is_between_slot_and_promise(void **state)
{
	struct place *place = place_of(state);

	assert_false(place->memory->ops->fence_reaches_owners(place->memory));
	take_over_again_and_again(place, false);
}

/* The mirror's fence would reach an owner that registers, and this one may not. */
static void an_owner_that_cannot_register_keeps_its_fence(void **state)
{
	struct place *place = place_of(state);

	assert_true(place->memory->ops->fence_reaches_owners(place->memory));
	take_over_again_and_again(place, true);
}

/* The same with an owner that relies on the mirror's membarrier for its fence. */
static void the_mirrors_fence_reaches_the_owner(void **state)
{
	struct place *place = place_of(state);

	if (!place->memory->ops->fence_reaches_owners(place->memory)) {
		print_message("SKIP: this kernel has no membarrier(2)\n");
		skip();
	}
	take_over_again_and_again(place, true);
}

static uint64_t word(const struct place *place, uint32_t region, uint64_t offset)
{
	return atomic_load_explicit(
		(const _Atomic uint64_t *)(const void *)(place->image.regions[region].base +
	                                                 offset),
		memory_order_acquire);
}

/* Looks for what a mirror that dies now could have: data of a transaction without its record, or a
 * slot without its data. The owner goes on, so what is read later may be newer. */
static void look(struct place *place, uint32_t length, uint64_t offset)
{
	uint64_t data = word(place, PS_REGION_SEGMENT, offset);
	struct ps_slot slot;

	atomic_thread_fence(memory_order_acquire);
	if (word(place, PS_REGION_LOG, PS_RING_OFFSET) < data ||
	    word(place, PS_REGION_LOG, PS_RING_OFFSET + RECORD - 8) < data)
		fail_msg("data of transaction %llu is there before its undo record (%u bytes)",
		         (unsigned long long)data, length);
	if (image_slot(&place->image, &slot) < 0)
		return;
	atomic_thread_fence(memory_order_acquire);
	if (word(place, PS_REGION_SEGMENT, length - 8) < slot.seq ||
	    word(place, PS_REGION_SEGMENT, offset) < slot.seq)
		fail_msg("the slot of transaction %llu is there before its data (%u bytes)",
		         (unsigned long long)slot.seq, length);
}

/* Makes the owner's next stores to its record wait for memory, unlike its stores around the
 * caches. */
static void flush_record(const struct place *place)
{
#if defined(__x86_64__)
	for (unsigned at = 0; at < RECORD; at += LINE)
		_mm_clflush(place->image.regions[PS_REGION_LOG].base + PS_RING_OFFSET + at);
#else
	(void)place;
#endif
}

/* Looks, every second time at what is written first, until the owner has written `least` chains. */
static void look_on(struct place *place, uint32_t length, uint64_t least)
{
	const uint32_t first = length < FIRST ? length : FIRST;
	uint64_t looks = 0, chains = 0;

	start_owner(place, true, length);
	while (looks < LOOKS || chains < least) {
		look(place, length, looks * 8 * 61 % (looks % 2 ? length : first));
		flush_record(place);
		chains = word(place, PS_REGION_LOG, PS_RING_OFFSET);
		report(++looks, "looks");
	}
	end_owner(place);
}

/* Short data, data that a library call copies, and data that goes around the caches. */
static void a_prefix_is_there_at_every_moment(void **state)
{
	static const uint32_t lengths[] = { 64, 4096, 128 << 10, 1 << 20 };

	for (unsigned i = 0; i < 4; i++)
		look_on(place_of(state), lengths[i], CHAINS);
}

/* Where the C library was told of small caches, or of none, it copies around them, too. */
static void a_prefix_is_there_beside_small_caches(void **state)
{
	static const uint32_t lengths[] = { 24 << 10, 48 << 10 };

	for (unsigned i = 0; i < 2; i++)
		look_on(place_of(state), lengths[i], 20 * CHAINS);
}

int main(int argc, char **argv)
{
	static enum barriers none = NONE, for_others = FOR_OTHERS;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate_setup_teardown(a_full_fence_is_between_slot_and_promise,
		                                         setup, teardown, &none),
		cmocka_unit_test_prestate_setup_teardown(
			an_owner_that_cannot_register_keeps_its_fence, setup, teardown,
			&for_others),
		cmocka_unit_test_setup_teardown(the_mirrors_fence_reaches_the_owner, setup,
		                                teardown),
		cmocka_unit_test_setup_teardown(a_prefix_is_there_at_every_moment, setup, teardown),
	};

	const struct CMUnitTest small[] = {
		cmocka_unit_test_setup_teardown(a_prefix_is_there_beside_small_caches, setup,
		                                teardown),
	};

	(void)argc;
	return run_also_with_small_caches(argv, tests, small);
}
