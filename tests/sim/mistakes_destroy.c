/*
 * mistakes_destroy.c - faults in how segments end. mistakes.c calls these; without its mistake none
 * changes anything.
 */
#include "mistakes.h"

#include "../../client/core/handle.h"
#include "../../server/store/store_private.h"
#include "mirror.h"

bool sim_mistake_destroys(const struct sim_world *w)
{
	return w->mistake >= SIM_MISTAKE_DEATH_KEPT && w->mistake <= SIM_MISTAKE_SAME_ID;
}

static struct store *store_of(const struct sim_mirror *m)
{
	struct store *store = m->stores ? store_find(m->stores, SIM_STORE) : NULL;

	return store && store->header ? store : NULL;
}

/* What a claim finds of deaths is kept by id while it is handled. */
static struct death {
	uint64_t born, died, epoch;
} deaths[PS_SEGMENTS_MAX];

static bool is_claim(const struct ps_control *control, const struct sim_message *message)
{
	return sim_mistake_is(control->mirror->world, SIM_MISTAKE_DEATH_KEPT) &&
	       message->a == PERSEAS__REQUEST__BODY_CLAIM && store_of(control->mirror);
}

void sim_mistake_before_end(struct ps_control *control, const struct sim_message *message)
{
	const Perseas__Header *header;

	if (!is_claim(control, message))
		return;
	header = store_of(control->mirror)->header;
	for (uint32_t id = 0; id < PS_SEGMENTS_MAX; id++)
		deaths[id] = (struct death){ 0 };
	for (size_t i = 0; i < header->n_segments; i++)
		deaths[header->segments[i]->id] = (struct death){ header->segments[i]->born,
			                                          header->segments[i]->died,
			                                          header->segments[i]->died_epoch };
}

static void keep_deaths(Perseas__Header *header)
{
	for (size_t i = 0; i < header->n_segments; i++) {
		const struct death *death = &deaths[header->segments[i]->id];

		if (death->born != header->segments[i]->born)
			continue;
		header->segments[i]->died = death->died;
		header->segments[i]->died_epoch = death->epoch;
	}
}

/* As if the announcement were the end. */
static void bury(struct session *session)
{
	Perseas__Header *header = header_of(session);

	for (size_t i = header->n_segments; i-- > 0;)
		if (header->segments[i]->died)
			header_remove_segment(header, i);
	image_prune(session->store, image_of(session), header);
}

void sim_mistake_after_end(struct ps_control *control, const struct sim_message *message)
{
	struct session *session = &control->server.session;

	if (is_claim(control, message))
		keep_deaths(store_of(control->mirror)->header);
	if (sim_mistake_is(control->mirror->world, SIM_MISTAKE_BURIED) && session->store &&
	    message->a == PERSEAS__REQUEST__BODY_DESTROY)
		bury(session);
}

/* A mirror that was away while a segment ended, and another one got its id. */
void sim_mistake_same_id(struct sim_owner *o, Perseas__Header *header)
{
	if (!sim_mistake_is(o->world, SIM_MISTAKE_SAME_ID) || !o->handle || !header)
		return;
	for (size_t i = 0; i < header->n_segments; i++) {
		const struct ps_segment *ours = ps_segment_by_id(o->handle,
		                                                 header->segments[i]->id);

		if (ours && ours->size == header->segments[i]->size)
			header->segments[i]->born = ours->born;
	}
}
