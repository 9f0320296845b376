/*
 * tls.h - what this end shows and whom it trusts, for streams with TLS (stream.h). TLS 1.3 alone;
 * both ends show a certificate.
 */
#ifndef PERSEAS_PROTO_TLS_H
#define PERSEAS_PROTO_TLS_H

#include "expiry.h"
#include "stream.h"

struct x509_st;

enum { PS_TLS_NAME_MAX = 122 }; /* bytes of a certificate's name; no identity is longer */

/* PEM files. crl may be NULL. */
struct ps_tls_files {
	const char *cert; /* the certificate, then those between it and the CA */
	const char *key;  /* its key, without a passphrase */
	const char *ca;   /* who signs the other end's certificates */
	const char *crl;  /* those that are revoked */
};

/* Streams made with it keep what they need of it. NULL: `why` names the file and says what is wrong
 * with it. One ps_tls may be used by many threads. */
struct ps_tls *ps_tls_new(const struct ps_tls_files *files, char *why, size_t size);
/*
 * Reads the files again, for the streams to come, if one of them has changed. False: something is
 * wrong with them, as `why` says; what was read before is kept, and the next call tries again.
 */
bool ps_tls_refresh(struct ps_tls *tls, char *why, size_t size);
void ps_tls_free(struct ps_tls *tls); /* NULL is allowed */

/* Lists what is in use now and expires: this end's certificate, the CAs above it, and each CA's
 * revocation list that says when the next one is due. now_s: seconds since 1970. */
void ps_tls_expiries(struct ps_tls *tls, uint64_t now_s, struct ps_expiries *expiries);

/* A stream takes another key to send with after so many records, since one key is good for a
 * limited number only. As at first: 2^24. Tests set fewer. */
void ps_tls_set_key_records(struct ps_tls *tls, uint64_t records);

/*
 * The name in the certificate that the other end has shown: its first subject alternative name that
 * is a DNS name (in lower case) or a URI; where it has none of either, its common name, if that is
 * the only one. 1 to PS_TLS_NAME_MAX printable ASCII characters without space. 0, or -1 with `name`
 * empty: there is no such name, ps_stream_why() says what is wrong with it.
 */
int ps_stream_name(struct ps_stream *stream, char name[PS_TLS_NAME_MAX + 1]);

/* Lists the other end's certificate and the CAs above it: none without TLS, or before the handshake
 * is over. */
void ps_stream_expiries(const struct ps_stream *stream, struct ps_expiries *expiries);

/* The name in a certificate, as ps_stream_name. NULL, or what is wrong with it. */
const char *ps_certificate_name(const struct x509_st *certificate, char name[PS_TLS_NAME_MAX + 1]);

#endif
