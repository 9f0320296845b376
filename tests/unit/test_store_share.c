/*
 * test_store_share.c - owners that were given the memory itself: whether they are dead or may
 * live, and copying a store that runs (I5).
 */
#include "bank_rig.h"

struct unit_fixture unit_fixture = { setup_shared_bank, teardown };

static uint8_t *data_of(struct peer *peer)
{
	return session_memory(&peer->session, PS_REGION_SEGMENT, 0, BANK_SIZE, false);
}

static int claim_quiesced(struct mirror *mirror, struct peer *peer, uint64_t epoch, uint8_t owner,
                          Perseas__ClaimReply *reply)
{
	Perseas__ClaimRequest request = PERSEAS__CLAIM_REQUEST__INIT;

	perseas__claim_reply__init(reply);
	request.store = (char *)"bank";
	request.epoch = epoch;
	request.owner = OWNER(owner);
	request.takeover = true;
	request.quiesced = true;
	request.shared = true;
	return store_claim(mirror->stores, &peer->session, &request, reply, &mirror->why);
}

/* The daemon may crash right after it gave memory away. */
TEST(what_is_given_is_in_the_header_first, struct mirror *mirror)
{
	assert_true(mirror_header(mirror, "bank")->shared);
	mirror_restart(mirror);
	assert_true(mirror_header(mirror, "bank")->shared);
}

/* The owner gave its memory back in so many words. */
TEST(a_released_image_is_nobodys, struct mirror *mirror)
{
	assert_int_equal(store_release(&holder.session, &mirror->why), 0);
	assert_false(mirror_header(mirror, "bank")->shared);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 9, 2, &granted), 0);
	assert_false(granted.copied);
}

/* kill -9 of an owner: its connection ends, and its pidfd says that it is dead. */
TEST(a_dead_owners_image_is_taken_in_place, struct mirror *mirror)
{
	struct writer writer;
	uint8_t *data = data_of(&holder);

	writer_init(&writer, &holder.session);
	writer_write(&writer, 0, 0, "torn", 4, WRITE_RECORD | WRITE_DATA);
	store_session_ended(&holder.session);
	holder.alive = false;
	assert_int_equal(mirror_share(mirror, &rival, "bank", 9, 2, &granted), 0);
	assert_false(granted.copied);
	assert_true(granted.undone);
	assert_ptr_equal(data_of(&rival), data);
	assert_memory_equal(data, "made", 4);
}

/* An owner's connection broke, but its process goes on: it may write at any time. */
TEST(an_image_that_may_be_written_is_copied_away, struct mirror *mirror)
{
	struct writer writer;
	uint8_t kept[BANK_SIZE];
	uint64_t generation;

	writer_init(&writer, &holder.session);
	generation = mirror_header(mirror, "bank")->generation;
	store_session_ended(&holder.session);
	memcpy(kept, writer.data[0], BANK_SIZE);
	writer_write(&writer, 0, 0, "torn", 4, WRITE_RECORD | WRITE_DATA);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 9, 2, &granted), 0);
	assert_true(granted.copied);
	assert_true(granted.undone);
	assert_int_equal(granted.slot->seq, 1);
	assert_int_equal(granted.header->generation, generation + 1);
	assert_false(granted.header->shared);
	assert_ptr_not_equal(data_of(&rival), writer.data[0]);
	assert_memory_equal(data_of(&rival), kept, BANK_SIZE);
}

/* An owner of memory that lives on looks at its promise page after each slot. */
struct old_page {
	struct mirror *mirror;
	const struct ps_promise *page;
	uint64_t epoch;
};

static void look_at_page(void *arg)
{
	struct old_page *old = arg;

	old->epoch = old->page->epoch;
}

/* The same owner claims again over another connection, while its first memory is still mapped and
 * may be written. */
TEST(memory_that_was_copied_away_acknowledges_nothing, struct mirror *mirror)
{
	struct old_page old = { .mirror = mirror };
	const struct ps_promise *fresh;

	old.page = (void *)session_memory(&holder.session, PS_REGION_PROMISE, 0, 8, false);
	assert_int_equal(old.page->epoch, BANK_EPOCH);
	memory_heap_on_fence(mirror->memory, look_at_page, &old);
	assert_int_equal(mirror_share(mirror, &rival, "bank", BANK_EPOCH, BANK_OWNER, &granted), 0);
	assert_true(granted.copied);
	assert_int_equal(old.epoch, UINT64_MAX);
	fresh = (void *)session_memory(&rival.session, PS_REGION_PROMISE, 0, 8, false);
	assert_int_equal(fresh->epoch, BANK_EPOCH);
}

