/*
 * key.c - checks keys and derives store ids from them (see key.h).
 */
#include "key.h"

#include "../base/sha256_tls.h"

#include <string.h>

static_assert((int)PS_KEY_SIZE == (int)PS_SHA256, "one array holds a key or its hash");

void ps_key_store_id(const uint8_t key[PS_KEY_SIZE], uint8_t store_id[PS_ID_SIZE])
{
	uint8_t hash[PS_SHA256];

	ps_sha256(key, PS_KEY_SIZE, hash);
	memcpy(store_id, hash, PS_ID_SIZE);
}

uint32_t ps_store_level(const Perseas__Roster *roster, const Perseas__Roster *next)
{
	return next && next->level > roster->level ? next->level : roster->level;
}

/* Returns true if `hash` is the hash of the key by which this roster names the store. A roster of
 * level 0 names it without a key, so any hash is accepted. */
static bool names_store_by_key(const uint8_t hash[PS_SHA256], ProtobufCBinaryData store_id,
                               const Perseas__Roster *roster)
{
	if (!roster || roster->level == 0)
		return true;
	if (roster->key_hash.len == PS_SHA256)
		return memcmp(roster->key_hash.data, hash, PS_SHA256) == 0;
	return store_id.len == PS_ID_SIZE && memcmp(store_id.data, hash, PS_ID_SIZE) == 0;
}

const char *ps_key_fault(ProtobufCBinaryData key, ProtobufCBinaryData store_id,
                         const Perseas__Roster *roster, const Perseas__Roster *next)
{
	uint8_t hash[PS_SHA256];

	if (ps_store_level(roster, next) == 0)
		return key.len == 0 ? NULL : "a store of level 0 has no key";
	if (key.len != PS_KEY_SIZE)
		return "the key of the store is missing: level 1 needs its 32 bytes";
	ps_sha256(key.data, PS_KEY_SIZE, hash);
	return names_store_by_key(hash, store_id, roster) &&
	                       names_store_by_key(hash, store_id, next)
	               ? NULL
	               : "the key is not that of the store";
}
