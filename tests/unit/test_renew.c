/*
 * test_renew.c - another owner claims mirrors of an owner that is open, and goes away at some
 * point: the one before claims them again, and has lost nothing; unless the other one had adopted
 * the store, or lives. Each rule of a renewal (PROTOCOL.md) has a test that fails without it.
 */
#include "resync_rig.h"

#include "../../server/store/store.h"

struct unit_fixture unit_fixture = { setup, teardown };

/* Where the attempts of another owner to open the store end: at this kind of request to each
 * mirror, or at a write; 0: nowhere. */
struct fate {
	struct direct *d;
	int at[3];
	bool at_write[3];
};

static void befall(void *arg)
{
	const struct fate *fate = arg;

	for (unsigned i = 0; i < 3; i++) {
		fate->d->mirrors[i].break_at = fate->at[i];
		fate->d->mirrors[i].writes_left = fate->at_write[i] ? 0 : -1;
	}
	/* It gives up at some time. */
	fate->d->now += 1000000000;
}

/* Another owner comes, and dies like that. */
static void die_like(struct fixture *f, struct fate fate)
{
	struct perseas_options options = f->o->options;
	perseas_t *second;

	options.flags = PERSEAS_TAKEOVER;
	options.open_timeout_ms = 1;
	fate.d = f->o->d;
	befall(&fate);
	f->o->d->on_pause = befall;
	f->o->d->on_pause_arg = &fate;
	assert_true(direct_open(f->o->d, STORE, &options, &second, &f->o->error) < 0);
	f->o->d->on_pause = NULL;
	memset(fate.at, 0, sizeof(fate.at));
	memset(fate.at_write, 0, sizeof(fate.at_write));
	befall(&fate);
}

/* The other owner claims all mirrors, adopts none, and dies. */
static void claim_all_and_die(struct fixture *f)
{
	die_like(f, (struct fate){ .at = { PERSEAS__REQUEST__BODY_CONFIRM } });
}

/* The other owner claims this one of three mirrors, and dies. */
static void claim_one_and_die(struct fixture *f, unsigned mirror)
{
	struct fate fate = { 0 };

	for (unsigned i = 0; i < 3; i++)
		fate.at[i] = i == mirror ? PERSEAS__REQUEST__BODY_CONFIRM
		                         : PERSEAS__REQUEST__BODY_CLAIM;
	die_like(f, fate);
}

/* The other owner adopts its state on the first mirror, and dies. */
static void adopt_one_and_die(struct fixture *f)
{
	die_like(f, (struct fate){ .at_write = { false, true, true } });
}

/* A claim of one mirror, by nobody's library, that stays until it is disconnected. */
struct claim {
	struct ps_env *env;
	struct ps_control *control;
	uint8_t token[PS_ID_SIZE];
};

static struct claim claim_alone(struct fixture *f, unsigned mirror, uint64_t epoch)
{
	uint8_t owner[PS_ID_SIZE] = { 77, 1 };
	struct claim claim = { .env = direct_env(f->o->d) };
	Perseas__ClaimRequest body = PERSEAS__CLAIM_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	Perseas__Reply *reply;
	struct ps_error error;
	unsigned count;

	body.store = (char *)STORE;
	body.epoch = epoch;
	body.owner = (ProtobufCBinaryData){ PS_ID_SIZE, owner };
	body.takeover = true;
	request.body_case = PERSEAS__REQUEST__BODY_CLAIM;
	request.claim = &body;
	claim.control = claim.env->ops->connect(claim.env, &f->o->p->mirrors[mirror].address,
	                                        &error);
	assert_non_null(claim.control);
	assert_int_equal(claim.env->ops->send(claim.control, &request, &error), 0);
	assert_int_equal(claim.env->ops->receive(claim.control, PS_NEVER, &reply, NULL, &count,
	                                         &error),
	                 0);
	assert_int_equal(reply->status, PERSEAS__STATUS__STATUS_OK);
	memcpy(claim.token, reply->claim->grant->token.data, PS_ID_SIZE);
	perseas__reply__free_unpacked(reply, NULL);
	return claim;
}

