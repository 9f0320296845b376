/*
 * expiry_watch.h - tells the application which certificates and revocation lists expire soon: those
 * that this process uses, and those that mirrors' daemons use. The keeper calls it.
 */
#ifndef PERSEAS_CLIENT_EXPIRY_WATCH_H
#define PERSEAS_CLIENT_EXPIRY_WATCH_H

#include "../core/handle.h"

/* Looks at the TLS files of this process, if a look is due. Notes an event of the most urgent one:
 * once for each stage of urgency, and then once a day. Caller holds admin. */
void ps_certificate_check_expiry_if_due(struct perseas *p);

/* Notes an event of the most urgent certificate or list that a mirror's daemon reported in its
 * answer to a Confirm, unless the files of this process include it. Caller holds admin. */
void ps_certificate_note_reported_expiries(struct perseas *p, const struct ps_mirror *m,
                                           const Perseas__ConfirmReply *confirm);

#endif
