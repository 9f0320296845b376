/*
 * list_lookup.h - looks up a list of mirrors by name (list_by_name.h) on a thread that nobody
 * joins. env_posix.c calls it. No caller waits for a name server or a file longer than it asks for.
 */
#ifndef PERSEAS_CLIENT_LIST_LOOKUP_H
#define PERSEAS_CLIENT_LIST_LOOKUP_H

#include "../core/env.h"

/* The functions behind list_begin, list_await, list_fd and list_drop of struct ps_env_ops. */
int ps_list_lookup_begin(struct ps_env *env, const char *text, struct ps_list_lookup **lookup,
                         struct ps_error *error);
bool ps_list_lookup_wait(struct ps_list_lookup *lookup, uint64_t until_ns, char list[PS_LIST_TEXT],
                         struct ps_error *error);
int ps_list_lookup_fd(const struct ps_list_lookup *lookup);
void ps_list_lookup_drop(struct ps_list_lookup *lookup);

#endif
