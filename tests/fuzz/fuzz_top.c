/*
 * fuzz_top.c - any bytes as what mirrors answer to perseas top, one look after the other: those
 * that pass the checks are judged, compared and printed.
 */
#include "../../client/command/top/top.h"
#include "../../proto/control/envelope.h"
#include "target.h"

enum { MIRRORS = 3 };

static const uint8_t *at, *end;

/* The next message, behind its length; NULL: none, or no list. */
static Perseas__Reply *next_list(void)
{
	Perseas__Reply *reply;
	const char *why;
	uint32_t len;

	if ((size_t)(end - at) < sizeof(len))
		return NULL;
	memcpy(&len, at, sizeof(len));
	at += sizeof(len);
	if (len > (size_t)(end - at))
		len = (uint32_t)(end - at);
	reply = ps_reply_unpack(at, len, &why);
	at += len;
	if (!reply || reply->body_case == PERSEAS__REPLY__BODY_LIST)
		return reply;
	perseas__reply__free_unpacked(reply, NULL);
	return NULL;
}

static void print(const struct ps_top *top, const struct ps_peers *peers)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert(out);
	ps_top_print(top, peers, out);
	ps_top_json(top, peers, 0, out);
	fclose(out);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ps_peers peers = {
		.count = MIRRORS,
		.listed_count = MIRRORS,
		.addresses = { { .text = "a:1" }, { .text = "127.0.0.1:7170" } },
	};
	struct ps_top top = { 0 };

	at = data;
	end = data + size;
	for (uint64_t now = 1; at < end && now < 10; now++) {
		for (unsigned i = 0; i < MIRRORS; i++) {
			peers.replies[i] = next_list();
			peers.errors[i].code = peers.replies[i] ? PERSEAS_OK : PERSEAS_EUNREACHABLE;
		}
		ps_top_take_look(&top, &peers, now * 500000000);
		print(&top, &peers);
		free(ps_fleet_list_unasked(&top.fleet));
		for (unsigned i = 0; i < MIRRORS; i++)
			if (peers.replies[i])
				perseas__reply__free_unpacked(peers.replies[i], NULL);
	}
	ps_top_free(&top);
	return 0;
}
