/*
 * options.h - the table of the command's options. The groups of a row are the verbs that take it.
 */
#ifndef PERSEAS_COMMAND_OPTIONS_H
#define PERSEAS_COMMAND_OPTIONS_H

#include "command.h"
#include "../../proto/base/options.h"

#define PS_MIRRORS_VARIABLE "PERSEAS_MIRRORS"

extern const struct ps_options ps_command_options;

#endif
