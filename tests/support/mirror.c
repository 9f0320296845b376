/*
 * mirror.c - a mirror and its peers for tests of the store logic, called function by function. It
 * sends nothing over sockets, and goes around none of the logic's checks but where a test says
 * so.
 */
#include "mirror.h"

#include "messages.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void mirror_open(struct mirror *mirror)
{
	memset(mirror, 0, sizeof(*mirror));
	mirror->memory = memory_heap_new(0, 1);
	mirror->stores = stores_new(mirror->memory);
	assert(mirror->memory && mirror->stores);
}

void mirror_close(struct mirror *mirror)
{
	stores_free(mirror->stores);
	memory_heap_free(mirror->memory);
}

static void count_complaint(void *arg, const char *text)
{
	struct mirror *mirror = arg;

	(void)text;
	mirror->complaints++;
}

void mirror_restart(struct mirror *mirror)
{
	struct memory *left = memory_heap_copy(mirror->memory);

	assert(left);
	mirror_close(mirror);
	mirror->memory = left;
	mirror->stores = stores_new(left);
	mirror->complaints = 0;
	stores_load(mirror->stores, count_complaint, mirror);
}

static void peer_cut(struct session *session)
{
	struct peer *peer = (struct peer *)session;

	peer->cuts++;
	if (peer->on_cut)
		peer->on_cut(peer);
}

static bool peer_may_write(struct session *session)
{
	return session->shared && ((struct peer *)session)->alive;
}

static uint64_t peer_silent_ms(struct session *session)
{
	struct peer *peer = (struct peer *)session;

	return peer->alive ? peer->silent_ms : UINT64_MAX;
}

struct peer_holder {
	struct holder holder;
	struct peer *peer;
};

static bool holder_may_write(struct holder *holder)
{
	return ((struct peer_holder *)holder)->peer->alive;
}

static void holder_await_end(struct holder *holder, uint32_t *left_ms)
{
	struct peer *peer = ((struct peer_holder *)holder)->peer;

	if (peer->on_await)
		peer->on_await(peer, left_ms);
}

static void holder_free(struct holder *holder)
{
	free(holder);
}

static struct holder *peer_keep(struct session *session)
{
	struct peer_holder *holder = malloc(sizeof(*holder));

	assert(holder);
	holder->holder.may_write = holder_may_write;
	holder->holder.await_end = holder_await_end;
	holder->holder.free = holder_free;
	holder->peer = (struct peer *)session;
	return &holder->holder;
}

static const struct session_ops peer_ops = {
	.cut = peer_cut,
	.may_write = peer_may_write,
	.get_holder = peer_keep,
	.silent_ms = peer_silent_ms,
};

static void cut_nothing(struct session *session)
{
	(void)session;
}

static bool writes_nothing(struct session *session)
{
	(void)session;
	return false;
}

const struct session_ops gone_session_ops = { .cut = cut_nothing, .may_write = writes_nothing };

void peer_init(struct peer *peer)
{
	memset(peer, 0, sizeof(*peer));
	peer->session.ops = &peer_ops;
	peer->session.local = true;
	strcpy(peer->session.peer, "test");
	peer->alive = true;
}

int mirror_create(struct mirror *mirror, const char *store, uint8_t id)
{
	uint8_t image[PS_ID_SIZE] = { 9, id };
	const ProtobufCBinaryData image_id = { PS_ID_SIZE, image };
	Perseas__Member member = MESSAGE_OF(Member, member, .address = (char *)"127.0.0.1:7170",
	                                    .image_id = image_id);
	Perseas__Member *members[] = { &member };
	Perseas__Roster roster = MESSAGE_OF(Roster, roster, .version = 1, .acks = 1, .n_members = 1,
	                                    .members = members);
	Perseas__CreateRequest request = MESSAGE_OF(CreateRequest, create_request,
	                                            .store = (char *)store, .store_id = OWNER(id),
	                                            .image_id = image_id, .log_size = PS_LOG_MIN,
	                                            .roster = &roster);

	return store_create(mirror->stores, NULL, &request, &mirror->why);
}

int mirror_settle(struct mirror *mirror, const char *store, uint8_t id)
{
	const Perseas__SettleRequest request = MESSAGE_OF(SettleRequest, settle_request,
	                                                  .store = (char *)store,
	                                                  .store_id = OWNER(id));

	return store_settle(mirror->stores, &request, &mirror->why);
}

static int claim(struct mirror *mirror, struct peer *peer, const Perseas__ClaimRequest *request,
                 Perseas__ClaimReply *reply)
{
	Perseas__ClaimReply unused;

	if (!reply)
		reply = &unused;
	perseas__claim_reply__init(reply);
	memset(&mirror->why, 0, sizeof(mirror->why));
	return store_claim(mirror->stores, &peer->session, request, reply, &mirror->why);
}

