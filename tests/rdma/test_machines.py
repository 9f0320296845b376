"""Machines that lose power, stand still, or lose their cable, under owners that commit over
soft-RoCE; on the host, with two machines under QEMU."""
import hashlib
import os
import pathlib
import random
import struct
import sys

import pytest

from machine import Pair
from qemu import TREE, wait_for

BUILD = pathlib.Path(os.environ.get("PERSEAS_BUILD", TREE / "build"))
sys.path.insert(0, str(TREE / "tests/drills"))
from teller import FENCED, Page, seed_of  # noqa: E402

TELLER, DAEMON, COMMAND = BUILD / "tests/drills/teller", BUILD / "perseasd", BUILD / "perseas"
SECONDS = 120
LOG = "log=262144"
LINK = "connect-ms=3000"                # the library's own: who stands still does not answer
PAGE = "/tmp/page"
FIRST_PORT = 7170


@pytest.fixture
def pair():
    with Pair() as machines:
        yield machines


@pytest.fixture
def dice(request):
    seed = seed_of(request.node)
    print("PERSEAS_SEED=%d" % seed)
    return random.Random(seed)


class Mirror:
    """A perseasd in a machine; nothing else listens there, so it picks its port."""

    def __init__(self, machine, number):
        self.machine, self.memory = machine, "/dev/shm/mirror%d" % number
        self.address = "rdma://%s:%d" % (machine.address, FIRST_PORT + number)
        self.process = machine.start(DAEMON, "--listen", self.address[len("rdma://"):],
                                     "--plaintext", "anywhere", "--memory-dir", self.memory)
        self.process.wait_for_text("listening at")


def mirrors_of(machine, count, first=0):
    return [Mirror(machine, first + i) for i in range(count)]


def list_of(mirrors):
    return ",".join(mirror.address for mirror in mirrors)


class Owner:
    """teller run, in a machine, and the page that says what it was promised."""

    def __init__(self, machine, mirrors, *options, page=PAGE):
        self.machine, self.page = machine, page
        self.process = machine.start(TELLER, "run", "books", list_of(mirrors), page, LINK,
                                     *options)

    def read(self, name):
        at = 8 * Page.FIELDS.index(name)
        try:
            content = self.machine.read_file(self.page)
        except OSError:
            return 0                    # it has not been made yet
        return struct.unpack_from("<q", content, at)[0] if len(content) >= at + 8 else 0

    def advances(self, count, seconds=SECONDS):
        """Until so many more are acknowledged; how many that are by then."""
        goal = self.read("acked") + count
        wait_for(lambda: self.read("acked") >= goal or not self.process.running(), seconds,
                 "%d transactions" % count)
        assert self.process.running(), self.process.text
        return self.read("acked")

    def halt(self):
        """Has it end in an orderly way; how many were acknowledged."""
        tell = "import struct; f = open(%r, 'r+b'); f.seek(%d); f.write(struct.pack('<q', 1))" % (
            self.page, 8 * Page.FIELDS.index("stop"))
        self.machine.run("/usr/bin/python3", "-c", tell).check()
        self.process.check(SECONDS)
        return self.read("acked")


def verify(machine, mirrors, acked, *options):
    """Takes the store over and compares every byte; how many transactions are there: `acked` or
    more."""
    make = "import struct; open('/tmp/verified', 'wb').write(struct.pack('<qq', %d, %d) + bytes(" \
           "4080))" % (acked, 1 << 62)
    machine.run("/usr/bin/python3", "-c", make).check()
    done = machine.run(TELLER, "verify", "books", list_of(mirrors), "/tmp/verified", *options,
                       seconds=SECONDS)
    return int(done.check().split()[0])


def pieces(mirrors):
    """What all mirrors hold, byte by byte."""
    machine = mirrors[0].machine
    found = machine.run("sh", "-c", "find %s -type f | sort | xargs sha256sum" %
                        " ".join(mirror.memory for mirror in mirrors)).check()
    assert found.count("segment") >= len(mirrors)
    return hashlib.sha256(found.encode()).hexdigest(), found


@pytest.mark.parametrize("cable", ["in", "out"])
def test_an_owner_that_stood_still_changes_nothing_when_it_goes_on(pair, dice, cable):
    """Its machine is paused while it commits, with its cable out with writes that wait to be sent
    again. A successor takes over and ends; then it goes on."""
    here, zombies = pair
    mirrors = mirrors_of(here, 3)
    old = Owner(zombies, mirrors, "create", LOG, "acks=2")
    old.advances(dice.randrange(20, 200))
    if cable == "out":
        zombies.link(False)
    zombies.pause()
    new = Owner(here, mirrors, "takeover", LOG)
    new.advances(50)
    k = new.halt()
    before = pieces(mirrors)
    if cable == "out":
        zombies.link(True)
    zombies.resume()
    assert old.process.wait(SECONDS) == FENCED, old.process.text
    assert "PERSEAS_EFENCED" in old.process.text
    assert old.read("acked") <= new.read("found") <= old.read("attempted")
    assert pieces(mirrors) == before
    assert verify(here, mirrors, k) == k


def test_an_owner_whose_machine_dies_is_followed_on_another(pair, dice):
    """The power fails while it commits; nothing that it was promised is missing."""
    here, there = pair
    mirrors = mirrors_of(here, 3)
    owner = Owner(there, mirrors, "create", LOG, "acks=2")
    acked = owner.advances(dice.randrange(20, 200))
    there.kill()
    # The mirrors do not know that it is dead: taking over is an operator's word.
    k = verify(here, mirrors, acked)
    assert k >= acked
    assert here.run(COMMAND, "verify", "books", "--mirrors", list_of(mirrors)).check()


def test_a_mirror_whose_machine_dies_is_done_without(pair, dice):
    """One of three is there, two and the owner here: commits go on, within its heartbeat's and its
    retries' time, and an idle owner notices too."""
    here, there = pair
    mirrors = mirrors_of(there, 1) + mirrors_of(here, 2, first=1)
    owner = Owner(here, mirrors, "create", LOG, "acks=2")
    owner.advances(dice.randrange(20, 200))
    there.kill()
    owner.advances(200)
    acked = owner.halt()
    assert owner.read("in_doubt") == owner.read("error") == 0
    assert verify(here, mirrors, acked) == acked


def test_the_machine_with_the_only_mirror_stands_still_for_a_while(pair):
    """The commit under way is in doubt, and durable when the machine goes on."""
    here, there = pair
    mirrors = mirrors_of(there, 1)
    owner = Owner(here, mirrors, "create", LOG, "commit-ms=2000")
    owner.advances(50)
    there.pause()
    wait_for(lambda: owner.read("in_doubt") > 0, SECONDS, "a commit in doubt")
    stood = owner.read("acked")
    there.resume()
    owner.advances(50)
    acked = owner.halt()
    assert acked > stood
    assert verify(here, mirrors, acked) == acked
