/*
 * test_expiry_watch.c - an application is told that certificates will expire, its own and those of
 * mirrors: when, of what, and how often. The test sets the wall clock.
 */
#include "owner.h"

#include "../../client/keeper/heartbeat.h"

enum { HOUR = 3600, DAY = 24 * HOUR, MIRRORS = 3 };

struct rig {
	struct owner *o;
	unsigned count; /* events of expiry since the last look */
	struct perseas_event last;
};

static void take_event(void *arg, const struct perseas_event *event)
{
	struct rig *rig = arg;

	if (event->kind != PERSEAS_EVENT_EXPIRES)
		return;
	rig->count++;
	rig->last = *event;
}

static int setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	rig->o = owner_new(MIRRORS);
	rig->o->options.on_event = take_event;
	rig->o->options.event_arg = rig;
	owner_begin(rig->o);
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	owner_free(rig->o);
	free(rig);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static uint64_t now_s(const struct rig *rig)
{
	return (rig->o->d->clock + rig->o->d->now) / 1000000000;
}

/* The keeper asks, and takes the answers, after so many seconds of the wall clock. Returns how many
 * events came. */
static unsigned pass(struct rig *rig, uint64_t seconds)
{
	rig->o->d->clock += seconds * 1000000000;
	rig->count = 0;
	direct_keep_after(rig->o->d, rig->o->p, 1000000000);
	direct_keep_after(rig->o->d, rig->o->p, 0);
	return rig->count;
}

/* Lets `seconds` pass, and checks how many events came, and that the last one names this mirror
 * ("": the own files) and has these words. */
static void assert_told(struct rig *rig, uint64_t seconds, unsigned count, const char *mirror,
                        const char *words)
{
	assert_int_equal(pass(rig, seconds), count);
	assert_string_equal(rig->last.mirror, mirror);
	if (!strstr(rig->last.text, words))
		fail_msg("'%s' does not say '%s'", rig->last.text, words);
}

/* Returns an entry that is valid for a year, of which left_s remain. */
static struct ps_expiry expiry_in(const struct rig *rig, enum ps_expiry_kind kind, const char *name,
                                  uint64_t left_s)
{
	const uint64_t until_s = now_s(rig) + left_s;
	struct ps_expiry expiry;

	ps_expiry_set(&expiry, kind, name, until_s - 365 * DAY, until_s);
	return expiry;
}

static void set_own(struct rig *rig, enum ps_expiry_kind kind, const char *name, uint64_t left_s)
{
	const struct ps_expiry expiry = expiry_in(rig, kind, name, left_s);

	memset(&rig->o->d->expiries, 0, sizeof(rig->o->d->expiries));
	ps_expiries_add(&rig->o->d->expiries, &expiry);
}

static void set_of_mirror(struct rig *rig, unsigned mirror, enum ps_expiry_kind kind,
                          const char *name, uint64_t left_s)
{
	const struct ps_expiry expiry = expiry_in(rig, kind, name, left_s);

	memset(&rig->o->d->mirrors[mirror].expiries, 0,
	       sizeof(rig->o->d->mirrors[mirror].expiries));
	ps_expiries_add(&rig->o->d->mirrors[mirror].expiries, &expiry);
}

TEST(without_tls_there_is_nothing_to_tell, struct rig *rig)
{
	assert_int_equal(pass(rig, 0), 0);
	assert_int_equal(pass(rig, 365 * DAY), 0);
}

/* Not before 14 days, then daily, and at once when two days are left. */
TEST(the_own_certificate_is_told_of_daily, struct rig *rig)
{
	set_own(rig, PS_EXPIRY_CERTIFICATE, "bank", 14 * DAY + HOUR);
	assert_int_equal(pass(rig, 0), 0);
	assert_told(rig, HOUR + 60, 1, "", "the certificate bank expires on ");
	assert_non_null(strstr(rig->last.text, "in 13 days: renew its file here"));
	assert_int_equal(pass(rig, DAY - 60), 0);
	assert_int_equal(pass(rig, 60), 1);
	assert_int_equal(pass(rig, 10 * DAY + 23 * HOUR), 1);
	assert_told(rig, 2 * HOUR, 1, "", "in 46 hours");
	assert_int_equal(pass(rig, 60), 0);
	assert_told(rig, 2 * DAY, 1, "", "the certificate bank expired on ");
}

/* At the second of its end, an hour after the last event, and not again on that day. */
TEST(the_end_of_the_own_certificate_is_told_of, struct rig *rig)
{
	set_own(rig, PS_EXPIRY_CERTIFICATE, "bank", HOUR);
	assert_told(rig, 0, 1, "", "the certificate bank expires on ");
	assert_int_equal(pass(rig, HOUR - 3), 0);
	assert_told(rig, 2, 1, "", "the certificate bank expired on ");
	assert_int_equal(pass(rig, DAY - HOUR), 0);
}

/* A mirror's, too, although the daily event came half a minute before its end. */
TEST(the_end_of_a_mirror_s_certificate_is_told_of, struct rig *rig)
{
	set_of_mirror(rig, 1, PS_EXPIRY_CERTIFICATE, "m1", DAY + 30);
	assert_told(rig, 0, 1, "sim://1", "the certificate m1 expires on ");
	assert_told(rig, DAY, 1, "sim://1", "the certificate m1 expires on ");
	assert_int_equal(pass(rig, 30), 0);
	assert_told(rig, 30, 1, "sim://1", "the certificate m1 expired on ");
}

