"""`make check` first reports what the machine lacks, each with what to do."""
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
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def in_world(change):
    """Runs the preflight in a namespace that a root command has changed."""
    return run("unshare", "--mount", "sh", "-c", change + ' && exec "$@"', "sh")


def test_nothing_that_is_needed_is_missing_where_the_tests_run():
    """Optional things are reported only if the machine lacks them."""
    status, said = run()
    lacking = [preflight.lacks(name) for name in preflight.OPTIONAL if preflight.lacks(name)]
    assert status == 0 and len(said.splitlines()) == len(lacking), said
    assert all(each in said for each in lacking), said


@pytest.mark.root("mounts over /etc/hosts, /dev/shm and /proc")
@pytest.mark.parametrize("change, status, advice", [
    ("mount --bind /dev/null /etc/hosts", 0, "'127.0.0.1 localhost' to /etc/hosts"),
    ("mount -t tmpfs -o size=10m none /dev/shm", 0, "/dev/shm has 10 MiB free"),
    ("mount -t tmpfs none /proc", 1, "'mount -t proc proc /proc'"),
], ids=["hosts", "memory", "proc"])
def test_one_thing_that_a_machine_lacks_is_told_of(change, status, advice):
    """Without /proc nothing runs, and nothing else is checked; without the others tests are
    skipped."""
    found, said = in_world(change)
    assert found == status, said
    lines = [line for line in said.splitlines() if advice in line]
    assert len(lines) == 1 and lines[0].startswith("preflight    "), said
    if status:
        assert said.splitlines() == lines


@pytest.mark.root("changes its root")
def test_a_chroot_is_told_of_namespaces(tmp_path):
    """In a chroot an ordinary user cannot create namespaces."""
    status, said = in_world("mount --rbind / %s && set -- chroot %s \"$@\"" % (tmp_path, tmp_path))
    assert status == 0, said
    assert "skips what the guides show, since an ordinary user cannot make namespaces" in said
    assert "leave a chroot" in said


def test_what_a_command_says_is_told(monkeypatch):
    """Namespaces are forbidden, as in most containers: unshare's message is part of the report."""
    monkeypatch.setattr(preflight, "NAMESPACES", ("sh", "-c", "echo not permitted; exit 1"))
    assert "an ordinary user cannot make namespaces (not permitted)" in preflight.own_namespaces()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "namespaces cannot be made (not permitted)" in preflight.namespaces()
    monkeypatch.setattr(preflight, "NAMESPACES", ("/there/is/no/unshare",))
    assert "No such file" in preflight.namespaces()


def make(folder, *words):
    """Returns the output of a new make, without the settings of the outer one."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(["make", "-s", "BUILD=%s" % folder, *words], cwd=PREFLIGHT.parents[1],
                          env=env, text=True, timeout=600, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    return done.returncode, done.stderr


def missing_packages(said):
    named, = re.findall("^make: these packages are missing: (.*)$", said, re.M)
    return set(named.split())


LIBRARIES = {"libc6-dev", "libevent-dev", "libncurses-dev", "libssl-dev", "libprotobuf-c-dev"}
RDMA = {"libibverbs-dev", "librdmacm-dev"}


@pytest.mark.parametrize("words, packages", [
    (["PROTOC_C=/nowhere/protoc-c"], {"protobuf-c-compiler"}),
    (["CC=/nowhere/gcc"], {"gcc"}),
    (["CC=gcc -nostdinc"], LIBRARIES | RDMA),
    (["CC=gcc -nostdinc", "RDMA=0"], LIBRARIES),
], ids=["protoc-c", "compiler", "headers", "headers without RDMA"])
def test_make_names_the_packages_that_are_missing(tmp_path, words, packages):
    """With the command that installs them, before anything else is tried."""
    status, said = make(tmp_path, *words, "programs")
    assert status != 0 and missing_packages(said) == packages
    assert "deploy/deps.sh build" in said and "error:" not in said
    deps = (PREFLIGHT.parents[1] / "deploy/deps.sh").read_text()
    assert packages <= set(re.search('^build="([^"]*)"', deps, re.M)[1].split())
