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

static unsigned lacks; /* bits of enum ps_feature */
static enum ps_clock_state clock_state;
static uint64_t fs_size, fs_available;
static const char *demand_trouble, *demand_limit; /* NULL: none */

static bool has(enum ps_feature feature)
{
	return !(lacks >> feature & 1);
}

static enum ps_clock_state clock_now(void)
{
	return clock_state;
}

static bool space(const char *path, uint64_t *size, uint64_t *available)
{
	assert_int_equal(access(path, F_OK), 0);
	*size = fs_size;
	*available = fs_available;
	return true;
}

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

static void point(const struct made_up *m, const char *name, const char *target)
{
	char path[PATH_MAX];

	place(m, path, name);
	assert_int_equal(symlink(target, path), 0);
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
	check->look(&m->host, &m->finding);
	assert_true(*m->finding.found);
	/* What is wrong comes with what to do about it. */
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

#define LIMITS(files, memory)                                                                  \
	"Limit                     Soft Limit           Hard Limit           Units     \n"     \
	"Max open files            " files "                1048576              files     \n" \
	"Max locked memory         " memory "              unlimited              bytes     \n"

/* A host on which nothing is wrong. */
static int setup(void **state)
{
	struct made_up *m = calloc(1, sizeof(*m));

	if (!m)
		return -1;
	strcpy(m->root, "/tmp/test_doctor-XXXXXX");
	if (!mkdtemp(m->root))
		return -1;
	lacks = 0;
	clock_state = PS_CLOCK_SYNCHRONISED;
	fs_size = (uint64_t)64 << 30;
	fs_available = (uint64_t)32 << 30;
	demand_trouble = demand_limit = NULL;
	m->host = (struct ps_host){ m->root, "/dev/shm/perseas", has, clock_now, space, demand,
		                    written };
	put(m, "/proc/sys/kernel/osrelease", "6.1.0-13-amd64\n");
	put(m, "/proc/self/limits", LIMITS("65536", "unlimited"));
	put(m, "/proc/self/status", "Name:\tperseas\nCapEff:\t0000000000000000\n");
	put(m, "/proc/self/fd/0", "");
	put(m, "/proc/self/mounts", "/dev/sda1 / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n");
	put(m, "/proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n");
	put(m, "/proc/sys/kernel/core_pattern", "core\n");
	put(m, "/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
	put(m, "/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always [advise] never deny\n");
	put(m, "/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
	put(m, "/dev/shm/perseas/.keep", "");
	put(m, "/run/systemd/system/.keep", "");
	put(m, "/etc/passwd", "root:x:0:0::/:/bin/sh\nperseas:x:998:998::/:/usr/sbin/nologin\n");
	put(m, "/sys/class/infiniband/rxe0/node_type", "1: CA\n");
	put(m, "/sys/class/infiniband/rxe0/ports/1/state", "4: ACTIVE\n");
	put(m, "/sys/class/infiniband/rxe0/ports/1/link_layer", "Ethernet\n");
	put(m, "/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/0", "RoCE v2\n");
	put(m, "/sys/class/infiniband/rxe0/ports/1/gids/0",
	    "fe80:0000:0000:0000:5054:00ff:fe12:3456\n");
	put(m, "/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/1", "RoCE v2\n");
	put(m, "/sys/class/infiniband/rxe0/ports/1/gids/1",
	    "0000:0000:0000:0000:0000:ffff:c000:0201\n");
	put(m, "/dev/infiniband/rdma_cm", "");
	put(m, "/proc/77/comm", "perseasd\n");
	put(m, "/proc/77/status", "Name:\tperseasd\nUid:\t998\t998\t998\t998\nCapEff:\t0\n");
	put(m, "/proc/77/limits", LIMITS("65536", "unlimited"));
	point(m, "/proc/77/fd/3", "socket:[4711]");
	point(m, "/proc/77/fd/4", "socket:[4712]");
	point(m, "/proc/77/fd/5", "socket:[4713]");
	put(m, "/proc/net/tcp",
	    "  sl  local_address rem_address   st\n"
	    "   0: 0100007F:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0"
	    "        0 1 1 0 100 0\n"
	    "   1: 00000000:1C02 00000000:0000 0A 00000000:00000000 00:00000000 00000000   998"
	    "        0 4711 1 0 100 0\n"
	    "   2: 0100007F:1C02 0100007F:9999 01 00000000:00000000 00:00000000 00000000   998"
	    "        0 4712 1 0 100 0\n");
	put(m, "/proc/net/unix",
	    "Num\n0000000000000000: 00000002 00000000 00010000 0001 01 4713 /run/perseas/socket\n");
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
	expect(m, "proc", PS_HEALTH_FAIL, "", "");
}

/* A kernel that is old, and one that lacks what is used. */
TEST(the_kernel_is_asked_for_what_is_used, struct made_up *m)
{
	put(m, "/proc/sys/kernel/osrelease", "5.10.0\n");
	expect(m, "kernel", PS_HEALTH_WARNING, "", "");
	lacks = 1u << PS_FEATURE_MEMBARRIER_OWNER;
	expect(m, "membarrier", PS_HEALTH_WARNING, "no private", "");
	lacks = 1u << PS_FEATURE_MEMBARRIER_MIRROR;
	expect(m, "membarrier", PS_HEALTH_WARNING, "no global", "");
	lacks = 1u << PS_FEATURE_PIDFD;
	expect(m, "pidfd", PS_HEALTH_WARNING, "", "");
}

/* Not synchronised, not told; a source that is slow. */
TEST(the_clock_is_looked_at, struct made_up *m)
{
	clock_state = PS_CLOCK_FREE;
	expect(m, "clock", PS_HEALTH_WARNING, "", "");
	clock_state = PS_CLOCK_UNKNOWN;
	expect(m, "clock", PS_HEALTH_SKIPPED, "", "");
	put(m, "/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
	put(m, "/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet\n");
	expect(m, "clock source", PS_HEALTH_WARNING, "", "tsc hpet");
}

/* Few here; few for the daemon. */
TEST(open_files_may_be_too_few, struct made_up *m)
{
	put(m, "/proc/self/limits", LIMITS("128", "unlimited"));
	expect(m, "open files", PS_HEALTH_FAIL, "", "");
	put(m, "/proc/self/limits", LIMITS("512", "unlimited"));
	expect(m, "open files", PS_HEALTH_WARNING, "", "");
	put(m, "/proc/self/limits", LIMITS("65536", "unlimited"));
	put(m, "/proc/77/limits", LIMITS("1024", "unlimited"));
	expect(m, "open files", PS_HEALTH_WARNING, "1024 for perseasd 77", "LimitNOFILE");
}

/* Too little for a ring; enough for that; without RDMA; with the capability; the daemon's. */
TEST(locked_memory_matters_where_there_is_rdma, struct made_up *m)
{
	put(m, "/proc/self/limits", LIMITS("65536", "8388608"));
	expect(m, "locked memory", PS_HEALTH_FAIL, "8192 KiB", "");
	put(m, "/proc/self/limits", LIMITS("65536", "134217728"));
	expect(m, "locked memory", PS_HEALTH_WARNING, "", "");
	lacks = 1u << PS_FEATURE_RDMA;
	expect(m, "locked memory", PS_HEALTH_OK, "", "");
	lacks = 0;
	put(m, "/proc/self/status", "Name:\tperseas\nCapEff:\t0000000000004000\n");
	expect(m, "locked memory", PS_HEALTH_OK, "", "");
	put(m, "/proc/77/limits", LIMITS("65536", "8388608"));
	expect(m, "locked memory", PS_HEALTH_FAIL, "", "LimitMEMLOCK=infinity");
}

/* On a disk; read-only; full; nearly full; not there yet; on a mount of its own. */
TEST(the_memory_directory_is_looked_at, struct made_up *m)
{
	m->host.memory_dir = "/var/lib/perseas";
	expect(m, "memory directory", PS_HEALTH_FAIL,
	       "/var/lib/perseas is not there yet, and is on ext4", "may be old");
	m->host.memory_dir = "/dev/shm/perseas";
	fs_available = (uint64_t)1 << 30;
	expect(m, "memory directory", PS_HEALTH_WARNING, "1.0 GiB of 64.0 GiB free", "");
	fs_available = (uint64_t)1 << 20;
	expect(m, "memory directory", PS_HEALTH_FAIL, "", "");
	fs_available = fs_size;
	put(m, "/proc/self/mounts",
	    "t /dev tmpfs rw 0 0\nt /dev/shm tmpfs ro,noexec 0 0\nt /dev/shm/pers ext4 rw 0 0\n");
	expect(m, "memory directory", PS_HEALTH_FAIL, "noexec, which does no harm", "");
	assert_non_null(strstr(m->finding.found, "read-only"));
	m->host.memory_dir = "here";
	expect(m, "memory directory", PS_HEALTH_FAIL, "", "");
}

/* Files, which a limit of 0 prevents; a program, which only the limit 1 does. */
TEST(core_dumps_are_told_of, struct made_up *m)
{
	expect(m, "core dumps", PS_HEALTH_OK, "files, 'core'", "");
	put(m, "/proc/sys/kernel/core_pattern", "|/lib/systemd/systemd-coredump %P\n");
	expect(m, "core dumps", PS_HEALTH_OK, "a program: /lib/systemd/systemd-coredump",
	       "LimitCORE=1");
}

/* Some; some, but a mount that is never swapped. */
TEST(swap_is_named, struct made_up *m)
{
	put(m, "/proc/swaps",
	    "Filename\tType\tSize\tUsed\tPriority\n/dev/sda2  partition\t2097152\t0\t-2\n");
	expect(m, "swap", PS_HEALTH_WARNING, "2.0 GiB in 1 place", "");
	put(m, "/proc/self/mounts", "tmpfs /dev/shm tmpfs rw,noswap 0 0\n");
	expect(m, "swap", PS_HEALTH_OK, "", "");
}

/* The kernel gives them to memory that asks, to neither kind of memory, or is too old. */
TEST(transparent_huge_pages_are_looked_at, struct made_up *m)
{
	static const char shmem[] = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

	put(m, shmem, "always advise never [deny]\n");
	expect(m, "transparent huge pages", PS_HEALTH_WARNING, "", "");
	put(m, shmem, "always advise [never] deny\n");
	expect(m, "transparent huge pages", PS_HEALTH_OK, "", "");
	put(m, "/proc/sys/kernel/osrelease", "5.10.0\n");
	expect(m, "transparent huge pages", PS_HEALTH_WARNING, "", "");
	put(m, "/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
	expect(m, "transparent huge pages", PS_HEALTH_WARNING, "", "echo madvise");
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

/* What the check says of a process that has done `first`. */
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
		ps_check_demand(&host, &finding);
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

/* Who runs this, who may be root, and an ordinary user: only one who may handle faults of the
 * kernel has no limit. */
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

/* A port that is down; no connection manager; no device; a build without RDMA. */
TEST(rdma_devices_are_looked_at, struct made_up *m)
{
	expect(m, "RDMA devices", PS_HEALTH_OK, "rxe0 port 1 ACTIVE", "");
	put(m, "/sys/class/infiniband/rxe0/ports/1/state", "1: DOWN\n");
	expect(m, "RDMA devices", PS_HEALTH_FAIL, "rxe0 port 1 DOWN", "");
	put(m, "/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
	expect(m, "RDMA devices", PS_HEALTH_OK, "", "");
	lacks = 1u << PS_FEATURE_RDMA;
	expect(m, "RDMA devices", PS_HEALTH_SKIPPED, "", "");
	expect(m, "RDMA addresses", PS_HEALTH_SKIPPED, "", "");
	lacks = 0;
	m->host.root = "/nowhere";
	expect(m, "RDMA devices", PS_HEALTH_SKIPPED, "", "perseas-rxe up");
}

/* The address that owners use; RoCE v1 only; InfiniBand, which needs none. */
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
	expect(m, "RDMA addresses", PS_HEALTH_SKIPPED, "", "");
}

/* It runs; another user's; it listens nowhere yet; there is none. */
TEST(the_daemons_of_the_host_are_found, struct made_up *m)
{
	char path[PATH_MAX];

	expect(m, "perseasd", PS_HEALTH_OK, "", "");
	assert_string_equal(m->finding.found, "process 77; listens on 127.0.0.1:7170, "
	                                      "unix:///run/perseas/socket");
	put(m, "/proc/net/tcp", "");
	put(m, "/proc/net/unix", "");
	expect(m, "perseasd", PS_HEALTH_WARNING, "", "");
	for (int fd = 3; fd <= 5; fd++) {
		snprintf(path, sizeof(path), "%s/proc/77/fd/%d", m->root, fd);
		assert_int_equal(unlink(path), 0);
	}
	expect(m, "perseasd", PS_HEALTH_SKIPPED, "", "as root");
	put(m, "/proc/77/comm", "perseas\n");
	expect(m, "perseasd", PS_HEALTH_SKIPPED, "", "systemctl start perseasd");
}

/* The longest form that the kernel prints. */
TEST(a_daemon_on_ipv6_is_found, struct made_up *m)
{
	put(m, "/proc/net/tcp", "");
	put(m, "/proc/net/tcp6",
	    "  sl  local_address\n"
	    "   0: B80D0120000000000000000001000000:1C03 00000000000000000000000000000000:0000 0A"
	    " 00000000:00000000 00:00000000 00000000   998        0 4711 1 0 100 0\n");
	expect(m, "perseasd", PS_HEALTH_OK, "[2001:db8::1]:7171", "");
}

/* A user of its own that is none of the system's; told not to; elsewhere; no systemd. */
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
	m->host.root = "/nowhere";
	expect(m, "RemoveIPC", PS_HEALTH_SKIPPED, "", "");
}
