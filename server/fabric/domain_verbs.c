/*
 * domain_verbs.c - RDMA devices, protection domains, and registered memory. Pinning and unpinning
 * the pages of a large piece takes long, so it runs outside of the loop (jobs.h). The request that
 * needs it keeps the piece and the session in the meantime. Only the device may disappear; then the
 * loop waits for the work that uses it.
 */
#include "target_verbs.h"

#include "../host/jobs.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- memory --- */

/* Work that registers or deregisters memory outside of the loop. */
struct verbs_work {
	struct verbs_work *next;
	struct verbs_domain *domain; /* invalid if `lost` */
	const struct ps_verbs *verbs;
	struct ibv_mr *memory; /* NULL: none, or not yet registered */
	struct ibv_pd *pd;
	void *base;
	uint64_t length;
	int access;
	int error;
	char why[VERBS_TEXT];
	bool done;          /* guarded by works_lock */
	bool domain_closed; /* the domain was closed and has deregistered the memory */
};

static pthread_mutex_t works_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_done = PTHREAD_COND_INITIALIZER;

static void signal_done(struct verbs_work *work)
{
	pthread_mutex_lock(&works_lock);
	work->done = true;
	pthread_cond_broadcast(&is_done);
	pthread_mutex_unlock(&works_lock);
}

static void run_register(void *arg)
{
	struct verbs_work *work = arg;

	work->memory = ps_verbs_register(work->verbs, work->pd, work->base, work->length,
	                                 work->access, work->why, sizeof(work->why));
	signal_done(work);
}

static void run_deregister(void *arg)
{
	struct verbs_work *work = arg;

	work->error = work->verbs->dereg_mr(work->memory);
	work->memory = NULL;
	signal_done(work);
}

/* Runs the work outside of the loop. In the meantime, the loop finds the work in the target's
 * list. */
static void run_work(struct verbs_work *work, void (*run)(void *arg))
{
	struct verbs_target *target = work->domain->device->target;
	struct verbs_work **at = &target->works;

	work->next = target->works;
	target->works = work;
	work->domain->work_count++;
	job_aside(work->length, run, work);
	while (*at != work)
		at = &(*at)->next;
	*at = work->next;
	assert(work->done);
	if (!work->domain_closed)
		work->domain->work_count--;
}

/* --- domains --- */

static void log_failure(const struct verbs_domain *domain, int error)
{
	if (error)
		log_event(LOG_LEVEL_ERROR, "device-trouble", NULL,
		          "memory stays registered with device %s: %s",
		          ps_verbs_device_name(domain->device->context), strerror(error));
}

static void deregister_memory(struct verbs_domain *domain, struct ibv_mr *memory)
{
	log_failure(domain, domain->device->target->verbs->dereg_mr(memory));
}

/* Waits for all work that uses the domain, which is about to be closed. */
static void await_works(struct verbs_domain *domain)
{
	struct verbs_work *work = domain->device->target->works;

	for (; work; work = work->next) {
		if (work->domain_closed || work->domain != domain)
			continue;
		pthread_mutex_lock(&works_lock);
		while (!work->done)
			pthread_cond_wait(&is_done, &works_lock);
		pthread_mutex_unlock(&works_lock);
		work->domain_closed = true;
		if (work->memory)
			deregister_memory(domain, work->memory);
	}
}

static void domain_close(struct verbs_domain *domain)
{
	struct verbs_target *target = domain->device->target;
	struct verbs_domain **at = &target->domains;
	int error;

	while (*at != domain)
		at = &(*at)->next;
	*at = domain->next;
	await_works(domain);
	while (domain->count > 0)
		deregister_memory(domain, domain->memory[--domain->count]);
	error = target->verbs->dealloc_pd(domain->pd);
	if (error)
		log_event(LOG_LEVEL_ERROR, "device-trouble", NULL,
		          "a protection domain of device %s stays: %s",
		          ps_verbs_device_name(domain->device->context), strerror(error));
	free(domain);
}

