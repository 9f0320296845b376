/*
 * sha256_tls.c - see sha256_tls.h. It uses OpenSSL's functions for SHA-256 alone: those that choose
 * among providers allocate memory, so that they can fail, and a check of a key must not.
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
