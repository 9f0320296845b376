/*
 * status_json.h - the data of the status page.
 */
#ifndef PERSEAS_SERVER_STATUS_JSON_H
#define PERSEAS_SERVER_STATUS_JSON_H

#include <stdio.h>

struct daemon;

/* Writes one object: the daemon, its stores, their mirrors as reported by owners, and recent
 * events, newest first. Names and texts may come from peers. */
void status_json_write(FILE *out, struct daemon *daemon);

#endif
