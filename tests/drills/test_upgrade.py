"""Daemons are replaced by another version while owners commit."""
import os
import re
import shutil
import subprocess

import pytest

from binding import CREATE, PerseasError, Store
from cluster import die_with_parent
from drill import BUILD, OK, PARTLY, TOP, run_command
from teller import LOG, tellers, until  # noqa: F401
from test_service import service  # noqa: F401

FABRICS = ["tcp", "shm", "tls"]
HERE = (TOP / "VERSION").read_text().strip()
NEXT = HERE + "+next"
THIS = BUILD / "perseasd"
PROTOCOL = re.compile(r"(PS_PROTOCOL_(?:VERSION|LEAST) = )(\d+)")
LATER = 3                               # protocol versions between the two
PATIENT = "commit-ms=20000"              # longer than any restart


def built(tree, binary):
    """Builds the daemon of these sources. Returns it as a file that stays."""
    # The settings of the make that runs these drills are not for this one.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    subprocess.run(["make", "-s", "-j2", "BUILD=build", "CFLAGS=-O0", "build/perseasd"], cwd=tree,
                   check=True, stdout=subprocess.DEVNULL, timeout=300,
                   preexec_fn=die_with_parent, env=environment)
    return shutil.copy2(tree / "build/perseasd", binary)


@pytest.fixture(scope="session")
def releases(tmp_path_factory):
    """Two daemons built from these sources as later versions: the next release, and one that has no
    protocol version in common with this one."""
    folder = tmp_path_factory.mktemp("releases")
    tree = folder / "tree"
    tree.mkdir()
    for part in ("deploy", "proto", "server"):
        shutil.copytree(TOP / part, tree / part)
    shutil.copy2(TOP / "Makefile", tree)
    (tree / "VERSION").write_text(NEXT + "\n")
    released = {"next": built(tree, folder / "next")}
    header = tree / "proto/data/frame.h"
    text, count = PROTOCOL.subn(lambda m: m[1] + str(int(m[2]) + LATER), header.read_text())
    assert count == 2
    header.write_text(text)
    released["protocol"] = built(tree, folder / "protocol")
    return released


def replace(daemon, program):
    """Replaces a daemon as the operator's guide says: ends it, installs, starts."""
    assert daemon.terminate() == 0
    daemon.mirror.program = program
    daemon.mirror.start()


def version_of(address):
    """Returns the version that `perseas ls` shows."""
    done = run_command("ls", mirrors=address)
    assert done.status == OK, done
    return re.search(r": perseasd (\S+), ", done.out)[1]


@pytest.mark.parametrize("fabric", FABRICS)
def test_the_only_mirror_is_upgraded_and_downgraded_under_its_owner(mirrors, tellers, releases,
                                                                    tmp_path, fabric):
    """The owner commits all the time, and waits while there is no daemon. No commit is in doubt,
    and everything acknowledged by either version is there."""
    daemon, = mirrors(1, fabric, ("--spill-dir", str(tmp_path / "spill")))
    owner = tellers.run("books", [daemon], "create", LOG, PATIENT)
    owner.advances(100)
    for program, version in ((releases["next"], NEXT), (THIS, HERE)):
        replace(daemon, program)
        owner.advances(100)
        assert version_of(daemon.address) == version
    owner.kill9()
    acked = owner.page.acked
    assert owner.page.in_doubt == 0
    assert acked <= tellers.verify("books", [daemon], owner.page, "takeover") <= acked + 1


@pytest.mark.parametrize("fabric", ["tcp", "shm"])
def test_a_service_is_upgraded_on_the_sockets_that_stay(service, tellers, releases, fabric):
    """The service manager keeps the sockets open, so no client is refused in the meantime."""
    it = service()
    it.start()
    owner = tellers.run("books", it.addresses[fabric], "create", LOG, PATIENT)
    owner.advances(100)
    for it.program, version in ((releases["next"], NEXT), (THIS, HERE)):
        it.stop()
        it.start()
        owner.advances(100)
        assert version_of(it.addresses[fabric]) == version
    owner.kill9()
    acked = owner.page.acked
    assert owner.page.in_doubt == 0
    verified = tellers.verify("books", it.addresses[fabric], owner.page, "takeover")
    assert acked <= verified <= acked + 1


@pytest.mark.parametrize("fabric", FABRICS)
def test_three_mirrors_are_upgraded_one_after_the_other(mirrors, tellers, releases, fabric):
    """W = 2, and back again: the owner commits all the time, and the next mirror follows when the
    previous one is live. No commit is in doubt or times out, and all mirrors are equal."""
    daemons = mirrors(3, fabric)
    desk = tellers.desk()
    desk.open("books", daemons, "create", "acks=2")
    desk.books()
    desk.ask("start")
    for program, version in ((releases["next"], NEXT), (THIS, HERE)):
        for daemon in daemons:
            desk.page.advances(100)
            replace(daemon, program)
            until(lambda: desk.all_live(3), "three live mirrors")
            assert version_of(daemon.address) == version
    desk.page.advances(100)
    k = int(desk.ask("halt"))
    figures = desk.figures()
    assert (figures["in_doubt"], figures["doubts"], figures["mended_whole"]) == (0, 0, 0)
    print("%d resyncs sent %d bytes" % (figures["resyncs"], figures["resync_bytes"]))
    assert desk.check() == k == desk.page.acked
    desk.settle()
    desk.ask("close")
    assert tellers.verify("books", daemons, desk.page) == k
    assert run_command("verify", "books", mirrors=daemons).status == OK


@pytest.mark.parametrize("fabric", FABRICS)
def test_a_mirror_with_another_protocol_is_done_without_and_named(mirrors, tellers, releases,
                                                                  fabric):
    """One of three mirrors is replaced by a daemon that the owner does not understand. Commits
    continue with W = 2, the owner reports both versions and what to do, and uses the mirror again
    when that is done. An open that finds no other mirror reports the same."""
    most, least = (int(each[2]) for each in PROTOCOL.finditer(
        (TOP / "proto/data/frame.h").read_text()))
    later = "versions %d to %d" % (least + LATER, most + LATER)
    said = "speaks %s of the protocol, this library versions %d to %d; upgrade the older of the " \
           "two" % (later, least, most)
    daemons = mirrors(3, fabric)
    desk = tellers.desk()
    desk.open("books", daemons, "create", "acks=2")
    desk.books()
    desk.ask("start")
    desk.page.advances(100)
    replace(daemons[0], releases["protocol"])
    # The owner's trouble, which the other two report; and the command's own, on standard error.
    until(lambda: said in run_command("status", "books", mirrors=daemons[1:]).out,
          "the owner's word about it")
    desk.page.advances(100)
    assert [state for state, _ in desk.states()] == ["down", "live", "live"]
    told = run_command("status", "books", mirrors=daemons)
    assert told.status == PARTLY and "another version" in told.out and said in told.err, told
    assert "speaks versions %d to %d of the protocol, this daemon %s: upgrade" % (
        least, most, later) in daemons[0].log()
    with pytest.raises(PerseasError) as caught:
        Store("books", daemons[0].address, flags=CREATE)
    assert caught.value.name == "PERSEAS_EVERSION" and said in str(caught.value)
    replace(daemons[0], THIS)
    until(lambda: desk.all_live(3), "three live mirrors")
    desk.page.advances(100)
    k = int(desk.ask("halt"))
    figures = desk.figures()
    assert (figures["in_doubt"], figures["doubts"]) == (0, 0)
    assert desk.check() == k == desk.page.acked
    desk.settle()
    desk.ask("close")
    assert tellers.verify("books", daemons, desk.page) == k
