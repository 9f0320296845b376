#!/usr/bin/env python3
"""Says what this machine lacks for `make check`, before anything is built: each missing thing, and
what to write, mount or run. `make check` calls it first; packages are for deploy/deps.sh.

It changes nothing. As root it also asks for what only root's tests need: namespaces and mounts.
"""
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


def shm():
    """Where mirrors of tests keep images."""
    kinds = [line.split()[2] for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()
             if line.split()[1] == str(SHM)]
    if not kinds or kinds[-1] != "tmpfs":
        return "%s is not in memory: run 'mount -t tmpfs -o mode=1777 tmpfs %s'" % (SHM, SHM)
    if not os.access(SHM, os.W_OK):
        return "%s cannot be written: run 'chmod 1777 %s' as root" % (SHM, SHM)
    free = shutil.disk_usage(SHM).free
    if free < ROOM:
        return ("%s has %d MiB free, and the tests need %d: remove what is left there, or run "
                "'mount -o remount,size=4G %s'" % (SHM, free >> 20, ROOM >> 20, SHM))
    return None


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
    """What the guides show is run in namespaces of an ordinary user's."""
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    said = tried(*NAMESPACES, "--map-root-user", *INSIDE, **user)
    return said and ("an ordinary user cannot make namespaces (%s): run 'sysctl -w "
                     "kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000', and "
                     "leave a chroot: the kernel allows it in none (in systemd-nspawn's, it "
                     "does)" % said)


def namespaces():
    said = tried(*NAMESPACES, *INSIDE)
    return said and ("namespaces cannot be made (%s): call `make check` where root has "
                     "CAP_SYS_ADMIN and CAP_NET_ADMIN (in a container: --privileged), or as an "
                     "ordinary user, who skips what needs them" % said)


def mounts():
    said = tried("unshare", "--mount", "mount", "-t", "tmpfs", "-o", "size=1m", "none", "/tmp")
    return said and ("no file system can be mounted (%s): call `make check` where root has "
                     "CAP_SYS_ADMIN (in a container: --privileged), or as an ordinary user, who "
                     "skips what needs that" % said)


EVERYBODYS = (proc, localhost, loopback, shm, tmp, devices, own_namespaces)
ROOTS = (nobody, namespaces, mounts)


def main():
    missing = []
    for check in EVERYBODYS + (ROOTS if os.geteuid() == 0 else ()):
        said = check() if check in (proc,) or proc() is None else None
        if said:
            missing.append(said)
    for said in missing:
        print("preflight: " + said, file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
