/*
 * test_forward.c - mirrors that are only behind are sent what they missed when a store is opened.
 */
#include "mend_rig.h"

struct unit_fixture unit_fixture = { owner_setup_three, owner_teardown };

/* A mirror missed some transactions of an owner that it knew: it is sent them. */
TEST(test_behind_is_sent_what_it_missed, struct owner *o)
{
	direct_crash(o->d, 2);
	put_many(o, 10, 1);
	come_back(o, 2);
	assert_mended(o, 1, 0, 0);
	assert_int_equal(owner_stat(o).live, 3);
	assert_non_null(strstr(perseas_report(o->p), "sim://2: sent the transactions that it "
	                                             "missed"));
	assert_carries(o, 2, 0);
}

/* One mirror sends the other what it alone holds, which is always a prefix of the history. */
TEST_WITH(test_forward_where_a_delta_could_harm, setup_two, owner_teardown, struct owner *o)
{
	o->d->mirrors[1].writes_left = 0;
	put_in_doubt(o, 0, 10, 1);
	owner_next(o);
	assert_int_equal(o->bytes[0], 1);
	assert_mended(o, 1, 0, 0);
	assert_mirrored(o, 1);
}

/* A mirror's slot names another place for the next record than its history has. A claim would look
 * there, and not roll the record back; so records are not sent one by one. */
TEST(test_forward_only_where_a_claim_would_look, struct owner *o)
{
	Perseas__Header *header;
	struct ps_slot *slot;
	char name[40];
	uint8_t *log;

	direct_crash(o->d, 2);
	header = header_of(o, 2);
	snprintf(name, sizeof(name), "log.%llu", (unsigned long long)header->generation);
	perseas__header__free_unpacked(header, NULL);
	log = memory_heap_piece(o->d->mirrors[2].memory, STORE, name, NULL);
	assert_non_null(log);
	for (int i = 0; i < 2; i++) {
		slot = (struct ps_slot *)(void *)(log + ps_slot_offset(i));
		ps_slot_encode(slot, slot->epoch, slot->seq, slot->next + PS_ALIGN, slot->last);
	}
	put_many(o, 10, 1);
	come_back(o, 2);
	assert_int_equal(owner_stat(o).mended_forward, 0);
	assert_int_equal(owner_stat(o).live, 3);
	assert_carries(o, 2, 0);
}

enum { MISSED = 4 };

/* Overlapping transactions of several sizes; contents[i] is the segment after i of them. */
static void put_over(struct owner *o, uint8_t contents[][SIZE])
{
	for (unsigned i = 0; i < MISSED; i++) {
		memcpy(contents[i], o->bytes, SIZE);
		put_in_doubt(o, 100 + 7 * (i % 3), 60 - 9 * i, (uint8_t)(0xa0 + i));
	}
	memcpy(contents[MISSED], o->bytes, SIZE);
}

static void break_two(void *arg)
{
	struct owner *o = arg;

	o->d->mirrors[1].writes_left = o->d->mirrors[2].writes_left = 0;
}

/*
 * Mirror 0 alone holds some transactions; the next owner's session with mirror 1 breaks after
 * `writes` of the writes that bring it forward, that with mirror 2 at the first, and the owner
 * dies. Without mirror 0 the state is one of those that there were. True: mirror 1 had all, so
 * that the open went on without mirror 2.
 */
static bool break_forward(struct owner *o, int writes)
{
	uint8_t contents[MISSED + 1][SIZE];
	unsigned i = 0;
	int rc;

	put_many(o, 5, (uint8_t)writes);
	o->d->mirrors[1].hold = o->d->mirrors[2].hold = DIRECT_HOLD_WRITES;
	put_over(o, contents);
	owner_die(o);
	o->d->mirrors[1].writes_left = writes;
	o->d->mirrors[2].writes_left = 0;
	o->options.open_timeout_ms = 1;
	owner_at_pause(o, break_two);
	rc = owner_open(o, 0);
	o->d->on_pause = NULL;
	o->options.open_timeout_ms = 0;
	if (!rc)
		owner_die(o);
	o->d->mirrors[1].writes_left = o->d->mirrors[2].writes_left = -1;
	direct_crash(o->d, 0);
	owner_reopen(o);
	while (i <= MISSED && memcmp(o->bytes, contents[i], SIZE))
		i++;
	assert_true(i <= MISSED);
	if (!rc)
		assert_int_equal(i, MISSED);
	direct_start(o->d, 0);
	owner_reopen(o);
	for (unsigned k = 0; k < 3; k++)
		assert_mirrored(o, k);
	return !rc;
}

TEST(test_forward_breaks, struct owner *o)
{
	int writes = 0;

	while (!break_forward(o, writes))
		writes++;
	/* Record, data and slot of each, and the slot of the next owner. */
	assert_in_range(writes, 3 * MISSED + 1, 100);
}
