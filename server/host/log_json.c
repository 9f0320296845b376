/*
 * log_json.c - see log_json.h. The text of an entry may come from peers, so it is written by
 * proto/base/json.c.
 */
#include "log_json.h"

#include "../../proto/base/json.h"

void log_json_write(FILE *out, const struct log_entry *entry, const char *name)
{
	struct ps_json json = { .out = out, .one_line = true };
	char time[LOG_TIME_TEXT];

	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "time", log_time_text(time, entry->time_us));
	if (*name)
		ps_json_text(&json, "daemon", name);
	ps_json_text(&json, "level", log_level_name(entry->level));
	ps_json_text(&json, "event", entry->event);
	ps_json_text(&json, "message", entry->message);
	if (entry->store[0])
		ps_json_text(&json, "store", entry->store);
	if (entry->epoch)
		ps_json_number(&json, "epoch", entry->epoch);
	if (entry->seq)
		ps_json_number(&json, "seq", entry->seq);
	if (entry->peer[0])
		ps_json_text(&json, "peer", entry->peer);
	ps_json_end(&json, '}');
}
