/*
 * expiry_watch.c - see expiry_watch.h. Certificates are valid by the wall clock, so the event may
 * come early or late if that is set; nothing else depends on it.
 */
#include "expiry_watch.h"

#include "../core/event.h"
#include "../core/gather.h"
#include "../../proto/control/expiry_message.h"

#include <string.h>

#define LOOK_PERIOD ps_ms(1000)

/* the pause between two events about different certificates or stages */
enum { CHANGE_PAUSE_S = 60 };

static uint64_t unix_time_s(struct perseas *p)
{
	return p->env->ops->clock(p->env) / 1000000000;
}

/* Returns true if the application must be told of `expiry` now, and notes that it was. NULL, which
 * stands for an empty list, is never due. */
static bool note_told_if_due(struct ps_expiry_event *told, const struct ps_expiry *expiry,
                             uint64_t now_unix_s)
{
	const enum ps_expiry_stage stage = expiry ? ps_expiry_stage(expiry, now_unix_s)
	                                          : PS_EXPIRY_FAR;
	bool again;

	if (stage == PS_EXPIRY_FAR)
		return false;
	again = told->certificate_expires_at_unix_s == expiry->until_s && told->stage == stage;
	/* The shorter pause limits what a mirror can cause that reports another certificate each
	 * time. */
	if (now_unix_s - told->told_at_unix_s < (again ? PS_EXPIRY_CHECK_S : CHANGE_PAUSE_S))
		return false;
	*told = (struct ps_expiry_event){ expiry->until_s, now_unix_s, stage };
	return true;
}

static void tell_application_of_expiry(struct perseas *p, const struct ps_mirror *m,
                                       const struct ps_expiry *expiry, uint64_t now_unix_s)
{
	char text[PS_EXPIRY_TEXT];

	ps_expiry_text(expiry, now_unix_s, text);
	pthread_mutex_lock(&p->lock);
	if (m)
		ps_event(p, PERSEAS_EVENT_EXPIRES, ps_last_committed_seq(p), m,
		         "%s: renew it on mirror %s, and reload its daemon", text, m->address.text);
	else
		ps_event(p, PERSEAS_EVENT_EXPIRES, ps_last_committed_seq(p), NULL,
		         "%s: renew its file here, which is read at the next connection", text);
	pthread_mutex_unlock(&p->lock);
}

/* Reads the expiry dates of this process's files again. Returns the most urgent one, or NULL. */
static const struct ps_expiry *read_own_certificates(struct perseas *p, uint64_t now_unix_s)
{
	struct ps_expiry_watch *watch = &p->upkeep.expiry;

	p->env->ops->expiries(p->env, &watch->own_expiries);
	watch->own_files_read_at_unix_s = now_unix_s;
	return ps_expiries_most_urgent(&watch->own_expiries, now_unix_s);
}

static void check_own_certificates(struct perseas *p, uint64_t now_unix_s)
{
	struct ps_expiry_watch *watch = &p->upkeep.expiry;
	const struct ps_expiry *first = ps_expiries_most_urgent(&watch->own_expiries, now_unix_s);
	struct ps_expiry_event told = watch->last_own_event;

	/* The files are read again before the application is told: they may have been renewed. */
	if (now_unix_s - watch->own_files_read_at_unix_s >= PS_EXPIRY_CHECK_S ||
	    note_told_if_due(&told, first, now_unix_s))
		first = read_own_certificates(p, now_unix_s);
	if (note_told_if_due(&watch->last_own_event, first, now_unix_s))
		tell_application_of_expiry(p, NULL, first, now_unix_s);
}

/* Returns true if this process's own files include `expiry`: check_own_certificates() reports it
 * then. */
static bool is_expiry_of_own_files(const struct ps_expiry_watch *watch,
                                   const struct ps_expiry *expiry)
{
	for (unsigned i = 0; i < watch->own_expiries.count; i++)
		if (watch->own_expiries.list[i].kind == expiry->kind &&
		    watch->own_expiries.list[i].until_s == expiry->until_s &&
		    strcmp(watch->own_expiries.list[i].name, expiry->name) == 0)
			return true;
	return false;
}

void ps_certificate_note_reported_expiries(struct perseas *p, const struct ps_mirror *m,
                                           const Perseas__ConfirmReply *confirm)
{
	struct ps_expiry_watch *watch = &p->upkeep.expiry;
	struct ps_expiries told = { 0 }, theirs = { 0 };
	const struct ps_expiry *first;
	uint64_t now_unix_s;

	if (!p->commit.events || confirm->n_expiring == 0)
		return;
	now_unix_s = unix_time_s(p);
	/* Mirrors answer already while an open copies, before the first look at the own files. */
	if (!watch->own_files_read_at_unix_s && p->env->ops->expiries)
		read_own_certificates(p, now_unix_s);
	ps_expiries_read(&told, confirm->expiring, confirm->n_expiring);
	for (unsigned i = 0; i < told.count; i++)
		if (!is_expiry_of_own_files(watch, &told.list[i]))
			ps_expiries_add(&theirs, &told.list[i]);
	first = ps_expiries_most_urgent(&theirs, now_unix_s);
	if (note_told_if_due(&watch->last_mirror_events[m - p->mirrors], first, now_unix_s))
		tell_application_of_expiry(p, m, first, now_unix_s);
}

void ps_certificate_check_expiry_if_due(struct perseas *p)
{
	struct ps_expiry_watch *watch = &p->upkeep.expiry;

	ps_assert_admin(p);
	if (!p->commit.events || !p->env->ops->expiries || ps_now(p) < watch->next_look_at)
		return;
	watch->next_look_at = ps_now(p) + LOOK_PERIOD;
	check_own_certificates(p, unix_time_s(p));
}
