/*
 * handle.c - makes and frees a handle, and checks its options. Opens and standbys call it; nothing
 * else in this room does.
 */
#include "handle.h"

#include "change_map.h"
#include "unsent_granules.h"
#include "gather.h"

#include "serialization.h"
#include "event.h"
#include "quorum.h"
#include "retained.h"
#include "segment.h"
#include "shadow.h"
#include "tx.h"
#include "../../proto/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GATHER_MAX_US = 1000000, GATHER_MIN = 1024 };

static int check_options(struct perseas_options *o, struct ps_error *error)
{
	const uint32_t known = PERSEAS_CREATE | PERSEAS_TAKEOVER | PERSEAS_CHECK_OVERLAP |
	                       PERSEAS_CHECK_WRITES | PERSEAS_SALVAGE | PERSEAS_CANCEL |
	                       PERSEAS_TRACKED | PERSEAS_LEVEL_0;

	if (o->flags & ~known)
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "flags 0x%x has unknown bits; known are 0x%x", o->flags, known);
	if (o->recovery > PERSEAS_RECOVERY_ON_DEMAND)
		return ps_error_set(error, PERSEAS_EINVAL, "recovery %u is not known", o->recovery);
	if (o->recovery == PERSEAS_RECOVERY_ON_DEMAND && o->flags & PERSEAS_SALVAGE)
		return ps_error_set(
			error, PERSEAS_EINVAL,
			"PERSEAS_SALVAGE adopts no mirror, so memory could not be fetched "
			"from one later: open with "
			"PERSEAS_RECOVERY_READ_FIRST");
	if (o->log_size < PS_LOG_MIN || o->log_size > PS_LOG_MAX)
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "log_size %llu is not between 4096 bytes and 64 GiB",
		                    (unsigned long long)o->log_size);
	if (o->ring_size < 65536 || o->ring_size > PS_LOG_MAX)
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "ring_size %llu is not between 65536 bytes and 64 GiB",
		                    (unsigned long long)o->ring_size);
	if (o->mirror_timeout_ms && o->mirror_timeout_ms < PS_MIRROR_TIMEOUT_MIN_MS)
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "mirror_timeout_ms %u is below %d: a mirror would be taken for "
		                    "dead whenever its host is busy",
		                    o->mirror_timeout_ms, PS_MIRROR_TIMEOUT_MIN_MS);
	if (o->gather_us > GATHER_MAX_US)
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "gather_us %u is above %d: that is a second", o->gather_us,
		                    GATHER_MAX_US);
	if (o->gather_bytes < GATHER_MIN)
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "gather_bytes %u is below %d: too little for a transaction",
		                    o->gather_bytes, GATHER_MIN);
	o->log_size = (o->log_size + PS_PAGE - 1) & ~(uint64_t)(PS_PAGE - 1);
	o->ring_size = (o->ring_size + PS_PAGE - 1) & ~(uint64_t)(PS_PAGE - 1);
	return 0;
}

static int fill_options(struct perseas_options *o, const struct perseas_options *given,
                        struct ps_error *error)
{
	memset(o, 0, sizeof(*o));
	if (given) {
		if (given->size < sizeof(size_t) || given->size > sizeof(*o))
			return ps_error_set(error, PERSEAS_EINVAL,
			                    "options.size is %zu: begin with PERSEAS_OPTIONS_INIT",
			                    given->size);
		memcpy(o, given, given->size);
	}
	o->size = sizeof(*o);
	/* The env has its own copies of these file names. */
	o->tls_cert = o->tls_key = o->tls_ca = o->tls_crl = NULL;
	if (!o->log_size)
		o->log_size = (uint64_t)16 << 20;
	if (!o->ring_size)
		o->ring_size = (uint64_t)64 << 20;
	if (!o->connect_timeout_ms)
		o->connect_timeout_ms = 3000;
	if (!o->commit_timeout_ms)
		o->commit_timeout_ms = 5000;
	if (!o->open_timeout_ms)
		o->open_timeout_ms = 15000;
	if (!o->gather_bytes)
		o->gather_bytes = 64 << 10;
	if (!o->pace_ms)
		o->pace_ms = 100;
	else if (o->pace_ms == UINT32_MAX)
		o->pace_ms = 0;
	if (!o->mirror_timeout_ms)
		o->mirror_timeout_ms = 3000;
	else if (o->mirror_timeout_ms == UINT32_MAX)
		o->mirror_timeout_ms = 0;
	if (!o->spin_us)
		o->spin_us = 50;
	else if (o->spin_us == UINT32_MAX)
		o->spin_us = 0;
	return check_options(o, error);
}

