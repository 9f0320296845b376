/*
 * doctor_processes.c - the daemons that run on this host, where they listen, and as whom they run.
 */
#include "doctor.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SOCKETS_MAX = 4096, /* of one daemon that are looked at */
	TCP_LISTEN = 0x0a,
	UNIX_LISTENS = 0x10000, /* __SO_ACCEPTCON */
	FIRST_USER = 1000,      /* lower ids are system users, to systemd */
};

struct sockets {
	struct ps_daemons *daemons;
	uint64_t inodes[SOCKETS_MAX];
	unsigned count;
};

/* --- sockets --- */

static void note_sockets(const struct ps_host *host, struct ps_daemon_seen *daemon,
                         struct sockets *sockets)
{
	char path[64], link[PATH_MAX], target[64];
	unsigned count;
	char **names;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)daemon->pid);
	count = ps_host_names(host, path, &names);
	daemon->readable = count > 0;
	for (unsigned i = 0; i < count && sockets->count < SOCKETS_MAX; i++) {
		ssize_t len;

		snprintf(link, sizeof(link), "%s%s/%s", host->root, path, names[i]);
		len = readlink(link, target, sizeof(target) - 1);
		if (len <= 0)
			continue;
		target[len] = '\0';
		if (sscanf(target, "socket:[%" SCNu64 "]", &sockets->inodes[sockets->count]) == 1)
			sockets->count++;
	}
	ps_host_names_free(names, count);
}

static bool is_theirs(const struct sockets *sockets, uint64_t inode)
{
	for (unsigned i = 0; i < sockets->count; i++)
		if (sockets->inodes[i] == inode)
			return true;
	return false;
}

static char *next_listener(struct sockets *sockets)
{
	struct ps_daemons *daemons = sockets->daemons;

	if (daemons->listener_count < PS_LISTENERS_MAX)
		return daemons->listeners[daemons->listener_count++];
	daemons->more = true;
	return NULL;
}

/* The kernel prints each four bytes of an address as a number of this host. */
static bool read_address(const char *hex, unsigned words, void *address)
{
	for (size_t i = 0; i < words; i++) {
		uint32_t word;

		if (sscanf(hex + 8 * i, "%8" SCNx32, &word) != 1)
			return false;
		memcpy((uint8_t *)address + 4 * i, &word, sizeof(word));
	}
	return true;
}

static bool tcp_line(void *arg, const char *line)
{
	struct sockets *sockets = arg;
	char hex[33], text[INET6_ADDRSTRLEN], *listener;
	struct in6_addr address;
	unsigned port, state;
	uint64_t inode;
	bool wide;

	if (sscanf(line, " %*u: %32[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*u %*u %" SCNu64, hex, &port,
	           &state, &inode) != 4 ||
	    state != TCP_LISTEN || !is_theirs(sockets, inode))
		return false;
	wide = strlen(hex) == 32;
	if (!read_address(hex, wide ? 4 : 1, &address) ||
	    !inet_ntop(wide ? AF_INET6 : AF_INET, &address, text, sizeof(text)))
		return false;
	listener = next_listener(sockets);
	if (!listener)
		return true;
	/* All of the host's addresses: the loopback is one. */
	if (!strcmp(text, "0.0.0.0"))
		strcpy(text, "127.0.0.1");
	if (!strcmp(text, "::"))
		strcpy(text, "::1");
	snprintf(listener, sizeof(sockets->daemons->listeners[0]), wide ? "[%s]:%u" : "%s:%u", text,
	         port);
	return false;
}

static bool unix_line(void *arg, const char *line)
{
	struct sockets *sockets = arg;
	unsigned flags;
	uint64_t inode;
	char path[110], *listener;

	if (sscanf(line, "%*[^:]: %*x %*x %x %*x %*x %" SCNu64 " %109s", &flags, &inode, path) !=
	            3 ||
	    !(flags & UNIX_LISTENS) || !is_theirs(sockets, inode))
		return false;
	/* One without a name, or with one that no list of mirrors can have. */
	if (path[0] != '/' || strchr(path, ','))
		return false;
	listener = next_listener(sockets);
	if (listener)
		snprintf(listener, sizeof(sockets->daemons->listeners[0]), "unix://%s", path);
	return !listener;
}

/* --- processes --- */

static bool take_daemon(const struct ps_host *host, const char *pid, struct ps_daemons *daemons)
{
	struct ps_daemon_seen *daemon;
	char name[32], path[64];

	if (strspn(pid, "0123456789") != strlen(pid) ||
	    !ps_host_read(host, name, sizeof(name), "/proc/%s/comm", pid) ||
	    strcmp(name, "perseasd") != 0)
		return false;
	daemons->more = daemons->count == PS_DAEMONS_MAX;
	if (daemons->more)
		return false;
	daemon = &daemons->daemons[daemons->count];
	*daemon = (struct ps_daemon_seen){ .pid = (pid_t)strtol(pid, NULL, 10) };
	snprintf(path, sizeof(path), "/proc/%.20s/status", pid);
	ps_host_number(host, path, "Uid:", &daemon->uid);
	daemons->count++;
	return true;
}

