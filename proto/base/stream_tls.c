/*
 * stream_tls.c - TLS 1.3 over non-blocking sockets. Sent bytes are gathered into full records.
 * Encrypted bytes that the socket does not take stay in wire_tls.c. The caller sends the same plain
 * bytes again, and `owed` counts those that are encrypted already.
 */
#include "tls_private.h"
#include "wire_tls.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	RECORD = SSL3_RT_MAX_PLAIN_LENGTH,
	/* A peer may send at most MESSAGES_MAX messages of TLS itself, such as key updates, for
	 * each MESSAGES_BYTES of data. A key update costs the receiver more than the sender, and an
	 * honest peer needs one for 2^24 records. */
	MESSAGES_MAX = 64,
	MESSAGES_BYTES = 1 << 20,
};

struct ps_tls_stream {
	SSL *ssl;
	struct ps_tls_wire wire;
	bool server;     /* this end accepted the connection */
	bool up;         /* the handshake has succeeded */
	bool wants_room; /* the handshake waits until the socket can be written */
	bool more;       /* decrypted bytes or an end wait here, and poll() does not report them */
	bool over;       /* the stream has ended or failed; OpenSSL is not called any more */
	bool unsent;     /* SSL_write_ex() was interrupted and must be repeated */
	size_t owed;     /* leading bytes of the next send that are already encrypted */
	/* Records sent with the current key, and after how many records the key is changed. */
	uint64_t records, key_records;
	unsigned messages;       /* messages of TLS itself received since message_bytes was 0 */
	size_t message_bytes;    /* bytes of data received in the same period */
	enum ps_tls_fault fault; /* why TLS failed */
	char why[320];           /* sentence about the fault; "" if there is none */
	uint8_t record[RECORD];  /* bytes of several parts that form one record */
};

/* --- failures --- */

static const char renew_certificate[] = "renew it, if the clocks of both ends are right";
/* The peer sends the same alert if its own revocation list has expired. */
static const char renew_either[] = "renew it, or the revocation list at the other end if that has "
				   "expired; the clocks of both ends must be right";
static const char check_ca_files[] = "the CA files of both ends must have the CA that signed it";
static const char check_host[] = "the host that was dialled must be among its alternative names";
static const char check_key_usage[] = "its extended key usage must be serverAuth for a mirror, "
				      "clientAuth for a peer that connects to one, or both";
static const char renew_list[] = "this end needs a newer list: --tls-crl, or PERSEAS_TLS_CRL";
static const char give_lists[] = "the file of --tls-crl, or PERSEAS_TLS_CRL, must have a list of "
				 "every CA between the certificate and the CA file";
static const char replace_certificate[] = "it was revoked, so another one is needed";
static const char give_certificate[] = "give one, with its key: --tls-cert and --tls-key, or "
				       "PERSEAS_TLS_CERT and PERSEAS_TLS_KEY";

/* Returns what to do about a peer's certificate that this end rejects. */
static const char *advice_for_verdict(long verdict)
{
	switch (verdict) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return renew_certificate;
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		return check_host;
	case X509_V_ERR_INVALID_PURPOSE:
		return check_key_usage;
	case X509_V_ERR_CERT_REVOKED:
		return replace_certificate;
	case X509_V_ERR_CRL_HAS_EXPIRED:
	case X509_V_ERR_CRL_NOT_YET_VALID:
		return renew_list;
	case X509_V_ERR_UNABLE_TO_GET_CRL:
		return give_lists;
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_CERT_SIGNATURE_FAILURE:
		return check_ca_files;
	}
	return "another one is needed";
}

/* Alerts by which the peer rejects this end's certificate. */
static const struct alert {
	int reason;
	const char *text, *todo;
} alerts[] = {
	{ SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, "it wants one", give_certificate },
	{ SSL_R_TLSV1_ALERT_UNKNOWN_CA, "it does not know its CA", check_ca_files },
	{ SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, "expired", renew_either },
	{ SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, "revoked", replace_certificate },
	{ SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, "not for this use", check_key_usage },
	{ SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, "bad", "its log says why" },
	{ SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, "bad", "its log says why" },
	{ SSL_R_TLSV1_ALERT_DECRYPT_ERROR, "its signature is wrong", "its log says why" },
};

