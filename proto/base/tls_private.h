/*
 * tls_private.h - shared by the *_tls.c files, the only ones that may include it: it includes
 * OpenSSL's headers.
 */
#ifndef PERSEAS_PROTO_TLS_PRIVATE_H
#define PERSEAS_PROTO_TLS_PRIVATE_H

#include "tls.h"

#include <openssl/ssl.h>
#include <pthread.h>
#include <sys/stat.h>

enum { PS_TLS_FILES = 4 };

struct ps_tls {
	pthread_mutex_t lock; /* guards all other members */
	SSL_CTX *context;
	uint64_t key_records; /* records after which a stream changes its sending key */
	/* In the order of struct ps_tls_files; the last may be NULL. */
	char *paths[PS_TLS_FILES];
	struct stat seen[PS_TLS_FILES]; /* state of the files when they were loaded */
};

/* Enter and leave OpenSSL (exit_tls.c). Every thread that may run while the process exits calls
 * OpenSSL between the two. ps_openssl_enter() returns false if the process is exiting or OpenSSL
 * cannot be used: no function of OpenSSL may be called then. */
bool ps_openssl_enter(void);
void ps_openssl_leave(void); /* preserves errno */

/* Returns the OpenSSL object of a stream that has TLS. */
SSL *ps_stream_ssl(const struct ps_stream *stream);

#endif
