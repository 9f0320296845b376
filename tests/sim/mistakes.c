/*
 * mistakes.c - the mistakes that are made in messages and in what the mirrors keep; those of
 * links, creators, owners and shapes are in mistakes_*.c. The simulator calls each at the place
 * that its declaration names. Without its mistake none changes anything.
 */
#include "mistakes.h"

#include "../../client/core/handle.h"
#include "../../server/store/store_private.h"
#include "mirror.h"
#include "misled.h"
#include "rosters.h"

const struct sim_mistake_about sim_mistakes[SIM_MISTAKES_END] = {
#define ABOUT(name, word, seeds, noted, text) \
	[SIM_MISTAKE_##name] = { #name, word, text, seeds, noted },
	SIM_MISTAKES(ABOUT)
#undef ABOUT
};

bool sim_mistake_is(const struct sim_world *w, enum sim_mistake mistake)
{
	return w->mistake == (int)mistake && !w->sound;
}

static bool is(const struct sim_world *w, enum sim_mistake mistake)
{
	return sim_mistake_is(w, mistake);
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

static void *allocate(size_t size)
{
	void *memory = malloc(size);

	if (!memory)
		abort();
	return memory;
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

/* Makes up a reply to a request of this kind. */
static void make_up(Perseas__Reply *reply, int asked)
{
	static const Perseas__ConfirmReply confirm = PERSEAS__CONFIRM_REPLY__INIT;
	static const Perseas__RosterReply roster = PERSEAS__ROSTER_REPLY__INIT;
	static const Perseas__FinishReply finish = PERSEAS__FINISH_REPLY__INIT;
	static const Perseas__JoiningReply joining = PERSEAS__JOINING_REPLY__INIT;
	static const Perseas__SettleReply settle = PERSEAS__SETTLE_REPLY__INIT;
	static const Perseas__AbandonReply abandon = PERSEAS__ABANDON_REPLY__INIT;

	reply->status = PERSEAS__STATUS__STATUS_OK;
	if (asked == PERSEAS__REQUEST__BODY_CONFIRM) {
		reply->body_case = PERSEAS__REPLY__BODY_CONFIRM;
		reply->confirm = memcpy(allocate(sizeof(confirm)), &confirm, sizeof(confirm));
	} else if (asked == PERSEAS__REQUEST__BODY_ROSTER) {
		reply->body_case = PERSEAS__REPLY__BODY_ROSTER;
		reply->roster = memcpy(allocate(sizeof(roster)), &roster, sizeof(roster));
	} else if (asked == PERSEAS__REQUEST__BODY_JOINING) {
		reply->body_case = PERSEAS__REPLY__BODY_JOINING;
		reply->joining = memcpy(allocate(sizeof(joining)), &joining, sizeof(joining));
	} else if (asked == PERSEAS__REQUEST__BODY_SETTLE) {
		reply->body_case = PERSEAS__REPLY__BODY_SETTLE;
		reply->settle = memcpy(allocate(sizeof(settle)), &settle, sizeof(settle));
	} else if (asked == PERSEAS__REQUEST__BODY_ABANDON) {
		reply->body_case = PERSEAS__REPLY__BODY_ABANDON;
		reply->abandon = memcpy(allocate(sizeof(abandon)), &abandon, sizeof(abandon));
	} else {
		reply->body_case = PERSEAS__REPLY__BODY_FINISH;
		reply->finish = memcpy(allocate(sizeof(finish)), &finish, sizeof(finish));
	}
}

/* Returns true if R mirrors other than `but` hold the claim of an owner that is not open yet. */
static bool others_hold(const struct sim_owner *o, const struct sim_mirror *but)
{
	const struct sim_world *w = o->world;
	unsigned holding = 0;

	for (unsigned i = 0; i < w->mirror_count; i++) {
		const struct store *store = store_of(w->mirrors[i]);

		holding += w->mirrors[i] != but && store && store->session &&
		           store->session->epoch == o->claims;
	}
	return holding >= w->members - w->acks + 1;
}

/* Returns true if the mistake answers this request with success, whatever arrives. */
static bool is_made_up(const struct ps_control *control)
{
	const struct sim_owner *o = control->owner;
	bool confirm = control->asked == PERSEAS__REQUEST__BODY_CONFIRM;
	bool roster = control->asked == PERSEAS__REQUEST__BODY_ROSTER;

	if (is(o->world, SIM_MISTAKE_UNCONFIRMED))
		return confirm && !o->opened;
	if (is(o->world, SIM_MISTAKE_OWN))
		return confirm && !o->opened && others_hold(o, control->mirror);
	if (is(o->world, SIM_MISTAKE_UNASKED))
		return (confirm || roster) && o->opened;
	return false;
}

/* Clears the epochs of rosters, as in mirrors before rosters had one. */
static void tell_versions(Perseas__Header *header)
{
	if (header && header->roster)
		header->roster->epoch = 0;
	if (header && header->next_roster)
		header->next_roster->epoch = 0;
}

static void tell_settled(Perseas__Header *header)
{
	if (!header || !header->next_roster)
		return;
	perseas__roster__free_unpacked(header->next_roster, NULL);
	header->next_roster = NULL;
}

/* Makes the claim's rosters look old. */
static void tell_nothing_new(Perseas__Header *header)
{
	tell_settled(header);
	if (header && header->roster)
		header->roster->epoch = header->roster->version = 0;
}

/* Makes the header look like that of an image that no roster lists. */
static void tell_unlisted(Perseas__Header *header)
{
	if (!header)
		return;
	tell_nothing_new(header);
	header->image_id.data[0]++;
}

void sim_mistake_reply(struct ps_control *control, Perseas__Reply *reply)
{
	struct sim_owner *o = control->owner;
	const struct sim_world *w = o->world;
	bool claim = reply->body_case == PERSEAS__REPLY__BODY_CLAIM;
	Perseas__Header *header = claim ? reply->claim->header : NULL;

	if (reply->body_case == PERSEAS__REPLY__BODY_STORE) {
		header = reply->store->status->header;
		sim_mistake_succeeded(control, header, reply->store->status->slot);
	}
	if (claim)
		sim_mistake_succeeded(control, header, reply->claim->slot);
	sim_misled_reply(control, reply);
	if (is(w, SIM_MISTAKE_FEW))
		tell_few(o, header);
	if (is(w, SIM_MISTAKE_UNEXAMINED) && claim)
		tell_first(o, reply->claim);
	if (is(w, SIM_MISTAKE_OLD_CLAIMS))
		tell_settled(header);
	if (header && is(w, SIM_MISTAKE_UNMARKED))
		header->marked = false;
	if (is(w, SIM_MISTAKE_VERSIONS))
		tell_versions(header);
	if (is(w, SIM_MISTAKE_LATE) && claim)
		tell_nothing_new(header);
	if (is(w, SIM_MISTAKE_FORKED) && claim && o->strays && !control->mirror->forked)
		tell_unlisted(header);
	if (claim && reply->claim->slot)
		sim_mistake_claimed(control, reply->claim);
	if (sim_mistake_settled(control, reply) ||
	    (reply->status != PERSEAS__STATUS__STATUS_OK && is_made_up(control)))
		make_up(reply, control->asked);
}

/* Returns true if another mirror has recorded the change, which the mistake takes for enough. */
static bool another_has_it(const struct sim_mirror *m)
{
	const struct sim_world *w = m->world;

	for (unsigned i = 0; i < m->index; i++)
		if (sim_roster_names(w->settled, w->mirrors[i]))
			return sim_roster_names(w->settled, m);
	return false;
}

bool sim_mistake_request(struct ps_control *control, const Perseas__Request *request)
{
	struct sim_owner *o = control->owner;
	bool joint = request->body_case == PERSEAS__REQUEST__BODY_ROSTER && request->roster->next;

	if (request->body_case == PERSEAS__REQUEST__BODY_CLAIM)
		o->claims = request->claim->epoch;
	if (sim_mistake_create_request(control, request))
		return true;
	if (request->body_case == PERSEAS__REQUEST__BODY_JOINING && !o->opened)
		return is(o->world, SIM_MISTAKE_UNJOINED);
	if (joint && is(o->world, SIM_MISTAKE_ALONE))
		return o->opened;
	if (joint && is(o->world, SIM_MISTAKE_FEW_SEE))
		return o->opened && another_has_it(control->mirror);
	return request->body_case == PERSEAS__REQUEST__BODY_FINISH && o->opened &&
	       is(o->world, SIM_MISTAKE_VOTES);
}

Perseas__Reply *sim_mistake_no_reply(struct ps_control *control)
{
	const struct sim_world *w = control->owner->world;
	bool kept = control->asked == PERSEAS__REQUEST__BODY_CONFIRM && is(w, SIM_MISTAKE_KEPT);
	Perseas__Reply *reply;

	if (!control->made_up && !kept && !is_made_up(control))
		return NULL;
	reply = allocate(sizeof(*reply));
	perseas__reply__init(reply);
	make_up(reply, control->asked);
	return reply;
}

bool sim_mistake_by_kind(const struct ps_control *control)
{
	return is(control->owner->world, SIM_MISTAKE_BY_KIND);
}

bool sim_mistake_matches(const struct ps_control *control, const Perseas__Reply *reply)
{
	return reply->status != PERSEAS__STATUS__STATUS_OK ||
	       (int)reply->body_case ==
	               control->asked + PERSEAS__REPLY__BODY_LIST - PERSEAS__REQUEST__BODY_LIST;
}

bool sim_mistake_sign(const struct ps_control *control)
{
	return is(control->owner->world, SIM_MISTAKE_SIGN) && control->due.due == 1 &&
	       (control->asked == PERSEAS__REQUEST__BODY_CONFIRM ||
	        control->asked == PERSEAS__REQUEST__BODY_ROSTER ||
	        control->asked == PERSEAS__REQUEST__BODY_FINISH);
}

/* Takes a sign of progress for the answer. The answer itself arrives later, and belongs to no
 * request. */
bool sim_mistake_signed(struct ps_control *control, Perseas__Reply *reply)
{
	if (reply->body_case != PERSEAS__REPLY__BODY_WORKING || !sim_mistake_sign(control))
		return false;
	free(reply->working);
	make_up(reply, control->asked);
	control->due.due = 0;
	control->due.done = 0;
	control->forged = true;
	return true;
}

/* --- the data path --- */

bool sim_mistake_early(const struct ps_link *link)
{
	return is(link->owner->world, SIM_MISTAKE_EARLY);
}

uint32_t sim_mistake_length(const struct ps_link *link, const struct ps_write *write)
{
	struct ps_record head;

	if (!is(link->owner->world, SIM_MISTAKE_UNTERMINATED) || write->region != PS_REGION_LOG ||
	    write->length < sizeof(head))
		return write->length;
	memcpy(&head, write->src, sizeof(head));
	return head.magic == PS_RECORD_MAGIC && head.length < write->length ? head.length
	                                                                    : write->length;
}

bool sim_mistake_order(struct ps_link *link, const struct ps_chain *chain,
                       void (*enqueue)(struct ps_link *link, const struct ps_write *write,
                                       bool last))
{
	const struct sim_world *w = link->owner->world;
	bool slot_first = is(w, SIM_MISTAKE_SLOT_FIRST);

	if ((!slot_first && !is(w, SIM_MISTAKE_UNDO_LAST)) || !chain->undo_write_count ||
	    !chain->slot.length)
		return false;
	if (slot_first)
		enqueue(link, &chain->slot, false);
	for (unsigned i = chain->undo_write_count; i < chain->write_count; i++)
		enqueue(link, &chain->writes[i], false);
	for (unsigned i = 0; i < chain->undo_write_count; i++)
		enqueue(link, &chain->writes[i], slot_first && i + 1 == chain->undo_write_count);
	if (!slot_first)
		enqueue(link, &chain->slot, true);
	return true;
}

bool sim_mistake_kept(const struct ps_link *link)
{
	const struct sim_owner *o = link->owner;

	if (o->opened || o->dead)
		return false;
	return is(o->world, SIM_MISTAKE_KEPT) ||
	       (is(o->world, SIM_MISTAKE_OWN) && others_hold(o, link->mirror));
}

bool sim_mistake_unadopted(const struct ps_link *link, const struct ps_chain *chain)
{
	return is(link->owner->world, SIM_MISTAKE_UNADOPTED) && !chain->write_count &&
	       chain->slot.length;
}

/* Returns true if the mirror is being copied whole over this link. */
static bool is_copied_to(const struct ps_link *link)
{
	const struct perseas *p = link->owner->handle;

	return p && p->upkeep.resync.target && p->upkeep.resync.target->link == link;
}

bool sim_mistake_chunk(struct ps_link *link, const struct ps_chain *chain)
{
	struct perseas *p = link->owner->handle;
	const struct ps_segment *segment;

	if (sim_mistake_unsent(link, chain))
		return true;
	if (!is_copied_to(link) || !chain->write_count)
		return false;
	if (chain->undo_write_count)
		return is(link->owner->world, SIM_MISTAKE_BETWEEN) &&
		       p->upkeep.resync.has_posted_first_chunk &&
		       p->upkeep.resync.sent_bytes < p->upkeep.resync.total_bytes;
	segment = ps_segment_by_id(p, chain->writes[0].region - PS_REGION_SEGMENT);
	if (is(link->owner->world, SIM_MISTAKE_UNCOMMITTED) && segment && segment->base)
		memcpy((void *)(uintptr_t)chain->writes[0].src,
		       segment->base + chain->writes[0].offset, chain->writes[0].length);
	return is(link->owner->world, SIM_MISTAKE_UNFINISHED);
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
	if (store->header->state == STATE(CONSISTENT) && !session->is_rebuilding)
		store_joining(session, &joining, &why);
	for (unsigned i = PS_REGION_SEGMENT; i < PS_REGIONS_MAX; i++)
		if (store->image.regions[i].base)
			memset(store->image.regions[i].base, 0, store->image.regions[i].size);
}

/* Makes the record at the slot's `next`, of whatever transaction, look like the unfinished one. */
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

/* Hides the record of the unfinished transaction. */
static void hide_record(struct store *store)
{
	struct ps_record *record;
	struct ps_image view;
	struct ps_slot slot;

	if (store->header->state != STATE(CONSISTENT) || image_slot(&store->image, &slot) < 0)
		return;
	image_view(&store->image, &view);
	record = (struct ps_record *)(view.log + PS_RING_OFFSET + slot.next % view.ring_size);
	if (record->epoch == slot.epoch && record->seq == slot.seq + 1)
		record->epoch--;
}

void sim_mistake_before(struct ps_control *control, const struct sim_message *message)
{
	struct sim_mirror *m = control->mirror;
	struct session *session = &control->server.session;
	struct store *store = store_of(m);

	sim_mistake_replace(control, message);
	sim_mistake_before_end(control, message);
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
	if (is(m->world, SIM_MISTAKE_NOT_UNDONE) && store && store->header &&
	    message->a == PERSEAS__REQUEST__BODY_CLAIM)
		hide_record(store);
}

/* Returns how many mirrors are claimed with this epoch, and sets *highest to the one with the
 * highest slot. */
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

/* Adopts the highest of the first R claimed mirrors; mirrors that are claimed later may be
 * higher. */
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

	sim_mistake_after_end(control, message);
	sim_mistake_after_growth(control, message);
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

void sim_mistake_begin(struct sim_mirror *m)
{
	if (is(m->world, SIM_MISTAKE_NO_ROOM))
		memory_heap_need_room(m->memory);
	if (is(m->world, SIM_MISTAKE_OTHER_BOOT))
		memory_heap_trust_boots(m->memory);
	if (is(m->world, SIM_MISTAKE_PUT_BACK))
		memory_heap_trust_copies(m->memory);
}

void sim_mistake_jump(struct sim_mirror *m, uint64_t epoch)
{
	struct store *store = store_of(m);

	if (!is(m->world, SIM_MISTAKE_JUMP) || !store->header->promised_owner.len)
		return;
	store->header->promised_epoch = epoch;
	if (store->session)
		store_session_ended(store->session);
}

void sim_mistake_remember(struct sim_mirror *m)
{
	if (!is(m->world, SIM_MISTAKE_FORGETS) || !m->before)
		return;
	/* Clients may still map the lost memory, so it stays until the schedule ends. */
	m->gone[m->gone_count++] = m->memory;
	m->memory = m->before;
	m->before = NULL;
	m->granted = 0;
}
