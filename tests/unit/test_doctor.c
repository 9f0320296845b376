/*
 * test_doctor.c - each check of perseas doctor, on hosts made of files, and what this host
 * lets its processes do.
 */
#include "../../client/command/doctor/doctor.h"
#include "../support/unit.h"

#include <ftw.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

struct made_up {
	char root[64];
	struct ps_host host;
	struct ps_finding finding;
};

static const char *demand_trouble, *demand_limit; /* NULL: none */

static int demand(const char **limit, struct ps_error *error)
{
	*limit = demand_limit;
	return demand_trouble ? ps_error_set(error, PERSEAS_ESYSTEM, "%s", demand_trouble) : 0;
}

static int written(struct ps_error *error)
{
	return demand_trouble ? ps_error_set(error, PERSEAS_ESYSTEM, "%s", demand_trouble) : 0;
}

/* Makes the folders above a path too. */
static void place(const struct made_up *m, char path[PATH_MAX], const char *name)
{
	snprintf(path, PATH_MAX, "%s%s", m->root, name);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
}

static void put(const struct made_up *m, const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *file;

	place(m, path, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int drop(const char *path, const struct stat *stat, int type, struct FTW *at)
{
	(void)stat;
	(void)type;
	(void)at;
	return remove(path);
}

/* The check's result; its words are in m->finding. */
static enum ps_health look(struct made_up *m, const char *name)
{
	const struct ps_check *check = ps_checks;

	while (check->name && strcmp(check->name, name) != 0)
		check++;
	assert_non_null(check->name);
	memset(&m->finding, 0, sizeof(m->finding));
	check->examine(&m->host, &m->finding);
	assert_true(*m->finding.found);
	/* Each fault comes with advice. */
	if (m->finding.health == PS_HEALTH_FAIL || m->finding.health == PS_HEALTH_WARNING)
		assert_true(*m->finding.advice);
	return m->finding.health;
}

/* The check finds this health, and its sentences have these words. */
static void expect(struct made_up *m, const char *check, enum ps_health health, const char *found,
                   const char *advice)
{
	const enum ps_health actual = look(m, check);

	if (actual != health || !strstr(m->finding.found, found) ||
	    !strstr(m->finding.advice, advice))
		fail_msg("%s is %d, not %d: '%s' ('%s'), '%s' ('%s')", check, actual, health,
		         m->finding.found, found, m->finding.advice, advice);
}

/* A host on which nothing is wrong. */
static int setup(void **state)
{
	struct made_up *m = calloc(1, sizeof(*m));

	if (!m)
		return -1;
	strcpy(m->root, "/tmp/test_doctor-XXXXXX");
	if (!mkdtemp(m->root))
		return -1;
	demand_trouble = demand_limit = NULL;
	m->host = (struct ps_host){ m->root, "/dev/shm/perseas", true, demand, written };
	put(m, "/proc/sys/kernel/osrelease", "6.1.0-13-amd64\n");
	put(m, "/proc/sys/kernel/core_pattern", "core\n");
	put(m, "/run/systemd/system/.keep", "");
	put(m, "/etc/passwd", "root:x:0:0::/:/bin/sh\nperseas:x:998:998::/:/usr/sbin/nologin\n");
	put(m, "/sys/class/infiniband/rxe0/node_type", "1: CA\n");
	put(m, "/sys/class/infiniband/rxe0/ports/1/link_layer", "Ethernet\n");
	put(m, "/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/0", "RoCE v2\n");
	put(m, "/sys/class/infiniband/rxe0/ports/1/gids/0",
	    "fe80:0000:0000:0000:5054:00ff:fe12:3456\n");
	put(m, "/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/1", "RoCE v2\n");
	put(m, "/sys/class/infiniband/rxe0/ports/1/gids/1",
	    "0000:0000:0000:0000:0000:ffff:c000:0201\n");
	put(m, "/proc/77/comm", "perseasd\n");
	put(m, "/proc/77/status", "Name:\tperseasd\nUid:\t998\t998\t998\t998\n");
	*state = m;
	return 0;
}

static int teardown(void **state)
{
	struct made_up *m = *state;

	nftw(m->root, drop, 16, FTW_DEPTH | FTW_PHYS);
	free(m);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

/* Every check of the table. */
TEST(nothing_is_wrong_with_a_host_that_is_right, struct made_up *m)
{
	for (const struct ps_check *check = ps_checks; check->name; check++) {
		if (look(m, check->name) != PS_HEALTH_OK)
			fail_msg("%s: %s", check->name, m->finding.found);
		assert_string_equal(m->finding.advice, "");
	}
}

/* Every check of the table, where there is no file at all. */
TEST(a_host_that_tells_nothing_is_no_crash, struct made_up *m)
{
	m->host.root = "/nowhere";
	for (const struct ps_check *check = ps_checks; check->name; check++)
		look(m, check->name);
}

/* Files, which a limit of 0 prevents; a program, which only the limit 1 does. */
TEST(core_dumps_are_told_of, struct made_up *m)
{
	expect(m, "core dumps", PS_HEALTH_OK, "files, 'core'", "");
	put(m, "/proc/sys/kernel/core_pattern", "|/lib/systemd/systemd-coredump %P\n");
	expect(m, "core dumps", PS_HEALTH_OK, "a program: /lib/systemd/systemd-coredump",
	       "LimitCORE=1");
}

/* For all; not for system calls; refused; on a kernel that is too old. Of written pages only what
 * is, since nobody needs them. */
TEST(recovery_on_demand_is_looked_at, struct made_up *m)
{
	demand_limit = "some calls fail";
	expect(m, "recovery on demand", PS_HEALTH_OK, "but some calls fail", "perseas_wait_whole");
	expect(m, "written pages", PS_HEALTH_OK, "learn which pages", "");
	demand_trouble = "it may not";
	expect(m, "recovery on demand", PS_HEALTH_WARNING, "it may not", "Linux 6.6");
	expect(m, "written pages", PS_HEALTH_OK, "it may not", "Linux 6.7");
	put(m, "/proc/sys/kernel/osrelease", "6.6.1\n");
	expect(m, "recovery on demand", PS_HEALTH_WARNING, "", "seccomp");
}

/* --- this host --- */

/* Returns the check's finding in a process that has called `first`. */
static struct ps_finding look_apart(void (*first)(void))
{
	struct ps_finding finding = { 0 };
	const struct ps_host host = ps_host_here("/dev/shm");
	int ends[2], status;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (first)
			first();
		ps_check_recovery_on_demand(&host, &finding);
		_exit(write(ends[1], &finding, sizeof(finding)) != sizeof(finding));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(read(ends[0], &finding, sizeof(finding)), sizeof(finding));
	close(ends[0]);
	close(ends[1]);
	return finding;
}

static void deny_userfaultfd(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_userfaultfd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(rules) / sizeof(rules[0]), rules };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(1);
}

static void become_nobody(void)
{
	if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
		_exit(1);
}

/* Under rules for system calls as Docker's; whatever the kernel, userfaultfd(2) comes first. */
TEST(a_process_that_is_refused_userfaultfd_cannot)
{
	const struct ps_finding finding = look_apart(deny_userfaultfd);

	assert_int_equal(finding.health, PS_HEALTH_WARNING);
	assert_non_null(strstr(finding.found, "may not use userfaultfd(2) (Operation not"));
}

static bool may_handle_faults_of_the_kernel(void)
{
	const struct ps_host host = { .root = "" };
	char status[4096];
	const char *effective;

	assert_true(ps_host_read(&host, status, sizeof(status), "/proc/self/status"));
	effective = strstr(status, "\nCapEff:");
	assert_non_null(effective);
	return strtoull(effective + 8, NULL, 16) >> CAP_SYS_PTRACE & 1;
}

/* Runs as the present user, who may be root, and as an ordinary one: only a user who may handle the
 * kernel's faults has no limit. */
TEST(users_are_told_apart)
{
	const struct ps_finding ours = look_apart(NULL), nobody = look_apart(become_nobody);
	char setting = '0';
	FILE *file = fopen("/proc/sys/vm/unprivileged_userfaultfd", "r");

	if (file) {
		assert_int_equal(fread(&setting, 1, 1, file), 1);
		fclose(file);
	}
	assert_int_equal(ours.health, nobody.health);
	if (ours.health != PS_HEALTH_OK)
		skip(); /* this kernel, or what confines us, refuses it to all */
	assert_true(!*nobody.advice == (setting == '1'));
	assert_true(!*ours.advice == (setting == '1' || may_handle_faults_of_the_kernel()));
	assert_true(!strstr(nobody.found, "EFAULT") == (setting == '1'));
}

/* The address that owners use; RoCE v1 only; InfiniBand, which needs none; without RDMA. */
TEST(rdma_addresses_are_those_of_roce_v2, struct made_up *m)
{
	expect(m, "RDMA addresses", PS_HEALTH_OK, "", "");
	assert_string_equal(m->finding.found, "rxe0 at 192.0.2.1 (GID 1, RoCE v2)");
	/* Soft-RoCE: what can be wrong with it is not seen here. */
	put(m, "/sys/class/infiniband/rxe0/parent", "eth1\n");
	expect(m, "RDMA addresses", PS_HEALTH_OK,
	       "`rdma resource show qp link rxe0 type GSI`: state RTS", "");
	put(m, "/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/1", "IB/RoCE v1\n");
	expect(m, "RDMA addresses", PS_HEALTH_FAIL, "rxe0 port 1 has none", "");
	put(m, "/sys/class/infiniband/rxe0/ports/1/link_layer", "InfiniBand\n");
	expect(m, "RDMA addresses", PS_HEALTH_SKIPPED, "or none of RoCE", "");
	m->host.has_rdma = false;
	expect(m, "RDMA addresses", PS_HEALTH_SKIPPED, "left out of this build", "");
}

/* A user of its own that is none of the system's; told not to; elsewhere; no daemon; no systemd. */
TEST(logind_may_remove_the_images, struct made_up *m)
{
	put(m, "/proc/77/status", "Name:\tperseasd\nUid:\t1001\t1001\t1001\t1001\n");
	expect(m, "RemoveIPC", PS_HEALTH_FAIL, "", "useradd --system");
	m->host.memory_dir = "/srv/images";
	expect(m, "RemoveIPC", PS_HEALTH_OK, "", "");
	m->host.memory_dir = "/dev/shm";
	expect(m, "RemoveIPC", PS_HEALTH_FAIL, "", "");
	m->host.memory_dir = "/dev/shm/perseas";
	put(m, "/usr/lib/systemd/logind.conf.d/50-ours.conf", "[Login]\nRemoveIPC=no\n");
	expect(m, "RemoveIPC", PS_HEALTH_OK, "", "");
	put(m, "/run/systemd/logind.conf.d/10-now.conf", "[Login]\nRemoveIPC=yes\n");
	expect(m, "RemoveIPC", PS_HEALTH_FAIL, "", "");
	put(m, "/etc/systemd/logind.conf", "[Login]\n#RemoveIPC=no\nRemoveIPC=yes\n");
	expect(m, "RemoveIPC", PS_HEALTH_FAIL, "", "");
	put(m, "/etc/systemd/logind.conf.d/shm.conf", "[Login]\nRemoveIPC=no\n");
	expect(m, "RemoveIPC", PS_HEALTH_OK, "", "");
	put(m, "/etc/systemd/logind.conf.d/shm.conf", "");
	put(m, "/proc/77/comm", "perseas\n");
	expect(m, "RemoveIPC", PS_HEALTH_OK, "(998)", "");
	put(m, "/etc/passwd", "");
	expect(m, "RemoveIPC", PS_HEALTH_SKIPPED, "", "");
	m->host.root = "/nowhere";
	expect(m, "RemoveIPC", PS_HEALTH_SKIPPED, "", "");
}
