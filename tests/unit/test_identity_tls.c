/*
 * test_identity_tls.c - who a certificate says that its holder is, also one that lies.
 */
#include "../../proto/base/tls.h"
#include "../support/unit.h"

#include <openssl/x509v3.h>

struct name {
	int kind; /* GEN_…, 0: none; a common name: -1 */
	const char *bytes;
	int len; /* 0: as strlen */
};

static void add_common(X509 *certificate, const struct name *name)
{
	assert_int_equal(
		X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate), NID_commonName,
	                                   V_ASN1_UTF8STRING, (const uint8_t *)name->bytes,
	                                   name->len ? name->len : (int)strlen(name->bytes), -1, 0),
		1);
}

static void add_alternative(GENERAL_NAMES *names, const struct name *name)
{
	GENERAL_NAME *general = GENERAL_NAME_new();
	ASN1_STRING *text = ASN1_STRING_type_new(name->kind == GEN_IPADD ? V_ASN1_OCTET_STRING
	                                                                 : V_ASN1_IA5STRING);

	ASN1_STRING_set(text, name->bytes, name->len ? name->len : (int)strlen(name->bytes));
	GENERAL_NAME_set0_value(general, name->kind, text);
	sk_GENERAL_NAME_push(names, general);
}

/* A certificate of these names, as ps_certificate_name() sees it. */
static const char *read_name(const struct name *list, size_t count, char name[PS_TLS_NAME_MAX + 1])
{
	X509 *certificate = X509_new();
	GENERAL_NAMES *names = GENERAL_NAMES_new();
	const char *why;

	for (size_t i = 0; i < count; i++) {
		if (list[i].kind < 0)
			add_common(certificate, &list[i]);
		else if (list[i].kind)
			add_alternative(names, &list[i]);
	}
	if (sk_GENERAL_NAME_num(names) > 0)
		assert_int_equal(X509_add1_ext_i2d(certificate, NID_subject_alt_name, names, 0, 0),
		                 1);
	memset(name, 'x', PS_TLS_NAME_MAX + 1);
	why = ps_certificate_name(certificate, name);
	GENERAL_NAMES_free(names);
	X509_free(certificate);
	return why;
}

/* The first DNS name or URI counts, else the one common name. */
TEST(the_first_name_of_the_right_kind_counts)
{
	static const struct {
		struct name names[3];
		const char *name;
	} good[] = {
		{ { { GEN_DNS, "Alice.Example", 0 } }, "alice.example" },
		{ { { GEN_URI, "spiffe://Org/Bank", 0 }, { GEN_DNS, "b", 0 } },
		  "spiffe://Org/Bank" },
		{ { { GEN_DNS, "a", 0 }, { GEN_DNS, "b", 0 }, { -1, "c", 0 } }, "a" },
		{ { { GEN_EMAIL, "x@y", 0 }, { GEN_IPADD, "\x7f\0\0\1", 4 }, { GEN_DNS, "c", 0 } },
		  "c" },
		{ { { -1, "bank-1", 0 } }, "bank-1" },
		{ { { -1, "bank-1", 0 }, { GEN_EMAIL, "x@y", 0 } }, "bank-1" },
	};
	char name[PS_TLS_NAME_MAX + 1];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_null(read_name(good[i].names, 3, name));
		assert_string_equal(name, good[i].name);
	}
}

/* Names that look like others, break a line of a log, or name nobody, next to good names. */
TEST(names_that_could_deceive_are_refused)
{
	static const struct {
		struct name names[3];
		const char *why;
	} bad[] = {
		{ { { GEN_DNS, "alice\0.evil.example", 19 } }, "printable" },
		{ { { GEN_DNS, "alice\0", 6 }, { GEN_DNS, "bob", 0 } }, "printable" },
		{ { { GEN_URI, "a\nb", 0 }, { -1, "bob", 0 } }, "printable" },
		{ { { GEN_DNS, "al ice", 0 } }, "space" },
		{ { { GEN_DNS, "\x7f", 0 } }, "printable" },
		{ { { GEN_URI, "\x1b[2J", 0 } }, "printable" },
		{ { { -1, "alice\0bob", 9 } }, "printable" },
		{ { { -1, "\xc3\xa4lice", 0 } }, "printable" },
		{ { { -1, "a", 0 }, { -1, "b", 0 } }, "several" },
		{ { { GEN_EMAIL, "x@y", 0 } }, "names nobody" },
		{ { { 0, NULL, 0 } }, "names nobody" },
	};
	char name[PS_TLS_NAME_MAX + 1];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *why = read_name(bad[i].names, 3, name);

		if (!why || !strstr(why, bad[i].why))
			fail_msg("%zu: said %s", i, why);
		assert_string_equal(name, "");
	}
}

TEST(a_name_has_a_longest_length)
{
	char text[PS_TLS_NAME_MAX + 2] = "", name[PS_TLS_NAME_MAX + 1];
	struct name names[] = { { GEN_DNS, text, PS_TLS_NAME_MAX } };

	memset(text, 'a', PS_TLS_NAME_MAX + 1);
	assert_null(read_name(names, 1, name));
	assert_int_equal(strlen(name), PS_TLS_NAME_MAX);
	names[0].len++;
	assert_non_null(strstr(read_name(names, 1, name), "too long"));
	assert_string_equal(name, "");
	names[0].kind = GEN_DNS;
	names[0].bytes = "";
	names[0].len = 0;
	assert_non_null(strstr(read_name(names, 1, name), "empty"));
}

/* The extension is there twice, or is no list of names. */
TEST(alternative_names_that_cannot_be_read_are_refused)
{
	static const uint8_t garbage[] = { 0x30, 0x05, 0x82, 0x7f, 'a' };
	ASN1_OCTET_STRING *value = ASN1_OCTET_STRING_new();
	struct name common = { -1, "bob", 0 };
	char name[PS_TLS_NAME_MAX + 1];

	ASN1_OCTET_STRING_set(value, garbage, sizeof(garbage));
	for (int twice = 0; twice < 2; twice++) {
		X509 *certificate = X509_new();
		X509_EXTENSION *extension = X509_EXTENSION_create_by_NID(NULL, NID_subject_alt_name,
		                                                         0, value);

		add_common(certificate, &common);
		for (int i = 0; i <= twice; i++)
			X509_add_ext(certificate, extension, -1);
		assert_non_null(strstr(ps_certificate_name(certificate, name), "cannot be read"));
		assert_string_equal(name, "");
		X509_EXTENSION_free(extension);
		X509_free(certificate);
	}
	ASN1_OCTET_STRING_free(value);
}
