"""perseas-rxe on hosts that lack something. The programs that it calls, and /sys, are fakes:
nothing is changed on the test's host."""
import os
import pathlib
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "deploy/perseas-rxe"
OK, FAILED, USAGE, NONE, ROOT, KERNEL = range(6)
NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"


class Host:
    """A host made of files."""

    def __init__(self, folder):
        self.sys, self.bin = folder / "sys", folder / "bin"
        self.bin.mkdir()
        self.calls = folder / "calls"
        self.program("id", "echo 0")
        self.program("ip", "echo inet")
        self.program("modprobe", "exit 0")
        self.program("rdma", 'echo rdma "$@" >>%s' % self.calls)
        self.file("class/net/eth9/flags", "0x1003")
        self.file("class/net/eth9/mtu", "1500")

    def program(self, name, script):
        path = self.bin / name
        path.write_text("#!/bin/sh\n%s\n" % script)
        path.chmod(0o755)

    def file(self, name, text):
        path = self.sys / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")

    def link(self, name, device, gids, kind="rxe"):
        """Adds an RDMA device; `gids` are (type, GID) by index."""
        base = "class/infiniband/%s/" % name
        if kind == "rxe":
            self.file(base + "parent", device)
        self.file(base + "ports/1/state", "4: ACTIVE")
        for index, (type_, gid) in enumerate(gids):
            self.file(base + "ports/1/gids/%d" % index, gid)
            self.file(base + "ports/1/gid_attrs/types/%d" % index, type_)

    def run(self, *words):
        env = dict(os.environ, PERSEAS_SYSFS=str(self.sys),
                   PATH="%s:%s" % (self.bin, os.environ["PATH"]))
        return subprocess.run([str(SCRIPT), *words], env=env, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)

    def called(self):
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def test_a_host_without_rdma_is_told_so(host):
    """No RDMA device at all."""
    done = host.run("status")
    assert done.returncode == NONE
    assert "no RDMA device on this host" in done.stdout and "perseas-rxe up" in done.stdout


def test_a_host_with_other_rdma_only(host):
    """A hardware device is not an rxe link; neither status nor down takes it for one."""
    host.link("mlx5_0", "eth9", [], kind="mlx5")
    done = host.run("status")
    assert done.returncode == NONE and "mlx5_0" in done.stdout
    assert host.run("down").returncode == OK
    named = host.run("down", "--name", "mlx5_0")
    assert named.returncode == FAILED and "mlx5_0 is not a link of rxe" in named.stdout
    assert host.called() == []


def test_down_removes_all_links_of_rxe(host):
    """Two links, and a device of another driver."""
    host.link("rxe0", "eth9", [])
    host.link("rxe1", "eth8", [])
    host.link("mlx5_0", "eth7", [], kind="mlx5")
    assert host.run("down").returncode == OK
    assert host.called() == ["rdma link delete rxe0", "rdma link delete rxe1"]


def test_a_kernel_without_the_driver(host):
    """modprobe does not find rdma_rxe: the packages that have it are named."""
    host.program("modprobe", 'case $* in *rdma_rxe) echo "modprobe: FATAL: Module rdma_rxe not '
                 'found in directory /lib/modules/6.1" >&2; exit 1; esac')
    done = host.run("up", "--dev", "eth9")
    assert done.returncode == KERNEL
    assert "no module rdma_rxe" in done.stdout and "linux-image-" in done.stdout
    assert host.called() == []


def test_a_module_that_may_not_be_loaded(host):
    """The module exists, but the kernel refuses it: modprobe's message is passed on."""
    host.program("modprobe",
                 'echo "modprobe: ERROR: could not insert: Key was rejected" >&2; exit 1')
    done = host.run("up", "--dev", "eth9")
    assert done.returncode == FAILED and "Key was rejected" in done.stdout


def test_a_checksum_that_is_missing(host):
    """The message of `rdma link add` without crc32_generic does not explain itself."""
    host.program("rdma", 'echo "error: No such file or directory" >&2; exit 1')
    done = host.run("up", "--dev", "eth9")
    assert done.returncode == FAILED and "modprobe crc32_generic" in done.stdout


def test_a_program_that_is_missing(host):
    """Without the program rdma, its package is named."""
    (host.bin / "rdma").unlink()
    env = dict(os.environ, PERSEAS_SYSFS=str(host.sys), PATH=str(host.bin))
    script = SCRIPT.read_text().replace("PATH=$PATH:/usr/sbin:/sbin\n", "")
    done = subprocess.run(["/bin/sh", "-c", script, "perseas-rxe", "up", "--dev", "eth9"], env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == FAILED and "apt-get install iproute2" in done.stdout


def test_who_is_not_root(host):
    """up and down need root, and say so before they do anything."""
    host.program("id", "echo 1000")
    for command in ("up", "down"):
        done = host.run(command)
        assert done.returncode == ROOT and "sudo perseas-rxe " + command in done.stdout
    assert host.called() == []


def test_only_gids_that_connections_can_use_are_shown(host):
    """RoCE v1, a link-local address, an empty entry, and at last RoCE v2."""
    host.link("rxe0", "eth9", [
        ("IB/RoCE v1", "0000:0000:0000:0000:0000:ffff:c000:0209"),
        ("RoCE v2", "fe80:0000:0000:0000:0000:00ff:fe00:0001"),
        ("", NO_GID),
        ("RoCE v2", "0000:0000:0000:0000:0000:ffff:c000:0209")])
    done = host.run("status")
    assert done.returncode == OK
    assert "rxe0: device eth9, state ACTIVE, RDMA MTU 1024 (the device's is 1500)" in done.stdout
    assert [line for line in done.stdout.splitlines() if "GID" in line] == [
        "rxe0: address 192.0.2.9, GID index 3 (RoCE v2)"]


@pytest.mark.parametrize("words", [(), ("sideways",), ("up", "--dev"), ("up", "eth9"),
                                   ("down", "--dev", "eth9"), ("status", "--name", "rxe0"),
                                   ("up", "--dev", "../eth9"), ("up", "--name", "a b")])
def test_what_is_not_understood(host, words):
    """Nothing is done, and the status is that of wrong use."""
    assert host.run(*words).returncode == USAGE
    assert host.called() == []


def test_help_goes_to_stdout(host):
    """Help was requested: status 0."""
    for words in (("--help",), ("up", "--help")):
        done = host.run(*words)
        assert done.returncode == OK and done.stdout.startswith("usage: perseas-rxe up")
