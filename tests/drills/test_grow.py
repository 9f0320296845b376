"""perseas_segment_grow: a segment that grows in real mirrors' memory, for later owners, standbys
and the command, in normal operation and when processes are killed."""
import subprocess
import sys

import pytest

from binding import ON_DEMAND, READ_FIRST, TALL, PerseasError, Standby, Store
from drill import (HERE, OK, SECONDS, Owner, die_with_parent, fill, mirror_list, rounds,
                   run_command, status_of, wait_even, wait_for, wait_ownerless)
from teller import dice, random_moment, tellers  # noqa: F401

PAGE = 4096
KILLS = rounds(6)


def files(daemon):
    """Returns the files of segments in the mirror's memory."""
    return sorted(f.name for f in (daemon.memory / "s").glob("segment-*"))


@pytest.mark.parametrize("recovery", [READ_FIRST, ON_DEMAND], ids=["first", "demand"])
def test_it_grows_where_it_is(mirrors, fabric, recovery):
    """By much, and by little. Daemons restart, and the next owner has the segment at its address,
    with writes across its former ends. Unmapping and mapping it changes nothing. W = 3: a mirror
    that lagged when the segment was destroyed would free its memory at the next claim."""
    daemons = mirrors(3, fabric)
    sizes = [40 * PAGE, 300 * PAGE, 301 * PAGE]
    with Store("s", mirror_list(daemons), flags=1, acks=3) as store:
        address, _ = store.map_reserve("t", sizes[0], 1 << 30)
        store.poke("t", 0, b"t" * sizes[0])
        store.publish()
        for size, more in zip(sizes, sizes[1:]):
            store.grow("t", more)
            store.write("t", size - 100, b"a" * 200)
    for daemon in daemons:
        daemon.restart()
    with Store("s", mirror_list(daemons), recovery=recovery) as store:
        for turn in range(2):
            assert store.map_reserve("t", sizes[0], 1 << 30) == (address, sizes[2])
            # One read across all of its parts, which may be missing.
            whole = store.read("t", 0, sizes[2])
            assert whole[:sizes[0] - 100] == b"t" * (sizes[0] - 100)
            assert whole[sizes[0] - 100:sizes[0] + 100] == b"a" * 200
            assert whole[sizes[1] - 100:sizes[1] + 100] == b"a" * 200
            assert not any(whole[sizes[0] + 100:sizes[1] - 100])
            assert not any(whole[sizes[1] + 101:])
            store.unmap("t")
        # One range across everything that is missing.
        store.map_reserve("t", 0, 1 << 30)
        store.write("t", sizes[0] - 1, b"b" * (sizes[1] - sizes[0] + 2))
        store.grow("t", 400 * PAGE)
        assert store.read("t", 301 * PAGE, 99 * PAGE) == bytes(99 * PAGE)
        store.unmap("t")
        store.destroy("t")
        assert all(files(d) == [] for d in daemons)
        wait_even("s", daemons)
    assert run_command("verify", "s", mirrors=daemons).status == OK


def test_a_mirror_without_memory_refuses(mirrors):
    """Because of its limit. The segment does not grow, and a smaller step succeeds."""
    daemons = mirrors(2) + mirrors(1, options=("--max-memory", "30M"))
    with Store("s", mirror_list(daemons), flags=1) as store:
        store.map_reserve("t", PAGE, 1 << 30)
        store.publish()
        with pytest.raises(PerseasError, match="--max-memory") as raised:
            store.grow("t", 64 << 20)
        assert raised.value.name == "PERSEAS_EMIRRORMEM"
        assert all(len(files(d)) == 1 for d in daemons)
        store.grow("t", 1 << 20)
        store.write("t", PAGE - 1, b"xx")
        wait_even("s", daemons)
    assert run_command("verify", "s", mirrors=daemons).status == OK


def test_the_command_knows_of_it(mirrors, tmp_path):
    """status, verify, history, snapshot, restore and recover, for a segment that has grown
    twice."""
    daemons, others, third = mirrors(2), mirrors(1), mirrors(1)
    fill("s", daemons, {"t": b"t" * PAGE, "u": b"u" * 100})
    with Store("s", mirror_list(daemons)) as store:
        store.map("t")
        store.grow("t", 2 * PAGE)
        store.grow("t", 4 * PAGE)
        store.write("t", 2 * PAGE - 3, b"across")
        told = run_command("status", "s", mirrors=daemons).out
        assert "t        16384  0x" in told and "grown 2 times, last by" in told, told
        assert "t.grown" not in told
        listed = {s["name"]: s for s in status_of("s", daemons)["segments"]}
        assert listed["t.grown.1"]["behind"] == "t"
        assert listed["t.grown.2"]["behind"] == "t.grown.1"
        assert "behind" not in listed["u"]
        same = run_command("verify", "s", mirrors=daemons)
        assert same.status == OK and "2 segments, 16.1 KiB" in same.out, same
        taken = run_command("snapshot", "s", "--from", daemons[0].address, "--to",
                            tmp_path / "file")
        assert taken.status == OK and ": 2 segments" in taken.out, taken
    done = run_command("history", "s", "--from", daemons[0].address, "--json").json()
    kinds = [(t["kind"], [r["segment"] for r in t["ranges"]]) for t in done["transactions"]]
    assert kinds[:3] == [("transaction", ["t.grown.1", "t.grown.2"]), ("publish", ["t.grown.2"]),
                         ("publish", ["t.grown.1"])], kinds
    assert run_command("restore", tmp_path / "file", "again", mirrors=others).status == OK
    onto = run_command("recover", "s", "--onto", mirror_list(third), mirrors=daemons)
    assert onto.status == OK, onto
    expected = b"t" * PAGE + bytes(PAGE - 3) + b"across" + bytes(2 * PAGE - 3)
    for name, where in (("again", others), ("s", third)):
        assert sorted(s["name"] for s in status_of(name, where)["segments"]) == ["t", "u"]
        with Store(name, mirror_list(where)) as store:
            store.map("t", 4 * PAGE)
            assert store.read("t", 0, 4 * PAGE) == expected
            store.grow("t", 5 * PAGE)


