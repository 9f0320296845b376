"""perseas verify --repair: the owner repairs mirrors while its program runs. It changes nothing
unless W other mirrors agree with the owner's memory."""
import ctypes
import os
import threading

from binding import CREATE, Store
from drill import (MIB, NO, OK, PARTLY, SECONDS, USAGE, fill, mirror_list, run_command, wait_even,
                   wait_for, wait_ownerless)
from rules import Rules
from teller import pieces
from test_verify import corrupt

SIZE = 16 * MIB
WRONG = 9 * MIB + 77


def bank(daemons, acks=0):
    store = Store("bank", mirror_list(daemons), flags=CREATE, acks=acks)
    store.map("accounts", SIZE)
    store.publish()
    store.write("accounts", WRONG, b"contents")
    wait_even("bank", daemons)
    return store


def repair(perseas, daemons, *more):
    return perseas("verify", "bank", "--repair", *more, mirrors=daemons)


def test_a_changed_byte_is_repaired_while_the_program_commits(perseas, mirrors):
    """The first verification finds it, and the second one finds nothing."""
    daemons = mirrors(3)
    with bank(daemons) as store:
        corrupt(daemons[1], "bank", WRONG, SIZE)
        ended = threading.Event()

        def commit():
            count = 0
            while not ended.is_set():
                count += 1
                store.write("accounts", count % 1000, b"%d" % count)

        thread = threading.Thread(target=commit)
        thread.start()
        try:
            done = repair(perseas, daemons)
        finally:
            ended.set()
            thread.join()
        assert done.status == OK, done
        lines = done.out.splitlines()
        assert "first at offset %d" % WRONG in lines[0], done
        assert lines[-2].startswith("repaired 1 piece of 64 KiB on 1 mirror"), done
        assert "3 of 3 mirrors hold the same" in lines[-1], done
        assert store.stat().resyncs == 1


def test_with_two_mirrors_the_owner_tells_which_is_wrong(perseas, mirrors):
    """W = 1: whichever of the two is spoiled, the other one agrees with the owner."""
    for wrong in 0, 1:
        daemons = mirrors(2)
        with bank(daemons, acks=1):
            corrupt(daemons[wrong], "bank", WRONG, SIZE)
            done = repair(perseas, daemons)
            assert done.status == OK, done
            assert "repaired 1 piece of 64 KiB on 1 mirror\n" in done.out, done
        wait_ownerless("bank", daemons)
        with Store("bank", mirror_list(daemons[wrong:wrong + 1])) as store:
            store.map("accounts")
            assert store.read("accounts", WRONG, 8) == b"contents"


def test_an_owner_that_scribbled_changes_nothing(perseas, mirrors):
    """Its program stored without set_range, and a mirror is wrong elsewhere. Once the program was
    restarted, the mirror is repaired."""
    daemons = mirrors(3)
    with bank(daemons) as store:
        ctypes.memset(store.segments["accounts"] + MIB, 1, 1)
        corrupt(daemons[1], "bank", WRONG, SIZE)
        done = repair(perseas, daemons)
        assert done.status == NO, done
        assert "nothing was changed: no mirror agrees with the owner's memory in the 64 KiB at " \
            "offset %d of segment 'accounts'" % MIB in done.err, done
        assert store.stat().resyncs == 0
        assert perseas("verify", "bank", mirrors=daemons).status == NO
    wait_ownerless("bank", daemons)
    with Store("bank", mirror_list(daemons)) as store:
        store.map("accounts")
        assert repair(perseas, daemons).status == OK
        # Nothing differs any more.
        done = repair(perseas, daemons)
        assert done.status == OK and "no mirror differs from the owner\n" in done.out, done


def test_a_mirror_that_is_down_prevents_a_repair(perseas, mirrors):
    """Fewer than W others agree with the owner, until it is back."""
    daemons = mirrors(3)
    with bank(daemons) as store:
        daemons[2].kill9()
        store.write("accounts", 0, b"commits need the other two")
        corrupt(daemons[1], "bank", WRONG, SIZE)
        done = repair(perseas, daemons)
        assert done.status == NO and "fewer than W" in done.err, done
        wait_for(lambda: store.stat().live == 2, SECONDS, "a mirror that is missed")
        daemons[2].restart()
        wait_for(lambda: store.stat().live == 3, SECONDS, "a mirror that is live again")
        assert repair(perseas, daemons).status == OK


def test_without_an_owner_it_says_what_to_do(perseas, mirrors):
    daemons = mirrors(2)
    fill("bank", daemons, {"accounts": b"contents" * 1000})
    assert repair(perseas, daemons).status == OK
    corrupt(daemons[0], "bank", 5)
    done = repair(perseas, daemons)
    assert done.status == NO and "nothing was changed: store 'bank' has no live owner" in done.err
    assert "perseas drop bank MIRROR --yes" in done.err, done
    assert repair(perseas, daemons, "--repeat", "1").status == USAGE


def test_the_command_is_killed_and_repeated(perseas, mirrors):
    """The owner goes on without it."""
    daemons = mirrors(3)
    with bank(daemons) as store:
        corrupt(daemons[1], "bank", WRONG, SIZE)
        assert repair(perseas, daemons, "--wait", "1").status in (OK, PARTLY)
        wait_for(lambda: store.stat().resyncs == 1, SECONDS, "a repair that has ended")
        assert repair(perseas, daemons).status == OK


def test_a_client_without_admin_has_nothing_repaired(perseas, mirrors, tmp_path):
    """It has every other right, and the owner's own rights do not help it. The rights that
    deploy/access.md names suffice."""
    owner = "allow uid:%d all" % os.geteuid()
    rules = Rules(tmp_path / "access", owner, "allow anonymous create,own,read,recover")
    daemons = mirrors(3, "shm", rules.options)
    others = ",".join(each.mirror.tcp for each in daemons)
    with bank(daemons) as store:
        corrupt(daemons[1], "bank", WRONG, SIZE)
        before = pieces(daemons)
        done = repair(perseas, others)
        assert done.status == NO, done
        assert 'anonymous lacks the right "admin" on store bank' in done.err, done
        assert pieces(daemons) == before
        assert store.stat().resyncs == 0
        for each in daemons:
            assert rules.put(each, owner, "allow anonymous read,admin")
        assert repair(perseas, others).status == OK
        assert store.stat().resyncs == 1