static void drop(struct claim *claim)
{
	claim->env->ops->disconnect(claim->control);
	claim->env->ops->free(claim->env);
}

/* The keeper goes some rounds. */
static void keep(struct fixture *f)
{
	for (unsigned i = 0; i < 30; i++)
		direct_keep(f->o->d, f->o->p);
}

/* All mirrors are live, promised to this owner alone, and hold what was acknowledged. */
static void assert_sound(struct fixture *f)
{
	for (unsigned i = 0; i < f->o->d->count; i++) {
		Perseas__Header *header = header_of(f, i);

		assert_int_equal(owner_state(f->o, i), PERSEAS_MIRROR_LIVE);
		assert_int_equal(header->promised_epoch, f->o->p->epoch);
		assert_memory_equal(header->promised_owner.data, f->o->p->owner, PS_ID_SIZE);
		perseas__header__free_unpacked(header, NULL);
		assert_image(f, i);
	}
}

static void assert_fenced(struct fixture *f)
{
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(f->o->p, 0, &tx), PERSEAS_EFENCED);
	assert_says(f->o, "close this handle");
	assert_int_equal(owner_stat(f->o).renewals, 0);
}

/* One mirror was claimed by an owner that got no further. */
TEST(test_a_dead_claimer_strands_no_mirror, struct fixture *f)
{
	const uint64_t before = owner_stat(f->o).epoch;

	claim_one_and_die(f, 1);
	assert_int_equal(put_big(f, 10, 500, 1), 0);
	keep(f);
	assert_int_equal(put_big(f, 400, 500, 2), 0);
	assert_sound(f);
	assert_int_equal(owner_stat(f->o).renewals, 1);
	/* Where nothing went through the ring, that commit did not. */
	assert_int_equal(owner_stat(f->o).resyncs, !f->o->d->staged);
	assert_true(owner_stat(f->o).epoch > before);
	assert_carries(f, 0);
}
TEST_ALSO(test_a_dead_claimer_strands_no_mirror, setup_direct, teardown);

/* All were, while a commit was on its way and another transaction was open: the one becomes
 * durable, and the other one can be committed. */
TEST(test_doubt_ends_and_transactions_stay_open, struct fixture *f)
{
	perseas_tx_t *open;

	assert_int_equal(put_big(f, 0, 50, 3), 0);
	assert_int_equal(perseas_begin(f->o->p, 0, &open), 0);
	assert_int_equal(perseas_set_range(open, f->big + 1000, 100), 0);
	memset(f->big + 1000, 0xab, 100);
	claim_all_and_die(f);
	assert_int_equal(put_big(f, 20, 50, 4), PERSEAS_EINDOUBT);
	assert_int_equal(perseas_set_range(open, f->big + 300000, 100), 0);
	memset(f->big + 300000, 0xcd, 100);
	keep(f);
	assert_int_equal(perseas_flush(f->o->p), 0);
	assert_sound(f);
	assert_int_equal(perseas_commit(open, 0), 0);
	memset(f->ledger->big + 1000, 0xab, 100);
	memset(f->ledger->big + 300000, 0xcd, 100);
	assert_sound(f);
	assert_int_equal(owner_stat(f->o).renewals, 1);
	assert_carries(f, 1);
}
TEST_ALSO(test_doubt_ends_and_transactions_stay_open, setup_direct, teardown);

/* A publish is in doubt, too; the ring does not have its contents. */
TEST(test_a_publishing_in_doubt_is_durable, struct fixture *f)
{
	void *addr;

	assert_int_equal(perseas_map(f->o->p, "new", 100, &addr), 0);
	memset(addr, 5, 100);
	for (unsigned i = 0; i < 3; i++)
		f->o->d->mirrors[i].break_at = PERSEAS__REQUEST__BODY_PUBLISH;
	claim_one_and_die(f, 0);
	for (unsigned i = 0; i < 3; i++)
		f->o->d->mirrors[i].break_at = PERSEAS__REQUEST__BODY_PUBLISH;
	assert_int_equal(perseas_publish(f->o->p), PERSEAS_EINDOUBT);
	for (unsigned i = 0; i < 3; i++)
		f->o->d->mirrors[i].break_at = 0;
	keep(f);
	assert_int_equal(perseas_flush(f->o->p), 0);
	assert_int_equal(owner_put(f->o, 0, 10, 1), 0);
	memset(f->ledger->accounts, 1, 10);
	assert_sound(f);
	assert_carries(f, 2);
	assert_int_equal(perseas_map(f->o->p, "new", 0, &addr), 0);
	assert_int_equal(((uint8_t *)addr)[99], 5);
}