struct verbs_domain *verbs_domain_find(struct verbs_target *target, const struct store *store)
{
	struct verbs_domain *domain = target->domains;

	while (domain && domain->store != store)
		domain = domain->next;
	return domain;
}

struct verbs_domain *verbs_domain_open(struct verbs_target *target, const struct store *store,
                                       struct verbs_device *device)
{
	struct verbs_domain *domain = verbs_domain_find(target, store);

	if (domain && domain->device == device)
		return domain;
	if (domain)
		domain_close(domain);
	domain = calloc(1, sizeof(*domain));
	if (domain)
		domain->pd = target->verbs->alloc_pd(device->context);
	if (!domain || !domain->pd) {
		snprintf(target->trouble, sizeof(target->trouble),
		         "device %s gives no protection domain: %s",
		         ps_verbs_device_name(device->context), strerror(errno));
		free(domain);
		return NULL;
	}
	domain->device = device;
	domain->store = store;
	domain->next = target->domains;
	target->domains = domain;
	return domain;
}

static void close_unused_domain(struct verbs_domain *domain)
{
	if (domain->links == 0 && domain->count == 0 && domain->work_count == 0)
		domain_close(domain);
}

void verbs_domain_remove_link(struct verbs_domain *domain)
{
	assert(domain->links > 0);
	domain->links--;
	close_unused_domain(domain);
}

static struct ibv_mr *register_memory(struct verbs_domain *domain, void *base, uint64_t length,
                                      int access)
{
	struct verbs_target *target = domain->device->target;
	struct verbs_work work = {
		.domain = domain,
		.verbs = target->verbs,
		.pd = domain->pd,
		.base = base,
		.length = length,
		.access = access,
	};

	run_work(&work, run_register);
	if (!work.domain_closed && work.memory)
		return domain->memory[domain->count++] = work.memory;
	snprintf(target->trouble, sizeof(target->trouble), "%s",
	         work.domain_closed ? "its device was taken away" : work.why);
	return NULL;
}

struct ibv_mr *verbs_domain_register(struct verbs_domain *domain, uint32_t region, uint8_t *base,
                                     uint64_t length)
{
	struct verbs_target *target = domain->device->target;
	/* The promise page is read-only for owners. The header is not registered. */
	int access = IBV_ACCESS_REMOTE_READ;

	for (unsigned i = 0; i < domain->count; i++)
		if (domain->memory[i]->addr == base)
			return domain->memory[i];
	if (region != PS_REGION_PROMISE)
		access |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	if (domain->count == sizeof(domain->memory) / sizeof(domain->memory[0])) {
		snprintf(target->trouble, sizeof(target->trouble), "too many regions");
		return NULL;
	}
	return register_memory(domain, base, length, access);
}

static void deregister_piece(struct verbs_domain *domain, unsigned index)
{
	struct verbs_work work = {
		.domain = domain,
		.verbs = domain->device->target->verbs,
		.memory = domain->memory[index],
		.length = domain->memory[index]->length,
	};

	domain->memory[index] = domain->memory[--domain->count];
	run_work(&work, run_deregister);
	if (work.domain_closed)
		return;
	log_failure(domain, work.error);
	close_unused_domain(domain);
}

void verbs_domain_unmap(void *arg, const struct piece *piece)
{
	struct verbs_target *target = arg;

	for (struct verbs_domain *domain = target->domains; domain; domain = domain->next) {
		for (unsigned i = 0; i < domain->count; i++) {
			if (domain->memory[i]->addr != piece->base)
				continue;
			deregister_piece(domain, i);
			return;
		}
	}
}

/* --- devices --- */

static const char *event_text(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_DEVICE_FATAL:
		return "it has failed";
	case IBV_EVENT_PORT_ACTIVE:
		return "its port is up";
	case IBV_EVENT_PORT_ERR:
		return "its port is down";
	case IBV_EVENT_GID_CHANGE:
		return "its addresses have changed";
	default:
		return "it has reported another event";
	}
}

