#!/usr/bin/env python3
"""Says what this machine lacks for `make check`, before anything is built: which tests that skips,
and what to write, mount or run. `make check` calls it first, and fails only without the things that
no test can do without (NEEDED). Tests ask lacks(NAME) before they use one of OPTIONAL. Packages are
for deploy/deps.sh. It changes nothing.
"""
import functools
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile

NOBODY = 65534
ROOM = 1 << 30                          # bytes of memory that the tests fill, at most
SHM = pathlib.Path("/dev/shm")


def localhost():
    """Certificates of tests are for this name."""
    try:
        found = {info[4][0] for info in socket.getaddrinfo("localhost", 1)}
    except OSError as error:
        found = {str(error)}
    if found & {"127.0.0.1", "::1"}:
        return None
    return ("localhost has no address of this host (%s): write the line '127.0.0.1 localhost' "
            "to /etc/hosts" % ", ".join(sorted(found)))


def loopback():
    try:
        socket.create_server(("127.0.0.1", 0)).close()
    except OSError as error:
        return "nobody can listen at 127.0.0.1 (%s): run 'ip link set lo up'" % error
    return None


def proc():
    if pathlib.Path("/proc/self/mounts").exists():
        return None
    return "/proc is not mounted: run 'mount -t proc proc /proc'"


def ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        return ("IPv6 has no loopback address (%s): run 'sysctl -w net.ipv6.conf.lo.disable_ipv6=0'"
                % os.strerror(error.errno))
    return None


def shm():
    """Mirrors of tests keep large images there, and in /tmp where there is no room."""
    kinds = [line.split()[2] for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()
             if line.split()[1] == str(SHM)]
    if not kinds or kinds[-1] != "tmpfs":
        return "%s is not in memory: run 'mount -t tmpfs -o mode=1777 tmpfs %s'" % (SHM, SHM)
    if not os.access(SHM, os.W_OK):
        return "%s cannot be written: run 'chmod 1777 %s' as root" % (SHM, SHM)
    free = shutil.disk_usage(SHM).free
    if free < ROOM:
        return ("%s has %d MiB free, and %d would be used: remove what is left there, or run "
                "'mount -o remount,size=4G %s'" % (SHM, free >> 20, ROOM >> 20, SHM))
    return None


def processors():
    if len(os.sched_getaffinity(0)) > 1:
        return None
    return "there is one processor: run where there are two, without taskset"


def tmp():
    try:
        tempfile.TemporaryFile(dir="/tmp").close()
    except OSError as error:
        return "/tmp cannot be written (%s): run 'mkdir -p /tmp; chmod 1777 /tmp' as root" % error
    return None


def devices():
    missing = [name for name in ("null", "zero", "full", "urandom")
               if not pathlib.Path("/dev", name).is_char_device()]
    if missing:
        return ("/dev lacks %s: mount it from outside of a chroot, with 'mount --rbind /dev "
                "CHROOT/dev'" % ", ".join(missing))
    try:
        for end in os.openpty():
            os.close(end)
    except OSError as error:
        return ("no terminal can be made (%s): run 'mount -t devpts -o ptmxmode=666 devpts "
                "/dev/pts'" % error)
    return None


def nobody():
    """Whom root has do what needs no root."""
    try:
        pwd.getpwuid(NOBODY)
    except KeyError:
        return "there is no user with id %d: run 'useradd -u %d nobody'" % (NOBODY, NOBODY)
    return None


def tried(*words, **keywords):
    """None where this command works, else what it said."""
    try:
        done = subprocess.run(words, **keywords, cwd="/", stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    except OSError as error:
        return str(error)
    return None if done.returncode == 0 else done.stdout.strip() or "status %d" % done.returncode


NAMESPACES = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child")
INSIDE = ("ip", "link", "set", "lo", "up")


def own_namespaces():
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    said = tried(*NAMESPACES, "--map-root-user", *INSIDE, **user)
    return said and ("an ordinary user cannot make namespaces (%s): run 'sysctl -w "
                     "kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000', and "
                     "leave a chroot: the kernel allows it in none (in systemd-nspawn's, it "
                     "does)" % said)


def namespaces():
    if os.geteuid():
        return "only root makes namespaces for all tests: call `make check` as root, too"
    said = tried(*NAMESPACES, *INSIDE)
    return said and ("namespaces cannot be made (%s): call `make check` where root has "
                     "CAP_SYS_ADMIN and CAP_NET_ADMIN (in a container: --privileged)" % said)


def mounts():
    if os.geteuid():
        return "only root mounts file systems: call `make check` as root, too"
    said = tried("unshare", "--mount", "mount", "-t", "tmpfs", "-o", "size=1m", "none", "/tmp")
    return said and ("no file system can be mounted (%s): call `make check` where root has "
                     "CAP_SYS_ADMIN (in a container: --privileged)" % said)


# Without these nothing runs.
NEEDED = (proc, loopback, tmp, devices)
# What a machine may lack, and which tests are skipped then.
OPTIONAL = {
    "localhost": (localhost, "tests that call a mirror by a name"),
    "ipv6": (ipv6, "tests of IPv6 addresses"),
    "shm": (shm, "no test: mirrors of tests keep their images in /tmp, which is slower"),
    "processors": (processors, "litmus tests, which show the order of stores of two processors"),
    "own_namespaces": (own_namespaces, "what the guides show"),
    "namespaces": (namespaces, "drills that cut networks"),
    "mounts": (mounts, "drills that fill file systems"),
}


@functools.lru_cache(maxsize=None)
def lacks(name):
    """What is missing and what to do about it, None if the machine has it."""
    return OPTIONAL[name][0]()


def main():
    missing = [said for said in (check() for check in NEEDED if check is proc or not proc())
               if said]
    if os.geteuid() == 0 and nobody():
        missing.append(nobody())
    for said in missing:
        print("preflight    " + said, file=sys.stderr)
    if missing:
        return 1
    for name, (_, skipped) in OPTIONAL.items():
        if lacks(name):
            print("preflight    skips %s, since %s" % (skipped, lacks(name)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
