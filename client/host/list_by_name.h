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

/* The variable that names a file to read instead of the usual two. */
#define PS_CLUSTERS_VARIABLE "PERSEAS_CLUSTERS"
#define PS_CLUSTERS "/etc/perseas/clusters"

/* Writes the list that the text names; a text that is a list itself is none of these, and is left
 * alone. 0, with the list, whose addresses are not checked; "" where the text is a list itself.
 * PERSEAS_EINVAL: no file has this name, or what stands there cannot be read; PERSEAS_ESYSTEM: a
 * file that is there cannot be read; of the DNS see srv.h. */
int ps_list_by_name(const char *text, char list[PS_LIST_TEXT], struct ps_error *error);

/* Is the text the name of a list, and no list itself? */
bool ps_list_is_named(const char *text);

/* Looks a name up in one file, of which the path is for sentences. 0, PERSEAS_EINVAL for a fault of
 * the file, PERSEAS_ESYSTEM; or PERSEAS_ENOSTORE, without a sentence: it does not have the name. */
int ps_cluster_find(FILE *file, const char *path, const char *name, char list[PS_LIST_TEXT],
                    struct ps_error *error);

#endif
