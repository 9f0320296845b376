/*
 * verbs_fake_memory.c - protection domains and registered memory. Code under test calls it
 * through struct ps_verbs, and verbs_fake_run.c looks keys up in it. It refuses what a device
 * would: other domains, bounds, rights.
 */
#include "verbs_fake_private.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int fake_fork_init(void)
{
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_fork_init);
	if (!error && verbs_fake_mode.late_fork && !fake.forks && fake.alive.mrs > 0)
		error = EINVAL;
	if (!error)
		fake.forks = true;
	fake_unlock();
	return error;
}

struct ibv_pd *fake_alloc_pd(struct ibv_context *context)
{
	struct fake_pd *pd = NULL;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_alloc_pd);
	if (!error) {
		pd = fake_alloc(sizeof(*pd));
		pd->pd.context = context;
		fake.alive.pds++;
	}
	fake_unlock();
	errno = error;
	return pd ? &pd->pd : NULL;
}

int fake_dealloc_pd(struct ibv_pd *pd)
{
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_dealloc_pd);
	if (!error && ((struct fake_pd *)pd)->users > 0)
		error = EBUSY;
	if (!error) {
		error = fake_destroyed(pd->context);
		fake.alive.pds--;
		free(pd);
	}
	fake_unlock();
	return error;
}

/* Returns true if all of the range is mapped. */
static bool is_mapped(const void *base, size_t length)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)base & ~(page - 1);

	return msync((void *)start, (uintptr_t)base + length - start, MS_ASYNC) == 0;
}

static int refusal(const struct ibv_pd *pd, const void *base, size_t length, int access)
{
	const struct verbs_fake_device *device = (const void *)pd->context;

	if (length == 0 || length > device->attr.max_mr_size)
		return EINVAL;
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	if (access & IBV_ACCESS_RELAXED_ORDERING)
		fake_wrong("memory is registered with relaxed ordering");
	if (fake.alive.mrs >= (unsigned)device->attr.max_mr)
		return ENOMEM;
	return is_mapped(base, length) ? 0 : EFAULT;
}

struct ibv_mr *fake_reg_mr(struct ibv_pd *pd, void *base, size_t length, int access)
{
	struct fake_mr *mr = NULL;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_reg_mr);
	if (!error)
		error = refusal(pd, base, length, access);
	if (!error) {
		mr = fake_alloc(sizeof(*mr));
		mr->mr.context = pd->context;
		mr->mr.pd = pd;
		mr->mr.addr = base;
		mr->mr.length = length;
		mr->mr.lkey = mr->mr.rkey = fake.numbers++ << 8 | (uint32_t)fake_draw(256);
		mr->access = access;
		mr->next = fake.mrs;
		fake.mrs = mr;
		fake.alive.mrs++;
		((struct fake_pd *)pd)->users++;
	}
	fake_unlock();
	errno = error;
	return mr ? &mr->mr : NULL;
}

int fake_dereg_mr(struct ibv_mr *mr)
{
	struct fake_mr **at = &fake.mrs;
	int error;

	fake_lock();
	error = fake_fault(VERBS_FAKE_dereg_mr);
	while (!error && *at && &(*at)->mr != mr)
		at = &(*at)->next;
	if (!error && !*at) {
		fake_wrong("a memory region is deregistered that is none");
		error = EINVAL;
	}
	if (!error) {
		error = fake_destroyed(mr->context);
		*at = (*at)->next;
		((struct fake_pd *)mr->pd)->users--;
		fake.alive.mrs--;
		free(mr);
	}
	fake_unlock();
	return error;
}

uint8_t *fake_memory(const struct ibv_pd *pd, uint32_t key, uint64_t address, uint64_t length,
                     int access)
{
	for (struct fake_mr *mr = fake.mrs; mr; mr = mr->next) {
		uint64_t start = (uint64_t)(uintptr_t)mr->mr.addr;

		if (mr->mr.rkey != key || mr->mr.context != pd->context)
			continue;
		if (mr->mr.pd != pd || (mr->access & access) != access || address < start ||
		    length > mr->mr.length || address - start > mr->mr.length - length)
			return NULL;
		return (uint8_t *)(uintptr_t)address;
	}
	return NULL;
}
