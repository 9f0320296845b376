/*
 * recover.c - what perseas recover says of a store that it opened, wherever it puts it.
 */
#include "recover.h"
#include "../../../proto/base/json.h"
#include "../../open/examine.h"

void ps_recover_state(const perseas_t *p, uint64_t *epoch, uint64_t *seq)
{
	const struct ps_standing *newest = ps_newest(p);

	*epoch = newest ? newest->epoch : 0;
	*seq = newest ? newest->seq : 0;
}

void ps_recover_json(struct ps_json *json, const struct ps_args *args, const perseas_t *p)
{
	uint64_t epoch, seq;

	ps_recover_state(p, &epoch, &seq);
	ps_json_begin(json, NULL, '{');
	ps_json_text(json, "store", args->store);
	ps_json_number(json, "epoch", epoch);
	ps_json_number(json, "seq", seq);
	ps_json_text(json, "report", perseas_report(p));
}