/* Returns the link that an event is about, or NULL if it is about the device. */
static struct verbs_link *link_of_event(struct verbs_device *device,
                                        const struct ibv_async_event *event)
{
	struct verbs_link *link = device->target->links;

	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		while (link && link->id->qp != event->element.qp)
			link = link->next;
		return link;
	case IBV_EVENT_CQ_ERR:
		while (link && link->cq != event->element.cq)
			link = link->next;
		return link;
	default:
		return NULL;
	}
}

static bool is_device_event(enum ibv_event_type type)
{
	return type == IBV_EVENT_DEVICE_FATAL || type == IBV_EVENT_PORT_ACTIVE ||
	       type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_GID_CHANGE;
}

/* Handles asynchronous events of the device and its queue pairs. */
static void handle_events(struct verbs_device *device)
{
	const struct ps_verbs *verbs = device->target->verbs;
	struct ibv_async_event event;

	while (verbs->get_async_event(device->context, &event) == 0) {
		struct verbs_link *link = link_of_event(device, &event);

		/* Destroying a queue pair waits until its events are acknowledged. */
		verbs->ack_async_event(&event);
		if (is_device_event(event.event_type))
			log_event(LOG_LEVEL_WARNING, "device-event", NULL, "device %s: %s",
			          ps_verbs_device_name(device->context),
			          event_text(event.event_type));
		if (link) {
			log_event(LOG_LEVEL_INFO, "rdma-failed",
			          &(struct log_fields){ .peer = link->peer },
			          "the queue pair of %s has failed", link->peer);
			verbs_link_close(link);
		}
	}
}

DAEMON_CALLBACK(on_async_event, struct verbs_device, target->daemon, handle_events)
DAEMON_CALLBACK(on_completed, struct verbs_device, target->daemon, verbs_link_handle_completions)

static struct event *watch_fd(struct verbs_device *device, int fd, event_callback_fn call)
{
	struct event *event;

	if (ps_verbs_nonblocking(fd) < 0)
		return NULL;
	event = event_new(device->target->daemon->base, fd, EV_READ | EV_PERSIST, call, device);
	if (event && event_add(event, NULL) == 0)
		return event;
	if (event)
		event_free(event);
	return NULL;
}

static void device_free(struct verbs_device *device)
{
	if (device->completion_event)
		event_free(device->completion_event);
	if (device->async_event)
		event_free(device->async_event);
	if (device->channel)
		device->target->verbs->destroy_comp_channel(device->channel);
	free(device);
}

struct verbs_device *verbs_device_open(struct verbs_target *target, struct ibv_context *context)
{
	struct verbs_device *device = target->devices;
	struct ibv_device_attr attr;

	while (device && (device->context != context || device->gone))
		device = device->next;
	if (device)
		return device;
	device = calloc(1, sizeof(*device));
	if (!device)
		goto fail;
	device->target = target;
	device->context = context;
	if (target->verbs->query_device(context, &attr))
		goto fail;
	device->reads_max = attr.max_qp_rd_atom;
	device->channel = target->verbs->create_comp_channel(context);
	if (!device->channel)
		goto fail;
	device->completion_event = watch_fd(device, device->channel->fd, on_completed);
	device->async_event = watch_fd(device, context->async_fd, on_async_event);
	if (!device->completion_event || !device->async_event)
		goto fail;
	device->next = target->devices;
	target->devices = device;
	return device;
fail:
	snprintf(target->trouble, sizeof(target->trouble), "device %s cannot be used: %s",
	         ps_verbs_device_name(context), strerror(errno));
	if (device)
		device_free(device);
	return NULL;
}

static struct verbs_domain *any_domain_of(struct verbs_device *device)
{
	struct verbs_domain *domain = device->target->domains;

	while (domain && domain->device != device)
		domain = domain->next;
	return domain;
}

void verbs_device_close(struct verbs_device *device)
{
	struct verbs_device **at = &device->target->devices;

	for (struct verbs_domain *domain = any_domain_of(device); domain;
	     domain = any_domain_of(device))
		domain_close(domain);
	while (*at != device)
		at = &(*at)->next;
	*at = device->next;
	device_free(device);
}
