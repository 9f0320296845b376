#include "mistakes.h"

#include "../../server/store_private.h"
#include "mirror.h"
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

const struct sim_mistake_about sim_mistakes[SIM_MISTAKES_END] = {
#define ABOUT(name, word, seeds, text) [SIM_MISTAKE_##name] = { word, text, seeds },
	SIM_MISTAKES(ABOUT)
#undef ABOUT
};

static bool is(const struct sim_world *w, enum sim_mistake mistake)
{
	return w->mistake == (int)mistake;
}

/* Owners take over from each other all the time, cut off from some of the mirrors. */
static void be_busy(struct sim_schedule *schedule)
{
	schedule->takeover = 100;
	schedule->gap = 10 * SIM_MS;
	schedule->think = SIM_MS;
	schedule->faults = 60;
	schedule->splits = 40;
}

void sim_mistake_shape(struct sim_world *w, unsigned *mirrors)
{
	struct sim_schedule *schedule = w->schedule;

	/* That a commit is late is no proof. */
	schedule->calm = schedule->calm && !w->mistake;
	switch ((enum sim_mistake)w->mistake) {
	case SIM_MISTAKE_FEW:
		*mirrors = 3;
		w->acks = 1;
		break;
	case SIM_MISTAKE_FORGETS:
		*mirrors = 3;
		w->acks = 2;
		be_busy(schedule);
		schedule->losses = 6;
		break;
	case SIM_MISTAKE_CHANGED:
	case SIM_MISTAKE_UNCONFIRMED:
		*mirrors = w->acks = 2;
		be_busy(schedule);
		break;
	case SIM_MISTAKE_KEPT:
		be_busy(schedule);
		break;
	case SIM_MISTAKE_BLIND:
		*mirrors = w->acks = 1;
		schedule->local = 100;
		break;
	default:
		break;
	}
}

static struct store *store_of(const struct sim_mirror *m)
{
	return m->stores ? store_find(m->stores, SIM_STORE) : NULL;
}

/* --- replies --- */

/* Every other owner believes W to be larger, and so R to be less. */
static void tell_few(const struct sim_owner *o, Perseas__Header *header)
{
	if (o->index % 2 && header && header->roster)
		header->roster->acks = 2;
}

/* The first image that answers a claim is taken for all of them. */
static void tell_first(struct sim_owner *o, Perseas__ClaimReply *claim)
{
	struct sim_examined *first = &o->examined;

	if (!claim->slot || !claim->header)
		return;
	if (first->epoch != claim->header->promised_epoch) {
		*first = (struct sim_examined){ claim->header->promised_epoch, claim->slot->epoch,
			                        claim->slot->seq, claim->slot->next,
			                        claim->slot->last };
		return;
	}
	claim->slot->epoch = first->slot_epoch;
	claim->slot->seq = first->seq;
	claim->slot->next = first->next;
	claim->slot->last = first->last;
}

static Perseas__ConfirmReply *confirmed(void)
{
	Perseas__ConfirmReply *confirm = malloc(sizeof(*confirm));

	if (!confirm)
		abort();
	perseas__confirm_reply__init(confirm);
	return confirm;
}

void sim_mistake_reply(struct ps_control *control, Perseas__Reply *reply)
{
	struct sim_owner *o = control->owner;
	const struct sim_world *w = o->world;

	if (is(w, SIM_MISTAKE_FEW) && reply->body_case == PERSEAS__REPLY__BODY_STORE)
		tell_few(o, reply->store->status->header);
	if (is(w, SIM_MISTAKE_FEW) && reply->body_case == PERSEAS__REPLY__BODY_CLAIM)
		tell_few(o, reply->claim->header);
	if (is(w, SIM_MISTAKE_UNEXAMINED) && reply->body_case == PERSEAS__REPLY__BODY_CLAIM)
		tell_first(o, reply->claim);
	if (is(w, SIM_MISTAKE_UNCONFIRMED) && control->asked == PERSEAS__REQUEST__BODY_CONFIRM &&
	    reply->status != PERSEAS__STATUS__STATUS_OK) {
		reply->status = PERSEAS__STATUS__STATUS_OK;
		reply->body_case = PERSEAS__REPLY__BODY_CONFIRM;
		reply->confirm = confirmed();
	}
}

