/*
 * tls_private.h - what the files of TLS share. Includes OpenSSL's headers: for *_tls.c only.
 */
#ifndef PERSEAS_PROTO_TLS_PRIVATE_H
#define PERSEAS_PROTO_TLS_PRIVATE_H

#include "tls.h"

#include <openssl/ssl.h>
#include <pthread.h>
#include <sys/stat.h>

enum { PS_TLS_FILES = 4 };

struct ps_tls {
	pthread_mutex_t lock; /* guards the rest */
	SSL_CTX *context;
	uint64_t key_records;
	char *paths[PS_TLS_FILES];      /* as in struct ps_tls_files; the last may be NULL */
	struct stat seen[PS_TLS_FILES]; /* when they were read */
};

/* exit_tls.c: around all calls of OpenSSL by threads that may run while the process exits. False:
 * it does, or OpenSSL cannot be used at all, and none of its functions may be called any more. */
bool ps_tls_enter(void);
void ps_tls_leave(void); /* keeps errno */

/* stream_tls.c: the stream has TLS. */
SSL *ps_stream_ssl(const struct ps_stream *stream);

#endif
