/*
 * contract_fabric.c - the clauses F1 to F20. test_contract_fabric.c and
 * test_contract_fabric_sim.c run each on every fabric. No clause may use what is not in
 * client/core/fabric.h or offered by the stage.
 */
#include "contract_clause.h"

enum { MANY = 600 }; /* writes of one chain: more than a frame or a device takes at once */

/* F1, F12 */
static void groups_and_chains_arrive_in_their_order(struct fabric_stage *s)
{
	const uint64_t until = s->now(s) + FAR;
	struct ps_link *link = attach(s);
	struct stage_chains c;
	struct stage_watch w = { .stage = s, .chains = &c };
	int told = 0;

	CHECK(link);
	stage_fill(s, &c);
	stop(s);
	if (s->watch)
		s->watch(s, stage_look, &w);
	for (unsigned i = 0; i < STAGE_CHAINS; i++)
		CHECK(s->fabric->post(link, &c.chain[i]) == PS_LINK_OK);
	while (told < STAGE_CHAINS && s->now(s) < until) {
		int n = s->fabric->poll(link);

		CHECK(n >= 0);
		told += n;
		for (int i = 0; i < told; i++)
			CHECK(stage_is_whole(s, &c, (unsigned)i));
		step(s);
		stage_look(&w);
		CHECK(!w.wrong);
	}
	CHECK(told == STAGE_CHAINS);
	CHECK(w.between > 0);
	CHECK(s->fabric->poll(link) == 0);
	s->fabric->detach(link);
}

/* F1, F12, F19: record alone, data alone, a slot alone, each of them with the slot, very many
 * writes; and what says where they go is the caller's again at once. */
static void chains_of_every_shape_complete_once(struct fabric_stage *s)
{
	static const struct {
		unsigned count, undo;
		bool slot;
	} shapes[] = { { 2, 2, 0 }, { 2, 0, 0 }, { 0, 0, 1 },       { 2, 2, 1 },
		       { 2, 0, 1 }, { 3, 1, 0 }, { MANY, MANY, 0 }, { MANY, 5, 1 } };
	static struct ps_write writes[MANY], handed[MANY];
	const struct ps_write slot = { s->ring, STAGE_SLOT_AT, PS_REGION_LOG, STAGE_SLOT };
	struct ps_link *link = attach(s);

	CHECK(link);
	for (unsigned i = 0; i < MANY; i++)
		writes[i] = (struct ps_write){ s->ring + i, 64 * i, PS_REGION_SEGMENT, 1 };
	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct ps_chain chain = { memcpy(handed, writes, sizeof(writes)), shapes[i].count,
			                  shapes[i].undo,
			                  shapes[i].slot ? slot : (struct ps_write){ 0 } };
		const uint8_t value = (uint8_t)(i + 1);

		memset(s->ring, value, PS_PAGE);
		CHECK(s->fabric->post(link, &chain) == PS_LINK_OK);
		memset(handed, 0xee, sizeof(handed));
		memset(&chain, 0xee, sizeof(chain));
		CHECK(completes(s, link, 1));
		for (unsigned w = 0; w < shapes[i].count; w++)
			CHECK(stage_there(s, &writes[w], value) == 1);
		CHECK(stage_there(s, &slot, value) == (shapes[i].slot ? STAGE_SLOT : 0));
		CHECK(s->fabric->poll(link) == 0);
	}
	s->fabric->detach(link);
}

/* F11, F4, F15 */
static void post_waits_for_nobody(struct fabric_stage *s)
{
	struct ps_link *link = attach(s);
	struct ps_write write = { s->ring, 0, PS_REGION_SEGMENT, FLOOD };
	struct ps_chain chain = { &write, 1, 0, { 0 } };
	struct pollfd fd;

	CHECK(link);
	memset(s->ring, 7, FLOOD);
	stop(s);
	for (unsigned i = 0; i < s->flood; i++)
		CHECK(s->fabric->post(link, &chain) == PS_LINK_OK);
	if (s->stop) {
		CHECK(s->fabric->poll(link) == 0);
		CHECK(s->fabric->waits(link, &fd));
	}
	go(s);
	CHECK(completes(s, link, (int)s->flood));
	CHECK(stage_there(s, &write, 7) == FLOOD);
	CHECK(!s->fabric->waits(link, &fd));
	s->fabric->detach(link);
}

