/*
 * options.h - the table of the command's options. The groups of a row are the verbs that take the
 * option.
 */
#ifndef PERSEAS_COMMAND_OPTIONS_H
#define PERSEAS_COMMAND_OPTIONS_H

#include "command.h"
#include "../core/env.h"
#include "../../proto/base/options.h"

extern const struct ps_options ps_command_options;

#endif
