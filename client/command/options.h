/*
 * options.h - the table of options.
 */
#ifndef PERSEAS_COMMAND_OPTIONS_H
#define PERSEAS_COMMAND_OPTIONS_H

#include "command.h"

struct ps_option {
	const char *name;
	const char *value; /* what its value is called, NULL: it has none */
	unsigned verbs;
	bool (*set)(struct ps_args *args, const char *value);
	const char *must; /* what its value must be */
	const char *help;
};

extern const struct ps_option ps_options[];
extern const unsigned ps_option_count;

#endif
