/*
 * sha256_tls.h - SHA-256 by OpenSSL. proto/control/key.c calls it to hash the keys of stores.
 */
#ifndef PERSEAS_PROTO_SHA256_TLS_H
#define PERSEAS_PROTO_SHA256_TLS_H

#include <stddef.h>
#include <stdint.h>

enum { PS_SHA256 = 32 };

void ps_sha256(const void *bytes, size_t len, uint8_t hash[PS_SHA256]);

#endif
