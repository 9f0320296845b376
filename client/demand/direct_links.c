/*
 * direct_links.c - direct reads of mirrors on this host, through the links that commits use. The
 * keeper finds such a link. A thread that is about to end a link waits here until no lane reads
 * through it, which takes as long as copying memory does (direct_reader.h).
 */
#include "demand.h"

#include "../core/env.h"
#include "../core/mirror.h"

static bool is_link_readable(const struct perseas *p, const struct ps_mirror *m)
{
	return m->is_active && m->state == PERSEAS_MIRROR_LIVE && !p->is_renewing &&
	       m->fabric->peek;
}

void ps_direct_link_update(struct perseas *p, unsigned i)
{
	const struct ps_mirror *m = &p->mirrors[i];
	struct ps_demand *d = p->demand;
	struct ps_source *source = &d->sources[i];
	bool can;

	if (i >= p->mirror_count || !d->ops->start_direct_reader)
		return;
	pthread_mutex_lock(&p->lock);
	can = !source->direct_link.link && is_link_readable(p, m);
	pthread_mutex_unlock(&p->lock);
	if (!can || (!d->has_direct_reader[i] && d->ops->start_direct_reader(d->pager, i)))
		return;
	d->has_direct_reader[i] = true;
	pthread_mutex_lock(&p->lock);
	pthread_mutex_lock(&d->lock);
	if (is_link_readable(p, m))
		source->direct_link = (struct ps_direct_link){ m->fabric, m->link };
	pthread_mutex_unlock(&d->lock);
	pthread_mutex_unlock(&p->lock);
}

void ps_demand_drop_link(struct perseas *p, const struct ps_mirror *m)
{
	struct ps_demand *d = p->demand;
	struct ps_source *source;

	if (!d)
		return;
	source = &d->sources[m - p->mirrors];
	pthread_mutex_lock(&d->lock);
	source->direct_link = (struct ps_direct_link){ NULL, NULL };
	source->is_link_refused = false;
	while (source->reading_lanes[PS_FAULT_LANE] || source->reading_lanes[PS_BULK_LANE])
		d->env->ops->wait(d->env, &d->changed, &d->lock, PS_NEVER);
	pthread_mutex_unlock(&d->lock);
}
