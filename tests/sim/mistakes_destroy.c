/*
 * mistakes_destroy.c - faults in how segments end. mistakes.c calls these; without its mistake none
 * changes anything.
 */
#include "mistakes.h"

#include "../../client/core/handle.h"
#include "../../client/core/segment.h"
#include "../../proto/control/segment_table.h"
#include "../../server/store/store_private.h"
#include "mirror.h"
#include "process.h"

bool sim_mistake_destroys(const struct sim_world *w)
{
	return w->mistake >= SIM_MISTAKE_DEATH_KEPT && w->mistake <= SIM_MISTAKE_ANY_PUBLISH;
}

static struct store *store_of(const struct sim_mirror *m)
{
	struct store *store = m->stores ? store_find(m->stores, SIM_STORE) : NULL;

	return store && store->header ? store : NULL;
}

/* The deaths that a claim found, by id, while it is handled. */
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

/* Takes the announcement of a destroy for the destroy. */
static void bury(struct session *session)
{
	Perseas__Header *header = session_header(session);

	for (size_t i = header->n_segments; i-- > 0;)
		if (header->segments[i]->died)
			header_remove_segment(header, i);
	image_prune(session->store, session_image(session), header);
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

/* --- how segments are compared --- */

/* Compares id and size, and with `births` the birth, but neither name nor address. */
static bool is_like(const struct perseas *p, const Perseas__Segment *theirs, bool births)
{
	for (unsigned i = 0; i < p->segment_count; i++) {
		const struct ps_segment *ours = &p->segments[i];

		if (ours->born && ours->id == theirs->id)
			return ours->size == theirs->size &&
			       (!births || ours->born == theirs->born);
	}
	return false;
}

/* Returns true if the segment equals one of the owner's in all but its random id. */
static bool is_of_any_publish(const struct perseas *p, const Perseas__Segment *theirs)
{
	struct ps_segment_key other = ps_segment_entry_key(theirs);

	for (unsigned i = 0; i < p->segment_count; i++) {
		const struct ps_segment_key ours = ps_segment_key(&p->segments[i]);

		memcpy(other.random_id, ours.random_id, PS_ID_SIZE);
		if (ours.born && ps_segment_key_equal(&ours, &other))
			return true;
	}
	return false;
}

static bool is_taken_for_ours(const struct perseas *p, const Perseas__Segment *theirs)
{
	const struct sim_world *w = ((const struct sim_owner *)p->env)->world;

	if (sim_mistake_is(w, SIM_MISTAKE_ANY_PUBLISH))
		return is_of_any_publish(p, theirs);
	return is_like(p, theirs, sim_mistake_is(w, SIM_MISTAKE_ANY_NAME));
}

bool __real_ps_segments_match_header(const struct perseas *p, const Perseas__Header *header);
bool __wrap_ps_segments_match_header(const struct perseas *p, const Perseas__Header *header);

bool __wrap_ps_segments_match_header(const struct perseas *p, const Perseas__Header *header)
{
	const struct sim_world *w = ((const struct sim_owner *)p->env)->world;
	size_t published = 0;

	if (!sim_mistake_is(w, SIM_MISTAKE_SAME_ID) && !sim_mistake_is(w, SIM_MISTAKE_ANY_NAME) &&
	    !sim_mistake_is(w, SIM_MISTAKE_ANY_PUBLISH))
		return __real_ps_segments_match_header(p, header);
	for (unsigned i = 0; i < p->segment_count; i++)
		published += p->segments[i].born != 0;
	for (size_t i = 0; i < header->n_segments; i++)
		if (!is_taken_for_ours(p, header->segments[i]))
			return false;
	return published == header->n_segments;
}
