/*
 * key.h - the secret key of a store of level 1. A client must show it to make an image of the
 * store, so a client that may only read the store cannot make images of it on other daemons. The
 * daemon checks the key before it makes an image; owners check the keys that mirrors send them.
 */
#ifndef PERSEAS_PROTO_KEY_H
#define PERSEAS_PROTO_KEY_H

#include "control.pb-c.h"
#include "../image/layout.h"

#include <stdbool.h>

enum { PS_KEY_SIZE = 32 };

/* Derives the id of a new store from its key: the first PS_ID_SIZE bytes of the key's SHA-256. */
void ps_key_store_id(const uint8_t key[PS_KEY_SIZE], uint8_t store_id[PS_ID_SIZE]);

/* Returns the level of the store: the higher level of its two rosters. A store of level 1 has a
 * key. `next` may be NULL. */
uint32_t ps_store_level(const Perseas__Roster *roster, const Perseas__Roster *next);

/* Returns NULL if the key fits a store with this id and these rosters (no key at level 0), or a
 * sentence that says what is wrong. `next` may be NULL. The rosters must have passed
 * ps_roster_fault(). */
const char *ps_key_fault(ProtobufCBinaryData key, ProtobufCBinaryData store_id,
                         const Perseas__Roster *roster, const Perseas__Roster *next);

#endif
