/*
 * tellers.h - threads that transact over one handle, each in a part of the segment that is its own,
 * and daemons in processes of their own.
 */
#ifndef PERSEAS_TESTS_TELLERS_H
#define PERSEAS_TESTS_TELLERS_H

#include "../support/daemon_fixture.h"
#include "../../client/core/handle.h"
#include "../support/unit.h"

#include <sys/prctl.h>

enum {
	RANGES = 4,    /* of a transaction */
	LONGEST = 600, /* bytes of a range */
	PATIENCE_MS = 18000,
};

struct place {
	pid_t daemon;
	char folder[64];
	char tcp[64], local[300]; /* where it listens */
};

/* A daemon in a process of its own, which says where it listens; it ends with the test. */
static inline int place_start(struct place *place)
{
	struct fixture *fixture, told;
	int ends[2];

	if (pipe(ends))
		return -1;
	place->daemon = fork();
	if (place->daemon == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fixture_setup((void **)&fixture) ||
		    write(ends[1], fixture, sizeof(*fixture)) != sizeof(*fixture))
			_exit(1);
		daemon_run(fixture->daemon);
		_exit(0);
	}
	close(ends[1]);
	if (place->daemon > 0 && read(ends[0], &told, sizeof(told)) != sizeof(told)) {
		waitpid(place->daemon, NULL, 0);
		place->daemon = -1;
	}
	close(ends[0]);
	if (place->daemon < 0)
		return -1;
	memcpy(place->folder, told.directory, sizeof(place->folder));
	snprintf(place->tcp, sizeof(place->tcp), "127.0.0.1:%u", told.port);
	snprintf(place->local, sizeof(place->local), "unix://%s", told.local.host);
	return 0;
}

static inline int place_end(struct place *place)
{
	if (place->daemon <= 0)
		return 0;
	kill(place->daemon, SIGKILL);
	waitpid(place->daemon, NULL, 0);
	place->daemon = 0;
	unit_remove_folder(place->folder);
	return 0;
}

/* A fixture: a place for each test. */
static inline int place_setup(void **state)
{
	static struct place place;

	*state = &place;
	return place_start(&place);
}

static inline int place_teardown(void **state)
{
	return place_end(*state);
}

/* Returns options for stores whose mirror is another process, which may get no processor for
 * seconds. */
static inline struct perseas_options patient_options(void)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;

	options.connect_timeout_ms = PATIENCE_MS;
	options.mirror_timeout_ms = PATIENCE_MS;
	options.commit_timeout_ms = PATIENCE_MS;
	options.open_timeout_ms = 5 * PATIENCE_MS;
	return options;
}

/* on_event: or NULL. */
static inline perseas_t *open_store(const char *mirrors, uint64_t log_size, uint64_t ring_size,
                                    void (*on_event)(void *arg, const struct perseas_event *event))
{
	struct perseas_options options = patient_options();
	perseas_t *p;

	options.flags = PERSEAS_CREATE;
	options.log_size = log_size;
	options.ring_size = ring_size;
	options.on_event = on_event;
	if (perseas_open("threads", mirrors, &options, &p))
		fail_msg("%s", perseas_message(NULL));
	return p;
}

/* Returns how many threads wait for a turn or a lock. */
static inline unsigned count_blocked(perseas_t *p)
{
	unsigned count = 0;

	pthread_mutex_lock(&p->lock);
	for (const struct ps_blocked *b = p->serialization.blocked_threads; b; b = b->next)
		count++;
	pthread_mutex_unlock(&p->lock);
	return count;
}

struct teller {
	perseas_t *p;
	size_t size;       /* bytes of its part of the segment */
	uint8_t *area;     /* that part */
	uint8_t *expected; /* what must be there */
	uint8_t *wanted;   /* what will be there if the transaction commits */
	uint64_t random;
	unsigned commits;
	int rc; /* the first error */
	pthread_t thread;
};

/* Its part of the segment at `base` is the i-th of `size` bytes, all zero at first. */
static inline void teller_begin(struct teller *teller, perseas_t *p, void *base, unsigned i,
                                size_t size, void *(*work)(void *teller))
{
	*teller = (struct teller){
		.p = p,
		.size = size,
		.area = (uint8_t *)base + i * size,
		.expected = calloc(1, size),
		.wanted = malloc(size),
		.random = 0x9e3779b97f4a7c15u * (i + 1),
	};
	assert_non_null(teller->expected);
	assert_non_null(teller->wanted);
	assert_int_equal(pthread_create(&teller->thread, NULL, work, teller), 0);
}

static inline void teller_join(struct teller *teller)
{
	pthread_join(teller->thread, NULL);
	assert_int_equal(teller->rc, 0);
	assert_true(teller->commits > 0);
}

static inline void teller_free(struct teller *teller)
{
	free(teller->expected);
	free(teller->wanted);
}

/* A range anywhere in its part. */
static inline int teller_change(struct teller *teller, perseas_tx_t *tx)
{
	size_t length = 1 + unit_draw(&teller->random) % LONGEST;
	size_t at = unit_draw(&teller->random) % (teller->size - length);
	uint8_t value = (uint8_t)unit_draw(&teller->random);
	int rc = perseas_set_range(tx, teller->area + at, length);

	if (rc)
		return rc;
	memset(teller->area + at, value, length);
	memset(teller->wanted + at, value, length);
	return 0;
}

/* Changes some ranges and then, as it happens, commits or aborts. */
static inline int teller_transact(struct teller *teller)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(teller->p, 0, &tx);

	memcpy(teller->wanted, teller->expected, teller->size);
	for (unsigned i = 0; i < RANGES && !rc; i++)
		rc = teller_change(teller, tx);
	if (rc)
		return rc;
	if (unit_draw(&teller->random) % 4 == 0)
		return perseas_abort(tx);
	rc = perseas_commit(tx, 0);
	if (!rc)
		memcpy(teller->expected, teller->wanted, teller->size);
	teller->commits += !rc;
	return rc;
}

#endif
