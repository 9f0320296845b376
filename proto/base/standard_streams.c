/*
 * standard_streams.c - see standard_streams.h. It must never close a descriptor that the
 * application has opened in the meantime.
 */
#include "standard_streams.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STREAM_COUNT = STDERR_FILENO + 1 };

static pthread_mutex_t holders_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t handlers_once = PTHREAD_ONCE_INIT;
static unsigned holder_count;
static bool is_filled[STREAM_COUNT]; /* opened by ps_standard_fds_reserve() */

int ps_above_standard(int fd)
{
	int above, error;

	if (fd < 0 || fd >= STREAM_COUNT)
		return fd;
	above = fcntl(fd, F_DUPFD_CLOEXEC, STREAM_COUNT);
	error = errno;
	close(fd);
	errno = error;
	return above;
}

int ps_pair_above_standard(int made, int pair[2])
{
	if (made < 0)
		return made;
	pair[0] = ps_above_standard(pair[0]);
	pair[1] = ps_above_standard(pair[1]);
	if (pair[0] >= 0 && pair[1] >= 0)
		return 0;
	if (pair[0] >= 0)
		close(pair[0]);
	if (pair[1] >= 0)
		close(pair[1]);
	errno = EMFILE;
	return -1;
}

static int open_mode_of(int number)
{
	return number == STDIN_FILENO ? O_WRONLY : O_RDONLY;
}

/* Opens /dev/null at this descriptor number and no other. Returns 1 if it did, 0 if the number is
 * taken, or -1 with errno set. */
static int fill_number(int number)
{
	int fd, own;

	if (fcntl(number, F_GETFD) >= 0)
		return 0;
	fd = open("/dev/null", open_mode_of(number) | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fd == number)
		return 1;
	/* The number is taken by another thread, or a lower number was free. */
	own = fcntl(fd, F_DUPFD_CLOEXEC, number);
	close(fd);
	if (own > number)
		close(own);
	return own < 0 ? -1 : own == number;
}

int ps_standard_fds_fill(void)
{
	for (int i = 0; i < STREAM_COUNT; i++)
		if (fill_number(i) < 0)
			return -1;
	return 0;
}

/* Returns true if our /dev/null is at this number, and not a descriptor that the application
 * opened. */
static bool is_filling(int number)
{
	const int mode = fcntl(number, F_GETFL);
	struct stat here, null;

	return mode >= 0 && (mode & O_ACCMODE) == open_mode_of(number) &&
	       fstat(number, &here) == 0 && stat("/dev/null", &null) == 0 &&
	       here.st_rdev == null.st_rdev && here.st_ino == null.st_ino &&
	       here.st_dev == null.st_dev;
}

/* Closes the numbers that ps_standard_fds_reserve() filled. Caller holds holders_lock. */
static void close_filled_numbers(void)
{
	for (int i = 0; i < STREAM_COUNT; i++) {
		if (is_filled[i] && is_filling(i))
			close(i);
		is_filled[i] = false;
	}
}

static void before_fork(void)
{
	pthread_mutex_lock(&holders_lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&holders_lock);
}

/* The threads that called ps_standard_fds_reserve() do not exist in the child. */
static void reset_in_child(void)
{
	close_filled_numbers();
	holder_count = 0;
	pthread_mutex_unlock(&holders_lock);
}

static void register_handlers(void)
{
	pthread_atfork(before_fork, after_fork, reset_in_child);
}

void ps_standard_fds_reserve(void)
{
	const int error = errno;

	pthread_once(&handlers_once, register_handlers);
	pthread_mutex_lock(&holders_lock);
	holder_count++;
	for (int i = 0; i < STREAM_COUNT; i++)
		if (fill_number(i) == 1)
			is_filled[i] = true;
	pthread_mutex_unlock(&holders_lock);
	errno = error;
}

void ps_standard_fds_release(void)
{
	const int error = errno;

	pthread_mutex_lock(&holders_lock);
	assert(holder_count > 0);
	if (--holder_count == 0)
		close_filled_numbers();
	pthread_mutex_unlock(&holders_lock);
	errno = error;
}
