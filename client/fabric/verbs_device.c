/*
 * verbs_device.c - devices that links share, each with its protection domain and registered
 * memory. verbs_connect.c finds or makes one; the env frees them. Memory stays registered while
 * any link may send from it.
 */
#include "verbs_device.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A list suffices: a host has few devices. Only the thread that attaches changes it. */
struct ps_devices {
	struct ps_device *first;
};

void *ps_pages_new(size_t size)
{
	void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return NULL;
	madvise(pages, size, MADV_DONTFORK);
	return pages;
}

void ps_pages_free(void *pages, size_t size)
{
	if (pages)
		munmap(pages, size);
}

bool ps_device_is_iwarp(const struct ibv_context *context)
{
	return context->device->transport_type == IBV_TRANSPORT_IWARP;
}

int ps_device_landing_access(const struct ibv_context *context)
{
	/* In iWARP the answer to a read is a write by the peer. */
	return IBV_ACCESS_LOCAL_WRITE | (ps_device_is_iwarp(context) ? IBV_ACCESS_REMOTE_WRITE : 0);
}

static void device_free(struct ps_device *device)
{
	const struct ps_verbs *verbs = device->verbs;

	if (device->landing)
		verbs->dereg_mr(device->landing);
	ps_pages_free(device->buffer, PS_LANDING);
	if (device->staging)
		verbs->dereg_mr(device->staging);
	if (device->pd)
		verbs->dealloc_pd(device->pd);
	if (device->anchor)
		verbs->destroy_id(device->anchor);
	if (device->channel)
		verbs->destroy_event_channel(device->channel);
	free(device);
}

/* Frees devices that were unplugged and have no link left. */
static void free_unplugged(struct ps_devices *devices)
{
	struct ps_device **at = &devices->first;

	while (*at) {
		struct ps_device *device = *at;

		if (!atomic_load(&device->gone) || atomic_load(&device->links)) {
			at = &device->next;
			continue;
		}
		*at = device->next;
		device_free(device);
	}
}

struct ps_device *ps_device_acquire(struct ps_env *env, const struct rdma_cm_id *id)
{
	struct ps_device *device;

	if (!env->devices)
		return NULL;
	free_unplugged(env->devices);
	for (device = env->devices->first; device; device = device->next) {
		if (device->context == id->verbs && !atomic_load(&device->gone)) {
			atomic_fetch_add(&device->links, 1);
			return device;
		}
	}
	return NULL;
}

void ps_device_release(struct ps_device *device)
{
	unsigned before = atomic_fetch_sub(&device->links, 1);

	assert(before > 0);
}

/* Makes the device's protection domain and its registrations. */
static int register_memory(struct ps_device *device, const struct ps_env *env,
                           struct ps_error *error)
{
	const struct ps_verbs *verbs = device->verbs;
	const char *name = ps_verbs_device_name(device->context);
	char why[400];
	int failed = verbs->query_device(device->context, &device->attr);

	if (failed)
		return ps_error_set(error, PERSEAS_ERDMA,
		                    "device %s does not tell its limits (%s); is it still there?",
		                    name, strerror(failed));
	device->pd = verbs->alloc_pd(device->context);
	if (!device->pd)
		return ps_error_set(error, PERSEAS_ERDMA,
		                    "device %s has no protection domain left (max_pd %d): %s", name,
		                    device->attr.max_pd, strerror(errno));
	/* Only this host's device reads the ring: no other host gets a key to it. */
	device->staging = ps_verbs_register(verbs, device->pd, env->staging_memory,
	                                    env->staging_bytes, 0, why, sizeof(why));
	if (!device->staging)
		return ps_error_set(error, PERSEAS_ERDMA, "the owner's ring: %s", why);
	device->buffer = ps_pages_new(PS_LANDING);
	if (!device->buffer)
		return ps_error_set(error, PERSEAS_ENOMEM, "no memory for a buffer of %zu bytes",
		                    PS_LANDING);
	device->landing = ps_verbs_register(verbs, device->pd, device->buffer, PS_LANDING,
	                                    ps_device_landing_access(device->context), why,
	                                    sizeof(why));
	if (!device->landing)
		return ps_error_set(error, PERSEAS_ERDMA, "the buffer for reads: %s", why);
	return 0;
}

/* Must come before the process's first registration: otherwise a page that is written to after a
 * fork would not be the page that the device reads. Later calls do nothing. */
static int prepare_fork(const struct ps_verbs *verbs, struct ps_error *error)
{
	int failed = verbs->fork_init();

	if (!failed)
		return 0;
	return ps_error_set(error, PERSEAS_ERDMA,
	                    "memory cannot be registered so that a fork does no harm "
	                    "(ibv_fork_init: %s); set RDMAV_FORK_SAFE=1 in the environment, or "
	                    "call ibv_fork_init before the application registers memory of its own",
	                    strerror(failed));
}

int ps_device_create(struct ps_env *env, struct rdma_cm_id *id, struct rdma_event_channel *channel,
                     struct ps_error *error)
{
	struct ps_device *device;
	int rc;

	if (!env->devices)
		env->devices = calloc(1, sizeof(*env->devices));
	device = calloc(1, sizeof(*device));
	if (!env->devices || !device) {
		free(device);
		return ps_error_set(error, PERSEAS_ENOMEM, "no memory for an RDMA device");
	}
	device->verbs = env->verbs;
	device->context = id->verbs;
	rc = prepare_fork(env->verbs, error);
	if (!rc)
		rc = register_memory(device, env, error);
	if (rc) {
		device_free(device);
		return rc;
	}
	device->anchor = id;
	device->channel = channel;
	device->next = env->devices->first;
	env->devices->first = device;
	return 0;
}

void ps_devices_free(struct ps_devices *devices)
{
	if (!devices)
		return;
	while (devices->first) {
		struct ps_device *device = devices->first;

		assert(!atomic_load(&device->links));
		devices->first = device->next;
		device_free(device);
	}
	free(devices);
}
