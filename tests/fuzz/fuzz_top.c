/*
 * fuzz_top.c - any bytes as what mirrors answer to perseas top, one look after the other: those
 * that pass the checks are merged, compared and printed, and judged as a fleet.
 */
#include "../../client/command/top/fleet_top.h"
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

static void print(const struct ps_top *top, const struct ps_top_look *look)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert(out);
	ps_top_print(top, look, out);
	ps_top_json(top, look, 0, out);
	fclose(out);
	free(text);
}

/* Who does not answer is one that cannot be reached. */
static void judge_fleet(struct ps_fleet_top *fleet, Perseas__Reply *const replies[MIRRORS],
                        const struct ps_address *addresses, uint64_t now_ns)
{
	static struct ps_panel panels[MIRRORS];
	static const struct ps_error none;
	char *text = NULL, *more;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert(out);
	fleet->fleet.count = MIRRORS;
	fleet->fleet.silent = 0;
	for (unsigned i = 0; i < MIRRORS; i++) {
		panels[i].count = panels[i].given = 1;
		panels[i].addresses[0] = addresses[i];
		panels[i].errors[0].code = replies[i] ? PERSEAS_OK : PERSEAS_EUNREACHABLE;
		fleet->fleet.daemons[i] = (struct ps_fleet_daemon){ &panels[i], 0, false,
			                                            replies[i] };
		fleet->told[i] = (struct ps_fleet_told){ NULL, &none };
		fleet->fleet.silent += !replies[i];
	}
	ps_fleet_top_judge(fleet, now_ns);
	ps_fleet_top_print(fleet, out);
	ps_fleet_top_json(fleet, 0, out);
	fclose(out);
	free(text);
	more = ps_fleet_unasked(&fleet->fleet);
	free(more);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ps_fleet_top fleet = { 0 };
	struct ps_address addresses[MIRRORS] = { { .text = "a:1" }, { .text = "127.0.0.1:7170" } };
	struct ps_top_look look = { .count = MIRRORS, .addresses = addresses };
	struct ps_top top = { 0 };

	fleet.fleet.daemons = calloc(MIRRORS, sizeof(*fleet.fleet.daemons));
	fleet.told = calloc(MIRRORS, sizeof(*fleet.told));
	assert(fleet.fleet.daemons && fleet.told);
	at = data;
	end = data + size;
	for (uint64_t now = 1; at < end && now < 10; now++) {
		Perseas__Reply *replies[MIRRORS];

		for (unsigned i = 0; i < MIRRORS; i++) {
			replies[i] = next_list();
			look.told[i] = replies[i] ? replies[i]->list : NULL;
			look.heard_ns[i] = now * 500000000;
		}
		ps_top_take(&top, &look);
		print(&top, &look);
		judge_fleet(&fleet, replies, addresses, now * 500000000);
		for (unsigned i = 0; i < MIRRORS; i++)
			if (replies[i])
				perseas__reply__free_unpacked(replies[i], NULL);
	}
	ps_top_free(&top);
	ps_fleet_top_free(&fleet);
	return 0;
}
