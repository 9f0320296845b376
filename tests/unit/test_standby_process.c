/*
 * test_standby_process.c - what a standby does to its process and asks of it: addresses, children,
 * arguments, and what it says of what it cannot mend by waiting.
 */
#include "standby_rig.h"

#include <netinet/in.h>

struct unit_fixture unit_fixture = { setup_tcp, teardown_standby };

enum { LONG_MS = 1000 }; /* for which nothing must come of a wait */

/* In this process alone: owners that are forked map it. */
static void *take_address(void *address)
{
	void *at = mmap(address, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
	                -1, 0);

	if (at != MAP_FAILED)
		madvise(at, 4096, MADV_DONTFORK);
	return at;
}

/* The addresses stay free while the process stands by; a standby that finds them taken says so. */
TEST(the_addresses_are_kept_free, struct rig *rig)
{
	perseas_standby_t *s = begin_behind_owner(rig);
	struct perseas_standby_stat stat;
	void *address;

	take_over(rig, s);
	address = rig->bytes;
	end_owner(rig);
	start_owner(rig, own);
	wait_in_vain(rig, s, SHORT_MS);
	await_state(s, PERSEAS_STANDBY_OWNED);
	assert_true(take_address(address) == MAP_FAILED && errno == EEXIST);
	take_over(rig, s);
	end_owner(rig);
	assert_ptr_equal(take_address(address), address);
	start_owner(rig, own);
	wait_in_vain(rig, s, SHORT_MS);
	await_state(s, PERSEAS_STANDBY_OWNED);
	assert_int_equal(perseas_standby_stat(s, &stat), 0);
	assert_non_null(strstr(stat.warning, "segment 'accounts' must lie at"));
	munmap(address, 4096);
	close_standby();
	s = begin(rig);
	await_state(s, PERSEAS_STANDBY_OWNED);
	assert_true(take_address(address) == MAP_FAILED && errno == EEXIST);
	close_standby();
	assert_ptr_equal(take_address(address), address);
	munmap(address, 4096);
	kill_owner();
}

TEST(a_child_cannot_use_it, struct rig *rig)
{
	perseas_standby_t *s = begin_behind_owner(rig);
	struct perseas_standby_stat stat;
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		bool good = perseas_standby_wait(s, SHORT_MS, &rig->p) == PERSEAS_EINVAL &&
		            strstr(perseas_message(NULL), "a child of fork") &&
		            perseas_standby_stat(s, &stat) == PERSEAS_EINVAL &&
		            perseas_standby_cancel(s) == PERSEAS_EINVAL &&
		            perseas_standby_fd(s) == PERSEAS_EINVAL &&
		            perseas_standby_close(s) == 0;
		_exit(!good);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	take_over(rig, s);
	assert_int_equal(rig_put(rig, 0, 8, 1), 0);
}

