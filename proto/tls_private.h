/*
 * tls_private.h - what the files of TLS share. Includes OpenSSL's headers: for *_tls.c only.
 */
#ifndef PERSEAS_PROTO_TLS_PRIVATE_H
#define PERSEAS_PROTO_TLS_PRIVATE_H

#include "tls.h"

#include <openssl/ssl.h>

struct ps_tls {
	SSL_CTX *context;
	uint64_t key_records;
};

#endif
