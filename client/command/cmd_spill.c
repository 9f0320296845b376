/*
 * cmd_spill.c - perseas spill: a mirror writes its images to disk and ends.
 */
#include "command.h"
#include "../../proto/base/json.h"
#include "../../proto/control/envelope.h"
#include "ask/ask.h"

#include <inttypes.h>
#include <poll.h>

/* The mirror leaves this connection open until its process ends. What may still come on it, as
 * TLS's goodbye, is no end. */
static bool has_ended(const struct ps_panel *panel, uint32_t wait_ms)
{
	struct pollfd fd = { .fd = panel->env->ops->control_fd(panel->controls[0]),
		             .events = POLLRDHUP };

	return poll(&fd, 1, (int)wait_ms) > 0;
}

static void print_spilled(const struct ps_panel *panel, bool ended, bool as_json)
{
	const Perseas__SpillReply *reply = panel->replies[0]->spill;
	struct ps_json json = { .out = stdout };
	char size[PS_SIZE_TEXT];

	if (!as_json) {
		printf("%s: %u store%s, %s, written to %s; the mirror %s\n",
		       panel->addresses[0].text, reply->stores, ps_plural(reply->stores),
		       ps_size_text(size, reply->bytes), reply->directory,
		       ended ? "has ended" : "is about to end");
		return;
	}
	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "mirror", panel->addresses[0].text);
	ps_json_number(&json, "stores", reply->stores);
	ps_json_number(&json, "bytes", reply->bytes);
	ps_json_text(&json, "directory", reply->directory);
	ps_json_bool(&json, "ended", ended);
	ps_json_end(&json, '}');
}

/* One that is not there is not waited for as long as the disk of one that is. */
static bool is_there(struct ps_panel *panel)
{
	ps_panel_ask_all(panel, ps_panel_list_request());
	return panel->replies[0] != NULL;
}

/* The images are written: waits for the end, and tells. */
static enum ps_exit see_off(const struct ps_panel *panel, const struct ps_args *args)
{
	const bool ended = has_ended(panel, args->wait_ms);

	print_spilled(panel, ended, args->json);
	if (ended)
		return PS_EXIT_OK;
	return ps_complain(PS_EXIT_PARTLY,
	                   "%s has written its images, but has not ended within %" PRIu32
	                   " s: see its log",
	                   panel->addresses[0].text, args->wait_ms / 1000);
}

enum ps_exit ps_verb_spill(const struct ps_args *args)
{
	Perseas__SpillRequest ask = PERSEAS__SPILL_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(spill, SPILL, &ask);
	struct ps_panel panel;
	enum ps_exit status = ps_panel_open_one(&panel, args->mirrors, &args->options);

	if (status)
		return status;
	if (is_there(&panel)) {
		panel.timeout_ms = args->wait_ms;
		ps_panel_ask_all(&panel, &request);
	}
	if (panel.replies[0])
		status = see_off(&panel, args);
	else
		status = ps_panel_failed(&panel, 0);
	ps_panel_close(&panel);
	return status;
}
