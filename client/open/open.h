/*
 * open.h - opening a store with a handle that was made before, for standbys.
 */
#ifndef PERSEAS_CLIENT_OPEN_H
#define PERSEAS_CLIENT_OPEN_H

#include "opened.h"
#include "../core/handle.h"

/* What ps_open does (env.h) with a handle from ps_handle_new, which is freed on an error. Mirrors
 * of it that are `warm` are asked over the connections that they have. */
int ps_open_made(struct perseas *p, perseas_t **out, struct ps_error *error);

/* Frees a handle whose store was not opened. Returns rc; if rc is an error, *error gets its
 * sentence. */
int ps_open_dismiss(struct perseas *p, int rc, struct ps_error *error);

#endif
