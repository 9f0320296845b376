/*
 * log_json.c - see log_json.h. Text of an entry may be a peer's: it goes through proto/base/json.c.
 */
#include "log_json.h"

#include "../../proto/base/json.h"

#include <limits.h>
#include <unistd.h>

/* Those fields of an event that it has. */
static void write_fields(struct ps_json *json, const struct log_entry *entry,
                         const char *const keys[4])
{
	if (entry->store[0])
		ps_json_text(json, keys[0], entry->store);
	if (entry->epoch)
		ps_json_number(json, keys[1], entry->epoch);
	if (entry->seq)
		ps_json_number(json, keys[2], entry->seq);
	if (entry->peer[0])
		ps_json_text(json, keys[3], entry->peer);
}

void log_json_write(FILE *out, const struct log_entry *entry, const char *name)
{
	static const char *const keys[] = { "store", "epoch", "seq", "peer" };
	struct ps_json json = { .out = out, .one_line = true };
	char time[LOG_TIME_TEXT];

	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "time", log_time_text(time, entry->time_us));
	if (*name)
		ps_json_text(&json, "daemon", name);
	ps_json_text(&json, "level", log_level_name(entry->level));
	ps_json_text(&json, "event", entry->event);
	ps_json_text(&json, "message", entry->message);
	write_fields(&json, entry, keys);
	ps_json_end(&json, '}');
}

static void write_resource(struct ps_json *json, const char *name)
{
	char host[HOST_NAME_MAX + 1] = "";

	gethostname(host, HOST_NAME_MAX);
	ps_json_begin(json, "Resource", '{');
	ps_json_text(json, "service.name", "perseasd");
	ps_json_text(json, "service.version", PERSEAS_VERSION);
	if (*name)
		ps_json_text(json, "service.instance.id", name);
	ps_json_text(json, "host.name", host);
	ps_json_end(json, '}');
}

void log_otel_write(FILE *out, const struct log_entry *entry, const char *name)
{
	static const char *const keys[] = { "perseas.store", "perseas.epoch", "perseas.seq",
		                            "perseas.peer" };
	static const char *const levels[] = { "ERROR", "WARN", "INFO", "DEBUG" };
	static const unsigned numbers[] = { 17, 13, 9, 5 };
	struct ps_json json = { .out = out, .one_line = true };
	char text[LOG_TIME_TEXT + LOG_EVENT_MAX];

	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "Timestamp", log_time_text(text, entry->time_us));
	ps_json_text(&json, "SeverityText", levels[entry->level]);
	ps_json_number(&json, "SeverityNumber", numbers[entry->level]);
	snprintf(text, sizeof(text), "perseas.%s", entry->event);
	ps_json_text(&json, "EventName", text);
	ps_json_text(&json, "Body", entry->message);
	write_resource(&json, name);
	ps_json_begin(&json, "Attributes", '{');
	write_fields(&json, entry, keys);
	ps_json_end(&json, '}');
	ps_json_end(&json, '}');
}
