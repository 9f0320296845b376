/*
 * test_source.c - whose answer may fill missing memory: a good one, and those in which one thing is
 * not as it must be.
 */
#include "../../client/demand/demand.h"
#include "../support/messages.h"
#include "../support/unit.h"

enum { EPOCH = 7, LEFT = 40, LENGTH = 100 };

struct fixture {
	struct ps_wanted wanted;
	struct message_header *before, *after;
	Perseas__StoreStatus first, second;
	Perseas__Slot slot;
	uint8_t image_id[PS_ID_SIZE], owner[PS_ID_SIZE]; /* as the answers have them */
	struct ps_fetch_answer fetched;
};

static struct message_header *header_of(struct fixture *f)
{
	struct message_header *m = message_header_new();
	Perseas__Header *header = &m->header;

	header->state = PERSEAS__STATE__STATE_CONSISTENT;
	header->promised_epoch = EPOCH;
	header->promised_owner = (ProtobufCBinaryData){ PS_ID_SIZE, f->owner };
	header->image_id = (ProtobufCBinaryData){ PS_ID_SIZE, f->image_id };
	header->generation = 3;
	header->rewrites = 5;
	return m;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	memset(f->image_id, 1, PS_ID_SIZE);
	memset(f->owner, 2, PS_ID_SIZE);
	f->before = header_of(f);
	f->after = header_of(f);
	memcpy(f->wanted.image_id, f->image_id, PS_ID_SIZE);
	memcpy(f->wanted.owner, f->owner, PS_ID_SIZE);
	memcpy(f->wanted.store_id, f->before->header.store_id.data, PS_ID_SIZE);
	f->wanted.epoch = EPOCH;
	f->wanted.last_unmap_seq = LEFT;
	f->wanted.length = LENGTH;
	perseas__slot__init(&f->slot);
	f->slot.epoch = EPOCH;
	f->slot.seq = LEFT;
	perseas__store_status__init(&f->first);
	perseas__store_status__init(&f->second);
	f->first.header = &f->before->header;
	f->first.slot = &f->slot;
	f->second.header = &f->after->header;
	f->fetched = (struct ps_fetch_answer){ .before = &f->first,
		                               .after = &f->second,
		                               .bytes = { LENGTH, NULL } };
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	free(f->before);
	free(f->after);
	free(f);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static void assert_refused(struct fixture *f)
{
	assert_non_null(ps_answer_rejection(&f->wanted, &f->fetched));
}

static void assert_taken(struct fixture *f)
{
	assert_null(ps_answer_rejection(&f->wanted, &f->fetched));
}

/* Refused while this number is another one by `by`. */
static void assert_refused_off(struct fixture *f, uint64_t *number, int by)
{
	*number += (uint64_t)by;
	assert_refused(f);
	*number -= (uint64_t)by;
	assert_taken(f);
}

/* Refused while the first byte of an id is another one. */
static void assert_refused_id(struct fixture *f, uint8_t *id)
{
	id[0]++;
	assert_refused(f);
	id[0]--;
	assert_taken(f);
}

TEST(test_a_good_one, struct fixture *f)
{
	assert_taken(f);
	f->slot.seq = LEFT + 1;
	assert_taken(f);
}

TEST(test_no_image, struct fixture *f)
{
	f->fetched.before = NULL;
	assert_refused(f);
	f->fetched.before = &f->first;
	f->second.header = NULL;
	assert_refused(f);
}

TEST(test_another_image, struct fixture *f)
{
	assert_refused_id(f, f->wanted.image_id);
	assert_refused_id(f, f->wanted.store_id);
}

/* At first, or then. */
TEST(test_it_joins, struct fixture *f)
{
	f->before->header.state = PERSEAS__STATE__STATE_JOINING;
	assert_refused(f);
	f->before->header.state = PERSEAS__STATE__STATE_CONSISTENT;
	f->after->header.state = PERSEAS__STATE__STATE_JOINING;
	assert_refused(f);
}

TEST(test_it_was_changed_meanwhile, struct fixture *f)
{
	assert_refused_off(f, &f->after->header.generation, 1);
	assert_refused_off(f, &f->after->header.rewrites, 1);
}

TEST(test_it_is_promised_to_another, struct fixture *f)
{
	assert_refused_off(f, &f->after->header.promised_epoch, 1);
	assert_refused_off(f, &f->before->header.promised_epoch, -1);
	assert_refused_id(f, f->owner);
}

TEST(test_it_is_not_adopted, struct fixture *f)
{
	assert_refused_off(f, &f->slot.epoch, -1);
	assert_refused_off(f, &f->slot.seq, -1);
	f->first.slot = NULL;
	assert_refused(f);
}

TEST(test_its_answer_is_not_whole, struct fixture *f)
{
	assert_refused_off(f, &f->fetched.bytes.len, -1);
	assert_refused_off(f, &f->fetched.bytes.len, 1);
}

/* Its memory was read over a link: what counts are its slot before and its promise after. */
TEST(test_over_a_link, struct fixture *f)
{
	struct ps_direct_read_result seen = { EPOCH, LEFT, true };

	f->fetched = (struct ps_fetch_answer){ .seen = &seen, .bytes = { LENGTH, NULL } };
	assert_taken(f);
	seen.promised = false;
	assert_refused(f);
	seen.promised = true;
	assert_refused_off(f, &seen.epoch, -1);
	assert_refused_off(f, &seen.seq, -1);
	seen.seq++;
	assert_taken(f);
	assert_refused_off(f, &f->fetched.bytes.len, -1);
}
