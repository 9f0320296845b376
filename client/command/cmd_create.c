/*
 * cmd_create.c - perseas create: creates a store on all of the mirrors, or on none.
 */
#include "command.h"
#include "ask/shared_hosts.h"
#include "../../proto/base/json.h"
#include "../perseas.h"

enum ps_exit ps_verb_create(const struct ps_args *args)
{
	int rc;

	/* Catches signals, so that the creation is not left between two mirrors. */
	ps_stop_catch();
	rc = perseas_create(args->store, args->mirrors, &args->options);
	if (rc)
		return ps_library_complain(NULL, rc);
	if (args->json) {
		struct ps_json json = { .out = stdout };

		ps_json_begin(&json, NULL, '{');
		ps_json_text(&json, "store", args->store);
		ps_json_list(&json, "mirrors", args->mirrors);
		ps_json_end(&json, '}');
	} else {
		printf("store '%s' is made on %s\n", args->store, args->mirrors);
	}
	ps_shared_hosts_warn(args->store, args->mirrors, &args->options);
	return PS_EXIT_OK;
}
