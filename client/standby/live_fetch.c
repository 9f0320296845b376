/*
 * live_fetch.c - reads bytes of one mirror's image with several requests in flight (live_fetch.h).
 */
#include "live_fetch.h"

#include "../../proto/control/envelope.h"

#include <string.h>

void ps_fetch_init(struct ps_fetch *fetch, struct ps_peers *peers, unsigned mirror,
                   const char *store)
{
	memset(fetch, 0, sizeof(*fetch));
	fetch->peers = peers;
	fetch->peer_index = mirror;
	fetch->store = store;
}

/* Collects the oldest answer. After a failure, only removes answers from the connection. */
static void collect_one(struct ps_fetch *fetch)
{
	unsigned slot = (unsigned)(fetch->collected_count++ % PS_FETCH_DEPTH);
	struct ps_peers *peers = fetch->peers;
	struct ps_error before = peers->errors[fetch->peer_index];
	Perseas__Reply *reply = ps_peers_receive(peers, fetch->peer_index);

	if (fetch->has_failed) {
		peers->errors[fetch->peer_index] = before;
	} else if (!reply) {
		fetch->has_failed = true;
	} else if (reply->read->bytes.len != fetch->pending[slot].length) {
		fetch->has_failed = true;
		ps_error_set(&peers->errors[fetch->peer_index], PERSEAS_EPROTOCOL,
		             "%s sent %zu bytes instead of %u: check that it is a perseasd of "
		             "this version",
		             peers->addresses[fetch->peer_index].text, reply->read->bytes.len,
		             fetch->pending[slot].length);
	} else {
		memcpy(fetch->pending[slot].to, reply->read->bytes.data, reply->read->bytes.len);
	}
	perseas__reply__free_unpacked(reply, NULL);
}

bool ps_fetch_collect(struct ps_fetch *fetch, uint64_t count)
{
	while (fetch->collected_count < count && fetch->collected_count < fetch->asked_count)
		collect_one(fetch);
	return !fetch->has_failed;
}

bool ps_fetch_collect_all(struct ps_fetch *fetch)
{
	return ps_fetch_collect(fetch, fetch->asked_count);
}

bool ps_fetch_ask(struct ps_fetch *fetch, uint32_t region, uint64_t offset, uint32_t length,
                  void *to)
{
	Perseas__ReadRequest ask = PERSEAS__READ_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(read, READ, &ask);
	unsigned slot = (unsigned)(fetch->asked_count % PS_FETCH_DEPTH);

	if (fetch->asked_count - fetch->collected_count == PS_FETCH_DEPTH)
		collect_one(fetch);
	if (fetch->has_failed)
		return false;
	/* Messages have no const, but packing does not change them. */
	ask.store = (char *)fetch->store;
	ask.region = region;
	ask.offset = offset;
	ask.length = length;
	if (!ps_peers_send(fetch->peers, fetch->peer_index, &request)) {
		fetch->has_failed = true;
		return false;
	}
	fetch->pending[slot].to = to;
	fetch->pending[slot].length = length;
	fetch->asked_count++;
	return true;
}

bool ps_fetch_range(struct ps_fetch *fetch, uint32_t region, uint64_t offset, uint64_t length,
                    void *to)
{
	for (uint64_t at = 0; at < length;) {
		uint64_t rest = length - at;
		uint32_t part = rest < PS_FETCH_MAX ? (uint32_t)rest : PS_FETCH_MAX;

		if (!ps_fetch_ask(fetch, region, offset + at, part, (uint8_t *)to + at))
			return false;
		at += part;
	}
	return true;
}
