/*
 * instants.c - the store is opened by the library itself, over what the mirrors had at an instant:
 * over all of them, and over each R of them while the others do not answer.
 */
#include "crash.h"

/* A world whose mirrors have copies of these memories. NULL: it does not answer. */
static struct direct *world_new(const struct work *w, struct memory *const *memories)
{
	struct direct *d = direct_new(w->d->count, 99);

	assert(d);
	d->staged = w->d->staged;
	for (unsigned i = 0; i < d->count; i++) {
		direct_crash(d, i);
		if (!memories[i])
			continue;
		memory_heap_free(d->mirrors[i].memory);
		d->mirrors[i].memory = memory_heap_copy(memories[i]);
		direct_start(d, i);
	}
	return d;
}

static perseas_t *open_world(struct checker *checker, struct direct *d, uint32_t flags, bool enough)
{
	struct perseas_options options = checker->work->options;
	struct ps_error error;
	perseas_t *p = NULL;

	options.flags |= PERSEAS_TAKEOVER | flags;
	options.ring_size = 64 * 1024;
	if (direct_open(d, STORE, &options, &p, &error) &&
	    (enough || error.code != PERSEAS_EQUORUM))
		fault(checker, "open: %s", error.text);
	return p;
}

static void map_image(struct checker *checker, perseas_t *p, struct ps_image *image)
{
	struct perseas_segment_info info;

	memset(image, 0, sizeof(*image));
	for (unsigned i = 0; !perseas_segment_at(p, i, &info); i++) {
		void *addr;

		if (perseas_map(p, info.name, 0, &addr)) {
			fault(checker, "map: %s", perseas_message(p));
			return;
		}
	}
	/* A segment's parts are mapped with it. */
	for (unsigned i = 0; i < p->segment_count; i++) {
		image->segments[p->segments[i].id].base = p->segments[i].base;
		image->segments[p->segments[i].id].size = p->segments[i].size;
	}
}

/* The state that the handle has is one that was, and has what was acknowledged. */
static void check_handle(struct checker *checker, perseas_t *p, struct ps_image *image, int floor)
{
	const struct model *model = &checker->work->model;
	int state;

	map_image(checker, p, image);
	check_heap(checker, p);
	check_containers(checker, p);
	check_rds(checker, p);
	for (state = model->count - 1; state >= 0; state--)
		if (model->states[state].seq == p->commit.seq &&
		    model->states[state].count == p->segment_count &&
		    model_equal(model, state, image))
			break;
	if (state < 0)
		fault(checker, "open found no state that ever was, as %llu",
		      (unsigned long long)p->commit.seq);
	else if (!model_contains(model, state, floor))
		fault(checker, "open found %llu:%llu, without the acknowledged %llu:%llu",
		      (unsigned long long)model->states[state].epoch,
		      (unsigned long long)model->states[state].seq,
		      (unsigned long long)model->states[floor].epoch,
		      (unsigned long long)model->states[floor].seq);
}

/* Another owner finds the same again, and what the first one did. */
static void check_next_owner(struct checker *checker, struct direct *d, uint64_t seq,
                             const uint8_t *bytes, uint64_t size)
{
	perseas_t *p = open_world(checker, d, 0, true);
	struct ps_image image;

	if (!p)
		return;
	map_image(checker, p, &image);
	if (p->commit.seq != seq || (size && memcmp(image.segments[0].base, bytes, size) != 0))
		fault(checker, "the next owner found something else");
	perseas_close(p);
}

/* The owner that recovered the store changes it, and is succeeded. */
static void go_on(struct checker *checker, struct direct *d, perseas_t *p,
                  const struct ps_image *image)
{
	uint64_t size = image->segments[0].size, seq;
	uint8_t *base = image->segments[0].base, *kept = malloc(size + 1);
	perseas_tx_t *tx;

	assert(kept);
	if (base) {
		if (perseas_begin(p, 0, &tx) || perseas_set_range(tx, base + 10, 50))
			fault(checker, "the store cannot be changed: %s", perseas_message(p));
		memset(base + 10, (int)p->commit.seq, 50);
		if (perseas_commit(tx, 0))
			fault(checker, "commit: %s", perseas_message(p));
		memcpy(kept, base, size);
	}
	seq = p->commit.seq;
	perseas_close(p);
	check_next_owner(checker, d, seq, kept, base ? size : 0);
	free(kept);
}

/* enough: so many have what is needed that the open must end well. on: the new owner goes on. */
static void check_world(struct checker *checker, struct memory *const *memories, int floor,
                        uint32_t flags, bool enough, bool on)
{
	struct direct *d = world_new(checker->work, memories);
	perseas_t *p = open_world(checker, d, flags, enough);
	struct ps_image image;

	checker->states++;
	if (p) {
		check_handle(checker, p, &image, floor);
		if (on)
			go_on(checker, d, p, &image);
		else
			perseas_close(p);
	}
	direct_free(d);
}

static unsigned bits(unsigned set)
{
	return (unsigned)__builtin_popcount(set);
}

/* The checks that a set of mirrors has had since the last event that changed one of them or raised
 * the state that an open must find. */
struct checked {
	bool opened, went_on;
};

/* Forgets what was checked of the sets that the event changes. */
static void forget_changed(struct checked *checked, const struct work *w, const struct event *event)
{
	for (unsigned set = 1; set < 1u << w->d->count; set++)
		if (event->kind == EVENT_ACKED || set & 1u << event->mirror)
			checked[set] = (struct checked){ 0 };
}

