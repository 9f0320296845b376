/*
 * expiry.h - when certificates and revocation lists expire, and how urgent that is. The daemon, the
 * library and the command warn by it. expiry_tls.c reads the dates from what TLS uses (tls.h);
 * nothing here needs OpenSSL, or asks a clock: callers pass the time in.
 */
#ifndef PERSEAS_PROTO_EXPIRY_H
#define PERSEAS_PROTO_EXPIRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ps_expiry_kind {
	PS_EXPIRY_CERTIFICATE,
	PS_EXPIRY_CA,  /* a CA's certificate */
	PS_EXPIRY_CRL, /* a list of revoked certificates */
	PS_EXPIRY_KINDS
};

enum ps_expiry_stage {
	PS_EXPIRY_FAR,
	PS_EXPIRY_NEAR,   /* 14 days are left, or a quarter of the validity period if less */
	PS_EXPIRY_URGENT, /* 2 days are left, or an eighth of the validity period if less */
	PS_EXPIRY_OVER    /* peers refuse connections */
};

enum {
	PS_EXPIRY_NAME = 128, /* bytes of a name, with the terminating zero */
	PS_EXPIRY_TEXT = 240, /* of ps_expiry_text() */
	PS_EXPIRIES_MAX = 16,
	PS_EXPIRY_LOOK_S = 24 * 3600, /* seconds between two looks, and between two warnings */
};

/* Times are in seconds since 1970. Both are 0 if the dates cannot be read or contradict each other:
 * then it is valid at no time. */
struct ps_expiry {
	enum ps_expiry_kind kind;
	char name[PS_EXPIRY_NAME]; /* whose certificate, or which CA's list: printable ASCII */
	uint64_t from_s, until_s;
};

/* The earliest first. No two have the same kind and name. */
struct ps_expiries {
	unsigned count;
	struct ps_expiry list[PS_EXPIRIES_MAX];
};

/* Fills in an expiry from a peer's or a file's values, which need not be checked before. */
void ps_expiry_set(struct ps_expiry *expiry, enum ps_expiry_kind kind, const char *name,
                   uint64_t from_s, uint64_t until_s);

/* Adds one expiry. Of two with the same kind and name only the earlier one stays. A full list drops
 * its latest one. */
void ps_expiries_add(struct ps_expiries *expiries, const struct ps_expiry *expiry);

/* "certificate", "ca" or "crl". */
const char *ps_expiry_kind_name(enum ps_expiry_kind kind);

enum ps_expiry_stage ps_expiry_stage(const struct ps_expiry *expiry, uint64_t now_s);

/* Returns the most urgent one: the earliest of those in the latest stage. Returns NULL if the list
 * is empty. */
const struct ps_expiry *ps_expiries_first(const struct ps_expiries *expiries, uint64_t now_s);

/* Returns the seconds until the next stage begins, or UINT64_MAX in the last stage. */
uint64_t ps_expiry_next(const struct ps_expiry *expiry, uint64_t now_s);

/* Returns the seconds until the next check is due: until the next stage of any begins, at least 1
 * and at most PS_EXPIRY_LOOK_S. */
uint64_t ps_expiries_next(const struct ps_expiries *expiries, uint64_t now_s);

/* "the certificate bank expires on 2026-12-13 10:00 UTC, in 13 days": a sentence without its full
 * stop. Returns text. */
const char *ps_expiry_text(const struct ps_expiry *expiry, uint64_t now_s,
                           char text[PS_EXPIRY_TEXT]);

#endif
