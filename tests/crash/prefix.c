/*
 * prefix.c - the daemon dies after every beginning of what reached it, starts again, and is
 * claimed; twice.
 */
#include "crash.h"

#include <stdarg.h>

enum { FAULTS_SHOWN = 5 };

void fault(struct checker *checker, const char *format, ...)
{
	va_list args;

	checker->faults++;
	if (checker->quiet || checker->faults > FAULTS_SHOWN)
		return;
	printf("    fault: %s, %s: ", checker->work->name, checker->doing);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

int check_image(struct checker *checker, const struct ps_image *image, const struct ps_slot *slot,
                int floor)
{
	const struct model *model = &checker->work->model;
	int state = model_find(model, slot->epoch, slot->seq, image);
	const struct state *least = &model->states[floor];

	if (state < 0) {
		fault(checker, "%llu:%llu was never a state", (unsigned long long)slot->epoch,
		      (unsigned long long)slot->seq);
		return -1;
	}
	if (!model_equal(model, state, image)) {
		fault(checker, "the bytes are not those of %llu:%llu",
		      (unsigned long long)slot->epoch, (unsigned long long)slot->seq);
		return -1;
	}
	if (!model_contains(model, state, floor)) {
		fault(checker, "%llu:%llu lacks the acknowledged %llu:%llu",
		      (unsigned long long)slot->epoch, (unsigned long long)slot->seq,
		      (unsigned long long)least->epoch, (unsigned long long)least->seq);
		return -1;
	}
	return state;
}

static void ignore(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

/* A daemon that starts on the memory, and one claim to it. */
static Perseas__Reply *claim(struct memory *memory, uint64_t epoch)
{
	struct stores *stores = stores_new(memory);
	struct session session = { .ops = &gone_session_ops };
	Perseas__ClaimRequest body = PERSEAS__CLAIM_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct control_reply packed;
	uint8_t owner[PS_ID_SIZE] = { 0xee }, *bytes;
	Perseas__Reply *reply;
	const char *why;
	size_t len;
	int rc;

	stores_load(stores, ignore, NULL);
	body.store = (char *)STORE;
	body.epoch = epoch;
	body.owner = (ProtobufCBinaryData){ PS_ID_SIZE, owner };
	request.body_case = PERSEAS__REQUEST__BODY_CLAIM;
	request.claim = &body;
	rc = ps_request_pack(&request, &bytes, &len);
	assert(!rc);
	rc = control_handle(stores, &session, "test", bytes + 4, len - 4, &packed);
	assert(!rc);
	reply = ps_reply_unpack(packed.bytes + 4, packed.len - 4, &why);
	assert(reply);
	free(packed.bytes);
	free(bytes);
	store_session_ended(&session);
	stores_free(stores);
	return reply;
}

/* Ring and segments of two images are the same bytes. */
static bool same_bytes(const struct ps_image *a, const struct ps_image *b)
{
	if (a->ring_size != b->ring_size ||
	    memcmp(a->log, b->log, PS_RING_OFFSET + a->ring_size) != 0)
		return false;
	for (unsigned i = 0; i < PS_SEGMENTS_MAX; i++) {
		if (a->segments[i].size != b->segments[i].size)
			return false;
		if (a->segments[i].base &&
		    memcmp(a->segments[i].base, b->segments[i].base, a->segments[i].size) != 0)
			return false;
	}
	return true;
}

/* The second recovery finds what the first one left, and leaves it so. */
static void check_again(struct checker *checker, const struct replica *first, uint64_t epoch,
                        const Perseas__Slot *slot)
{
	struct replica again = { .memory = memory_heap_copy(first->memory) };
	Perseas__Reply *reply = claim(again.memory, epoch);
	struct ps_image before, after;

	if (reply->status != PERSEAS__STATUS__STATUS_OK ||
	    reply->claim->slot->epoch != slot->epoch || reply->claim->slot->seq != slot->seq)
		fault(checker, "the second recovery found something else than the first left");
	else if (!replica_image(first, &before) || !replica_image(&again, &after) ||
	         !same_bytes(&before, &after))
		fault(checker, "the second recovery changed something");
	perseas__reply__free_unpacked(reply, NULL);
	memory_heap_free(again.memory);
}

static void check_claimed(struct checker *checker, const struct replica *copy,
                          const Perseas__ClaimReply *reply, int floor)
{
	struct ps_slot slot = { .epoch = reply->slot->epoch, .seq = reply->slot->seq };
	const struct model *model = &checker->work->model;
	struct ps_image image;
	int state;

	if (!replica_image(copy, &image)) {
		fault(checker, "the image does not count any more");
		return;
	}
	state = check_image(checker, &image, &slot, floor);
	if (state >= 0 && model->states[state].count != reply->header->n_segments)
		fault(checker, "%llu:%llu has %u segments, and not %zu",
		      (unsigned long long)slot.epoch, (unsigned long long)slot.seq,
		      model->states[state].count, reply->header->n_segments);
}

static void check_instant(struct checker *checker, const struct replica *replica)
{
	const uint64_t epoch = PS_EPOCH_STEP;
	struct replica copy = { .memory = memory_heap_copy(replica->memory) };
	Perseas__Reply *reply;
	struct ps_image image;
	bool counts = replica_image(replica, &image);

	if (!counts) {
		memory_heap_free(copy.memory);
		return;
	}
	checker->states++;
	reply = claim(copy.memory, epoch);
	if (reply->status != PERSEAS__STATUS__STATUS_OK) {
		fault(checker, "the claim is refused: %s", reply->message);
	} else {
		check_claimed(checker, &copy, reply->claim, replica->floor);
		check_again(checker, &copy, epoch + 1, reply->claim->slot);
	}
	perseas__reply__free_unpacked(reply, NULL);
	memory_heap_free(copy.memory);
}

void check_prefixes(struct checker *checker)
{
	const struct work *w = checker->work;

	for (unsigned mirror = 0; mirror < w->d->count; mirror++) {
		struct replica replica;

		replica_init(&replica, w, mirror);
		for (size_t i = 0; i < w->journal.count; i++) {
			const struct event *event = &w->journal.events[i];

			replica_apply(&replica, mirror, event);
			if (i >= w->from && (event->kind == EVENT_ACKED || event->mirror == mirror))
				check_instant(checker, &replica);
		}
		replica_free(&replica);
	}
}