/* The file was renewed since the library read it: the application hears nothing. */
TEST(a_file_that_was_renewed_is_not_told_of, struct rig *rig)
{
	set_own(rig, PS_EXPIRY_CRL, "CN=ca", 14 * DAY + HOUR);
	assert_int_equal(pass(rig, 0), 0);
	set_own(rig, PS_EXPIRY_CRL, "CN=ca", 100 * DAY);
	assert_int_equal(pass(rig, 2 * HOUR), 0);
	assert_int_equal(pass(rig, DAY + HOUR), 0);
	set_own(rig, PS_EXPIRY_CRL, "CN=ca", DAY);
	assert_told(rig, DAY + HOUR, 1, "", "the revocation list of CN=ca");
}

/* Each mirror's by itself. A daemon that reads a renewed certificate is judged by that, although
 * its connection began with the old one. */
TEST(what_mirrors_use_is_told_of, struct rig *rig)
{
	set_of_mirror(rig, 0, PS_EXPIRY_CERTIFICATE, "m0", 100 * DAY);
	set_of_mirror(rig, 1, PS_EXPIRY_CERTIFICATE, "m1", 10 * DAY);
	set_of_mirror(rig, 2, PS_EXPIRY_CERTIFICATE, "m2", 20 * DAY);
	assert_told(rig, 0, 1, "sim://1", "renew it on mirror sim://1, and reload its daemon");
	assert_int_equal(pass(rig, 7 * DAY), 2);
	set_of_mirror(rig, 1, PS_EXPIRY_CERTIFICATE, "m1", 365 * DAY);
	assert_told(rig, DAY, 1, "sim://2", "");
	assert_int_equal(pass(rig, 60), 0);
	set_of_mirror(rig, 0, PS_EXPIRY_CERTIFICATE, "m0", HOUR);
	assert_told(rig, 60, 1, "sim://0", "");
}

/* All of them have the CA of this process's own files, which expires first: that is told once. */
TEST(a_ca_of_all_is_told_of_once, struct rig *rig)
{
	set_own(rig, PS_EXPIRY_CA, "CN=ca", 5 * DAY);
	for (unsigned i = 0; i < MIRRORS; i++)
		set_of_mirror(rig, i, PS_EXPIRY_CA, "CN=ca", 5 * DAY);
	assert_told(rig, 0, 1, "", "");
}

/* The owner hears from mirrors while an open copies, before the keeper looks at its own files. */
TEST(a_ca_of_all_is_told_of_once_before_the_first_look, struct rig *rig)
{
	struct perseas *p = rig->o->p;

	set_own(rig, PS_EXPIRY_CA, "CN=ca", 5 * DAY);
	for (unsigned i = 0; i < MIRRORS; i++)
		set_of_mirror(rig, i, PS_EXPIRY_CA, "CN=ca", 5 * DAY);
	p->is_admin_taken = true;
	for (unsigned i = 0; i < 2; i++) {
		rig->o->d->now += 1000000000;
		ps_heartbeat_step(p, ps_now(p));
	}
	p->is_admin_taken = false;
	assert_told(rig, 0, 1, "", "the CA certificate CN=ca");
}

/* The certificate of a day that ends first is renewed in time; the CA is what has to be told of. */
TEST(the_most_urgent_is_told_of, struct rig *rig)
{
	struct ps_expiry day;

	set_own(rig, PS_EXPIRY_CA, "CN=ca", 5 * DAY);
	ps_expiry_set(&day, PS_EXPIRY_CERTIFICATE, "bank", now_s(rig), now_s(rig) + DAY);
	ps_expiries_add(&rig->o->d->expiries, &day);
	assert_told(rig, 0, 1, "", "the CA certificate CN=ca");
	assert_told(rig, DAY - HOUR, 1, "", "the certificate bank");
}

/* A mirror that is down tells nothing, and is judged when it is back. */
TEST(a_mirror_that_comes_back_is_looked_at, struct rig *rig)
{
	struct owner *o = rig->o;

	direct_crash(o->d, 1);
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
	set_of_mirror(rig, 1, PS_EXPIRY_CERTIFICATE, "m1", DAY);
	assert_int_equal(pass(rig, 0), 0);
	direct_start(o->d, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	rig->count = 0;
	(void)pass(rig, 0);
	assert_string_equal(rig->last.mirror, "sim://1");
}

/* A mirror that tells of another certificate each time does not drown the application. */
TEST(a_mirror_that_keeps_changing_is_told_of_once_a_minute, struct rig *rig)
{
	for (unsigned i = 0; i < 10; i++) {
		set_of_mirror(rig, 0, PS_EXPIRY_CERTIFICATE, "m0", DAY + i);
		assert_int_equal(pass(rig, 0), i == 0);
	}
	assert_int_equal(pass(rig, 60), 1);
}

/* Without a listener no file is read. */
TEST(without_a_listener_nothing_is_read, struct rig *rig)
{
	rig->o->options.on_event = NULL;
	assert_int_equal(owner_open(rig->o, PERSEAS_TAKEOVER), 0);
	set_own(rig, PS_EXPIRY_CERTIFICATE, "bank", HOUR);
	assert_int_equal(pass(rig, 0), 0);
	assert_false(rig->o->p->upkeep.expiry.own_expiries.count);
}
