/*
 * verbs_device.h - what the links of one handle share of an RDMA device: its protection domain,
 * the registered ring that all chains are sent from, and the buffer that reads land in.
 *
 * A device is made by the first link that is routed over it and kept until the handle's env is
 * freed: a link that is taken up again after a break then registers nothing anew.
 */
#ifndef PERSEAS_CLIENT_VERBS_DEVICE_H
#define PERSEAS_CLIENT_VERBS_DEVICE_H

#include "../../proto/base/verbs.h"
#include "../core/env.h"

#include <stdatomic.h>

/*
 * Bytes of the buffer that reads land in, from where they are copied to the caller's memory.
 * That memory is not registered itself: it is the application's, up to 1 TiB of it, and to pin
 * it would count against RLIMIT_MEMLOCK and take longer than the copy, which goes on while the
 * next reads are under way. So much under way fills a link of 100 Gb/s over 40 us, and no more than
 * that can be copied. With more, soft-RoCE serves it all before it does anything else, and on a
 * slow host the ACK timeout passes meanwhile.
 */
#define PS_LANDING ((size_t)512 << 10)

struct ps_device {
	struct ps_device *next;
	const struct ps_verbs *verbs;
	struct ibv_context *context;
	/* An id that is routed over the device, and is never connected. librdmacm closes the
	 * context of a device that was unplugged when the last id on it goes; what is registered
	 * here would go with it. */
	struct rdma_cm_id *anchor;
	struct rdma_event_channel *channel; /* the anchor's */
	struct ibv_pd *pd;
	struct ibv_mr *staging; /* of env->staging */
	uint8_t *buffer;        /* PS_LANDING bytes; a handle reads over one link at a time */
	struct ibv_mr *landing; /* of the buffer */
	struct ibv_device_attr attr;
	atomic_uint links;
	atomic_bool gone; /* unplugged: to be freed when no link is left */
};

/* The device behind an id that has been routed, counted as used by one more link; NULL: it is not
 * known yet. */
struct ps_device *ps_device_find(struct ps_env *env, const struct rdma_cm_id *id);

/* Makes the device behind an id that has been routed. Takes id and channel on success. 0, or
 * PERSEAS_ERDMA with a sentence. */
int ps_device_make(struct ps_env *env, struct rdma_cm_id *id, struct rdma_event_channel *channel,
                   struct ps_error *error);

/* One link less uses it; any thread. */
void ps_device_drop(struct ps_device *device);

/* What memory needs that reads land in. */
int ps_device_landing_access(const struct ibv_context *context);

/* Is it a device over TCP? There a completed write is one that has been handed to TCP, and says
 * nothing of the mirror; and the order in which writes are placed is not promised. */
bool ps_device_iwarp(const struct ibv_context *context);

/* Whole pages that no child inherits; NULL: no memory. */
void *ps_pages_new(size_t size);
void ps_pages_free(void *pages, size_t size);

#endif
