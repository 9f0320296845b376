/*
 * resync_rig.h - an owner with a segment of several chunks, and what the next one must find.
 */
#ifndef PERSEAS_TESTS_RESYNC_RIG_H
#define PERSEAS_TESTS_RESYNC_RIG_H

#include "owner.h"

#include "../../client/core/change_map.h"
#include "../../client/core/mirror.h"
#include "../../client/keeper/resync.h"

enum {
	BIG = 700 * 1000, /* bytes of segment "big": six chunks */
	ROUNDS = 1000,
	GRANULE = 65536,
	MARK = 64, /* bytes that another owner writes in many places */
};

/* What the next owner must find, whichever mirrors are left. */
struct ledger {
	uint8_t accounts[SIZE];
	uint8_t big[BIG];
};

struct fixture {
	struct owner *o;
	uint8_t *big;
	struct ledger *ledger;
};

static inline void map_big(struct fixture *f)
{
	void *addr;

	assert_int_equal(perseas_map(f->o->p, "big", 0, &addr), 0);
	f->big = addr;
}

static inline void begin(struct fixture *f)
{
	void *addr;

	owner_begin(f->o);
	assert_int_equal(perseas_map(f->o->p, "big", BIG, &addr), 0);
	f->big = addr;
	for (unsigned i = 0; i < BIG; i++)
		f->big[i] = (uint8_t)(i * 31 >> 3);
	assert_int_equal(perseas_publish(f->o->p), 0);
	memcpy(f->ledger->accounts, f->o->bytes, SIZE);
	memcpy(f->ledger->big, f->big, BIG);
}

/* Sets up this owner, with its store and a ledger of it. */
static inline int setup_owner(void **state, struct owner *o)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->ledger = malloc(sizeof(*f->ledger));
	assert_non_null(f->ledger);
	f->o = o;
	begin(f);
	*state = f;
	return 0;
}

static inline int setup_of(void **state, unsigned mirrors, uint32_t acks, bool staged)
{
	struct owner *o = owner_new(mirrors);

	o->options.acks = acks;
	o->d->staged = staged;
	return setup_owner(state, o);
}

static inline int setup(void **state)
{
	return setup_of(state, 3, 2, true);
}

static inline int setup_direct(void **state)
{
	return setup_of(state, 3, 2, false);
}

static inline int setup_two(void **state)
{
	return setup_of(state, 2, 2, true);
}

/* Sets up two mirrors with W = 1. */
static inline int setup_lone_acks(void **state)
{
	return setup_of(state, 2, 1, true);
}

static inline int setup_one(void **state)
{
	return setup_of(state, 1, 1, true);
}

static inline int setup_five(void **state)
{
	return setup_of(state, 5, 3, true);
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	owner_free(f->o);
	free(f->ledger);
	free(f);
	return 0;
}

/* Changes the large segment in one transaction. The ledger gets it once it is acknowledged. */
static inline int put_big(struct fixture *f, unsigned offset, unsigned length, uint8_t value)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(f->o->p, 0, &tx);

	if (rc)
		return rc;
	assert_int_equal(perseas_set_range(tx, f->big + offset, length), 0);
	memset(f->big + offset, value, length);
	rc = perseas_commit(tx, 0);
	if (rc == PERSEAS_EBLOCKED)
		perseas_abort(tx);
	else
		memset(f->ledger->big + offset, value, length);
	return rc;
}

/* Stores all over the segment: in parts copied already, in others, and across two chunks. */
static inline void put_all_over(struct fixture *f, uint8_t value)
{
	for (unsigned at = 100; at < BIG - 2000; at += BIG / 7)
		assert_int_equal(put_big(f, at + value, 900, (uint8_t)(value + at)), 0);
	assert_int_equal(put_big(f, (128 << 10) - 300, 600, value), 0);
}

/* Makes the owner believe that its last transaction changed every granule of the store, so that a
 * mirror without it is sent everything. */
static inline void change_all(struct perseas *p)
{
	for (unsigned i = 0; i < p->segment_count; i++) {
		const struct ps_segment *s = &p->segments[i];

		for (uint64_t at = 0; at < ps_change_granules(s->size); at++)
			p->commit.change_maps[s->id][at] = p->commit.seq;
	}
}

/* Lets a mirror miss more than the ring holds, all of it near the beginning of "big". */
static inline void miss_more_than_the_ring(struct fixture *f, unsigned mirror)
{
	direct_crash(f->o->d, mirror);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(put_big(f, 5000 + i, 3000, (uint8_t)i), 0);
}

/* Lets a mirror miss more than the ring holds, and changes of every granule. */
static inline void make_stale(struct fixture *f, unsigned mirror)
{
	miss_more_than_the_ring(f, mirror);
	change_all(f->o->p);
	direct_start(f->o->d, mirror);
}

