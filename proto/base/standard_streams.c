/*
 * standard_streams.c - see standard_streams.h. It must never close a number that the application
 * has opened in the meantime.
 */
#include "standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STREAMS = STDERR_FILENO + 1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned holders;
static bool filled[STREAMS]; /* by a holder */

int ps_above_standard(int fd)
{
	int above, error;

	if (fd < 0 || fd >= STREAMS)
		return fd;
	above = fcntl(fd, F_DUPFD_CLOEXEC, STREAMS);
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

static int mode_of(int number)
{
	return number == STDIN_FILENO ? O_WRONLY : O_RDONLY;
}

/* Opens /dev/null at this number, and at no other. Returns 1 if it did, 0 if the number is taken,
 * or -1 with errno set. */
static int fill_number(int number)
{
	int fd, own;

	if (fcntl(number, F_GETFD) >= 0)
		return 0;
	fd = open("/dev/null", mode_of(number) | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fd == number)
		return 1;
	/* Another thread has taken the number, or a lower one is closed. */
	own = fcntl(fd, F_DUPFD_CLOEXEC, number);
	close(fd);
	if (own > number)
		close(own);
	return own < 0 ? -1 : own == number;
}

int ps_standard_fill(void)
{
	for (int i = 0; i < STREAMS; i++)
		if (fill_number(i) < 0)
			return -1;
	return 0;
}

/* Returns false if the application has put something else at this number. */
static bool is_filling(int number)
{
	const int mode = fcntl(number, F_GETFL);
	struct stat here, null;

	return mode >= 0 && (mode & O_ACCMODE) == mode_of(number) && fstat(number, &here) == 0 &&
	       stat("/dev/null", &null) == 0 && here.st_rdev == null.st_rdev &&
	       here.st_ino == null.st_ino && here.st_dev == null.st_dev;
}

/* The caller holds the lock. */
static void empty_numbers(void)
{
	for (int i = 0; i < STREAMS; i++) {
		if (filled[i] && is_filling(i))
			close(i);
		filled[i] = false;
	}
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

/* The threads that held the numbers are not in the child. */
static void in_child(void)
{
	empty_numbers();
	holders = 0;
	pthread_mutex_unlock(&lock);
}

static void prepare(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

void ps_standard_hold(void)
{
	const int error = errno;

	pthread_once(&once, prepare);
	pthread_mutex_lock(&lock);
	holders++;
	for (int i = 0; i < STREAMS; i++)
		if (fill_number(i) == 1)
			filled[i] = true;
	pthread_mutex_unlock(&lock);
	errno = error;
}

void ps_standard_release(void)
{
	const int error = errno;

	pthread_mutex_lock(&lock);
	if (--holders == 0)
		empty_numbers();
	pthread_mutex_unlock(&lock);
	errno = error;
}
