/*
 * expiry_loop.c - warns in the log about certificates and revocation lists that are about to
 * expire: when they are loaded, once a day, and whenever the next stage begins. daemon.c calls it
 * when it has loaded TLS files, main.c when it could not. It checks what new connections use, which
 * may be older than the files.
 */
#include "daemon.h"

#include "connection.h"

#include <event2/event.h>
#include <time.h>

static uint64_t wall_clock_s(void)
{
	return (uint64_t)time(NULL);
}

static void warn_expiry(const struct ps_expiry *expiry, uint64_t now_s)
{
	static const char *const advice[PS_EXPIRY_KINDS] = {
		[PS_EXPIRY_CERTIFICATE] = "peers refuse an expired certificate: put a renewed one "
					  "in place, then reload this daemon",
		[PS_EXPIRY_CA] = "peers refuse all certificates of an expired CA: put a renewed CA "
				 "and certificates in place, on all mirrors and owners, then "
				 "reload the daemons",
		[PS_EXPIRY_CRL] = "with an expired list this daemon refuses every certificate of "
				  "that CA: put the CA's newest list in place, then reload this "
				  "daemon",
	};
	const enum ps_expiry_stage stage = ps_expiry_stage(expiry, now_s);
	char text[PS_EXPIRY_TEXT];

	if (stage == PS_EXPIRY_FAR)
		return;
	log_event(stage == PS_EXPIRY_EXPIRED ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING, "tls-expires",
	          NULL, "%s; %s", ps_expiry_text(expiry, now_s, text), advice[expiry->kind]);
}

void expiry_log_warnings(struct ps_tls *tls, uint64_t now_s, struct ps_expiries *expiries)
{
	ps_tls_own_expiries(tls, now_s, expiries);
	for (unsigned i = 0; i < expiries->count; i++)
		warn_expiry(&expiries->list[i], now_s);
}

void daemon_check_expiry_dates(struct daemon *daemon)
{
	const uint64_t now_s = daemon->wall_s();
	struct timeval wait = { 0 };

	if (!daemon->tls)
		return;
	expiry_log_warnings(daemon->tls, now_s, &daemon->expiries);
	wait.tv_sec = (time_t)ps_expiries_seconds_to_next_check(&daemon->expiries, now_s);
	evtimer_add(daemon->expiry_timer, &wait);
}

const struct ps_expiries *connection_get_tls_expiries(struct session *session)
{
	return &((const struct connection *)session)->daemon->expiries;
}

static void on_expiry_timer(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;

	(void)fd;
	(void)what;
	daemon_lock(daemon);
	daemon_note_non_owner_event(daemon);
	daemon_check_expiry_dates(daemon);
	daemon_unlock(daemon);
}

int daemon_open_expiry_timer(struct daemon *daemon)
{
	daemon->wall_s = wall_clock_s;
	daemon->expiry_timer = evtimer_new(daemon->base, on_expiry_timer, daemon);
	return daemon->expiry_timer &&
	                       event_priority_set(daemon->expiry_timer, PRIORITY_NON_OWNERS) == 0
	               ? 0
	               : -1;
}

void daemon_close_expiry_timer(struct daemon *daemon)
{
	if (daemon->expiry_timer)
		event_free(daemon->expiry_timer);
}
