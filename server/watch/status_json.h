/*
 * status_json.h - what the status page shows.
 */
#ifndef PERSEAS_SERVER_STATUS_JSON_H
#define PERSEAS_SERVER_STATUS_JSON_H

#include <stdio.h>

struct daemon;

/* One object: the daemon, its stores, the mirrors as their owners see them, and what happened
 * lately, the newest first. Names and texts may be a peer's. */
void status_json_write(FILE *out, struct daemon *daemon);

#endif
