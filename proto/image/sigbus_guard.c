/*
 * sigbus_guard.c - the SIGBUS handler, and the table in which it looks up the faulting address. The
 * handler may interrupt any code, so it reads the table without a lock: entries never move and are
 * never freed, and an entry is unused while its size is 0. The handler must never touch memory that
 * can be freed, and never consume a fault outside of a guarded mapping.
 */
#include "sigbus_guard.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCK_ENTRIES = 512 };

struct ps_guard {
	_Atomic size_t size; /* bytes; 0: unused, 1: being filled in */
	_Atomic uintptr_t base;
	_Atomic pid_t process; /* the process that created the guard */
	atomic_bool torn;
};

struct block {
	struct block *next;
	struct ps_guard entries[BLOCK_ENTRIES];
};

_Atomic unsigned ps_guards_torn_count;

static _Atomic(struct block *) blocks; /* list of all blocks; never freed */
static uintptr_t page_size;

/* Guards the members below, which say who handles SIGBUS. The handler itself takes no lock. */
static pthread_mutex_t handler_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t handler_once = PTHREAD_ONCE_INIT;
static struct sigaction previous_action;
static bool is_installed;
static unsigned guard_count; /* guards that this process made and has not freed */

/* Returns the guard of the mapping that contains the address, or NULL. */
static struct ps_guard *guard_of(uintptr_t address)
{
	struct block *block = atomic_load(&blocks);

	for (; block; block = block->next)
		for (unsigned i = 0; i < BLOCK_ENTRIES; i++) {
			struct ps_guard *guard = &block->entries[i];
			size_t size = atomic_load(&guard->size);
			uintptr_t base = atomic_load(&guard->base);

			if (size > 1 && address >= base && address - base < size &&
			    atomic_load(&guard->process) == getpid())
				return guard;
		}
	return NULL;
}

/* Maps zeroed memory from the page of the address to the end of the mapping. */
static bool replace_pages(const struct ps_guard *guard, uintptr_t address)
{
	const uintptr_t page = address & ~(page_size - 1);
	const uintptr_t end = atomic_load(&guard->base) + atomic_load(&guard->size);

	return mmap((void *)page, end - page, PROT_READ | PROT_WRITE,
	            MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

/* Handles a fault outside of guarded mappings as if this handler were not installed. */
static void pass_to_previous_handler(int number, siginfo_t *info, void *context)
{
	const struct sigaction standard = { .sa_handler = SIG_DFL };

	if (previous_action.sa_flags & SA_SIGINFO) {
		previous_action.sa_sigaction(number, info, context);
	} else if (previous_action.sa_handler == SIG_IGN && info->si_code <= 0) {
		return;
	} else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
		previous_action.sa_handler(number);
	} else {
		/* A real fault repeats when the handler returns; a signal sent by kill() must be
		 * raised again. */
		sigaction(SIGBUS, &standard, NULL);
		if (info->si_code <= 0)
			raise(SIGBUS);
	}
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	const int error = errno;
	const uintptr_t address = (uintptr_t)info->si_addr;
	struct ps_guard *guard = info->si_code > 0 ? guard_of(address) : NULL;

	if (!guard) {
		pass_to_previous_handler(number, info, context);
	} else {
		/* The guard must be torn before the zero pages are mapped, so that a thread that
		 * reads zeros finds it torn. */
		if (!atomic_exchange(&guard->torn, true))
			atomic_fetch_add(&ps_guards_torn_count, 1);
		if (!replace_pages(guard, address))
			pass_to_previous_handler(number, info, context);
	}
	errno = error;
}

static bool is_our_handler(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_fault;
}

/* Caller holds handler_lock. */
static void install_handler(void)
{
	struct sigaction now, action = { .sa_sigaction = on_fault,
		                         .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };

	assert(pthread_mutex_trylock(&handler_lock) == EBUSY);
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, NULL, &now);
	if (!is_our_handler(&now)) {
		previous_action = now;
		sigaction(SIGBUS, &action, NULL);
	}
	is_installed = true;
}

/* Restores the previous action. If another handler was installed in the meantime, it may pass
 * faults on to this one, which then stays. Caller holds handler_lock. */
static void restore_handler(void)
{
	struct sigaction now;

	assert(is_installed && pthread_mutex_trylock(&handler_lock) == EBUSY);
	sigaction(SIGBUS, NULL, &now);
	if (!is_our_handler(&now))
		return;
	sigaction(SIGBUS, &previous_action, NULL);
	is_installed = false;
}

static void before_fork(void)
{
	pthread_mutex_lock(&handler_lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&handler_lock);
}

/* A child never frees the guards of its parent. */
static void reset_in_child(void)
{
	guard_count = 0;
	pthread_mutex_unlock(&handler_lock);
}

static void prepare_handler(void)
{
	page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
	pthread_atfork(before_fork, after_fork, reset_in_child);
}

void ps_guard_reinstall_handler(void)
{
	pthread_once(&handler_once, prepare_handler);
	pthread_mutex_lock(&handler_lock);
	install_handler();
	pthread_mutex_unlock(&handler_lock);
}

static void count_guard(void)
{
	pthread_once(&handler_once, prepare_handler);
	pthread_mutex_lock(&handler_lock);
	guard_count++;
	if (!is_installed)
		install_handler();
	pthread_mutex_unlock(&handler_lock);
}

static void uncount_guard(void)
{
	pthread_mutex_lock(&handler_lock);
	assert(guard_count > 0);
	if (--guard_count == 0 && is_installed)
		restore_handler();
	pthread_mutex_unlock(&handler_lock);
}

/* Takes an unused entry of the block. Returns NULL if all are in use. */
static struct ps_guard *claim_guard_entry(struct block *block)
{
	for (unsigned i = 0; i < BLOCK_ENTRIES; i++) {
		size_t none = 0;

		if (atomic_compare_exchange_strong(&block->entries[i].size, &none, 1))
			return &block->entries[i];
	}
	return NULL;
}

static struct ps_guard *claim_entry_in_new_block(void)
{
	struct ps_guard *guard = NULL;
	struct block *block;

	for (block = atomic_load(&blocks); block && !guard; block = block->next)
		guard = claim_guard_entry(block);
	if (guard)
		return guard;
	block = calloc(1, sizeof(*block));
	if (!block)
		return NULL;
	guard = claim_guard_entry(block);
	block->next = atomic_load(&blocks);
	while (!atomic_compare_exchange_weak(&blocks, &block->next, block))
		;
	return guard;
}

struct ps_guard *ps_guard_new(void *base, size_t size)
{
	struct ps_guard *guard = claim_entry_in_new_block();

	assert(size > 0);
	if (!guard)
		return NULL;
	count_guard();
	atomic_store(&guard->base, (uintptr_t)base);
	atomic_store(&guard->process, getpid());
	atomic_store(&guard->torn, false);
	atomic_store(&guard->size, size);
	return guard;
}

void ps_guard_free(struct ps_guard *guard)
{
	if (!guard)
		return;
	const bool own = atomic_load(&guard->process) == getpid();

	atomic_store(&guard->size, 0);
	if (own)
		uncount_guard();
}

bool ps_guard_is_torn(const struct ps_guard *guard)
{
	return guard && atomic_load(&((struct ps_guard *)guard)->torn);
}
