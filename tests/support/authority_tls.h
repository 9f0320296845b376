/*
 * authority_tls.h - a small CA, made by the test that asks it for certificates.
 */
#ifndef PERSEAS_TESTS_AUTHORITY_TLS_H
#define PERSEAS_TESTS_AUTHORITY_TLS_H

#include "../../proto/base/tls.h"

struct authority;

/* A certificate to be issued, into the files STEM.pem and STEM.key of the CA's folder. */
struct leaf {
	const char *stem;
	const char *names;    /* alternative names, "DNS:a,IP:127.0.0.1"; NULL: none */
	const char *use;      /* extended key usage, "serverAuth"; NULL: any */
	long from_s, until_s; /* from now; both 0: it is good */
};

/* Its own certificate is STEM.pem of the folder, which must be there. A failure fails the test. */
struct authority *authority_new(const char *folder, const char *stem);
/* The same, valid for that long only: seconds from now. */
struct authority *authority_until(const char *folder, const char *stem, long until_s);
/* A CA of which another one issued the certificate: it stands behind those that this one issues. */
struct authority *authority_below(struct authority *above, const char *stem);
void authority_free(struct authority *authority);
void authority_issue(struct authority *authority, const struct leaf *leaf);
/* The same, with these bytes as the dates in the certificate; from NULL: as the leaf says. */
void authority_issue_dated(struct authority *authority, const struct leaf *leaf, const char *from,
                           const char *until);
/* Revokes what was issued with this stem: STEM.crl is the list, good for an hour. */
void authority_revoke(struct authority *authority, const char *stem);
/* Adds this one's list, with nothing in it that was issued, to STEM.crl. */
void authority_list(struct authority *authority, const char *stem);
/* Adds such a list that is valid for so many seconds, or names no end: 0. */
void authority_list_until(struct authority *authority, const char *stem, long until_s);

/* A ps_tls of STEM.pem and STEM.key that trusts CA.pem, all in the folder; with the list CRL.crl,
 * or NULL. */
struct ps_tls *authority_tls(const char *folder, const char *stem, const char *ca, const char *crl);

#endif