/* F6 */
static void what_was_copied_may_change_at_once(struct fabric_stage *s)
{
	struct ps_link *link = attach(s);
	struct stage_chains c;

	CHECK(link);
	stage_fill(s, &c);
	for (unsigned i = 0; i < STAGE_CHAINS; i++)
		CHECK(s->fabric->post(link, &c.chain[i]) == PS_LINK_OK);
	if (!s->fabric->staged)
		memset(s->ring, 0xee, STAGE_RING);
	CHECK(completes(s, link, STAGE_CHAINS));
	for (unsigned i = 0; i < STAGE_CHAINS; i++)
		CHECK(stage_is_whole(s, &c, i));
	s->fabric->detach(link);
}

/* F4, F15: it comes long after anybody would have given it up. */
static void a_late_completion_counts_when_it_comes(struct fabric_stage *s)
{
	struct ps_link *link = attach(s);
	struct stage_chains c;
	struct pollfd fd;

	CHECK(link);
	stage_fill(s, &c);
	CHECK(!s->fabric->waits(link, &fd));
	stop(s);
	CHECK(s->fabric->post(link, &c.chain[0]) == PS_LINK_OK);
	if (s->stop) {
		CHECK(s->fabric->poll(link) == 0);
		CHECK(s->fabric->waits(link, &fd));
		CHECK(!s->pause(s, &fd, s->now(s) + s->short_ns));
		CHECK(s->fabric->poll(link) == 0);
	}
	go(s);
	CHECK(completes(s, link, 1));
	CHECK(!s->fabric->waits(link, &fd));
	CHECK(s->fabric->poll(link) == 0);
	s->fabric->detach(link);
}

/* Posts two chains and completes the first, without polling for it. */
static bool complete_one_of_two(struct fabric_stage *s, struct ps_link *link,
                                struct stage_chains *c)
{
	const uint64_t until = s->now(s) + FAR;

	stage_fill(s, c);
	stop(s);
	if (s->fabric->post(link, &c->chain[0]))
		return false;
	if (s->stop && s->fabric->post(link, &c->chain[1]))
		return false;
	while (!stage_is_whole(s, c, 0) && s->now(s) < until) {
		if (s->fabric->poll(link))
			return false;
		step(s);
	}
	/* Reads the slot, where only a read shows that it arrived. */
	step(s);
	step(s);
	return stage_is_whole(s, c, 0) && !stage_arrived(s, c, 5);
}

/* Checks that the link ended with this code, which is reported after the one chain, is visible at
 * once, and stays. */
static void ends_so(struct fabric_stage *s, struct ps_link *link, struct stage_chains *c, int with)
{
	uint8_t byte = 0xee;
	struct pollfd fd;
	int code;

	CHECK(await(s, link, 1, &code) == 1 && code == 1);
	if (s->stop) {
		CHECK(s->fabric->waits(link, &fd));
		CHECK(s->pause(s, &fd, s->now(s) + FAR));
	}
	CHECK(await(s, link, 1, &code) == 0);
	CHECK(code == with);
	if (s->fabric->waits(link, &fd))
		CHECK(s->pause(s, &fd, s->now(s) + FAR));
	go(s);
	let_pass(s);
	CHECK(s->fabric->post(link, &c->chain[2]) == with);
	CHECK(s->fabric->read(link, PS_REGION_SEGMENT, 0, &byte, 1, FAR) == with);
	CHECK(s->fabric->poll(link) == with);
	CHECK(s->fabric->poll(link) == with);
	CHECK(byte == 0xee);
	CHECK(stage_arrived(s, c, 6) == 0);
	s->fabric->detach(link);
}

/* F2, F3, F15 */
static void what_was_complete_is_told_before_the_break(struct fabric_stage *s)
{
	struct ps_link *link = attach(s);
	struct stage_chains c;

	CHECK(link);
	CHECK(complete_one_of_two(s, link, &c));
	s->cut(s);
	ends_so(s, link, &c, PS_LINK_BROKEN);
}

/* F2, F3, F15 */
static void what_was_complete_is_told_before_the_fence(struct fabric_stage *s)
{
	struct ps_link *link;
	struct stage_chains c;

	if (!s->fence)
		return;
	link = attach(s);
	CHECK(link);
	CHECK(complete_one_of_two(s, link, &c));
	s->fence(s);
	ends_so(s, link, &c, PS_LINK_FENCED);
}

