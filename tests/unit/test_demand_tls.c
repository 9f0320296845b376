/*
 * test_demand_tls.c - recovery on demand over TLS: memory comes through a thread that has the TLS
 * (tunnel.c), from mirrors whose certificate is that of their host, and one that hangs holds up
 * nobody.
 */
#include "../support/authority_tls.h"
#include "demand_rig.h"

#include "../../client/demand/demand.h"

#include <arpa/inet.h>

static char keys[64];
static const char *other_host;    /* that the way says; or NULL */
static struct sockaddr_in silent; /* where connections are taken, and nothing else */
static int listener = -1;         /* its socket */
static unsigned long misled;      /* mirrors whose ways lead there, a bit for each */
static struct rig *rig;

static unsigned mirror_at(const struct ps_address *address)
{
	const unsigned port = (unsigned)strtoul(address->port, NULL, 10);
	unsigned i = 0;

	while (i < MIRRORS && rig->mirrors[i].port != port)
		i++;
	return i;
}

static int look_up(struct ps_pager *pager, const struct ps_address *address,
                   struct ps_known_addresses *way, struct ps_error *error)
{
	const int rc = ps_pager_uffd.look_up(pager, address, way, error);

	if (!rc && other_host)
		strcpy(way->address.host, other_host);
	if (!rc && misled >> mirror_at(address) & 1) {
		memcpy(way->to[0], &silent, sizeof(silent));
		way->lengths[0] = sizeof(silent);
		way->count = 1;
	}
	return rc;
}

static void watch(struct ps_env_ops *ops)
{
	(void)ops;
	rig_pager.look_up = look_up;
	/* Else it comes from the other one before the first is given up. */
	rig_pager.second_request_after_ns = PS_NEVER;
}

static int setup(void **state)
{
	const struct leaf leaves[] = {
		{ "mirror", "IP:127.0.0.1", NULL, 0, 0 },
		{ "owner", "DNS:owner", NULL, 0, 0 },
	};
	struct authority *authority;
	int rc;

	strcpy(keys, "/dev/shm/perseas-keys-XXXXXX");
	assert_non_null(mkdtemp(keys));
	authority = authority_new(keys, "ca");
	for (unsigned i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++)
		authority_issue(authority, &leaves[i]);
	authority_free(authority);
	other_host = NULL;
	misled = 0;
	rc = rig_setup_with(state, false, keys);
	rig = *state;
	rig->change = watch;
	return rc;
}

static int teardown(void **state)
{
	const int rc = rig_teardown(state);

	if (listener >= 0)
		close(listener);
	listener = -1;
	unit_remove_folder(keys);
	return rc;
}

struct unit_fixture unit_fixture = { setup, teardown };

/* --- it comes --- */

TEST(test_a_page_comes_when_it_is_touched)
{
	rig_begin(rig);
	assert_int_equal(rig_stat(rig).missing, SIZE);
	atomic_store(&rig_shut, false);
	for (uint64_t i = SIZE - 1; i > 40001; i -= 40001)
		assert_int_equal(rig_look(rig->bytes + i), rig_byte(i));
	rig_fetch_unchanged(rig);
}

/* Nothing is asked for before: all of it comes in runs. */
TEST(test_all_comes_by_itself)
{
	atomic_store(&rig_shut, false);
	assert_int_equal(rig_open(rig, PERSEAS_TAKEOVER, PERSEAS_RECOVERY_ON_DEMAND), 0);
	assert_null(strstr(perseas_report(rig->p), "read first"));
	assert_int_equal(rig_map(rig), 0);
	rig_fetch_unchanged(rig);
	assert_int_equal(rig_put(rig, 500000, 300, 77), 0);
}

/* No byte of a later state, by this way neither. */
TEST(test_who_is_fenced_gets_nothing)
{
	rig_begin(rig);
	assert_int_equal(rig_by_another(rig, rig_take_over), 0);
	atomic_store(&rig_shut, false);
	assert_int_equal(rig_look(rig->bytes), -1);
	assert_int_equal(rig_stat(rig).missing, SIZE);
}

/* --- mirrors that are none, or hang --- */

/* The mirror's certificate is for 127.0.0.1, but the owner meant to ask another host. */
TEST(test_a_mirror_with_another_hosts_certificate_gives_nothing)
{
	other_host = "localhost";
	rig_begin(rig);
	atomic_store(&rig_shut, false);
	RIG_UNTIL(rig->waits > 0);
	assert_int_equal(rig_stat(rig).missing, SIZE);
}

static void mislead(unsigned long which)
{
	socklen_t length = sizeof(silent);

	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	silent = (struct sockaddr_in){ .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_true(listener >= 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&silent, sizeof(silent)), 0);
	assert_int_equal(listen(listener, 64), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&silent, &length), 0);
	misled = which;
}

/* Memory is to come, and who fetches it waits for an answer for a second. The owner itself waits as
 * long as the rig has it, so that a busy host loses no mirror. */
static void begin_impatiently(void)
{
	atomic_store(&rig_shut, false);
	assert_int_equal(rig_open(rig, PERSEAS_TAKEOVER, PERSEAS_RECOVERY_ON_DEMAND), 0);
	assert_non_null(rig->p->demand);
	/* Nothing is missing before the map, so that nobody looks at it. */
	rig->p->demand->answer_timeout_ns = ps_ms(1000);
	assert_int_equal(rig_map(rig), 0);
}

/* It takes connections, and never shakes hands: it is given up, and the other one asked. */
TEST(test_a_mirror_that_hangs_is_given_up)
{
	mislead(1);
	begin_impatiently();
	rig_fetch_unchanged(rig);
}

/* Waits until the first connection to a mirror that is silent has ended. */
static void await_its_end(void)
{
	const int fd = accept(listener, NULL, NULL);
	char greeting[512];

	assert_true(fd >= 0);
	while (read(fd, greeting, sizeof(greeting)) > 0)
		;
	close(fd);
}

/* All of them hang: the access waits, that is told, and close does not wait for them. A connection
 * that was given up is not kept until then. */
TEST(test_mirrors_that_hang_hold_up_no_close)
{
	mislead(3);
	begin_impatiently();
	RIG_UNTIL(rig->waits > 0);
	assert_int_equal(rig_stat(rig).missing, SIZE);
	await_its_end();
	perseas_close(rig->p);
	rig->p = NULL;
}

/* A mirror that dies is no source any more, and when it is there again it is one. */
TEST(test_a_mirror_that_comes_back_is_asked_again)
{
	rig_begin(rig);
	rig_kill(&rig->mirrors[0]);
	rig_kill(&rig->mirrors[1]);
	atomic_store(&rig_shut, false);
	RIG_UNTIL(rig->waits > 0);
	assert_int_equal(rig_stat(rig).missing, SIZE);
	rig_start(&rig->mirrors[0]);
	rig_fetch_unchanged(rig);
}