/* The claimer lives: nothing happens while W mirrors do without it, and after it ended the mirror
 * is taken back. */
TEST(test_a_claimer_that_lives_is_left_alone, struct fixture *f)
{
	struct claim claim = claim_alone(f, 1, 5);

	assert_int_equal(put_big(f, 10, 500, 1), 0);
	keep(f);
	assert_int_equal(owner_state(f->o, 1), PERSEAS_MIRROR_FENCED);
	assert_int_equal(put_big(f, 10, 500, 2), 0);
	assert_int_equal(owner_stat(f->o).renewals, 0);
	drop(&claim);
	keep(f);
	assert_sound(f);
	assert_true(owner_stat(f->o).epoch > 5);
}

/* W cannot be had without those that he has. */
TEST(test_a_claimer_of_too_many_has_the_store, struct fixture *f)
{
	struct claim claim = claim_alone(f, 1, 5), other = claim_alone(f, 2, 5);

	assert_int_equal(put_big(f, 10, 500, 1), PERSEAS_EINDOUBT);
	keep(f);
	drop(&claim);
	drop(&other);
	keep(f);
	assert_fenced(f);
}

/* Checks that the next commit is in doubt, and the one after it fails because another owner has the
 * store. */
static void assert_cannot_renew(struct fixture *f)
{
	assert_int_equal(put_big(f, 10, 500, 1), PERSEAS_EINDOUBT);
	keep(f);
	assert_fenced(f);
}

/* Another owner adopted the store on one mirror only, and died: he may have shown it. */
TEST(test_an_adopted_store_is_anothers, struct fixture *f)
{
	adopt_one_and_die(f);
	assert_cannot_renew(f);
}

static int setup_any_acks(void **state)
{
	return setup_of(state, 3, 1, true);
}

/* With W = 1, R is all mirrors: the one on which another owner adopted is away, and no other knows
 * of it. */
TEST_WITH(test_fewer_than_r_decide_nothing, setup_any_acks, teardown, struct fixture *f)
{
	adopt_one_and_die(f);
	direct_crash(f->o->d, 0);
	assert_true(put_big(f, 10, 500, 1) < 0);
	keep(f);
	assert_true(put_big(f, 10, 500, 1) < 0);
	assert_int_equal(owner_stat(f->o).renewals, 0);
	direct_start(f->o->d, 0);
	keep(f);
	assert_fenced(f);
}

/* With W = 1, R is all mirrors. One of them goes away while it is claimed: the other two are W, and
 * may not know of an owner that adopted on the third. */
TEST_WITH(test_fewer_claims_than_r_adopt_nothing, setup_any_acks, teardown, struct fixture *f)
{
	claim_all_and_die(f);
	assert_true(put_big(f, 10, 500, 1) < 0);
	f->o->d->mirrors[0].break_at = PERSEAS__REQUEST__BODY_CLAIM;
	/* The fenced mirror is first asked under the old epoch. */
	f->o->d->mirrors[0].break_skip = 1;
	direct_keep(f->o->d, f->o->p);
	assert_true(f->o->p->is_renewing);
	assert_int_equal(f->o->d->mirrors[0].break_at, 0);
	assert_int_equal(owner_stat(f->o).live, 0);
	assert_int_equal(owner_stat(f->o).renewals, 0);
	keep(f);
	assert_int_equal(owner_stat(f->o).renewals, 1);
	assert_sound(f);
}

/* Counts of requests that reached the mirrors, in order, from the last claims on. */
struct order {
	unsigned claims, confirms; /* mirrors that were asked */
	unsigned renewed;          /* a bit for each that was claimed under a higher epoch */
	uint64_t above;
	bool slot_before_confirm;
};

