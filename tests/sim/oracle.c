/*
 * oracle.c - the tree of states, and the assertions on images, openings and acknowledgements.
 * Everything of the simulator that sees a change calls it. It must share no judgement with the
 * library or the daemon: it reads images by itself.
 */
#include "oracle.h"

#include "../../client/core/handle.h"
#include "../../server/store/store_private.h"
#include "env_sim.h"
#include "mirror.h"
#include "rosters.h"

enum { NAMES = 4096, LOSSES_MAX = 64 };

/* The state that (epoch, seq) names. */
struct name {
	uint64_t epoch, seq;
	struct sim_node *node;
};

/* The state that a claimer adopted first. */
struct choice {
	struct choice *next;
	uint64_t epoch;
	uint8_t owner[PS_ID_SIZE];
	struct sim_node *node;
};

struct sim_oracle {
	struct name names[NAMES];
	struct sim_node *root;
	struct sim_node *acked; /* the deepest that was acknowledged, or shown by an open */
	struct loss {
		const struct sim_mirror *mirror;
		struct sim_node *node; /* where its image stood */
	} lost[LOSSES_MAX];
	unsigned losses;
	struct choice *choices;
	uint8_t *scratch[PS_SEGMENTS_MAX]; /* by id, as large as the segment */
	uint64_t scratch_sizes[PS_SEGMENTS_MAX];
};

const char *sim_segment_name(unsigned i)
{
	static const char *const names[SIM_NAMED] = {
		"a",         "b",         "c",         "h.heap.0",  "h.meta.0",
		"h.heap.1",  "h.meta.1",  "h.heap.2",  "h.meta.2",  "h.heap.3",
		"h.meta.3",  "h.heap.4",  "h.meta.4",  "a.grown.1", "a.grown.2",
		"b.grown.1", "b.grown.2", "c.grown.1", "c.grown.2",
	};

	return names[i];
}

/* --- the tree --- */

static struct name *find_name(struct sim_oracle *oracle, uint64_t epoch, uint64_t seq)
{
	unsigned at = (unsigned)((epoch * 0x9e3779b97f4a7c15u + seq * 0xff51afd7ed558ccdu) >> 40);

	for (;; at++) {
		struct name *name = &oracle->names[at % NAMES];

		if ((name->epoch == epoch && name->seq == seq) || (!name->epoch && !name->node))
			return name;
	}
}

static bool is_in_use(const struct sim_world *w, const struct name *name)
{
	for (unsigned i = 0; i < w->mirror_count; i++)
		if (w->mirrors[i]->at == name->node && w->mirrors[i]->at_epoch == name->epoch)
			return true;
	return false;
}

/* Names a state. A failed open's epoch may be claimed again once all mirrors that promised it lost
 * their memory; what was adopted under it was lost with them. */
static void give_name(struct sim_world *w, struct sim_node *node, uint64_t epoch, uint64_t seq)
{
	struct name *name = find_name(w->oracle, epoch, seq);

	if (name->node && name->node != node && (name->node->epoch == epoch || is_in_use(w, name)))
		sim_fail(w, "%s stands for two different states", sim_state(w, epoch, seq));
	*name = (struct name){ epoch, seq, node };
}

static bool descends(const struct sim_node *node, const struct sim_node *from)
{
	while (node && node->depth > from->depth)
		node = node->parent;
	return node == from;
}

struct sim_node *sim_node_new(struct sim_world *w, struct sim_node *parent, uint64_t epoch,
                              uint64_t seq)
{
	struct sim_node *node = sim_alloc(w, sizeof(*node));

	*node = *parent;
	node->parent = parent;
	node->epoch = epoch;
	node->seq = seq;
	node->depth = parent->depth + 1;
	node->mark = w->oracle->losses;
	node->sealed_at = w->now;
	node->returned_at = 0;
	if (node->root == w->oracle->root)
		give_name(w, node, epoch, seq);
	return node;
}

uint8_t *sim_node_edit(struct sim_world *w, struct sim_node *node, unsigned segment)
{
	struct sim_segment *s = &node->segments[segment];
	uint8_t *old = s->bytes;

	if (!node->parent || old != node->parent->segments[segment].bytes)
		return old;
	s->bytes = sim_alloc(w, s->size > SIM_PAGE ? s->size : SIM_PAGE);
	if (old)
		memcpy(s->bytes, old, s->size);
	return s->bytes;
}