void ps_daemons_find(const struct ps_host *host, struct ps_daemons *daemons)
{
	struct sockets *sockets = calloc(1, sizeof(*sockets));
	unsigned count;
	char **names;

	memset(daemons, 0, sizeof(*daemons));
	count = ps_host_names(host, "/proc", &names);
	for (unsigned i = 0; i < count && !daemons->more; i++)
		if (take_daemon(host, names[i], daemons) && sockets)
			note_sockets(host, &daemons->daemons[daemons->count - 1], sockets);
	ps_host_names_free(names, count);
	if (!sockets)
		return;
	sockets->daemons = daemons;
	ps_host_lines(host, "/proc/net/tcp", tcp_line, sockets);
	ps_host_lines(host, "/proc/net/tcp6", tcp_line, sockets);
	ps_host_lines(host, "/proc/net/unix", unix_line, sockets);
	free(sockets);
}

void ps_check_daemon(const struct ps_host *host, struct ps_finding *finding)
{
	struct ps_daemons daemons;
	bool hidden = false;

	ps_daemons_find(host, &daemons);
	if (daemons.count == 0) {
		ps_finding_set(finding, PS_HEALTH_SKIPPED, "none runs on this host");
		ps_finding_advise(finding, "A mirror needs one: systemctl start perseasd, or "
		                           "perseasd --listen ADDRESS:7170");
		return;
	}
	for (unsigned i = 0; i < daemons.count; i++) {
		ps_finding_add(finding, "%sprocess %d", i ? ", " : "", (int)daemons.daemons[i].pid);
		hidden |= !daemons.daemons[i].readable;
	}
	for (unsigned i = 0; i < daemons.listener_count; i++)
		ps_finding_add(finding, "%s%s", i ? ", " : "; listens on ", daemons.listeners[i]);
	if (daemons.more)
		ps_finding_add(finding, ", and more");
	if (daemons.listener_count > 0)
		return;
	finding->health = hidden ? PS_HEALTH_SKIPPED : PS_HEALTH_WARNING;
	ps_finding_add(finding, hidden ? "; only its user and root see where it listens"
	                               : "; it does not listen");
	if (hidden)
		ps_finding_advise(finding, "Run perseas doctor as root, or give it the address");
	else
		ps_finding_advise(finding, "It has not started yet, or is about to end, as when it "
		                           "writes its images to disk: journalctl -u perseasd");
}

/* --- logind --- */

struct setting {
	bool remove;
};

static bool is_setting(void *arg, const char *line)
{
	struct setting *setting = arg;

	if (strncmp(line, "RemoveIPC=", 10) == 0)
		setting->remove = strchr("1yYtT", line[10]) != NULL || !strcmp(line + 10, "on");
	return false;
}

static void read_settings(const struct ps_host *host, const char *folder, struct setting *setting)
{
	char path[PATH_MAX], **names;
	unsigned count = ps_host_names(host, folder, &names);

	for (unsigned i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		ps_host_lines(host, path, is_setting, setting);
	}
	ps_host_names_free(names, count);
}

/* What logind is told. The administrator's files win over those of the distribution, and files of
 * a folder over the one next to it. */
static bool logind_removes(const struct ps_host *host)
{
	struct setting setting = { .remove = true };

	ps_host_lines(host, "/usr/lib/systemd/logind.conf", is_setting, &setting);
	ps_host_lines(host, "/etc/systemd/logind.conf", is_setting, &setting);
	read_settings(host, "/usr/lib/systemd/logind.conf.d", &setting);
	read_settings(host, "/run/systemd/logind.conf.d", &setting);
	read_settings(host, "/etc/systemd/logind.conf.d", &setting);
	return setting.remove;
}

/* logind removes what lies in /dev/shm, at any depth. */
static bool is_in_shm(const char *path)
{
	return strncmp(path, "/dev/shm", 8) == 0 && (path[8] == '/' || path[8] == '\0');
}

static bool is_perseas(void *arg, const char *line)
{
	return sscanf(line, "perseas:%*[^:]:%" SCNu64, (uint64_t *)arg) == 1;
}

void ps_check_remove_ipc(const struct ps_host *host, struct ps_finding *finding)
{
	struct ps_daemons daemons;
	uint64_t uid = 0;
	bool known = ps_host_lines(host, "/etc/passwd", is_perseas, &uid);

	ps_daemons_find(host, &daemons);
	for (unsigned i = 0; i < daemons.count; i++)
		uid = daemons.daemons[i].uid > uid ? daemons.daemons[i].uid : uid;
	if (!ps_host_exists(host, "/run/systemd/system"))
		ps_finding_set(finding, PS_HEALTH_SKIPPED, "systemd does not run here");
	else if (!logind_removes(host))
		ps_finding_set(finding, PS_HEALTH_OK, "logind has RemoveIPC=no");
	else if (!is_in_shm(host->memory_dir))
		ps_finding_set(finding, PS_HEALTH_OK, "images are not in /dev/shm");
	else if (!known && daemons.count == 0)
		ps_finding_set(finding, PS_HEALTH_SKIPPED,
		               "there is no user perseas, and no "
		               "perseasd runs");
	else if (uid < FIRST_USER)
		ps_finding_set(finding, PS_HEALTH_OK,
		               "perseasd's user is a system user (%" PRIu64 ")", uid);
	else
		ps_finding_set(finding, PS_HEALTH_FAIL,
		               "perseasd's user (%" PRIu64 ") is no "
		               "system user: logind removes its files in /dev/shm, all images, "
		               "when its last session ends",
		               uid);
	if (finding->health == PS_HEALTH_FAIL)
		ps_finding_advise(finding, "useradd --system --no-create-home perseas, or "
		                           "RemoveIPC=no in /etc/systemd/logind.conf");
}
