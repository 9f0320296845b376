/*
 * etcdctl.h - runs etcdctl once. etcd.c calls it. It must never run longer than it says, nor take
 * more of what is answered than there is room for.
 */
#ifndef PERSEAS_CLIENT_ETCDCTL_H
#define PERSEAS_CLIENT_ETCDCTL_H

#include "etcd.h"

/* With these words, which end with NULL, and the input on its standard input. 0, with what it wrote
 * in text, of *len bytes, at most size. Errors of ps_etcd_get, and PERSEAS_EPROTOCOL: it wrote
 * more. */
int ps_etcdctl(const struct ps_etcd_key *key, const char *const *words, const char *input,
               char *text, size_t size, size_t *len, struct ps_error *error);

#endif