/* F5 */
static void what_is_outside_of_a_region_is_refused(struct fabric_stage *s)
{
	const struct ps_write bad[] = {
		{ s->ring, STAGE_SEGMENT, PS_REGION_SEGMENT, 1 },
		{ s->ring, STAGE_SEGMENT - 7, PS_REGION_SEGMENT, 8 },
		{ s->ring, UINT64_MAX - 3, PS_REGION_SEGMENT, 8 },
		{ s->ring, 0, PS_REGION_SEGMENT + 1, 8 },
		{ s->ring, 0, PS_REGIONS_MAX, 8 },
		{ s->ring, 0, PS_REGION_PROMISE, 8 },
	};
	uint8_t bytes[8];

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]) && !s->trusts_places; i++) {
		struct ps_chain chain = { &bad[i], 1, 0, { 0 } };
		struct ps_link *link = attach(s);

		CHECK(link);
		CHECK(s->fabric->post(link, &chain) == PS_LINK_BROKEN);
		CHECK(s->fabric->poll(link) == PS_LINK_BROKEN);
		s->fabric->detach(link);
		if (bad[i].region == PS_REGION_PROMISE)
			continue;
		link = attach(s);
		CHECK(link);
		CHECK(s->fabric->read(link, bad[i].region, bad[i].offset, bytes, bad[i].length,
		                      FAR) == PS_LINK_BROKEN);
		CHECK(s->fabric->post(link, &chain) == PS_LINK_BROKEN);
		s->fabric->detach(link);
	}
}

/* F13: also behind more than the way to the mirror holds. */
static void a_read_sees_what_was_posted_before(struct fabric_stage *s)
{
	static uint8_t bytes[STAGE_SEGMENT];
	struct ps_link *link = attach(s);
	struct ps_write flood = { s->ring + STAGE_RING - FLOOD, STAGE_SEGMENT - FLOOD,
		                  PS_REGION_SEGMENT, FLOOD };
	struct ps_chain chain = { &flood, 1, 0, { 0 } };
	struct stage_chains c;
	uint8_t *memory;

	CHECK(link);
	memory = s->memory(s, PS_REGION_SEGMENT);
	for (unsigned i = 0; i < STAGE_SEGMENT; i++)
		memory[i] = (uint8_t)(i * 31 + (i >> 12));
	memset(s->ring + STAGE_RING - FLOOD, 9, FLOOD);
	stage_fill(s, &c);
	CHECK(s->fabric->post(link, &chain) == PS_LINK_OK);
	CHECK(s->fabric->post(link, &c.chain[0]) == PS_LINK_OK);
	CHECK(s->fabric->read(link, PS_REGION_SEGMENT, 0, bytes, STAGE_SEGMENT, FAR) == PS_LINK_OK);
	CHECK(stage_is_whole(s, &c, 0));
	CHECK(!memcmp(bytes, s->memory(s, PS_REGION_SEGMENT), STAGE_SEGMENT));
	CHECK(bytes[STAGE_SEGMENT - 1] == 9);
	CHECK(completes(s, link, 2));
	CHECK(s->fabric->read(link, PS_REGION_LOG, STAGE_SLOT_AT, bytes, STAGE_SLOT, FAR) ==
	      PS_LINK_OK);
	CHECK(!memcmp(bytes, c.chain[0].slot.src, STAGE_SLOT));
	CHECK(s->fabric->poll(link) == 0);
	s->fabric->detach(link);
}

/* F14, F2 */
static void what_is_read_too_late_goes_nowhere(struct fabric_stage *s)
{
	uint8_t bytes[2048], after[2048];
	struct ps_link *link = attach(s);
	struct stage_chains c;
	uint64_t until;

	CHECK(link);
	if (s->stop) {
		memset(s->memory(s, PS_REGION_SEGMENT) + 16384, 0x55, 16384);
		memset(bytes, 0xee, sizeof(bytes));
		CHECK(complete_one_of_two(s, link, &c));
		until = s->now(s) + s->short_ns;
		CHECK(s->fabric->read(link, PS_REGION_SEGMENT, 16384, bytes, sizeof(bytes),
		                      s->short_ns) == PS_LINK_BROKEN);
		CHECK(s->now(s) >= until && s->now(s) < until + FAR / 2);
		memcpy(after, bytes, sizeof(bytes));
		s->go(s);
		let_pass(s);
		CHECK(s->fabric->poll(link) == 1);
		CHECK(s->fabric->poll(link) == PS_LINK_BROKEN);
		CHECK(s->fabric->post(link, &c.chain[2]) == PS_LINK_BROKEN);
		let_pass(s);
		CHECK(!memcmp(after, bytes, sizeof(bytes)));
	}
	s->fabric->detach(link);
}

