/*
 * exit_tls.c - the end of the process, for whoever calls OpenSSL: the other *_tls.c.
 *
 * At exit() OpenSSL frees what all of its calls use, by a handler that was registered when it was
 * first used, while threads of this library still run. So a handler that is registered later, and
 * therefore runs before that one, lets nobody in any more and waits until all are out. Nothing here
 * may call OpenSSL after that, or wait for more than a moment.
 */
#include "tls_private.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* A call takes a millisecond or so; one that reads files from a dead disk must not hold exit(). */
enum { PATIENCE_MS = 2000 };

static atomic_uint inside;
static atomic_bool over;

static void at_exit(void)
{
	const struct timespec moment = { 0, 1000000 };

	/* Whoever comes in from now on sees `over`, and all others are seen here. */
	atomic_store(&over, true);
	for (int ms = 0; atomic_load(&inside) && ms < PATIENCE_MS; ms++)
		nanosleep(&moment, NULL);
}

/* A child of fork has none of the threads that were inside. */
static void in_child(void)
{
	atomic_store(&inside, 0);
}

static void begin(void)
{
	/* Registers OpenSSL's own handler, unless it was used before. */
	if (OPENSSL_init_ssl(0, NULL) != 1 || atexit(at_exit) ||
	    pthread_atfork(NULL, NULL, in_child))
		atomic_store(&over, true);
}

bool ps_tls_enter(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, begin);
	atomic_fetch_add(&inside, 1);
	if (!atomic_load(&over))
		return true;
	atomic_fetch_sub(&inside, 1);
	return false;
}

void ps_tls_leave(void)
{
	atomic_fetch_sub(&inside, 1);
}
