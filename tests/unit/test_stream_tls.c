/*
 * test_stream_tls.c - streams inside TLS, both ends in this thread, over a pair of sockets.
 */
#include "stream_tls_rig.h"

struct unit_fixture unit_group = { make_certificates, remove_certificates };

enum { BIG = 1 << 20, RECORD = 16 << 10 };

static struct pair good_pair(void)
{
	struct pair pair = pair_of("alice", "mirror", HOST, NULL);
	int client, server;

	shake(&pair, &client, &server);
	assert_int_equal(client, 1);
	assert_int_equal(server, 1);
	return pair;
}

static ssize_t send_one(struct ps_stream *stream, const void *bytes, size_t len)
{
	struct iovec part = { (void *)(uintptr_t)bytes, len };

	return ps_stream_send(stream, &part, 1);
}

static bool readable(const struct ps_stream *stream)
{
	struct pollfd fd = { .fd = stream->fd, .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

static bool would_block(ssize_t n)
{
	return n < 0 && errno == EAGAIN;
}

TEST(both_ends_know_each_other)
{
	struct pair pair = pair_of("alice", "mirror", HOST, NULL);
	char name[PS_TLS_NAME_MAX + 1], bytes[16];

	assert_int_equal(ps_stream_events(&pair.server, true), POLLIN);
	assert_int_equal(ps_stream_handshake(&pair.server), 0);
	assert_int_equal(ps_stream_handshake(&pair.client), 0);
	assert_int_equal(ps_stream_events(&pair.client, true), POLLIN);
	assert_int_equal(ps_stream_handshake(&pair.server), 0);
	assert_int_equal(ps_stream_handshake(&pair.client), 1);
	assert_int_equal(send_one(&pair.client, "hello", 5), 5);
	assert_int_equal(ps_stream_handshake(&pair.server), 1);
	assert_int_equal(ps_stream_peer_name(&pair.server, name), 0);
	assert_string_equal(name, "alice");
	/* The hello came with the end of the handshake: no poll tells of it. */
	assert_false(readable(&pair.server));
	assert_true(ps_stream_pending(&pair.server));
	assert_int_equal(ps_stream_recv(&pair.server, bytes, sizeof(bytes)), 5);
	assert_false(ps_stream_pending(&pair.server));
	assert_int_equal(ps_stream_events(&pair.server, true), POLLIN | POLLOUT);
	/* And nothing that nobody asked for wakes the client. */
	assert_false(readable(&pair.client));
	assert_true(would_block(ps_stream_recv(&pair.client, bytes, sizeof(bytes))));
	end(&pair);
}

TEST(a_host_is_a_name_or_a_number)
{
	const char *const hosts[] = { HOST, "Mirror.Example", "127.0.0.1", "::1", "::1%lo" };

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		struct pair pair = pair_of("common", "mirror", hosts[i], NULL);
		char name[PS_TLS_NAME_MAX + 1];
		int client, server;

		shake(&pair, &client, &server);
		assert_int_equal(client, 1);
		assert_int_equal(server, 1);
		assert_int_equal(ps_stream_peer_name(&pair.server, name), 0);
		assert_string_equal(name, "common");
		end(&pair);
	}
}

/* The end that refuses says why and what to do, and so does the one that is refused. */
TEST(wrong_certificates_are_told_apart_at_both_ends)
{
	static const struct wrong {
		const char *client, *server, *host, *crl;
		bool at_client;         /* refuses */
		const char *why, *told; /* by the end that refuses, by the other end */
	} wrongs[] = {
		{ "alice", "expired", HOST, NULL, true, "expired", "expired" },
		{ "alice", "early", HOST, NULL, true, "not yet valid", "bad" },
		{ "alice", "stranger", HOST, NULL, true, "issuer certificate", "its CA" },
		{ "alice", "mirror", "other.example", NULL, true, "ostname mismatch", "bad" },
		{ "alice", "mirror", "127.0.0.2", NULL, true, "IP address mismatch", "bad" },
		{ "alice", "common", "common", NULL, true, "ostname mismatch", "bad" },
		{ "alice", "client", HOST, NULL, true, "purpose", "not for this use" },
		{ "expired", "mirror", HOST, NULL, false, "expired", "or the revocation list" },
		{ "stranger", "mirror", HOST, NULL, false, "issuer certificate", "its CA" },
		{ "server", "mirror", HOST, NULL, false, "purpose", "not for this use" },
		{ "revoked", "mirror", HOST, "revoked", false, "revoked", "revoked" },
		{ "alice", "revoked", "revoked", "revoked", true, "revoked", "revoked" },
		/* The certificate's CA was revoked itself, or has no revocation list. */
		{ "deep", "mirror", HOST, "middle", false, "revoked", "revoked" },
		{ "deep", "mirror", HOST, "revoked", false, "every CA between", "its CA" },
	};

	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		const struct wrong *wrong = &wrongs[i];
		struct pair pair = pair_with(wrong->client, wrong->server, wrong->host,
		                             wrong->at_client ? wrong->crl : NULL,
		                             wrong->at_client ? NULL : wrong->crl);
		struct ps_stream *refuses = wrong->at_client ? &pair.client : &pair.server;
		struct ps_stream *refused = wrong->at_client ? &pair.server : &pair.client;
		int client, server;
		char byte;

		shake(&pair, &client, &server);
		assert_int_equal(server, -1);
		if (!wrong->at_client)
			assert_int_equal(ps_stream_recv(&pair.client, &byte, 1), -1);
		assert_int_equal(ps_stream_fault(refuses), PS_TLS_FAULT_PEER_CERT);
		assert_int_equal(ps_stream_fault(refused), PS_TLS_FAULT_OWN_CERT);
		if (!strstr(ps_stream_fault_text(refuses), wrong->why) ||
		    !strstr(ps_stream_fault_text(refused), wrong->told))
			fail_msg("%zu: said %s, and %s", i, ps_stream_fault_text(refuses),
			         ps_stream_fault_text(refused));
		end(&pair);
	}
}

