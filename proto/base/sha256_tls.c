/*
 * sha256_tls.c - see sha256_tls.h. It calls the deprecated SHA256_*() functions of OpenSSL, because
 * their replacements allocate memory and can therefore fail, and the check of a key must not fail.
 */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "sha256_tls.h"

#include <openssl/sha.h>

void ps_sha256(const void *bytes, size_t len, uint8_t hash[PS_SHA256])
{
	SHA256_CTX context;

	SHA256_Init(&context);
	SHA256_Update(&context, bytes, len);
	SHA256_Final(hash, &context);
}
