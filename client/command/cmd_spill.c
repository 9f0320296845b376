/*
 * cmd_spill.c - perseas spill: a mirror writes its images to disk and ends.
 */
#include "json.h"
#include "panel.h"

static void print(const struct ps_panel *panel, bool as_json)
{
	const Perseas__SpillReply *reply = panel->replies[0]->spill;
	struct ps_json json = { .out = stdout };
	char size[PS_SIZE_TEXT];

	if (!as_json) {
		printf("%s: %u store%s, %s, written to %s; the mirror has ended\n",
		       panel->addresses[0].text, reply->stores, reply->stores == 1 ? "" : "s",
		       ps_size_text(size, reply->bytes), reply->directory);
		return;
	}
	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "mirror", panel->addresses[0].text);
	ps_json_number(&json, "stores", reply->stores);
	ps_json_number(&json, "bytes", reply->bytes);
	ps_json_text(&json, "directory", reply->directory);
	ps_json_end(&json, '}');
}

/* One that is not there is not waited for as long as the disk of one that is. */
static bool is_there(struct ps_panel *panel)
{
	Perseas__ListRequest ask = PERSEAS__LIST_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;

	request.body_case = PERSEAS__REQUEST__BODY_LIST;
	request.list = &ask;
	ps_panel_ask_all(panel, &request);
	return panel->replies[0] != NULL;
}

enum ps_exit ps_verb_spill(const struct ps_args *args)
{
	Perseas__SpillRequest ask = PERSEAS__SPILL_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct ps_panel panel;
	enum ps_exit status = ps_panel_open_one(&panel, args->mirrors, args->connect_timeout_ms);

	if (status)
		return status;
	request.body_case = PERSEAS__REQUEST__BODY_SPILL;
	request.spill = &ask;
	if (is_there(&panel)) {
		panel.timeout_ms = args->wait_ms;
		ps_panel_ask_all(&panel, &request);
	}
	if (panel.replies[0])
		print(&panel, args->json);
	else
		status = ps_complain(ps_exit_of(panel.errors[0].code), "%s", panel.errors[0].text);
	ps_panel_close(&panel);
	return status;
}
