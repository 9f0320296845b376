/*
 * secure.c - see secure.h.
 */
#include "secure.h"
#include "socket.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Returns the option, if the caller's version of the options has it, or else the variable. Returns
 * NULL if neither is set. */
static const char *path_of(const struct perseas_options *options, size_t offset,
                           const char *variable)
{
	const char *path = NULL;

	if (options && options->size >= offset + sizeof(path))
		memcpy(&path, (const uint8_t *)options + offset, sizeof(path));
	if (!path)
		path = getenv(variable);
	return path && *path ? path : NULL;
}

int ps_secure_load_files(const struct perseas_options *options, struct ps_tls **tls,
                         struct ps_error *error)
{
	const struct ps_tls_files files = {
		.cert = path_of(options, offsetof(struct perseas_options, tls_cert),
		                "PERSEAS_TLS_CERT"),
		.key = path_of(options, offsetof(struct perseas_options, tls_key),
		               "PERSEAS_TLS_KEY"),
		.ca = path_of(options, offsetof(struct perseas_options, tls_ca), "PERSEAS_TLS_CA"),
		.crl = path_of(options, offsetof(struct perseas_options, tls_crl),
		               "PERSEAS_TLS_CRL"),
	};
	char why[512];

	*tls = NULL;
	if (!files.cert && !files.key && !files.ca && !files.crl)
		return 0;
	if (!files.cert || !files.key || !files.ca)
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "TLS needs a certificate, its key and a CA file: tls_%s is "
		                    "missing, or PERSEAS_TLS_%s in the environment",
		                    !files.cert  ? "cert"
		                    : !files.key ? "key"
		                                 : "ca",
		                    !files.cert  ? "CERT"
		                    : !files.key ? "KEY"
		                                 : "CA");
	*tls = ps_tls_new(&files, why, sizeof(why));
	return *tls ? 0 : ps_error_set(error, PERSEAS_ETLS, "%s", why);
}

int ps_secure_begin(struct ps_stream *stream, struct ps_tls *tls, const struct ps_address *address,
                    struct ps_error *error)
{
	if (!tls || address->scheme != PS_SCHEME_TCP ||
	    ps_stream_begin_tls(stream, tls, address->host) == 0)
		return 0;
	return ps_error_set(error, PERSEAS_ENOMEM,
	                    "no memory for TLS with %s, or no certificate can be for that host",
	                    address->text);
}

int ps_secure_check_failure(const struct ps_stream *stream, const struct ps_address *address,
                            struct ps_error *error)
{
	switch (ps_stream_fault(stream)) {
	case PS_TLS_FAULT_NONE:
		return 0;
	case PS_TLS_FAULT_NO_TLS:
		return ps_error_set(error, PERSEAS_ETLS,
		                    "%s does not speak TLS 1.3, which the certificates here ask "
		                    "for; start its perseasd with --tls-cert, --tls-key and "
		                    "--tls-ca, or connect without certificates",
		                    address->text);
	default:
		return ps_error_set(error, PERSEAS_ETLS, "%s: %s", address->text,
		                    ps_stream_fault_text(stream));
	}
}

int ps_secure_peer_wants_tls(const uint8_t first[2], const struct ps_address *address,
                             struct ps_error *error)
{
	if (first[0] != PS_TLS_ALERT || first[1] != PS_TLS_MAJOR)
		return 0;
	return ps_error_set(error, PERSEAS_ETLS,
	                    "%s takes TLS connections only; give a certificate, its key and the CA "
	                    "file (--tls-cert, --tls-key, --tls-ca, or PERSEAS_TLS_CERT, "
	                    "PERSEAS_TLS_KEY, PERSEAS_TLS_CA)",
	                    address->text);
}

int ps_secure_fail_timeout(const struct ps_address *address, struct ps_error *error)
{
	return ps_error_set(error, PERSEAS_EUNREACHABLE,
	                    "%s took the connection and did not finish the TLS handshake in time; "
	                    "is it a perseasd, and not stuck?",
	                    address->text);
}

int ps_secure_step(struct ps_stream *stream, const struct ps_address *address,
                   struct ps_error *error)
{
	int shaken = ps_stream_handshake(stream), code;

	if (shaken >= 0)
		return shaken > 0;
	code = ps_secure_check_failure(stream, address, error);
	if (code)
		return code;
	return ps_error_set(error, PERSEAS_EUNREACHABLE,
	                    "%s ended the connection in the TLS handshake (%s); is its perseasd "
	                    "still running?",
	                    address->text, errno ? strerror(errno) : "no reason");
}
