"""A thousand idle control sessions and two hundred busy ones, half of them hostile, while an owner
commits.

By day the drills check that all clients are served as they must be. By night they measure the cost
for the owner, without the processors that all share. Over shared memory the cost is the owner's
processor time for a transaction, in which the daemon has no part unless something is wrong. Over
TCP it is the time of the daemon's thread that goes to other clients, which a commit may have to
wait for, and the longest wait.
"""
import os
import pathlib
import re
import resource
import signal
import struct
import subprocess
import time

import pytest

from drill import MIB, PATIENCE, die_with_parent
from interval import of_median
from rules import Rules
from teller import LOG, SECONDS, TELLER, tellers, until  # noqa: F401
from test_hostile import Busy
from test_owner import own_calls

IDLE, BUSY, ROOM = 1000, 200, 1700
SLOW = BUSY // 2 // 5                   # of the busy sessions
WINDOWS = 9                             # measurements with the load, and as many without
COUNT = {"shm": 60000, "tcp": 6000}     # transactions in a measurement
COUNTED = 5000
TENTH = 0.1
PAUSE = 50 * PATIENCE                   # longest commit allowed, ms
GROWTH = 64 * MIB                       # growth of the daemon's memory allowed
RULES = {"shm": "allow uid:%d all" % os.geteuid(), "tcp": "allow anonymous all store books"}


class Load:
    """teller load."""

    def __init__(self, daemon, slow):
        host, port = daemon.mirror.tcp.split(":")
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]

        def prepare():
            die_with_parent()
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

        self.process = subprocess.Popen(
            [str(TELLER), "load", host, port, str(IDLE), str(BUSY), str(slow)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=prepare)
        assert self.process.stdout.readline() == "all\n"

    def pause(self, paused):
        os.kill(self.process.pid, signal.SIGSTOP if paused else signal.SIGCONT)

    def end(self):
        """Returns the counts of all sessions, once each hostile kind was answered, the slow kind
        often enough, and the good ones more than twice each."""
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
    """Returns the processor time of all threads of a process."""
    return sum(int((task / "schedstat").read_text().split()[0])
               for task in pathlib.Path("/proc/%d/task" % pid).iterdir())


def memory(pid, what):
    """Returns a value of /proc/PID/status in bytes."""
    text = pathlib.Path("/proc/%d/status" % pid).read_text()
    return int(re.search(r"^%s:\s+(\d+) kB" % what, text, re.M).group(1)) << 10


def window(desk, count):
    """Runs `count` transactions. Returns (the owner's processor time for one in ns, the slowest in
    ms)."""
    page = desk.page
    struct.pack_into("<q", page.memory, 8 * page.FIELDS.index("slowest"), 0)
    acked, began = page.acked, cpu_ns(desk.pid)
    page.advances(count)
    return (cpu_ns(desk.pid) - began) / (page.acked - acked), page.slowest / 1e6


def measure(desk, load, count):
    """Measures with and without the load in turn: [(without, with)]."""
    pairs = []
    for _ in range(WINDOWS):
        load.pause(True)
        without = window(desk, count)
        load.pause(False)
        pairs.append((without, window(desk, count)))
    return pairs


def share_of(daemon):
    """Returns the fraction of a second that the daemon works for other clients while no owner
    commits."""
    began, used = time.monotonic(), cpu_ns(daemon.pid)
    until(lambda: time.monotonic() > began + 1, "a second")
    return (cpu_ns(daemon.pid) - used) / 1e9 / (time.monotonic() - began)


@pytest.fixture
def crowd(mirrors, loads, tmp_path):
    """crowd(fabric, begin) starts a daemon, calls begin(daemon), and starts the load. Returns the
    daemon, begin's result and the load; some slow sessions must have been closed."""
    def start(fabric, begin, slow=0):
        rules = Rules(tmp_path / "access", RULES[fabric], "allow anonymous read")
        daemon, = mirrors(1, fabric, (*rules.options, "--max-connections", str(ROOM)))
        owner = begin(daemon)
        load = Load(daemon, slow)
        loads.append(load)
        return daemon, owner, load
    return start


def check_visitors(daemon, load, slow=0):
    """Good sessions are answered and never closed; hostile ones get nothing. `slow` sessions that
    send a request byte by byte have been closed."""
    told = load.end()
    assert told["good"] > BUSY and told["denied"] == told["stranger"] > 0
    assert all(told[kind] > 0 for kind in ("torn", "version", "huge"))
    assert told["slow"] >= slow
    assert all(told[kind + "-lost"] == 0 for kind in ("idle", "good", "stranger")), told
    assert not daemon.log().count("there is no room")


@pytest.mark.parametrize("fabric", ["shm", "tcp"])
def test_an_owner_goes_on_whoever_else_comes(fabric, crowd, tellers):
    """Its session survives, every client is treated as it must be, and the daemon's memory is
    bounded."""
    before = []

    def begin(daemon):
        busy = Busy(tellers, [daemon])
        before.append(memory(daemon.pid, "VmRSS"))
        return busy

    slow = SLOW if fabric == "shm" else 0
    daemon, busy, load = crowd(fabric, begin, slow)
    busy.desk.page.advances(COUNTED)
    until(lambda: daemon.log().count("sent half of a request") >= slow, "slow ones that go")
    busy.is_unharmed()
    assert memory(daemon.pid, "VmHWM") < before[0] + GROWTH
    check_visitors(daemon, load, slow)


def test_a_crowd_costs_an_owner_over_shared_memory_no_system_call(crowd, tellers, tmp_path):
    """The daemon has no part in commits over shared memory, whatever else it does: there are only
    the few system calls that wake a thread, as without the load (test_owner.py)."""
    trace = tmp_path / "trace"

    def begin(daemon):
        desk = tellers.desk(wrap=["strace", "-f", "-qq", "-s", "16", "-o", trace])
        desk.open("books", [daemon], "create", LOG)
        desk.books()
        return desk

    _, desk, _ = crowd("shm", begin)
    desk.run(2000)                      # enough that every buffer has its final size
    desk.run(COUNTED)
    desk.exit()
    calls = own_calls(trace.read_text(errors="replace"), "run %d" % COUNTED)
    assert [call for call in calls if "futex" not in call] == []
    assert len(calls) < COUNTED // 10


@pytest.mark.timing("the time of the processor that a crowd costs")
@pytest.mark.parametrize("fabric", ["shm", "tcp"])
def test_a_crowd_costs_an_owner_little(fabric, crowd, tellers):
    """Over shared memory the rate of commits changes by less than a tenth. Over TCP the owner gets
    nine tenths of the daemon's time, and no commit waits for long."""
    daemon, busy, load = crowd(fabric, lambda daemon: Busy(tellers, [daemon]))
    pairs = measure(busy.desk, load, COUNT[fabric])
    if fabric == "shm":
        low, high = of_median(loud[0] / quiet[0] for quiet, loud in pairs)
        print("the owner's time for a transaction, under load / without: %.3f to %.3f" %
              (low, high))
        assert low < 1 + TENTH, pairs
    busy.is_unharmed()
    if fabric == "tcp":
        shares = of_median(share_of(daemon) for _ in range(WINDOWS))
        slowest = of_median(loud[1] for _, loud in pairs)
        print("%.1f %% to %.1f %% of the daemon's time; slowest commits %.1f ms to %.1f ms" %
              (*(100 * share for share in shares), *slowest))
        assert shares[1] < TENTH and slowest[0] < PAUSE
    check_visitors(daemon, load)
