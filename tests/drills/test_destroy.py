"""perseas_segment_destroy: what remains of a segment in mirrors' memory, for later owners, standbys
and the command, in normal operation and when processes are killed."""
import subprocess
import sys
import threading

import pytest

import wire
from binding import ON_DEMAND, PerseasError, Standby, Store
from drill import (HERE, OK, SECONDS, Owner, die_with_parent, fill, mirror_list, rounds,
                   run_command, status_of, wait_even, wait_for, wait_ownerless)
from teller import dice, random_moment, tellers  # noqa: F401

PAGE = 4096
DESTROY = 23     # number of the request in control.proto
KILLS = rounds(12)
READS = rounds(15)


def files(daemon):
    """Returns the files of segments in the mirror's memory."""
    return sorted(f.name for f in (daemon.memory / "s").glob("segment-*"))


def test_its_memory_goes_back_and_its_name_is_free(mirrors, fabric):
    """A mapped segment is not destroyed. Once it is, it is gone in the owner, on every mirror, also
    after restarts, and for the next owner, which creates another segment with its name. W = 3: a
    mirror that lagged at the end would free the memory at the next claim."""
    daemons = mirrors(3, fabric)
    fill("s", daemons, {"kept": b"k" * 5000, "more": b"m" * 70000}, acks=3)
    with Store("s", mirror_list(daemons)) as store:
        store.map("more")
        with pytest.raises(PerseasError, match="unmap it") as raised:
            store.destroy("more")
        assert raised.value.name == "PERSEAS_ECONFLICT"
        store.unmap("more")
        before = [status_of("s", [d])["mirrors"][0]["bytes"] for d in daemons]
        store.destroy("more")
        after = [status_of("s", [d])["mirrors"][0]["bytes"] for d in daemons]
        assert all(b - a >= 70000 for b, a in zip(before, after)), (before, after)
        assert all(len(files(d)) == 1 for d in daemons)
        with pytest.raises(PerseasError, match="no segment 'more'") as raised:
            store.destroy("more")
        assert raised.value.name == "PERSEAS_ENOSEGMENT"
        store.map("more", 3 * PAGE)
        assert store.read("more", 0, 3 * PAGE) == bytes(3 * PAGE)
        store.poke("more", 0, b"new")
        store.publish()
    for daemon in daemons:
        daemon.restart()
    with Store("s", mirror_list(daemons)) as store:
        store.map("kept")
        store.map("more", 3 * PAGE)
        assert store.read("kept", 8, 4992) == b"k" * 4992
        assert store.read("more", 0, 4) == b"new\0"


def test_the_command_knows_of_it(mirrors, tmp_path):
    """status, verify, history, snapshot and restore, with a destroyed segment and another one that
    has its number."""
    daemons, others = mirrors(2), mirrors(1)
    fill("s", daemons, {"old": b"o" * 5000})
    with Store("s", mirror_list(daemons)) as store:
        store.destroy("old")
        store.map("new", 100)
        store.poke("new", 0, b"n" * 100)
        store.publish()
        store.write("new", 0, b"NN")
        assert [s["name"] for s in status_of("s", daemons)["segments"]] == ["new"]
        assert run_command("verify", "s", mirrors=daemons).status == OK
        taken = run_command("snapshot", "s", "--from", daemons[0].address, "--to",
                            tmp_path / "file")
        assert taken.status == OK, taken
    done = run_command("history", "s", "--from", daemons[0].address, "--bytes", "--json")
    assert done.status == OK, done
    kinds = [t["kind"] for t in done.json()["transactions"]]
    assert kinds == ["transaction", "publish", "destroy", "transaction", "publish"], kinds
    names = [[r["segment"] for r in t["ranges"]] for t in done.json()["transactions"]]
    gone = "segment 0 (gone)"
    assert names == [["new"], ["new"], [gone], [gone], [gone]]
    of_new = run_command("history", "s", "--from", daemons[0].address, "--segment", "new",
                         "--json").json()
    assert [t["seq"] for t in of_new["transactions"]] == [5, 4]
    assert "  destroy  1 range" in run_command("history", "s", "--from", daemons[1].address).out
    made = run_command("restore", tmp_path / "file", "again", mirrors=others)
    assert made.status == OK, made
    with Store("again", mirror_list(others)) as store:
        store.map("new", 100)
        assert store.read("new", 0, 4) == b"NNnn"