/* Checks every set of R mirrors or more, as if no other mirror answered, unless the same check was
 * made of it since it changed. on: as in check_world. */
static void check_sets(struct checker *checker, const struct replica *replicas, int floor, bool on,
                       struct checked *checked)
{
	const struct work *w = checker->work;
	unsigned claimers = w->d->count - w->options.acks + 1;
	/* So many mirrors must take part in an open: R to know the state, and W to adopt it. */
	unsigned least = claimers > w->options.acks ? claimers : w->options.acks;

	for (unsigned set = 1; set < 1u << w->d->count; set++) {
		struct memory *memories[PS_MIRRORS_MAX];
		unsigned whole = 0;
		bool lost = false;

		if (bits(set) < least || (checked[set].opened && (!on || checked[set].went_on)))
			continue;
		checked[set].opened = true;
		checked[set].went_on |= on;
		for (unsigned i = 0; i < w->d->count; i++) {
			struct ps_image image;
			bool in = set & 1u << i;

			memories[i] = in ? replicas[i].memory : NULL;
			lost |= in && replicas[i].lost;
			whole += in && replica_image(&replicas[i], &image);
		}
		check_world(checker, memories, floor, 0, !lost || whole >= least, on);
	}
}

/* While the store was being made: it is there, empty, or can be made. */
static void check_making(struct checker *checker, const struct replica *replicas)
{
	struct memory *memories[PS_MIRRORS_MAX];

	for (unsigned i = 0; i < checker->work->d->count; i++)
		memories[i] = replicas[i].memory;
	check_world(checker, memories, 0, PERSEAS_CREATE, true, true);
}

void check_instants(struct checker *checker)
{
	const struct work *w = checker->work;
	struct replica replicas[PS_MIRRORS_MAX];
	struct checked *checked = calloc(1u << w->d->count, sizeof(*checked));
	int floor = 0;

	assert(checked);
	for (unsigned i = 0; i < w->d->count; i++)
		replica_init(&replicas[i], w, i);
	for (size_t at = 0; at < w->journal.count; at++) {
		const struct event *event = &w->journal.events[at];

		for (unsigned i = 0; i < w->d->count; i++)
			replica_apply(&replicas[i], i, event);
		forget_changed(checked, w, event);
		if (event->kind == EVENT_ACKED)
			floor = event->state;
		if (at < w->from)
			continue;
		/* What follows a recovery is checked now and then. */
		if (at + 1 < w->base)
			check_making(checker, replicas);
		else
			check_sets(checker, replicas, floor, at % 4 == 0, checked);
	}
	for (unsigned i = 0; i < w->d->count; i++)
		replica_free(&replicas[i]);
	free(checked);
}

/* The memory of one mirror after each of its events. */
struct beginnings {
	struct memory **memories;
	int *newest; /* the state whose slot it has */
	size_t count;
};

static int newest_of(const struct work *w, const struct event *event, int before)
{
	struct ps_image none = { 0 };
	struct ps_slot slot;

	if (event->kind != EVENT_WRITE || event->part != DIRECT_SLOT)
		return before;
	memcpy(&slot, event->bytes, sizeof(slot));
	return model_find(&w->model, slot.epoch, slot.seq, &none);
}

static void collect(const struct work *w, unsigned mirror, struct beginnings *all)
{
	struct replica replica;
	int newest = 0;

	memset(all, 0, sizeof(*all));
	all->memories = calloc(w->journal.count, sizeof(*all->memories));
	all->newest = calloc(w->journal.count, sizeof(*all->newest));
	assert(all->memories && all->newest);
	replica_init(&replica, w, mirror);
	for (size_t i = 0; i < w->journal.count; i++) {
		const struct event *event = &w->journal.events[i];

		replica_apply(&replica, mirror, event);
		if (event->kind == EVENT_ACKED || event->mirror != mirror)
			continue;
		newest = newest_of(w, event, newest);
		if (i < w->base)
			continue;
		all->memories[all->count] = memory_heap_copy(replica.memory);
		all->newest[all->count++] = newest;
	}
	replica_free(&replica);
}

static void forget(struct beginnings *all)
{
	for (size_t i = 0; i < all->count; i++)
		memory_heap_free(all->memories[i]);
	free(all->memories);
	free(all->newest);
}

/*
 * Checks two mirrors while the third does not answer. The third may have been as far as either, so
 * whatever a slot of the two says may have been acknowledged.
 */
static void check_pair(struct checker *checker, const struct beginnings *all, unsigned a,
                       unsigned b)
{
	for (size_t i = 0; i < all[a].count; i++) {
		for (size_t k = 0; k < all[b].count; k++) {
			struct memory *memories[PS_MIRRORS_MAX] = { NULL };
			int x = all[a].newest[i], y = all[b].newest[k];

			memories[a] = all[a].memories[i];
			memories[b] = all[b].memories[k];
			check_world(checker, memories, x > y ? x : y, 0, true, false);
		}
	}
}

void check_pairs(struct checker *checker)
{
	const struct work *w = checker->work;
	struct beginnings all[PS_MIRRORS_MAX];

	for (unsigned i = 0; i < w->d->count; i++)
		collect(w, i, &all[i]);
	for (unsigned a = 0; a < w->d->count; a++)
		for (unsigned b = a + 1; b < w->d->count; b++)
			check_pair(checker, all, a, b);
	for (unsigned i = 0; i < w->d->count; i++)
		forget(&all[i]);
}
