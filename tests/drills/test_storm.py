"""kill -9 at random moments, repeatedly: of the owner, of mirrors, and of both at the same time,
while the owner commits. An oracle outside of the system knows what was acknowledged.

PERSEAS_STORM sets the number of faults for each fabric; PERSEAS_SEED repeats a storm. The report is
in build/results/storm.txt.
"""
import collections
import os

import pytest

from drill import BUILD, wait_ownerless
from teller import LOG, dice, random_moment, tellers, until  # noqa: F401

FAULTS = int(os.environ.get("PERSEAS_STORM", 40))
REPORT = BUILD / "results/storm.txt"
MIRRORS, ACKS = 3, 2
MOST_ACKED = 200                        # transactions between two faults
MOMENT, LONG_MOMENT = 0.002, 0.02       # seconds


class Storm:
    """A store, its owner, and a record of the faults."""

    def __init__(self, fabric, daemons, tellers, dice):
        self.fabric, self.daemons, self.tellers, self.dice = fabric, daemons, tellers, dice
        self.page = tellers.page()
        self.tried = collections.Counter()
        self.opened = self.lost = self.half = 0
        self.kinds = {"owner": self.kill_owner, "one mirror": self.kill_one,
                      "two mirrors": self.kill_two, "one mirror, memory lost": self.lose_one,
                      "owner and one mirror": self.kill_pair,
                      "two mirrors, then the rest": self.kill_last,
                      "owner and all mirrors": self.kill_all}
        self.start_owner("create", LOG)

    def start_owner(self, *options):
        self.desk = self.tellers.desk(self.page)
        self.desk.open("books", self.daemons, *options)
        self.desk.books()
        self.desk.ask("start")
        self.opened += 1

    def advances(self, count):
        goal = self.page.acked + count
        until(lambda: self.page.acked >= goal or self.page.error, "%d transactions" % count)
        assert self.page.acked >= goal, "the owner's error %d" % self.page.error

    def verify(self):
        """Compares all bytes in another process."""
        try:
            self.tellers.verify("books", self.daemons, self.page)
        except AssertionError as error:
            self.lost += "were acknowledged" in str(error)
            self.half += "transactions make it" in str(error)
            raise

    def go_on(self):
        """Checks the store after an owner's end, and starts the next owner."""
        self.verify()
        wait_ownerless("books", self.daemons)
        self.start_owner()

    def kill_owner(self):
        self.desk.kill9()
        self.go_on()

    def kill_mirrors(self, count):
        """Kills mirrors while the owner commits, or waits for them if too few are left."""
        killed = self.dice.sample(self.daemons, count)
        for daemon in killed:
            daemon.kill9()
        if MIRRORS - count >= ACKS:
            self.advances(self.dice.randrange(1, MOST_ACKED))
        for daemon in killed:
            daemon.restart()
        until(lambda: self.desk.all_live(MIRRORS), "live mirrors")

    def kill_one(self):
        self.kill_mirrors(1)

    def kill_two(self):
        self.kill_mirrors(2)

    def lose_one(self):
        """A mirror loses its memory, as when its host restarts, and is copied again while the owner
        commits."""
        lost = self.dice.choice(self.daemons)
        lost.lose_memory()
        # Otherwise all could seem live below, and the next fault take a second mirror's memory.
        until(lambda: not self.desk.all_live(MIRRORS), "the owner's notice of it")
        self.advances(self.dice.randrange(1, MOST_ACKED))
        lost.restart()
        until(lambda: self.desk.all_live(MIRRORS), "live mirrors")

    def kill_at_once(self, daemons):
        for process in self.dice.sample([self.desk, *daemons], len(daemons) + 1):
            process.kill9()

    def kill_pair(self):
        """Kills the owner and a mirror. The other two have everything; the third comes back under
        the next owner."""
        killed = self.dice.choice(self.daemons)
        self.kill_at_once([killed])
        self.verify()
        self.start_owner("takeover")
        killed.restart()
        until(lambda: self.desk.all_live(MIRRORS), "live mirrors")

    def kill_last(self):
        """What only the third mirror has was not acknowledged. It dies with the owner, and the two
        mirrors that were gone before have everything that was."""
        *gone, last = self.dice.sample(self.daemons, MIRRORS)
        for daemon in gone:
            daemon.kill9()
        random_moment(self.dice, LONG_MOMENT)
        self.kill_at_once([last])
        for daemon in gone:
            daemon.restart()
        self.verify()
        self.start_owner("takeover")
        last.restart()
        until(lambda: self.desk.all_live(MIRRORS), "live mirrors")

    def kill_all(self):
        self.kill_at_once(self.daemons)
        for daemon in self.daemons:
            daemon.restart()
        self.go_on()

    def fault(self):
        kind = self.dice.choice(list(self.kinds))
        self.advances(self.dice.randrange(1, MOST_ACKED))
        random_moment(self.dice, MOMENT)
        self.tried[kind] += 1
        self.kinds[kind]()

    def end(self):
        self.advances(1)
        self.page.tell_to_stop()
        k = int(self.desk.ask("halt"))
        self.desk.ask("close")
        assert k == self.page.acked
        self.verify()

    def told(self):
        """Returns a part of the report."""
        rows = [("faults, kill -9", self.tried.total())]
        rows += [("  " + kind, self.tried[kind]) for kind in self.kinds]
        rows += [("owners", self.opened), ("transactions acknowledged", self.page.acked),
                 ("lost", self.lost), ("half applied", self.half),
                 ("commits in doubt", self.page.in_doubt),
                 ("longest pause of a commit, ms", "%.0f" % (self.page.slowest / 1e6))]
        return "".join("%-34s %s\n" % row for row in [
            ("fabric", self.fabric), ("PERSEAS_SEED", self.dice.began_with), *rows])


@pytest.fixture(scope="module")
def report():
    """Collects parts that are written and printed after all storms."""
    parts = []
    yield parts
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text("\n".join(parts))


@pytest.mark.parametrize("fabric", ["tcp", "shm"])
def test_nothing_acknowledged_is_lost_in_a_storm(mirrors, tellers, dice, perseas, report, fabric):
    """Many faults on one store; after each owner's end all bytes are compared."""
    daemons = mirrors(MIRRORS, fabric)
    storm = Storm(fabric, daemons, tellers, dice)
    try:
        for _ in range(FAULTS):
            storm.fault()
        storm.end()
    finally:
        report.append(storm.told())
        print(storm.told())
    for verb in "recover", "verify":
        assert perseas(verb, "books", mirrors=daemons).status == 0
    assert storm.tried.total() == FAULTS and storm.lost == storm.half == 0
