/*
 * stream_tls.c - streams inside TLS 1.3, over sockets that do not block.
 *
 * What is sent is gathered into records, and the records of one send into a few system calls. What
 * the socket does not take of them stays here, encrypted; the next send begins with the same bytes,
 * and finds that they are gone.
 */
#include "tls_private.h"
#include "wire_tls.h"

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
	/* Messages of TLS itself, such as key updates, that the other end may send for each so many
	 * bytes of data. Each costs this end more than that one; it needs one for 2^24 records. */
	MESSAGES_MAX = 64,
	MESSAGES_BYTES = 1 << 20,
};

struct ps_tls_stream {
	SSL *ssl;
	struct ps_tls_wire wire;
	bool server;
	bool up;         /* the handshake is over */
	bool wants_room; /* it waits until the socket takes more */
	bool more;       /* something is here that no poll tells of */
	bool over;       /* it has ended or failed: nothing more is asked of OpenSSL */
	bool unsent;     /* a record is encrypted, and not all of it is gone */
	size_t owed;     /* bytes of the next send that are encrypted, and not yet gone */
	uint64_t records, key_records;
	unsigned messages;    /* of TLS itself that came */
	size_t message_bytes; /* of data that came with them */
	enum ps_tls_fault fault;
	char why[320];
	uint8_t record[RECORD];
};

/* --- failures --- */

static const char renew[] = "renew it, if the clocks of both ends are right";
static const char other_ca[] = "the CA files of both ends must have the CA that signed it";
static const char other_host[] = "the host that was dialled must be among its alternative names";
static const char other_use[] = "its extended key usage must be serverAuth for a mirror, "
				"clientAuth for a peer that connects to one, or both";
static const char new_list[] = "this end needs a newer list: --tls-crl, or PERSEAS_TLS_CRL";
static const char all_lists[] = "the file of --tls-crl, or PERSEAS_TLS_CRL, must have a list of "
				"every CA between the certificate and the CA file";
static const char another[] = "it was revoked, so another one is needed";
static const char none[] = "give one, with its key: --tls-cert and --tls-key, or "
			   "PERSEAS_TLS_CERT and PERSEAS_TLS_KEY";

/* What is to be done about a certificate that is not accepted here. */
static const char *advice(long verdict)
{
	switch (verdict) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return renew;
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		return other_host;
	case X509_V_ERR_INVALID_PURPOSE:
		return other_use;
	case X509_V_ERR_CERT_REVOKED:
		return another;
	case X509_V_ERR_CRL_HAS_EXPIRED:
	case X509_V_ERR_CRL_NOT_YET_VALID:
		return new_list;
	case X509_V_ERR_UNABLE_TO_GET_CRL:
		return all_lists;
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_CERT_SIGNATURE_FAILURE:
		return other_ca;
	}
	return "another one is needed";
}

/* The alerts by which the other end says that it does not accept the certificate of this one. */
static const struct alert {
	int reason;
	const char *text, *advice;
} alerts[] = {
	{ SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, "it wants one", none },
	{ SSL_R_TLSV1_ALERT_UNKNOWN_CA, "it does not know its CA", other_ca },
	{ SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, "expired", renew },
	{ SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, "revoked", another },
	{ SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, "not for this use", other_use },
	{ SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, "bad", "its log says why" },
	{ SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, "bad", "its log says why" },
	{ SSL_R_TLSV1_ALERT_DECRYPT_ERROR, "its signature is wrong", "its log says why" },
};

static bool is_absence(int reason)
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
	tls->fault = fault;
	snprintf(tls->why, sizeof(tls->why), "%s (%s); %s", what, reason, todo);
}

/* OpenSSL's last error, as a sentence. */
static void find_fault(struct ps_tls_stream *tls)
{
	unsigned long error = ERR_peek_last_error();
	const char *text = ERR_reason_error_string(error);
	int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
	long verdict = SSL_get_verify_result(tls->ssl);
	size_t i;

	for (i = 0; i < sizeof(alerts) / sizeof(alerts[0]); i++) {
		if (alerts[i].reason != reason)
			continue;
		set_fault(tls, PS_TLS_OURS, "it refuses the certificate of this end",
		          alerts[i].text, alerts[i].advice);
		return;
	}
	if (is_absence(reason))
		snprintf(tls->why, sizeof(tls->why), "it does not speak TLS 1.3");
	if (is_absence(reason))
		tls->fault = PS_TLS_ABSENT;
	else if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
		set_fault(tls, PS_TLS_THEIRS, "its certificate is refused",
		          X509_verify_cert_error_string(verdict), advice(verdict));
	else if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
		set_fault(tls, PS_TLS_THEIRS, "it shows no certificate", "one is wanted", none);
	else
		set_fault(tls, PS_TLS_BROKEN, "TLS with it failed", text ? text : "no reason",
		          "the connection may have been tampered with");
}

