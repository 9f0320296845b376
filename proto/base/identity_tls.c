/*
 * identity_tls.c - reads the identity of a peer from its certificate.
 */
#include "tls_private.h"

#include <ctype.h>
#include <openssl/x509v3.h>
#include <string.h>

/* Copies and checks a name. Returns NULL, or a sentence that says why the name is not usable. */
static const char *copy_name(const unsigned char *bytes, int len, bool lower, char *name)
{
	if (len < 1)
		return "it has an empty name";
	if (len > PS_TLS_NAME_MAX)
		return "its name is too long";
	for (int i = 0; i < len; i++)
		if (bytes[i] <= ' ' || bytes[i] > '~')
			return "its name has characters that are not printable ASCII, or a space";
	for (int i = 0; i < len; i++)
		name[i] = (char)(lower ? tolower(bytes[i]) : bytes[i]);
	name[len] = '\0';
	return NULL;
}

/* Takes the first alternative name that is a DNS name or a URI. Returns false if there is none. */
static bool copy_alternative_name(const GENERAL_NAMES *names, char *name, const char **why)
{
	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *at = sk_GENERAL_NAME_value(names, i);
		const ASN1_IA5STRING *text = at->d.ia5;

		if (at->type != GEN_DNS && at->type != GEN_URI)
			continue;
		*why = copy_name(ASN1_STRING_get0_data(text), ASN1_STRING_length(text),
		                 at->type == GEN_DNS, name);
		return true;
	}
	return false;
}

static const char *copy_common_name(const X509_NAME *subject, char *name)
{
	int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
	unsigned char *bytes;
	const char *why;
	int len;

	if (at < 0)
		return "it names nobody: it has neither a DNS name, a URI nor a common name";
	if (X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0)
		return "it has several common names, and no alternative name";
	len = ASN1_STRING_to_UTF8(&bytes,
	                          X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
	if (len < 0)
		return "its common name cannot be read";
	why = copy_name(bytes, len, false, name);
	OPENSSL_free(bytes);
	return why;
}

const char *ps_certificate_name(const struct x509_st *certificate, char name[PS_TLS_NAME_MAX + 1])
{
	int found;
	GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, &found, NULL);
	const char *why = NULL;

	name[0] = '\0';
	/* `found` is -1 if the extension is missing, and another value if it is repeated or
	 * malformed. */
	if (!names && found != -1)
		return "its alternative names cannot be read";
	if (!names || !copy_alternative_name(names, name, &why))
		why = copy_common_name(X509_get_subject_name(certificate), name);
	GENERAL_NAMES_free(names);
	return why;
}
