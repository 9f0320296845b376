#!/usr/bin/env python3
"""Starts a program the way systemd would start perseasd.service, on machines where systemd does not
run.

    service.py [--sockets FD,FD,...] [--confine] PROGRAM ARGUMENT...

--sockets passes these descriptors on, as perseasd.socket would. --confine restricts the program to
the system calls, address families and capabilities that the unit allows, and kills it at the first
other system call. Restrictions on mounts and devices are not applied.
"""
import argparse
import ctypes
import os
import pathlib
import re
import socket
import subprocess

UNIT = pathlib.Path(__file__).resolve().parents[2] / "deploy/perseasd.service.in"
FIRST = 3                               # SD_LISTEN_FDS_START
PR_CAPBSET_DROP, CAPABILITIES = 24, 64
PROT_EXEC, PROT_WRITE = 4, 2


def settings(name):
    """Returns the unit's values of a setting, one for each line."""
    return re.findall(r"^%s=(.*)$" % name, UNIT.read_text(), re.M)


def groups():
    """Returns {"@system-service": its members, ...}"""
    text = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=True).stdout
    found = {}
    for block in re.split(r"^(?=@)", text, flags=re.M)[1:]:
        name, *lines = block.split("\n")
        found[name] = {line.strip() for line in lines if re.match(r" +[@a-z_]", line)}
    return found


def spread(words, known):
    """Returns the system calls that these names stand for; names may be groups."""
    return set().union(*(spread(known[w], known) if w.startswith("@") else {w} for w in words))


def allowed_calls():
    """Returns the allowed system calls by the rules of systemd.exec(5): the first line allows, one
    with ~ removes."""
    known, allowed = groups(), set()
    for line in settings("SystemCallFilter"):
        named = spread(line.lstrip("~").split(), known)
        allowed = allowed - named if line.startswith("~") else allowed | named
    return allowed


def allow_calls(seccomp, kernel):
    for call in sorted(allowed_calls() - {"socket", "mmap", "mprotect"}):
        if seccomp.resolve_syscall(seccomp.Arch(), call) >= 0:
            kernel.add_rule(seccomp.ALLOW, call)


def confine():
    """Confines this process. Drops capabilities first, because seccomp needs one of them."""
    import seccomp                      # Debian's python3-seccomp
    kernel = seccomp.SyscallFilter(seccomp.KILL_PROCESS)
    kernel.set_attr(seccomp.Attr.CTL_NNP, settings("NoNewPrivileges") == ["yes"])
    allow_calls(seccomp, kernel)
    for family in settings("RestrictAddressFamilies")[0].split():
        kernel.add_rule(seccomp.ALLOW, "socket",
                        seccomp.Arg(0, seccomp.EQ, int(getattr(socket, family))))
    assert settings("MemoryDenyWriteExecute") == ["yes"]
    kernel.add_rule(seccomp.ALLOW, "mprotect",
                    seccomp.Arg(2, seccomp.MASKED_EQ, PROT_EXEC, 0))
    for together in (0, PROT_EXEC, PROT_WRITE):
        kernel.add_rule(seccomp.ALLOW, "mmap",
                        seccomp.Arg(2, seccomp.MASKED_EQ, PROT_EXEC | PROT_WRITE, together))
    assert settings("CapabilityBoundingSet") == [""]
    prctl = ctypes.CDLL(None).prctl
    for right in range(CAPABILITIES):
        prctl(PR_CAPBSET_DROP, right, 0, 0, 0)      # fails for numbers that the kernel lacks
    os.umask(int(settings("UMask")[0], 8))
    kernel.load()


def hand_over(descriptors):
    """Duplicates these descriptors to 3 and above, and sets the environment for them."""
    high = [os.dup(fd) for fd in descriptors]
    while any(fd < FIRST + len(high) for fd in high):
        high = [os.dup(fd) for fd in high]
    for place, fd in enumerate(high, FIRST):
        os.dup2(fd, place, inheritable=True)
    os.environ.update(LISTEN_FDS=str(len(high)), LISTEN_PID=str(os.getpid()),
                      LISTEN_FDNAMES=":".join(["perseasd.socket"] * len(high)))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--sockets", default="")
    parser.add_argument("--confine", action="store_true")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    if args.sockets:
        hand_over([int(fd) for fd in args.sockets.split(",")])
    if args.confine:
        confine()
    os.execv(args.program, [args.program, *args.arguments])


if __name__ == "__main__":
    main()
