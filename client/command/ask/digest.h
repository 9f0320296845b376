/*
 * digest.h - asks mirrors for checksums of a segment, which each mirror computes from its own
 * image.
 */
#ifndef PERSEAS_COMMAND_DIGEST_H
#define PERSEAS_COMMAND_DIGEST_H

#include "ask.h"

/* Bytes that one request covers. A mirror serves no other client while it computes a checksum, so
 * this is far less than the 64 MiB that a mirror allows. */
#define PS_DIGEST_PIECE ((uint64_t)2 << 20)

/* Asks the mirrors with ask[i] set for the checksum of one piece of a segment, which has the id
 * ids[i] on mirror i. The answers are peers->replies[i]->digest. */
void ps_digest_ask_mirrors(struct ps_peers *peers, const char *store, const bool *ask,
                           const uint32_t *ids, uint64_t offset, uint64_t length);

/* Returns the length of the piece that begins at `offset` in a segment of this size. */
static inline uint64_t ps_digest_length(uint64_t offset, uint64_t size)
{
	return size - offset < PS_DIGEST_PIECE ? size - offset : PS_DIGEST_PIECE;
}

#endif