/* F14: another link is read over while the late bytes come. */
static void late_bytes_do_not_come_by_another_link(struct fabric_stage *s)
{
	struct ps_link *late = attach(s), *link;
	static uint8_t bytes[STAGE_SEGMENT];
	uint8_t *memory;

	CHECK(late);
	if (!s->stop) {
		s->fabric->detach(late);
		return;
	}
	memory = s->memory(s, PS_REGION_SEGMENT);
	memset(memory, 0x55, STAGE_SEGMENT / 2);
	memset(memory + STAGE_SEGMENT / 2, 0x66, STAGE_SEGMENT / 2);
	s->stop(s);
	CHECK(s->fabric->read(late, PS_REGION_SEGMENT, 0, bytes, STAGE_SEGMENT / 2, s->short_ns) ==
	      PS_LINK_BROKEN);
	s->go(s);
	link = attach(s);
	CHECK(link);
	CHECK(s->fabric->read(link, PS_REGION_SEGMENT, STAGE_SEGMENT / 2, bytes, STAGE_SEGMENT / 2,
	                      FAR) == PS_LINK_OK);
	CHECK(!memcmp(bytes, memory + STAGE_SEGMENT / 2, STAGE_SEGMENT / 2));
	s->fabric->detach(late);
	s->fabric->detach(link);
}

/* F16, F15 */
static void a_beat_tells_who_lives(struct fabric_stage *s)
{
	struct pollfd fd;
	struct ps_link *link;
	int code;

	if (!s->fabric->beat)
		return;
	link = attach(s);
	CHECK(link);
	for (unsigned i = 0; i < 3; i++) {
		s->fabric->beat(link);
		let_pass(s);
		CHECK(s->fabric->poll(link) == 0);
		CHECK(!s->fabric->waits(link, &fd));
	}
	stop(s);
	s->fabric->beat(link);
	CHECK(s->fabric->poll(link) == 0);
	CHECK(s->fabric->waits(link, &fd));
	s->cut(s);
	CHECK(await(s, link, 1, &code) == 0);
	CHECK(code == PS_LINK_BROKEN);
	s->fabric->detach(link);
}

/* Checks that each byte is the earlier or the present one: a write in flight may have arrived in
 * part. */
static bool was_read(struct fabric_stage *s, const uint8_t *bytes, const uint8_t *before)
{
	const uint8_t *now = s->memory(s, PS_REGION_SEGMENT);

	for (unsigned i = 0; i < STAGE_SEGMENT; i++)
		if (bytes[i] != before[i] && bytes[i] != now[i])
			return false;
	return true;
}

/* F20: a peek disturbs no write in flight, and one outside of a region breaks nothing. */
static void a_peek_changes_nothing(struct fabric_stage *s)
{
	static uint8_t bytes[STAGE_SEGMENT], before[STAGE_SEGMENT];
	struct ps_link *link = attach(s);
	const struct ps_fabric *fabric = s->fabric;
	struct stage_chains c;

	CHECK(link);
	if (fabric->peek) {
		stage_fill(s, &c);
		CHECK(fabric->post(link, &c.chain[0]) == PS_LINK_OK);
		memcpy(before, s->memory(s, PS_REGION_SEGMENT), STAGE_SEGMENT);
		CHECK(fabric->peek(link, PS_REGION_SEGMENT, 0, bytes, STAGE_SEGMENT) == PS_LINK_OK);
		CHECK(was_read(s, bytes, before));
		CHECK(fabric->peek(link, PS_REGION_SEGMENT, 1, bytes, STAGE_SEGMENT) ==
		      PS_LINK_BROKEN);
		CHECK(fabric->peek(link, PS_REGION_SEGMENT + 1, 0, bytes, 1) == PS_LINK_BROKEN);
		CHECK(completes(s, link, 1));
		CHECK(fabric->peek(link, PS_REGION_SEGMENT, 0, bytes, STAGE_SEGMENT) == PS_LINK_OK);
		CHECK(!memcmp(bytes, s->memory(s, PS_REGION_SEGMENT), STAGE_SEGMENT));
		CHECK(fabric->read(link, PS_REGION_SEGMENT, 0, bytes, 1, FAR) == PS_LINK_OK);
	}
	fabric->detach(link);
}

