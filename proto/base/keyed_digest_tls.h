/*
 * keyed_digest_tls.h - keyed digests of granules: Poly1305 by OpenSSL, with a key that both sides
 * use once. Owner and mirror compare memory by them, and send only what differs.
 *
 * Two different granules have the same digest with a probability below 2^-90, if both were fixed
 * before the key was drawn. Somebody who knows the key can make granules with equal digests.
 */
#ifndef PERSEAS_PROTO_KEYED_DIGEST_TLS_H
#define PERSEAS_PROTO_KEYED_DIGEST_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PS_DIGEST_KEY = 16, PS_DIGEST = 16 };

/* Computes the digest of each `granule` bytes, of which the last may be shorter, one behind the
 * other. Returns false if memory is out, or if this OpenSSL has no Poly1305. */
bool ps_keyed_digests(const uint8_t key[PS_DIGEST_KEY], const uint8_t *bytes, size_t len,
                      size_t granule, uint8_t *digests);

#endif
