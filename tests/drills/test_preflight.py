"""`make check` says at its start what the machine lacks, each thing with what to do."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

PREFLIGHT = pathlib.Path(__file__).resolve().parents[1] / "preflight.py"
sys.path.insert(0, str(PREFLIGHT.parent))

import preflight  # noqa: E402


def run(*before):
    done = subprocess.run([*before, sys.executable, str(PREFLIGHT)], text=True, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stderr


def in_world(change):
    """The preflight where a command of root's has changed the world, for it alone."""
    return run("unshare", "--mount", "sh", "-c", change + ' && exec "$@"', "sh")


def test_nothing_is_missing_where_the_tests_run():
    """These tests need what it asks for, and they run here."""
    assert run() == (0, "")


@pytest.mark.root("mounts over /etc/hosts, /dev/shm and /proc")
@pytest.mark.parametrize("change, advice", [
    ("mount --bind /dev/null /etc/hosts", "'127.0.0.1 localhost' to /etc/hosts"),
    ("mount -t tmpfs -o size=10m none /dev/shm", "/dev/shm has 10 MiB free"),
    ("mount -t tmpfs none /proc", "'mount -t proc proc /proc'"),
], ids=["hosts", "memory", "proc"])
def test_what_a_machine_lacks_is_told_of_alone(change, advice):
    status, said = in_world(change)
    assert status == 1
    assert advice in said and said.count("preflight: ") == 1


@pytest.mark.root("changes its root")
def test_a_chroot_is_told_of_namespaces(tmp_path):
    """In a chroot no ordinary user makes namespaces."""
    status, said = in_world("mount --rbind / %s && set -- chroot %s \"$@\"" % (tmp_path, tmp_path))
    assert status == 1
    assert "an ordinary user cannot make namespaces" in said and "leave a chroot" in said


def test_what_a_command_says_is_told(monkeypatch):
    """Namespaces are forbidden, as in most containers: what unshare said stands in the message."""
    monkeypatch.setattr(preflight, "NAMESPACES", ("sh", "-c", "echo not permitted; exit 1"))
    for check in (preflight.own_namespaces, preflight.namespaces):
        assert "namespaces" in check() and "(not permitted)" in check()
    monkeypatch.setattr(preflight, "NAMESPACES", ("/there/is/no/unshare",))
    assert "No such file" in preflight.namespaces()


def make(folder, *words):
    """What a make that begins anew says; without the outer one's settings."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(["make", "-s", "BUILD=%s" % folder, *words], cwd=PREFLIGHT.parents[1],
                          env=env, text=True, timeout=600, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    return done.returncode, done.stderr


def missing_packages(said):
    named, = re.findall("^make: these packages are missing: (.*)$", said, re.M)
    return set(named.split())


LIBRARIES = {"libc6-dev", "libevent-dev", "libssl-dev", "libprotobuf-c-dev"}
RDMA = {"libibverbs-dev", "librdmacm-dev"}


@pytest.mark.parametrize("words, packages", [
    (["PROTOC_C=/nowhere/protoc-c"], {"protobuf-c-compiler"}),
    (["CC=/nowhere/gcc"], {"gcc"}),
    (["CC=gcc -nostdinc"], LIBRARIES | RDMA),
    (["CC=gcc -nostdinc", "RDMA=0"], LIBRARIES),
], ids=["protoc-c", "compiler", "headers", "headers without RDMA"])
def test_make_names_the_packages_that_are_missing(tmp_path, words, packages):
    """And what installs them; nothing else is tried before that."""
    status, said = make(tmp_path, *words, "programs")
    assert status != 0 and missing_packages(said) == packages
    assert "deploy/deps.sh build" in said and "error:" not in said
    deps = (PREFLIGHT.parents[1] / "deploy/deps.sh").read_text()
    assert packages <= set(re.search('^build="([^"]*)"', deps, re.M)[1].split())
