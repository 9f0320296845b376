/*
 * forks.h - what a standby remembers of a store and a fork of it. A single look may show only one
 * of the two. While a standby cannot know which one to open, it opens neither. The looks of
 * follow.c call it. It must not keep a store closed that has no fork.
 */
#ifndef PERSEAS_CLIENT_FORKS_H
#define PERSEAS_CLIENT_FORKS_H

#include "follow.h"

/* Returns true if the images are of another store than an earlier look showed under this name. */
bool ps_forks_is_other_store(const struct ps_follow *follow, const struct ps_images *images);

/* Sets follow->is_forked by the result of a look. Takes the images again if this is the first look
 * that shows a fork. */
void ps_forks_note_images(struct ps_follow *follow, struct ps_images *images);

#endif
