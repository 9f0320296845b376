/*
 * fabric.h - checks and prints which fabric a store's mirrors use. A measurement is worthless if a
 * mirror was reached over another fabric than intended, or not at all.
 */
#ifndef PERSEAS_BENCH_FABRIC_H
#define PERSEAS_BENCH_FABRIC_H

#include <stdio.h>

struct perseas;
struct ps_json;

/*
 * Checks that all mirrors are live and on the fabric `asked` ("rdma", "tcp" or "shm"; NULL: any).
 * Returns 0, or 2 after it printed on stderr which mirror is not.
 */
int fabric_check(struct perseas *p, const char *asked);

/* Adds a member "mirrors" to a JSON object, with address, fabric and state of each mirror. */
void fabric_json(struct ps_json *json, struct perseas *p);

/* Prints address, fabric and state of each mirror, one line a mirror. */
void fabric_print(FILE *out, struct perseas *p);

#endif
