"""Owners that are killed, refused, or traced."""
import pytest

from drill import log_of, rounds
from teller import LOG, dice, random_moment, tellers, until  # noqa: F401

ROUNDS = rounds(25)
BUSY_ROUNDS = 3
OPEN_ROUNDS = rounds(8)


def kill_rounds(tellers, dice, daemons, rounds, *options):
    page = tellers.page()
    for _ in range(rounds):
        owner = tellers.run("books", daemons, "create", LOG, *options, page=page)
        owner.advances(dice.randrange(1, 400))
        owner.kill9()
        acked = page.acked
        k = tellers.verify("books", daemons, page)
        assert acked <= k <= acked + 1


def test_a_killed_owner_leaves_what_it_was_promised_on_one_mirror(mirrors, tellers, dice, fabric):
    """Repeats kill -9 while the owner commits; every next owner compares all bytes."""
    kill_rounds(tellers, dice, mirrors(1, fabric), ROUNDS)


def test_a_killed_owner_leaves_what_it_was_promised_on_three(mirrors, tellers, dice, fabric):
    """The same with W = 2, so that the mirrors have different transactions."""
    kill_rounds(tellers, dice, mirrors(3, fabric), ROUNDS, "acks=2")


@pytest.mark.parametrize("ahead", [0, 1])
def test_stored_bytes_are_no_record_after_a_kill(mirrors, tellers, fabric, ahead):
    """The bytes are where the log looks for the record of the unfinished transaction, with the
    owner's epoch or the next one. Two more owners open the store and compare all bytes."""
    daemons = mirrors(3, fabric)
    page = tellers.page()
    desk = tellers.desk(page)
    desk.open("books", daemons, "create", LOG, "acks=2")
    desk.books()
    desk.run(20)
    desk.ask("forge", ahead, log_of(daemons[0], "books"))
    desk.kill9()
    assert tellers.verify("books", daemons, page) == 20
    assert tellers.verify("books", daemons, page) == 20


def test_stored_slots_are_not_the_slot_of_a_mirror_that_was_away(mirrors, tellers, fabric):
    """Slots of much later transactions are in the logs of all mirrors, as data. Two mirrors
    continue without the third one until their logs have none of it left. The next owner reaches one
    of them and the third."""
    daemons = mirrors(3, fabric)
    page = tellers.page()
    desk = tellers.desk(page)
    desk.open("books", daemons, "create", LOG, "acks=2")
    desk.books()
    desk.run(20)
    until(lambda: desk.all_live(3), "live mirrors")
    desk.ask("forge", 0, log_of(daemons[0], "books"))
    desk.ask("flush")
    desk.settle()
    daemons[2].kill9()
    desk.run(300)
    desk.kill9()
    daemons[0].kill9()
    daemons[2].restart()
    assert tellers.verify("books", daemons[1:], page) == 320


def test_a_killed_owner_leaves_what_it_was_told_of_though_it_waited_for_nothing(
        mirrors, tellers, dice, fabric):
    """No commit waits. The next owner may find more than was acknowledged, and nothing else."""
    daemons = mirrors(3, fabric)
    page = tellers.page()
    for _ in range(ROUNDS):
        owner = tellers.run("books", daemons, "create", LOG, "acks=2", "unwaited", page=page)
        owner.advances(dice.randrange(1, 400))
        owner.kill9()
        acked = page.acked
        assert acked <= tellers.verify("books", daemons, page) <= page.attempted


def test_an_owner_that_waits_for_nothing_leaves_all_when_it_ends(mirrors, tellers, fabric):
    """It is told to stop, and flushes at the end."""
    daemons = mirrors(3, fabric)
    owner = tellers.run("books", daemons, "create", LOG, "unwaited", "transactions=3000")
    assert owner.wait() == (0, "")
    assert owner.page.acked == 3000
    assert tellers.verify("books", daemons, owner.page) == 3000


def test_what_a_killed_owner_left_is_the_same_on_all_mirrors_after_the_next(
        mirrors, tellers, dice, fabric):
    """The next owner repairs mirrors with other states; then the images are compared."""
    daemons = mirrors(3, fabric)
    page = tellers.page()
    owner = tellers.run("books", daemons, "create", LOG, page=page)
    owner.advances(dice.randrange(100, 600))
    owner.kill9()
    tellers.verify_images("books", daemons, page)


def test_an_owner_finds_two_of_three_mirrors_that_died_with_the_one_before(
        mirrors, tellers, dice, fabric):
    """The owner dies with the only mirror that may be ahead; the other two must have everything."""
    daemons = mirrors(3, fabric)
    page = tellers.page()
    for lost in daemons:
        owner = tellers.run("books", daemons, "create", LOG, page=page)
        owner.advances(dice.randrange(1, 300))
        owner.kill9()
        lost.kill9()
        acked = page.acked
        assert acked <= tellers.verify("books", daemons, page) <= acked + 1
        lost.restart()


