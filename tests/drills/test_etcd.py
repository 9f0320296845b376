"""`etcdctl lock NAME -- perseas run ...`, with Debian's etcd on the loopback: etcd decides who
leads, and the mirrors decide who owns. etcd dies, a lease ends while its holder works on, two nodes
lead at the same time: no acknowledged commit is lost, and only one owner at a time commits.

COMMAND counts: each transaction writes the number after the one that it finds in the store. When
its commit returned, it appends the number to its own file. No number may be in two files, and the
store must end with a number at least as large as all of them."""
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys

import pytest

from binding import Store
from drill import (BUILD, HERE, SECONDS, die_with_parent, fill, mirror_list, wait_for,
                   wait_ownerless)

TTL = "8"  # seconds; etcdctl may not run for some of them on a busy machine
LIVES, OWNS = "standby: its owner lives", "COMMAND runs, and owns the store"

COUNTER = """
import os, struct, sys
sys.path.insert(0, %r)
from binding import TAKEOVER, PerseasError, Store
try:
    with Store(os.environ["PERSEAS_STORE"], os.environ["PERSEAS_MIRRORS"],
               flags=TAKEOVER if "FORCE" in os.environ else 0) as store, \\
            open(sys.argv[1], "a") as acknowledged:
        store.map("s")
        number, = struct.unpack("<Q", store.read("s", 0, 8))
        while True:
            number += 1
            store.write("s", 0, struct.pack("<Q", number))
            acknowledged.write("%%d\\n" %% number)
            acknowledged.flush()
except PerseasError as error:
    print(error.name, flush=True)
    sys.exit(3)
""" % str(HERE)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as chosen:
        return chosen.getsockname()[1]