void sim_node_bear(const struct sim_owner *o, struct sim_node *node, unsigned i,
                   const struct ps_segment *as)
{
	struct sim_segment *s = &node->segments[i];

	s->present = true;
	s->id = as->id;
	s->size = (uint32_t)as->size;
	s->born = node->seq;
	s->address = sim_recorded(o, as->address);
	memcpy(s->random_id, as->random_id, PS_ID_SIZE);
}

void sim_oracle_begin(struct sim_world *w)
{
	struct sim_oracle *oracle = sim_alloc(w, sizeof(*oracle));

	w->oracle = oracle;
	oracle->root = oracle->acked = sim_oracle_apart(w);
	/* (0, 0) is every new image's; it is found by its node, not by its epoch. */
	find_name(oracle, 0, 0)->node = oracle->root;
}

struct sim_node *sim_oracle_apart(struct sim_world *w)
{
	struct sim_node *node = sim_alloc(w, sizeof(*node));

	node->root = node;
	return node;
}

void sim_oracle_removed(struct sim_world *w)
{
	struct sim_oracle *oracle = w->oracle;

	memset(oracle->names, 0, sizeof(oracle->names));
	oracle->root = oracle->acked = sim_oracle_apart(w);
	oracle->losses = 0;
	oracle->choices = NULL;
	find_name(oracle, 0, 0)->node = oracle->root;
}

/* --- copies --- */

/* Copies of a node: since which loss, and under which epoch at least. */
struct copies {
	const struct sim_node *node;
	unsigned mark;
	uint64_t epoch;
};

static bool holds(const struct sim_mirror *m, const void *arg)
{
	const struct copies *copies = arg;

	return descends(m->at, copies->node) && m->at_epoch >= copies->epoch;
}

/* Counts copies on members of the roster, and copies that were there. */
static unsigned count_copies(const struct sim_world *w, const Perseas__Roster *roster,
                             const void *arg)
{
	const struct copies *copies = arg;
	unsigned count = sim_roster_count(w, roster, holds, copies);

	for (unsigned i = copies->mark; i < w->oracle->losses; i++) {
		const struct loss *loss = &w->oracle->lost[i];

		count += descends(loss->node, copies->node) &&
		         sim_roster_names(roster, loss->mirror);
	}
	return count;
}

static bool is_held(const struct sim_world *w, const struct copies *copies)
{
	return copies->node == w->oracle->root || sim_rosters_enough(w, count_copies, copies);
}

static void check_copies(struct sim_world *w, const struct sim_node *node, const char *when)
{
	const struct copies copies = { node, node->mark, 0 };

	if (is_held(w, &copies))
		return;
	sim_fail(w, "%s, %s is on %u mirrors of the roster or was lost there, and W is %u%s", when,
	         sim_state(w, node->epoch, node->seq), count_copies(w, w->settled, &copies),
	         w->settled->acks, w->next ? "; nor is the next roster enough" : "");
}

static void move(struct sim_mirror *m, struct sim_node *node, uint64_t epoch)
{
	struct sim_world *w = m->world;

	if (m->at == node && m->at_epoch == epoch)
		return;
	m->at = node;
	m->at_epoch = epoch;
	if (w->tracing)
		sim_trace(w, "mirror %u stands at %s", m->index,
		          node ? sim_state(w, epoch, node->seq) : "nothing whole");
	check_copies(w, w->oracle->acked, "when an image changed");
}

void sim_oracle_lost(struct sim_mirror *m)
{
	struct sim_oracle *oracle = m->world->oracle;

	if (m->at && oracle->losses < LOSSES_MAX)
		oracle->lost[oracle->losses++] = (struct loss){ m, m->at };
	m->at = NULL;
}

void sim_oracle_asks(struct sim_owner *o, int kind)
{
	const struct sim_oracle *oracle = o->world->oracle;
	const struct perseas *p = o->handle;

	if (kind == PERSEAS__REQUEST__BODY_CONFIRM)
		o->confirmed = (struct sim_moment){ oracle->acked, oracle->losses };
	if (kind != PERSEAS__REQUEST__BODY_FINISH || !p || !p->is_renewing)
		return;
	/* Copies what is needed of the owner: the message may be handled after its handle is
	 * gone. */
	o->renewal = (struct sim_renewal){ .epoch = p->epoch,
		                           .sealed = p->upkeep.renewal.ring_epoch };
	memcpy(o->renewal.owner, p->owner, PS_ID_SIZE);
}

