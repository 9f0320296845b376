"""A private network for drills: nodes in network namespaces, and a router between them that can cut
any path, in one direction or both, without notice to either end.

The namespaces have no names: each lives as long as our process in it, so that nothing is left
behind, however a drill ends. Test modules import the fixture `network` from here.
"""
import contextlib
import ctypes
import os
import select
import socket
import subprocess

import pytest

from drill import die_with_parent

CLONE_NEWNET = 0x40000000


def enter(handle):
    """Moves the calling thread to a namespace. Processes that it starts afterward are there,
    too."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(handle, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


class Node:
    """A network namespace."""

    def __init__(self, address=None):
        self.address = address
        # The process prints a line once it is there, and ends with its input.
        self.keeper = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       preexec_fn=die_with_parent)
        self.keeper.stdout.readline()
        self.handle = os.open("/proc/%d/ns/net" % self.keeper.pid, os.O_RDONLY | os.O_CLOEXEC)
        self.ip("link set lo up")

    @contextlib.contextmanager
    def inside(self):
        """Processes started in the `with` block run on the node."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            enter(self.handle)
            yield self
        finally:
            enter(before)
            os.close(before)

    def ip(self, *lines):
        """Runs commands of ip in one process."""
        with self.inside():
            subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True,
                           check=True)

    def close(self):
        os.close(self.handle)
        self.keeper.stdin.close()
        self.keeper.wait()
        self.keeper.stdout.close()


class Network:
    """Nodes by name, each with its own link to the router."""

    def __init__(self, names):
        self.router = Node()
        self.nodes, self.cuts = {}, set()
        with self.router.inside(), open("/proc/sys/net/ipv4/ip_forward", "w") as file:
            file.write("1")
        for number, name in enumerate(names, 1):
            self.add(name, number)

    def add(self, name, number):
        node = self.nodes[name] = Node("10.77.%d.2" % number)
        node.number = number
        self.router.ip("link add to%d type veth peer name eth0 netns %d" %
                       (number, node.keeper.pid),
                       "address add 10.77.%d.1/24 dev to%d" % (number, number),
                       "link set to%d up" % number)
        node.ip("address add %s/24 dev eth0" % node.address, "link set eth0 up",
                "route add default via 10.77.%d.1" % number)

    def __getitem__(self, name):
        return self.nodes[name]

    def pull(self, name):
        """Pulls the node's cable: sets its link down, and tells neither end anything else."""
        self.router.ip("link set to%d down" % self.nodes[name].number)

    def plug(self, name):
        self.router.ip("link set to%d up" % self.nodes[name].number)

    def set_cuts(self, cuts):
        """Drops all packets from `a` to `b` for the pairs (a, b) from now on, and no others."""
        cuts = set(cuts)
        lines = ["rule %s from %s to %s blackhole" % (verb, self[a].address, self[b].address)
                 for verb, pairs in (("del", self.cuts - cuts), ("add", cuts - self.cuts))
                 for a, b in sorted(pairs)]
        if lines:
            self.router.ip(*lines)
        self.cuts = cuts

    def partition(self, groups):
        """Partitions the network: nodes in different groups do not reach each other; a node in no
        group reaches none."""
        def apart(a, b):
            return not any(a in group and b in group for group in groups)
        self.set_cuts((a, b) for a in self.nodes for b in self.nodes if a != b and apart(a, b))

    def heal(self):
        self.set_cuts(())

    def reaches(self, a, b, seconds):
        """Returns whether a packet gets from a to b in time. Does not test the way back."""
        with self[b].inside():
            there = socket.socket(type=socket.SOCK_DGRAM)
        with self[a].inside():
            here = socket.socket(type=socket.SOCK_DGRAM)
        with here, there:
            there.bind((self[b].address, 0))
            here.sendto(b"x", there.getsockname())
            return bool(select.select([there], [], [], seconds)[0])

    def close(self):
        for node in [*self.nodes.values(), self.router]:
            node.close()


@pytest.fixture
def network():
    """network(names...) returns a Network with these nodes."""
    networks = []

    def make(*names):
        networks.append(Network(names))
        return networks[-1]

    yield make
    for each in networks:
        each.close()