def begin(daemons, *commands):
    """Starts an owner that has not run a command yet (SCRIPT of binding.py)."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "binding.py"), "s", mirror_list(daemons), *commands],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=die_with_parent)
    return Owner(process)


def end_pipes(owner):
    for pipe in (owner.process.stdin, owner.process.stdout, owner.process.stderr):
        pipe.close()


def test_a_warm_standby_has_all_of_it(mirrors):
    """It follows the owner while the segment grows, and takes over when the owner is killed."""
    daemons = mirrors(3)
    fill("s", daemons, {"tower": b"t" * PAGE})
    first = begin(daemons, "map,tower,0", "pause", "grow,tower,%d" % (40 * PAGE),
                  "write,tower,%d,abcd" % (PAGE - 2), "hold")
    first.wait_for_line("paused")
    with Standby("s", mirror_list(daemons), warm=1) as standby:
        wait_for(lambda: standby.stat().warm >= PAGE, SECONDS, "a warm copy")
        first.process.stdin.write("go on\n")
        first.process.stdin.flush()
        first.wait_for_line("holding")
        wait_for(lambda: standby.stat().warm >= 40 * PAGE, SECONDS, "a warm copy of all")
        first.kill9()
        end_pipes(first)
        with standby.become_owner() as store:
            store.map("tower", 40 * PAGE)
            assert store.read("tower", PAGE - 3, 6) == b"tabcd\0"
            store.grow("tower", 41 * PAGE)


def last_words(owner, written):
    """Returns the pages that the owner grew and wrote last before it was killed, at least
    `written`, whose line was read before."""
    grown = written
    for verb, number in owner.last_lines():
        if verb == "grown":
            grown = int(number)
        else:
            written = int(number)
    end_pipes(owner)
    return grown, written


def tower(pages, written):
    """Returns the contents of a tower of `pages` pages, the last of which to be written is
    `written`."""
    whole = bytearray(pages * PAGE)
    for number in range(1, written + 1):
        whole[PAGE * number - 1:PAGE * (number + 1) - 1] = bytes([number % 255 + 1]) * PAGE
    return bytes(whole)


def test_owners_and_mirrors_are_killed_while_it_grows(mirrors, fabric, dice):  # noqa: F811
    """Kills owners at random moments, and every other time a mirror. The next owner finds
    everything that was reported, and at most one step more: a larger segment with zeros, or with
    the page written."""
    daemons, pages = mirrors(3, fabric), 0
    for kill in range(KILLS):
        owner = begin(daemons, "swell,%d" % pages)
        first = int(owner.wait_for_line("written").split()[1])
        random_moment(dice, 0.2)
        if kill % 2:
            daemons[kill % 3].kill9()
            random_moment(dice, 0.05)
        owner.kill9()
        grown, written = last_words(owner, first)
        for daemon in daemons:
            if not daemon.running():
                daemon.restart()
        wait_ownerless("s", daemons)
        recovery = ON_DEMAND if kill % 3 == 2 else READ_FIRST
        with Store("s", mirror_list(daemons), recovery=recovery) as store:
            segments = status_of("s", daemons)["segments"]
            pages = sum(s["size"] for s in segments) // PAGE
            if grown < TALL - 1:
                assert pages in (grown + 1, grown + 2), (grown, written, pages)
            if pages:
                store.map("tower", pages * PAGE)
                whole = store.read("tower", 0, pages * PAGE)
                last = pages - 1
                assert whole in (tower(pages, last), tower(pages, last - 1)), (grown, pages)
                # What was reported as written is there, unless a new tower has begun.
                if whole == tower(pages, last - 1) and last:
                    assert written < last or written == TALL - 1, (written, last)
                    store.write("tower", PAGE * last - 1, bytes([last % 255 + 1]) * PAGE)
                store.unmap("tower")
            wait_even("s", daemons)
        assert run_command("verify", "s", mirrors=daemons).status == OK