/*
 * After a call of OpenSSL that did not do what it was to. 0: the stream has ended; -1 with errno,
 * EAGAIN where there is only to wait, EPROTO where TLS failed.
 */
static int failed(struct ps_tls_stream *tls, int ret)
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
		find_fault(tls);
		tls->wire.error = EPROTO;
	}
	ERR_clear_error();
	errno = tls->wire.error;
	return -1;
}

/* Says again how it ended. */
static int ended(const struct ps_tls_stream *tls)
{
	errno = tls->wire.error;
	return tls->wire.error ? -1 : 0;
}

enum ps_tls_fault ps_stream_fault(const struct ps_stream *stream)
{
	return stream->tls ? stream->tls->fault : PS_TLS_SOUND;
}

const char *ps_stream_why(const struct ps_stream *stream)
{
	return stream->tls ? stream->tls->why : "";
}

void ps_stream_refuse(const struct ps_stream *stream)
{
	/* An alert that is fatal: protocol_version. */
	static const uint8_t alert[] = { PS_TLS_ALERT, PS_TLS_MAJOR, 3, 0, 2, 2, 70 };

	(void)send(stream->fd, alert, sizeof(alert), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* As ps_tls_enter(), with errno: the stream has ended where the process does. */
static bool enter(struct ps_tls_stream *tls)
{
	if (ps_tls_enter())
		return true;
	tls->over = true;
	tls->more = false;
	errno = tls->wire.error = ESHUTDOWN;
	return false;
}

/* --- life --- */

static bool is_number(const char *host)
{
	ASN1_OCTET_STRING *number = a2i_IPADDRESS(host);

	ASN1_OCTET_STRING_free(number);
	return number != NULL;
}

/* The other end's certificate must be for the host. */
static bool expect_host(SSL *ssl, const char *host)
{
	X509_VERIFY_PARAM *rules = SSL_get0_param(ssl);
	char number[64];

	/* Of "fe80::1%eth0" the zone is this end's own affair. */
	snprintf(number, sizeof(number), "%.*s", (int)strcspn(host, "%"), host);
	if (is_number(number))
		return X509_VERIFY_PARAM_set1_ip_asc(rules, number) == 1;
	X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
	                                               X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

/* OpenSSL goes on with messages of TLS itself inside of one read, as long as they come, and calls
 * this for each. The end that it then takes for said is what stops it. */
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

static int secure(struct ps_stream *stream, struct ps_tls *context, const char *host)
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

int ps_stream_secure(struct ps_stream *stream, struct ps_tls *context, const char *host)
{
	int rc;

	if (!ps_tls_enter())
		return -1;
	rc = secure(stream, context, host);
	ps_tls_leave();
	return rc;
}

static int shake(struct ps_stream *stream)
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
	if (failed(tls, ret) < 0 && errno == EAGAIN)
		return 0;
	/* The refusal is in plain text: OpenSSL sends nothing to a peer without TLS. */
	if (tls->server && tls->fault == PS_TLS_ABSENT)
		ps_stream_refuse(stream);
	errno = tls->wire.error;
	return -1;
}

int ps_stream_shake(struct ps_stream *stream)
{
	struct ps_tls_stream *tls = stream->tls;
	int ret;

	if (!tls || tls->up)
		return 1;
	errno = tls->wire.error;
	if (tls->over || !enter(tls))
		return -1;
	ret = shake(stream);
	ps_tls_leave();
	return ret;
}

short ps_stream_events(const struct ps_stream *stream, bool unsent)
{
	const struct ps_tls_stream *tls = stream->tls;

	if (tls && !tls->up)
		return tls->wants_room ? POLLOUT : POLLIN;
	return (short)(unsent ? POLLIN | POLLOUT : POLLIN);
}

static void say_goodbye(struct ps_tls_stream *tls)
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
		if (ps_tls_enter()) {
			say_goodbye(tls);
			ps_tls_leave();
		}
		ps_tls_wire_clear(&tls->wire);
		free(tls);
	}
	if (stream->fd >= 0)
		close(stream->fd);
	stream->fd = -1;
	stream->tls = NULL;
}

