"""Recovery on demand: owners are killed repeatedly, a third of the time while memory is still being
fetched; and the first commit of the next owner does not wait for the rest.

PERSEAS_DEMAND_KILLS sets the number of kills for each fabric; PERSEAS_SEED repeats their choices.
"""
import os
import subprocess

import pytest

from drill import mirror_list, rounds
from teller import LOG, SECONDS, Process, dice, random_moment, tellers, until  # noqa: F401

KILLS = int(os.environ.get("PERSEAS_DEMAND_KILLS", rounds(45)))
CHECKS = 9      # kills before an owner is left alone until all bytes are compared
MIB = 24
SLOWLY = "fetch-rate=%d" % (MIB << 21)  # all of it takes half a second
SIZES = (16, 128)
GRANULE = 64 << 10                      # bytes that are fetched at a time
TOUCHED = 9     # words that a transaction of large.c changes, in as many granules at most


class Large(Process):
    """teller large; `told` has the line that it printed."""

    def __init__(self, page, daemons, *options):
        super().__init__(page, ["large", "large", mirror_list(daemons), page.path, *options],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)

    def begins(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the owner ended: " + self.process.stderr.read())
        self.told = {name: int(value) for name, value in
                     (word.split("=") for word in line.split())}
        return self.told

    def ends(self):
        """Waits until it has ended with success."""
        status = self.process.wait(SECONDS)
        assert status == 0, self.process.stderr.read()


@pytest.fixture
def large(tellers):  # noqa: F811
    """Starts owners of one segment, each after the previous one has ended."""
    page = tellers.page()

    def start(daemons, *options):
        return tellers._keep(Large(page, daemons, *options))

    return start


def kill_amid(owner, number, dice):  # noqa: F811
    """Kills the owner, in turn while a random part of the memory is missing, at a random moment,
    and when all of it has arrived. The first owners fetch slowly, as from far away. Returns whether
    memory was missing when the last transaction ended."""
    rest = (owner.told["missing"] * dice.random(), float("inf"), 0)[number % 3]
    until(lambda: owner.page.missing <= rest or not owner.running(), "memory")
    if number % 3:
        random_moment(dice, 0.2)
    assert owner.running()
    owner.kill9()
    return owner.page.missing > 0


def test_owners_that_recover_on_demand_are_killed(mirrors, large, dice, fabric):  # noqa: F811
    """Repeats kill -9. Each owner finds every acknowledged transaction. All bytes are compared now
    and then, and at the end by an owner that reads its memory first."""
    daemons = mirrors(2, fabric)
    large(daemons, "create", LOG, "mib=%d" % MIB, "transactions=50").ends()
    early = checked = 0

    def begins(*options):
        owner = large(daemons, "demand", "takeover", *options)
        told = owner.begins()
        assert told["acked"] <= told["found"] <= told["acked"] + 1
        return owner

    for number in range(KILLS):
        if number % CHECKS == CHECKS - 1:
            begins("transactions=20", "check").ends()
            checked += 1
        early += kill_amid(begins(*([SLOWLY] if number % 3 == 0 else [])), number, dice)
    owner = large(daemons, "takeover", "transactions=1", "check")
    assert owner.begins()["missing"] == 0
    owner.ends()
    print("%s: %d kills, %d of them while memory was missing; all bytes were compared %d times, %d "
          "transactions were acknowledged, and none was lost" %
          (fabric, KILLS, early, checked + 1, owner.page.acked))
    assert early > 0


@pytest.mark.parametrize("mib", SIZES)
def test_the_first_commit_does_not_wait_for_the_memory(mirrors, large, fabric, mib):
    """An owner is killed. The next one commits when it has fetched only what its transaction
    touches, whatever the size of the store. The rest would be fetched at a byte a second."""
    daemons = mirrors(1, fabric)
    large(daemons, "create", LOG, "mib=%d" % mib, "transactions=20").ends()
    for _ in range(3):
        owner = large(daemons, "takeover", "demand", "fetch-rate=1")
        here = (mib << 20) - owner.begins()["missing"]
        owner.kill9()
        assert 0 < here <= (TOUCHED + 1) * GRANULE
