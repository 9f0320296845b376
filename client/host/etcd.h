/*
 * etcd.h - mirror lists under a key of etcd: "etcd://HOST:PORT/KEY". named.c reads them, and the
 * command writes them when it has changed a roster. Who speaks with etcd is etcdctl, as a child:
 * it has certificates, users and several endpoints by etcd's own variables (ETCDCTL_CACERT, ...).
 * What a key has is hostile until it was checked.
 */
#ifndef PERSEAS_CLIENT_ETCD_H
#define PERSEAS_CLIENT_ETCD_H

#include "../core/address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many seconds etcdctl has: 1 to 600. */
#define PS_ETCD_TIMEOUT_VARIABLE "PERSEAS_ETCD_TIMEOUT"

enum {
	PS_ETCD_PART = 256,                 /* bytes of endpoints, and of a key, with their ends */
	PS_ETCD_STORE = 33,                 /* an id as digits */
	PS_ETCD_VALUE = PS_LIST_TEXT + 128, /* of what a key has */
	PS_ETCD_SECONDS = 5,                /* that etcdctl has, where nothing else is said */
};

struct ps_etcd_key {
	char endpoints[PS_ETCD_PART]; /* with commas between them */
	char key[PS_ETCD_PART];
};

/* What a key has: "LIST", as a person may write it, or "LIST roster=VERSION store=ID". */
struct ps_etcd_value {
	char list[PS_LIST_TEXT]; /* its addresses are mirrors' */
	bool numbered;           /* the others are there */
	uint64_t roster;
	char store[PS_ETCD_STORE];
};

/* Does the text begin with "etcd://"? */
bool ps_etcd_is(const char *text);

/* 0, or PERSEAS_EINVAL. */
int ps_etcd_parse(const char *text, struct ps_etcd_key *key, struct ps_error *error);

/* Reads what a key has, of len bytes; 0, PERSEAS_EINVAL where there is nothing, PERSEAS_EPROTOCOL
 * for what is no value. */
int ps_etcd_read(const char *bytes, size_t len, const struct ps_etcd_key *key,
                 struct ps_etcd_value *value, struct ps_error *error);

/* The same of etcd itself. Also PERSEAS_EUNREACHABLE: etcd does not answer, in etcdctl's words;
 * PERSEAS_ESYSTEM: there is no etcdctl. */
int ps_etcd_get(const struct ps_etcd_key *key, struct ps_etcd_value *value, struct ps_error *error);

/* The list alone. After an error it is "". */
int ps_etcd_list(const char *text, char list[PS_LIST_TEXT], struct ps_error *error);

enum ps_etcd_put { PS_ETCD_PUT, PS_ETCD_NEWER, PS_ETCD_OTHER };

/* May `next` take its place? */
enum ps_etcd_put ps_etcd_judge(const struct ps_etcd_value *there, const struct ps_etcd_value *next,
                               bool over);

/*
 * Writes `next`, which is numbered, unless the key has as new a roster of this store or a newer
 * one: *put is PS_ETCD_NEWER then. PS_ETCD_OTHER: it is of another store, and stays; with `over` it
 * is replaced. It is compared and swapped, so that of two writers at the same time the newer roster
 * stays. Errors of ps_etcd_get; nothing is written then, or it is not known (EUNREACHABLE).
 */
int ps_etcd_put(const struct ps_etcd_key *key, const struct ps_etcd_value *next, bool over,
                enum ps_etcd_put *put, struct ps_error *error);

#endif
