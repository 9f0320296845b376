/*
 * context_tls.c - builds an OpenSSL context from the files that the options name: certificate, key,
 * CA file and revocation list. Reloads the files when they change.
 */
#include "tls_private.h"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READ_BUFFER = 64 << 10 }; /* bytes that one recv() reads at most */

/* Refuses keys that need a passphrase. Without this callback OpenSSL would prompt at the
 * terminal. */
static int no_passphrase(char *text, int size, int writing, void *arg)
{
	(void)writing;
	(void)arg;
	if (size > 0)
		*text = '\0';
	return -1;
}

static void explain_failure(char *why, size_t size, const char *option, const char *path)
{
	/* The first error in the queue is the cause; later ones report consequences. */
	unsigned long error = ERR_peek_error();
	const char *reason = ERR_GET_LIB(error) == ERR_LIB_SYS ? strerror(ERR_GET_REASON(error))
	                                                       : ERR_reason_error_string(error);

	snprintf(why, size, "TLS: the %s %s cannot be used: %s", option, path,
	         reason ? reason : "unknown reason");
	ERR_clear_error();
}

/* Loads a revocation list. CRL_CHECK_ALL also checks the CA certificates above the peer's. */
static bool load_crl(SSL_CTX *context, const char *path)
{
	X509_STORE *store = SSL_CTX_get_cert_store(context);
	X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());

	return lookup && X509_load_crl_file(lookup, path, X509_FILETYPE_PEM) > 0 &&
	       X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
}

static bool load_files(SSL_CTX *context, const struct ps_tls_files *files, char *why, size_t size)
{
	if (SSL_CTX_use_certificate_chain_file(context, files->cert) != 1)
		explain_failure(why, size, "certificate", files->cert);
	else if (SSL_CTX_use_PrivateKey_file(context, files->key, SSL_FILETYPE_PEM) != 1)
		explain_failure(why, size, "key", files->key);
	else if (SSL_CTX_load_verify_file(context, files->ca) != 1)
		explain_failure(why, size, "CA file", files->ca);
	else if (files->crl && !load_crl(context, files->crl))
		explain_failure(why, size, "revocation list", files->crl);
	else
		return true;
	return false;
}

static bool set_tls_options(SSL_CTX *context)
{
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_default_passwd_cb(context, no_passphrase);
	/* A queue may move its first bytes and append more between two tries to send them. */
	SSL_CTX_set_mode(context,
	                 SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	/* Session tickets would wake a reader for a record without data. An end without
	 * close_notify is accepted, because frames and messages carry their own lengths. */
	SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	/* Reads the header and the body of a record with one system call. */
	SSL_CTX_set_read_ahead(context, 1);
	SSL_CTX_set_default_read_buffer_len(context, READ_BUFFER);
	return SSL_CTX_set_num_tickets(context, 0) &&
	       SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) &&
	       SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION);
}

static void free_context(SSL_CTX *context)
{
	if (!context || !ps_openssl_enter())
		return;
	SSL_CTX_free(context);
	ps_openssl_leave();
}

static SSL_CTX *make_context(const struct ps_tls_files *files, char *why, size_t size)
{
	SSL_CTX *context;

	snprintf(why, size, "TLS: OpenSSL cannot be used, or the process ends");
	if (!ps_openssl_enter())
		return NULL;
	ERR_clear_error();
	snprintf(why, size, "TLS: out of memory");
	context = SSL_CTX_new(TLS_method());
	if (context && !(set_tls_options(context) && load_files(context, files, why, size))) {
		SSL_CTX_free(context);
		context = NULL;
	}
	ps_openssl_leave();
	return context;
}

/* Records the inode, size and modification time of each file, to notice later that it changed. */
static void stat_files(char *const paths[PS_TLS_FILES], struct stat seen[PS_TLS_FILES])
{
	memset(seen, 0, PS_TLS_FILES * sizeof(*seen));
	for (int i = 0; i < PS_TLS_FILES; i++)
		if (paths[i])
			(void)stat(paths[i], &seen[i]);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

struct ps_tls *ps_tls_new(const struct ps_tls_files *files, char *why, size_t size)
{
	const char *const paths[PS_TLS_FILES] = { files->cert, files->key, files->ca, files->crl };
	struct ps_tls *tls = calloc(1, sizeof(*tls));
	bool kept = true;

	snprintf(why, size, "TLS: out of memory");
	if (!tls)
		return NULL;
	pthread_mutex_init(&tls->lock, NULL);
	tls->key_records = (uint64_t)1 << 24;
	for (int i = 0; i < PS_TLS_FILES; i++) {
		tls->paths[i] = paths[i] ? strdup(paths[i]) : NULL;
		kept &= !paths[i] || tls->paths[i];
	}
	stat_files(tls->paths, tls->seen);
	if (kept)
		tls->context = make_context(files, why, size);
	if (tls->context)
		return tls;
	ps_tls_free(tls);
	return NULL;
}

bool ps_tls_refresh(struct ps_tls *tls, char *why, size_t size)
{
	const struct ps_tls_files files = { tls->paths[0], tls->paths[1], tls->paths[2],
		                            tls->paths[3] };
	struct stat seen[PS_TLS_FILES];
	SSL_CTX *context = NULL;
	bool same = true;

	pthread_mutex_lock(&tls->lock);
	stat_files(tls->paths, seen);
	for (int i = 0; i < PS_TLS_FILES; i++)
		same &= is_same_file(&seen[i], &tls->seen[i]);
	if (!same)
		context = make_context(&files, why, size);
	if (context) {
		free_context(tls->context);
		tls->context = context;
		memcpy(tls->seen, seen, sizeof(seen));
	}
	pthread_mutex_unlock(&tls->lock);
	return same || context;
}

void ps_tls_free(struct ps_tls *tls)
{
	if (!tls)
		return;
	free_context(tls->context);
	for (int i = 0; i < PS_TLS_FILES; i++)
		free(tls->paths[i]);
	pthread_mutex_destroy(&tls->lock);
	free(tls);
}

void ps_tls_set_key_records(struct ps_tls *tls, uint64_t records)
{
	tls->key_records = records;
}
