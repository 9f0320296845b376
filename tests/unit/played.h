/*
 * played.h - a store that runs, on mirrors which are played here: between any two requests the
 * owner goes on by some of its writes, in the order of I1 to I3, so that every interleaving of
 * reading and writing may come. For tests of what reads such a store.
 */
#ifndef PERSEAS_TESTS_PLAYED_H
#define PERSEAS_TESTS_PLAYED_H

#include "../../client/command/ask/ask.h"
#include "../../client/standby/live_fetch.h"
#include "../../proto/image/image.h"
#include "../../proto/control/envelope.h"
#include "../support/unit.h"

enum {
	SEGMENTS = 2,
	SIZE = 6000,  /* of each */
	QUIET = 5000, /* the bytes from here on are never written */
	RING_MAX = 1 << 20,
	RECORD_MAX = 4096,
	RANGES = 4,
	QUEUE = 64,
	STRIDE = 97, /* bytes of one write of the owner */
};

struct write {
	uint8_t *to;
	const uint8_t *from;
	uint32_t length;
};

/* One mirror. */
struct mirror {
	_Alignas(64) uint8_t log[PS_RING_OFFSET + RING_MAX];
	uint8_t segments[SEGMENTS][SIZE];
	uint64_t ring;
	uint64_t epoch, seq, next, last;
	int slot; /* the current slot */
	/* The chain that is being written. */
	_Alignas(64) uint8_t record[RECORD_MAX + PS_RECORD_SLACK];
	uint8_t after[RANGES][512];
	struct ps_slot new_slot;
	struct write chain[RANGES + 2];
	unsigned links, at;
	uint32_t done; /* bytes of the link */
	/* Being copied anew in place, in order; bytes not copied yet are of another state. */
	bool joining;
	uint64_t rewrites; /* how often */
	uint32_t copied;   /* bytes of each segment that are there */
	bool less;         /* its last segment was destroyed, and the memory is given back */
};

struct ps_control {
	struct mirror mirror;
	struct {
		bool status;
		uint32_t region;
		uint64_t offset, length;
	} queue[QUEUE];
	unsigned head, count;
};

/* The whole world. */
static struct world {
	struct ps_env env;
	struct ps_control controls[2];
	struct ps_peers peers;
	unsigned speed; /* writes of the owner between two requests, at most */
	bool stopped;   /* the owner writes nothing any more */
	unsigned spoil; /* one of so many replies is changed; 0: none */
	unsigned mend;  /* before one of so many replies a copy in place begins; 0: never */
	unsigned end;   /* before one of so many replies a segment ends; 0: never */
	uint32_t seed;
	unsigned refused; /* reads */
} world;

static uint32_t draw(void)
{
	world.seed = world.seed * 1664525 + 1013904223;
	return world.seed >> 8;
}

/* --- the owner --- */

/* The ranges of transaction k, from k alone. */
static unsigned plan(uint64_t k, struct ps_range ranges[RANGES])
{
	uint32_t state = (uint32_t)k * 2654435761u + 12345;
	unsigned count = 1 + state % RANGES;

	for (unsigned i = 0; i < count; i++) {
		state = state * 1664525 + 1013904223;
		ranges[i].segment = (state >> 9) % SEGMENTS;
		ranges[i].length = 1 + (state >> 12) % 300;
		/* Each range lies in a quarter of its own, so that they do not overlap. */
		ranges[i].offset = i * (QUIET / RANGES) + (state >> 20) % (QUIET / RANGES - 512);
	}
	return count;
}

static uint8_t byte_of(uint64_t k, unsigned i)
{
	return (uint8_t)(k * 31 + i * 7 + (k >> 8));
}

static void add(struct mirror *m, void *to, const void *from, uint32_t length)
{
	m->chain[m->links++] = (struct write){ to, from, length };
}

/* Builds the chain of the next transaction: undo record, data, slot. */
static void begin(struct mirror *m)
{
	struct ps_record *record = (void *)m->record;
	uint8_t *at = m->record + sizeof(*record);
	uint64_t seq = m->seq + 1, position;
	struct ps_range ranges[RANGES];
	unsigned count = plan(seq, ranges);

	memset(m->record, 0, sizeof(m->record));
	m->links = m->at = m->done = 0;
	for (unsigned i = 0; i < count; i++) {
		memcpy(at, &ranges[i], sizeof(ranges[i]));
		memcpy(at + sizeof(ranges[i]), m->segments[ranges[i].segment] + ranges[i].offset,
		       ranges[i].length);
		at += sizeof(ranges[i]) + ps_align8(ranges[i].length);
		memset(m->after[i], byte_of(seq, i), ranges[i].length);
	}
	record->kind = PS_RECORD_TRANSACTION;
	record->length = (uint32_t)(at - m->record);
	record->ranges = count;
	position = ps_record_position(m->next, record->length, m->ring);
	ps_record_seal(record, m->epoch, seq, position, m->last, seq * 1000);
	add(m, m->log + PS_RING_OFFSET + position % m->ring, record,
	    (uint32_t)(ps_align64(record->length) +
	               ps_terminator_size(position + ps_align64(record->length), m->ring)));
	for (unsigned i = 0; i < count; i++)
		add(m, m->segments[ranges[i].segment] + ranges[i].offset, m->after[i],
		    ranges[i].length);
	ps_slot_encode(&m->new_slot, m->epoch, seq, position + ps_align64(record->length),
	               position);
	add(m, m->log + ps_slot_offset(1 - m->slot), &m->new_slot, sizeof(m->new_slot));
}

