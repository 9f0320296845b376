/*
 * resolver.c - see resolver.h. One mutex guards the table and all lookups; nothing that may block
 * is called under it. A lookup is shared by its thread, the table and the callers that wait for it,
 * and freed by the last of them: the thread may end long after all handles are closed.
 */
#include "resolver.h"

#include "../../proto/base/detached.h"
#include "../../proto/base/standard_streams.h"
#include "../../proto/base/text.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Names in the table, and therefore lookups in flight, at most. */
enum { ENTRIES_MAX = 256, NUMBER_TEXT = 80 };

struct ps_lookup {
	struct ps_address address;
	unsigned users;
	int fd;      /* an eventfd that is written when the lookup ends */
	bool ended;  /* `refused` and `found` are set */
	int refused; /* 0, or an error of getaddrinfo */
	struct ps_addresses found;
};

struct entry {
	struct entry *next; /* the next less recently used entry */
	struct ps_address address;
	struct ps_lookup *lookup;   /* the lookup of this name in flight; NULL: none */
	struct ps_addresses answer; /* last answer of the name service; count 0: none */
	/* The address at which a mirror answered last; count 0: none did. */
	struct ps_addresses last;
	/* Identity of the daemon that answered there; zeros: it reported none. */
	uint8_t daemon[PS_ID_SIZE];
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries; /* the most recently used first */
static unsigned entry_count;

/* --- addresses --- */

int ps_addresses_find(const struct ps_addresses *list, const struct sockaddr_storage *to)
{
	for (unsigned i = 0; i < list->count; i++)
		if (!memcmp(&list->to[i], to, sizeof(*to)))
			return (int)i;
	return -1;
}

void ps_addresses_set_port(struct sockaddr_storage *to, uint16_t port)
{
	if (to->ss_family == AF_INET6)
		((struct sockaddr_in6 *)to)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)to)->sin_port = htons(port);
}

static void add_address(struct ps_addresses *list, const struct sockaddr *to, socklen_t len)
{
	struct sockaddr_storage whole = { 0 };

	assert(len <= sizeof(whole));
	memcpy(&whole, to, len);
	if (list->count == PS_ADDRESSES_MAX || ps_addresses_find(list, &whole) >= 0)
		return;
	list->to[list->count] = whole;
	list->len[list->count++] = len;
}

/* Returns 0, or an error of getaddrinfo. */
static int query_addresses(const char *host, const char *port, int flags,
                           struct ps_addresses *found)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags };
	struct addrinfo *list = NULL;
	int refused = getaddrinfo(host, port, &hints, &list);

	found->count = 0;
	if (refused)
		return refused;
	for (const struct addrinfo *at = list; at; at = at->ai_next)
		add_address(found, at->ai_addr, at->ai_addrlen);
	freeaddrinfo(list);
	return found->count ? 0 : EAI_NONAME;
}

bool ps_resolver_parse_number(const struct ps_address *address, struct ps_addresses *found)
{
	return !query_addresses(address->host, address->port, AI_NUMERICHOST | AI_NUMERICSERV,
	                        found);
}

/* --- the table; callers hold table_lock --- */

static void release_lookup(struct ps_lookup *lookup)
{
	assert(lookup->users > 0);
	if (--lookup->users > 0)
		return;
	close(lookup->fd);
	free(lookup);
}

static struct entry *find_entry(const struct ps_address *address)
{
	for (struct entry **link = &entries; *link; link = &(*link)->next) {
		struct entry *entry = *link;

		if (strcasecmp(entry->address.host, address->host) != 0 ||
		    strcmp(entry->address.port, address->port) != 0)
			continue;
		*link = entry->next;
		entry->next = entries;
		return entries = entry;
	}
	return NULL;
}

/* Drops the least recently used entry that has no lookup in flight. Returns false if all entries
 * have one. */
static bool drop_oldest_entry(void)
{
	struct entry **oldest = NULL, *entry;

	for (struct entry **link = &entries; *link; link = &(*link)->next)
		if (!(*link)->lookup)
			oldest = link;
	if (!oldest)
		return false;
	entry = *oldest;
	*oldest = entry->next;
	free(entry);
	entry_count--;
	return true;
}

/* Returns the entry of the host and port, which is made if it does not exist. Returns NULL with
 * errno set if that is not possible. */
static struct entry *get_entry(const struct ps_address *address)
{
	struct entry *entry = find_entry(address);

	if (entry)
		return entry;
	if (entry_count == ENTRIES_MAX && !drop_oldest_entry()) {
		errno = EAGAIN;
		return NULL;
	}
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->address = *address;
	entry->next = entries;
	entries = entry;
	entry_count++;
	return entry;
}

