"""The nodes of the drills with cluster managers: a Debian with a systemd of its own in namespaces
(tests/deb/boot.sh), each with its own disk over a common one, on a switch that pulls cables.

Nothing of them is seen outside, and no address outside is reached from there. A node that is killed
loses its memory, as by a power cut, and boots again from its disk; one that is frozen goes on later
without having noticed. `make check-cluster` calls this as root, in a mount namespace of its own.
"""
import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/drills"))
sys.path.insert(0, str(TOP / "bench"))
import netns                            # noqa: E402
from cluster import die_with_parent, wait_for  # noqa: E402

FOLDER = pathlib.Path(os.environ.get("PERSEAS_CLUSTER", TOP / "build/cluster"))
# No node takes so long, however busy the machine is.
SECONDS = 300
# What /proc says of a process that ends before, or while, it is read.
ENDED = (FileNotFoundError, ProcessLookupError)


def children(pid):
    """Of a process, and theirs; some may have ended already."""
    try:
        found = pathlib.Path("/proc/%d/task/%d/children" % (pid, pid)).read_text().split()
    except ENDED:
        return
    for each in found:
        yield int(each)
        yield from children(int(each))


def name_of(pid):
    try:
        return pathlib.Path("/proc/%d/comm" % pid).read_text().strip()
    except ENDED:
        return ""