static bool is_not_tls(int reason)
{
	switch (reason) {
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_HTTP_REQUEST:
	case SSL_R_HTTPS_PROXY_REQUEST:
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
		return true;
	}
	return false;
}

static void set_fault(struct ps_tls_stream *tls, enum ps_tls_fault fault, const char *what,
                      const char *reason, const char *todo)
{
	assert(fault != PS_TLS_FAULT_NONE);
	tls->fault = fault;
	snprintf(tls->why, sizeof(tls->why), "%s (%s); %s", what, reason, todo);
}

/* Translates OpenSSL's last error into tls->fault and tls->why. */
static void explain_error(struct ps_tls_stream *tls)
{
	unsigned long error = ERR_peek_last_error();
	const char *text = ERR_reason_error_string(error);
	int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
	long verdict = SSL_get_verify_result(tls->ssl);
	size_t i;

	for (i = 0; i < sizeof(alerts) / sizeof(alerts[0]); i++) {
		if (alerts[i].reason != reason)
			continue;
		set_fault(tls, PS_TLS_FAULT_OWN_CERT, "it refuses the certificate of this end",
		          alerts[i].text, alerts[i].todo);
		return;
	}
	if (is_not_tls(reason))
		snprintf(tls->why, sizeof(tls->why), "it does not speak TLS 1.3");
	if (is_not_tls(reason))
		tls->fault = PS_TLS_FAULT_NO_TLS;
	else if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
		set_fault(tls, PS_TLS_FAULT_PEER_CERT, "its certificate is refused",
		          X509_verify_cert_error_string(verdict), advice_for_verdict(verdict));
	else if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
		set_fault(tls, PS_TLS_FAULT_PEER_CERT, "it shows no certificate", "one is wanted",
		          give_certificate);
	else
		set_fault(tls, PS_TLS_FAULT_OTHER, "TLS with it failed", text ? text : "no reason",
		          "the connection may have been tampered with");
}

/* Handles an OpenSSL call that returned no success. Returns 0 if the stream has ended, or -1 with
 * errno set: EAGAIN if the caller must wait, EPROTO if TLS failed. */
static int handle_failure(struct ps_tls_stream *tls, int ret)
{
	int kind = SSL_get_error(tls->ssl, ret);

	tls->wants_room = kind == SSL_ERROR_WANT_WRITE;
	if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
		errno = EAGAIN;
		return -1;
	}
	tls->over = true;
	if (kind == SSL_ERROR_ZERO_RETURN || (kind == SSL_ERROR_SYSCALL && tls->wire.error == 0)) {
		tls->wire.error = 0;
		return 0;
	}
	if (kind == SSL_ERROR_SSL) {
		explain_error(tls);
		tls->wire.error = EPROTO;
	}
	ERR_clear_error();
	errno = tls->wire.error;
	return -1;
}

/* Returns how the stream ended: 0 if the peer closed it, or -1 with errno set. */
static int end_or_error(const struct ps_tls_stream *tls)
{
	errno = tls->wire.error;
	return tls->wire.error ? -1 : 0;
}

enum ps_tls_fault ps_stream_fault(const struct ps_stream *stream)
{
	return stream->tls ? stream->tls->fault : PS_TLS_FAULT_NONE;
}

const char *ps_stream_fault_text(const struct ps_stream *stream)
{
	return stream->tls ? stream->tls->why : "";
}

