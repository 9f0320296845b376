/*
 * digest.h - checksums of a segment, taken by the mirrors themselves.
 */
#ifndef PERSEAS_COMMAND_DIGEST_H
#define PERSEAS_COMMAND_DIGEST_H

#include "ask.h"

/* Bytes that one request covers. The mirror serves no other client in the meantime, so it is less
 * than the 64 MiB that a mirror allows. */
#define PS_DIGEST_PIECE ((uint64_t)2 << 20)

/* Asks the mirrors with ask[i] set for the checksum of one piece of a segment, which mirror i calls
 * ids[i]. The answers are peers->replies[i]->digest. */
void ps_digest_ask(struct ps_peers *peers, const char *store, const bool *ask, const uint32_t *ids,
                   uint64_t offset, uint64_t length);

static inline uint64_t ps_digest_length(uint64_t offset, uint64_t size)
{
	return size - offset < PS_DIGEST_PIECE ? size - offset : PS_DIGEST_PIECE;
}

#endif
