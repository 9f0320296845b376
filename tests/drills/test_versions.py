"""A cluster goes from one protocol version to the next, and back: each mirror and the owner
separately, while transactions run.

The previous version is spoken by the present daemon with --protocol, and by owners with
PERSEAS_PROTOCOL. If PERSEAS_BEFORE names a folder with the binaries of a release that speaks it
(perseasd, and tests/drills/teller), these are used instead.
"""
import os
import pathlib
import re

import pytest

import teller
import wire
from binding import CREATE, PerseasError, Store
from drill import BUILD, FAILURE, OK, TOP, run_command
from teller import tellers, until  # noqa: F401

FABRICS = ["tcp", "shm", "tls"]
LIMIT = "PERSEAS_PROTOCOL"
HEADER = (TOP / "proto/data/frame.h").read_text()
NOW, BEFORE = (int(re.search(r"PS_PROTOCOL_%s = (\d+)" % name, HEADER)[1])
               for name in ("VERSION", "LEAST"))
RELEASE = os.environ.get("PERSEAS_BEFORE")
# Longer than any pause of a busy machine, because no drill here is about time.
PATIENT = ("connect-ms=60000", "commit-ms=60000", "open-ms=120000")


class Ages:
    """Daemons and owners of either version."""

    def __init__(self, tellers, monkeypatch):
        self.tellers, self.patch = tellers, monkeypatch
        self.present = teller.TELLER

    def daemon(self, daemon, old):
        """Ends the daemon, and starts the other version, as an operator does."""
        assert daemon.terminate() == 0
        options = [each for each in daemon.mirror.options if not each.startswith("--protocol")]
        daemon.mirror.program = (pathlib.Path(RELEASE) if RELEASE and old else BUILD) / "perseasd"
        daemon.mirror.options = options + (["--protocol=%d" % BEFORE]
                                           if old and not RELEASE else [])
        daemon.mirror.start()

    def desk(self, page, old):
        """Returns an owner that has not opened a store yet."""
        if old and not RELEASE:
            self.patch.setenv(LIMIT, str(BEFORE))
        self.patch.setattr(teller, "TELLER", pathlib.Path(RELEASE) / "tests/drills/teller"
                           if old and RELEASE else self.present)
        desk = self.tellers.desk(page)
        self.patch.delenv(LIMIT, raising=False)
        self.patch.setattr(teller, "TELLER", self.present)
        return desk


@pytest.fixture
def ages(tellers, monkeypatch):  # noqa: F811
    return Ages(tellers, monkeypatch)


def at_work(desk, daemons, *options):
    desk.open("books", daemons, "acks=2", *PATIENT, *options)
    desk.books()
    until(lambda: desk.all_live(3), "three live mirrors")
    desk.ask("start")
    desk.page.advances(100)
    return desk


def go_home(desk):
    """Ends the owner, and checks what was acknowledged to it."""
    k = int(desk.ask("halt"))
    figures = desk.figures()
    assert (figures["in_doubt"], figures["doubts"], figures["mended_whole"]) == (0, 0, 0)
    assert desk.check() == k == desk.page.acked
    desk.settle()
    desk.ask("close")
    desk.exit()
    return k


@pytest.mark.parametrize("fabric", FABRICS)
def test_a_cluster_is_upgraded_and_downgraded_one_by_one(mirrors, ages, fabric):
    """One mirror, then the owner, then the others, and back in the same order: every pair of
    versions meets, and an owner works with mirrors of both. No commit is in doubt, no mirror is
    copied whole, and every owner finds what was acknowledged to the previous one."""
    daemons = mirrors(3, fabric)
    for daemon in daemons:
        ages.daemon(daemon, True)
    page = ages.tellers.page()
    desk = at_work(ages.desk(page, True), daemons, "create")
    for old in (False, True):
        ages.daemon(daemons[0], old)
        until(lambda: desk.all_live(3), "three live mirrors")
        page.advances(100)
        k = go_home(desk)
        desk = at_work(ages.desk(page, old), daemons)
        assert page.acked > k
        for daemon in daemons[1:]:
            ages.daemon(daemon, old)
            until(lambda: desk.all_live(3), "three live mirrors")
            page.advances(100)
    k = go_home(desk)
    assert ages.tellers.verify("books", daemons, page) == k
    assert run_command("verify", "books", mirrors=daemons).status == OK


@pytest.mark.parametrize("old", [False, True])
def test_the_command_speaks_with_both(mirrors, ages, monkeypatch, old):
    """Every request of the previous version is answered, whichever side is older."""
    daemon, = mirrors(1)
    if old:
        ages.daemon(daemon, True)
    else:
        monkeypatch.setenv(LIMIT, str(BEFORE))
    with Store("bank", daemon.address, flags=CREATE) as store:
        store.map("data", 4096)
        store.publish()
        store.write("data", 0, b"here")
        for words in (("status", "bank"), ("ls",), ("verify", "bank"), ("roster", "bank")):
            done = run_command(*words, mirrors=daemon.address)
            assert done.status == OK, done
    assert run_command("history", "bank", "--from", daemon.address).status == OK
    assert run_command("drop", "bank", daemon.address, "--yes").status == OK


def test_only_a_version_that_there_is_can_be_asked_for(mirrors, monkeypatch):
    """Any other version is refused with a sentence that lists the possible ones."""
    daemon, = mirrors(1)
    for wrong in (str(NOW + 1), str(BEFORE - 1), "", "seven"):
        monkeypatch.setenv(LIMIT, wrong)
        done = run_command("ls", mirrors=daemon.address)
        assert done.status == FAILURE and "versions %d to %d" % (BEFORE, NOW) in done.err, done
        with pytest.raises(PerseasError) as caught:
            Store("bank", daemon.address, flags=CREATE)
        assert caught.value.name == "PERSEAS_EINVAL"


def greet(daemon, version):
    """Returns the answer to that hello, and whether the connection continues."""
    peer = wire.connect(daemon.address)
    peer.sendall(wire.control_hello(version))
    answer = int.from_bytes(wire.receive(peer, 8)[4:], "little")
    # A heartbeat without a claim gets no answer, so a list is requested after it.
    try:
        peer.sendall(wire.message(b"") + wire.message(wire.field(1, b"") + wire.field(30, 1)))
        goes_on = bool(wire.receive(peer, 4))
    except (EOFError, OSError):
        goes_on = False
    peer.close()
    return answer, goes_on


def test_a_greeting_is_answered_with_the_highest_common_version(mirrors, ages):
    """By a daemon that speaks both versions, and by one limited to the previous version."""
    def both(least, most):
        return most | least << 16

    daemon, = mirrors(1)
    for hello, answer in ((BEFORE, BEFORE), (NOW, NOW), (both(BEFORE, NOW), NOW),
                          (both(NOW, NOW + 1), NOW), (both(1, BEFORE), BEFORE)):
        assert greet(daemon, hello) == (answer, True), hello
    for hello, answer in ((NOW + 1, NOW), (BEFORE - 1, NOW), (0, NOW),
                          (both(NOW + 1, NOW + 2), both(BEFORE, NOW)),
                          (both(1, 2), both(BEFORE, NOW)), (both(NOW, BEFORE), both(BEFORE, NOW))):
        assert greet(daemon, hello) == (answer, False), hello
    ages.daemon(daemon, True)
    for hello in (BEFORE, both(BEFORE, NOW)):
        assert greet(daemon, hello) == (BEFORE, True), hello
    assert greet(daemon, NOW) == (BEFORE, False)