def test_an_owner_that_is_killed_while_it_opens_leaves_the_state_as_it_was(
        mirrors, tellers, dice, fabric):
    """The previous owner was killed while it committed; the owners after it never get to commit."""
    daemons = mirrors(3, fabric)
    page = tellers.page()
    for _ in range(OPEN_ROUNDS):
        owner = tellers.run("books", daemons, "create", LOG, page=page)
        owner.advances(dice.randrange(1, 300))
        owner.kill9()
        acked = page.acked
        for _ in range(3):
            opener = tellers.run("books", daemons, "takeover", "transactions=0")
            random_moment(dice, 0.02)
            opener.kill9()
        assert acked <= tellers.verify("books", daemons, page) <= acked + 1


def test_a_second_owner_is_refused_and_fences_nobody(mirrors, tellers, fabric):
    """The first owner commits all the time; others try to open without takeover."""
    daemons = mirrors(3, fabric)
    first, second = tellers.desk(), tellers.desk()
    epoch, _ = first.open("books", daemons, "create", LOG)
    first.books()
    first.ask("start")
    for _ in range(BUSY_ROUNDS):
        refused = second.refused("open", "books", ",".join(d.address for d in daemons))
        assert refused.name == "PERSEAS_EBUSY"
        assert "takeover" in refused.text
        first.page.advances(100)
    first.ask("halt")
    figures = first.figures()
    assert (figures["epoch"], figures["live"], figures["reconnects"]) == (epoch, 3, 0)
    first.check()


def test_an_owner_that_closed_is_followed_at_once(mirrors, tellers, fabric):
    """Without a takeover or waiting, the second owner opens as soon as the first has closed."""
    daemons = mirrors(3, fabric)
    page = tellers.page()
    desk = tellers.desk(page)
    for k in range(0, 500, 100):
        desk.open("books", daemons, "create", LOG)
        assert desk.books() == k
        assert desk.run(100) == desk.check() == k + 100
        desk.ask("close")


def test_fewer_than_r_mirrors_are_refused_by_name(mirrors, tellers, fabric):
    """Two of three mirrors are down, so any state found may be outdated."""
    daemons = mirrors(3, fabric)
    desk = tellers.desk()
    desk.open("books", daemons, "create", LOG)
    desk.books()
    desk.run(100)
    epoch, seq = (desk.figures()[name] for name in ("epoch", "seq"))
    desk.settle()
    desk.ask("close")
    for daemon in daemons[:2]:
        daemon.kill9()
    refused = desk.refused("open", "books", ",".join(d.address for d in daemons))
    assert refused.name == "PERSEAS_EQUORUM"
    missing = refused.text.split("Missing:")[1]
    assert [d.address in missing for d in daemons] == [True, True, False]
    assert "%d:%d" % (epoch, seq) in refused.text
    daemons[1].restart()
    assert desk.open("books", daemons)[1] == seq
    assert desk.books() == desk.check() == 100


def own_calls(trace, command):
    """Returns the main thread's system calls between reading the command and answering it."""
    main, found = None, []
    for line in trace.splitlines():
        pid, call = line.split(None, 1)
        if main is None:
            if call.startswith(("read(0", "<... read resumed>")) and '"%s\\n"' % command in call:
                main = pid
        elif pid == main:
            if call.startswith("write(1"):
                return found
            found.append(call)
    raise AssertionError("the trace does not show %s:\n%s" % (command, trace[-2000:]))


@pytest.mark.parametrize("count", [1, 3])
def test_commits_over_shm_make_no_system_call_and_no_allocation(mirrors, tellers, tmp_path, count):
    """strace watches an owner that commits 1,000 times and 100 times as often. Another thread of
    the owner checks the mirrors twice a second; while it has the lock, a commit must wake it. There
    are no other calls, and their number does not grow with the number of commits."""
    daemons = mirrors(count, "shm")
    trace = tmp_path / "trace"
    desk = tellers.desk(wrap=["strace", "-f", "-qq", "-s", "64", "-o", trace])
    desk.open("books", daemons, "create")
    desk.books()
    desk.run(2000)                      # enough that every buffer has its final size
    before = desk.figures()["allocations"]
    desk.run(1000)
    desk.run(100000)
    assert desk.figures()["allocations"] == before
    desk.exit()
    text = trace.read_text(errors="replace")
    for times in (1000, 100000):
        calls = own_calls(text, "run %d" % times)
        wakes = [call for call in calls if call.startswith("futex(")]
        assert len(wakes) <= times // 1000 + 10, wakes[:20]
        assert [call for call in calls if "futex" not in call] == []