def test_history_takes_no_segment_for_another(mirrors):
    """A segment that is not published yet has the number of a destroyed one; no transaction may be
    attributed to it."""
    daemons = mirrors(2)
    fill("s", daemons, {"old": b"o" * 5000})
    with Store("s", mirror_list(daemons)) as store:
        store.map("old")
        store.write("old", 0, b"former")
        store.unmap("old")
        store.destroy("old")
        store.map("new", PAGE)
        store.poke("new", 0, b"n" * PAGE)
        done = run_command("history", "s", "--from", daemons[0].address, "--bytes", "--json")
        ranges = [r for t in done.json()["transactions"] for r in t["ranges"]]
        assert ranges and all(r["segment"] == "segment 0 (gone)" for r in ranges), ranges
        assert not any("after" in r for r in ranges), ranges
        of_new = run_command("history", "s", "--from", daemons[0].address, "--segment", "new",
                             "--json")
        assert of_new.json()["transactions"] == [], of_new


def test_readers_are_not_disturbed_by_segments_that_end(mirrors, tmp_path):
    """The owner recreates a segment, small and large in turn, and changes its last bytes. Readers
    ask for bytes that are refused, and records name bytes that the previous segment did not
    have."""
    daemons = mirrors(2)
    fill("s", daemons, {"kept": b"k" * (4 << 20)})
    stop = threading.Event()

    def come_and_go():
        with Store("s", mirror_list(daemons)) as store:
            while not stop.is_set():
                for size in (PAGE, 16 * PAGE):
                    store.map("g", size)
                    store.publish()
                    for i in range(10):
                        store.write("g", size - 100, bytes([i]) * 50)
                    store.unmap("g")
                    store.destroy("g")

    owner = threading.Thread(target=come_and_go)
    owner.start()
    try:
        for _ in range(READS):
            (tmp_path / "file").unlink(missing_ok=True)
            source = ("--from", daemons[0].address)
            for done in (run_command("snapshot", "s", *source, "--to", tmp_path / "file"),
                         run_command("history", "s", *source, "--bytes"),
                         run_command("verify", "s", mirrors=daemons)):
                assert done.status == OK, done
            assert owner.is_alive()
    finally:
        stop.set()
        owner.join()


def test_a_mirror_that_is_behind_is_said_to_be_behind(mirrors):
    """One mirror was killed before the segment was destroyed, and was not repaired yet."""
    daemons = mirrors(3)
    fill("s", daemons, {"old": b"o" * 5000, "kept": b"k"})
    with Store("s", mirror_list(daemons)) as store:
        daemons[2].kill9()
        store.destroy("old")
    daemons[2].restart()
    done = run_command("verify", "s", mirrors=daemons)
    assert "differs" not in done.out, done
    assert "is not in the newest state any more" in done.out, done


def test_a_death_that_is_announced_is_to_come(mirrors):
    """The owner dies between the announcement and the record: the segment still exists, and status
    says only that it was going to be destroyed."""
    daemon, = daemons = mirrors(1)
    fill("s", daemons, {"old": b"o" * 5000})
    control = wire.Control(daemon.address)
    control.claim("s", 1000)
    seq = 3         # two transactions have filled the store
    destroy = wire.field(DESTROY, wire.field(1, bytes([0])) + wire.field(2, seq))
    assert control.ask(destroy).get(1, wire.STATUS_OK) == wire.STATUS_OK
    said = run_command("status", "s", mirrors=daemons)
    assert "1, to be destroyed by %d" % seq in said.out, said
    control.peer.close()


