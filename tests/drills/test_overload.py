"""An owner commits more than the link of one mirror carries while that mirror is copied whole. Two
copies break, and commits wait for the third, which completes.

The link's rate does not depend on a clock: for each transaction it passes CARRIED bytes, fewer than
the transaction has, and DRAINED more for each commit that waited. So a copy that no commit waits
for falls behind by count, however fast the machine is.
"""
import contextlib

import pytest

from drill import status_of
from relay import Relay
from teller import tellers, until  # noqa: F401

SLOW, ACKS = 2, 2                       # index of the slow mirror; W
IMAGE = 4 << 20  # a copy of it takes more transactions than the ring has room for
RING = 1 << 20                          # a mirror that lags by half of it is dropped
LENGTH = 8 << 10                        # of a transaction, which also sends its before-image
CARRIED = 12 << 10
DRAINED = 512 << 10                     # as much as a mirror may lag
UNPACED = 2                             # copies in a row that break before commits wait
NEVER = (1 << 32) - 1


class Overload:
    """A desk with a segment on three mirrors. The third one loses its memory, and its link is
    slow."""

    def __init__(self, desk, daemons, link):
        self.desk, self.daemons, self.link = desk, daemons, link
        self.paced = self.count = 0

    def begin(self, pace_ms):
        self.desk.open("books", [*self.daemons[:SLOW], self.link], "create", "acks=%d" % ACKS,
                       "ring=%d" % RING, "pace-ms=%d" % pace_ms)
        self.desk.ask("map", "image", IMAGE)
        self.desk.ask("publish")
        self.desk.settle()
        self.daemons[SLOW].lose_memory()
        self.link.meter()
        self.daemons[SLOW].restart()

    def state(self):
        return self.desk.states()[SLOW][0]

    def is_copied(self):
        return self.state() == "resyncing"

    def commit(self):
        """Runs one transaction, for which the link passes its share."""
        self.count += 1
        self.desk.transaction("image", self.count * LENGTH % IMAGE, LENGTH, self.count % 251)
        waited, self.paced = self.paced, self.desk.figures()["paced"]
        self.link.allow(CARRIED + DRAINED * (self.paced - waited))
        until(lambda: not self.link.allow() or not self.is_copied(), "bytes that the mirror reads")

    def copy(self):
        """Runs one copy from beginning to end. Returns what a mirror reported of earlier copies
        when commits waited for this one, or None if none waited."""
        until(self.is_copied, "a copy")
        before, told = self.paced, None
        while self.is_copied():
            self.commit()
            if self.paced > before and not told:
                until(lambda: self.broken() or not self.is_copied(), "commits that waited")
                told = self.broken()
        return told

    def broken(self):
        """Returns the owner's report to its mirrors about copies that broke, if commits wait for
        the next."""
        owner = status_of("books", self.daemons[:SLOW])["owner"] or {}
        reports = [report["broken_copies"] for report in owner.get("mirrors", ())]
        return next((each for each in reports if each and each["commits_waited"]), None)


@pytest.fixture
def overload(mirrors, tellers):  # noqa: F811
    with contextlib.ExitStack() as stack:
        def start(pace_ms):
            daemons = mirrors(SLOW + 1)
            overload = Overload(tellers.desk(), daemons, stack.enter_context(Relay(daemons[SLOW])))
            overload.begin(pace_ms)
            return overload

        yield start


def test_a_copy_ends_although_the_load_is_above_the_link(overload):
    over = overload(1)
    for _ in range(UNPACED):
        over.copy()
        assert over.state() != "live"
    told = over.copy()
    assert over.state() == "live"
    assert (told["count"], over.desk.figures()["dropped"]) == (UNPACED, UNPACED)
    assert told["bytes"] > 0 and told["rate_needed"] > 0
    assert over.desk.figures()["resyncs"] == 1
    over.link.go()
    over.desk.settle()


def test_no_copy_ends_if_no_commit_may_wait(overload):
    """With the same link and transactions, which shows that the waits completed the third copy."""
    over = overload(NEVER)
    for tried in range(1, UNPACED + 2):
        assert over.copy() is None
        assert over.state() != "live"
        assert over.desk.figures()["dropped"] == tried
    assert over.paced == over.desk.figures()["resyncs"] == 0
