/*
 * tls.h - the certificate, key and trusted CAs of this end, for streams with TLS (stream.h). Only
 * TLS 1.3 is spoken, and both ends must show a certificate.
 */
#ifndef PERSEAS_PROTO_TLS_H
#define PERSEAS_PROTO_TLS_H

#include "expiry.h"
#include "stream.h"

struct x509_st;

/* maximum length of a name in a certificate, and so of an identity */
enum { PS_TLS_NAME_MAX = 122 };

/* Paths of PEM files. crl may be NULL. */
struct ps_tls_files {
	const char *cert; /* this end's certificate, followed by those between it and the CA */
	const char *key;  /* the private key, without a passphrase */
	const char *ca;   /* CAs that may sign the peer's certificate */
	const char *crl;  /* revocation lists */
};

/* Loads the files. Returns NULL on failure, with a sentence in `why` that names the file and its
 * fault. Any thread may use the result, and streams made with it may outlive it. */
struct ps_tls *ps_tls_new(const struct ps_tls_files *files, char *why, size_t size);
/* Loads the files again if one of them has changed. Streams made later use the new ones. Returns
 * false if the new files are faulty, with a sentence in `why`: the old contents stay in use, and
 * the next call tries again. */
bool ps_tls_refresh(struct ps_tls *tls, char *why, size_t size);
void ps_tls_free(struct ps_tls *tls); /* accepts NULL */

/* Lists the expiry dates in use: this end's certificate, the CAs above it, and revocation lists
 * that name their next update. now_s is in seconds since 1970. */
void ps_tls_own_expiries(struct ps_tls *tls, uint64_t now_s, struct ps_expiries *expiries);

/* Sets after how many records a stream changes its sending key. The default is 2^24, because one
 * key is good for a limited number of records. Tests set less. */
void ps_tls_set_key_records(struct ps_tls *tls, uint64_t records);

/* Reads the peer's name from its certificate: its first subject alternative name that is a DNS name
 * (in lower case) or a URI; without one, its common name if it has exactly one. The name is 1 to
 * PS_TLS_NAME_MAX printable ASCII characters without spaces. Returns 0, or -1 with an empty name if
 * the certificate has no such name; ps_stream_fault_text() says why. */
int ps_stream_peer_name(struct ps_stream *stream, char name[PS_TLS_NAME_MAX + 1]);

/* Lists the expiry dates of the peer's certificate and the CAs above it. The list is empty without
 * TLS and before the handshake has succeeded. */
void ps_stream_peer_expiries(const struct ps_stream *stream, struct ps_expiries *expiries);

/* Reads the name from a certificate, as ps_stream_peer_name() does. Returns NULL, or a sentence
 * that says what is wrong with it. */
const char *ps_certificate_name(const struct x509_st *certificate, char name[PS_TLS_NAME_MAX + 1]);

#endif