/* The list has others in it; and a certificate that is good names nobody. */
TEST(a_certificate_that_is_good_is_not_always_a_name)
{
	struct pair pair = pair_of("nobody", "mirror", HOST, "revoked");
	char name[PS_TLS_NAME_MAX + 1];
	int client, server;

	shake(&pair, &client, &server);
	assert_int_equal(server, 1);
	assert_int_equal(ps_stream_peer_name(&pair.server, name), -1);
	assert_string_equal(name, "");
	assert_int_equal(ps_stream_fault(&pair.server), PS_TLS_FAULT_PEER_CERT);
	assert_non_null(strstr(ps_stream_fault_text(&pair.server), "space"));
	end(&pair);
}

/* A record of many small parts, and one of far more than a socket holds, whose rest has moved to
 * another place between the tries. */
TEST(what_the_socket_does_not_take_is_sent_later)
{
	struct pair pair = good_pair();
	uint8_t *sent = malloc(BIG), *got = calloc(1, BIG), *moved = malloc(BIG);
	size_t out = 0, in = 0;
	struct iovec parts[40];
	bool full = false;
	ssize_t n;

	for (size_t i = 0; i < BIG; i++)
		sent[i] = (uint8_t)(i * 2654435761u >> 13);
	while (out < BIG || in < BIG) {
		size_t count = 0;

		memcpy(moved, sent, BIG);
		for (size_t at = out; at < BIG && count < 40; at += parts[count++].iov_len) {
			size_t len = count < 30 ? 1 + at % 1000 : BIG - at;

			parts[count].iov_base = moved + at;
			parts[count].iov_len = len < BIG - at ? len : BIG - at;
		}
		n = out < BIG ? ps_stream_send(&pair.client, parts, count) : 0;
		full |= would_block(n);
		out += n > 0 ? (size_t)n : 0;
		memset(moved, 0, BIG);
		if (full)
			n = ps_stream_recv(&pair.server, got + in,
			                   BIG - in < 70000 ? BIG - in : 70000);
		in += full && n > 0 ? (size_t)n : 0;
	}
	assert_memory_equal(sent, got, BIG);
	free(sent);
	free(got);
	free(moved);
	end(&pair);
}