static void acknowledge(struct sim_world *w, struct sim_node *node)
{
	struct sim_oracle *oracle = w->oracle;

	if (descends(node, oracle->acked))
		oracle->acked = node;
	else if (!descends(oracle->acked, node))
		sim_fail(w, "%s is acknowledged, and so was %s, which it does not follow",
		         sim_state(w, node->epoch, node->seq),
		         sim_state(w, oracle->acked->epoch, oracle->acked->seq));
}

void sim_oracle_acknowledged(struct sim_world *w, struct sim_node *node)
{
	if (!node->parent)
		return;
	check_copies(w, node, "when its commit returned");
	acknowledge(w, node);
}

const struct sim_node *sim_oracle_newest(const struct sim_world *w)
{
	return w->oracle->acked;
}

void sim_oracle_confirmed(struct sim_world *w, struct sim_node *node, const struct sim_node *acked)
{
	if (!descends(node, acked))
		sim_fail(
			w,
			"an owner is confirmed at %s, and %s, which was acknowledged, is not in it",
			sim_state(w, node->epoch, node->seq),
			sim_state(w, acked->epoch, acked->seq));
	sim_oracle_acknowledged(w, node);
}

struct sim_node *sim_oracle_opened(struct sim_world *w, uint64_t epoch, uint64_t seq,
                                   const struct sim_moment *confirmed)
{
	struct sim_oracle *oracle = w->oracle;
	struct sim_node *node = find_name(oracle, epoch, seq)->node;
	struct copies copies = { node, confirmed->losses, epoch };

	if (!node)
		sim_fail(w, "an open shows %s, which no mirror has", sim_state(w, epoch, seq));
	if (!descends(node, confirmed->acked))
		sim_fail(w, "an open shows %s, and %s, which was acknowledged, is not in it",
		         sim_state(w, epoch, seq),
		         sim_state(w, confirmed->acked->epoch, confirmed->acked->seq));
	if (!sim_rosters_enough(w, count_copies, &copies))
		sim_fail(w, "an open returned as %s, and W do not hold it so",
		         sim_state(w, epoch, seq));
	/* W mirrors hold the state again, so earlier losses do not count any more. */
	if (node->mark < confirmed->losses)
		node->mark = confirmed->losses;
	acknowledge(w, node);
	return node;
}

/* --- images --- */

void sim_oracle_wrote(struct sim_mirror *m, uint64_t epoch, const uint8_t *to)
{
	const struct store *store;

	if (m->granted <= epoch || !m->stores)
		return;
	store = store_find(m->stores, SIM_STORE);
	for (unsigned i = 0; store && i < PS_REGIONS_MAX; i++) {
		const struct piece *piece = &store->image.regions[i];

		if (piece->base && to >= piece->base && to < piece->base + piece->size)
			sim_fail(m->world, "mirror %u granted epoch %llu; a write of %llu lands",
			         m->index, (unsigned long long)m->granted,
			         (unsigned long long)epoch);
	}
}

static uint8_t *scratch_of(struct sim_world *w, uint32_t id, uint64_t size)
{
	struct sim_oracle *oracle = w->oracle;

	if (oracle->scratch_sizes[id] < size) {
		oracle->scratch[id] = sim_alloc(w, size);
		oracle->scratch_sizes[id] = size;
	}
	return oracle->scratch[id];
}

/* Finds what a claim would find. It rolls back in copies, which only the segments of the
 * transaction in flight need. */
static void recover(struct sim_mirror *m, const struct store *store, struct ps_image *view,
                    struct ps_slot *slot)
{
	const struct ps_record *in_flight = NULL;
	const struct ps_range *range;
	struct ps_cursor cursor = { 0 };
	const void *before;
	enum ps_recovery recovery;

	image_view(&store->image, view);
	if (ps_slot_choose(view->log, slot) >= 0)
		in_flight = ps_image_find_record(view, slot->epoch, slot->seq + 1, slot->next);
	if (in_flight && in_flight->kind == PS_RECORD_TRANSACTION)
		ps_record_begin_walk(in_flight, &cursor);
	while (ps_record_next(&cursor, &range, &before)) {
		const uint32_t id = range->segment;
		const uint64_t size = view->segments[id].size;
		uint8_t *copy = scratch_of(m->world, id, size);

		if (size > 0 && view->segments[id].base != copy)
			view->segments[id].base = memcpy(copy, view->segments[id].base, size);
	}
	recovery = ps_image_recover(view, slot);
	if (recovery < 0)
		sim_fail(m->world, "mirror %u: its image cannot be recovered (%d)", m->index,
		         (int)recovery);
}