Perseas__Reply *sim_mistake_no_reply(struct ps_control *control)
{
	const struct sim_world *w = control->owner->world;
	Perseas__Reply *reply;

	if (control->asked != PERSEAS__REQUEST__BODY_CONFIRM ||
	    (!is(w, SIM_MISTAKE_UNCONFIRMED) && !is(w, SIM_MISTAKE_KEPT)))
		return NULL;
	reply = malloc(sizeof(*reply));
	if (!reply)
		abort();
	perseas__reply__init(reply);
	reply->body_case = PERSEAS__REPLY__BODY_CONFIRM;
	reply->confirm = confirmed();
	return reply;
}

/* --- the data path --- */

bool sim_mistake_early(const struct ps_link *link)
{
	return is(link->owner->world, SIM_MISTAKE_EARLY);
}

bool sim_mistake_order(struct ps_link *link, const struct ps_chain *chain,
                       void (*enqueue)(struct ps_link *link, const struct ps_write *write,
                                       bool last))
{
	const struct sim_world *w = link->owner->world;
	bool slot_first = is(w, SIM_MISTAKE_SLOT_FIRST);

	if ((!slot_first && !is(w, SIM_MISTAKE_UNDO_LAST)) || !chain->undo || !chain->slot.length)
		return false;
	if (slot_first)
		enqueue(link, &chain->slot, false);
	for (unsigned i = chain->undo; i < chain->count; i++)
		enqueue(link, &chain->writes[i], false);
	for (unsigned i = 0; i < chain->undo; i++)
		enqueue(link, &chain->writes[i], slot_first && i + 1 == chain->undo);
	if (!slot_first)
		enqueue(link, &chain->slot, true);
	return true;
}

bool sim_mistake_kept(const struct ps_link *link)
{
	return is(link->owner->world, SIM_MISTAKE_KEPT) && !link->owner->opened &&
	       !link->owner->dead;
}

bool sim_mistake_unadopted(const struct ps_link *link, const struct ps_chain *chain)
{
	return is(link->owner->world, SIM_MISTAKE_UNADOPTED) && !chain->count && chain->slot.length;
}

bool sim_mistake_blind(const struct ps_link *link)
{
	return is(link->owner->world, SIM_MISTAKE_BLIND);
}

bool sim_mistake_lands(const struct ps_link *link)
{
	return is(link->owner->world, SIM_MISTAKE_LANDS);
}

void sim_mistake_stray(struct ps_link *link, struct sim_message *message)
{
	const uint8_t *at = message->bytes, *end = at + message->len;
	struct store *store = store_of(link->mirror);

	while (sim_mistake_lands(link) && store && at < end) {
		struct sim_extent part;
		struct piece *piece;

		memcpy(&part, at, sizeof(part));
		at += sizeof(part);
		piece = &store->image.regions[part.region];
		if (piece->base && part.offset + part.length <= piece->size) {
			sim_oracle_wrote(link->mirror, link->epoch, piece->base + part.offset);
			memcpy(piece->base + part.offset, at, part.length);
		}
		at += part.length;
	}
	sim_oracle_look(link->mirror);
}

/* --- the mirror --- */

static void overwrite(struct store *store, struct session *session)
{
	Perseas__JoiningRequest joining = PERSEAS__JOINING_REQUEST__INIT;
	struct why why;

	joining.harmless = true;
	if (store->header->state == STATE(CONSISTENT) && !session->beside)
		store_joining(session, &joining, &why);
	for (unsigned i = PS_REGION_SEGMENT; i < PS_REGIONS_MAX; i++)
		if (store->image.regions[i].base)
			memset(store->image.regions[i].base, 0, store->image.regions[i].size);
}