static void finish(struct mirror *m)
{
	m->slot = 1 - m->slot;
	m->seq = m->new_slot.seq;
	m->next = m->new_slot.next;
	m->last = m->new_slot.last;
	m->links = 0;
}

/* Applies one write: a part of a link, or the whole slot. */
static void step(struct mirror *m)
{
	struct write *link;
	uint32_t length;

	if (m->links == 0)
		begin(m);
	link = &m->chain[m->at];
	length = link->length - m->done;
	if (length > STRIDE)
		length = STRIDE;
	memcpy(link->to + m->done, link->from + m->done, length);
	m->done += length;
	if (m->done < link->length)
		return;
	m->done = 0;
	if (++m->at == m->links)
		finish(m);
}

/* Bytes that are of another state become what they were, or the reverse. */
static void turn(struct mirror *m, uint32_t from, uint32_t to)
{
	for (unsigned i = 0; i < SEGMENTS; i++)
		for (uint32_t at = from; at < to; at++)
			m->segments[i][at] ^= 0xff;
}

/* Begins, continues or ends a copy in place. The owner is silent meanwhile. */
static void mend(struct mirror *m)
{
	uint32_t next = m->copied + 1 + draw() % 1500;

	if (!m->joining) {
		m->joining = true;
		m->rewrites++;
		m->copied = 0;
		turn(m, 0, SIZE);
		return;
	}
	next = next < SIZE ? next : SIZE;
	turn(m, m->copied, next);
	m->copied = next;
	m->joining = next < SIZE;
}

/* Destroys the last segment on all mirrors. The owner is silent from then on. */
static void destroy_last(void)
{
	for (unsigned i = 0; i < world.peers.count; i++)
		world.controls[i].mirror.less = true;
	world.stopped = true;
	world.end = 0;
}

static void go_on(void)
{
	if (world.mend && (world.controls[0].mirror.joining || draw() % world.mend == 0)) {
		mend(&world.controls[0].mirror);
		return;
	}
	if (world.end && draw() % world.end == 0)
		destroy_last();
	if (world.stopped || world.speed == 0)
		return;
	for (unsigned n = draw() % world.speed; n > 0; n--)
		step(&world.controls[draw() % world.peers.count].mirror);
}

/* --- the mirror's answers --- */

static Perseas__Header *make_header(const struct mirror *m)
{
	static uint8_t ids[2][PS_ID_SIZE] = { { 1 }, { 2 } };
	static char names[SEGMENTS][4] = { "one", "two" };
	Perseas__Segment segments[SEGMENTS], *list[SEGMENTS];
	Perseas__Member members[2], *member_list[2];
	Perseas__Header header = PERSEAS__HEADER__INIT;
	Perseas__Roster roster = PERSEAS__ROSTER__INIT;

	for (unsigned i = 0; i < SEGMENTS; i++) {
		perseas__segment__init(&segments[i]);
		segments[i].id = i;
		segments[i].name = names[i];
		segments[i].size = SIZE;
		segments[i].address = 0x10000 * (i + 1);
		segments[i].born = 1;
		list[i] = &segments[i];
		perseas__member__init(&members[i]);
		members[i].address = names[i];
		members[i].image_id.data = ids[i];
		members[i].image_id.len = PS_ID_SIZE;
		member_list[i] = &members[i];
	}
	roster.version = roster.acks = 1;
	roster.n_members = 2;
	roster.members = member_list;
	header.store = (char *)"s";
	header.store_id = members[0].image_id;
	header.image_id = members[m != &world.controls[0].mirror].image_id;
	header.state = m->joining ? PERSEAS__STATE__STATE_JOINING
	                          : PERSEAS__STATE__STATE_CONSISTENT;
	header.rewrites = m->rewrites;
	header.log_size = m->ring;
	header.roster = &roster;
	header.n_segments = m->less ? SEGMENTS - 1 : SEGMENTS;
	header.segments = list;
	return ps_header_copy(&header);
}