/* Notes which state was adopted: a claimer chooses once for each epoch (I6). */
static void note_choice(struct sim_mirror *m, const struct store *store, uint64_t epoch,
                        struct sim_node *node)
{
	struct sim_oracle *oracle = m->world->oracle;
	struct choice *choice = oracle->choices;

	while (choice && (choice->epoch != epoch ||
	                  !ps_id_equal(store->header->promised_owner, choice->owner)))
		choice = choice->next;
	if (choice && choice->node != node)
		sim_fail(m->world, "with epoch %llu, %s is adopted on mirror %u, and %s was before",
		         (unsigned long long)epoch, sim_state(m->world, node->epoch, node->seq),
		         m->index, sim_state(m->world, choice->node->epoch, choice->node->seq));
	if (choice || store->header->promised_epoch != epoch)
		return;
	choice = sim_alloc(m->world, sizeof(*choice));
	choice->epoch = epoch;
	memcpy(choice->owner, store->header->promised_owner.data, PS_ID_SIZE);
	choice->node = node;
	choice->next = oracle->choices;
	oracle->choices = choice;
}

/* Finds the state of an owner that renewed its claims, which copies its memory to mirrors that do
 * not have its state. */
static struct sim_node *renewed(struct sim_mirror *m, const struct store *store,
                                const struct ps_slot *slot)
{
	struct sim_world *w = m->world;

	for (unsigned i = 0; i < w->owner_count; i++) {
		const struct sim_renewal *renewal = &w->owners[i]->renewal;
		struct sim_node *node;

		if (renewal->epoch != slot->epoch ||
		    !ps_id_equal(store->header->promised_owner, renewal->owner))
			continue;
		node = find_name(w->oracle, renewal->sealed, slot->seq)->node;
		if (!node)
			return NULL;
		give_name(w, node, slot->epoch, slot->seq);
		note_choice(m, store, slot->epoch, node);
		return node;
	}
	return NULL;
}

/* Finds the state that an open copied from a mirror that leaves the roster. If only such a mirror
 * has the chosen state, the first copy of it gets the claimer's epoch, since an open never writes
 * to that mirror. */
static struct sim_node *copied_from_leaving(struct sim_mirror *m, const struct store *store,
                                            const struct ps_slot *slot)
{
	struct sim_world *w = m->world;
	const struct sim_mirror *from = NULL;

	if (!store->header->marked || store->header->promised_epoch != slot->epoch)
		return NULL;
	for (unsigned i = 0; i < w->mirror_count; i++) {
		const struct sim_mirror *other = w->mirrors[i];
		const Perseas__Header *header = sim_rosters_header(other);

		if (header && other->at && other->at->seq == slot->seq &&
		    same_id(header->promised_owner, store->header->promised_owner) &&
		    header->promised_epoch == slot->epoch &&
		    !sim_roster_lists(store->header->next_roster, other) &&
		    (!from || other->at_epoch > from->at_epoch))
			from = other;
	}
	if (!from)
		return NULL;
	give_name(w, from->at, slot->epoch, slot->seq);
	note_choice(m, store, slot->epoch, from->at);
	return from->at;
}

/* Returns the state that the slot must stand for. */
static struct sim_node *identify(struct sim_mirror *m, const struct store *store,
                                 const struct ps_slot *slot)
{
	struct sim_world *w = m->world;
	struct sim_node *node = find_name(w->oracle, slot->epoch, slot->seq)->node;
	const struct sim_node *before = m->at;

	if (before && m->generation != store->image.generation)
		before = NULL;
	if (before && before->seq == slot->seq && m->at_epoch < slot->epoch) {
		node = m->at;
		give_name(w, node, slot->epoch, slot->seq);
		note_choice(m, store, slot->epoch, node);
	}
	if (!node)
		node = renewed(m, store, slot);
	if (!node)
		node = copied_from_leaving(m, store, slot);
	if (!node)
		sim_fail(w, "mirror %u stands at %s, which nobody sent", m->index,
		         sim_state(w, slot->epoch, slot->seq));
	if (before && node != before && before->seq == slot->seq)
		sim_fail(w, "mirror %u stands at %s, which is another state than it had", m->index,
		         sim_state(w, slot->epoch, slot->seq));
	if (before && node != before && m->at_epoch == slot->epoch && node->parent != before)
		sim_fail(w, "mirror %u went from %s to %s", m->index,
		         sim_state(w, m->at_epoch, before->seq),
		         sim_state(w, slot->epoch, slot->seq));
	return node;
}