/* Whatever record lies where the unfinished one would begin is made to look like it. */
static void renew_record(struct store *store)
{
	struct ps_record *record;
	struct ps_image view;
	struct ps_slot slot;
	uint64_t offset;

	if (store->header->state != STATE(CONSISTENT) || image_slot(&store->image, &slot) < 0)
		return;
	image_view(&store->image, &view);
	offset = slot.next % view.ring_size;
	record = (struct ps_record *)(view.log + PS_RING_OFFSET + offset);
	if (ps_record_check(record, view.ring_size - offset) == PS_RECORD_OK)
		ps_record_seal(record, slot.epoch, slot.seq + 1, slot.next, slot.last,
		               record->time);
}

void sim_mistake_before(struct ps_control *control, const struct sim_message *message)
{
	struct sim_mirror *m = control->mirror;
	struct session *session = &control->server.session;
	struct store *store = store_of(m);

	if (is(m->world, SIM_MISTAKE_IN_PLACE) && session->store &&
	    message->a == PERSEAS__REQUEST__BODY_REBUILD)
		overwrite(store, session);
	if (is(m->world, SIM_MISTAKE_FORGETS) && store && store->session &&
	    message->a == PERSEAS__REQUEST__BODY_CLAIM && m->gone_count < SIM_GONE) {
		memory_heap_free(m->before);
		m->before = memory_heap_copy(m->memory);
	}
	if (is(m->world, SIM_MISTAKE_STALE) && store && store->header &&
	    message->a == PERSEAS__REQUEST__BODY_CLAIM)
		renew_record(store);
}

/* How many mirrors are claimed with this epoch, and which of them stands highest. */
static unsigned count_claimed(struct sim_world *w, uint64_t epoch, struct store **highest)
{
	struct ps_slot best = { 0 }, slot;
	unsigned claimed = 0;

	for (unsigned i = 0; i < w->mirror_count; i++) {
		struct store *store = store_of(w->mirrors[i]);

		if (!store || !store->session || store->session->epoch != epoch ||
		    store->header->state != STATE(CONSISTENT) ||
		    image_slot(&store->image, &slot) < 0)
			continue;
		if (slot.epoch == epoch)
			return 0;
		claimed++;
		if (claimed == 1 || ps_slot_later(&slot, &best)) {
			best = slot;
			*highest = store;
		}
	}
	return claimed;
}

/* With R of them claimed the first is adopted; others that are claimed later may stand higher. */
static void adopt_soon(struct sim_world *w, uint64_t epoch)
{
	struct store *store = NULL;
	struct ps_slot slot, *next;
	int index;

	if (count_claimed(w, epoch, &store) != w->mirror_count - w->acks + 1)
		return;
	index = image_slot(&store->image, &slot);
	next = (void *)(store->image.regions[PS_REGION_LOG].base + ps_slot_offset(!index));
	ps_slot_encode(next, epoch, slot.seq, slot.next, slot.last);
}

void sim_mistake_after(struct ps_control *control, const struct sim_message *message)
{
	struct sim_mirror *m = control->mirror;
	struct store *store = store_of(m);

	if (is(m->world, SIM_MISTAKE_WHOLE) && control->server.session.store &&
	    message->a == PERSEAS__REQUEST__BODY_JOINING)
		store->header->state = STATE(CONSISTENT);
	if (is(m->world, SIM_MISTAKE_CHANGED) && control->server.session.store &&
	    message->a == PERSEAS__REQUEST__BODY_CLAIM) {
		sim_oracle_look(m);
		adopt_soon(m->world, message->b);
		for (unsigned i = 0; i < m->world->mirror_count; i++)
			sim_oracle_look(m->world->mirrors[i]);
	}
}

void sim_mistake_remember(struct sim_mirror *m)
{
	if (!is(m->world, SIM_MISTAKE_FORGETS) || !m->before)
		return;
	/* What was given of the memory that is lost stays open until the schedule ends. */
	m->gone[m->gone_count++] = m->memory;
	m->memory = m->before;
	m->before = NULL;
	m->granted = 0;
}