static void note_request(void *arg, unsigned mirror, unsigned session, const uint8_t *bytes,
                         size_t len)
{
	struct order *order = arg;
	const char *why;
	Perseas__Request *request = ps_request_unpack(bytes, len, &why);

	(void)session;
	assert_non_null(request);
	if (request->body_case == PERSEAS__REQUEST__BODY_CLAIM) {
		order->claims++;
		order->confirms = 0;
		if (request->claim->epoch > order->above)
			order->renewed |= 1u << mirror;
	}
	order->confirms += request->body_case == PERSEAS__REQUEST__BODY_CONFIRM;
	perseas__request__free_unpacked(request, NULL);
}

static void note_write(void *arg, const struct direct_write *write)
{
	struct order *order = arg;

	(void)write;
	order->slot_before_confirm |= order->claims >= 3 && order->confirms < 3;
}

/* All mirrors are claimed under the higher epoch, else a third owner could claim some of them below
 * it. All say that they still are, before any is written to. */
TEST(test_all_confirm_before_the_first_adoption, struct fixture *f)
{
	struct order order = { .above = owner_stat(f->o).epoch };
	const struct direct_tap tap = { &order, note_request, note_write, NULL };

	claim_one_and_die(f, 1);
	assert_int_equal(put_big(f, 10, 500, 1), 0);
	f->o->d->tap = &tap;
	keep(f);
	f->o->d->tap = NULL;
	assert_int_equal(order.claims, 4); /* the fenced one was asked under the old epoch, too */
	assert_int_equal(order.renewed, 7);
	assert_false(order.slot_before_confirm);
	assert_sound(f);
}

/* Two of three break when they are adopted on: the owner does not go on with one, and claims all
 * again under a higher epoch. */
TEST(test_it_goes_on_with_w_only, struct fixture *f)
{
	uint64_t tried;

	claim_all_and_die(f);
	assert_int_equal(put_big(f, 10, 500, 1), PERSEAS_EINDOUBT);
	f->o->d->mirrors[1].writes_left = f->o->d->mirrors[2].writes_left = 0;
	direct_keep(f->o->d, f->o->p);
	assert_true(f->o->p->is_renewing);
	tried = f->o->p->epoch;
	assert_int_equal(owner_stat(f->o).live, 0);
	assert_int_equal(perseas_flush(f->o->p), PERSEAS_EINDOUBT);
	keep(f);
	assert_int_equal(perseas_flush(f->o->p), 0);
	assert_true(f->o->p->epoch > tried);
	assert_sound(f);
	assert_carries(f, 0);
}
TEST_ALSO(test_it_goes_on_with_w_only, setup_direct, teardown);

/* While it holds no claims, nothing is sent: a commit waits, and is refused in the end. */
TEST(test_commits_are_held_back, struct fixture *f)
{
	perseas_tx_t *open;
	void *addr;

	assert_int_equal(perseas_begin(f->o->p, 0, &open), 0);
	assert_int_equal(perseas_set_range(open, f->big, 10), 0);
	memset(f->big, 9, 10);
	claim_one_and_die(f, 1);
	assert_int_equal(put_big(f, 10, 500, 1), 0);
	for (unsigned i = 0; i < 3; i++)
		f->o->d->mirrors[i].writes_left = 0;
	direct_keep(f->o->d, f->o->p);
	assert_true(f->o->p->is_renewing);
	assert_int_equal(perseas_commit(open, 0), PERSEAS_EBLOCKED);
	assert_says(f->o, "claimed again");
	assert_int_equal(perseas_map(f->o->p, "new", 100, &addr), PERSEAS_EBLOCKED);
	for (unsigned i = 0; i < 3; i++)
		f->o->d->mirrors[i].writes_left = -1;
	keep(f);
	assert_int_equal(perseas_commit(open, 0), 0);
	memset(f->ledger->big, 9, 10);
	assert_sound(f);
}

/* Another owner lives on one mirror, far below the epoch that a mirror without an owner promised.
 * The claims up to that epoch, step by step, leave it alone, too, although this owner once came to
 * the store by a takeover. */