static const struct sim_segment *segment_of(const struct sim_node *node,
                                            const Perseas__Segment *from)
{
	for (unsigned i = 0; i < SIM_NAMED; i++)
		if (!strcmp(sim_segment_name(i), from->name))
			return &node->segments[i];
	return NULL;
}

/* Returns true if the segment comes from the publish that made the state's segment. */
static bool is_same_publish(const struct sim_segment *s, const Perseas__Segment *from)
{
	static const uint8_t none[PS_ID_SIZE];

	if (!memcmp(s->random_id, none, PS_ID_SIZE))
		return from->random_id.len == 0;
	return ps_id_equal(from->random_id, s->random_id);
}

static void compare_segment(struct sim_mirror *m, const struct sim_node *node,
                            const Perseas__Segment *from, const uint8_t *bytes)
{
	const struct sim_segment *s = segment_of(node, from);
	unsigned at = 0;

	if (!s || !s->present || s->id != from->id || s->size != from->size ||
	    s->born != from->born || s->address != from->address)
		sim_fail(m->world,
		         "mirror %u at %s has segment %s (id %u, %llu bytes, born %llu, at "
		         "0x%llx), which the state has not",
		         m->index, sim_state(m->world, node->epoch, node->seq), from->name,
		         from->id, (unsigned long long)from->size, (unsigned long long)from->born,
		         (unsigned long long)from->address);
	if (!is_same_publish(s, from))
		sim_fail(m->world, "mirror %u at %s has segment %s of another publish", m->index,
		         sim_state(m->world, node->epoch, node->seq), from->name);
	if (!memcmp(s->bytes, bytes, s->size))
		return;
	while (s->bytes[at] == bytes[at])
		at++;
	sim_fail(m->world, "mirror %u at %s: byte %u of segment %s is not what the state has",
	         m->index, sim_state(m->world, node->epoch, node->seq), at, from->name);
}

static void compare(struct sim_mirror *m, const struct sim_node *node, const struct store *store,
                    const struct ps_image *view, const struct ps_slot *slot)
{
	unsigned found = 0, expected = 0;

	for (size_t i = 0; i < store->header->n_segments; i++) {
		const Perseas__Segment *s = store->header->segments[i];

		if (!s->born || s->born > slot->seq || segment_is_destroyed(s, slot))
			continue;
		found++;
		compare_segment(m, node, s, view->segments[s->id].base);
	}
	for (unsigned i = 0; i < SIM_NAMED; i++)
		expected += node->segments[i].present;
	if (found != expected)
		sim_fail(m->world, "mirror %u at %s has %u segments, and the state has %u",
		         m->index, sim_state(m->world, node->epoch, node->seq), found, expected);
}

static void look_at(struct sim_mirror *m, struct store *store)
{
	struct ps_image view;
	struct sim_node *node;
	struct ps_slot slot;

	if (store && store->damage[0])
		sim_fail(m->world, "mirror %u: the image is damaged: %s", m->index, store->damage);
	if (!store || !sim_rosters_counts(m->world, store->header) ||
	    store->header->state != STATE(CONSISTENT)) {
		move(m, NULL, 0);
		return;
	}
	sim_count(m->world, SIM_CHECKS, 1);
	recover(m, store, &view, &slot);
	node = identify(m, store, &slot);
	compare(m, node, store, &view, &slot);
	m->generation = store->image.generation;
	move(m, node, slot.epoch);
}

/* Looks at the image of a daemon that is down: an owner on its host may go on writing. */
static void look_without_daemon(struct sim_mirror *m)
{
	struct stores stores = { .memory = m->memory };
	struct store store = { .stores = &stores, .name = SIM_STORE };
	const char *why;
	uint8_t *bytes;
	size_t len;

	if (m->memory->ops->load(m->memory, SIM_STORE, "header", &bytes, &len))
		return;
	store.header = ps_header_unpack(bytes, len, &why);
	free(bytes);
	if (store.header &&
	    !image_open(&store, store.header, &store.image, store.damage, sizeof(store.damage))) {
		look_at(m, &store);
		image_close(&store, &store.image);
	}
	header_free(store.header);
}

void sim_oracle_look(struct sim_mirror *m)
{
	if (m->forked || m->away)
		return;
	sim_rosters_remember(m);
	if (m->stores)
		look_at(m, store_find(m->stores, SIM_STORE));
	else
		look_without_daemon(m);
}
