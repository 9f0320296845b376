/*
 * keyed_digest_tls.c - see keyed_digest_tls.h. The second half of Poly1305's key, which hides the
 * first half from those who see digests, is zero here: the key itself is on the wire.
 */
#include "keyed_digest_tls.h"

#include <openssl/evp.h>
#include <string.h>

enum { POLY1305_KEY = 32 };

static bool digest(EVP_MAC_CTX *context, const uint8_t key[POLY1305_KEY], const uint8_t *bytes,
                   size_t len, uint8_t *result)
{
	size_t size;

	return EVP_MAC_init(context, key, POLY1305_KEY, NULL) &&
	       EVP_MAC_update(context, bytes, len) &&
	       EVP_MAC_final(context, result, &size, PS_DIGEST) && size == PS_DIGEST;
}

bool ps_keyed_digests(const uint8_t key[PS_DIGEST_KEY], const uint8_t *bytes, size_t len,
                      size_t granule, uint8_t *digests)
{
	EVP_MAC *poly1305 = EVP_MAC_fetch(NULL, "POLY1305", NULL);
	EVP_MAC_CTX *context = poly1305 ? EVP_MAC_CTX_new(poly1305) : NULL;
	uint8_t whole_key[POLY1305_KEY] = { 0 };
	bool good = context != NULL;

	memcpy(whole_key, key, PS_DIGEST_KEY);
	for (size_t at = 0; at < len && good; at += granule, digests += PS_DIGEST)
		good = digest(context, whole_key, bytes + at,
		              len - at < granule ? len - at : granule, digests);
	EVP_MAC_CTX_free(context);
	EVP_MAC_free(poly1305);
	return good;
}
