/*
 * silent_told.h - COMMAND of `perseas run` hears of mirrors that need not be waited for once more.
 */
#ifndef PS_SILENT_TOLD_H
#define PS_SILENT_TOLD_H

#include "../../standby/follow.h"

/* Sets or takes away PS_SILENT_VARIABLE, by what the last looks found: just before COMMAND is
 * started, which inherits it. */
void ps_silent_told(const struct ps_follow *follow);

#endif