class Etcd:
    """A single etcd member with its own data directory."""

    def __init__(self, folder):
        self.folder = folder
        self.process = None
        self.choose()

    def choose(self):
        self.client, self.peer = ("http://127.0.0.1:%d" % free_port() for _ in range(2))

    def start(self):
        """Starts etcd. If another process takes a port first, etcd ends, and is started with other
        ports."""
        while not self.started():
            self.choose()

    def started(self):
        log = self.folder / "log"
        with open(log, "wb") as err:
            self.process = subprocess.Popen(
                ["etcd", "--data-dir", self.folder / "data", "--listen-client-urls", self.client,
                 "--advertise-client-urls", self.client, "--listen-peer-urls", self.peer,
                 "--initial-advertise-peer-urls", self.peer, "--initial-cluster",
                 "default=" + self.peer], stdout=err, stderr=err, preexec_fn=die_with_parent)
        wait_for(lambda: self.process.poll() is not None or self.control("endpoint", "health"),
                 SECONDS, "an etcd that answers")
        if self.process.poll() is None:
            return True
        assert "address already in use" in log.read_text(), log.read_text()
        return False

    def environment(self):
        return dict(os.environ, ETCDCTL_API="3", ETCDCTL_ENDPOINTS=self.client)

    def control(self, *words):
        return subprocess.run(["etcdctl", *words], env=self.environment(), timeout=SECONDS,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def kill9(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def etcd(tmp_path):
    folder = tmp_path / "etcd"
    folder.mkdir()
    one = Etcd(folder)
    one.start()
    yield one
    one.kill9()


def children(pid):
    """Returns the child processes of all its threads."""
    return [int(child) for listed in pathlib.Path("/proc/%d/task" % pid).glob("*/children")
            for child in listed.read_text().split()]


class Node:
    """A node that may own the store, as operating.md describes. With `force` a leader takes the
    store over without `perseas run`."""

    def __init__(self, folder, etcd, daemons, force):
        folder.mkdir()
        self.acknowledged, self.log = folder / "acknowledged", folder / "log"
        self.output, self.status = folder / "output", folder / "status"
        count = '"%s" -c "$COUNTER" "%s"' % (sys.executable, self.acknowledged)
        run = 'FORCE=1 ' + count if force else (
            '"%s" run bank --name %s -- %s; echo $? >"%s"' % (
                BUILD / "perseas", folder.name, count, self.status))
        with open(self.log, "wb") as log, open(self.output, "wb") as output:
            self.process = subprocess.Popen(
                ["etcdctl", "lock", "--ttl", TTL, "bank", "--", "sh", "-c", run], stdout=output,
                stderr=log, preexec_fn=die_with_parent, start_new_session=True,
                env=dict(etcd.environment(), PERSEAS_STORE="bank",
                         PERSEAS_MIRRORS=mirror_list(daemons), COUNTER=COUNTER))

    def numbers(self):
        if not self.acknowledged.exists():
            return []
        return [int(line) for line in self.acknowledged.read_text().splitlines(True)
                if line.endswith("\n")]

    def wait_said(self, text):
        wait_for(lambda: text in self.log.read_text(), SECONDS, "'%s' of a node" % text)

    def wait_counts(self):
        """Waits until the node commits more."""
        before = len(self.numbers())
        wait_for(lambda: len(self.numbers()) > before + 20, SECONDS, "a node that commits")

    def end_run(self):
        """Ends the node's `perseas run`. Returns its status."""
        shell, = children(self.process.pid)
        run, = children(shell)
        os.kill(run, signal.SIGTERM)
        wait_for(lambda: self.status.exists() and self.status.read_text().endswith("\n"), SECONDS,
                 "the end of a run")
        return int(self.status.read_text())

    def kill9(self):
        """Kills all of the node's processes, as when its host dies."""
        if self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture
def node(tmp_path, etcd):
    nodes = []

    def start(daemons, force=False):
        nodes.append(Node(tmp_path / ("node%d" % len(nodes)), etcd, daemons, force))
        return nodes[-1]

    start.all = nodes
    yield start
    for each in nodes:
        each.kill9()


def check_nothing_is_lost(node, daemons):
    for each in node.all:
        each.kill9()
    wait_ownerless("bank", daemons)
    numbers = [number for each in node.all for number in each.numbers()]
    assert len(numbers) == len(set(numbers))
    with Store("bank", mirror_list(daemons)) as store:
        store.map("s")
        found, = struct.unpack("<Q", store.read("s", 0, 8))
    assert found >= max(numbers)


def test_etcd_dies_and_the_owner_goes_on(etcd, node, mirrors):
    """Nobody can lead without etcd, and nobody needs to: the owner has its mirrors. When etcd is
    back and the owner's host dies, the next node leads as soon as the lease has ended."""
    daemons = mirrors(3)
    fill("bank", daemons, {"s": bytes(4096)})
    first = node(daemons)
    first.wait_said(OWNS)
    etcd.kill9()
    first.wait_counts()
    etcd.start()
    first.wait_counts()
    second = node(daemons)
    first.kill9()
    second.wait_said(OWNS)
    second.wait_counts()
    assert min(second.numbers()) > max(first.numbers())
    check_nothing_is_lost(node, daemons)


def test_a_lease_ends_and_its_holder_works_on(node, mirrors):
    """The first node's etcdctl is stopped, so its lease ends without its COMMAND noticing. The
    second node leads, sees from the mirrors that the owner is alive, and stands by."""
    daemons = mirrors(3)
    fill("bank", daemons, {"s": bytes(4096)})
    first = node(daemons)
    first.wait_said(OWNS)
    second = node(daemons)
    first.process.send_signal(signal.SIGSTOP)
    second.wait_said(LIVES)
    first.wait_counts()
    assert not second.numbers()
    first.kill9()
    second.wait_said(OWNS)
    second.wait_counts()
    check_nothing_is_lost(node, daemons)


def test_of_two_that_lead_one_is_fenced(node, mirrors):
    """As above, but the second node takes the store over by force when etcd lets it lead. The first
    COMMAND ends because it is fenced, and its `perseas run` stands by and ends with status 0 when
    told to."""
    daemons = mirrors(3)
    fill("bank", daemons, {"s": bytes(4096)})
    first = node(daemons)
    first.wait_said(OWNS)
    first.wait_counts()
    second = node(daemons, force=True)
    first.process.send_signal(signal.SIGSTOP)
    second.wait_counts()
    first.wait_said(LIVES)
    fenced = first.numbers()
    second.wait_counts()
    assert first.numbers() == fenced
    assert min(second.numbers()) > max(first.numbers())
    assert first.end_run() == 0
    second.wait_counts()
    check_nothing_is_lost(node, daemons)
