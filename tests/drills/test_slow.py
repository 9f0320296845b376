"""Slow mirrors: one that is stopped, and one whose connections pass nothing on. No commit waits for
such a mirror or sends it anything. It is dropped before the ring is full, and copied when it is
back.

By day this is counted. By night the rate of commits is measured, too.
"""
import contextlib
import pathlib
import time

import pytest

from drill import MIB
from interval import of_median
from relay import Relay
from teller import tellers, until  # noqa: F401
from test_owner import own_calls

SLOW = 2                                # index of the slow mirror
HOLDS, PAIRS, ROUND = 4, 5, 0.15        # rounds with and without it; seconds of each
GOES_ON = 0.9                           # fraction of the rate without it
SMALL = "ring=%d" % (16 * MIB)          # half of it is missed after some thousand transactions
LARGE = "ring=%d" % (1024 * MIB)        # half of it is more than what is missed in some rounds
WINDOW = 1000                           # transactions; mirror.c has a smaller limit
FILL = 1500                             # transactions after which the mirror is that far behind
COUNTED = 1000
# With these timeouts, a commit that waited for the slow mirror would outlast the drill, and silence
# drops no mirror.
PATIENT = ("connect-ms=600000", "commit-ms=600000", "mirror-ms=600000")


class Stopped:
    """Slows the mirror by SIGSTOP."""

    def __init__(self, daemon):
        self.address, self.hold, self.go = daemon.address, daemon.stop, daemon.cont

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.go()


class Held(Relay):
    """Passes nothing to the mirror or from it, until senders find the socket full."""


KINDS = {"stopped": Stopped, "held": Held}


@pytest.fixture
def slow(mirrors, tellers, request):
    """A desk that runs transactions with W = 2, and its third mirror, which can be slowed."""
    with contextlib.ExitStack() as stack:
        def start(kind, fabric, *options, wrap=()):
            daemons = mirrors(3, fabric)
            start.quick = daemons[:SLOW]
            daemons[SLOW] = mirror = stack.enter_context(KINDS[kind](daemons[SLOW]))
            desk = tellers.desk(wrap=wrap)
            desk.open("books", daemons, "create", "acks=2", *PATIENT, *options)
            desk.books()
            return desk, mirror
        yield start


@pytest.fixture
def traced(slow, tmp_path):
    """The same with system calls: traced.calls(count) returns those of the thread that ran `count`
    transactions."""
    trace = tmp_path / "trace"

    def start(kind, fabric):
        return slow(kind, fabric, LARGE, wrap=["strace", "-f", "-qq", "-s", "16", "-o", trace])

    start.calls = lambda count: own_calls(trace.read_text(errors="replace"), "run %d" % count)
    return start


def lag(desk):
    """Returns how many transactions the slow mirror is behind."""
    return desk.figures()["seq"] - desk.states()[SLOW][1]


def no_commit_waited(desk):
    """Checks that no commit waited for the slow mirror: it would be in doubt, or still wait."""
    figures = desk.figures()
    assert desk.page.in_doubt == desk.page.error == 0
    assert (figures["doubts"], figures["paced"], figures["dropped"]) == (0, 0, 0)


# --- what is counted ---

@pytest.mark.parametrize("kind", list(KINDS))
def test_a_commit_beside_a_slow_mirror_is_two_sends(traced, kind):
    """One send to each of the other two. Nothing is sent to the slow one once as much is in flight
    to it as mirror.c allows. It gets all transactions later."""
    desk, mirror = traced(kind, "tcp")
    mirror.hold()
    desk.run(FILL)
    assert lag(desk) > WINDOW
    desk.run(COUNTED)
    assert lag(desk) > WINDOW + COUNTED
    no_commit_waited(desk)
    sends = [call for call in traced.calls(COUNTED) if call.startswith("send")]
    to = {call.split(",")[0] for call in sends}
    assert (len(sends), len(to)) == (2 * COUNTED, 2), to
    mirror.go()
    desk.settle()
    assert desk.check() == desk.page.acked


