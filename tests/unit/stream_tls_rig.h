/*
 * stream_tls_rig.h - a CA with the certificates of all cases, and pairs of streams that show them
 * to each other in this thread.
 */
#ifndef PERSEAS_TESTS_STREAM_TLS_RIG_H
#define PERSEAS_TESTS_STREAM_TLS_RIG_H

#include "../support/authority_tls.h"
#include "../support/unit.h"

enum { STEPS_MAX = 100 };

#define HOST "mirror.example"

static struct authority *authority, *other;
static char folder[] = "/tmp/perseas-tls-XXXXXX";

static int make_certificates(void **state)
{
	const struct leaf leaves[] = {
		{ "mirror", "DNS:" HOST ",IP:127.0.0.1,IP:::1", NULL, 0, 0 },
		{ "alice", "DNS:alice", NULL, 0, 0 },
		{ "common", NULL, NULL, 0, 0 },
		{ "expired", "DNS:" HOST, NULL, -7200, -3600 },
		{ "early", "DNS:" HOST, NULL, 3600, 7200 },
		{ "client", "DNS:" HOST, "clientAuth", 0, 0 },
		{ "server", "DNS:" HOST, "serverAuth", 0, 0 },
		{ "revoked", "DNS:revoked", NULL, 0, 0 },
		{ "nobody", "DNS:a b", NULL, 0, 0 },
	};
	const struct leaf deep = { "deep", "DNS:deep", NULL, 0, 0 };
	const struct leaf stranger = { "stranger", "DNS:" HOST, NULL, 0, 0 };
	struct authority *middle;

	(void)state;
	assert_non_null(mkdtemp(folder));
	authority = authority_new(folder, "ca");
	other = authority_new(folder, "other-ca");
	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++)
		authority_issue(authority, &leaves[i]);
	authority_issue(other, &stranger);
	authority_revoke(authority, "revoked");
	middle = authority_below(authority, "middle");
	authority_issue(middle, &deep);
	authority_revoke(authority, "middle");
	authority_list(middle, "middle");
	authority_free(middle);
	return 0;
}

static int remove_certificates(void **state)
{
	char command[64];

	(void)state;
	authority_free(authority);
	authority_free(other);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

/* Two ends, and what they have of TLS. */
struct pair {
	struct ps_stream client, server;
	struct ps_tls *client_tls, *server_tls;
};

static void connect_pair_of(struct pair *pair, const char *host, int type)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, fds), 0);
	pair->client.fd = fds[0];
	pair->server.fd = fds[1];
	assert_int_equal(ps_stream_begin_tls(&pair->client, pair->client_tls, host), 0);
	assert_int_equal(ps_stream_begin_tls(&pair->server, pair->server_tls, NULL), 0);
}

static void connect_pair(struct pair *pair, const char *host)
{
	connect_pair_of(pair, host, SOCK_STREAM);
}

static struct pair pair_with(const char *client, const char *server, const char *host,
                             const char *client_crl, const char *server_crl)
{
	struct pair pair = {
		.client_tls = authority_tls(folder, client, "ca", client_crl),
		.server_tls = authority_tls(folder, server, "ca", server_crl),
	};

	connect_pair(&pair, host);
	return pair;
}

static struct pair pair_of(const char *client, const char *server, const char *host,
                           const char *crl)
{
	return pair_with(client, server, host, NULL, crl);
}

static void end(struct pair *pair)
{
	ps_stream_close(&pair->client);
	ps_stream_close(&pair->server);
	ps_tls_free(pair->client_tls);
	ps_tls_free(pair->server_tls);
}

/* Both ends on, until neither goes on. What each says in the end. */
static void shake(struct pair *pair, int *client, int *server)
{
	*client = *server = 0;
	for (int i = 0; i < STEPS_MAX && !(*client && *server); i++) {
		if (!*client)
			*client = ps_stream_handshake(&pair->client);
		if (!*server)
			*server = ps_stream_handshake(&pair->server);
	}
}

#endif