#define CLAIM(...)                                                                       \
	&MESSAGE_OF(ClaimRequest, claim_request, .store = (char *)store, .epoch = epoch, \
	            .owner = OWNER(owner), ##__VA_ARGS__)

int mirror_claim(struct mirror *mirror, struct peer *peer, const char *store, uint64_t epoch,
                 uint8_t owner, Perseas__ClaimReply *reply)
{
	return claim(mirror, peer, CLAIM(), reply);
}

int mirror_takeover(struct mirror *mirror, struct peer *peer, const char *store, uint64_t epoch,
                    uint8_t owner, Perseas__ClaimReply *reply)
{
	return claim(mirror, peer, CLAIM(.takeover = true), reply);
}

int mirror_share(struct mirror *mirror, struct peer *peer, const char *store, uint64_t epoch,
                 uint8_t owner, Perseas__ClaimReply *reply)
{
	return claim(mirror, peer, CLAIM(.takeover = true, .shared = true), reply);
}

int peer_add(struct peer *peer, struct why *why, uint32_t id, const char *name, uint64_t size)
{
	Perseas__Segment segment = MESSAGE_OF(Segment, segment, .id = id, .name = (char *)name,
	                                      .size = size, .address = ((uint64_t)id + 1) << 40);
	Perseas__Segment *segments[] = { &segment };
	const Perseas__AddSegmentsRequest request = MESSAGE_OF(AddSegmentsRequest,
	                                                       add_segments_request,
	                                                       .n_segments = 1,
	                                                       .segments = segments);
	Perseas__AddSegmentsReply reply = PERSEAS__ADD_SEGMENTS_REPLY__INIT;

	return store_add_segments(&peer->session, &request, &reply, why);
}

int peer_publish(struct peer *peer, struct why *why, uint32_t id, uint64_t seq)
{
	const Perseas__PublishRequest request = MESSAGE_OF(PublishRequest, publish_request,
	                                                   .n_ids = 1, .ids = &id, .seq = seq);

	return store_publish(&peer->session, &request, why);
}

int peer_destroy(struct peer *peer, struct why *why, uint32_t id, uint64_t seq)
{
	const Perseas__DestroyRequest request = MESSAGE_OF(DestroyRequest, destroy_request,
	                                                   .n_ids = 1, .ids = &id, .seq = seq);

	return store_destroy(&peer->session, &request, why);
}

int peer_drop_segment(struct peer *peer, struct why *why, uint32_t id)
{
	const Perseas__DropSegmentsRequest request = MESSAGE_OF(DropSegmentsRequest,
	                                                        drop_segments_request, .n_ids = 1,
	                                                        .ids = &id);
	Perseas__DropSegmentsReply reply = PERSEAS__DROP_SEGMENTS_REPLY__INIT;

	return store_drop_segments(&peer->session, &request, &reply, why);
}

void mirror_bank(struct mirror *mirror, struct peer *peer, bool shared)
{
	mirror_bank_of(mirror, peer, shared, BANK_SIZE);
}

void mirror_bank_of(struct mirror *mirror, struct peer *peer, bool shared, uint64_t size)
{
	struct writer writer;
	int ret;

	ret = mirror_create(mirror, "bank", 1);
	assert(ret == 0);
	ret = mirror_settle(mirror, "bank", 1);
	assert(ret == 0);
	peer_init(peer);
	ret = shared ? mirror_share(mirror, peer, "bank", BANK_EPOCH, BANK_OWNER, NULL)
	             : mirror_claim(mirror, peer, "bank", BANK_EPOCH, BANK_OWNER, NULL);
	assert(ret == 0);
	ret = peer_add(peer, &mirror->why, 0, "accounts", size);
	assert(ret == 0);
	ret = peer_publish(peer, &mirror->why, 0, 1);
	assert(ret == 0);
	writer_init(&writer, &peer->session);
	writer_adopt(&writer, BANK_EPOCH);
	writer_write(&writer, 0, 0, "made", 4, WRITE_ALL);
}

const Perseas__Header *mirror_header(struct mirror *mirror, const char *store)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;

	if (store_status(mirror->stores, store, &status, &mirror->why) < 0)
		return NULL;
	return status.header;
}

void writer_init(struct writer *writer, struct session *session)
{
	memset(writer, 0, sizeof(*writer));
	writer->ring = PS_LOG_MIN;
	writer->log = session_memory(session, PS_REGION_LOG, 0, PS_RING_OFFSET + writer->ring,
	                             true);
	for (uint32_t i = 0; i < 4; i++)
		writer->data[i] = session_memory(session, PS_REGION_SEGMENT + i, 0, 1, true);
	writer->index = ps_slot_choose(writer->log, &writer->slot);
}

static void write_slot(struct writer *writer, uint64_t epoch, uint64_t seq, uint64_t next,
                       uint64_t last)
{
	struct ps_slot *to;

	writer->index = writer->index == 0 ? 1 : 0;
	ps_slot_encode(&writer->slot, epoch, seq, next, last);
	to = (void *)(writer->log + ps_slot_offset(writer->index));
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(to, &writer->slot, sizeof(*to));
}

void writer_write(struct writer *writer, uint32_t segment, uint64_t offset, const void *bytes,
                  uint32_t len, int steps)
{
	_Alignas(64) uint8_t buffer[64 + 16 + 1024 + PS_RECORD_SLACK] = { 0 };
	struct ps_record *record = (void *)buffer;
	struct ps_range *range = (void *)(buffer + sizeof(*record));
	uint64_t position, next;

	record->kind = PS_RECORD_TRANSACTION;
	record->ranges = 1;
	record->length = (uint32_t)(sizeof(*record) + sizeof(*range) + ps_align8(len));
	range->segment = segment;
	range->length = len;
	range->offset = offset;
	memcpy(range + 1, writer->data[segment] + offset, len);
	position = ps_record_position(writer->slot.next, record->length, writer->ring);
	next = position + ps_align64(record->length);
	ps_record_seal(record, writer->slot.epoch, writer->slot.seq + 1, position,
	               writer->slot.last, 1);
	if (steps & WRITE_RECORD)
		memcpy(writer->log + PS_RING_OFFSET + position % writer->ring, record,
		       next - position + ps_terminator_size(next, writer->ring));
	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (steps & WRITE_DATA)
		memcpy(writer->data[segment] + offset, bytes, len);
	if (steps & WRITE_SLOT)
		write_slot(writer, writer->slot.epoch, writer->slot.seq + 1, next, position);
}

void writer_adopt(struct writer *writer, uint64_t epoch)
{
	write_slot(writer, epoch, writer->slot.seq, writer->slot.next, writer->slot.last);
}
