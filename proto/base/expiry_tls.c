/*
 * expiry_tls.c - reads expiry dates from OpenSSL objects. A date that OpenSSL would reject in a
 * handshake counts as never valid, because no peer accepts it either.
 */
#include "tls_private.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>

/* Reads a date as seconds since 1970, or 0 if it is earlier. Returns false if OpenSSL cannot
 * compare the date with a clock. */
static bool read_date(const ASN1_TIME *date, uint64_t *seconds)
{
	ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
	time_t any = 0;
	int days = 0, rest = 0;
	const bool read = date && epoch && X509_cmp_time(date, &any) &&
	                  ASN1_TIME_diff(&days, &rest, epoch, date);

	ASN1_TIME_free(epoch);
	*seconds = days < 0 || rest < 0 ? 0 : (uint64_t)days * 86400 + (uint64_t)rest;
	return read;
}

static void add_dates(struct ps_expiries *expiries, enum ps_expiry_kind kind, const char *name,
                      const ASN1_TIME *from, const ASN1_TIME *until)
{
	struct ps_expiry expiry;
	uint64_t from_s, until_s;

	if (!read_date(from, &from_s) || !read_date(until, &until_s))
		from_s = until_s = 0;
	ps_expiry_set(&expiry, kind, name, from_s, until_s);
	ps_expiries_add(expiries, &expiry);
}

/* Writes the name in one line of ASCII, truncated to the buffer. */
static void write_name(const X509_NAME *name, char text[PS_EXPIRY_NAME])
{
	BIO *line = BIO_new(BIO_s_mem());
	int len = 0;

	if (line && X509_NAME_print_ex(line, name, 0, XN_FLAG_RFC2253) > 0)
		len = BIO_read(line, text, PS_EXPIRY_NAME - 1);
	text[len > 0 ? len : 0] = '\0';
	BIO_free(line);
}

static void add_certificate(struct ps_expiries *expiries, const X509 *certificate,
                            enum ps_expiry_kind kind)
{
	char name[PS_EXPIRY_NAME];

	if (kind != PS_EXPIRY_CERTIFICATE || ps_certificate_name(certificate, name))
		write_name(X509_get_subject_name(certificate), name);
	add_dates(expiries, kind, name, X509_get0_notBefore(certificate),
	          X509_get0_notAfter(certificate));
}

/* Adds a verified chain. Its first certificate is the leaf; the others are CAs. */
static void add_chain(struct ps_expiries *expiries, const STACK_OF(X509) * chain)
{
	for (int i = 0; i < sk_X509_num(chain); i++)
		add_certificate(expiries, sk_X509_value(chain, i),
		                i ? PS_EXPIRY_CA : PS_EXPIRY_CERTIFICATE);
}

/* Adds this end's certificate and the CAs above it. A peer with the same CA file builds the same
 * chain. */
static void add_own_chain(struct ps_expiries *expiries, SSL_CTX *context, uint64_t now_s)
{
	X509 *leaf = SSL_CTX_get0_certificate(context);
	X509_STORE_CTX *verification = X509_STORE_CTX_new();
	STACK_OF(X509) *between = NULL;
	X509_VERIFY_PARAM *rules;

	if (!leaf)
		return;
	SSL_CTX_get0_chain_certs(context, &between);
	add_certificate(expiries, leaf, PS_EXPIRY_CERTIFICATE);
	if (verification &&
	    X509_STORE_CTX_init(verification, SSL_CTX_get_cert_store(context), leaf, between)) {
		rules = X509_STORE_CTX_get0_param(verification);
		X509_VERIFY_PARAM_clear_flags(rules,
		                              X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
		X509_VERIFY_PARAM_set_time(rules, (time_t)now_s);
		/* OpenSSL builds the chain even if it rejects the certificate. */
		(void)X509_verify_cert(verification);
		add_chain(expiries, X509_STORE_CTX_get0_chain(verification));
	}
	X509_STORE_CTX_free(verification);
}

/* Returns true if `crl` expires later than `than`, or never. */
static bool expires_later(const X509_CRL *crl, const X509_CRL *than)
{
	const ASN1_TIME *until = X509_CRL_get0_nextUpdate(crl);
	uint64_t own_s, other_s;

	return !until ||
	       (read_date(until, &own_s) &&
	        (!read_date(X509_CRL_get0_nextUpdate(than), &other_s) || own_s > other_s));
}

/* Returns true if the same CA has a list that expires later. OpenSSL accepts any valid list of a
 * CA, so only the one that expires last matters. */
static bool has_later_crl(const STACK_OF(X509_OBJECT) * objects, const X509_CRL *list)
{
	for (int i = 0; i < sk_X509_OBJECT_num(objects); i++) {
		const X509_CRL *crl = X509_OBJECT_get0_X509_CRL(sk_X509_OBJECT_value(objects, i));

		if (crl && crl != list && expires_later(crl, list) &&
		    X509_NAME_cmp(X509_CRL_get_issuer(crl), X509_CRL_get_issuer(list)) == 0)
			return true;
	}
	return false;
}

static void add_crl(struct ps_expiries *expiries, const X509_CRL *list)
{
	char name[PS_EXPIRY_NAME];

	write_name(X509_CRL_get_issuer(list), name);
	add_dates(expiries, PS_EXPIRY_CRL, name, X509_CRL_get0_lastUpdate(list),
	          X509_CRL_get0_nextUpdate(list));
}

static void add_crls(struct ps_expiries *expiries, X509_STORE *store)
{
	const STACK_OF(X509_OBJECT) * objects;

	X509_STORE_lock(store);
	objects = X509_STORE_get0_objects(store);
	for (int i = 0; i < sk_X509_OBJECT_num(objects); i++) {
		const X509_CRL *list = X509_OBJECT_get0_X509_CRL(sk_X509_OBJECT_value(objects, i));

		if (list && X509_CRL_get0_nextUpdate(list) && !has_later_crl(objects, list))
			add_crl(expiries, list);
	}
	X509_STORE_unlock(store);
}

void ps_tls_own_expiries(struct ps_tls *tls, uint64_t now_s, struct ps_expiries *expiries)
{
	memset(expiries, 0, sizeof(*expiries));
	if (!ps_openssl_enter())
		return;
	pthread_mutex_lock(&tls->lock);
	add_own_chain(expiries, tls->context, now_s);
	add_crls(expiries, SSL_CTX_get_cert_store(tls->context));
	pthread_mutex_unlock(&tls->lock);
	ERR_clear_error();
	ps_openssl_leave();
}

void ps_stream_peer_expiries(const struct ps_stream *stream, struct ps_expiries *expiries)
{
	memset(expiries, 0, sizeof(*expiries));
	if (!stream->tls || !ps_openssl_enter())
		return;
	add_chain(expiries, SSL_get0_verified_chain(ps_stream_ssl(stream)));
	ps_openssl_leave();
}