static void answer_status(struct mirror *m, Perseas__Reply *reply)
{
	Perseas__StoreStatus *status = malloc(sizeof(*status));
	struct ps_slot slot;

	reply->store = malloc(sizeof(*reply->store));
	perseas__status_reply__init(reply->store);
	perseas__store_status__init(status);
	reply->body_case = PERSEAS__REPLY__BODY_STORE;
	reply->store->status = status;
	status->header = make_header(m);
	status->live = !world.stopped;
	assert_true(ps_slot_choose(m->log, &slot) >= 0);
	status->slot = malloc(sizeof(*status->slot));
	perseas__slot__init(status->slot);
	status->slot->epoch = slot.epoch;
	status->slot->seq = slot.seq;
	status->slot->next = slot.next;
	status->slot->last = slot.last;
}

static void answer_read(struct mirror *m, Perseas__Reply *reply, uint32_t region, uint64_t offset,
                        uint64_t length)
{
	const uint8_t *base = region == PS_REGION_LOG ? m->log
	                                              : m->segments[region - PS_REGION_SEGMENT];
	uint64_t size = region == PS_REGION_LOG ? PS_RING_OFFSET + m->ring : SIZE;

	assert_true(region == PS_REGION_LOG || region - PS_REGION_SEGMENT < SEGMENTS);
	if (m->less && region == PS_REGION_SEGMENT + SEGMENTS - 1) {
		reply->status = PERSEAS__STATUS__STATUS_BAD_REQUEST;
		world.refused++;
		return;
	}
	assert_true(length >= 1 && length <= PS_FETCH_MAX && offset <= size &&
	            length <= size - offset);
	reply->body_case = PERSEAS__REPLY__BODY_READ;
	reply->read = malloc(sizeof(*reply->read));
	perseas__read_reply__init(reply->read);
	reply->read->bytes.len = length;
	reply->read->bytes.data = malloc(length);
	memcpy(reply->read->bytes.data, base + offset, length);
}

/* Makes a reply lie: other bytes, or fewer. */
static void spoil(Perseas__Reply *reply)
{
	ProtobufCBinaryData *bytes = &reply->read->bytes;

	if (draw() % 20 == 0)
		bytes->len = 1 + draw() % bytes->len;
	for (unsigned n = 1 + draw() % 8; n > 0; n--) {
		uint64_t word = draw() % 4 ? (uint64_t)draw() << draw() % 40 : UINT64_MAX;
		size_t at = draw() % bytes->len & ~(size_t)7;

		memcpy(bytes->data + at, &word,
		       bytes->len - at < sizeof(word) ? bytes->len - at : sizeof(word));
	}
}

static int take_request(struct ps_control *control, const Perseas__Request *request,
                        struct ps_error *error)
{
	unsigned i = (control->head + control->count) % QUEUE;

	(void)error;
	assert_true(control->count < QUEUE);
	control->count++;
	control->queue[i].status = request->body_case == PERSEAS__REQUEST__BODY_STATUS;
	if (control->queue[i].status)
		return 0;
	assert_int_equal(request->body_case, PERSEAS__REQUEST__BODY_READ);
	control->queue[i].region = request->read->region;
	control->queue[i].offset = request->read->offset;
	control->queue[i].length = request->read->length;
	return 0;
}

static int give_reply(struct ps_control *control, uint64_t until_ns, Perseas__Reply **reply,
                      int *fds, unsigned *count, struct ps_error *error)
{
	unsigned i = control->head;

	(void)until_ns, (void)fds, (void)count, (void)error;
	assert_true(control->count > 0);
	control->head = (control->head + 1) % QUEUE;
	control->count--;
	go_on();
	*reply = malloc(sizeof(**reply));
	perseas__reply__init(*reply);
	if (control->queue[i].status) {
		answer_status(&control->mirror, *reply);
		return 0;
	}
	answer_read(&control->mirror, *reply, control->queue[i].region, control->queue[i].offset,
	            control->queue[i].length);
	if (world.spoil && draw() % world.spoil == 0)
		spoil(*reply);
	return 0;
}

static uint64_t now(struct ps_env *env)
{
	(void)env;
	return 0;
}

static const struct ps_env_ops ops = { .now = now, .send = take_request, .receive = give_reply };

static void start(uint32_t seed, unsigned mirrors, uint64_t ring, unsigned speed)
{
	memset(&world, 0, sizeof(world));
	world.seed = seed;
	world.speed = speed;
	world.env.ops = &ops;
	world.peers.env = &world.env;
	world.peers.count = mirrors;
	for (unsigned i = 0; i < mirrors; i++) {
		struct mirror *m = &world.controls[i].mirror;

		world.peers.controls[i] = &world.controls[i];
		snprintf(world.peers.addresses[i].text, sizeof(world.peers.addresses[i].text),
		         "mirror%u", i);
		m->ring = ring;
		m->epoch = 1;
		m->next = PS_FIRST_POSITION;
		ps_image_init_slots(m->log);
		ps_slot_encode((void *)m->log, 1, 0, PS_FIRST_POSITION, 0);
		for (unsigned n = draw() % 4000; n > 0 && speed; n--)
			step(m);
	}
}

#endif
