/*
 * etcd.c - see etcd.h. What stands in etcd, and how it is replaced; etcdctl.c runs etcdctl.
 */
#include "etcd.h"

#include "etcdctl.h"
#include "../../proto/base/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SCHEME "etcd://"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

enum { TRIES = 8 }; /* at a swap that others get ahead of */

bool ps_etcd_is(const char *text)
{
	return strncmp(text, SCHEME, strlen(SCHEME)) == 0;
}

int ps_etcd_parse(const char *text, struct ps_etcd_key *key, struct ps_error *error)
{
	const char *at = ps_etcd_is(text) ? text + strlen(SCHEME) : "";
	const size_t hosts = strspn(at, LETTERS "-_.:,[]");
	const char *name = at[hosts] ? at + hosts + 1 : "";

	if (hosts == 0 || hosts >= PS_ETCD_PART || at[hosts] != '/' || !*name || *at == '-' ||
	    strlen(name) >= PS_ETCD_PART || *name == '-' ||
	    strspn(name, LETTERS "-_./") != strlen(name))
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "a key of etcd is named by etcd://HOST:PORT/KEY, for example "
		                    "etcd://127.0.0.1:2379/perseas/bank, with a KEY of A-Z a-z 0-9 "
		                    ". _ - and /");
	*key = (struct ps_etcd_key){ 0 };
	memcpy(key->endpoints, at, hosts);
	strcpy(key->key, name);
	return 0;
}

static int refuse(struct ps_error *error, int code, const struct ps_etcd_key *key, const char *what)
{
	return ps_error_set(error, code, "the key '%s' of etcd at %s %s", key->key, key->endpoints,
	                    what);
}

/* Nothing that etcdctl would take for a quote or an end: what is read may be written again. */
static bool is_plain(const char *list)
{
	return list[strspn(list, LETTERS "-_.:,[]/%+=~@")] == '\0';
}

/* " roster=VERSION store=ID", or nothing. False: something else. */
static bool read_numbers(const char *text, struct ps_etcd_value *value)
{
	static const char roster[] = " roster=", store[] = " store=";
	const char *end;

	if (!*text)
		return true;
	if (strncmp(text, roster, strlen(roster)) != 0 ||
	    !ps_number_read(text + strlen(roster), &end, &value->roster) ||
	    strncmp(end, store, strlen(store)) != 0)
		return false;
	end += strlen(store);
	if (strlen(end) != PS_ETCD_STORE - 1 ||
	    strspn(end, "0123456789abcdef") != PS_ETCD_STORE - 1)
		return false;
	strcpy(value->store, end);
	value->numbered = true;
	return true;
}

int ps_etcd_read(const char *bytes, size_t len, const struct ps_etcd_key *key,
                 struct ps_etcd_value *value, struct ps_error *error)
{
	struct ps_address addresses[PS_MIRRORS_MAX];
	char text[PS_ETCD_VALUE];
	unsigned count;
	size_t list;

	*value = (struct ps_etcd_value){ 0 };
	while (len > 0 && (bytes[len - 1] == '\n' || bytes[len - 1] == ' '))
		len--;
	if (len == 0)
		return refuse(
			error, PERSEAS_EINVAL, key,
			"has no list of mirrors: write one there by perseas roster STORE LIST "
			"--publish KEY, with mirrors of the store as LIST");
	if (len >= sizeof(text) || memchr(bytes, '\0', len))
		return refuse(error, PERSEAS_EPROTOCOL, key, "has something else than a list");
	memcpy(text, bytes, len);
	text[len] = '\0';
	list = strcspn(text, " ");
	if (list >= sizeof(value->list) || !read_numbers(text + list, value))
		return refuse(error, PERSEAS_EPROTOCOL, key, "has something else than a list");
	memcpy(value->list, text, list);
	if (!is_plain(value->list) || ps_address_list(value->list, addresses, &count, NULL))
		return refuse(error, PERSEAS_EPROTOCOL, key, "has something else than a list");
	return 0;
}

int ps_etcd_get(const struct ps_etcd_key *key, struct ps_etcd_value *value, struct ps_error *error)
{
	const char *const words[] = { "get", "--print-value-only", key->key, NULL };
	char text[PS_ETCD_VALUE + 1];
	size_t len;
	int rc = ps_etcdctl(key, words, "", text, sizeof(text), &len, error);

	*value = (struct ps_etcd_value){ 0 };
	return rc ? rc : ps_etcd_read(text, len, key, value, error);
}