def test_a_daemon_that_is_stopped_costs_nothing_over_shared_memory(traced):
    """The owner writes to all three mirrors itself: there are no system calls but the few that wake
    a thread, as with three running mirrors (test_owner.py)."""
    desk, mirror = traced("stopped", "shm")
    desk.run(FILL)
    mirror.hold()
    desk.run(COUNTED)
    no_commit_waited(desk)
    mirror.go()
    assert desk.check() == desk.page.acked
    calls = traced.calls(COUNTED)
    assert [call for call in calls if "futex" not in call] == []
    assert len(calls) < COUNTED // 10


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_slow_mirror_is_dropped_before_the_ring_is_full_and_copied_when_it_is_back(slow, kind):
    """A full ring would block commits (EBLOCKED). One commit waits for a moment, then the mirror is
    dropped and the others continue. When it answers again it is copied whole, because the ring no
    longer has what it missed."""
    desk, mirror = slow(kind, "tcp", SMALL)
    desk.run(100)
    # An owner that went on could outrun any mirror, until W = 2 makes it wait for the other two.
    mirror.hold()
    desk.ask("start")
    until(lambda: desk.figures()["dropped"] == 1, "a mirror that is dropped")
    assert desk.states()[SLOW][0] == "down"
    desk.page.advances(2000)
    figures = desk.figures()
    assert (figures["live"], figures["paced"]) == (2, 1)
    # An owner that continued could outrun it again if its processor is busy with others.
    desk.ask("halt")
    mirror.go()
    until(lambda: desk.states()[SLOW][0] == "live", "a whole copy on the mirror")
    assert desk.figures()["resyncs"] == 1 and desk.figures()["dropped"] == 1
    desk.run(100)
    assert desk.page.in_doubt == desk.page.error == 0
    desk.settle()
    assert desk.check() == desk.page.acked


# --- what is measured ---

def processor_time(pid):
    """Returns the seconds that all threads of a process have run."""
    return sum(int(path.read_text().split()[0])
               for path in pathlib.Path("/proc/%d/task" % pid).glob("*/schedstat")) / 1e9


def rates(desk):
    """Runs one round. Returns commits per second of time, and per second of processor time."""
    desk.ask("start")
    desk.page.advances(100)
    start, acked, used = time.monotonic(), desk.page.acked, processor_time(desk.pid)
    while time.monotonic() < start + ROUND:
        desk.page.advances(10)
    passed, count = time.monotonic() - start, desk.page.acked - acked
    used = processor_time(desk.pid) - used
    desk.ask("halt")
    return count / passed, count / used


def fall_behind(desk):
    """Runs transactions until the mirror lacks more than an owner has in flight to a mirror that
    does not answer."""
    desk.ask("start")
    until(lambda: lag(desk) > WINDOW, "a mirror that is behind")
    desk.ask("halt")


def goes_on(couples):
    """Returns whether the median of the couples' ratios may be GOES_ON, by time or by processor
    time: whether its confidence interval reaches that far."""
    ratios = [[a / b for a, b in zip(*couple)] for couple in couples]
    by_time, by_processor = (of_median(column) for column in zip(*ratios))
    print("rate with a slow mirror / without: %.2f to %.2f; by processor time: %.2f to %.2f" %
          (*by_time, *by_processor))
    return max(by_time[1], by_processor[1]) > GOES_ON


def beside(desk, mirror, other):
    """Measures both in turn: (rates, rates of the other), the other first in every second couple.
    Now and then the mirror gets what it has missed."""
    for _ in range(HOLDS):
        mirror.hold()
        fall_behind(desk)
        for i in range(PAIRS):
            first = rates(other) if i % 2 else None
            yield rates(desk), first or rates(other)
        mirror.go()
        desk.settle()


@pytest.mark.timing("the rate of commits beside a slow mirror")
@pytest.mark.parametrize("kind", list(KINDS))
def test_commits_go_on_at_their_rate_beside_a_slow_mirror(slow, tellers, kind):
    """Within 10 % of the rate of a store with only the other two mirrors: a commit waits for both
    of them, with the slow one as without it. (With a fast third mirror it waits for the two that
    are faster at the moment, which depends on the host.) Other load on the host may disturb a
    round, so the rate per second of time or of processor time is enough."""
    desk, mirror = slow(kind, "tcp", LARGE)
    pair = tellers.desk()
    pair.open("ledger", slow.quick, "create", "acks=2", LARGE)
    pair.books()
    assert goes_on(beside(desk, mirror, pair))
    no_commit_waited(desk)
    assert desk.check() == desk.page.acked


@pytest.mark.timing("the rate of commits beside a stopped daemon")
def test_commits_go_on_at_their_rate_over_shared_memory(slow):
    """The owner writes to all three mirrors itself, so the rate with three running mirrors is the
    reference."""
    desk, mirror = slow("stopped", "shm", LARGE)
    couples = []
    for _ in range(HOLDS * PAIRS):
        without = rates(desk)
        mirror.hold()
        couples.append((rates(desk), without))
        mirror.go()
    assert goes_on(couples)
    no_commit_waited(desk)
    assert desk.check() == desk.page.acked