bool ps_handle_has_address(const struct perseas *p, const char *address)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (!strcmp(p->mirrors[i].address.text, address))
			return true;
	return false;
}

void ps_handle_add_unlisted_mirror(struct perseas *p, const struct ps_address *address)
{
	struct ps_mirror *m = &p->mirrors[p->mirror_count];

	assert(!p->is_open);
	if (p->mirror_count == PS_MIRRORS_MAX || ps_handle_has_address(p, address->text))
		return;
	m->address = *address;
	m->is_from_roster = true;
	p->mirror_count++;
}

static void add_unlisted_mirrors(struct perseas *p, const char *list)
{
	struct ps_roster_places places;

	ps_inherited_unlisted_mirrors(p->env->told_by_run, p->store, list, &places);
	for (unsigned i = 0; i < places.count; i++)
		ps_handle_add_unlisted_mirror(p, &places.addresses[i]);
}

int ps_handle_set_mirrors(struct perseas *p, const char *list, const struct ps_address *addresses,
                          unsigned count, struct ps_error *error)
{
	int rc = 0;

	assert(!p->mirror_count && count <= PS_MIRRORS_MAX);
	for (unsigned i = 0; i < count && !rc && p->env->ops->has_route; i++)
		rc = p->env->ops->has_route(p->env, &addresses[i], error);
	if (rc)
		return rc;
	for (unsigned i = 0; i < count; i++)
		p->mirrors[i].address = addresses[i];
	p->mirror_count = count;
	add_unlisted_mirrors(p, list);
	return 0;
}

static int set_store_and_mirrors(struct perseas *p, const char *store, const char *mirrors,
                                 struct ps_error *error)
{
	const struct perseas_options *o = &p->options;
	const uint32_t limit_ms = o->connect_timeout_ms < o->open_timeout_ms ? o->connect_timeout_ms
	                                                                     : o->open_timeout_ms;
	struct ps_named_list *named = &p->opening.named_list;
	struct ps_address addresses[PS_MIRRORS_MAX];
	unsigned count = 0;
	int rc;

	if (!store || !ps_name_valid(store))
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "'%.80s' cannot name a store: use 1 to 63 of A-Z a-z 0-9 . _ "
		                    "-, not beginning with a dot",
		                    store ? store : "");
	snprintf(p->store, sizeof(p->store), "%s", store);
	named->list = mirrors ? mirrors : "";
	named->lookup_limit_ms = limit_ms;
	named->lookup_deadline = ps_now(p) + ps_ms(limit_ms);
	rc = ps_env_resolve_list_quickly(p->env, named->list, limit_ms, addresses, &count,
	                                 &named->lookup, error);
	return rc ? rc : ps_handle_set_mirrors(p, named->list, addresses, count, error);
}

/* Returns how long sent data may stay unacknowledged; 0: the sockets' default limit. Even a short
 * limit leaves the kernel time to resend a lost packet. */
static uint32_t unacknowledged_limit_ms_of(uint32_t mirror_timeout_ms)
{
	enum { LEAST_MS = 2000, MOST_MS = 10000 };

	if (mirror_timeout_ms == 0 || mirror_timeout_ms >= MOST_MS / 2)
		return 0;
	return mirror_timeout_ms < LEAST_MS / 2 ? LEAST_MS : 2 * mirror_timeout_ms;
}

