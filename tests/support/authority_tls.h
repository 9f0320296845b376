/*
 * authority_tls.h - a small CA, made by the test that asks it for certificates.
 */
#ifndef PERSEAS_TESTS_AUTHORITY_TLS_H
#define PERSEAS_TESTS_AUTHORITY_TLS_H

#include "../../proto/base/tls.h"

struct authority;

/* A certificate to issue, written to STEM.pem and STEM.key in the CA's folder. */
struct leaf {
	const char *stem;
	const char *names;    /* alternative names, "DNS:a,IP:127.0.0.1"; NULL: none */
	const char *use;      /* extended key usage, "serverAuth"; NULL: any */
	long from_s, until_s; /* from now; both 0: it is good */
};

/* Makes a CA with the certificate STEM.pem in the folder, which must exist. A failure fails the
 * test. */
struct authority *authority_new(const char *folder, const char *stem);
/* Makes a CA whose certificate is valid for until_s seconds from now. */
struct authority *authority_until(const char *folder, const char *stem, long until_s);
/* Makes a CA that `above` issues; its own certificate follows those that it issues. */
struct authority *authority_below(struct authority *above, const char *stem);
void authority_free(struct authority *authority);
void authority_issue(struct authority *authority, const struct leaf *leaf);
/* Issues a certificate with these bytes as its dates. With `from` NULL the leaf's date is used. */
void authority_issue_dated(struct authority *authority, const struct leaf *leaf, const char *from,
                           const char *until);
/* Revokes what was issued with this stem: STEM.crl is the list, good for an hour. */
void authority_revoke(struct authority *authority, const char *stem);
/* Adds this one's list, with nothing in it that was issued, to STEM.crl. */
void authority_list(struct authority *authority, const char *stem);
/* Adds such a list that is valid for so many seconds, or names no end: 0. */
void authority_list_until(struct authority *authority, const char *stem, long until_s);

/* Returns a ps_tls of STEM.pem and STEM.key that trusts CA.pem and, unless it is NULL, uses the
 * list CRL.crl, all in the folder. */
struct ps_tls *authority_tls(const char *folder, const char *stem, const char *ca, const char *crl);

#endif
