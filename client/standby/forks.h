/*
 * forks.h - what a standby remembers of a store and its fork, so that it opens neither where it
 * cannot know which is meant: what one mirror after the other says is not all that it has seen. The
 * looks of follow.c call it. It must not keep a store closed that has no fork.
 */
#ifndef PERSEAS_CLIENT_FORKS_H
#define PERSEAS_CLIENT_FORKS_H

#include "follow.h"

/* Does another store bear the name than the one that was seen before? */
bool ps_forks_other_store(const struct ps_follow *follow, const struct ps_images *images);

/* Judges a look, and looks once more where it is the first that shows a fork. follow->forked says
 * what came of it. */
void ps_forks_look(struct ps_follow *follow, struct ps_images *images);

#endif
