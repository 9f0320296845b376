/*
 * verbs_device.h - the objects of an RDMA device that all links of a handle share: the protection
 * domain, the registered ring that chains are sent from, and the buffer that reads land in.
 *
 * The first link that is routed over a device creates its struct ps_device, which lives until the
 * handle's env is freed. So a link that is attached again after a break registers nothing anew.
 */
#ifndef PERSEAS_CLIENT_VERBS_DEVICE_H
#define PERSEAS_CLIENT_VERBS_DEVICE_H

#include "../../proto/base/verbs.h"
#include "../core/env.h"

#include <stdatomic.h>

/*
 * Bytes of the buffer that reads land in; they are copied from there to the caller's memory. That
 * memory belongs to the application and may have up to 1 TiB: registering it would count against
 * RLIMIT_MEMLOCK and take longer than the copy, which overlaps with the next reads. This many bytes
 * in flight keep a link of 100 Gb/s busy for 40 us, and the copy is no faster. With more in flight,
 * soft-RoCE serves these reads before anything else, and on a slow host the ACK timeout passes in
 * the meantime.
 */
#define PS_LANDING ((size_t)512 << 10)

struct ps_device {
	struct ps_device *next;
	const struct ps_verbs *verbs;
	struct ibv_context *context;
	/* An id that is routed over the device and never connects. librdmacm closes the context of
	 * an unplugged device with its last id, and the registrations here would be lost with
	 * it. */
	struct rdma_cm_id *anchor;
	struct rdma_event_channel *channel; /* event channel of the anchor */
	struct ibv_pd *pd;
	struct ibv_mr *staging; /* registration of env->staging_memory */
	uint8_t *buffer;        /* PS_LANDING bytes; a handle reads over one link at a time */
	struct ibv_mr *landing; /* registration of `buffer` */
	struct ibv_device_attr attr;
	atomic_uint links; /* links that use the device */
	atomic_bool gone;  /* the device was unplugged; it is freed when no link uses it */
};

/* Returns the device of a routed id and adds a link to its count. Returns NULL if the device has
 * not been created yet. */
struct ps_device *ps_device_acquire(struct ps_env *env, const struct rdma_cm_id *id);

/* Creates the device of a routed id. On success it takes over id and channel. Returns 0, or a code
 * with *error set. */
int ps_device_create(struct ps_env *env, struct rdma_cm_id *id, struct rdma_event_channel *channel,
                     struct ps_error *error);

/* Subtracts a link from the device's count. Any thread may call it. */
void ps_device_release(struct ps_device *device);

/* Returns the access rights that memory needs for reads to land in it. */
int ps_device_landing_access(const struct ibv_context *context);

/* Returns true for iWARP, RDMA over TCP. There a completed write has only been handed to TCP and
 * may not have reached the mirror, and the order in which writes are placed is not guaranteed. */
bool ps_device_is_iwarp(const struct ibv_context *context);

/* Allocates pages that child processes do not inherit. Returns NULL if out of memory. */
void *ps_pages_new(size_t size);
void ps_pages_free(void *pages, size_t size);

#endif
