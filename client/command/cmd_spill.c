/*
 * cmd_spill.c - perseas spill: a mirror writes its images to disk and ends.
 */
#include "panel.h"

#include <inttypes.h>

enum ps_exit ps_verb_spill(const struct ps_args *args)
{
	Perseas__SpillRequest ask = PERSEAS__SPILL_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct ps_panel panel;
	char size[PS_SIZE_TEXT];
	enum ps_exit status = ps_panel_open_one(&panel, args->mirrors, args->wait_ms);

	if (status)
		return status;
	request.body_case = PERSEAS__REQUEST__BODY_SPILL;
	request.spill = &ask;
	ps_panel_ask_all(&panel, &request);
	if (panel.replies[0]) {
		const Perseas__SpillReply *reply = panel.replies[0]->spill;

		printf("%s: %u store%s, %s, written to %s; the mirror has ended\n",
		       panel.addresses[0].text, reply->stores, reply->stores == 1 ? "" : "s",
		       ps_size_text(size, reply->bytes), reply->directory);
	} else {
		status = ps_complain(ps_exit_of(panel.errors[0].code), "%s", panel.errors[0].text);
	}
	ps_panel_close(&panel);
	return status;
}