TEST(test_claims_step_by_step_fence_nobody, struct fixture *f)
{
	struct claim lives, gone;
	Perseas__Header *header;
	uint64_t tried;

	f->o->p->options.flags |= PERSEAS_TAKEOVER;
	claim_one_and_die(f, 1);
	assert_int_equal(put_big(f, 10, 500, 1), 0);
	for (unsigned i = 0; i < 3; i++)
		f->o->d->mirrors[i].writes_left = 0;
	direct_keep(f->o->d, f->o->p);
	assert_true(f->o->p->is_renewing);
	tried = f->o->p->epoch;
	lives = claim_alone(f, 2, tried + 1);
	for (unsigned steps = 1; steps <= 3; steps++) {
		gone = claim_alone(f, 1, tried + steps * PS_EPOCH_STEP);
		drop(&gone);
	}
	for (unsigned i = 0; i < 3; i++)
		f->o->d->mirrors[i].writes_left = -1;
	while (f->o->p->is_renewing)
		direct_keep(f->o->d, f->o->p);
	header = header_of(f, 2);
	assert_int_equal(header->promised_epoch, tried + 1);
	perseas__header__free_unpacked(header, NULL);
	assert_int_equal(owner_stat(f->o).live, 2);
	drop(&lives);
}

/* An attempt reaches nobody, and then another owner has the same epoch, adopts, and dies. */
TEST(test_an_epoch_that_was_only_tried_is_not_its_own, struct fixture *f)
{
	struct perseas_options options = f->o->options;
	perseas_t *second;

	claim_one_and_die(f, 1);
	assert_int_equal(put_big(f, 10, 500, 1), 0);
	for (unsigned i = 0; i < 3; i++) {
		f->o->d->mirrors[i].break_at = PERSEAS__REQUEST__BODY_CLAIM;
		/* The one that is fenced is first asked under the old epoch. */
		f->o->d->mirrors[i].break_skip = i == 1;
	}
	direct_keep(f->o->d, f->o->p);
	assert_true(f->o->p->is_renewing);
	options.flags = PERSEAS_TAKEOVER;
	assert_int_equal(direct_open(f->o->d, STORE, &options, &second, &f->o->error), 0);
	assert_int_equal(second->epoch, f->o->p->epoch);
	perseas_close(second);
	keep(f);
	assert_fenced(f);
}

/* An attempt adopts on two mirrors and breaks. The third one has a slot of the same epoch, of
 * another owner: memory that was lost can bring two to the same epoch. */
TEST(test_an_epoch_that_it_wrote_elsewhere_is_not_its_own, struct fixture *f)
{
	struct ps_slot *slots;
	struct session *session;
	struct claim claim;

	claim_one_and_die(f, 1);
	assert_int_equal(put_big(f, 10, 500, 1), 0);
	/* Asked for a sign of life, before the first adoption, and after the last one. */
	f->o->d->mirrors[0].break_at = PERSEAS__REQUEST__BODY_CONFIRM;
	f->o->d->mirrors[0].break_skip = 2;
	f->o->d->mirrors[2].break_at = PERSEAS__REQUEST__BODY_CLAIM;
	direct_keep(f->o->d, f->o->p);
	assert_true(f->o->p->is_renewing);
	assert_int_equal(f->o->p->mirrors[0].own_image.written_epochs[1], f->o->p->epoch);
	claim = claim_alone(f, 2, f->o->p->epoch);
	session = stores_find_session(f->o->d->mirrors[2].stores, claim.token);
	for (unsigned i = 0; i < 2; i++) {
		slots = (void *)session_memory(session, PS_REGION_LOG, ps_slot_offset((int)i),
		                               sizeof(*slots), true);
		ps_slot_encode(slots, f->o->p->epoch, f->o->p->commit.seq,
		               f->o->p->commit.next_position, f->o->p->commit.last_position);
	}
	drop(&claim);
	keep(f);
	assert_fenced(f);
}

