/*
 * mistakes_owner.c - faults made in the handle of an owner that is open, in what it is told when it
 * takes a mirror up again, and in what it sends from its ring.
 */
#include "mistakes.h"

#include "../../client/core/serialization.h"
#include "../../client/core/mirror.h"
#include "../../client/core/quorum.h"
#include "mirror.h"

/* --- decisions that are made while time passes --- */

/* Gives the seq of the transaction in doubt to the next one, as if it had never been sent. */
static void redo(struct perseas *p)
{
	const struct ps_ring_entry *entry = ps_ring_find_entry(&p->commit.ring, p->commit.seq);
	const struct ps_record *record = entry ? (const void *)entry->writes[0].src : NULL;

	if (!p->commit.in_doubt_seq || p->commit.in_doubt_seq != p->commit.seq || !record ||
	    p->next_roster)
		return;
	p->commit.next_position = record->position;
	p->commit.last_position = record->previous;
	p->commit.lap_position = p->commit.next_position - p->commit.next_position % p->log_size;
	p->commit.ring.append_position = p->commit.ring.positions[p->commit.seq % PS_RING_ENTRIES];
	p->commit.ring.last_seq--;
	p->commit.seq--;
	p->commit.in_doubt_seq = 0;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		m->posted_seq = m->posted_seq > p->commit.seq ? p->commit.seq : m->posted_seq;
		m->acked_seq = m->acked_seq > p->commit.seq ? p->commit.seq : m->acked_seq;
	}
}

void sim_mistake_poke(struct sim_owner *o)
{
	struct perseas *p = o->handle;

	if (!p)
		return;
	sim_mistake_worn(o);
	sim_mistake_confirmed(o);
	if (p->quorum_count == 2 && sim_mistake_is(o->world, SIM_MISTAKE_OLD_ACKS))
		p->quorum_count = 1;
	if (sim_mistake_is(o->world, SIM_MISTAKE_REDONE))
		redo(p);
	if (sim_mistake_is(o->world, SIM_MISTAKE_UNAWAITED))
		p->upkeep.resync.newest_seq_in_last_chunk = 0;
	if (p->upkeep.change.stage == PS_CHANGE_JOINT &&
	    sim_mistake_is(o->world, SIM_MISTAKE_BEHIND))
		p->upkeep.change.seq_next_roster_must_hold = 0;
}

/* --- a mirror that is claimed again --- */

static struct ps_mirror *mirror_of(struct perseas *p, const struct sim_mirror *mirror)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (!strcmp(p->mirrors[i].address.text, mirror->address))
			return &p->mirrors[i];
	return NULL;
}

/* Tells the seq at which this owner knew the mirror, or the beginning of its ring. */
static void tell_seq(struct sim_owner *o, const struct ps_mirror *m, Perseas__Slot *slot)
{
	const struct ps_ring *ring = &o->handle->commit.ring;
	const struct ps_ring_entry *next;

	if (sim_mistake_is(o->world, SIM_MISTAKE_AGAIN) && slot->seq > m->acked_seq && m->acked_seq)
		slot->seq = m->acked_seq;
	if (sim_mistake_is(o->world, SIM_MISTAKE_LAPPED) && slot->seq + 1 < ring->first_seq)
		slot->seq = ring->first_seq - 1;
	if (sim_mistake_is(o->world, SIM_MISTAKE_UNNOTICED) && slot->seq < m->acked_seq) {
		slot->seq = m->acked_seq;
		slot->next = o->handle->commit.next_position;
		slot->last = o->handle->commit.last_position;
	}
	/* Tells the record before the next one, so that this owner knows it. */
	next = ps_ring_find_entry(ring, slot->seq + 1);
	if (next)
		slot->last =
			((const struct ps_record *)(const void *)next->writes[0].src)->previous;
}