/* The owner says that it holds no memory any more; another owner cannot say so for it. */
TEST(only_the_owner_itself_is_believed_to_be_quiesced, struct mirror *mirror)
{
	assert_int_equal(claim_quiesced(mirror, &rival, BANK_EPOCH, BANK_OWNER, &granted), 0);
	assert_false(granted.copied);
	assert_int_equal(claim_quiesced(mirror, &holder, 9, 2, &granted), 0);
	assert_true(granted.copied);
}

/* A claim is promised and then fails; the memory is still with the owner before. The second
 * owner comes again and says, rightly, that it holds none. */
TEST(a_failed_claim_does_not_make_its_owner_the_holder, struct mirror *mirror)
{
	memory_heap_set_limit(mirror->memory, 12000);
	assert_int_equal(mirror_share(mirror, &rival, "bank", 9, 2, NULL), -STATUS(NO_MEMORY));
	assert_int_equal(mirror_header(mirror, "bank")->promised_epoch, 9);
	memory_heap_set_limit(mirror->memory, 0);
	mirror_restart(mirror);
	assert_int_equal(claim_quiesced(mirror, &rival, 9, 2, &granted), 0);
	assert_true(granted.copied);
}

/* There is no memory for the copy, until the old owner dies. */
TEST(without_memory_for_a_copy_only_the_promise_changes, struct mirror *mirror)
{
	memory_heap_set_limit(mirror->memory, 40000);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 9, 2, NULL), -STATUS(BUSY));
	assert_int_equal(mirror_takeover(mirror, &rival, "bank", 9, 2, NULL), -STATUS(NO_MEMORY));
	assert_int_equal(memory_heap_pieces(mirror->memory), bank_pieces);
	assert_true(mirror_header(mirror, "bank")->shared);
	holder.alive = false;
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 9, 2, &granted), 0);
	assert_false(granted.copied);
}

/* A daemon that started again knows of no process: the memory may be with one that lives. */
TEST(after_a_restart_a_holder_is_taken_to_be_alive, struct mirror *mirror)
{
	holder.alive = false;
	mirror_restart(mirror);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 9, 2, &granted), 0);
	assert_true(granted.copied);
	store_session_ended(&rival.session);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 10, 2, &granted), 0);
	assert_false(granted.copied);
}

/* The owner's last transaction became durable between the promise and the reading. */
static void write_one_more(void *arg)
{
	writer_write(arg, 0, 0, "last", 4, WRITE_ALL);
}

TEST(a_slot_before_the_fence_is_in_the_copy, struct mirror *mirror)
{
	struct writer writer;

	writer_init(&writer, &holder.session);
	memory_heap_on_fence(mirror->memory, write_one_more, &writer);
	assert_int_equal(mirror_takeover(mirror, &rival, "bank", 9, 2, &granted), 0);
	assert_int_equal(granted.slot->seq, 2);
	assert_memory_equal(data_of(&rival), "last", 4);
}

/* The copy includes the log's past, which a resync by delta needs. */
TEST(the_copy_keeps_the_history, struct mirror *mirror)
{
	struct writer writer;
	struct ps_image view = { .ring_size = PS_LOG_MIN };
	const struct ps_record *record;

	writer_init(&writer, &holder.session);
	for (int i = 0; i < 3; i++)
		writer_write(&writer, 0, 8, "12345678", 8, WRITE_ALL);
	assert_int_equal(mirror_takeover(mirror, &rival, "bank", 9, 2, &granted), 0);
	view.log = session_memory(&rival.session, PS_REGION_LOG, 0, 1, false);
	record = ps_image_record_at(&view, granted.slot->last);
	assert_non_null(record);
	assert_int_equal(record->seq, 4);
	record = ps_image_record_at(&view, record->previous);
	assert_non_null(record);
	assert_int_equal(record->seq, 3);
}

/*
 * An owner that ignores its promise, as a hostile one would, writes transactions as fast as it
 * can. Each is known from its number alone.
 */
struct runner {
	struct writer writer;
	bool stop;
	uint64_t done;
	int pace; /* the higher, the slower */
};

enum { WIDE_SIZE = 1 << 20, WIDE_WORDS = WIDE_SIZE / 8 };

static uint64_t place_of(uint64_t number)
{
	return number * 0x9e3779b97f4a7c15u % (WIDE_WORDS - 1);
}

