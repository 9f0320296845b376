"""A mirror that hangs with its connections open (SIGSTOP), like a host that vanished without a
reset. Work with the other mirrors must not take much longer than next to a dead mirror, whose host
resets connections."""
import contextlib
import time

import pytest

from drill import MIB, OK, PATIENCE, mirror_list, run_command
from sentinel import attempt
from teller import tellers, until  # noqa: F401

SIZE = 64 * MIB
MOST = 4                                # upper bound: times as long as next to a dead mirror
ONCE = PATIENCE * 8.0                   # seconds to notice something once
RING = 16 * MIB
SMALL_RING = "ring=%d" % RING
HELD = 4                                # index of the mirror, of five, that hangs or is dead


@pytest.fixture
def copied(mirrors, tellers):
    """copied(count, acks, ...) starts mirrors, and a desk with a store of 64 MiB open on them."""
    def start(count, acks, *options):
        daemons = mirrors(count)
        desk = tellers.desk()
        desk.open("books", daemons, "create", "acks=%d" % acks, *options)
        desk.ask("map", "large", SIZE)
        desk.ask("publish")
        desk.transaction("large", 0, 4096, 7)
        desk.settle()
        return daemons, desk
    return start


@contextlib.contextmanager
def disturbed(daemon, how):
    """The mirror is dead, or hangs until the end of the block."""
    if how == "dead":
        daemon.kill9()
        yield
        return
    daemon.stop()
    yield
    daemon.cont()


def end(desk, daemons):
    """Frees the memory for the next measurement."""
    desk.exit()
    for each in daemons:
        each.lose_memory()


def seconds_of(what):
    start = time.monotonic()
    what()
    return time.monotonic() - start


def compare(measure):
    """Compares measure("dead") with measure("hangs"), in seconds."""
    def beyond(sentinel):
        """Returns by how much it exceeds the bound."""
        sentinel.begin()
        dead, hangs = measure("dead"), measure("hangs")
        print("beside a dead mirror: %.2f s; beside one that hangs: %.2f s" % (dead, hangs))
        return hangs - MOST * dead

    attempt(ONCE, beyond)


def test_a_wiped_mirror_is_copied_beside_one_that_hangs(copied):
    """Five mirrors, W = 3: one hangs, another lost its memory, and the three left must permit it to
    be copied again. It has everything as soon as next to a dead mirror."""
    def wiped(how):
        daemons, desk = copied(5, 3)
        with disturbed(daemons[HELD], how):
            desk.transaction("large", 8192, 4096, 8)
            daemons[1].lose_memory()
            until(lambda: desk.states()[1][0] != "live", "a mirror that is down")
            daemons[1].restart()
            took = seconds_of(lambda: until(lambda: desk.states()[1][0] == "live",
                                            "a mirror that was copied whole"))
            assert desk.figures()["resyncs"] == 1
        end(desk, daemons)
        return took

    compare(wiped)


def test_a_mirror_that_hangs_is_replaced(copied, mirrors):
    """Three mirrors, W = 2: the one that hangs is replaced in the roster. The command is given the
    ones that answer."""
    def replaced(how):
        daemons, desk = copied(3, 2)
        new = mirrors(1)[0]
        with disturbed(daemons[2], how):
            desk.transaction("large", 8192, 4096, 8)
            took = seconds_of(lambda: done.append(run_command(
                "roster", "replace", "books", mirror_list(daemons[:2]), daemons[2].address,
                new.address)))
            assert done[-1].status == OK, done[-1]
        desk.transaction("large", 0, 4096, 9)
        end(desk, [*daemons, new])
        return took

    done = []
    compare(replaced)


def test_a_doubt_ends_by_a_copy_beside_one_that_hangs(copied):
    """Five mirrors, W = 3: one hangs, another missed more than the ring has, and when a third one
    dies, a commit is in doubt. The doubt ends when the second one is back and was copied whole."""
    def doubt(how):
        daemons, desk = copied(5, 3, SMALL_RING, "commit-ms=600000")
        with disturbed(daemons[HELD], how):
            until(lambda: desk.states()[HELD][0] == "down", "a mirror that is missed")
            daemons[1].kill9()
            until(lambda: desk.states()[1][0] == "down", "a mirror that is down")
            for chunk in range(2 * RING // MIB):
                desk.transaction("large", chunk * MIB, MIB, chunk)
            daemons[2].kill9()
            until(lambda: desk.states()[2][0] == "down", "another one")
            desk.ask("begin")
            desk.ask("range", "large", 0, 4096)
            desk.ask("store", "large", 0, 4096, 3)
            desk.send("commit")
            daemons[1].restart()
            took = seconds_of(desk.answer)
            # The mirror that hung is copied, too, when it resumes.
            assert desk.figures()["resyncs"] == 1
        end(desk, daemons)
        return took

    compare(doubt)