/* Records of 16 KiB leave in batches, each by one system call: a call for each record would take
 * most of the time of a large transaction. The first batch is small, since the other end decrypts
 * nothing before it comes; those after much else are larger. A socket of packets shows what one
 * call has sent. */
TEST(batches_of_records_grow_with_what_is_sent)
{
	static const unsigned records[] = { 1, 2, 2, 2, 2, 3 };
	enum { CALLS = sizeof(records) / sizeof(records[0]), LEN = 12 * RECORD };
	struct pair pair = {
		.client_tls = authority_tls(folder, "alice", "ca", NULL),
		.server_tls = authority_tls(folder, "mirror", "ca", NULL),
	};
	const int room = 2 * LEN;
	uint8_t *sent = calloc(1, LEN);
	int client, server;
	char byte;

	connect_pair_of(&pair, HOST, SOCK_SEQPACKET);
	setsockopt(pair.client.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	shake(&pair, &client, &server);
	assert_int_equal(server, 1);
	assert_int_equal(send_one(&pair.client, sent, LEN), LEN);
	for (size_t i = 0; i < CALLS; i++) {
		const ssize_t n = recv(pair.server.fd, &byte, 1, MSG_TRUNC | MSG_DONTWAIT);

		/* A record adds a head and a tag of fewer than 64 bytes. */
		assert_int_equal(n / RECORD, records[i]);
		assert_true((size_t)n % RECORD < 64 * records[i]);
	}
	assert_int_equal(recv(pair.server.fd, &byte, 1, MSG_TRUNC | MSG_DONTWAIT), -1);
	free(sent);
	end(&pair);
}

/* A peer sends little but key updates, each of which costs this end more than the peer: no call may
 * go on with them for ever, and the connection ends. */
TEST(key_updates_without_end_are_refused)
{
	struct pair pair = {
		.client_tls = authority_tls(folder, "alice", "ca", NULL),
		.server_tls = authority_tls(folder, "mirror", "ca", NULL),
	};
	int client, server, got = 0;
	uint8_t bytes[8];
	ssize_t n;

	ps_tls_set_key_records(pair.client_tls, 1);
	connect_pair(&pair, HOST);
	shake(&pair, &client, &server);
	assert_int_equal(server, 1);
	for (int i = 0; i < 100; i++)
		assert_int_equal(send_one(&pair.client, "x", 1), 1);
	while ((n = ps_stream_recv(&pair.server, bytes, sizeof(bytes))) > 0)
		got += (int)n;
	assert_int_equal(n, -1);
	assert_int_equal(errno, EPROTO);
	assert_true(got >= 32 && got < 100);
	assert_int_equal(ps_stream_fault(&pair.server), PS_TLS_FAULT_OTHER);
	assert_non_null(strstr(ps_stream_fault_text(&pair.server), "key updates"));
	assert_false(ps_stream_pending(&pair.server));
	end(&pair);
}

/* A reader that takes less than there is must not sleep then. */
TEST(what_is_not_taken_is_pending)
{
	struct pair pair = good_pair();
	uint8_t bytes[100];

	assert_int_equal(send_one(&pair.client, "one", 3), 3);
	assert_int_equal(send_one(&pair.client, "two", 3), 3);
	assert_int_equal(ps_stream_recv(&pair.server, bytes, 2), 2);
	assert_false(readable(&pair.server));
	assert_true(ps_stream_pending(&pair.server));
	assert_int_equal(ps_stream_recv(&pair.server, bytes + 2, 3), 3);
	assert_true(ps_stream_pending(&pair.server));
	assert_int_equal(ps_stream_recv(&pair.server, bytes + 5, 80), 1);
	assert_memory_equal(bytes, "onetwo", 6);
	assert_false(ps_stream_pending(&pair.server));
	assert_true(would_block(ps_stream_recv(&pair.server, bytes, 100)));
	assert_false(ps_stream_pending(&pair.server));
	end(&pair);
}

/* An orderly end, a process that dies, and a send after it: no signal, and what came before the end
 * is there. */
TEST(the_end_comes_after_what_was_sent)
{
	for (int dies = 0; dies < 2; dies++) {
		struct pair pair = good_pair();
		uint8_t bytes[8];

		assert_int_equal(send_one(&pair.client, "last", 4), 4);
		if (dies)
			shutdown(pair.client.fd, SHUT_RDWR);
		ps_stream_close(&pair.client);
		assert_int_equal(ps_stream_recv(&pair.server, bytes, 8), 4);
		assert_int_equal(ps_stream_recv(&pair.server, bytes, 8), 0);
		assert_int_equal(ps_stream_recv(&pair.server, bytes, 8), 0);
		assert_false(ps_stream_pending(&pair.server));
		assert_int_equal(send_one(&pair.server, "x", 1), -1);
		assert_int_equal(errno, EPIPE);
		assert_int_equal(ps_stream_fault(&pair.server), PS_TLS_FAULT_NONE);
		end(&pair);
	}
}

/* Somebody between the two changes a byte. */
TEST(bytes_that_were_changed_are_refused)
{
	struct pair pair = good_pair();
	uint8_t bytes[200];
	ssize_t n;

	assert_int_equal(send_one(&pair.client, "secret", 6), 6);
	n = recv(pair.server.fd, bytes, sizeof(bytes), 0);
	assert_true(n > 6 && !memmem(bytes, (size_t)n, "secret", 6));
	bytes[n - 1] ^= 1;
	assert_int_equal(send(pair.client.fd, bytes, (size_t)n, 0), n);
	assert_int_equal(ps_stream_recv(&pair.server, bytes, sizeof(bytes)), -1);
	assert_int_equal(errno, EPROTO);
	assert_int_equal(ps_stream_fault(&pair.server), PS_TLS_FAULT_OTHER);
	assert_int_equal(ps_stream_recv(&pair.server, bytes, sizeof(bytes)), -1);
	assert_int_equal(send_one(&pair.server, "x", 1), -1);
	end(&pair);
}

/* A key is good for so many records only. */
TEST(keys_are_changed_while_bytes_flow)
{
	struct pair pair = {
		.client_tls = authority_tls(folder, "alice", "ca", NULL),
		.server_tls = authority_tls(folder, "mirror", "ca", NULL),
	};
	int client, server, changes = 0;
	uint8_t bytes[200];
	ssize_t n, least = sizeof(bytes);

	ps_tls_set_key_records(pair.client_tls, 3);
	ps_tls_set_key_records(pair.server_tls, 5);
	connect_pair(&pair, HOST);
	shake(&pair, &client, &server);
	for (int i = 0; i < 100; i++) {
		struct ps_stream *from = i % 2 ? &pair.server : &pair.client;
		struct ps_stream *to = i % 2 ? &pair.client : &pair.server;
		int got = 0;

		assert_int_equal(send_one(from, &i, sizeof(i)), sizeof(i));
		n = recv(to->fd, bytes, sizeof(bytes), MSG_PEEK);
		least = n < least ? n : least;
		/* The message of a key change precedes the record. */
		changes += n > least;
		assert_int_equal(ps_stream_recv(to, &got, sizeof(got)), sizeof(got));
		assert_int_equal(got, i);
	}
	/* 50 records each, the first one before any change. */
	assert_int_equal(changes, 49 / 3 + 49 / 5);
	end(&pair);
}

/* One end speaks plain text: the other one says so, and alerts the end that dialed. */
TEST(plain_text_is_told_from_tls)
{
	struct pair pair = pair_of("alice", "mirror", HOST, NULL);
	struct ps_stream plain = pair.client, refuses = { .fd = pair.server.fd };
	uint8_t bytes[64];

	plain.tls = NULL;
	assert_int_equal(send_one(&plain, "PSSC....", 8), 8);
	assert_int_equal(ps_stream_handshake(&pair.server), -1);
	assert_int_equal(ps_stream_fault(&pair.server), PS_TLS_FAULT_NO_TLS);
	assert_int_equal(ps_stream_recv(&plain, bytes, sizeof(bytes)), 7);
	assert_int_equal(bytes[0], PS_TLS_ALERT);
	assert_int_equal(bytes[1], PS_TLS_MAJOR);
	/* The other way round. */
	assert_int_equal(ps_stream_handshake(&pair.client), 0);
	assert_true(ps_stream_recv(&refuses, bytes, sizeof(bytes)) > 5);
	assert_int_equal(bytes[0], PS_TLS_HANDSHAKE);
	assert_int_equal(bytes[1], PS_TLS_MAJOR);
	ps_stream_send_alert(&refuses);
	assert_int_equal(ps_stream_handshake(&pair.client), -1);
	assert_int_equal(ps_stream_fault(&pair.client), PS_TLS_FAULT_NO_TLS);
	end(&pair);
}

static void write_file(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

TEST(files_that_cannot_be_used_are_named)
{
	static const struct {
		const char *cert, *key, *ca, *crl, *file, *why;
	} wrongs[] = {
		{ "none.pem", "alice.key", "ca.pem", NULL, "none.pem", "No such file" },
		{ "alice.pem", "none.key", "ca.pem", NULL, "none.key", "No such file" },
		{ "alice.pem", "alice.key", "none", NULL, "none", "No such file" },
		{ "alice.pem", "alice.key", "ca.pem", "none", "none", "No such file" },
		{ "alice.pem", "mirror.key", "ca.pem", NULL, "mirror.key", "mismatch" },
		{ "junk", "alice.key", "ca.pem", NULL, "junk", "no start line" },
		{ "alice.pem", "alice.key", "junk", NULL, "junk", "" },
		{ "alice.pem", "alice.key", "ca.pem", "junk", "junk", "" },
	};

	write_file("junk", "not PEM\n");
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		char paths[4][128], why[512];
		struct ps_tls_files files = { paths[0], paths[1], paths[2],
			                      wrongs[i].crl ? paths[3] : NULL };

		snprintf(paths[0], sizeof(paths[0]), "%s/%s", folder, wrongs[i].cert);
		snprintf(paths[1], sizeof(paths[1]), "%s/%s", folder, wrongs[i].key);
		snprintf(paths[2], sizeof(paths[2]), "%s/%s", folder, wrongs[i].ca);
		snprintf(paths[3], sizeof(paths[3]), "%s/%s", folder,
		         wrongs[i].crl ? wrongs[i].crl : "");
		assert_null(ps_tls_new(&files, why, sizeof(why)));
		if (!strstr(why, wrongs[i].file) || !strstr(why, wrongs[i].why))
			fail_msg("%zu: said %s", i, why);
	}
}

/* Checks the client's name as the server sees it. */
static void expect_name(struct pair *pair, const char *expected)
{
	char name[PS_TLS_NAME_MAX + 1];
	int client, server;

	connect_pair(pair, HOST);
	shake(pair, &client, &server);
	assert_int_equal(server, 1);
	assert_int_equal(ps_stream_peer_name(&pair->server, name), 0);
	assert_string_equal(name, expected);
	ps_stream_close(&pair->client);
	ps_stream_close(&pair->server);
}

/* A certificate is renewed while its owner goes on; in between, its key is not there yet. */
TEST(files_that_have_changed_are_read_again)
{
	const struct leaf before = { "rolling", "DNS:before", NULL, 0, 0 };
	const struct leaf after = { "rolling", "DNS:afterwards", NULL, 0, 0 };
	struct pair pair = { .server_tls = authority_tls(folder, "mirror", "ca", NULL) };
	char why[512];

	authority_issue(authority, &before);
	pair.client_tls = authority_tls(folder, "rolling", "ca", NULL);
	expect_name(&pair, "before");
	authority_issue(authority, &after);
	expect_name(&pair, "before");
	write_file("rolling.key", "");
	assert_false(ps_tls_refresh(pair.client_tls, why, sizeof(why)));
	assert_non_null(strstr(why, "rolling.key"));
	expect_name(&pair, "before");
	authority_issue(authority, &after);
	assert_true(ps_tls_refresh(pair.client_tls, why, sizeof(why)));
	expect_name(&pair, "afterwards");
	assert_true(ps_tls_refresh(pair.client_tls, why, sizeof(why)));
	expect_name(&pair, "afterwards");
	end(&pair);
}
