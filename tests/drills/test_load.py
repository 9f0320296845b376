"""A thousand idle control sessions and two hundred busy ones, half of these hostile, while an owner
commits.

What they take of processors that all share is no part of what is measured. Over shared memory that
is the owner's own processor time for a transaction, in which the daemon has no part unless
something is wrong. Over TCP it is the time of the daemon's one thread that goes to the others,
which is what commits may have to wait for, and the longest that one waited.
"""
import os
import pathlib
import re
import resource
import signal
import struct
import subprocess
import time
from statistics import median

import pytest

from drill import MIB, PATIENCE, die_with_parent
from rules import Rules
from teller import SECONDS, TELLER, tellers, until  # noqa: F401
from test_hostile import Busy

pytestmark = pytest.mark.timing("the longest commit beside a crowd")

IDLE, BUSY, ROOM = 1000, 200, 1700
SLOW = BUSY // 2 // 5                   # of the busy ones
WINDOWS = 7                             # with the load, and as many without
COUNT = {"shm": 60000, "tcp": 6000}     # transactions of a window
TENTH = 0.1
PAUSE = 50 * PATIENCE                   # ms, of a commit
GROWTH = 64 * MIB                       # of the daemon
RULES = {"shm": "allow uid:%d all" % os.geteuid(), "tcp": "allow anonymous all store books"}


class Load:
    """teller load."""

    def __init__(self, daemon):
        host, port = daemon.mirror.tcp.split(":")
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]

        def prepare():
            die_with_parent()
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

        self.process = subprocess.Popen(
            [str(TELLER), "load", host, port, str(IDLE), str(BUSY)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, preexec_fn=prepare)
        assert self.process.stdout.readline() == "all\n"

    def pause(self, paused):
        os.kill(self.process.pid, signal.SIGSTOP if paused else signal.SIGCONT)

    def end(self):
        """What became of the visitors, when each kind but the slow one has been answered."""
        assert self.process.stdout.readline() == "each\n"
        self.process.stdin.close()
        told = self.process.stdout.read()
        assert self.process.wait(SECONDS) == 0
        self.process.stdout.close()
        return {k: int(v) for k, v in (pair.split("=") for pair in told.split())}

    def tidy_up(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def loads():
    started = []
    yield started
    for load in started:
        load.tidy_up()


def cpu_ns(pid):
    """Of all threads of a process."""
    return sum(int((task / "schedstat").read_text().split()[0])
               for task in pathlib.Path("/proc/%d/task" % pid).iterdir())


def memory(pid, what):
    """Bytes, of /proc/PID/status."""
    text = pathlib.Path("/proc/%d/status" % pid).read_text()
    return int(re.search(r"^%s:\s+(\d+) kB" % what, text, re.M).group(1)) << 10


def window(desk, count):
    """So many transactions: (nanoseconds of the owner's processor time for one, milliseconds that
    the slowest took)."""
    page = desk.page
    struct.pack_into("<q", page.memory, 8 * page.FIELDS.index("slowest"), 0)
    acked, began = page.acked, cpu_ns(desk.pid)
    page.advances(count)
    return (cpu_ns(desk.pid) - began) / (page.acked - acked), page.slowest / 1e6


def measure(desk, load, count):
    """[(without, with)]: windows that take turns."""
    pairs = []
    for _ in range(WINDOWS):
        load.pause(True)
        without = window(desk, count)
        load.pause(False)
        pairs.append((without, window(desk, count)))
    return pairs


def share_of(daemon):
    """Of a second, in which no owner commits, what the daemon works for the others."""
    began, used = time.monotonic(), cpu_ns(daemon.pid)
    until(lambda: time.monotonic() > began + 1, "a second")
    return (cpu_ns(daemon.pid) - used) / 1e9 / (time.monotonic() - began)


@pytest.mark.parametrize("fabric", ["shm", "tcp"])
def test_an_owner_goes_on_whoever_else_comes(fabric, mirrors, tellers, loads, tmp_path):
    """Its commits go on within a tenth of their rate, who behaves is answered and not let go, who
    does not gets nothing, and the daemon's memory is bounded."""
    rules = Rules(tmp_path / "access", RULES[fabric], "allow anonymous read")
    daemon, = mirrors(1, fabric, (*rules.options, "--max-connections", str(ROOM)))
    busy = Busy(tellers, [daemon])
    before = memory(daemon.pid, "VmRSS")
    load = Load(daemon)
    loads.append(load)
    pairs = measure(busy.desk, load, COUNT[fabric])
    cost = [median(each[i][0] for each in pairs) for i in (0, 1)]
    slowest = [each[1][1] for each in pairs]
    if fabric == "shm":
        print("%.0f ns of the owner a transaction, %.0f ns under load" % tuple(cost))
        assert cost[1] < (1 + TENTH) * cost[0], pairs
        until(lambda: daemon.log().count("sent half of a request") >= SLOW, "slow ones that go")
    busy.is_unharmed()
    if fabric == "tcp":
        share = share_of(daemon)
        print("%.1f %% of the daemon's time, the slowest commits %s ms" % (100 * share, slowest))
        assert share < TENTH and min(slowest) < PAUSE
    told = load.end()
    assert memory(daemon.pid, "VmHWM") < before + GROWTH
    assert told["good"] > BUSY and told["denied"] == told["stranger"] > 0
    assert all(told[kind] > 0 for kind in ("torn", "version", "huge"))
    assert told["slow"] >= (SLOW if fabric == "shm" else 0)
    assert all(told[kind + "-lost"] == 0 for kind in ("idle", "good", "stranger")), told
    assert not daemon.log().count("there is no room")
