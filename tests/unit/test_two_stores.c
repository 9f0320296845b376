/*
 * test_two_stores.c - a client that may create stores, on spare daemons, and that may read the real
 * ones, makes a second store of their name. Neither an owner nor a standby may take the one for the
 * other: what was acknowledged would be passed over.
 */
#include "owner.h"

#include "../../client/standby/follow.h"
#include "../../proto/base/text.h"
#include "../../server/store/store_private.h"

enum { REAL = 0, OTHER = 1, DOWN = 2, SPARE = 3, SPARES = 3 };

#define LONG_NS 60000000000ULL
#define REAL_MIRRORS "sim://0,sim://1,sim://2"
#define SPARE_MIRRORS "sim://3,sim://4,sim://5"
#define EVERY_MIRROR SPARE_MIRRORS "," REAL_MIRRORS

/* A store of three mirrors with a segment, without an owner. Two mirrors must hold each
 * transaction, and one is down. */
static int setup_real(void **state)
{
	struct owner *o = owner_new(SPARE + SPARES);
	void *addr;

	o->options.acks = 2;
	o->options.flags = PERSEAS_CREATE;
	assert_int_equal(ps_open(direct_env(o->d), STORE, REAL_MIRRORS, &o->options, &o->p,
	                         &o->error),
	                 0);
	assert_int_equal(perseas_map(o->p, "accounts", SIZE, &addr), 0);
	assert_int_equal(perseas_publish(o->p), 0);
	owner_die(o);
	direct_crash(o->d, DOWN);
	*state = o;
	return 0;
}

struct unit_fixture unit_fixture = { setup_real, owner_teardown };

static void make_another(struct owner *o)
{
	assert_int_equal(ps_create(direct_env(o->d), STORE, SPARE_MIRRORS, &o->options, &o->error),
	                 0);
}

static int open_at(struct owner *o, const char *mirrors)
{
	o->options.flags = PERSEAS_TAKEOVER;
	return ps_open(direct_env(o->d), STORE, mirrors, &o->options, &o->p, &o->error);
}

static void assert_names(const struct owner *o, const char *text, unsigned mirror)
{
	const struct store *store = store_find(o->d->mirrors[mirror].stores, STORE);
	char id[PS_HEX_TEXT];

	assert_non_null(store);
	if (!strstr(text, ps_hex_text(id, store->header->store_id.data)))
		fail_msg("'%s' does not name %s", text, id);
}

/* All five are given, and the new one shows more images. */
TEST(neither_of_two_stores_is_opened, struct owner *o)
{
	make_another(o);
	assert_int_equal(open_at(o, EVERY_MIRROR), PERSEAS_EROSTER);
	assert_names(o, o->error.text, REAL);
	assert_names(o, o->error.text, SPARE);
	for (unsigned k = 0; k < SPARES; k++)
		owner_lose(o, SPARE + k);
	assert_int_equal(open_at(o, EVERY_MIRROR), 0);
	assert_true(o->p->commit.seq > 0);
}

/* A standby of these mirrors. */
struct watcher {
	struct ps_follow follow;
	struct ps_env *envs[2];
	struct ps_follow_result now; /* at its last look */
};

static void follow_at(struct owner *o, struct watcher *w, const char *mirrors)
{
	for (int i = 0; i < 2; i++)
		w->envs[i] = direct_env(o->d);
	assert_int_equal(ps_follow_open(&w->follow, STORE, mirrors, NULL, w->envs[0], w->envs[1],
	                                1000, &o->error),
	                 0);
}

/* Checks what the watcher sees after a long time. */
static void assert_sees(struct owner *o, struct watcher *w, enum ps_ownership ownership)
{
	o->d->now += LONG_NS;
	ps_follow_look_at_store(&w->follow, &w->now);
	assert_int_equal(w->now.ownership, ownership);
}

static void end_follow(struct watcher *w)
{
	ps_follow_close(&w->follow);
	for (int i = 0; i < 2; i++)
		w->envs[i]->ops->free(w->envs[i]);
}

/* The list names one of the real store's mirrors, which alone would be too few. Its roster names
 * the others. */
TEST(a_store_of_which_few_mirrors_are_named_is_not_passed_over, struct owner *o)
{
	struct watcher w;

	make_another(o);
	assert_int_equal(open_at(o, SPARE_MIRRORS ",sim://0"), PERSEAS_EROSTER);
	assert_names(o, o->error.text, REAL);
	follow_at(o, &w, SPARE_MIRRORS ",sim://0");
	assert_sees(o, &w, PS_OWNER_UNKNOWN);
	assert_names(o, w.now.text, REAL);
	end_follow(&w);
}

/* A second store, on a mirror of the list, has so large a roster that no peers are left for the
 * real one's members. */
