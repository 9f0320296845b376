/*
 * fabric.h - which fabric a store's mirrors are on. A figure is worth nothing when a mirror was
 * reached in another way than was meant, or not at all.
 */
#ifndef PERSEAS_BENCH_FABRIC_H
#define PERSEAS_BENCH_FABRIC_H

#include <stdio.h>

struct perseas;
struct ps_json;

/*
 * Are all mirrors live, and on the fabric `asked` ("rdma", "tcp", "shm"; NULL: on any)? 0, or 2 and
 * says on stderr which is not.
 */
int fabric_check(struct perseas *p, const char *asked);

/* The member "mirrors" of a JSON object: address, fabric and state of each. */
void fabric_json(struct ps_json *json, struct perseas *p);

/* The same for people, a line each. */
void fabric_print(FILE *out, struct perseas *p);

#endif
