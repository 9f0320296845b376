/*
 * test_daemon_identity.c - the file with a daemon's identity: it is believed where it was written,
 * and on no copy of it, in no other boot, and not when its bytes changed.
 */
#include "../../server/memory/daemon_identity.h"
#include "../support/unit.h"

#define FILE_NAME ".identity"

struct place {
	char path[64];
	int directory;
};

static const uint8_t boot[16] = { 1 }, other_boot[16] = { 2 };
static uint8_t drawn;

static int setup(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	assert_non_null(place);
	snprintf(place->path, sizeof(place->path), "/dev/shm/perseas-identity-XXXXXX");
	assert_non_null(mkdtemp(place->path));
	place->directory = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(place->directory >= 0);
	drawn = 0;
	*state = place;
	return 0;
}

static int teardown(void **state)
{
	struct place *place = *state;

	(void)unlinkat(place->directory, FILE_NAME, 0);
	assert_int_equal(rmdir(place->path), 0);
	close(place->directory);
	free(place);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

/* Each identity that is drawn is another one. */
static void draw(void *bytes, size_t len)
{
	memset(bytes, ++drawn, len);
}

/* Which of the identities that were drawn the next daemon has. */
static uint8_t identity(const struct place *place, const uint8_t *of_boot)
{
	uint8_t id[16] = { 0 };

	daemon_identity_get(place->directory, of_boot, draw, id);
	for (unsigned i = 1; i < sizeof(id); i++)
		assert_int_equal(id[i], id[0]);
	return id[0];
}

static size_t load(const struct place *place, uint8_t *bytes, size_t size)
{
	int fd = openat(place->directory, FILE_NAME, O_RDONLY | O_CLOEXEC);
	ssize_t len = read(fd, bytes, size);

	assert_true(fd >= 0 && len > 0);
	close(fd);
	return (size_t)len;
}

static void store(const struct place *place, const uint8_t *bytes, size_t len, int flags)
{
	int fd = openat(place->directory, FILE_NAME, O_WRONLY | O_CLOEXEC | flags, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
}

TEST(a_daemon_that_starts_again_has_its_identity, struct place *place)
{
	assert_int_equal(identity(place, boot), 1);
	assert_int_equal(identity(place, boot), 1);
}

/* A copy has the same bytes and another inode, or the same inode number and another birth time. */
TEST(a_copy_of_the_file_gives_no_identity, struct place *place)
{
	uint8_t bytes[256];
	size_t len;

	assert_int_equal(identity(place, boot), 1);
	len = load(place, bytes, sizeof(bytes));
	assert_int_equal(unlinkat(place->directory, FILE_NAME, 0), 0);
	store(place, bytes, len, O_CREAT | O_EXCL);
	assert_int_equal(identity(place, boot), 2);
	assert_int_equal(identity(place, boot), 2);
}

TEST(another_boot_has_another_identity, struct place *place)
{
	assert_int_equal(identity(place, boot), 1);
	assert_int_equal(identity(place, other_boot), 2);
	assert_int_equal(identity(place, boot), 3);
}

/* Nothing is kept that could not be checked. */
TEST(without_a_boot_no_identity_is_kept, struct place *place)
{
	assert_int_equal(identity(place, boot), 1);
	assert_int_equal(identity(place, NULL), 2);
	assert_int_equal(faccessat(place->directory, FILE_NAME, F_OK, 0), -1);
	assert_int_equal(identity(place, boot), 3);
}

TEST(each_byte_of_the_file_counts, struct place *place)
{
	uint8_t bytes[256];
	uint8_t before = identity(place, boot);
	size_t len = load(place, bytes, sizeof(bytes));

	for (size_t i = 0; i < len; i++) {
		bytes[i] ^= 0x80;
		store(place, bytes, len, 0);
		assert_int_not_equal(identity(place, boot), before);
		before = identity(place, boot);
		len = load(place, bytes, sizeof(bytes));
	}
	store(place, bytes, len - 1, O_TRUNC);
	assert_int_not_equal(identity(place, boot), before);
}

/* A directory that takes no file: the daemon starts all the same, for this once. */
TEST(an_identity_that_cannot_be_kept_holds_for_now, struct place *place)
{
	assert_int_equal(mkdirat(place->directory, FILE_NAME, 0700), 0);
	assert_int_equal(identity(place, boot), 1);
	assert_int_equal(identity(place, boot), 2);
	assert_int_equal(unlinkat(place->directory, FILE_NAME, AT_REMOVEDIR), 0);
	assert_int_equal(faccessat(place->directory, ".identity.new", F_OK, 0), -1);
}
