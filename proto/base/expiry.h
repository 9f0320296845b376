/*
 * expiry.h - expiry dates of certificates and revocation lists, and the stages by which the daemon,
 * the library and the command warn about them. expiry_tls.c reads the dates from OpenSSL. Nothing
 * here needs OpenSSL or reads a clock: callers pass the time in.
 */
#ifndef PERSEAS_PROTO_EXPIRY_H
#define PERSEAS_PROTO_EXPIRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ps_expiry_kind {
	PS_EXPIRY_CERTIFICATE,
	PS_EXPIRY_CA,  /* a CA's certificate */
	PS_EXPIRY_CRL, /* a certificate revocation list */
	PS_EXPIRY_KINDS
};

enum ps_expiry_stage {
	PS_EXPIRY_FAR,
	PS_EXPIRY_NEAR,   /* 14 days are left, or a quarter of the validity period if less */
	PS_EXPIRY_URGENT, /* 2 days are left, or an eighth of the validity period if less */
	PS_EXPIRY_EXPIRED /* peers refuse connections */
};

enum {
	PS_EXPIRY_NAME = 128, /* size of a name in bytes, with the terminating zero */
	PS_EXPIRY_TEXT = 240, /* size of the text of ps_expiry_text() */
	PS_EXPIRIES_MAX = 16,
	PS_EXPIRY_CHECK_S = 24 * 3600, /* seconds between two checks, and between two warnings */
};

/* The validity period of a certificate or list, in seconds since 1970. Both times are 0 if the
 * dates cannot be read or contradict each other: the certificate is then never valid. */
struct ps_expiry {
	enum ps_expiry_kind kind;
	/* The certificate's subject, or the CA that issued the list; printable ASCII. */
	char name[PS_EXPIRY_NAME];
	uint64_t from_s, until_s;
};

/* A list sorted by until_s, earliest first. Each pair of kind and name appears once. */
struct ps_expiries {
	unsigned count;
	struct ps_expiry list[PS_EXPIRIES_MAX];
};

/* Fills in an entry. Sanitizes the name and the dates, which may come from a peer unchecked. */
void ps_expiry_set(struct ps_expiry *expiry, enum ps_expiry_kind kind, const char *name,
                   uint64_t from_s, uint64_t until_s);

/* Adds an entry. If the list has an entry with the same kind and name, the earlier one is kept. A
 * full list drops its latest entry. */
void ps_expiries_add(struct ps_expiries *expiries, const struct ps_expiry *expiry);

/* Returns "certificate", "ca" or "crl". */
const char *ps_expiry_kind_name(enum ps_expiry_kind kind);

enum ps_expiry_stage ps_expiry_stage(const struct ps_expiry *expiry, uint64_t now_s);

/* Returns the most urgent entry: the earliest of those in the latest stage. Returns NULL if the
 * list is empty. */
const struct ps_expiry *ps_expiries_most_urgent(const struct ps_expiries *expiries, uint64_t now_s);

/* Returns the seconds until the entry's next stage begins, or UINT64_MAX in the last stage. */
uint64_t ps_expiry_seconds_to_next_stage(const struct ps_expiry *expiry, uint64_t now_s);

/* Returns the seconds until the next check is due, which is when the first entry changes its stage:
 * at least 1 and at most PS_EXPIRY_CHECK_S. */
uint64_t ps_expiries_seconds_to_next_check(const struct ps_expiries *expiries, uint64_t now_s);

/* Formats a sentence without its full stop, such as "the certificate bank expires on 2026-12-13
 * 10:00 UTC, in 13 days". Returns text. */
const char *ps_expiry_text(const struct ps_expiry *expiry, uint64_t now_s,
                           char text[PS_EXPIRY_TEXT]);

#endif
