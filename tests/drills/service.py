#!/usr/bin/env python3
"""Starts a program as systemd would start perseasd.service, where there is no systemd that runs.

    service.py [--sockets FD,FD,...] [--confine] PROGRAM ARGUMENT...

--sockets hands these descriptors over, as perseasd.socket's. --confine keeps the program to the
system calls, address families and rights that the unit leaves it, and ends it at the first other
one; what is confined by mounts and devices is not.
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
    """What the unit says of this, a line each."""
    return re.findall(r"^%s=(.*)$" % name, UNIT.read_text(), re.M)


def groups():
    """{"@system-service": what is in it, ...}"""
    text = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=True).stdout
    found = {}
    for block in re.split(r"^(?=@)", text, flags=re.M)[1:]:
        name, *lines = block.split("\n")
        found[name] = {line.strip() for line in lines if re.match(r" +[@a-z_]", line)}
    return found


def spread(words, known):
    """System calls that these names, also of groups, stand for."""
    return set().union(*(spread(known[w], known) if w.startswith("@") else {w} for w in words))


def allowed_calls():
    """As systemd.exec(5) has it: the first line says what is allowed, one with ~ takes away."""
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
    """The rights go first, for seccomp needs one of them."""
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
    """Puts these at 3 and above, and says so."""
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
