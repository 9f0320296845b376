/*
 * fuzz_tls.c - the same as fuzz_connection, where every TCP connection has TLS: what is inside of
 * it, and, of connections that are plain, what comes in its place.
 */
#include "../support/authority_tls.h"
#include "../support/daemon_peers.h"
#include "target.h"

#include <unistd.h>

/* Leaves no file behind. */
static void make_certificates(struct daemon_peers_tls *tls)
{
	static const char *const files[] = { "ca.pem", "mirror.pem", "mirror.key", "owner.pem",
		                             "owner.key" };
	char folder[] = "/tmp/perseas-fuzz-XXXXXX", path[64];
	struct authority *authority;

	if (!mkdtemp(folder))
		abort();
	authority = authority_new(folder, "ca");
	authority_issue(authority, &(struct leaf){ .stem = "mirror", .names = "IP:127.0.0.1" });
	authority_issue(authority, &(struct leaf){ .stem = "owner", .names = "DNS:owner" });
	authority_free(authority);
	tls->server = authority_tls(folder, "mirror", "ca", NULL);
	tls->client = authority_tls(folder, "owner", "ca", NULL);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		unlink(path);
	}
	rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct daemon_peers_tls tls;

	if (!tls.server)
		make_certificates(&tls);
	daemon_peers_run(data, size, &tls);
	return 0;
}