/* F20 */
static void a_peek_counts_while_the_promise_is_ours(struct fabric_stage *s)
{
	for (unsigned i = 0; i < 2 && s->fabric->peek; i++) {
		void (*end)(struct fabric_stage * stage) = i ? s->fence : s->cut;
		struct ps_link *link;
		uint8_t byte;

		/* Some fabrics report a fence only by the link's end. */
		if (!end)
			continue;
		link = attach(s);
		CHECK(link);
		end(s);
		CHECK(s->fabric->peek(link, PS_REGION_SEGMENT, 0, &byte, 1) == PS_LINK_BROKEN);
		s->fabric->detach(link);
	}
}

/* F21, F1: polls only after everything arrived. */
static void what_is_posted_under_a_cork_is_sent_at_its_end(struct fabric_stage *s)
{
	const uint64_t until = s->now(s) + FAR;
	struct ps_link *link;
	struct stage_chains c;

	if (!s->fabric->cork)
		return;
	link = attach(s);
	CHECK(link);
	stage_fill(s, &c);
	s->fabric->cork(link, true);
	for (unsigned i = 0; i < STAGE_CHAINS; i++)
		CHECK(s->fabric->post(link, &c.chain[i]) == PS_LINK_OK);
	s->fabric->cork(link, false);
	while (!stage_is_whole(s, &c, STAGE_CHAINS - 1) && s->now(s) < until)
		let_pass(s);
	for (unsigned i = 0; i < STAGE_CHAINS; i++)
		CHECK(stage_is_whole(s, &c, i));
	CHECK(completes(s, link, STAGE_CHAINS));
	CHECK(s->fabric->poll(link) == 0);
	s->fabric->detach(link);
}

/* F18 */
static void nothing_is_sent_after_detach(struct fabric_stage *s)
{
	struct ps_link *link = attach(s);
	struct ps_write write = { s->ring, 0, PS_REGION_SEGMENT, FLOOD };
	struct ps_chain chain = { &write, 1, 0, { 0 } };
	const uint8_t *memory;

	CHECK(link);
	memset(s->ring, 1, FLOOD);
	stop(s);
	for (unsigned i = 0; i < s->flood; i++)
		CHECK(s->fabric->post(link, &chain) == PS_LINK_OK);
	step(s);
	s->fabric->detach(link);
	s->fabric->detach(NULL);
	memset(s->ring, 0xee, STAGE_RING);
	go(s);
	let_pass(s);
	memory = s->memory(s, PS_REGION_SEGMENT);
	for (unsigned i = 0; i < FLOOD; i++)
		CHECK(memory[i] <= 1);
	CHECK(s->left(s) == 0);
}

#define CLAUSE(name)        \
	{                   \
#name, name \
	}

const struct fabric_clause fabric_clauses[] = {
	CLAUSE(groups_and_chains_arrive_in_their_order),
	CLAUSE(chains_of_every_shape_complete_once),
	CLAUSE(post_waits_for_nobody),
	CLAUSE(what_was_copied_may_change_at_once),
	CLAUSE(a_late_completion_counts_when_it_comes),
	CLAUSE(what_was_complete_is_told_before_the_break),
	CLAUSE(what_was_complete_is_told_before_the_fence),
	CLAUSE(what_is_outside_of_a_region_is_refused),
	CLAUSE(a_read_sees_what_was_posted_before),
	CLAUSE(what_is_read_too_late_goes_nowhere),
	CLAUSE(late_bytes_do_not_come_by_another_link),
	CLAUSE(attach_goes_by_steps),
	CLAUSE(attach_ends_by_its_time),
	CLAUSE(attach_tells_whose_the_promise_is),
	CLAUSE(a_grant_that_cannot_be_changes_nothing),
	CLAUSE(a_beat_tells_who_lives),
	CLAUSE(a_peek_changes_nothing),
	CLAUSE(a_peek_counts_while_the_promise_is_ours),
	CLAUSE(what_is_posted_under_a_cork_is_sent_at_its_end),
	CLAUSE(nothing_is_sent_after_detach),
};
const unsigned fabric_clause_count = sizeof(fabric_clauses) / sizeof(fabric_clauses[0]);
