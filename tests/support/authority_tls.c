/*
 * authority_tls.c - makes keys and certificates with OpenSSL and writes them into the test's
 * folder. Tests of TLS call it. It is for tests alone: its certificates are made in a moment and
 * guard nothing.
 */
#include "authority_tls.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { HOUR = 3600, DAY = 24 * HOUR, ISSUED_MAX = 16 };

struct authority {
	char folder[128];
	EVP_PKEY *key;
	X509 *certificate;
	char stems[ISSUED_MAX][32]; /* the certificate of serial number i + 2 */
	long issued;
	bool below; /* issued by another CA: what it issues is followed by its own certificate */
};

static FILE *open_file(const char *folder, const char *stem, const char *end, const char *mode)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.%s", folder, stem, end);
	file = fopen(path, mode);
	assert_non_null(file);
	return file;
}

static void add_extension(X509 *certificate, X509 *issuer, int kind, const char *value)
{
	X509_EXTENSION *extension;
	X509V3_CTX context;

	if (!value)
		return;
	X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
	assert_non_null(extension);
	assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
	X509_EXTENSION_free(extension);
}

static X509 *begin(EVP_PKEY *key, const char *name, long serial, long from_s, long until_s)
{
	X509 *certificate = X509_new();
	X509_NAME *subject = X509_get_subject_name(certificate);

	X509_set_version(certificate, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial);
	X509_gmtime_adj(X509_getm_notBefore(certificate), from_s);
	X509_gmtime_adj(X509_getm_notAfter(certificate), until_s);
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const uint8_t *)name, -1, -1, 0);
	assert_int_equal(X509_set_pubkey(certificate, key), 1);
	return certificate;
}

static void write_certificate(const struct authority *authority, const char *stem,
                              X509 *certificate)
{
	FILE *file = open_file(authority->folder, stem, "pem", "w");

	assert_int_equal(PEM_write_X509(file, certificate), 1);
	if (authority->below)
		assert_int_equal(PEM_write_X509(file, authority->certificate), 1);
	fclose(file);
}

struct authority *authority_below(struct authority *above, const char *stem)
{
	struct authority *authority = calloc(1, sizeof(*authority));

	snprintf(authority->folder, sizeof(authority->folder), "%s", above->folder);
	authority->key = EVP_EC_gen("P-256");
	assert_non_null(authority->key);
	authority->below = true;
	authority->certificate = begin(authority->key, stem, above->issued + 2, -HOUR, DAY);
	assert_true(above->issued < ISSUED_MAX);
	snprintf(above->stems[above->issued++], sizeof(above->stems[0]), "%s", stem);
	X509_set_issuer_name(authority->certificate, X509_get_subject_name(above->certificate));
	add_extension(authority->certificate, above->certificate, NID_basic_constraints,
	              "critical,CA:TRUE");
	assert_true(X509_sign(authority->certificate, above->key, EVP_sha256()) > 0);
	return authority;
}

struct authority *authority_new(const char *folder, const char *stem)
{
	return authority_until(folder, stem, DAY);
}

struct authority *authority_until(const char *folder, const char *stem, long until_s)
{
	struct authority *authority = calloc(1, sizeof(*authority));

	snprintf(authority->folder, sizeof(authority->folder), "%s", folder);
	authority->key = EVP_EC_gen("P-256");
	assert_non_null(authority->key);
	authority->certificate = begin(authority->key, stem, 1, -HOUR, until_s);
	X509_set_issuer_name(authority->certificate, X509_get_subject_name(authority->certificate));
	add_extension(authority->certificate, authority->certificate, NID_basic_constraints,
	              "critical,CA:TRUE");
	assert_true(X509_sign(authority->certificate, authority->key, EVP_sha256()) > 0);
	write_certificate(authority, stem, authority->certificate);
	return authority;
}

void authority_free(struct authority *authority)
{
	EVP_PKEY_free(authority->key);
	X509_free(authority->certificate);
	free(authority);
}

/* Writes the date without checking it, as a careless CA would. */
static void set_date(X509 *certificate, int (*set)(X509 *certificate, const ASN1_TIME *date),
                     const char *text)
{
	ASN1_STRING *date = ASN1_STRING_type_new(V_ASN1_GENERALIZEDTIME);

	if (text) {
		assert_int_equal(ASN1_STRING_set(date, text, -1), 1);
		assert_int_equal(set(certificate, date), 1);
	}
	ASN1_STRING_free(date);
}

