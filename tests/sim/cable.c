/*
 * cable.c - the fabric of cable.h: a stream whose links the cable breaks. What is under way then is
 * lost, and both ends learn of it in their own time.
 */
#include "cable.h"

#include "mirror.h"
#include "mistakes.h"
#include "schedule.h"

static struct sim_cable *cable_of(const struct sim_mirror *m)
{
	return &m->world->schedule->cables[m->index];
}

/* Breaks the link with a chain or read, as often as its cable loses them. */
static void wear(struct ps_link *link)
{
	if (sim_chance(link->owner->world, cable_of(link->mirror)->loss))
		sim_link_reset(link);
}

static struct ps_link *direct_attach_begin(struct ps_env *env, const struct ps_address *address,
                                           const Perseas__Grant *grant, const int *fds,
                                           uint64_t epoch, struct ps_error *error)
{
	struct ps_link *link = sim_fabric_stream.attach_begin(env, address, grant, fds, epoch,
	                                                      error);

	link->direct = true;
	if (cable_of(link->mirror)->out)
		sim_pipe_break(&link->out);
	return link;
}

/* Fails where no cable answers, so that another fabric may be tried. */
static int direct_attach_step(struct ps_link *link, uint64_t until_ns, struct ps_error *error)
{
	int rc = sim_fabric_stream.attach_step(link, until_ns, error);

	if (rc < 0 && link->asks && link->greeted && !link->broken)
		return sim_mistake_is(link->owner->world, SIM_MISTAKE_STAYS) ? rc : 1;
	if (rc < 0 && (!link->greeted || link->broken))
		error->code = PERSEAS_ERDMA;
	return rc < 0 ? error->code : rc;
}

static struct ps_link *direct_attach(struct ps_env *env, const struct ps_address *address,
                                     const Perseas__Grant *grant, const int *fds, uint64_t epoch,
                                     uint64_t until_ns, struct ps_error *error)
{
	struct ps_link *link = direct_attach_begin(env, address, grant, fds, epoch, error);
	struct sim_wait wait = { .until = until_ns, .sleeper = -1, .flag = &link->greeted };
	int rc;

	while ((rc = direct_attach_step(link, until_ns, error)) == 0)
		sim_task_block(link->owner, &wait);
	if (rc > 0)
		return link;
	sim_fabric_stream.detach(link);
	return NULL;
}

/* Answers an unknown hello, too. */
static struct ps_link *direct_leads_begin(struct ps_env *env, const struct ps_address *address,
                                          const Perseas__Grant *grant, struct ps_error *error)
{
	uint8_t unknown[PS_ID_SIZE] = { 0 };
	Perseas__Grant asked = *grant;
	struct ps_link *link;

	asked.token.data = unknown;
	link = direct_attach_begin(env, address, &asked, NULL, 0, error);
	link->asks = true;
	return link;
}

static int direct_post(struct ps_link *link, const struct ps_chain *chain)
{
	int rc = sim_fabric_stream.post(link, chain);

	wear(link);
	return rc;
}

static int direct_read(struct ps_link *link, uint32_t region, uint64_t offset, void *bytes,
                       uint64_t length, uint64_t patience_ns)
{
	wear(link);
	return sim_fabric_stream.read(link, region, offset, bytes, length, patience_ns);
}

const struct ps_fabric *sim_cable_fabric(struct sim_mirror *m)
{
	static struct ps_fabric direct;

	if (!m->world->schedule->cabled)
		return NULL;
	direct = sim_fabric_stream;
	direct.name = "direct";
	direct.attach = direct_attach;
	direct.attach_begin = direct_attach_begin;
	direct.attach_step = direct_attach_step;
	direct.begin_route_test = direct_leads_begin;
	direct.post = direct_post;
	direct.read = direct_read;
	return &direct;
}

void sim_cable_grant(const struct sim_mirror *m, Perseas__Grant *grant)
{
	if (!m->world->schedule->cabled)
		return;
	grant->rdma_port = 1;
	for (size_t i = 0; i < grant->n_regions; i++)
		grant->regions[i]->key = 1;
}

void sim_cable_out(struct sim_mirror *m)
{
	struct sim_world *w = m->world;

	cable_of(m)->out = true;
	for (unsigned i = 0; i < w->owner_count; i++)
		for (struct ps_link *link = w->owners[i]->links; link; link = link->next)
			if (link->mirror == m && link->direct)
				sim_link_reset(link);
}

void sim_cable_lose(struct sim_mirror *m, unsigned percent)
{
	*cable_of(m) = (struct sim_cable){ .loss = percent };
}