static void *run_owner(void *arg)
{
	struct runner *runner = arg;

	while (!__atomic_load_n(&runner->stop, __ATOMIC_RELAXED)) {
		uint64_t number = runner->done, pair[2] = { number, ~number };

		writer_write(&runner->writer, 1, place_of(number) * 8, pair, sizeof(pair),
		             WRITE_ALL);
		__atomic_store_n(&runner->done, number + 1, __ATOMIC_RELAXED);
		for (volatile int pace = 0; pace < runner->pace; pace++)
			;
	}
	return NULL;
}

/* Applies `count` transactions to zeroed memory. */
static void replay(uint64_t *words, uint64_t count)
{
	memset(words, 0, WIDE_SIZE);
	for (uint64_t number = 0; number < count; number++) {
		words[place_of(number)] = number;
		words[place_of(number) + 1] = ~number;
	}
}

static uint8_t *wide_of(struct peer *peer)
{
	return session_memory(&peer->session, PS_REGION_SEGMENT + 1, 0, WIDE_SIZE, false);
}

/* Takes over from an owner that never stops. Returns true if the image was copied. */
static bool take_over_from(struct mirror *mirror, struct peer *owner, uint64_t epoch, int pace,
                           struct peer *next)
{
	static uint64_t expected[WIDE_WORDS];
	struct runner runner = { .pace = pace };
	Perseas__ClaimReply reply;
	uint64_t before;
	pthread_t thread;
	int ret;

	memset(wide_of(owner), 0, WIDE_SIZE);
	writer_init(&runner.writer, &owner->session);
	writer_adopt(&runner.writer, epoch);
	before = runner.writer.slot.seq;
	assert_int_equal(pthread_create(&thread, NULL, run_owner, &runner), 0);
	while (__atomic_load_n(&runner.done, __ATOMIC_RELAXED) < 50)
		;
	memory_heap_keep_removed(mirror->memory, true);
	ret = mirror_takeover(mirror, next, "bank", epoch + 1, 2, &reply);
	__atomic_store_n(&runner.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	memory_heap_keep_removed(mirror->memory, false);
	owner->alive = false;
	if (ret == 0) {
		replay(expected, reply.slot->seq - before);
		assert_memory_equal(wide_of(next), expected, WIDE_SIZE);
	} else {
		assert_int_equal(ret, -STATUS(BUSY));
	}
	return ret == 0;
}

/* Takeovers of a store whose owner never stops, and writes so fast that its log laps during a
 * copy, or slower. */
TEST(a_copy_of_a_store_that_runs_is_one_of_its_states, struct mirror *mirror)
{
	unsigned copied = 0;

	assert_int_equal(peer_add(&holder, &mirror->why, 1, "wide", WIDE_SIZE), 0);
	assert_int_equal(peer_publish(&holder, &mirror->why, 1, 1), 0);
	assert_int_equal(store_release(&holder.session, &mirror->why), 0);
	for (uint64_t epoch = 10; epoch < 90; epoch += 4) {
		peer_init(&holder);
		assert_int_equal(mirror_share(mirror, &holder, "bank", epoch, 1, NULL), 0);
		copied += take_over_from(mirror, &holder, epoch, 500 << epoch % 16 / 2, &rival);
		store_session_ended(&rival.session);
		assert_int_equal(mirror_claim(mirror, &rival, "bank", epoch + 2, 2, NULL), 0);
		assert_int_equal(store_release(&rival.session, &mirror->why), 0);
	}
	assert_true(copied > 0);
}

/* The bank of uid:7, which says that it gave its memory back; what uid:`next`'s claim finds. */
static bool is_copied_after_release(struct mirror *mirror, enum memory_sharing whose,
                                    const char *next)
{
	store_session_ended(&holder.session);
	peer_init(&holder);
	strcpy(holder.session.identity.name, "uid:7");
	assert_int_equal(mirror_share(mirror, &holder, "bank", BANK_EPOCH + 1, 2, &granted), 0);
	memory_heap_set_whose(mirror->memory, whose);
	assert_int_equal(store_release(&holder.session, &mirror->why), 0);
	strcpy(rival.session.identity.name, next);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 99, 3, &granted), 0);
	assert_string_equal(mirror_header(mirror, "bank")->sharer,
	                    whose == MEMORY_SHARING_UNKNOWN && !granted.copied ? "uid:7" : "");
	return granted.copied;
}

/* The kernel knows whether a process still maps the memory, whatever the owner said. Where the
 * kernel cannot say, the word of the owner counts only for claims of its own identity. */