class Node:
    """A host of the cluster."""

    def __init__(self, fleet, number):
        self.fleet, self.name = fleet, "node%d" % number
        self.number, self.address = number, "10.88.0.%d" % number
        self.root = fleet.folder / self.name
        self.process = self.group_name = None
        for part in ("upper", "work", "root"):
            (fleet.folder / (self.name + "-disk") / part).mkdir(parents=True)
        self.root = fleet.folder / (self.name + "-disk/root")
        disk = self.root.parent
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", "lowerdir=%s,upperdir=%s,"
                        "workdir=%s" % (FOLDER / "root", disk / "upper", disk / "work"),
                        self.root], check=True)
        (self.root / "journals").mkdir()
        subprocess.run(["mount", "--bind", fleet.journals, self.root / "journals"], check=True)

    def write(self, path, text):
        path = self.root / path.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def boot(self):
        """It is up when this returns; services that are enabled may still be starting."""
        log = open(self.fleet.folder / (self.name + ".log"), "ab")
        # Neither another run has a group of this name, nor did one that was killed leave one.
        self.group_name = "perseas-deb.%s" % uuid.uuid4()
        self.process = subprocess.Popen(
            [TOP / "tests/deb/boot.sh", self.root, "/bin/sh", "-c", "echo up; exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, preexec_fn=die_with_parent,
            env=dict(os.environ, PERSEAS_BOOT_NAME=self.name, PERSEAS_BOOT_GROUP=self.group_name))
        log.close()
        wait_for(self.has_network, SECONDS, "a network namespace of " + self.name)
        self.fleet.switch.plug_in(self)
        assert self.process.stdout.readline() == b"up\n", "%s does not boot" % self.name
        self.inside = wait_for(self.idler, SECONDS, "the process of %s to enter by" % self.name)

    def idler(self):
        """What boot.sh runs there, which does nothing."""
        return next((pid for pid in children(self.process.pid) if name_of(pid) == "cat"), None)

    def first(self):
        """The first process of its outer namespace, with which all of it ends."""
        own = os.readlink("/proc/self/ns/net")
        for pid in children(self.process.pid):
            try:
                if os.readlink("/proc/%d/ns/net" % pid) != own and name_of(pid) == "boot.sh":
                    return pid
            except ENDED:
                pass
        return None

    def has_network(self):
        assert self.process.poll() is None, "%s does not boot" % self.name
        return self.first()

    def kill(self):
        """Ends the node as if its power failed: it closes no connection, and its memory is gone."""
        os.kill(self.first(), signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process = None
        self.fleet.switch.unplug(self)

    def group(self):
        mounted = subprocess.run(["findmnt", "-n", "-t", "cgroup2", "-o", "TARGET"], text=True,
                                 stdout=subprocess.PIPE, check=True).stdout.split("\n")[0]
        return pathlib.Path(mounted) / self.group_name

    def freeze(self, yes):
        """It stands still as a whole, or goes on."""
        (self.group() / "cgroup.freeze").write_text("%d\n" % yes)
        events = self.group() / "cgroup.events"
        wait_for(lambda: "frozen %d" % yes in events.read_text(), SECONDS, "a frozen node")

    def run(self, *words, check=True, seconds=SECONDS):
        """A command there; what it printed."""
        done = subprocess.run(["nsenter", "-t", str(self.inside), "-m", "-p", "-n", "-i", "-u",
                               "-r", "-w", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                               "HOME=/root", "LC_ALL=C.UTF-8", *words], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=seconds)
        assert done.returncode == 0 or not check, "%s: %s\n%s" % (self.name, words, done.stdout)
        return done.stdout

    def processes(self, name):
        """Those of a program, by their numbers there."""
        return [int(pid) for pid in self.run("pgrep", "-x", name, check=False).split()]


class Switch(netns.Node):
    """What the nodes are connected to, each by a cable."""

    def __init__(self):
        super().__init__()
        self.ip("link add bridge type bridge forward_delay 0 stp_state 0", "link set bridge up")

    def plug_in(self, node):
        port = "port%d" % node.number
        self.ip("link add %s type veth peer name eth0 netns %d" % (port, node.first()),
                "link set %s master bridge" % port, "link set %s up" % port)
        subprocess.run(["nsenter", "-t", str(node.first()), "-n", "ip", "-batch", "-"], text=True,
                       input="address add %s/24 dev eth0\nlink set eth0 up\n" % node.address,
                       check=True)

    def unplug(self, node):
        """Its end went with the node, at some time."""
        with self.inside():
            subprocess.run(["ip", "link", "delete", "port%d" % node.number], check=False,
                           stderr=subprocess.DEVNULL)

    def cut(self, node, yes=True):
        self.ip("link set port%d %s" % (node.number, "down" if yes else "up"))


class Fleet:
    """Nodes, the switch, and what their applications wrote down."""

    def __init__(self, folder, count):
        self.folder = folder
        self.journals = folder / "journals"
        self.journals.mkdir()
        self.journals.chmod(0o777)
        self.switch = Switch()
        self.nodes = [Node(self, number) for number in range(1, count + 1)]

    def up(self):
        return [node for node in self.nodes if node.process]

    def close(self):
        for node in self.up():
            node.kill()
        self.switch.close()


class Oracle:
    """What was acknowledged, from the journals of tests/cluster/counter.c."""

    def __init__(self, folder):
        self.events = []
        for path in folder.iterdir():
            for line in path.read_text().splitlines(keepends=True):
                word, *numbers = line.split()
                if line.endswith("\n"):
                    self.events.append((int(numbers[2]), word, *map(int, numbers[:2]), path.name))
        self.events.sort()

    def of(self, word):
        return [(at, epoch, count, name) for at, kind, epoch, count, name in self.events
                if kind == word]

    def check(self):
        """No owner found less than what any before it was told is safe, or half of a transaction;
        no count was acknowledged twice; nobody acknowledged beyond what the next one found."""
        assert not self.of("torn"), self.of("torn")
        acked = {}
        for _, epoch, count, name in self.of("ack"):
            assert count not in acked, "%d: %s and %s" % (count, acked[count], (epoch, name))
            acked[count] = (epoch, name)
        opens = sorted((epoch, count) for _, epoch, count, _ in self.of("open"))
        assert len({epoch for epoch, _ in opens}) == len(opens)
        for epoch, count in opens:
            lost = [(each, by) for each, by in acked.items() if by[0] < epoch and each > count]
            assert not lost, "epoch %d found %d: %s are lost" % (epoch, count, lost[:5])
        return len(acked)

    def last(self):
        """The newest acknowledgement: when, and of which epoch."""
        return self.of("ack")[-1][:2]

    def gap(self, since):
        """The longest time, in seconds, that nobody acknowledged anything, since then."""
        acked = [at for at, *_ in self.of("ack")]
        times = [max(at for at in acked if at < since), *(at for at in acked if at >= since)]
        return max((b - a for a, b in zip(times, times[1:])), default=0) / 1e9


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
