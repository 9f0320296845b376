/*
 * list_by_name.h - lists of mirrors that have a name: "@NAME" in a file of clusters, "srv://DOMAIN"
 * in the DNS. list_lookup.c calls it on a thread of its own, since a name server or a file may
 * answer slowly. It must never remember an answer: the next call must find what is true then.
 */
#ifndef PERSEAS_CLIENT_LIST_BY_NAME_H
#define PERSEAS_CLIENT_LIST_BY_NAME_H

#include "../core/address.h"

#include <stdbool.h>
#include <stdio.h>

/* The variable that names a file to read instead of the user's and the host's. */
#define PS_CLUSTERS_VARIABLE "PERSEAS_CLUSTERS"
#define PS_CLUSTERS "/etc/perseas/clusters"

/* Looks up the list that the text names. Returns 0 with the list, whose addresses are not checked,
 * or "" if the text is a list itself. Returns PERSEAS_EINVAL if no file has the name, or its line
 * is malformed; PERSEAS_ESYSTEM if a file cannot be read; for errors of the DNS see srv.h. */
int ps_list_by_name(const char *text, char list[PS_LIST_TEXT], struct ps_error *error);

/* Returns true if the text is the name of a list, false if it is a list itself. */
bool ps_list_is_named(const char *text);

/* Looks a name up in one file; the path is for error messages. Returns 0, PERSEAS_EINVAL if the
 * file is malformed, PERSEAS_ESYSTEM, or PERSEAS_ENOSTORE, without a sentence, if the file does not
 * have the name. */
int ps_cluster_find(FILE *file, const char *path, const char *name, char list[PS_LIST_TEXT],
                    struct ps_error *error);

#endif
