/*
 * stat.c - answers the public calls that report on a handle: counters, latencies, mirrors and
 * segments. It changes nothing.
 */
#include "../core/gather.h"
#include "../core/mirror.h"
#include "../core/nowait.h"
#include "../core/pace.h"
#include "../core/grown_segment.h"
#include "exclusive.h"
#include "resync_progress.h"
#include "../core/cancel.h"

#include <stdio.h>
#include <string.h>

static void fill_latencies(const struct ps_latency *latency, struct perseas_stat *stat)
{
	stat->latency_p50_ns = ps_latency_percentile(latency, 50);
	stat->latency_p99_ns = ps_latency_percentile(latency, 99);
	stat->latency_p999_ns = ps_latency_percentile(latency, 99.9);
	stat->latency_max_ns = latency->max_ns;
}

int perseas_stat(perseas_t *p, struct perseas_stat *stat)
{
	PS_UNCANCELLED;
	struct ps_latency latency;

	if (!p || !stat)
		return ps_fail(p, PERSEAS_EINVAL,
		               "stat needs a handle and a place for the figures");
	pthread_mutex_lock(&p->lock);
	if (!p->is_salvage && !p->is_gate_raised)
		ps_mirrors_poll(p);
	*stat = p->commit.stat;
	stat->epoch = p->epoch;
	stat->seq = ps_last_committed_seq(p);
	stat->durable_seq = ps_update_durable_seq(p);
	stat->mirrors = p->mirror_count;
	stat->acks = p->acks;
	stat->in_doubt = p->commit.in_doubt_seq != 0;
	/* Percentiles are computed from a copy, without holding up commits. */
	latency = p->commit.latency;
	stat->open = 0;
	for (const struct perseas_tx *tx = p->commit.open_list; tx; tx = tx->next)
		stat->open++;
	stat->live = 0;
	for (unsigned i = 0; i < p->mirror_count; i++)
		stat->live += p->mirrors[i].state == PERSEAS_MIRROR_LIVE;
	pthread_mutex_unlock(&p->lock);
	fill_latencies(&latency, stat);
	ps_demand_fill_stat(p, stat);
	return 0;
}

static_assert((int)PERSEAS_LATENCY_BUCKETS == (int)PS_LATENCY_BUCKETS, "as perseas.h tells it");

int perseas_latency(perseas_t *p, struct perseas_latency *latency)
{
	PS_UNCANCELLED;
	if (!p || !latency)
		return ps_fail(p, PERSEAS_EINVAL,
		               "latency needs a handle and a place for the figures");
	pthread_mutex_lock(&p->lock);
	latency->timed = p->commit.stat.timed;
	latency->sum_ns = p->commit.latency.sum_ns;
	latency->max_ns = p->commit.latency.max_ns;
	memcpy(latency->counts, p->commit.latency.counts, sizeof(latency->counts));
	pthread_mutex_unlock(&p->lock);
	latency->count = 0;
	for (unsigned i = 0; i < PERSEAS_LATENCY_BUCKETS; i++)
		latency->count += latency->counts[i];
	return 0;
}

uint64_t perseas_latency_bound(unsigned bucket)
{
	return ps_latency_end(bucket);
}

uint64_t perseas_latency_percentile(const struct perseas_latency *latency, double percent)
{
	struct ps_latency counted = { .max_ns = latency ? latency->max_ns : 0 };

	if (latency)
		memcpy(counted.counts, latency->counts, sizeof(counted.counts));
	return ps_latency_percentile(&counted, percent);
}

static void fill_resync(struct perseas *p, const struct ps_mirror *m,
                        struct perseas_mirror_stat *stat)
{
	struct ps_resync_progress progress;

	ps_resync_progress(p, m, &progress);
	stat->resync_done = progress.sent_bytes;
	stat->resync_total = progress.total_bytes;
	stat->resync_rate = progress.bytes_per_s;
	stat->resync_ms = progress.left_ms;
	snprintf(stat->resync_whole, sizeof(stat->resync_whole), "%s", progress.whole_reason_name);
}

int perseas_mirror_stat(perseas_t *p, unsigned index, struct perseas_mirror_stat *stat)
{
	PS_UNCANCELLED;
	const struct ps_mirror *m;

	if (!p || !stat || index >= p->mirror_count)
		return ps_fail(p, PERSEAS_EINVAL, "there is no mirror %u", index);
	m = &p->mirrors[index];
	pthread_mutex_lock(&p->lock);
	memset(stat, 0, sizeof(*stat));
	snprintf(stat->address, sizeof(stat->address), "%s", m->address.text);
	snprintf(stat->fabric, sizeof(stat->fabric), "%s", m->fabric ? m->fabric->name : "");
	snprintf(stat->trouble, sizeof(stat->trouble), "%s", ps_mirror_trouble_text(p, m));
	stat->state = m->state;
	stat->copy_place = m->copy_place;
	stat->seq = ps_mirror_held_seq(m);
	fill_resync(p, m, stat);
	pthread_mutex_unlock(&p->lock);
	return 0;
}

/* Fills in a segment's description. Its size includes published parts that extend it. */
static void fill_segment_info(struct perseas *p, const struct ps_segment *segment,
                              struct perseas_segment_info *info)
{
	memset(info, 0, sizeof(*info));
	snprintf(info->name, sizeof(info->name), "%s", segment->name);
	info->size = ps_grown_size(p, segment);
	info->address = (void *)segment->address;
	info->mapped = segment->base != NULL;
	info->published = segment->born != 0;
}

/* Returns the segment at this index, not counting parts that extend another segment, or NULL. */
static struct ps_segment *segment_at(struct perseas *p, unsigned index)
{
	for (unsigned i = 0; i < p->segment_count; i++)
		if (!ps_grown_previous_part(p, &p->segments[i]) && !index--)
			return &p->segments[i];
	return NULL;
}

int perseas_segment_at(perseas_t *p, unsigned index, struct perseas_segment_info *info)
{
	PS_UNCANCELLED;
	const struct ps_segment *segment;
	int rc = 0;

	if (!p || !info)
		return ps_fail(p, PERSEAS_EINVAL,
		               "segment_at needs a handle and a place for the figures");
	ps_admin_enter(p);
	segment = segment_at(p, index);
	if (segment)
		fill_segment_info(p, segment, info);
	else
		rc = ps_fail(p, PERSEAS_ENOSEGMENT, "store '%s' has fewer than %u segments",
		             p->store, index + 1);
	ps_admin_leave(p);
	return rc;
}

int perseas_segment(perseas_t *p, const char *name, struct perseas_segment_info *info)
{
	PS_UNCANCELLED;
	const struct ps_segment *segment;
	int rc = 0;

	if (!p || !name || !info)
		return ps_fail(p, PERSEAS_EINVAL, "segment needs a handle, a name and a place");
	ps_admin_enter(p);
	segment = ps_segment_by_name(p, name);
	if (segment && !ps_grown_previous_part(p, segment))
		fill_segment_info(p, segment, info);
	else
		rc = ps_fail(p, PERSEAS_ENOSEGMENT, "store '%s' has no segment '%s'", p->store,
		             name);
	ps_admin_leave(p);
	return rc;
}
