/*
 * recover.c - the JSON about a store that perseas recover has opened, for both ways of saving it.
 */
#include "recover.h"
#include "../../../proto/base/json.h"

void ps_recover_json(struct ps_json *json, const struct ps_args *args, perseas_t *p)
{
	struct ps_opened opened;

	ps_opened_read(p, &opened);
	ps_json_begin(json, NULL, '{');
	ps_json_text(json, "store", args->store);
	ps_json_number(json, "epoch", opened.state_epoch);
	ps_json_number(json, "seq", opened.state_seq);
	ps_json_text(json, "report", perseas_report(p));
}