TEST(what_is_not_valid_is_refused, struct rig *rig)
{
	static const char long_name[] =
		"a123456789b123456789c123456789d123456789e123456789f123456789g123";
	const struct {
		const char *store, *mirrors;
		uint32_t flags, size; /* of the options */
		const char *says;
	} bad[] = {
		{ NULL, rig->list, 0, 0, "" },
		{ "a b", rig->list, 0, 0, "'a b' cannot name a store" },
		{ long_name, rig->list, 0, 0, "" },
		{ STORE, "", 0, 0, "" },
		{ STORE, "tcp://", 0, 0, "" },
		{ STORE, rig->list, PERSEAS_TAKEOVER, 0, "never fences" },
		{ STORE, rig->list, PERSEAS_SALVAGE, 0, "" },
		{ STORE, rig->list, PERSEAS_CANCEL, 0, "PERSEAS_CANCEL" },
		{ STORE, rig->list, 0, 3, "" },
	};
	struct perseas_standby_stat stat;
	perseas_standby_t *s;

	assert_int_equal(perseas_standby(STORE, rig->list, NULL, NULL), PERSEAS_EINVAL);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct perseas_options options = standby_options();

		options.flags = bad[i].flags;
		options.size = bad[i].size ? bad[i].size : options.size;
		s = (perseas_standby_t *)rig;
		if (perseas_standby(bad[i].store, bad[i].mirrors, &options, &s) != PERSEAS_EINVAL ||
		    s || !strstr(perseas_message(NULL), bad[i].says))
			fail_msg("row %u: %s", i, perseas_message(NULL));
	}
	assert_int_equal(perseas_standby_wait(NULL, 0, &rig->p), PERSEAS_EINVAL);
	assert_int_equal(perseas_standby_cancel(NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_standby_fd(NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_standby_stat(NULL, &stat), PERSEAS_EINVAL);
	assert_int_equal(perseas_standby_close(NULL), 0);
	s = begin(rig);
	assert_int_equal(perseas_standby_wait(s, 0, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_standby_stat(s, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_standby_mirror(s, 0, NULL), PERSEAS_EINVAL);
}

/* --- no such store --- */

TEST(a_store_that_nobody_has_is_told, struct rig *rig)
{
	struct perseas_options options = standby_options();
	perseas_standby_t *s = begin_with("nowhere", rig->list, &options);

	assert_int_equal(perseas_standby_wait(s, -1, &rig->p), PERSEAS_ENOSTORE);
	assert_non_null(strstr(perseas_message(NULL), "'nowhere'"));
	assert_true(can_read(s, 0));
	close_standby();
	options.flags = PERSEAS_CREATE;
	s = begin_with("nowhere", rig->list, &options);
	assert_int_equal(perseas_standby_wait(s, -1, &rig->p), 0);
}

/* On all mirrors of the list, and settled on none. */
static void begin_making(const char *store, const char *mirrors)
{
	uint8_t ids[MIRRORS][PS_ID_SIZE], store_id[PS_ID_SIZE] = { 1 };
	Perseas__CreateRequest creates[MIRRORS];
	Perseas__Request requests[MIRRORS];
	const Perseas__Request *asked[PS_MIRRORS_MAX] = { NULL };
	Perseas__Member members[MIRRORS], *list[MIRRORS];
	Perseas__Roster roster = PERSEAS__ROSTER__INIT;
	struct ps_error error = { 0 };
	struct ps_env *env = ps_env_posix(NULL, &error);
	struct ps_peers peers;

	assert_int_equal(ps_peers_begin(&peers, env, mirrors, 2000, &error), 0);
	roster.version = 1;
	roster.acks = roster.n_members = peers.count;
	roster.members = list;
	for (unsigned i = 0; i < peers.count; i++) {
		memset(ids[i], (int)i + 1, PS_ID_SIZE);
		perseas__member__init(&members[i]);
		members[i].address = peers.addresses[i].text;
		members[i].image_id = (ProtobufCBinaryData){ PS_ID_SIZE, ids[i] };
		list[i] = &members[i];
		perseas__create_request__init(&creates[i]);
		creates[i].store = (char *)(uintptr_t)store;
		creates[i].store_id = (ProtobufCBinaryData){ PS_ID_SIZE, store_id };
		creates[i].image_id = members[i].image_id;
		creates[i].log_size = 1 << 20;
		creates[i].roster = &roster;
		requests[i] = (Perseas__Request)PS_REQUEST(create, CREATE, &creates[i]);
		asked[i] = &requests[i];
	}
	ps_peers_ask(&peers, asked);
	for (unsigned i = 0; i < peers.count; i++)
		assert_non_null(peers.replies[i]);
	ps_peers_end(&peers);
	env->ops->free(env);
}

/* The creator is gone: with PERSEAS_CREATE the store is created anew. */
TEST(a_making_that_was_left_is_taken_up, struct rig *rig)
{
	struct perseas_options options = standby_options();
	perseas_standby_t *s;

	begin_making("nowhere", rig->list);
	s = begin_with("nowhere", rig->list, &options);
	wait_in_vain(rig, s, SHORT_MS);
	close_standby();
	options.flags = PERSEAS_CREATE;
	s = begin_with("nowhere", rig->list, &options);
	assert_int_equal(perseas_standby_wait(s, PATIENCE, &rig->p), 0);
}

/* Something else listens there. */
static int listener;
static in_port_t listener_port;

static int serve_other(struct rig *rig)
{
	int fd;

	(void)rig;
	say_ready();
	while ((fd = accept(listener, NULL, NULL)) >= 0)
		(void)!write(fd, "HTTP/1.1 400 Bad Request\r\n", 26);
	return 1;
}

/* A server at that place has the descriptors that are open now. */
static int setup_listener(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);

	listener = socket(AF_INET, SOCK_STREAM, 0);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	listener_port = ntohs(at.sin_port);
	return setup_tcp(state);
}

TEST_WITH(what_only_people_can_mend_is_told, setup_listener, teardown_standby, struct rig *rig)
{
	struct perseas_options options = standby_options();
	perseas_standby_t *s;
	char list[32];
	pid_t pid;

	snprintf(list, sizeof(list), "tcp://127.0.0.1:%u", listener_port);
	pid = start_process(rig, serve_other);
	s = begin_with(STORE, list, &options);
	assert_int_equal(perseas_standby_wait(s, -1, &rig->p), PERSEAS_EPROTOCOL);
	assert_non_null(strstr(perseas_message(NULL), "is not a perseasd"));
	close_standby();
	kill_process(pid);
	close(listener);
}

static int change_as_owner(struct rig *rig, int kind, unsigned mirror)
{
	char address[64];
	struct perseas_roster_change wanted = { .kind = kind, .acks = 1 };
	int rc;

	snprintf(address, sizeof(address), "tcp://127.0.0.1:%u", rig->mirrors[mirror].port);
	*(kind == PERSEAS_ROSTER_ADD ? &wanted.with : &wanted.address) = address;
	rc = perseas_roster(rig->p, &wanted);
	if (rc)
		print_message("%s\n", perseas_message(rig->p));
	return rc;
}

/* Takes the first mirror out of the roster. */
static int leave_first(struct rig *rig)
{
	const int rc = rig_open(rig, 0, 0) || change_as_owner(rig, PERSEAS_ROSTER_REMOVE, 0);

	perseas_close(rig->p);
	return rc;
}

static const char *list_of(const struct rig *rig, unsigned mirror)
{
	static char list[64];

	snprintf(list, sizeof(list), "tcp://127.0.0.1:%u", rig->mirrors[mirror].port);
	return list;
}

/* With that mirror alone in its list, and PERSEAS_CREATE. */
static perseas_standby_t *begin_by(struct rig *rig, unsigned mirror)
{
	struct perseas_options options = standby_options();

	options.flags = PERSEAS_CREATE;
	return begin_with(STORE, list_of(rig, mirror), &options);
}

/* With the first mirror alone in its list, which leaves the roster when the owner is gone. */
static perseas_standby_t *begin_behind_leaver(struct rig *rig)
{
	perseas_standby_t *s;

	start_owner(rig, own);
	s = begin_by(rig, 0);
	await_state(s, PERSEAS_STANDBY_OWNED);
	kill_owner();
	assert_int_equal(rig_by_another(rig, leave_first), 0);
	return s;
}

static void find_store(struct rig *rig, perseas_standby_t *s)
{
	become_owner(rig, s);
	assert_int_equal(rig->bytes[0], 42);
	assert_int_equal(rig->bytes[100], rig_byte(100));
	end_owner(rig);
}

/* Its list has one mirror, which leaves the roster meanwhile. It opens the store where it saw it
 * last, and makes no other: also where a wait was called off, and where it was the owner. */
TEST(a_store_is_opened_where_the_roster_has_it, struct rig *rig)
{
	perseas_standby_t *s = begin_behind_leaver(rig);

	owner_lose(&rig->mirrors[0]);
	find_store(rig, s);
	/* The process stands by again, and remembers. */
	find_store(rig, s);
	call_off(rig, s);
	hand_to_nobody(s);
	call_off(rig, s);
	find_store(rig, s);
}

/* The store leaves the list while the standby is its owner, which nobody follows then. */
TEST(an_owner_that_stands_by_again_knows_its_roster, struct rig *rig)
{
	perseas_standby_t *s;

	start_owner(rig, own);
	kill_owner();
	assert_int_equal(rig_by_another(rig, leave_first), 0);
	s = begin_by(rig, 1);
	become_owner(rig, s);
	assert_int_equal(change_as_owner(rig, PERSEAS_ROSTER_ADD, 0), 0);
	assert_int_equal(change_as_owner(rig, PERSEAS_ROSTER_REMOVE, 1), 0);
	end_owner(rig);
	owner_lose(&rig->mirrors[1]);
	find_store(rig, s);
}

/* Somebody began to make a store on the list, which the roster has left behind, and died. While the
 * mirror that has the store is away, that is no reason to make one. */
TEST(a_making_on_the_list_is_not_taken_up_for_a_store_elsewhere, struct rig *rig)
{
	perseas_standby_t *s = begin_behind_leaver(rig);

	owner_lose(&rig->mirrors[0]);
	await_state(s, PERSEAS_STANDBY_DUE);
	rig_kill(&rig->mirrors[1]);
	begin_making(STORE, list_of(rig, 0));
	RIG_UNTIL(stat_of(s).reached == 1);
	wait_in_vain(rig, s, LONG_MS);
	rig_start(&rig->mirrors[1]);
	find_store(rig, s);
}

/* All mirrors lost the store, or left it while the standby did not look. It makes no empty one. */
TEST(a_store_that_was_seen_is_not_created_again, struct rig *rig)
{
	perseas_standby_t *s;

	start_owner(rig, own);
	s = begin_by(rig, 0);
	await_state(s, PERSEAS_STANDBY_OWNED);
	kill_owner();
	for (unsigned i = 0; i < MIRRORS; i++)
		owner_lose(&rig->mirrors[i]);
	/* Until the standby looks again, it would open the store, which fails with another text. */
	RIG_UNTIL(stat_of(s).state != PERSEAS_STANDBY_DUE);
	assert_int_equal(perseas_standby_wait(s, -1, &rig->p), PERSEAS_ENOSTORE);
	assert_non_null(strstr(perseas_message(NULL), "though one had it before"));
}

/* The standby itself made the store, and was its owner. */
TEST(a_store_that_was_made_is_not_created_again, struct rig *rig)
{
	struct perseas_options options = standby_options();
	perseas_standby_t *s;

	options.flags = PERSEAS_CREATE;
	s = begin_with("made", rig->list, &options);
	assert_int_equal(perseas_standby_wait(s, -1, &rig->p), 0);
	end_owner(rig);
	for (unsigned i = 0; i < MIRRORS; i++)
		owner_lose(&rig->mirrors[i]);
	assert_int_equal(perseas_standby_wait(s, -1, &rig->p), PERSEAS_ENOSTORE);
	assert_non_null(strstr(perseas_message(NULL), "though one had it before"));
	/* Nor is it the standby's turn. */
	RIG_UNTIL(strstr(stat_of(s).text, "2 of 2 mirrors answer"));
	assert_int_equal(stat_of(s).state, PERSEAS_STANDBY_UNKNOWN);
}
