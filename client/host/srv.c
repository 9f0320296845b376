/*
 * srv.c - see srv.h. The C library sends the query and expands compressed names.
 */
#include "srv.h"

#include <arpa/nameser.h>
#include <assert.h>
#include <netdb.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEME "srv://"
#define SERVICE "_perseas._tcp."
#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

enum {
	HOST_MAX = 199,     /* longest host in an address */
	ANSWER_MAX = 65535, /* longest answer */
	FIXED_BYTES = 6,    /* bytes of a record before its target: priority, weight, port */
};

/* One SRV record. */
struct target {
	unsigned priority, weight, port;
	char host[HOST_MAX + 1];
};

struct targets {
	struct target all[PS_MIRRORS_MAX];
	unsigned count;
};

bool ps_srv_is_name(const char *text)
{
	return strncmp(text, SCHEME, strlen(SCHEME)) == 0;
}

static bool is_host(const char *text)
{
	const size_t len = strlen(text);

	return len > 0 && len <= HOST_MAX && strspn(text, NAME_CHARACTERS) == len && *text != '.' &&
	       *text != '-' && !strstr(text, "..");
}

static int fail_query(struct ps_error *error, int code, const char *domain, const char *what)
{
	return ps_error_set(error, code,
	                    "the DNS, asked for the mirrors of " SCHEME
	                    "%.200s (SRV records of " SERVICE "%.200s): %s",
	                    domain, domain, what);
}

static int compare_targets(const void *a, const void *b)
{
	const struct target *x = a, *y = b;

	if (x->priority != y->priority)
		return x->priority < y->priority ? -1 : 1;
	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	if (strcmp(x->host, y->host) != 0)
		return strcmp(x->host, y->host);
	return (x->port > y->port) - (x->port < y->port);
}

static bool has_target(const struct targets *targets, const struct target *one)
{
	for (unsigned i = 0; i < targets->count; i++)
		if (targets->all[i].port == one->port &&
		    strcasecmp(targets->all[i].host, one->host) == 0)
			return true;
	return false;
}

/* Reads one record of an answer. */
static int take_record(struct targets *targets, const ns_msg *message, const ns_rr *record,
                       const char *domain, struct ps_error *error)
{
	const uint8_t *data = ns_rr_rdata(*record);
	char name[NS_MAXDNAME];
	struct target one = { 0 };

	if (ns_rr_rdlen(*record) <= FIXED_BYTES ||
	    dn_expand(ns_msg_base(*message), ns_msg_end(*message), data + FIXED_BYTES, name,
	              sizeof(name)) < 0)
		return fail_query(error, PERSEAS_EPROTOCOL, domain,
		                  "a record of the answer is broken");
	one.priority = ns_get16(data);
	one.weight = ns_get16(data + 2);
	one.port = ns_get16(data + 4);
	if (!*name || strcmp(name, ".") == 0)
		return fail_query(error, PERSEAS_EINVAL, domain,
		                  "it says that there are none on purpose");
	if (!is_host(name) || one.port == 0)
		return fail_query(error, PERSEAS_EPROTOCOL, domain,
		                  "a record has no host's name, or port 0");
	strcpy(one.host, name);
	if (has_target(targets, &one))
		return 0;
	if (targets->count == PS_MIRRORS_MAX)
		return fail_query(error, PERSEAS_ELIMIT, domain,
		                  "it has more than 16, the most a store has");
	targets->all[targets->count++] = one;
	return 0;
}

static void write_list(struct targets *targets, char list[PS_LIST_TEXT])
{
	size_t len = 0;

	qsort(targets->all, targets->count, sizeof(targets->all[0]), compare_targets);
	for (unsigned i = 0; i < targets->count; i++)
		len += (size_t)snprintf(list + len, PS_LIST_TEXT - len, "%s%s:%u", i ? "," : "",
		                        targets->all[i].host, targets->all[i].port);
	assert(len < PS_LIST_TEXT);
}

int ps_srv_parse(const uint8_t *answer, size_t len, const char *domain, char list[PS_LIST_TEXT],
                 struct ps_error *error)
{
	struct targets targets = { .count = 0 };
	ns_msg message;
	ns_rr record;
	int rc = 0;

	list[0] = '\0';
	if (len > ANSWER_MAX || ns_initparse(answer, (int)len, &message) < 0)
		return fail_query(error, PERSEAS_EPROTOCOL, domain, "the answer is broken");
	for (int i = 0; !rc && i < ns_msg_count(message, ns_s_an); i++) {
		if (ns_parserr(&message, ns_s_an, i, &record) < 0)
			return fail_query(error, PERSEAS_EPROTOCOL, domain, "the answer is broken");
		/* Records of other types lead to these: CNAME, signatures. */
		if (ns_rr_type(record) == ns_t_srv && ns_rr_class(record) == ns_c_in)
			rc = take_record(&targets, &message, &record, domain, error);
	}
	if (rc)
		return rc;
	if (targets.count == 0)
		return fail_query(
			error, PERSEAS_EINVAL, domain,
			"there are none; publish a record for each mirror, or correct the name");
	write_list(&targets, list);
	return 0;
}

/* Sets the error for a query that the C library could not answer (h_errno). */
static int fail_unanswered(struct ps_error *error, const char *domain, int why)
{
	if (why == HOST_NOT_FOUND || why == NO_DATA)
		return fail_query(
			error, PERSEAS_EINVAL, domain,
			"there are none; publish a record for each mirror, or correct the name");
	return fail_query(
		error, PERSEAS_EUNREACHABLE, domain,
		"no server gave an answer; see /etc/resolv.conf and the network, or name the "
		"mirrors themselves");
}

static int query_server(struct __res_state *state, const char *domain,
                        const struct ps_srv_server *server, char list[PS_LIST_TEXT],
                        struct ps_error *error)
{
	uint8_t *answer = malloc(ANSWER_MAX);
	char question[sizeof(SERVICE) + HOST_MAX];
	int len, rc;

	if (!answer)
		return ps_error_set(error, PERSEAS_ENOMEM, "out of memory");
	state->retrans = server ? (int)server->seconds : 1;
	state->retry = 2;
	if (server) {
		state->nscount = 1;
		state->nsaddr_list[0] = server->address;
	}
	snprintf(question, sizeof(question), SERVICE "%s", domain);
	len = res_nquery(state, question, ns_c_in, ns_t_srv, answer, ANSWER_MAX);
	if (len < 0)
		rc = fail_unanswered(error, domain, state->res_h_errno);
	else if (len > ANSWER_MAX)
		rc = fail_query(error, PERSEAS_EPROTOCOL, domain, "the answer is too long");
	else
		rc = ps_srv_parse(answer, (size_t)len, domain, list, error);
	free(answer);
	return rc;
}

int ps_srv_lookup(const char *text, const struct ps_srv_server *server, char list[PS_LIST_TEXT],
                  struct ps_error *error)
{
	struct __res_state state;
	const char *domain = text + strlen(SCHEME);
	int rc;

	list[0] = '\0';
	if (!is_host(domain))
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "what stands behind " SCHEME
		                    " must be a domain, alone, for example " SCHEME
		                    "mirrors.example.com, which has SRV records of " SERVICE
		                    "mirrors.example.com");
	memset(&state, 0, sizeof(state));
	if (res_ninit(&state) < 0)
		return fail_query(error, PERSEAS_ESYSTEM, domain,
		                  "/etc/resolv.conf cannot be read");
	rc = query_server(&state, domain, server, list, error);
	res_nclose(&state);
	return rc;
}