void ps_stream_send_alert(const struct ps_stream *stream)
{
	/* A record with one alert: level fatal (2), description protocol_version (70). */
	static const uint8_t alert[] = { PS_TLS_ALERT, PS_TLS_MAJOR, 3, 0, 2, 2, 70 };

	(void)send(stream->fd, alert, sizeof(alert), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Enters OpenSSL. If the process is exiting, ends the stream and returns false with errno set. */
static bool enter_or_end(struct ps_tls_stream *tls)
{
	if (ps_openssl_enter())
		return true;
	tls->over = true;
	tls->more = false;
	errno = tls->wire.error = ESHUTDOWN;
	return false;
}

/* --- opening and closing --- */

static bool is_ip_address(const char *host)
{
	ASN1_OCTET_STRING *number = a2i_IPADDRESS(host);

	ASN1_OCTET_STRING_free(number);
	return number != NULL;
}

/* Requires the peer's certificate to match `host`. */
static bool expect_host(SSL *ssl, const char *host)
{
	X509_VERIFY_PARAM *rules = SSL_get0_param(ssl);
	char number[64];

	/* The zone of "fe80::1%eth0" is local and not part of a certificate. */
	snprintf(number, sizeof(number), "%.*s", (int)strcspn(host, "%"), host);
	if (is_ip_address(number))
		return X509_VERIFY_PARAM_set1_ip_asc(rules, number) == 1;
	X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
	                                               X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

/* OpenSSL calls this for each TLS message. Within one read it handles such messages for as long as
 * they arrive; setting the received-shutdown flag makes it stop. */
static void count_message(int sends, int version, int type, const void *bytes, size_t len, SSL *ssl,
                          void *arg)
{
	struct ps_tls_stream *tls = arg;

	(void)version;
	(void)bytes;
	(void)len;
	if (sends || type != SSL3_RT_HANDSHAKE || !tls->up)
		return;
	if (++tls->messages > MESSAGES_MAX)
		SSL_set_shutdown(ssl, SSL_get_shutdown(ssl) | SSL_RECEIVED_SHUTDOWN);
}

static int begin_tls(struct ps_stream *stream, struct ps_tls *context, const char *host)
{
	struct ps_tls_stream *tls = malloc(sizeof(*tls));
	BIO *bio;

	if (!tls)
		return -1;
	memset(tls, 0, offsetof(struct ps_tls_stream, record));
	tls->wire.fd = stream->fd;
	tls->wire.error = EPROTO;
	tls->server = !host;
	tls->key_records = context->key_records;
	pthread_mutex_lock(&context->lock);
	tls->ssl = SSL_new(context->context);
	pthread_mutex_unlock(&context->lock);
	bio = ps_tls_wire_bio(&tls->wire);
	if (!tls->ssl || !bio || (host && !expect_host(tls->ssl, host))) {
		BIO_free(bio);
		SSL_free(tls->ssl);
		free(tls);
		ERR_clear_error();
		return -1;
	}
	SSL_set_bio(tls->ssl, bio, bio);
	SSL_set_msg_callback(tls->ssl, count_message);
	SSL_set_msg_callback_arg(tls->ssl, tls);
	if (host)
		SSL_set_connect_state(tls->ssl);
	else
		SSL_set_accept_state(tls->ssl);
	stream->tls = tls;
	return 0;
}

int ps_stream_begin_tls(struct ps_stream *stream, struct ps_tls *context, const char *host)
{
	int rc;

	assert(!stream->tls);
	if (!ps_openssl_enter())
		return -1;
	rc = begin_tls(stream, context, host);
	ps_openssl_leave();
	return rc;
}

static int run_handshake(struct ps_stream *stream)
{
	struct ps_tls_stream *tls = stream->tls;
	int ret;

	ERR_clear_error();
	ret = SSL_do_handshake(tls->ssl);
	if (ret == 1) {
		tls->up = tls->more = true;
		tls->wants_room = false;
		return 1;
	}
	if (handle_failure(tls, ret) < 0 && errno == EAGAIN)
		return 0;
	/* OpenSSL sends no alert to a peer that does not speak TLS, so this sends one in plain
	 * text. */
	if (tls->server && tls->fault == PS_TLS_FAULT_NO_TLS)
		ps_stream_send_alert(stream);
	errno = tls->wire.error;
	return -1;
}

int ps_stream_handshake(struct ps_stream *stream)
{
	struct ps_tls_stream *tls = stream->tls;
	int ret;

	if (!tls || tls->up)
		return 1;
	errno = tls->wire.error;
	if (tls->over || !enter_or_end(tls))
		return -1;
	ret = run_handshake(stream);
	ps_openssl_leave();
	return ret;
}

short ps_stream_events(const struct ps_stream *stream, bool unsent)
{
	const struct ps_tls_stream *tls = stream->tls;

	if (tls && !tls->up)
		return tls->wants_room ? POLLOUT : POLLIN;
	return (short)(unsent ? POLLIN | POLLOUT : POLLIN);
}

static void shut_down_tls(struct ps_tls_stream *tls)
{
	ERR_clear_error();
	if (tls->up && !tls->over && !tls->unsent && tls->owed == 0)
		(void)SSL_shutdown(tls->ssl);
	ERR_clear_error();
	SSL_free(tls->ssl);
}

void ps_stream_close(struct ps_stream *stream)
{
	struct ps_tls_stream *tls = stream->tls;

	if (tls) {
		if (ps_openssl_enter()) {
			shut_down_tls(tls);
			ps_openssl_leave();
		}
		ps_tls_wire_clear(&tls->wire);
		free(tls);
	}
	if (stream->fd >= 0)
		close(stream->fd);
	stream->fd = -1;
	stream->tls = NULL;
}

void ps_stream_close_silently(struct ps_stream *stream)
{
	if (stream->tls)
		stream->tls->over = true;
	ps_stream_close(stream);
}

SSL *ps_stream_ssl(const struct ps_stream *stream)
{
	assert(stream->tls);
	return stream->tls->ssl;
}

int ps_stream_peer_name(struct ps_stream *stream, char name[PS_TLS_NAME_MAX + 1])
{
	const X509 *certificate;
	const char *why;

	if (!ps_openssl_enter())
		return -1;
	certificate = SSL_get0_peer_certificate(stream->tls->ssl);
	why = certificate ? ps_certificate_name(certificate, name) : "there is none";
	ps_openssl_leave();
	if (!why)
		return 0;
	name[0] = '\0';
	set_fault(stream->tls, PS_TLS_FAULT_PEER_CERT, "its certificate is refused", why,
	          "it needs a DNS name or a URI as alternative name, or a common name");
	return -1;
}

/* --- sending and receiving --- */

/* Counts received data. Each MESSAGES_BYTES of it allow MESSAGES_MAX further messages of TLS
 * itself. */
static void count_data(struct ps_tls_stream *tls, size_t len)
{
	tls->message_bytes += len;
	if (tls->message_bytes >= MESSAGES_BYTES && tls->messages <= MESSAGES_MAX)
		tls->message_bytes = tls->messages = 0;
}

/* Handles a read that returned no data, like handle_failure(). Fails the stream if the peer sent
 * too many messages of TLS itself. */
static int handle_failed_read(struct ps_tls_stream *tls, int ret)
{
	if (tls->messages <= MESSAGES_MAX)
		return handle_failure(tls, ret);
	set_fault(tls, PS_TLS_FAULT_OTHER, "TLS with it failed", "too many key updates",
	          "no program of this protocol sends so many");
	tls->wire.error = EPROTO;
	tls->over = true;
	return end_or_error(tls);
}

static ssize_t read_records(struct ps_tls_stream *tls, void *bytes, size_t len)
{
	size_t have = 0, n;
	int ret = 1;

	ERR_clear_error();
	while (have < len) {
		ret = SSL_read_ex(tls->ssl, (uint8_t *)bytes + have, len - have, &n);
		if (!ret)
			break;
		count_data(tls, n);
		have += n;
		if (!SSL_has_pending(tls->ssl))
			break;
	}
	tls->more = ret && SSL_has_pending(tls->ssl);
	if (ret)
		return (ssize_t)have;
	ret = handle_failed_read(tls, ret);
	/* The caller gets the data first, and the end with its next call. */
	if (have > 0)
		tls->more = tls->over;
	return have > 0 ? (ssize_t)have : ret;
}

ssize_t ps_tls_recv(struct ps_tls_stream *tls, void *bytes, size_t len)
{
	ssize_t n;

	if (tls->over || !enter_or_end(tls)) {
		tls->more = false;
		return end_or_error(tls);
	}
	n = read_records(tls, bytes, len);
	ps_openssl_leave();
	return n;
}

bool ps_tls_pending(const struct ps_tls_stream *tls)
{
	return tls->more;
}

/* Returns the next bytes to encrypt, after skipping `skip` bytes of the parts: at most one record,
 * copied to tls->record if they span several parts. */
static const uint8_t *next_plaintext(struct ps_tls_stream *tls, const struct iovec *parts,
                                     size_t count, size_t skip, size_t *len)
{
	const uint8_t *base;
	size_t n, at = 0;

	while (count > 0 && skip >= parts->iov_len) {
		skip -= parts->iov_len;
		parts++;
		count--;
	}
	*len = 0;
	if (count == 0)
		return NULL;
	base = (const uint8_t *)parts->iov_base + skip;
	n = parts->iov_len - skip;
	*len = n < RECORD ? n : RECORD;
	if (n >= RECORD || count == 1)
		return base;
	for (; count > 0 && at < RECORD; parts++, count--, skip = 0) {
		n = parts->iov_len - skip;
		n = n < RECORD - at ? n : RECORD - at;
		if (n > 0)
			memcpy(tls->record + at, (const uint8_t *)parts->iov_base + skip, n);
		at += n;
	}
	assert(at <= RECORD);
	*len = at;
	return tls->record;
}

/* Sends the records that earlier calls encrypted. Returns false with errno set: EAGAIN if the
 * socket is full, or its error. */
static bool send_kept(struct ps_tls_stream *tls)
{
	int ret = ps_tls_wire_flush(&tls->wire);

	if (ret == 0)
		errno = EAGAIN;
	return ret > 0;
}

/* Encrypts the parts from *at on until the socket is full, and advances *at. Returns false with
 * errno set if the socket or TLS failed. */
static bool send_records(struct ps_tls_stream *tls, const struct iovec *parts, size_t count,
                         size_t *at)
{
	const size_t start = *at;
	size_t batch = ps_tls_wire_batch(0), len, n;
	const uint8_t *bytes;

	while ((bytes = next_plaintext(tls, parts, count, *at, &len)) != NULL) {
		if (!SSL_write_ex(tls->ssl, bytes, len, &n)) {
			bool over = tls->over;
			int error = handle_failure(tls, 0) < 0 ? errno : EPIPE;

			tls->unsent = true;
			/* After a failure of the socket, an alert by which the peer says why may
			 * still be waiting to be read. The stream stays open for reading it. */
			if (!tls->fault)
				tls->over = over;
			errno = error;
			return error == EAGAIN;
		}
		*at += n;
		tls->unsent = false;
		if (++tls->records >= tls->key_records &&
		    SSL_key_update(tls->ssl, SSL_KEY_UPDATE_NOT_REQUESTED))
			tls->records = 0;
		if (tls->wire.end - tls->wire.start < batch)
			continue;
		if (!send_kept(tls))
			return errno == EAGAIN;
		batch = ps_tls_wire_batch(*at - start);
	}
	return true;
}

static ssize_t send_parts(struct ps_tls_stream *tls, const struct iovec *parts, size_t count)
{
	size_t total = 0, at, gone;
	bool sound;

	if (!send_kept(tls))
		return -1;
	ERR_clear_error();
	for (size_t i = 0; i < count; i++)
		total += parts[i].iov_len;
	at = gone = tls->owed < total ? tls->owed : total;
	tls->owed -= gone;
	tls->wire.gathers = total - at > RECORD;
	sound = send_records(tls, parts, count, &at);
	tls->wire.gathers = false;
	/* Plain bytes count as sent only if all their records are sent. */
	if (sound && send_kept(tls))
		gone = at;
	else if (sound && errno != EAGAIN)
		sound = false;
	assert(gone <= at && at <= total);
	tls->owed += at - gone;
	if (gone > 0 || (sound && total == 0))
		return (ssize_t)gone;
	if (sound)
		errno = EAGAIN;
	return -1;
}

ssize_t ps_tls_send(struct ps_tls_stream *tls, const struct iovec *parts, size_t count)
{
	ssize_t n;

	if (tls->over || !enter_or_end(tls)) {
		errno = tls->wire.error ? tls->wire.error : EPIPE;
		return -1;
	}
	n = send_parts(tls, parts, count);
	ps_openssl_leave();
	return n;
}