/* Restarts a mirror when the ring does not hold what it missed any more. */
static inline void come_back_late(struct fixture *f, unsigned mirror)
{
	ps_ring_drop_all(&f->o->p->commit.ring, f->o->p->commit.seq + 1);
	change_all(f->o->p);
	direct_start(f->o->d, mirror);
}

/* The id of an image that was loaded from a spill after an orderly stop. */
static const uint8_t loaded_id[PS_ID_SIZE] = "a new image's id";

static inline Perseas__Header *header_of(struct fixture *f, unsigned mirror)
{
	uint64_t size;
	const uint8_t *bytes = memory_heap_piece(f->o->d->mirrors[mirror].memory, STORE, "header",
	                                         &size);
	const char *why;

	assert_non_null(bytes);
	return ps_header_unpack(bytes, size, &why);
}

static inline void load_spilled(struct fixture *f, unsigned mirror)
{
	struct memory *memory = f->o->d->mirrors[mirror].memory;
	Perseas__Header *header = header_of(f, mirror);
	ProtobufCBinaryData none = header->parent_id;
	uint8_t *bytes;
	size_t len;

	header->parent_id = header->image_id;
	header->image_id = (ProtobufCBinaryData){ PS_ID_SIZE, (uint8_t *)(uintptr_t)loaded_id };
	assert_int_equal(ps_header_pack(header, &bytes, &len), 0);
	assert_int_equal(memory->ops->replace(memory, STORE, "header", bytes, len), 0);
	free(bytes);
	header->image_id = header->parent_id;
	header->parent_id = none;
	perseas__header__free_unpacked(header, NULL);
	direct_start(f->o->d, mirror);
}

/* Returns the bytes of a segment in a mirror's image. */
static inline const uint8_t *image_of(struct fixture *f, unsigned mirror, const char *segment)
{
	Perseas__Header *header = header_of(f, mirror);
	const uint8_t *bytes;
	char name[40];

	snprintf(name, sizeof(name), "%s.%llu", segment, (unsigned long long)header->generation);
	perseas__header__free_unpacked(header, NULL);
	bytes = memory_heap_piece(f->o->d->mirrors[mirror].memory, STORE, name, NULL);
	assert_non_null(bytes);
	return bytes;
}

static inline const uint8_t *big_of(struct fixture *f, unsigned mirror)
{
	return image_of(f, mirror, "segment-1");
}

static inline void assert_image(struct fixture *f, unsigned mirror)
{
	Perseas__Header *header = header_of(f, mirror);

	assert_int_equal(header->state, PERSEAS__STATE__STATE_CONSISTENT);
	perseas__header__free_unpacked(header, NULL);
	assert_memory_equal(image_of(f, mirror, "segment-0"), f->ledger->accounts, SIZE);
	assert_memory_equal(big_of(f, mirror), f->ledger->big, BIG);
}

/* The mirror gets everything, and with it what was in doubt is acknowledged. */
static inline void assert_catches_up(struct fixture *f, unsigned mirror)
{
	owner_keep(f->o, mirror, PERSEAS_MIRROR_LIVE);
	assert_int_equal(perseas_flush(f->o->p), 0);
	assert_image(f, mirror);
}

/* The next owner finds all that was acknowledged, with one mirror out of reach. */
static inline void assert_carries(struct fixture *f, unsigned without)
{
	owner_die(f->o);
	direct_crash(f->o->d, without);
	owner_reopen(f->o);
	map_big(f);
	assert_memory_equal(f->o->bytes, f->ledger->accounts, SIZE);
	assert_memory_equal(f->big, f->ledger->big, BIG);
}

/* Restarts a mirror that missed little, but more than the ring has now. */
static inline void come_back(struct fixture *f, unsigned mirror)
{
	ps_ring_drop_all(&f->o->p->commit.ring, f->o->p->commit.seq + 1);
	direct_start(f->o->d, mirror);
}

static inline struct perseas_mirror_stat stat_of(struct fixture *f, unsigned mirror)
{
	struct perseas_mirror_stat stat;

	assert_int_equal(perseas_mirror_stat(f->o->p, mirror, &stat), 0);
	return stat;
}

/* The mirror is being sent `bytes` in all, and is told why in `words`. */
static inline void assert_being_sent(struct fixture *f, unsigned mirror, const char *words,
                                     uint64_t bytes)
{
	struct perseas_mirror_stat stat;

	owner_keep(f->o, mirror, PERSEAS_MIRROR_RESYNCING);
	stat = stat_of(f, mirror);
	if (!strstr(stat.trouble, words))
		fail_msg("%s", stat.trouble);
	/* The first step of the copy finds how much it is. */
	for (unsigned i = 0; !stat.resync_total && i < ROUNDS && bytes; i++) {
		direct_keep(f->o->d, f->o->p);
		stat = stat_of(f, mirror);
	}
	assert_int_equal(stat.resync_total, bytes);
	assert_true(stat.resync_done <= bytes);
}