def begin(daemons, *commands):
    """Starts an owner that has not run a command yet (SCRIPT of binding.py)."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "binding.py"), "s", mirror_list(daemons), *commands],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=die_with_parent)
    return Owner(process)


def end_pipes(owner):  # noqa: F811
    for pipe in (owner.process.stdin, owner.process.stdout, owner.process.stderr):
        pipe.close()


@pytest.mark.parametrize("kept", ["warm", "cold"])
def test_a_standby_takes_nothing_of_what_is_gone(mirrors, kept):
    """The standby has a copy of the memory while a segment is destroyed and another gets its number
    and size. The next owner must not take unread memory from that copy."""
    daemons, size = mirrors(3), 40 * PAGE
    fill("s", daemons, {"old": b"o" * size, "kept": b"k" * size})
    first = begin(daemons, "pause", "destroy,old", "map,new,%d" % size, "fill,new,n,%d" % size,
                  "publish", "map,kept,0", "write,kept,0,KK", "hold")
    first.wait_for_line("paused")
    options = dict(warm=1) if kept == "warm" else {}
    with Standby("s", mirror_list(daemons), recovery=ON_DEMAND, **options) as standby:
        wait_for(lambda: standby.state() == "owned", SECONDS, "a standby")
        if kept == "warm":
            wait_for(lambda: standby.stat().warm >= 2 * size, SECONDS, "a warm copy")
        first.process.stdin.write("go on\n")
        first.process.stdin.flush()
        first.wait_for_line("holding")
        if kept == "warm":
            wait_for(lambda: standby.stat().warm >= 2 * size, SECONDS, "a warm copy again")
        first.kill9()
        end_pipes(first)
        with standby.become_owner() as store:
            store.map("new", size)
            store.map("kept")
            store.wait_whole()
            assert store.read("new", 0, size) == b"n" * size
            assert store.read("kept", 0, 4) == b"KKkk"
            with pytest.raises(PerseasError):
                store.map("old")


def last_words(churner, awaited):
    """Returns the numbers of the segments that the owner created and destroyed last before it was
    killed; `awaited` is a line that was read before."""
    made, gone = -1, int(awaited.split()[1])
    for verb, number in churner.last_lines():
        if verb == "made":
            made = int(number)
        else:
            gone = int(number)
    end_pipes(churner)
    return made, gone


def test_owners_and_mirrors_are_killed_while_segments_come_and_go(mirrors, fabric,
                                                                  dice):  # noqa: F811
    """Kills owners at random moments, and every other time a mirror. The next owner finds each
    segment either complete with its bytes, or not at all."""
    daemons, first = mirrors(3, fabric), 0
    for kill in range(KILLS):
        churner = begin(daemons, "churn,%d" % first)
        awaited = churner.wait_for_line("destroyed")
        random_moment(dice, 0.2)
        if kill % 2:
            daemons[kill % 3].kill9()
            random_moment(dice, 0.05)
        churner.kill9()
        made, gone = last_words(churner, awaited)
        for daemon in daemons:
            if not daemon.running():
                daemon.restart()
        wait_ownerless("s", daemons)
        with Store("s", mirror_list(daemons)) as store:
            there = {s["name"]: s["size"] for s in status_of("s", daemons)["segments"]}
            # Either the segment reported as created is being destroyed, or the next one is being
            # created.
            number = made if made > gone else gone + 1
            name, size = "g%d" % (number % 3), PAGE * (number % 5 + 1)
            assert there in ({}, {name: size}), (there, made, gone)
            if there:
                store.map(name, size)
                assert store.read(name, 0, size) == bytes([number % 256]) * size
                store.unmap(name)
                store.destroy(name)
            first = number + 1
            wait_even("s", daemons)
        assert run_command("verify", "s", mirrors=daemons).status == OK