TEST(released_memory_is_taken_in_place_where_nobody_has_it, struct mirror *mirror)
{
	static const struct {
		enum memory_sharing whose;
		const char *next;
		bool copied;
	} cases[] = {
		{ MEMORY_SHARED, "uid:7", true },
		{ MEMORY_UNSHARED, "uid:8", false },
		{ MEMORY_SHARING_UNKNOWN, "uid:8", true },
		{ MEMORY_SHARING_UNKNOWN, "uid:7", false },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (is_copied_after_release(mirror, cases[i].whose, cases[i].next) !=
		    cases[i].copied)
			fail_msg("case %u", i);
		mirror = unit_begin_again();
	}
}

/* A process with the memory still lives, but has given everything back. */
TEST(a_process_that_lives_without_the_memory_is_no_holder, struct mirror *mirror)
{
	memory_heap_set_whose(mirror->memory, MEMORY_UNSHARED);
	assert_int_equal(mirror_takeover(mirror, &rival, "bank", 9, 2, &granted), 0);
	assert_false(granted.copied);
}

/* The owner cut its image short, and went. */
TEST(memory_that_was_cut_short_is_damaged_for_the_next_one, struct mirror *mirror)
{
	memory_heap_set_whose(mirror->memory, MEMORY_TRUNCATED);
	assert_int_equal(mirror_takeover(mirror, &rival, "bank", 9, 2, &granted), -STATUS(DAMAGED));
	assert_non_null(strstr(mirror->why.text, "cut its memory short"));
}

/* The patience that remained when the owner's end was last waited for. */
static uint32_t patience;

static void end_in_time(struct peer *peer, uint32_t *left_ms)
{
	patience = *left_ms;
	*left_ms -= 1000;
	peer->alive = false;
}

/* Its connection has ended already, or ends meanwhile. */
static void end_with_connection(struct peer *peer, uint32_t *left_ms)
{
	end_in_time(peer, left_ms);
	store_session_ended(&peer->session);
}

TEST_WITH(an_image_is_taken_in_place_once_its_holder_has_ended, setup_bank, teardown,
          struct mirror *mirror)
{
	void (*const ends[])(struct peer *, uint32_t *) = { end_in_time, end_with_connection };

	for (unsigned i = 0; i < 3; i++) {
		store_session_ended(&holder.session);
		peer_init(&holder);
		assert_int_equal(mirror_share(mirror, &holder, "bank", 10 + 2 * i, 1, NULL), 0);
		holder.on_await = ends[i % 2];
		if (i == 2)
			store_session_ended(&holder.session);
		assert_int_equal(mirror_takeover(mirror, &rival, "bank", 11 + 2 * i, 2, &granted),
		                 0);
		assert_false(granted.copied);
		assert_int_equal(patience, 5000);
		store_session_ended(&rival.session);
	}
}

static void come_back(struct peer *peer, uint32_t *left_ms)
{
	patience = *left_ms;
	*left_ms -= 3000;
	peer->silent_ms = 0;
}

static void stay_for_ever(struct peer *peer, uint32_t *left_ms)
{
	(void)peer;
	patience = *left_ms;
	*left_ms = 0;
}

static void fail_to_wait(struct peer *peer, uint32_t *left_ms)
{
	(void)peer;
	(void)left_ms;
	fail_msg("it is waited for again");
}

/* Its silence was over when the wait was: a claim finds everything anew then. How long claims
 * waited counts together, so that no process holds up one after the other. */
TEST(claims_wait_for_a_holder_once, struct mirror *mirror)
{
	stores_set_owner_timeout(mirror->stores, 5000);
	holder.silent_ms = 6000;
	holder.on_await = come_back;
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 9, 2, NULL), -STATUS(BUSY));
	assert_int_equal(patience, 5000);
	assert_int_equal(mirror_header(mirror, "bank")->promised_epoch, BANK_EPOCH);
	holder.on_await = stay_for_ever;
	memory_heap_set_limit(mirror->memory, 1);
	assert_int_equal(mirror_takeover(mirror, &rival, "bank", 9, 2, NULL), -STATUS(NO_MEMORY));
	assert_int_equal(patience, 2000);
	memory_heap_set_limit(mirror->memory, 0);
	holder.on_await = fail_to_wait;
	assert_int_equal(mirror_takeover(mirror, &rival, "bank", 10, 2, &granted), 0);
	assert_true(granted.copied);
}
