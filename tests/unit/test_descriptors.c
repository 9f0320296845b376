/*
 * test_descriptors.c - a daemon that finds no descriptor free: what it has is never taken for
 * nothing, and what it says is done is. The limit is moved from one descriptor to the next, so that
 * each call that opens something fails once.
 */
#include "../support/mirror.h"
#include "../../server/store/memory.h"
#include "../../server/store/spill.h"
#include "../support/unit.h"

#include <sys/resource.h>

enum { MORE_MAX = 12 }; /* descriptors that a load or a drop of one store never needs */

static char place[64], spills[64];

/* Allows `more` descriptors than are open now; -1 restores the first limit. */
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
	(void)state;
	unit_remove_folder(place);
	unit_remove_folder(spills);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

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

/* An image that could not be opened is not called damaged, and is neither made anew nor dropped. */
static void assert_not_touched(struct mirror *mirror)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	Perseas__DropRequest request = PERSEAS__DROP_REQUEST__INIT;
	const int expected = mirror->complaints ? -STATUS(IO) : 0;

	request.store = (char *)(uintptr_t) "bank";
	assert_int_equal(store_status(mirror->stores, "bank", &status, &mirror->why), expected);
	if (expected) {
		assert_non_null(strstr(mirror->why.text, "LimitNOFILE"));
		assert_int_equal(store_drop(mirror->stores, NULL, &request, &mirror->why),
		                 expected);
	}
	assert_int_equal(mirror_create(mirror, "bank", 7), -STATUS(EXISTS));
}

/* A daemon that started without seeing the store would let a client make one over it. */
TEST(a_store_is_never_taken_for_nothing)
{
	struct mirror mirror;
	int more = 0, ret;

	do {
		begin(&mirror);
		allow_files(more);
		ret = load(&mirror);
		allow_files(-1);
		assert_true(ret == 0 || mirror.complaints > 0);
		if (ret == 0)
			assert_not_touched(&mirror);
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
	return store_drop(mirror->stores, NULL, &request, &mirror->why);
}

/* A store is dropped: it does not come back, and its name is free. */
TEST(what_was_dropped_does_not_come_back)
{
	struct mirror mirror;

	for (int more = 0; more < MORE_MAX; more++) {
		begin(&mirror);
		assert_int_equal(load(&mirror), 0);
		allow_files(more);
		assert_int_equal(drop(&mirror), 0);
		allow_files(-1);
		end(&mirror);
		begin(&mirror);
		assert_int_equal(load(&mirror), 0);
		assert_int_equal(mirror_create(&mirror, "bank", 7), 0);
		end(&mirror);
		unit_begin_again();
	}
}

/* Something is in the way, as on a file system that has become read-only. */
TEST(a_header_that_cannot_be_removed_keeps_its_store)
{
	struct mirror mirror;
	char header[128], away[128];

	snprintf(header, sizeof(header), "%s/bank/header", place);
	snprintf(away, sizeof(away), "%s/away", place);
	begin(&mirror);
	assert_int_equal(load(&mirror), 0);
	assert_int_equal(rename(header, away), 0);
	assert_int_equal(mkdir(header, 0700), 0);
	assert_int_equal(drop(&mirror), -STATUS(IO));
	assert_non_null(strstr(mirror.why.text, "cannot be removed (Is a directory)"));
	assert_int_equal(rmdir(header), 0);
	assert_int_equal(rename(away, header), 0);
	end(&mirror);
	assert_bank();
}

/* Connections have them all, and an owner comes. */
TEST(a_claim_needs_no_descriptor)
{
	struct mirror mirror;
	struct peer peer;

	begin(&mirror);
	assert_int_equal(load(&mirror), 0);
	peer_init(&peer);
	allow_files(0);
	for (unsigned k = 1; k < 4; k++)
		assert_int_equal(mirror_takeover(&mirror, &peer, "bank", BANK_EPOCH + k, (uint8_t)k,
		                                 NULL),
		                 0);
	allow_files(-1);
	end(&mirror);
	assert_bank();
}

/* Somebody makes stores until no more can be made: others can still connect. Of few descriptors
 * pieces have one half. */
TEST(pieces_leave_descriptors_to_connections)
{
	struct mirror mirror;
	int left[64], count = 0, ret;
	char name[8];

	begin(&mirror);
	memory_file_leave_descriptors_to_others(mirror.memory, 1000);
	assert_int_equal(load(&mirror), 0);
	allow_files(60);
	for (unsigned k = 0; k < 40; k++) {
		snprintf(name, sizeof(name), "s%u", k);
		ret = mirror_create(&mirror, name, 7);
		if (ret)
			break;
	}
	assert_int_equal(ret, -STATUS(NO_MEMORY));
	assert_non_null(strstr(mirror.why.text, "LimitNOFILE"));
	while ((left[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0 && count < 63)
		count++;
	assert_true(count >= 30);
	while (count > 0)
		close(left[--count]);
	allow_files(-1);
	end(&mirror);
}

/* The same for a store that only the spill directory has. */
TEST(spills_are_never_overlooked)
{
	const char *why = NULL;
	struct spill *spill = spill_file_new(spills, &why);
	struct mirror mirror;

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

/* The name of the spill leads to what cannot be opened: its store is not made anew. */
TEST(a_spill_that_cannot_be_opened_keeps_its_name)
{
	const char *why = NULL;
	struct spill *spill = spill_file_new(spills, &why);
	struct mirror mirror;
	char path[128];

	assert_non_null(spill);
	snprintf(path, sizeof(path), "%s/other.spill", spills);
	assert_int_equal(mkdir(path, 0700), 0);
	begin(&mirror);
	stores_set_spill(mirror.stores, spill);
	assert_int_equal(stores_load_spills(mirror.stores, complain, &mirror.complaints), 0);
	assert_int_equal(mirror.complaints, 1);
	assert_int_not_equal(mirror_create(&mirror, "other", 7), 0);
	end(&mirror);
	spill_file_free(spill);
}