/* A salvage takes the store from its owner for good, though it changes nothing. */
TEST(test_a_salvage_ends_the_owner, struct fixture *f)
{
	struct perseas_options options = f->o->options;
	perseas_t *second;

	options.flags = PERSEAS_TAKEOVER | PERSEAS_SALVAGE;
	assert_int_equal(direct_open(f->o->d, STORE, &options, &second, &f->o->error), 0);
	perseas_close(second);
	assert_cannot_renew(f);
}

/* The claim comes while another mirror is being copied: that begins again afterwards. */
TEST(test_a_copy_begins_again, struct fixture *f)
{
	make_stale(f, 2);
	owner_keep(f->o, 2, PERSEAS_MIRROR_RESYNCING);
	claim_one_and_die(f, 1);
	put_big(f, 10, 500, 1);
	for (unsigned i = 0; i < 20; i++)
		keep(f);
	assert_int_equal(perseas_flush(f->o->p), 0);
	assert_sound(f);
	assert_int_equal(owner_stat(f->o).renewals, 1);
	assert_carries(f, 0);
}

/* Requests take their time, so that nobody tries for long. */
static void lapse(void *arg, unsigned mirror, unsigned session, const uint8_t *bytes, size_t len)
{
	struct direct *d = arg;

	(void)mirror;
	(void)session;
	(void)bytes;
	(void)len;
	d->now += 1000000;
}

/* A claimer dies at each of its requests, answered or not: the owner goes on with everything, or
 * the next one finds everything that was acknowledged. */
TEST(test_claimers_that_die_anywhere, struct fixture *f)
{
	static const int kinds[] = {
		PERSEAS__REQUEST__BODY_STATUS,
		PERSEAS__REQUEST__BODY_CLAIM,
		PERSEAS__REQUEST__BODY_CONFIRM,
	};
	struct perseas_options options = f->o->options;
	const struct direct_tap tap = { .arg = f->o->d, .request = lapse };
	unsigned renewed = 0, fenced = 0;
	perseas_t *second;

	options.flags = PERSEAS_TAKEOVER;
	options.open_timeout_ms = 1;
	f->o->d->tap = &tap;

	for (unsigned run = 0; run < 3 * 3 * 2 * 2; run++) {
		struct direct_mirror *m = &f->o->d->mirrors[run % 3];

		m->break_at = kinds[run / 3 % 3];
		m->break_skip = run / 9 % 2;
		m->reply_lost = run / 18 % 2;
		if (!direct_open(f->o->d, STORE, &options, &second, &f->o->error))
			perseas_close(second);
		m->break_at = 0;
		m->reply_lost = false;
		put_big(f, 3000 + run, 400, (uint8_t)run);
		keep(f);
		if (f->o->p->is_superseded) {
			fenced++;
			/* Commits in doubt may or may not be there, so they are written again. */
			owner_die(f->o);
			owner_reopen(f->o);
			map_big(f);
			assert_int_equal(put_big(f, 3000 + run, 400, (uint8_t)run), 0);
		} else {
			assert_int_equal(perseas_flush(f->o->p), 0);
			renewed += owner_stat(f->o).renewals > 0;
		}
		assert_sound(f);
	}
	f->o->d->tap = NULL;
	assert_true(renewed > 0 && fenced > 0);
}
TEST_ALSO(test_claimers_that_die_anywhere, setup_direct, teardown);

static uint64_t roster_epoch_on(struct fixture *f, unsigned mirror)
{
	Perseas__Header *header = header_of(f, mirror);
	const uint64_t epoch = header->roster->epoch;

	perseas__header__free_unpacked(header, NULL);
	return epoch;
}

/* A member that a renewal does not claim may have a roster of the one who claimed it before. */
TEST(test_a_renewal_without_a_member_records_the_roster, struct fixture *f)
{
	claim_all_and_die(f);
	keep(f);
	assert_int_equal(owner_stat(f->o).renewals, 1);
	for (unsigned i = 0; i < 3; i++)
		assert_true(roster_epoch_on(f, i) < f->o->p->epoch);
	claim_all_and_die(f);
	direct_crash(f->o->d, 0);
	keep(f);
	assert_int_equal(owner_stat(f->o).renewals, 2);
	for (unsigned i = 1; i < 3; i++)
		assert_int_equal(roster_epoch_on(f, i), f->o->p->epoch);
}