/* Makes the owner renew its claims. */
static inline void renew_claims(struct fixture *f)
{
	f->o->p->upkeep.renewal.is_wanted = true;
	for (unsigned i = 0; i < ROUNDS && f->o->p->upkeep.renewal.is_wanted; i++)
		direct_keep(f->o->d, f->o->p);
	assert_false(f->o->p->upkeep.renewal.is_wanted);
}

/* --- rounds of the keeper that never wait, by the clock --- */

#define MS (uint64_t)1000000
#define ROUND (20 * MS)   /* between rounds of the keeper */
#define LITTLE (100 * MS) /* thousands of looks at the clock */
#define SLOW (2500 * MS)

/* Takes so long for requests of this kind, from now on. */
static inline void answer_slowly(struct owner *o, unsigned mirror, int request)
{
	o->d->mirrors[mirror].slow_at = request;
	o->d->mirrors[mirror].slow_ns = SLOW;
}

static inline void round_of(struct owner *o)
{
	const uint64_t start = o->d->now;

	direct_keep_after(o->d, o->p, ROUND);
	assert_true(o->d->now - start < ROUND + LITTLE);
}

/* Runs rounds that never wait until the copy is in this state. */
static inline void reach(struct owner *o, enum ps_resync_state state)
{
	for (unsigned rounds = 0; o->p->upkeep.resync.state != state; rounds++) {
		if (rounds == ROUNDS)
			fail_msg("state %d is not reached, but %d", state,
			         o->p->upkeep.resync.state);
		round_of(o);
	}
}

/* Runs rounds until a chunk of a segment is read from another mirror. */
static inline void reach_chunk_read(struct owner *o)
{
	const struct ps_resync *r = &o->p->upkeep.resync;

	for (unsigned rounds = 0; r->state != PS_RESYNC_READING || r->read_region == PS_REGION_LOG;
	     rounds++) {
		assert_true(rounds < ROUNDS);
		round_of(o);
	}
}

/* Runs rounds that never wait until the mirror is live. */
static inline void reach_live(struct owner *o, unsigned mirror)
{
	for (unsigned rounds = 0; owner_state(o, mirror) != PERSEAS_MIRROR_LIVE; rounds++) {
		assert_true(rounds < ROUNDS);
		round_of(o);
	}
}

/* --- links that are slow to come up --- */

/* Links to mirror 1 come up at the time `until`, or `takes` ns after they began, if that is set. */
static struct {
	struct direct *d;
	struct ps_env_ops ops;
	struct ps_fabric fabric;
	const struct ps_fabric *real;
	const struct ps_link *link; /* the latest one */
	uint64_t takes, until;
} slow_links;

static inline struct ps_link *slow_links_begin(struct ps_env *env, const struct ps_address *address,
                                               const Perseas__Grant *grant, const int *fds,
                                               uint64_t epoch, struct ps_error *error)
{
	struct ps_link *link = slow_links.real->attach(env, address, grant, fds, epoch, 0, error);

	if (!strcmp(address->port, "1")) {
		slow_links.link = link;
		if (slow_links.takes)
			slow_links.until = slow_links.d->now + slow_links.takes;
	}
	return link;
}

static inline int slow_links_step(struct ps_link *link, uint64_t until_ns, struct ps_error *error)
{
	(void)until_ns;
	(void)error;
	return link != slow_links.link || slow_links.d->now >= slow_links.until;
}

static inline const struct ps_fabric *slow_links_fabric(struct ps_env *env,
                                                        const struct ps_address *address,
                                                        const Perseas__Grant *grant, unsigned tried)
{
	(void)env;
	(void)address;
	(void)grant;
	return tried ? NULL : &slow_links.fabric;
}

/* Makes the owner's links slow from now on. */
static inline void slow_links_use(struct owner *o, uint64_t takes)
{
	slow_links.d = o->d;
	slow_links.takes = takes;
	slow_links.real = o->p->mirrors[1].fabric;
	slow_links.fabric = *slow_links.real;
	slow_links.fabric.attach_begin = slow_links_begin;
	slow_links.fabric.attach_step = slow_links_step;
	slow_links.ops = *o->p->env->ops;
	slow_links.ops.fabric = slow_links_fabric;
	o->p->env->ops = &slow_links.ops;
}

#endif
