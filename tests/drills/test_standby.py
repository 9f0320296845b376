"""A standby inside a process (perseas_standby.h), with owners that are killed, hang, and come back.
tests/unit/test_standby.c tests the standby alone."""
import concurrent.futures
import time

import pytest

from binding import PerseasError, Standby
from drill import FABRICS, SECONDS, WITH_TLS, fill, mirror_list, status_of, wait_for
from sentinel import unless_overslept
from test_run import YIELDS, run  # noqa: F401  # pylint: disable=unused-import

BRIEF = "0.25"   # seconds
PATIENCE = 5     # seconds for which a mirror waits for the end of a process
LARGE = 64 << 20


def stand_by(daemons, **options):
    standby = Standby("bank", mirror_list(daemons), **options)
    wait_for(lambda: standby.state() == "owned", SECONDS, "a standby that knows the owner")
    return standby


def commit(store):
    store.map("accounts")
    store.write("accounts", 0, b"here")


@pytest.mark.parametrize("fabric", WITH_TLS)
def test_it_owns_the_store_of_an_owner_that_was_killed(fabric, bank, owner):
    daemons = bank(3, fabric)
    first = owner("bank", daemons, "map,accounts,4096", "write,accounts,100,words")
    with stand_by(daemons) as standby:
        first.kill9()
        with standby.become_owner() as store:
            commit(store)
            assert store.read("accounts", 100, 5) == b"words"


@pytest.mark.skipif("shm" not in FABRICS, reason="without memory that is shared")
def test_the_memory_of_an_owner_that_was_killed_is_taken_in_place(mirrors, owner):
    """A mirror is claimed while the killed process still has its memory: it waits for the process's
    end instead of copying the image. If the system took longer to end it, the mirror may have given
    up."""
    daemons = mirrors(3, "shm")
    fill("bank", daemons, {"accounts": bytes(LARGE)})
    for _ in range(6):
        first = owner("bank", daemons, "map,accounts,%d" % LARGE)
        with stand_by(daemons) as standby, concurrent.futures.ThreadPoolExecutor() as pool:
            waiting = pool.submit(standby.become_owner)
            began = time.monotonic()
            first.kill9()
            took = time.monotonic() - began
            with waiting.result(SECONDS) as store:
                commit(store)
                assert "claimed; it stands at" in store.report()
                assert took >= PATIENCE or "copied away" not in store.report()


@pytest.mark.parametrize("fabric", FABRICS)
def test_an_owner_that_hangs_is_replaced_and_fenced(fabric, bank, owner):
    """Its connections stay open, so only its silence tells. When it resumes it cannot commit."""
    daemons = bank(3, fabric, ("--owner-timeout", BRIEF))
    first = owner("bank", daemons)
    with Standby("bank", mirror_list(daemons)) as standby:
        # Mirrors may declare an owner dead that did not run for so long.
        wait_for(lambda: standby.state() in ("owned", "free", "due"), SECONDS, "a standby")
        first.stop()
        with standby.become_owner() as store:
            commit(store)
            epoch = store.stat().epoch
            first.cont()
            commit(store)
            assert store.stat().epoch == epoch


def test_it_waits_for_what_perseas_run_owns(bank, run):  # noqa: F811
    """Both kinds of standbys are in one queue."""
    daemons = bank(3)
    runner = run("bank", daemons)
    runner.wait_printed("holding")
    with stand_by(daemons) as standby:
        runner.process.kill()
        with standby.become_owner() as store:
            commit(store)


def test_it_leaves_the_store_to_who_is_to_be_next(bank, run, perseas):  # noqa: F811
    """An operator hands the store over to another standby, which is slower because its COMMAND must
    start first."""
    daemons = bank(3)
    first = run("bank", daemons, options=("--name", "first"))
    first.wait_printed("holding")
    second = run("bank", daemons, options=("--name", "second", "--order", "1"))
    second.wait_said("standby: its owner lives")
    wait_for(lambda: "second" in [each["name"] for each in status_of("bank", daemons)["standbys"]],
             SECONDS, "a standby that mirrors tell of")
    with stand_by(daemons) as standby, concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(standby.become_owner)
        with unless_overslept(YIELDS):
            done = perseas("move", "bank", mirror_list(daemons), "second")
            assert "handed over to second" in done.out
            second.wait_printed("holding")
            assert not waiting.done()
        first.process.kill()
        second.process.kill()
        with waiting.result(SECONDS) as store:
            commit(store)


def test_mirrors_that_the_roster_names_are_enough(mirrors, owner, perseas):
    """Two of three mirrors were replaced since the list was written, and are gone."""
    daemons, others = mirrors(3), mirrors(2)
    fill("bank", daemons, {"accounts": bytes(4096)})
    first = owner("bank", daemons)
    with stand_by(daemons) as standby:
        for old, new in zip(daemons[1:], others):
            assert perseas("roster", "replace", "bank", mirror_list(daemons[:1] + others),
                           old.address, new.address).status == 0
            old.kill9()
        first.kill9()
        with standby.become_owner() as store:
            commit(store)


def test_a_mirror_that_hangs_is_not_waited_for_twice(bank, owner):
    """The mirror hangs when the owner dies, as on a host without power. The query before the open
    has waited for it. It is used again when it answers."""
    daemons = bank(3)
    first = owner("bank", daemons)
    with stand_by(daemons, connect_timeout_ms=500) as standby:
        daemons[2].stop()
        first.kill9()
        with standby.become_owner() as store:
            assert "%s did not answer the standby" % daemons[2].address in store.report()
            commit(store)
            daemons[2].cont()
            wait_for(lambda: store.stat().live == 3, SECONDS, "three live mirrors")


def test_without_certificates_it_says_so(mirrors, monkeypatch):
    daemons = mirrors(3, "tls")
    for name in ("CERT", "KEY", "CA"):
        monkeypatch.delenv("PERSEAS_TLS_" + name)
    with Standby("bank", mirror_list(daemons)) as standby:
        with pytest.raises(PerseasError, match="takes TLS connections only") as raised:
            standby.become_owner()
        assert raised.value.name == "PERSEAS_ETLS"
