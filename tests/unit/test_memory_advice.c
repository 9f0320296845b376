/*
 * test_memory_advice.c - what a daemon says when files cannot be made in its memory directory, on a
 * file system that is played.
 */
#include "../support/unit.h"

#include "../../server/memory/memory_place.h"

#include <sys/statvfs.h>

static struct statvfs played;

int fstatvfs(int fd, struct statvfs *fs)
{
	(void)fd;
	*fs = played;
	return 0;
}

static void play(uint64_t blocks, uint64_t files, uint64_t files_left)
{
	played = (struct statvfs){
		.f_frsize = 4096,
		.f_blocks = 1 << 20,
		.f_bavail = blocks,
		.f_files = files,
		.f_favail = files_left,
	};
}

static void assert_says(const char *text, const char *words)
{
	assert_non_null(text);
	if (!strstr(text, words))
		fail_msg("'%s' does not have '%s'", text, words);
}

/* A tmpfs that has room for bytes, and not for files: a larger file system is no cure. */
TEST(inodes_that_are_missing_are_named)
{
	char why[200];

	play(1 << 19, 100, 2);
	assert_says(memory_place_advise_on_errno(0, ENOSPC), "no inodes left");
	assert_false(memory_place_is_usable(0, PLACE_DISK, why, sizeof(why)));
	assert_says(why, "no inodes left");
	play(1 << 19, 100, 3);
	assert_null(memory_place_advise_on_errno(0, ENOSPC));
	assert_true(memory_place_is_usable(0, PLACE_DISK, why, sizeof(why)));
	/* A file system that has no number of inodes (btrfs). */
	play(1 << 19, 0, 0);
	assert_null(memory_place_advise_on_errno(0, ENOSPC));
	assert_true(memory_place_is_usable(0, PLACE_DISK, why, sizeof(why)));
}

TEST(limits_of_the_daemon_are_named)
{
	play(1 << 19, 100, 0);
	assert_says(memory_place_advise_on_errno(0, EFBIG), "ulimit -f");
	assert_says(memory_place_advise_on_errno(0, EDQUOT), "quota");
	assert_says(memory_place_advise_on_errno(0, EMFILE), "ulimit -n");
	assert_says(memory_place_advise_on_errno(0, ENOMEM), "ulimit -v");
	assert_null(memory_place_advise_on_errno(0, EIO));
}
