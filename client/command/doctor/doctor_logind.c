/*
 * doctor_logind.c - checks whether logind would remove the images, because perseasd's user is not a
 * system user.
 */
#include "doctor.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_USER_ID = 1000 }; /* to systemd, lower ids are system users */

/* The user that perseasd runs as. */
struct daemon_user {
	bool known;
	uint64_t uid; /* the highest of several ids */
};

static void note_user(struct daemon_user *user, uint64_t uid)
{
	user->uid = user->known && user->uid > uid ? user->uid : uid;
	user->known = true;
}

static bool read_passwd_line(void *user, const char *line)
{
	uint64_t uid;

	if (sscanf(line, "perseas:%*[^:]:%" SCNu64, &uid) == 1)
		note_user(user, uid);
	return false;
}

static bool read_uid_line(void *user, const char *line)
{
	uint64_t uid;

	if (sscanf(line, "Uid: %" SCNu64, &uid) != 1)
		return false;
	note_user(user, uid);
	return true;
}

/* Returns the user of the running daemons, or the user perseas. */
static struct daemon_user find_user(const struct ps_host *host)
{
	struct daemon_user user = { .known = false };
	char path[64], name[32], **pids;
	const unsigned count = ps_host_list_names(host, "/proc", &pids);

	ps_host_find_line(host, "/etc/passwd", read_passwd_line, &user);
	for (unsigned i = 0; i < count; i++) {
		if (strspn(pids[i], "0123456789") != strlen(pids[i]) ||
		    !ps_host_read(host, name, sizeof(name), "/proc/%s/comm", pids[i]) ||
		    strcmp(name, "perseasd") != 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%.20s/status", pids[i]);
		ps_host_find_line(host, path, read_uid_line, &user);
	}
	ps_host_names_free(pids, count);
	return user;
}

static bool read_setting_line(void *removes, const char *line)
{
	if (strncmp(line, "RemoveIPC=", 10) == 0)
		*(bool *)removes = strchr("1yYtT", line[10]) != NULL || !strcmp(line + 10, "on");
	return false;
}

static void read_settings(const struct ps_host *host, const char *folder, bool *removes)
{
	char path[PATH_MAX], **names;
	unsigned count = ps_host_list_names(host, folder, &names);

	for (unsigned i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		ps_host_find_line(host, path, read_setting_line, removes);
	}
	ps_host_names_free(names, count);
}

/* Reads logind's settings. The administrator's files win over the distribution's, and the files of
 * a folder win over the single file next to it. */
static bool does_logind_remove_ipc(const struct ps_host *host)
{
	bool removes = true;

	ps_host_find_line(host, "/usr/lib/systemd/logind.conf", read_setting_line, &removes);
	ps_host_find_line(host, "/etc/systemd/logind.conf", read_setting_line, &removes);
	read_settings(host, "/usr/lib/systemd/logind.conf.d", &removes);
	read_settings(host, "/run/systemd/logind.conf.d", &removes);
	read_settings(host, "/etc/systemd/logind.conf.d", &removes);
	return removes;
}

/* logind removes the files in /dev/shm, at any depth. */
static bool is_in_shm(const char *path)
{
	return strncmp(path, "/dev/shm", 8) == 0 && (path[8] == '/' || path[8] == '\0');
}

void ps_check_remove_ipc(const struct ps_host *host, struct ps_finding *finding)
{
	const struct daemon_user user = find_user(host);

	if (!ps_host_exists(host, "/run/systemd/system"))
		ps_finding_set(finding, PS_HEALTH_SKIPPED, "systemd does not run here");
	else if (!does_logind_remove_ipc(host))
		ps_finding_set(finding, PS_HEALTH_OK, "logind has RemoveIPC=no");
	else if (!is_in_shm(host->memory_dir))
		ps_finding_set(finding, PS_HEALTH_OK, "images are not in /dev/shm");
	else if (!user.known)
		ps_finding_set(finding, PS_HEALTH_SKIPPED,
		               "there is no user perseas, and no perseasd runs");
	else if (user.uid < FIRST_USER_ID)
		ps_finding_set(finding, PS_HEALTH_OK,
		               "perseasd's user is a system user (%" PRIu64 ")", user.uid);
	else
		ps_finding_set(finding, PS_HEALTH_FAIL,
		               "perseasd's user (%" PRIu64 ") is no system user: logind removes "
		               "its files in /dev/shm, all images, when its last session ends",
		               user.uid);
	if (finding->health == PS_HEALTH_FAIL)
		ps_finding_advise(finding, "useradd --system --no-create-home perseas, or "
		                           "RemoveIPC=no in /etc/systemd/logind.conf");
}