/* --- fork --- */

static void lock_before_fork(void)
{
	pthread_mutex_lock(&table_lock);
}

static void unlock_after_fork(void)
{
	pthread_mutex_unlock(&table_lock);
}

/* Empties the table in the child: it has none of the threads of lookups in flight, so these lookups
 * would never end there. */
static void empty_table_in_child(void)
{
	while (entries) {
		struct entry *entry = entries;

		entries = entry->next;
		if (entry->lookup)
			release_lookup(entry->lookup);
		free(entry);
	}
	entry_count = 0;
	pthread_mutex_unlock(&table_lock);
}

static void register_fork_handlers(void)
{
	pthread_atfork(lock_before_fork, unlock_after_fork, empty_table_in_child);
}

/* --- lookups --- */

static void end_lookup(struct ps_lookup *lookup, int refused, const struct ps_addresses *found)
{
	const uint64_t one = 1;
	struct entry *entry;

	pthread_mutex_lock(&table_lock);
	entry = find_entry(&lookup->address);
	assert(entry && entry->lookup == lookup);
	entry->lookup = NULL;
	if (!refused)
		entry->answer = *found;
	lookup->found = *found;
	lookup->refused = refused;
	lookup->ended = true;
	(void)!write(lookup->fd, &one, sizeof(one));
	release_lookup(lookup);
	pthread_mutex_unlock(&table_lock);
}

static void *run_lookup(void *arg)
{
	struct ps_lookup *lookup = arg;
	struct ps_addresses found;
	int refused = query_addresses(lookup->address.host, lookup->address.port,
	                              AI_ADDRCONFIG | AI_NUMERICSERV, &found);

	end_lookup(lookup, refused, &found);
	return NULL;
}

/* Starts a lookup, on which its thread holds one reference. Returns NULL with errno set if it
 * cannot. Caller holds table_lock, for which the thread waits at its end. */
static struct ps_lookup *start_lookup(const struct ps_address *address)
{
	struct ps_lookup *lookup = calloc(1, sizeof(*lookup));

	assert(pthread_mutex_trylock(&table_lock) == EBUSY);
	if (!lookup)
		return NULL;
	lookup->address = *address;
	lookup->users = 1;
	lookup->fd = ps_above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (lookup->fd < 0) {
		free(lookup);
		return NULL;
	}
	errno = ps_detached_thread_start(run_lookup, lookup);
	if (!errno)
		return lookup;
	release_lookup(lookup);
	return NULL;
}

struct ps_lookup *ps_lookup_begin(const struct ps_address *address)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct ps_lookup *lookup = NULL;
	struct entry *entry;

	pthread_once(&once, register_fork_handlers);
	pthread_mutex_lock(&table_lock);
	entry = get_entry(address);
	if (entry && !entry->lookup)
		entry->lookup = start_lookup(address);
	if (entry)
		lookup = entry->lookup;
	if (lookup)
		lookup->users++;
	pthread_mutex_unlock(&table_lock);
	return lookup;
}

int ps_lookup_fd(const struct ps_lookup *lookup)
{
	return lookup->fd;
}

bool ps_lookup_get_answer(struct ps_lookup *lookup, struct ps_addresses *found, int *refused)
{
	bool ended;

	pthread_mutex_lock(&table_lock);
	ended = lookup->ended;
	if (ended) {
		*found = lookup->found;
		*refused = lookup->refused;
	}
	pthread_mutex_unlock(&table_lock);
	return ended;
}

void ps_lookup_drop(struct ps_lookup *lookup)
{
	if (!lookup)
		return;
	pthread_mutex_lock(&table_lock);
	release_lookup(lookup);
	pthread_mutex_unlock(&table_lock);
}

/* --- addresses of mirrors --- */

void ps_resolver_note(const struct ps_address *address, const struct sockaddr_storage *to,
                      socklen_t len, const uint8_t *daemon)
{
	struct entry *entry;

	pthread_mutex_lock(&table_lock);
	entry = get_entry(address);
	if (entry) {
		entry->last.count = 0;
		add_address(&entry->last, (const struct sockaddr *)to, len);
		memset(entry->daemon, 0, sizeof(entry->daemon));
		if (daemon)
			memcpy(entry->daemon, daemon, sizeof(entry->daemon));
	}
	pthread_mutex_unlock(&table_lock);
}

