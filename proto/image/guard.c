/*
 * guard.c - the handler of SIGBUS and the table in which it looks an address up. The handler may
 * interrupt anything, so the table is read without a lock: entries have a fixed place for good, and
 * one is free while its size is 0. The handler must never touch memory that can be freed, and must
 * never keep a fault that is not of a guarded mapping.
 */
#include "guard.h"

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
	_Atomic size_t size; /* bytes; 0: free, 1: being filled in */
	_Atomic uintptr_t base;
	_Atomic pid_t process; /* whose mapping it is */
	atomic_bool torn;
};

struct block {
	struct block *next;
	struct ps_guard entries[BLOCK_ENTRIES];
};

_Atomic unsigned ps_guard_count;

static _Atomic(struct block *) blocks; /* never freed */
static struct sigaction before;
static uintptr_t page_size;
static pthread_once_t installed = PTHREAD_ONCE_INIT;

/* The guard of the mapping that the address lies in, or NULL. */
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

/* Zeroed memory from the page of the address to the mapping's end. */
static bool replace_pages(const struct ps_guard *guard, uintptr_t address)
{
	const uintptr_t page = address & ~(page_size - 1);
	const uintptr_t end = atomic_load(&guard->base) + atomic_load(&guard->size);

	return mmap((void *)page, end - page, PROT_READ | PROT_WRITE,
	            MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

/* What would have happened without this handler. */
static void pass_on(int number, siginfo_t *info, void *context)
{
	const struct sigaction standard = { .sa_handler = SIG_DFL };

	if (before.sa_flags & SA_SIGINFO) {
		before.sa_sigaction(number, info, context);
	} else if (before.sa_handler == SIG_IGN && info->si_code <= 0) {
		return;
	} else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
		before.sa_handler(number);
	} else {
		/* The fault comes again; what was sent does not. */
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
		pass_on(number, info, context);
	} else {
		/* Before the page is mapped: a reader of its zeros must find the guard torn. */
		if (!atomic_exchange(&guard->torn, true))
			atomic_fetch_add(&ps_guard_count, 1);
		if (!replace_pages(guard, address))
			pass_on(number, info, context);
	}
	errno = error;
}

void ps_guard_install(void)
{
	struct sigaction now, action = { .sa_sigaction = on_fault,
		                         .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };

	page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, NULL, &now);
	if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault)
		return;
	before = now;
	sigaction(SIGBUS, &action, NULL);
}

/* Takes a free entry of the block. NULL: all are taken. */
static struct ps_guard *take_entry(struct block *block)
{
	for (unsigned i = 0; i < BLOCK_ENTRIES; i++) {
		size_t none = 0;

		if (atomic_compare_exchange_strong(&block->entries[i].size, &none, 1))
			return &block->entries[i];
	}
	return NULL;
}

static struct ps_guard *take_any(void)
{
	struct ps_guard *guard = NULL;
	struct block *block;

	for (block = atomic_load(&blocks); block && !guard; block = block->next)
		guard = take_entry(block);
	if (guard)
		return guard;
	block = calloc(1, sizeof(*block));
	if (!block)
		return NULL;
	guard = take_entry(block);
	block->next = atomic_load(&blocks);
	while (!atomic_compare_exchange_weak(&blocks, &block->next, block))
		;
	return guard;
}

struct ps_guard *ps_guard_new(void *base, size_t size)
{
	struct ps_guard *guard;

	pthread_once(&installed, ps_guard_install);
	guard = take_any();
	if (!guard)
		return NULL;
	atomic_store(&guard->base, (uintptr_t)base);
	atomic_store(&guard->process, getpid());
	atomic_store(&guard->torn, false);
	atomic_store(&guard->size, size);
	return guard;
}

void ps_guard_free(struct ps_guard *guard)
{
	if (guard)
		atomic_store(&guard->size, 0);
}

bool ps_guard_torn(const struct ps_guard *guard)
{
	return guard && atomic_load(&((struct ps_guard *)guard)->torn);
}
