/*
 * mirrors_told.h - COMMAND of `perseas run` hears where its store is by now, and of mirrors that
 * need not be waited for once more.
 */
#ifndef PS_MIRRORS_TOLD_H
#define PS_MIRRORS_TOLD_H

#include "../../standby/follow.h"

/* Sets or takes away PS_LEARNT_VARIABLE and PS_SILENT_VARIABLE, by what the last looks found: just
 * before COMMAND is started, which inherits them. */
void ps_mirrors_told(const struct ps_follow *follow);

#endif