void ps_stream_leave(struct ps_stream *stream)
{
	if (stream->tls)
		stream->tls->over = true;
	ps_stream_close(stream);
}

SSL *ps_stream_ssl(const struct ps_stream *stream)
{
	return stream->tls->ssl;
}

int ps_stream_name(struct ps_stream *stream, char name[PS_TLS_NAME_MAX + 1])
{
	const X509 *certificate;
	const char *why;

	if (!ps_tls_enter())
		return -1;
	certificate = SSL_get0_peer_certificate(stream->tls->ssl);
	why = certificate ? ps_certificate_name(certificate, name) : "there is none";
	ps_tls_leave();
	if (!why)
		return 0;
	name[0] = '\0';
	set_fault(stream->tls, PS_TLS_THEIRS, "its certificate is refused", why,
	          "it needs a DNS name or a URI as alternative name, or a common name");
	return -1;
}

/* --- bytes --- */

/* Bytes of data came: so many more messages may come with those that follow. */
static void count_data(struct ps_tls_stream *tls, size_t len)
{
	tls->message_bytes += len;
	if (tls->message_bytes >= MESSAGES_BYTES && tls->messages <= MESSAGES_MAX)
		tls->message_bytes = tls->messages = 0;
}

/* After a read that gave nothing: as failed(), unless the peer sent too many messages. */
static int failed_read(struct ps_tls_stream *tls, int ret)
{
	if (tls->messages <= MESSAGES_MAX)
		return failed(tls, ret);
	set_fault(tls, PS_TLS_BROKEN, "TLS with it failed", "too many key updates",
	          "no end of this protocol sends so many");
	tls->wire.error = EPROTO;
	tls->over = true;
	return ended(tls);
}

static ssize_t receive(struct ps_tls_stream *tls, void *bytes, size_t len)
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
	ret = failed_read(tls, ret);
	/* What came before the end is given first. */
	if (have > 0)
		tls->more = tls->over;
	return have > 0 ? (ssize_t)have : ret;
}

ssize_t ps_tls_recv(struct ps_tls_stream *tls, void *bytes, size_t len)
{
	ssize_t n;

	if (tls->over || !enter(tls)) {
		tls->more = false;
		return ended(tls);
	}
	n = receive(tls, bytes, len);
	ps_tls_leave();
	return n;
}

bool ps_tls_pending(const struct ps_tls_stream *tls)
{
	return tls->more;
}

/* The first bytes of the parts as one run, `skip` bytes of them left out: a record's worth at most,
 * copied where they lie apart. */
static const uint8_t *front(struct ps_tls_stream *tls, const struct iovec *parts, size_t count,
                            size_t skip, size_t *len)
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
	*len = at;
	return tls->record;
}

/* Sends what earlier calls encrypted. False, with errno: there is to wait, or the socket failed. */
static bool send_kept(struct ps_tls_stream *tls)
{
	int ret = ps_tls_wire_flush(&tls->wire);

	if (ret == 0)
		errno = EAGAIN;
	return ret > 0;
}

/* Encrypts parts from `at` on, until the socket takes no more; where that is. False: with errno,
 * the socket or TLS failed. */
static bool send_records(struct ps_tls_stream *tls, const struct iovec *parts, size_t count,
                         size_t *at)
{
	const size_t start = *at;
	size_t batch = ps_tls_wire_batch(0), len, n;
	const uint8_t *bytes;

	while ((bytes = front(tls, parts, count, *at, &len)) != NULL) {
		if (!SSL_write_ex(tls->ssl, bytes, len, &n)) {
			bool over = tls->over;
			int error = failed(tls, 0) < 0 ? errno : EPIPE;

			tls->unsent = true;
			/* A last word may still be there to receive, and say why. */
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
	/* Bytes are gone when their last record is. */
	if (sound && send_kept(tls))
		gone = at;
	else if (sound && errno != EAGAIN)
		sound = false;
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

	if (tls->over || !enter(tls)) {
		errno = tls->wire.error ? tls->wire.error : EPIPE;
		return -1;
	}
	n = send_parts(tls, parts, count);
	ps_tls_leave();
	return n;
}
