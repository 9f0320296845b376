/*
 * log_journal.c - see log_journal.h. Uses the protocol that systemd documents for programs without
 * its library (systemd.io/JOURNAL_NATIVE_PROTOCOL): one datagram for each entry.
 */
#include "log_journal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un journal_address = { .sun_family = AF_UNIX };
static int journal_fd = -1;

/* Events that operators, rules and scripts look for. An identifier must never be reused for another
 * event. */
static const struct {
	const char *event, *id;
} known[] = {
	{ "begins", "79ee55eec5c54e898c1b14cc0ca09739" },
	{ "ends", "cfda8f9fc4fc45228e008695e124627a" },
	{ "fails", "85cbf6b13bfc4c518318387685fe9fd8" },
	{ "created", "19dfea07d87a40c58e372764008cab4b" },
	{ "dropped", "d1c8edda1a2e4bbc92df11a17a809846" },
	{ "damaged", "41bf6c424c6141548d10fe671f55d80d" },
	{ "files-missing", "2d7b7f0b66c44e2c9a4a4f3e5f0c8d16" },
	{ "claimed", "b30be0b0290148829a46c49f3df2d047" },
	{ "fenced", "b9b5619260f445bf9b823dc04e596b21" },
	{ "session-over", "5c774436ed3d4ad9b9199ca827fd0d6c" },
	{ "handover", "a99809fbed21418da37bf074ce151543" },
	{ "resync-begun", "45fefad9016540179792bee1025e3a10" },
	{ "rebuild-begun", "5ec88af9c0be489f944196604be4978e" },
	{ "consistent", "33c5f9b39a9e4e15affb6f750881633b" },
	{ "loaded", "9f4a069fdd354614a17dafcb9fdef0aa" },
	{ "spilled", "aad25197af8040c58cc5c20c4ee74747" },
	{ "refused", "997c5806a6874fa8a6c8664252168caa" },
	{ "connection-refused", "a6202aecdb144b78869db3112632f82a" },
	{ "crowded", "b8fcef506a8d4194869481653fffb692" },
	{ "tls-refused", "79eb0fb5303a4241a20d78a291c63ee6" },
	{ "tls-expires", "c0d4f5a0a1f94c5e9d1b7e6f2a83c914" },
	{ "log-dropped", "6ca22858dee94ddd866b1ed4db3748f2" },
};

void log_journal_open(const char *path)
{
	const size_t len = path ? strlen(path) : 0;

	if (journal_fd >= 0)
		close(journal_fd);
	journal_fd = -1;
	if (len == 0 || len >= sizeof(journal_address.sun_path))
		return;
	memcpy(journal_address.sun_path, path, len + 1);
	journal_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

const char *log_journal_id(const char *event)
{
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i].event, event) == 0)
			return known[i].id;
	return NULL;
}

/* Appends a field. The value must have no line break, which would begin another field. */
__attribute__((format(printf, 3, 4))) static void add_field(char text[LOG_JOURNAL_MAX], size_t *len,
                                                            const char *format, ...)
{
	va_list args;
	int more;

	va_start(args, format);
	more = vsnprintf(text + *len, LOG_JOURNAL_MAX - *len, format, args);
	va_end(args);
	assert(more >= 0 && (size_t)more + 1 < LOG_JOURNAL_MAX - *len);
	assert(!memchr(text + *len, '\n', (size_t)more));
	*len += (size_t)more;
	text[(*len)++] = '\n';
}

size_t log_journal_write(char text[LOG_JOURNAL_MAX], const struct log_entry *entry,
                         const char *name)
{
	const char *id = log_journal_id(entry->event);
	size_t len = 0;

	add_field(text, &len, "MESSAGE=%s", entry->message);
	add_field(text, &len, "PRIORITY=%d", log_priority(entry->level));
	add_field(text, &len, "SYSLOG_IDENTIFIER=perseasd");
	add_field(text, &len, "PERSEAS_EVENT=%s", entry->event);
	if (id)
		add_field(text, &len, "MESSAGE_ID=%s", id);
	if (*name)
		add_field(text, &len, "PERSEAS_DAEMON=%s", name);
	if (entry->store[0])
		add_field(text, &len, "PERSEAS_STORE=%s", entry->store);
	if (entry->epoch)
		add_field(text, &len, "PERSEAS_EPOCH=%" PRIu64, entry->epoch);
	if (entry->seq)
		add_field(text, &len, "PERSEAS_SEQ=%" PRIu64, entry->seq);
	if (entry->peer[0])
		add_field(text, &len, "PERSEAS_PEER=%s", entry->peer);
	return len;
}

bool log_journal_send(const struct log_entry *entry, const char *name)
{
	char text[LOG_JOURNAL_MAX];
	size_t len;

	if (journal_fd < 0)
		return false;
	len = log_journal_write(text, entry, name);
	return sendto(journal_fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL,
	              (const struct sockaddr *)&journal_address,
	              sizeof(journal_address)) == (ssize_t)len;
}