void sim_mistake_claimed(struct ps_control *control, Perseas__ClaimReply *claim)
{
	struct sim_owner *o = control->owner;
	struct ps_mirror *m = o->handle ? mirror_of(o->handle, control->mirror) : NULL;
	bool own;

	sim_mistake_restarts(control, claim);
	if (!m)
		return;
	own = claim->slot->epoch == o->handle->epoch;
	if (own && claim->slot->seq < m->acked_seq &&
	    sim_mistake_is(o->world, SIM_MISTAKE_UNNOTICED))
		claim->record = 0;
	if (own)
		tell_seq(o, m, claim->slot);
	/* Takes the image that a reverted owner forgot for an interrupted copy. */
	if (own && o->reverted && sim_mistake_is(o->world, SIM_MISTAKE_PAST)) {
		claim->slot->epoch--;
		claim->header->state = PERSEAS__STATE__STATE_JOINING;
	}
	if (!own && sim_mistake_is(o->world, SIM_MISTAKE_FOREIGN))
		claim->slot->epoch = o->handle->epoch;
	if (own && sim_mistake_is(o->world, SIM_MISTAKE_CONNECTED))
		claim->slot->epoch--;
}

/* Makes the image of another owner look like this owner's newest one. */
void sim_mistake_succeeded(struct ps_control *control, Perseas__Header *header, Perseas__Slot *slot)
{
	const struct sim_owner *o = control->owner;
	struct perseas *p = o->handle;
	const struct ps_mirror *m = p && p->is_open ? mirror_of(p, control->mirror) : NULL;

	if (!m || !header || !slot || !sim_mistake_is(o->world, SIM_MISTAKE_SUCCEEDED) ||
	    slot->epoch <= p->opened_epoch || ps_mirror_may_have_own_slot(m, slot->epoch))
		return;
	header->roster->epoch = p->roster->epoch;
	header->roster->version = p->roster->version;
	slot->epoch = p->opened_epoch;
	slot->seq = p->commit.seq;
	slot->next = p->commit.next_position;
	slot->last = p->commit.last_position;
}

/* --- writes from the ring --- */

unsigned sim_mistake_ahead(struct ps_link *link)
{
	struct perseas *p = link->owner->handle;
	struct ps_mirror *m = p ? mirror_of(p, link->mirror) : NULL;
	unsigned rest = link->due - link->completed;

	if (!m || p->upkeep.resync.target || m->link != link ||
	    !sim_mistake_is(link->owner->world, SIM_MISTAKE_REUSED) ||
	    !ps_quorum_is_w(p, ps_mirrors_holding(p, p->commit.seq) & ~ps_mirror_bit(p, m)))
		return 0;
	link->ahead += rest;
	return rest;
}

bool sim_mistake_told(struct ps_link *link, unsigned chains)
{
	if (!chains || !link->ahead)
		return false;
	link->ahead--;
	return true;
}

static void linger(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct ps_link *link = arg;

	(void)ticket;
	/* The ring goes with the handle. */
	if (link->owner->dead || !link->owner->handle || link->broken)
		return;
	sim_link_flush(link);
	if (link->count > 0)
		sim_at(w, w->now + 100 * SIM_US, linger, link, 0);
}

bool sim_mistake_lingers(struct ps_link *link)
{
	struct sim_owner *o = link->owner;

	if (!sim_mistake_is(o->world, SIM_MISTAKE_DROPPED) || !o->handle || o->dead ||
	    link->memory || link->broken || !link->count)
		return false;
	sim_at(o->world, o->world->now, linger, link, 0);
	return true;
}

/* --- transactions that are kept apart --- */

bool sim_mistake_apart(const struct sim_world *w)
{
	return w->mistake == SIM_MISTAKE_TURN || w->mistake == SIM_MISTAKE_READER ||
	       w->mistake == SIM_MISTAKE_COVERED || w->mistake == SIM_MISTAKE_HELD_READ;
}

void sim_mistake_apart_commits(struct sim_owner *o, struct perseas_tx *tx)
{
	if (sim_mistake_is(o->world, SIM_MISTAKE_READER))
		tx->read_seq = 0;
	if (sim_mistake_is(o->world, SIM_MISTAKE_HELD_READ) && tx->read_seq > tx->p->commit.seq)
		tx->read_seq = tx->p->commit.seq;
	if (!sim_mistake_is(o->world, SIM_MISTAKE_TURN) || !(tx->traits & PS_TX_SERIAL) ||
	    !tx->range_count)
		return;
	pthread_mutex_lock(&tx->p->lock);
	tx->traits &= (uint8_t)~PS_TX_SERIAL;
	ps_turn_give_to_next(tx->p);
	pthread_mutex_unlock(&tx->p->lock);
	sim_owner_sleep(o, sim_below(o->world, SIM_MS));
}
