"""Enough mirrors answer for an open, but the live owner may copy to none of them (I9)."""
import pytest

from binding import PerseasError, Store
from drill import MIB, OK, SECONDS, fill, mirror_list, run_command, wait_even, wait_for

AWAY = ("PERSEAS_EINDOUBT", "PERSEAS_EBLOCKED")


def commits(store, text):
    try:
        store.write("first", 0, text)
    except PerseasError as error:
        assert error.name in AWAY, error
        return False
    return True


@pytest.mark.parametrize("lost", [0, 1])
def test_an_owner_goes_on_with_a_mirror_that_missed_its_open(mirrors, lost, fabric):
    """A mirror is down while the store changes its owner; another one dies, and the first comes
    back. When all are back, each has everything that was committed."""
    daemons = mirrors(3, fabric)
    fill("s", daemons, {"first": bytes(MIB)})
    daemons[2].kill9()
    with Store("s", mirror_list(daemons)) as store:
        store.map("first")
        store.write("first", 0, b"one")
        epoch = store.stat().epoch
        daemons[lost].kill9()
        wait_for(lambda: store.stat().live == 1, SECONDS, "an owner that misses it")
        daemons[2].restart()
        wait_for(lambda: commits(store, b"two"), SECONDS, "W mirrors")
        assert store.stat().epoch > epoch and store.stat().renewals == 1
        assert store.stat().resyncs == 0
        daemons[lost].restart()
        wait_even("s", daemons)
    assert run_command("verify", "s", mirrors=daemons).status == OK
    for daemon in daemons[:2]:
        daemon.kill9()
        with Store("s", mirror_list(daemons)) as store:
            store.map("first")
            assert store.read("first", 0, 3) == b"two"
        daemon.restart()


def test_status_names_the_mirror_without_room(mirrors, fabric):
    """The mirror that comes back has no memory for a second image, and the owner retries. When
    there is memory, it succeeds."""
    daemons = mirrors(3, fabric)
    fill("s", daemons, {"first": bytes(MIB)}, log_size=MIB)
    daemons[2].kill9()
    with Store("s", mirror_list(daemons)) as store:
        store.map("first")
        store.write("first", 0, b"one")
        daemons[0].kill9()
        wait_for(lambda: store.stat().live == 1, SECONDS, "an owner that misses it")
        options = daemons[2].mirror.options
        daemons[2].mirror.options = [*options, "--max-memory", "3M"]
        daemons[2].restart()
        said = wait_for(lambda: (out := run_command("status", "s", mirrors=daemons).out)
                        and "has no memory for" in out and out, SECONDS, "a sentence")
        assert said.startswith("can commit: no; can open: yes;")
        daemons[2].mirror.options = options
        daemons[2].restart()
        wait_for(lambda: commits(store, b"three"), SECONDS, "W mirrors")