TEST(a_store_is_not_crowded_out, struct owner *o)
{
	struct stores *stores = o->d->mirrors[SPARE].stores;
	Perseas__CreateRequest create = PERSEAS__CREATE_REQUEST__INIT;
	Perseas__SettleRequest settle = PERSEAS__SETTLE_REQUEST__INIT;
	Perseas__Roster roster = PERSEAS__ROSTER__INIT;
	Perseas__Member members[PS_MIRRORS_MAX], *list[PS_MIRRORS_MAX];
	uint8_t ids[PS_MIRRORS_MAX][PS_ID_SIZE] = { { 0 } };
	char addresses[PS_MIRRORS_MAX][16];
	struct why why;

	for (unsigned k = 0; k < PS_MIRRORS_MAX; k++) {
		ids[k][0] = (uint8_t)(k + 1);
		snprintf(addresses[k], sizeof(addresses[k]), "sim://%u", k + 100);
		perseas__member__init(&members[k]);
		members[k].address = addresses[k];
		members[k].image_id = (ProtobufCBinaryData){ PS_ID_SIZE, ids[k] };
		list[k] = &members[k];
	}
	roster.version = roster.acks = 1;
	roster.n_members = PS_MIRRORS_MAX;
	roster.members = list;
	create.store = settle.store = (char *)(uintptr_t)STORE;
	create.store_id = settle.store_id = create.image_id = members[0].image_id;
	create.log_size = PS_LOG_MIN;
	create.roster = &roster;
	assert_int_equal(store_create(stores, NULL, &create, &why), 0);
	assert_int_equal(store_settle(stores, &settle, &why), 0);
	assert_int_equal(open_at(o, "sim://3,sim://0"), PERSEAS_EROSTER);
	assert_error_says(o, "more than 16 mirrors together");
}

/* The standby has seen both stores, and does not take the new one for its own when the other's
 * mirrors are silent. After an operator deleted one store, the other one is meant. */
TEST(a_standby_opens_neither_of_two_stores, struct owner *o)
{
	struct watcher w;

	make_another(o);
	follow_at(o, &w, EVERY_MIRROR);
	assert_sees(o, &w, PS_OWNER_UNKNOWN);
	assert_names(o, w.now.text, REAL);
	assert_names(o, w.now.text, SPARE);
	direct_crash(o->d, REAL);
	direct_crash(o->d, OTHER);
	assert_sees(o, &w, PS_OWNER_UNKNOWN);
	assert_sees(o, &w, PS_OWNER_UNKNOWN);
	for (unsigned k = REAL; k <= DOWN; k++)
		direct_start(o->d, k);
	for (unsigned k = 0; k < SPARES; k++)
		direct_crash(o->d, SPARE + k);
	assert_sees(o, &w, PS_OWNER_UNKNOWN);
	assert_sees(o, &w, PS_OWNER_UNKNOWN);
	for (unsigned k = 0; k < SPARES; k++) {
		direct_start(o->d, SPARE + k);
		owner_lose(o, SPARE + k);
	}
	assert_sees(o, &w, PS_OWNER_NONE);
	end_follow(&w);
}

/* The new store is made while the mirrors of the standby's store are silent. */
TEST(a_standby_does_not_take_another_store_for_its_own, struct owner *o)
{
	struct watcher w;

	follow_at(o, &w, EVERY_MIRROR);
	assert_sees(o, &w, PS_OWNER_NONE);
	direct_crash(o->d, REAL);
	direct_crash(o->d, OTHER);
	make_another(o);
	assert_sees(o, &w, PS_OWNER_UNKNOWN);
	assert_sees(o, &w, PS_OWNER_UNKNOWN);
	for (unsigned k = REAL; k <= DOWN; k++) {
		direct_start(o->d, k);
		owner_lose(o, k);
	}
	assert_sees(o, &w, PS_OWNER_NONE);
	end_follow(&w);
}

/* The standby knows the other mirrors by the roster of the store that it saw. Another store of the
 * same name, whose roster has the same version and lists mirror 0 alone, is no reason to forget
 * them: the standby would open that one. */
TEST(a_standby_does_not_forget_mirrors_for_another_store, struct owner *o)
{
	struct watcher w;

	follow_at(o, &w, "sim://0");
	assert_sees(o, &w, PS_OWNER_NONE);
	assert_int_equal(w.follow.status_peers.count, 3);
	direct_crash(o->d, OTHER);
	owner_lose(o, REAL);
	o->options.acks = 1;
	assert_int_equal(ps_create(direct_env(o->d), STORE, "sim://0", &o->options, &o->error), 0);
	assert_sees(o, &w, PS_OWNER_UNKNOWN);
	assert_sees(o, &w, PS_OWNER_UNKNOWN);
	assert_int_equal(w.follow.status_peers.count, 3);
	end_follow(&w);
}

/* The host of a mirror that is down was given to the owner of another store of this name. This
 * owner claims its other mirrors again, once, and the other owner loses nothing. */
TEST(a_renewal_is_not_held_up_by_the_owner_of_another_store, struct owner *o)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	perseas_t *theirs;
	perseas_tx_t *tx;
	int rc;

	assert_int_equal(open_at(o, REAL_MIRRORS), 0);
	options.flags = PERSEAS_CREATE;
	assert_int_equal(ps_open(direct_env(o->d), STORE, "sim://3", &options, &theirs, &o->error),
	                 0);
	o->d->leads[DOWN] = SPARE;
	o->p->upkeep.renewal.is_wanted = true;
	for (unsigned i = 0; i < 100; i++)
		direct_keep(o->d, o->p);
	rc = perseas_begin(theirs, 0, &tx) || perseas_commit(tx, 0) || perseas_flush(theirs);
	perseas_close(theirs);
	assert_int_equal(rc, 0);
	assert_int_equal(owner_stat(o).renewals, 1);
	assert_int_equal(owner_stat(o).live, 2);
	assert_true(owner_state(o, DOWN) != PERSEAS_MIRROR_FENCED);
}
