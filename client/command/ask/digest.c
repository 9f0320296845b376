/*
 * digest.c - asks for checksums.
 */
#include "digest.h"
#include "../../../proto/control/envelope.h"

#include <string.h>

void ps_digest_ask_mirrors(struct ps_peers *peers, const char *store, const bool *ask,
                           const uint32_t *ids, uint64_t offset, uint64_t length)
{
	Perseas__DigestRequest bodies[PS_MIRRORS_MAX];
	Perseas__Request requests[PS_MIRRORS_MAX];
	const Perseas__Request *list[PS_MIRRORS_MAX] = { NULL };

	for (unsigned i = 0; i < peers->count; i++) {
		if (!ask[i])
			continue;
		perseas__digest_request__init(&bodies[i]);
		bodies[i].store = (char *)store;
		bodies[i].region = PS_REGION_SEGMENT + ids[i];
		bodies[i].offset = offset;
		bodies[i].length = length;
		requests[i] = PS_REQUEST(digest, DIGEST, &bodies[i]);
		list[i] = &requests[i];
	}
	ps_peers_ask(peers, list);
}
