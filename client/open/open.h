/*
 * open.h - opens a store with a handle that the caller made. Standbys call it, and functions that
 * create or remove a store.
 */
#ifndef PERSEAS_CLIENT_OPEN_H
#define PERSEAS_CLIENT_OPEN_H

#include "opened.h"
#include "../core/handle.h"

/* Does what ps_open does (env.h) with a handle from ps_handle_new, which is freed on an error.
 * Keeps the connections of mirrors that a standby left connected. */
int ps_open_handle(struct perseas *p, perseas_t **out, struct ps_error *error);

/* Frees a handle whose store was not opened. Returns rc; if rc is an error, *error gets its
 * message. */
int ps_open_abort(struct perseas *p, int rc, struct ps_error *error);

#endif