struct perseas *ps_handle_new(struct ps_env *env, const char *store, const char *mirrors,
                              const struct perseas_options *options, struct ps_error *error)
{
	struct perseas *p = calloc(1, sizeof(*p));
	pthread_condattr_t attr;

	if (!p) {
		ps_error_set(error, PERSEAS_ENOMEM, "no memory for a handle");
		env->ops->free(env);
		return NULL;
	}
	p->env = env;
	p->commit.unwaited.flag_fd = -1;
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->commit.wait_line.changed, &attr);
	pthread_cond_init(&p->serialization.recheck, &attr);
	pthread_condattr_destroy(&attr);
	ps_serialization_init(p);
	ps_deadlock_add_handle(p);
	if (fill_options(&p->options, options, error) ||
	    set_store_and_mirrors(p, store, mirrors, error)) {
		ps_handle_free(p);
		return NULL;
	}
	if (ps_ring_init(&p->commit.ring, p->options.ring_size)) {
		ps_error_set(error, PERSEAS_ENOMEM, "no memory for a ring of %llu bytes",
		             (unsigned long long)p->options.ring_size);
		ps_handle_free(p);
		return NULL;
	}
	/* This is enough for a commit of one range, so that publishing cannot run out of memory. */
	p->commit.write_capacity = 64;
	p->commit.writes = calloc(p->commit.write_capacity, sizeof(*p->commit.writes));
	if (!p->commit.writes) {
		ps_error_set(error, PERSEAS_ENOMEM, "no memory for a chain of writes");
		ps_handle_free(p);
		return NULL;
	}
	if (ps_events_init(p)) {
		ps_error_set(error, PERSEAS_ENOMEM, "no memory for the queue of events");
		ps_handle_free(p);
		return NULL;
	}
	ps_tx_init_observing(p);
	env->unacknowledged_limit_ms = unacknowledged_limit_ms_of(p->options.mirror_timeout_ms);
	env->staging_memory = p->commit.ring.base;
	env->staging_bytes = p->commit.ring.size + PS_BOUNCE;
	return p;
}

/* Leaves the segment's memory to the application. */
static void retain_memory(struct ps_segment *segment)
{
	const uint64_t pages = (segment->size + PS_PAGE - 1) & ~(uint64_t)(PS_PAGE - 1);

	if (segment->base)
		ps_retained_add_range((uint64_t)(uintptr_t)segment->base, pages);
	segment->base = NULL;
}

static void free_segments(struct perseas *p)
{
	struct ps_layout *layout = p->layout;

	ps_segments_reserve_addresses(p, NULL, NULL, 0);
	for (unsigned i = 0; i < p->segment_count; i++) {
		if (p->segments[i].memory_outlives_handle)
			retain_memory(&p->segments[i]);
		ps_segment_unmap(&p->segments[i]);
	}
	while (layout) {
		struct ps_layout *older = layout->older;

		free(layout);
		layout = older;
	}
}

static void free_attachments(struct perseas *p)
{
	while (p->attachments) {
		struct ps_handle_attachment *attachment = p->attachments;

		p->attachments = attachment->next;
		attachment->free(attachment);
	}
}

void ps_handle_free(struct perseas *p)
{
	assert(!p->has_keeper && !p->commit.unwaited.has_collector_thread);
	ps_deadlock_remove_handle(p);
	free_segments(p);
	ps_shadow_end_tracking(p);
	if (p->opening.named_list.lookup)
		p->env->ops->list_drop(p->opening.named_list.lookup);
	/* Free the env before the ring: its devices may have registered the ring's memory. */
	p->env->ops->free(p->env);
	ps_wait_line_free(p);
	ps_locks_free(p);
	ps_tx_free_all(p);
	ps_gather_free(p);
	free_attachments(p);
	ps_ring_free(&p->commit.ring);
	ps_roster_free(&p->roster);
	ps_roster_free(&p->next_roster);
	if (p->upkeep.orders.answer_with_waiting_order)
		perseas__reply__free_unpacked(p->upkeep.orders.answer_with_waiting_order, NULL);
	if (p->upkeep.change.question.last_granting_answer)
		perseas__reply__free_unpacked(p->upkeep.change.question.last_granting_answer, NULL);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		assert(!p->mirrors[i].link && !p->mirrors[i].control);
		ps_unsent_free(&p->mirrors[i]);
		if (p->mirrors[i].probe.header)
			perseas__header__free_unpacked(p->mirrors[i].probe.header, NULL);
	}
	for (uint32_t i = 0; i < PS_SEGMENTS_MAX; i++)
		ps_change_map_drop(p, i);
	free(p->commit.writes);
	free(p->commit.events);
	free(p->report.text);
	pthread_cond_destroy(&p->commit.wait_line.changed);
	pthread_cond_destroy(&p->serialization.recheck);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