int ps_etcd_list(const char *text, char list[PS_LIST_TEXT], struct ps_error *error)
{
	struct ps_etcd_value value;
	struct ps_etcd_key key;
	int rc = ps_etcd_parse(text, &key, error);

	list[0] = '\0';
	if (!rc)
		rc = ps_etcd_get(&key, &value, error);
	if (!rc)
		strcpy(list, value.list);
	return rc;
}

/* --- writing --- */

static void write_value(char text[PS_ETCD_VALUE], const struct ps_etcd_value *value)
{
	snprintf(text, PS_ETCD_VALUE, "%s roster=%" PRIu64 " store=%s", value->list, value->roster,
	         value->store);
}

/* When the key was changed last, by etcd's count; 0: there is none. */
static int read_revision(const struct ps_etcd_key *key, uint64_t *revision, struct ps_error *error)
{
	static const char mark[] = "\n\"ModRevision\" : ";
	const char *const words[] = { "get", "--write-out=fields", key->key, NULL };
	char text[4 * PS_ETCD_VALUE + 1024];
	const char *at, *end;
	size_t len;
	int rc = ps_etcdctl(key, words, "", text, sizeof(text), &len, error);

	*revision = 0;
	if (rc)
		return rc;
	/* A value stands behind it, so that none can forge it. */
	at = memmem(text, len, mark, strlen(mark));
	if (at && !memchr(at + 1, '\n', len - (size_t)(at + 1 - text)))
		return refuse(error, PERSEAS_EPROTOCOL, key, "is told in words that are not known");
	return at && !ps_number_read(at + strlen(mark), &end, revision)
	               ? refuse(error, PERSEAS_EPROTOCOL, key, "has no revision")
	               : 0;
}

/* Puts `next` if nobody has changed the key since. 1: done; 0: somebody has; else a code. */
static int swap(const struct ps_etcd_key *key, uint64_t revision, const char *next,
                struct ps_error *error)
{
	static const char *const words[] = { "txn", NULL };
	static const char success[] = "SUCCESS";
	char input[PS_ETCD_VALUE + 2 * PS_ETCD_PART + 128], told[64];
	size_t len;
	int rc;

	snprintf(input, sizeof(input), "mod(\"%s\") = \"%" PRIu64 "\"\n\nput %s \"%s\"\n\n\n",
	         key->key, revision, key->key, next);
	rc = ps_etcdctl(key, words, input, told, sizeof(told), &len, error);
	return rc ? rc : len >= strlen(success) && !memcmp(told, success, strlen(success));
}

enum ps_etcd_put ps_etcd_judge(const struct ps_etcd_value *there, const struct ps_etcd_value *next,
                               bool over)
{
	if (there->numbered && strcmp(there->store, next->store) != 0)
		return over ? PS_ETCD_PUT : PS_ETCD_OTHER;
	return there->numbered && there->roster >= next->roster ? PS_ETCD_NEWER : PS_ETCD_PUT;
}

/* The revision is read first: what was changed behind it is not swapped. */
static int try_put(const struct ps_etcd_key *key, const struct ps_etcd_value *next, bool over,
                   enum ps_etcd_put *put, struct ps_error *error)
{
	struct ps_etcd_value there;
	char text[PS_ETCD_VALUE];
	uint64_t revision;
	int rc = read_revision(key, &revision, error);

	*put = PS_ETCD_PUT;
	if (!rc && revision)
		rc = ps_etcd_get(key, &there, error);
	/* What is no value of ours may be replaced by one. */
	if (rc == PERSEAS_EPROTOCOL && over)
		rc = PERSEAS_EINVAL;
	if (rc && rc != PERSEAS_EINVAL)
		return rc;
	if (!rc && revision)
		*put = ps_etcd_judge(&there, next, over);
	if (*put != PS_ETCD_PUT)
		return 1;
	write_value(text, next);
	return swap(key, revision, text, error);
}

int ps_etcd_put(const struct ps_etcd_key *key, const struct ps_etcd_value *next, bool over,
                enum ps_etcd_put *put, struct ps_error *error)
{
	if (!is_plain(next->list))
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "a mirror of the roster has an address that cannot stand in "
		                    "etcd: use letters, digits and -_.:,[]/%%+=~@");
	for (unsigned i = 0; i < TRIES; i++) {
		int rc = try_put(key, next, over, put, error);

		if (rc)
			return rc == 1 ? 0 : rc;
	}
	return refuse(error, PERSEAS_EUNREACHABLE, key, "is changed again and again by others");
}