void ps_resolver_note_failure(const struct ps_address *address)
{
	struct entry *entry;

	pthread_mutex_lock(&table_lock);
	entry = find_entry(address);
	if (entry && entry->answer.count &&
	    ps_addresses_find(&entry->answer, &entry->last.to[0]) < 0)
		entry->last.count = 0;
	pthread_mutex_unlock(&table_lock);
}

bool ps_resolver_last_address(const struct ps_address *address, struct ps_addresses *last,
                              uint8_t daemon[PS_ID_SIZE])
{
	struct entry *entry;

	last->count = 0;
	pthread_mutex_lock(&table_lock);
	entry = find_entry(address);
	if (entry) {
		*last = entry->last;
		memcpy(daemon, entry->daemon, PS_ID_SIZE);
	}
	pthread_mutex_unlock(&table_lock);
	return last->count > 0;
}

int ps_resolver_known_addresses(const struct ps_address *address, struct ps_addresses *known,
                                struct ps_error *error)
{
	struct entry *entry;

	if (ps_resolver_parse_number(address, known))
		return 0;
	pthread_mutex_lock(&table_lock);
	entry = find_entry(address);
	if (entry) {
		*known = entry->last;
		for (unsigned i = 0; i < entry->answer.count; i++)
			add_address(known, (struct sockaddr *)&entry->answer.to[i],
			            entry->answer.len[i]);
	}
	pthread_mutex_unlock(&table_lock);
	if (known->count > 0)
		return 0;
	return ps_error_set(error, PERSEAS_EUNREACHABLE,
	                    "%s: no address of the host is known; connect to the mirror again",
	                    address->text);
}

/* --- as text: "HOST PORT NUMBER IDENTITY", with commas between --- */

void ps_resolver_export(char *text, size_t size)
{
	char number[NUMBER_TEXT], daemon[PS_HEX_TEXT];
	size_t used = 0;

	assert(size > 0);
	text[0] = '\0';
	pthread_mutex_lock(&table_lock);
	for (const struct entry *entry = entries; entry; entry = entry->next) {
		int len;

		if (!entry->last.count ||
		    getnameinfo((const struct sockaddr *)&entry->last.to[0], entry->last.len[0],
		                number, sizeof(number), NULL, 0, NI_NUMERICHOST))
			continue;
		len = snprintf(text + used, size - used, "%s%s %s %s %s", used ? "," : "",
		               entry->address.host, entry->address.port, number,
		               ps_hex_text(daemon, entry->daemon));
		if (len < 0 || (size_t)len >= size - used)
			break;
		used += (size_t)len;
	}
	pthread_mutex_unlock(&table_lock);
	text[used] = '\0';
}

/* Returns false if the text is not an identity. */
static bool read_daemon(const char *text, uint8_t daemon[PS_ID_SIZE])
{
	const size_t digits = (size_t)2 * PS_ID_SIZE;

	if (strlen(text) != digits || strspn(text, "0123456789abcdef") != digits)
		return false;
	for (unsigned i = 0, byte; i < PS_ID_SIZE; i++) {
		if (sscanf(text + (size_t)2 * i, "%2x", &byte) != 1)
			return false;
		daemon[i] = (uint8_t)byte;
	}
	return true;
}

/* Adds the address in one part of a text of ps_resolver_export. Returns false if it is malformed.
 */
static bool import_address(const char *part, size_t length)
{
	char text[512], host[200], port[8], number[NUMBER_TEXT], daemon[2 * PS_ID_SIZE + 1];
	char written[sizeof(host) + sizeof(port) + 1];
	struct ps_addresses found, last;
	struct ps_address name, at;
	uint8_t told[PS_ID_SIZE], ignored[PS_ID_SIZE];
	struct ps_error error;

	if (length >= sizeof(text))
		return false;
	memcpy(text, part, length);
	text[length] = '\0';
	if (sscanf(text, "%199s %7s %79s %32s", host, port, number, daemon) != 4 ||
	    !read_daemon(daemon, told))
		return false;
	snprintf(written, sizeof(written), "%s:%s", host, port);
	if (ps_address_parse(written, &name, &error) || name.scheme != PS_SCHEME_TCP)
		return false;
	at = name;
	ps_text_format(at.host, sizeof(at.host), "%s", number);
	if (!ps_resolver_parse_number(&at, &found))
		return false;
	if (!ps_resolver_last_address(&name, &last, ignored))
		ps_resolver_note(&name, &found.to[0], found.len[0], told);
	return true;
}

void ps_resolver_import(const char *text)
{
	while (*text) {
		const size_t length = strcspn(text, ",");

		if (!import_address(text, length))
			return;
		text += length + (text[length] == ',');
	}
}
