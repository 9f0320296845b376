/*
 * exit_tls.c - keeps threads of this library out of OpenSSL while the process exits. All other
 * *_tls.c files call OpenSSL between ps_openssl_enter() and ps_openssl_leave().
 *
 * At exit() OpenSSL frees its global state in a handler that it registers when it is first used,
 * while threads of this library still run. Our handler is registered after OpenSSL's and therefore
 * runs before it: it closes the entry and waits until all threads have left. Nothing here may call
 * OpenSSL after that, or wait longer than EXIT_WAIT_MS.
 */
#include "tls_private.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* A call takes about a millisecond. The limit keeps a call that reads from a failed disk from
 * blocking exit(). */
enum { EXIT_WAIT_MS = 2000 };

static atomic_uint inside_count;
static atomic_bool is_exiting;

static void at_exit(void)
{
	const struct timespec moment = { 0, 1000000 };

	/* A thread that enters after this store sees is_exiting; all others are in inside_count. */
	atomic_store(&is_exiting, true);
	for (int ms = 0; atomic_load(&inside_count) && ms < EXIT_WAIT_MS; ms++)
		nanosleep(&moment, NULL);
}

/* fork() copies only the calling thread, so no thread of the child is inside. */
static void reset_in_child(void)
{
	atomic_store(&inside_count, 0);
}

static void register_handlers(void)
{
	/* Initializes OpenSSL, which registers its own exit handler unless it did so before. */
	if (OPENSSL_init_ssl(0, NULL) != 1 || atexit(at_exit) ||
	    pthread_atfork(NULL, NULL, reset_in_child))
		atomic_store(&is_exiting, true);
}

bool ps_openssl_enter(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_handlers);
	atomic_fetch_add(&inside_count, 1);
	if (!atomic_load(&is_exiting))
		return true;
	atomic_fetch_sub(&inside_count, 1);
	return false;
}

void ps_openssl_leave(void)
{
	atomic_fetch_sub(&inside_count, 1);
}
