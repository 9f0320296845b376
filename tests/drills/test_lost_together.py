"""Most mirrors of a store lose their memory at once while its owner lives. The owner may not copy
them from the few that are left (I9), and status tells the operator what to do."""
import re

import pytest

from binding import Store
from drill import OK, SECONDS, fill, mirror_list, run_command, status_of
from teller import tellers, until  # noqa: F401

TOO_FEW = "the images that are seen are too few to make others anew (I9)"
START = "start the mirrors that do not answer"


@pytest.fixture
def store(mirrors, tellers):  # noqa: F811
    """Returns (its daemons, page and owner), with acknowledged transactions."""
    daemons, page = mirrors(3), tellers.page()
    desk = tellers.desk(page)
    desk.open("books", daemons, "create", "acks=2")
    desk.books()
    desk.settle()                       # with the publish, a mirror only needs what it missed
    desk.ask("start")
    until(lambda: page.acked > 50, "transactions", SECONDS)
    return daemons, page, desk


def lose(daemons):
    for each in daemons:
        each.lose_memory()
    for each in daemons:
        each.restart()


def advice(daemons, words):
    """Returns what status prints, once it contains these words."""
    return until(lambda: (said := run_command("status", "books", mirrors=daemons).out)
                 and words in said and said, words, SECONDS)


def test_status_prints_the_command_that_saves_what_is_left(store, tellers):  # noqa: F811
    """The store that the command creates has everything that was acknowledged."""
    daemons, page, desk = store
    lose(daemons[:2])
    advice(daemons, "by the command that perseas status prints")     # TROUBLE
    until(lambda: "memory-lost:" in desk.ask("events"), "an event", SECONDS)
    advice(daemons, "a commit has been in doubt")   # so no further commit follows
    state, seq = desk.states()[2]
    assert state == "live"
    said = advice(daemons, "--accept-state 1:%d " % seq)
    assert "2 of 3 mirrors lost their memory, and " + TOO_FEW in said
    assert START not in said
    desk.kill9()
    # TROUBLE and the event have named this command, for when the owner has ended.
    until(lambda: not status_of("books", daemons)["live"], "the end of the owner", SECONDS)
    later = run_command("status", "books", mirrors=daemons).out
    assert re.findall("^ +perseas recover .*$", later, re.M) == \
        re.findall("^ +perseas recover .*$", said, re.M) and "end the owner" not in later, later
    mirrors, options = re.search(r"^ +perseas recover books (\S+) (--.*)$", said, re.M).groups()
    done = run_command("recover", "books", *options.split(), mirrors=mirrors)
    assert done.status == OK, done
    assert tellers.verify("books.saved", daemons, page) >= page.acked


def test_the_command_that_status_prints_works_while_a_mirror_is_away(mirrors):
    """It makes the store on those mirrors only that answer."""
    daemons = mirrors(5)
    fill("books", daemons, {"accounts": b"contents" * 16}, acks=3)
    daemons[3].kill9()
    lose(daemons[:3])
    said = run_command("status", "books", mirrors=daemons).out
    assert "3 of 5 mirrors lost their memory, and " + TOO_FEW in said
    line, = re.findall("^ +perseas (recover .*)$", said, re.M)
    done = run_command(*line.split())
    assert done.status == OK, done
    with Store("books.saved", mirror_list(daemons[:3] + daemons[4:])) as store:
        store.map("accounts")
        assert store.read("accounts", 0, 128) == b"contents" * 16


def test_an_owner_that_has_the_only_copy_is_told(mirrors, tellers):  # noqa: F811
    """perseas status does not find the store any more, so the owner's program must be told what to
    do."""
    daemons, desk = mirrors(3), tellers.desk(tellers.page())
    desk.open("books", daemons, "create", "acks=2", "commit-ms=1000")
    desk.books()
    lose(daemons)
    until(lambda: [state for state, _ in desk.states()] == ["lost"] * 3, "lost mirrors", SECONDS)
    until(lambda: "memory-lost:" in desk.ask("events"), "an event", SECONDS)
    for step in ("begin", "range ledger 0 8", "store ledger 0 8 1"):
        desk.ask(*step.split())
    assert "this process has all that is left" in desk.refused("commit").text
    desk.kill9()


def test_mirrors_that_are_only_away_must_be_started(store):
    daemons, page, _ = store
    daemons[1].kill9()
    lose(daemons[:1])
    said = advice(daemons, TOO_FEW)
    assert START in said and "recover" not in said
    daemons[1].restart()
    acked = page.acked
    until(lambda: page.acked > acked, "a transaction", SECONDS)
    until(lambda: TOO_FEW not in run_command("status", "books", mirrors=daemons).out,
          "a report of the first one", SECONDS)
