/*
 * watch.c - states, fabrics and lags in words, for metrics.c, status_json.c and http_loop.c. It
 * changes nothing and contacts no mirror.
 */
#include "watch.h"

#include "../../proto/base/boot.h"
#include "../../proto/base/sha256_tls.h"
#include "../../proto/base/text.h"
#include "../../proto/control/envelope.h"
#include "../loop/daemon.h"
#include "../store/status.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

bool watch_is_ready(const struct daemon *daemon, char *why, size_t size)
{
	struct memory *memory = stores_memory(daemon->stores);

	if (daemon->phase == DAEMON_LOADING)
		snprintf(why, size, "images are being loaded");
	else if (daemon->phase == DAEMON_ENDING)
		snprintf(why, size, "the daemon ends, and writes its images before");
	else if (!admission_owner_fits(&daemon->admission))
		snprintf(why, size, "there is no place for another owner (--max-connections)");
	else if (memory->ops->usable)
		return memory->ops->usable(memory, why, size);
	else
		return true;
	return false;
}

void watch_stores(struct daemon *daemon, const struct store_view **views, size_t *count)
{
	*views = NULL;
	*count = 0;
	if (daemon->phase == DAEMON_SERVING && stores_view(daemon->stores, views, count) < 0)
		*count = 0;
}

enum watch_state watch_state(const struct store_view *view)
{
	if (view->is_unread)
		return WATCH_UNREAD;
	if (view->damage[0] || !view->status->header)
		return WATCH_DAMAGED;
	switch (view->status->header->state) {
	case STATE(CREATING):
		return WATCH_CREATING;
	case STATE(JOINING):
		return WATCH_JOINING;
	default:
		return WATCH_CONSISTENT;
	}
}

const char *watch_state_name(enum watch_state state)
{
	static const char *const names[] = { "creating", "consistent", "joining", "damaged",
		                             "unread" };

	assert(state < WATCH_STATES);
	return names[state];
}

const char *watch_fabric(const struct store_view *view)
{
	return view->status->fabric[0] ? view->status->fabric : "none";
}

const char *watch_status_name(char name[WATCH_STATUS_NAME], unsigned status)
{
	const ProtobufCEnumValue *value =
		protobuf_c_enum_descriptor_get_value(&perseas__status__descriptor, (int)status);
	char *at = name;

	snprintf(name, WATCH_STATUS_NAME, "%s",
	         value ? value->name + strlen("STATUS_") : "unknown");
	for (; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	return name;
}

const char *watch_mirror_state(const Perseas__MirrorReport *report)
{
	static const char *const known[] = {
		"down", "replaying", "live", "stale", "fenced", "lost", "resyncing", "removed",
	};

	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(report->state, known[i]) == 0)
			return known[i];
	return "unknown";
}

uint64_t watch_lag(const Perseas__StoreStatus *status, const Perseas__MirrorReport *report)
{
	uint64_t furthest = 0;

	for (size_t i = 0; i < status->n_mirrors; i++)
		if (status->mirrors[i]->seq > furthest)
			furthest = status->mirrors[i]->seq;
	assert(furthest >= report->seq);
	return furthest - report->seq;
}

/* Returns the next character as metrics_label() writes it: all invalid characters look the same. */
static const char *next_printable(const char **text)
{
	const char *at = *text;
	unsigned length = ps_utf8_length(at);

	*text += length ? length : 1;
	return length == 0 || ps_is_control(at) ? "\xef\xbf\xbd" : at;
}

static bool are_shown_alike(const char *a, const char *b)
{
	while (*a && *b) {
		const char *x = next_printable(&a), *y = next_printable(&b);
		unsigned length = ps_utf8_length(x);

		if (length != ps_utf8_length(y) || memcmp(x, y, length) != 0)
			return false;
	}
	return *a == *b;
}

bool watch_is_first_report(const Perseas__StoreStatus *status, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (are_shown_alike(status->mirrors[i]->address, status->mirrors[index]->address))
			return false;
	return true;
}

const char *watch_machine(char text[PS_HEX_TEXT], struct daemon *daemon)
{
	struct memory *memory = stores_memory(daemon->stores);
	const uint8_t *boot = memory->ops->boot ? memory->ops->boot(memory) : NULL;
	uint8_t hash[PS_SHA256];

	if (!boot)
		return "";
	ps_sha256(boot, PS_BOOT_ID_SIZE, hash);
	return ps_hex_text(text, hash);
}

bool watch_owner_is_local(const Perseas__StoreStatus *status)
{
	return status->owner_boot.len && status->header &&
	       status->owner_boot.len == status->header->boot.len &&
	       ps_id_equal(status->owner_boot, status->header->boot.data);
}
