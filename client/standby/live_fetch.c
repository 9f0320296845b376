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
	fetch->mirror = mirror;
	fetch->store = store;
}

/* Collects the oldest answer. After a failure, only removes answers from the connection. */
static void collect_one(struct ps_fetch *fetch)
{
	unsigned slot = (unsigned)(fetch->collected++ % PS_FETCH_DEPTH);
	struct ps_peers *peers = fetch->peers;
	struct ps_error before = peers->errors[fetch->mirror];
	Perseas__Reply *reply = ps_peers_receive(peers, fetch->mirror);

	if (fetch->failed) {
		peers->errors[fetch->mirror] = before;
	} else if (!reply) {
		fetch->failed = true;
	} else if (reply->read->bytes.len != fetch->due[slot].length) {
		fetch->failed = true;
		ps_error_set(&peers->errors[fetch->mirror], PERSEAS_EPROTOCOL,
		             "%s sent %zu bytes instead of %u: check that it is a perseasd of "
		             "this version",
		             peers->addresses[fetch->mirror].text, reply->read->bytes.len,
		             fetch->due[slot].length);
	} else {
		memcpy(fetch->due[slot].to, reply->read->bytes.data, reply->read->bytes.len);
	}
	perseas__reply__free_unpacked(reply, NULL);
}

bool ps_fetch_collect(struct ps_fetch *fetch, uint64_t count)
{
	while (fetch->collected < count && fetch->collected < fetch->asked)
		collect_one(fetch);
	return !fetch->failed;
}

bool ps_fetch_collect_all(struct ps_fetch *fetch)
{
	return ps_fetch_collect(fetch, fetch->asked);
}

bool ps_fetch_ask(struct ps_fetch *fetch, uint32_t region, uint64_t offset, uint32_t length,
                  void *to)
{
	Perseas__ReadRequest ask = PERSEAS__READ_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(read, READ, &ask);
	unsigned slot = (unsigned)(fetch->asked % PS_FETCH_DEPTH);

	if (fetch->asked - fetch->collected == PS_FETCH_DEPTH)
		collect_one(fetch);
	if (fetch->failed)
		return false;
	/* Messages have no const, but packing does not change them. */
	ask.store = (char *)fetch->store;
	ask.region = region;
	ask.offset = offset;
	ask.length = length;
	if (!ps_peers_send(fetch->peers, fetch->mirror, &request)) {
		fetch->failed = true;
		return false;
	}
	fetch->due[slot].to = to;
	fetch->due[slot].length = length;
	fetch->asked++;
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
