"""Owners whose store another owner has taken over, and that do not know it yet."""
import pytest

from drill import WITH_TLS, rounds
from teller import FENCED, LOG, dice, pieces, tellers, until  # noqa: F401

ROUNDS = {"tcp": 12, "tls": 6, "shm": 30, "rdma": 3}
CONTESTS = rounds(4)


def fence_a_stopped_owner(tellers, dice, daemons, page, *options):
    """Stops an owner with SIGSTOP while it commits, has a successor commit, and resumes it. The
    successor's page is the next owner's."""
    old = tellers.run("books", daemons, "create", LOG, *options, page=page)
    old.advances(dice.randrange(1, 300))
    old.stop()
    successor = tellers.desk()
    successor.open("books", daemons, "takeover", *options)
    k = successor.books()
    assert page.acked <= successor.check() <= page.attempted
    successor.run(50)
    successor.settle()
    before = pieces(daemons)
    old.cont()
    status, said = old.wait()
    assert status == FENCED and "PERSEAS_EFENCED" in said
    # Nothing was acknowledged to it after it resumed that the successor does not have.
    assert page.acked <= k
    changed = [path for path, content in pieces(daemons).items() if before.get(path) != content]
    assert changed == []
    assert successor.run(50) == successor.check() == k + 100
    assert successor.figures()["live"] == len(daemons)
    successor.ask("close")
    return successor.page


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("fabric", WITH_TLS)
def test_an_owner_that_was_stopped_is_fenced_and_changes_nothing(mirrors, tellers, dice, fabric,
                                                                 count):
    """Wherever in its commit it was stopped, it gets EFENCED, and no byte changes."""
    daemons = mirrors(count, fabric)
    page = tellers.page()
    for _ in range(ROUNDS[fabric] // count):
        page = fence_a_stopped_owner(tellers, dice, daemons, page)


@pytest.mark.parametrize("fabric", WITH_TLS)
def test_an_owner_that_runs_is_fenced_by_the_next(mirrors, tellers, dice, fabric):
    """A takeover from an owner that commits all the time, and then from its successor."""
    daemons = mirrors(3, fabric)
    page = tellers.page()
    owner = tellers.run("books", daemons, "create", LOG, page=page)
    for _ in range(ROUNDS[fabric]):
        owner.advances(dice.randrange(1, 300))
        following = tellers.page()
        successor = tellers.run("books", daemons, "takeover", LOG, page=following)
        status, said = owner.wait()
        assert status == FENCED and "PERSEAS_EFENCED" in said
        successor.advances(1)
        assert page.acked <= following.found <= page.attempted
        owner, page = successor, following
    owner.kill9()
    assert page.acked <= tellers.verify_images("books", daemons, page) <= page.acked + 1


def test_of_owners_that_take_over_at_the_same_time_the_last_remains(mirrors, tellers, dice, fabric):
    """Three owners claim at the same time from one that commits. Everything acknowledged to any of
    them is there."""
    daemons = mirrors(3, fabric)
    pages = [tellers.page()]
    owner = tellers.run("books", daemons, "create", LOG, page=pages[0])
    for _ in range(CONTESTS):
        owner.advances(dice.randrange(1, 300))
        pages = [owner.page] + [tellers.page() for _ in range(3)]
        rivals = [tellers.run("books", daemons, "takeover", LOG, page=page) for page in pages[1:]]
        until(lambda: [r.running() for r in rivals].count(True) == 1, "one that remains")
        assert owner.wait()[0] == FENCED
        owner, = [rival for rival in rivals if rival.running()]
        for status, said in [rival.wait() for rival in rivals if rival is not owner]:
            # An owner that was fenced before it had read the segments cannot read them any more.
            assert status == FENCED or "PERSEAS_EUNREACHABLE: no live mirror is left" in said
        owner.advances(1)
        # Each owner continued from what it found, so their counts form one sequence.
        assert max(page.acked for page in pages if page is not owner.page) <= owner.page.found
    owner.page.tell_to_stop()
    assert owner.wait()[0] == 0
    assert tellers.verify("books", daemons, owner.page) == owner.page.acked


def test_an_owner_that_was_stopped_is_fenced_when_a_mirror_has_come_back_meanwhile(
        mirrors, tellers, dice, fabric):
    """The daemons are killed and restarted between the takeover and the owner's SIGCONT."""
    daemons = mirrors(3, fabric)
    page = tellers.page()
    old = tellers.run("books", daemons, "create", LOG, page=page)
    old.advances(dice.randrange(1, 300))
    old.stop()
    successor = tellers.desk()
    successor.open("books", daemons, "takeover")
    k = successor.books()
    for daemon in daemons:
        daemon.restart()
        until(lambda: successor.run(10) and successor.all_live(3), "three live mirrors")
    old.cont()
    status, said = old.wait()
    assert status == FENCED and "PERSEAS_EFENCED" in said
    assert page.acked <= k
    k = successor.run(100)
    assert successor.check() == k
    successor.ask("close")
    assert tellers.verify("books", daemons, successor.page) == k


def test_a_fenced_owner_keeps_its_memory_and_is_told_so_by_every_call(mirrors, tellers, fabric):
    """It has a transaction open when the other one takes the store over."""
    daemons = mirrors(3, fabric)
    old, new = tellers.desk(), tellers.desk()
    old.open("store", daemons, "create", LOG)
    old.ask("map", "a", 4096)
    old.ask("publish")
    old.transaction("a", 0, 8, 1)
    old.settle()                        # a mirror that lags would be copied after the takeover
    old.ask("begin")
    old.ask("range", "a", 0, 8)
    old.ask("store", "a", 0, 8, 2)
    assert new.refused("open", "store", ",".join(d.address for d in daemons)).name == \
        "PERSEAS_EBUSY"
    seq = old.figures()["seq"]
    new.open("store", daemons, "takeover")
    assert old.refused("commit").name == "PERSEAS_EFENCED"
    for command in (("begin",), ("map", "b", 4096), ("publish",)):
        assert old.refused(*command).name == "PERSEAS_EFENCED", command
    if old.figures()["seq"] > seq:
        assert old.refused("flush").name == "PERSEAS_EFENCED"
    else:
        # It was known before anything was sent, and the mirrors have everything that was sent.
        old.ask("flush")
    new.ask("map", "a", 0)
    assert new.ask("load", "a", 0) == "1"
    new.transaction("a", 0, 8, 3)
    old.ask("close")
    assert new.figures()["live"] == 3
    assert new.ask("load", "a", 0) == "3"
