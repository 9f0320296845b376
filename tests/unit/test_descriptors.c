/*
 * test_descriptors.c - a daemon that finds no descriptor free: what it has is never taken for
 * nothing, and what it says is done is. The limit is moved from one descriptor to the next, so that
 * each call that opens something fails once.
 */
#include "../support/mirror.h"
#include "../../server/store/memory.h"
#include "../../server/store/spill.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

enum { MORE_MAX = 40 }; /* descriptors that a load or a drop of one store never needs */

static char place[64], spills[64];

/* So many more than there are now may be opened; -1: as many as at first. */
static void allow_files(int more)
{
	static struct rlimit first;
	struct rlimit limit;
	int lowest;

	if (first.rlim_max == 0)
		assert_int_equal(getrlimit(RLIMIT_NOFILE, &first), 0);
	limit = first;
	if (more >= 0) {
		lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
		assert_true(lowest >= 0);
		close(lowest);
		limit.rlim_cur = (rlim_t)(lowest + more);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void complain(void *arg, const char *text)
{
	(void)text;
	++*(unsigned *)arg;
}

static void begin(struct mirror *mirror)
{
	const char *why = NULL;

	memset(mirror, 0, sizeof(*mirror));
	mirror->memory = memory_file_new(place, 0, false, &why);
	assert_non_null(mirror->memory);
	mirror->stores = stores_new(mirror->memory);
	assert_non_null(mirror->stores);
}

static int load(struct mirror *mirror)
{
	return stores_load(mirror->stores, complain, &mirror->complaints);
}

static void end(struct mirror *mirror)
{
	stores_free(mirror->stores);
	memory_file_free(mirror->memory);
}

static int setup(void **state)
{
	struct mirror mirror;
	struct peer peer;

	(void)state;
	strcpy(place, "/dev/shm/perseas-descriptors-XXXXXX");
	strcpy(spills, "/dev/shm/perseas-descriptors-XXXXXX");
	if (!mkdtemp(place) || !mkdtemp(spills))
		return -1;
	begin(&mirror);
	peer_init(&peer);
	mirror_bank(&mirror, &peer, false);
	end(&mirror);
	return 0;
}

static int teardown(void **state)
{
	char command[160];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s' '%s'", place, spills);
	return system(command);
}

/* The store is there, and sound. */
static void assert_bank(void)
{
	struct mirror mirror;

	begin(&mirror);
	assert_int_equal(load(&mirror), 0);
	assert_int_equal(mirror.complaints, 0);
	assert_non_null(mirror_header(&mirror, "bank"));
	end(&mirror);
}

/* It starts: whoever then makes a store of that name would make it over what is there. */
static void a_store_is_never_taken_for_nothing(void **state)
{
	struct mirror mirror;
	int more = 0, ret;

	(void)state;
	do {
		begin(&mirror);
		allow_files(more);
		ret = load(&mirror);
		allow_files(-1);
		assert_true(ret == 0 || mirror.complaints > 0);
		if (ret == 0)
			assert_int_equal(mirror_create(&mirror, "bank", 7), -STATUS(EXISTS));
		ret |= (int)mirror.complaints;
		end(&mirror);
		assert_bank();
	} while (ret && ++more < MORE_MAX);
	assert_true(more > 2 && more < MORE_MAX);
}

static int drop(struct mirror *mirror)
{
	const Perseas__Header *header = mirror_header(mirror, "bank");
	Perseas__DropRequest request = PERSEAS__DROP_REQUEST__INIT;

	request.store = (char *)(uintptr_t) "bank";
	request.store_id = header->store_id;
	request.image_id = header->image_id;
	return store_drop(mirror->stores, &request, &mirror->why);
}

/* A store is dropped: if that is said to be done, it does not come back. */
static void what_was_dropped_does_not_come_back(void **state)
{
	struct mirror mirror;
	int more = 0, ret;

	(void)state;
	do {
		begin(&mirror);
		assert_int_equal(load(&mirror), 0);
		allow_files(more);
		ret = drop(&mirror);
		allow_files(-1);
		end(&mirror);
		if (ret)
			assert_bank();
	} while (ret && ++more < MORE_MAX);
	assert_true(more > 0 && more < MORE_MAX);
	begin(&mirror);
	assert_int_equal(load(&mirror), 0);
	assert_int_equal(mirror_create(&mirror, "bank", 7), 0);
	end(&mirror);
}

/* The same of what only the spill directory has. */
static void spills_are_never_overlooked(void **state)
{
	const char *why = NULL;
	struct spill *spill = spill_file_new(spills, &why);
	struct mirror mirror;

	(void)state;
	assert_non_null(spill);
	begin(&mirror);
	stores_set_spill(mirror.stores, spill);
	allow_files(0);
	assert_int_equal(stores_load_spills(mirror.stores, complain, &mirror.complaints), -1);
	allow_files(-1);
	assert_int_equal(mirror.complaints, 1);
	assert_int_equal(stores_load_spills(mirror.stores, complain, &mirror.complaints), 0);
	assert_int_equal(mirror.complaints, 1);
	end(&mirror);
	spill_file_free(spill);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(a_store_is_never_taken_for_nothing),
		TEST(what_was_dropped_does_not_come_back),
		TEST(spills_are_never_overlooked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