void authority_issue(struct authority *authority, const struct leaf *leaf)
{
	authority_issue_dated(authority, leaf, NULL, NULL);
}

void authority_issue_dated(struct authority *authority, const struct leaf *leaf, const char *from,
                           const char *until)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	bool good = leaf->from_s == 0 && leaf->until_s == 0;
	X509 *certificate = begin(key, leaf->stem, authority->issued + 2,
	                          good ? -HOUR : leaf->from_s, good ? DAY : leaf->until_s);
	FILE *file = open_file(authority->folder, leaf->stem, "key", "w");

	assert_true(authority->issued < ISSUED_MAX);
	snprintf(authority->stems[authority->issued++], sizeof(authority->stems[0]), "%s",
	         leaf->stem);
	set_date(certificate, X509_set1_notBefore, from);
	set_date(certificate, X509_set1_notAfter, until);
	X509_set_issuer_name(certificate, X509_get_subject_name(authority->certificate));
	add_extension(certificate, authority->certificate, NID_subject_alt_name, leaf->names);
	add_extension(certificate, authority->certificate, NID_ext_key_usage, leaf->use);
	assert_true(X509_sign(certificate, authority->key, EVP_sha256()) > 0);
	write_certificate(authority, leaf->stem, certificate);
	assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
	fclose(file);
	X509_free(certificate);
	EVP_PKEY_free(key);
}

static long serial_of(const struct authority *authority, const char *stem)
{
	for (long i = 0; i < authority->issued; i++)
		if (strcmp(authority->stems[i], stem) == 0)
			return i + 2;
	fail_msg("%s was not issued", stem);
	return 0;
}

/* Writes a revocation list with the certificate STEM.pem, or an empty one if `stem` is NULL. With
 * until_s 0 it names no end. */
static void add_list(const struct authority *authority, FILE *file, const char *stem, long until_s)
{
	ASN1_INTEGER *serial = ASN1_INTEGER_new();
	ASN1_TIME *time = ASN1_TIME_new();
	X509_REVOKED *revoked = X509_REVOKED_new();
	X509_CRL *list = X509_CRL_new();

	X509_gmtime_adj(time, -HOUR);
	ASN1_INTEGER_set(serial, stem ? serial_of(authority, stem) : ISSUED_MAX + 2);
	X509_REVOKED_set_serialNumber(revoked, serial);
	X509_REVOKED_set_revocationDate(revoked, time);
	X509_CRL_set_version(list, 1);
	X509_CRL_set_issuer_name(list, X509_get_subject_name(authority->certificate));
	X509_CRL_set1_lastUpdate(list, time);
	X509_gmtime_adj(time, until_s);
	if (until_s)
		X509_CRL_set1_nextUpdate(list, time);
	X509_CRL_add0_revoked(list, revoked);
	assert_true(X509_CRL_sign(list, authority->key, EVP_sha256()) > 0);
	assert_int_equal(PEM_write_X509_CRL(file, list), 1);
	X509_CRL_free(list);
	ASN1_INTEGER_free(serial);
	ASN1_TIME_free(time);
}

void authority_revoke(struct authority *authority, const char *stem)
{
	FILE *file = open_file(authority->folder, stem, "crl", "w");

	add_list(authority, file, stem, HOUR);
	fclose(file);
}

void authority_list(struct authority *authority, const char *stem)
{
	authority_list_until(authority, stem, HOUR);
}

void authority_list_until(struct authority *authority, const char *stem, long until_s)
{
	FILE *file = open_file(authority->folder, stem, "crl", "a");

	add_list(authority, file, NULL, until_s);
	fclose(file);
}

struct ps_tls *authority_tls(const char *folder, const char *stem, const char *ca, const char *crl)
{
	char paths[4][256], why[512];
	struct ps_tls_files files = { .cert = paths[0], .key = paths[1], .ca = paths[2] };
	struct ps_tls *tls;

	snprintf(paths[0], sizeof(paths[0]), "%s/%s.pem", folder, stem);
	snprintf(paths[1], sizeof(paths[1]), "%s/%s.key", folder, stem);
	snprintf(paths[2], sizeof(paths[2]), "%s/%s.pem", folder, ca);
	snprintf(paths[3], sizeof(paths[3]), "%s/%s.crl", folder, crl ? crl : "");
	if (crl)
		files.crl = paths[3];
	tls = ps_tls_new(&files, why, sizeof(why));
	if (!tls)
		fail_msg("%s", why);
	return tls;
}
