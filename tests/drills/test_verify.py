"""perseas verify: for an idle store it reports where mirrors differ and which it could not compare.
For a busy store it never raises a false alarm and never misses a difference."""
import contextlib
import os
import pty
import signal
import subprocess
import threading

from binding import CREATE, Store
from drill import (FAILURE, MIB, NO, OK, PARTLY, command_line, die_with_parent, fill, flip,
                   mirror_list, run_command, status_of, wait_even, wait_for, wait_ownerless)
from relay import Relay
from test_recover import crc32c
from teller import SECONDS, tellers  # noqa: F401

QUIET = 5 * MIB + 123                   # bytes of a segment that nobody changes
ALLOWED = 2000                          # transactions that fit into the log, of 5 KiB at most


def corrupt(daemon, store, offset, size=0):
    """Changes a byte of the only segment of at least this size, behind the daemon's back."""
    path, = [p for p in (daemon.memory / store).glob("segment-*") if p.stat().st_size >= size]
    flip(path, offset)


# --- idle stores ---

def test_verify_finds_a_changed_byte(perseas, mirrors):
    """After the first pieces of 2 MiB of the segment, on one of three mirrors, then of two."""
    daemons = mirrors(3)
    fill("s", daemons, {"accounts": b"contents" * (17 * MIB // 8)})
    assert perseas("verify", "s", mirrors=daemons).status == OK
    corrupt(daemons[1], "s", 16 * MIB + 77)
    done = perseas("verify", "s", mirrors=daemons)
    assert done.status == NO, done
    line, = done.out.splitlines()
    assert line.startswith(daemons[1].address) and "'accounts'" in line
    assert "first at offset %d (1 byte in 1 of 9 pieces)" % (16 * MIB + 77) in line
    assert perseas("verify", "s", mirrors=daemons[:2]).status == NO


def test_verify_finds_a_changed_byte_under_a_live_owner(perseas, mirrors):
    """The owner commits nothing in the meantime. No image has a majority, so the command only
    reports that they differ."""
    daemons = mirrors(2)
    with Store("s", mirror_list(daemons), flags=CREATE) as store:
        store.map("accounts", 4096)
        store.publish()
        wait_even("s", daemons)
        assert perseas("verify", "s", mirrors=daemons).status == OK
        corrupt(daemons[0], "s", 5)
        done = perseas("verify", "s", mirrors=daemons)
        assert done.status == NO and "first at offset 5 (1 byte in 1 of 1 pieces)" in done.out, done


def test_verify_compares_mirrors_that_stand_at_different_transactions(perseas, mirrors):
    """One of three mirrors was down for a transaction that changed nothing, and then, under another
    owner, for one that changed something: all are compared in the state of the last transaction
    that it has."""
    daemons = mirrors(3)
    with Store("s", mirror_list(daemons), flags=CREATE) as store:
        store.map("accounts", 4096)
        store.publish()
        wait_even("s", daemons)
        daemons[1].kill9()
        store.write("accounts", 0, b"\0")
        wait_even("s", [daemons[0], daemons[2]])
    daemons[1].restart()
    assert perseas("verify", "s", mirrors=daemons).status == OK
    daemons[1].kill9()
    with Store("s", mirror_list(daemons)) as store:
        store.map("accounts")
        store.write("accounts", 0, b"changed")
        wait_even("s", [daemons[0], daemons[2]])
    daemons[1].restart()
    done = perseas("verify", "s", mirrors=daemons)
    assert done.status == OK and "epoch 2, transaction 1\n" in done.out, done
    assert "%s: stands at transaction 1, 2 behind" % daemons[1].address in done.out, done
    corrupt(daemons[2], "s", 4000)
    done = perseas("verify", "s", mirrors=daemons)
    assert done.status == NO and "first at offset 4000" in done.out, done
    corrupt(daemons[2], "s", 4000)
    assert perseas("recover", "s", mirrors=daemons).status == OK
    assert perseas("verify", "s", mirrors=daemons).status == OK


def test_verify_says_whom_it_could_not_compare(perseas, mirrors):
    """One of three mirrors is down, one has lost its memory: the last one cannot be compared with
    anything."""
    daemons = mirrors(3)
    fill("s", daemons, {"accounts": b"contents"})
    daemons[0].lose_memory()
    daemons[0].restart()
    done = perseas("verify", "s", mirrors=daemons)
    assert done.status == PARTLY and "2 of 3 mirrors hold the same" in done.out, done
    daemons[1].kill9()
    done = perseas("verify", "s", mirrors=daemons)
    assert done.status == PARTLY and "two must be" in done.err, done
    assert perseas("verify", "s", mirrors=daemons[:1]).status == NO
    assert perseas("verify", "s", mirrors=daemons[1:2]).status == FAILURE


def test_verify_of_a_store_with_one_mirror_has_nothing_to_object(perseas, mirrors):
    """n = 1."""
    daemons = mirrors(1)
    fill("s", daemons, {"accounts": b"contents"})
    done = perseas("verify", "s", mirrors=daemons)
    assert done.status == OK and "1 of 1 mirrors" in done.out, done


def test_verify_finds_a_segment_that_is_missing(perseas, mirrors):
    """One of three mirrors was down while a segment was published."""
    daemons = mirrors(3)
    fill("s", daemons, {"accounts": b"contents"})
    daemons[2].kill9()
    fill("s", daemons, {"more": b"contents"})
    daemons[2].restart()
    done = perseas("verify", "s", mirrors=daemons)
    assert done.status == PARTLY, done
    assert "%s: segment 'more' is missing" % daemons[2].address in done.out


def test_verify_finds_another_segment_of_the_same_name(mirrors):
    """One of three has the segment of another owner's publish: name, size, address and transaction
    are the same, the random id is not."""
    daemons = mirrors(3)
    fill("s", daemons, {"accounts": b"contents"})
    segment, = status_of("s", daemons)["segments"]
    own = bytes.fromhex(segment["random_id"])
    daemons[1].kill9()
    path = daemons[1].memory / "s" / "header"
    data = path.read_bytes()
    packed = data[24:24 + int.from_bytes(data[12:16], "little")]
    assert packed.count(own) == 1
    packed = packed.replace(own, bytes(15) + b"\1")
    path.write_bytes(data[:16] + crc32c(packed).to_bytes(4, "little") + bytes(4) + packed)
    daemons[1].restart()
    done = run_command("verify", "s", mirrors=daemons)
    assert done.status == NO, done
    line, = [each for each in done.out.splitlines() if each.startswith(daemons[1].address)]
    assert "segment 'accounts' has another id, size, address or random id" in line, done


def read_terminal(fd):
    """Returns what programs print to a terminal until the last of them ends."""
    text = b""
    with contextlib.suppress(OSError):      # EIO: none has it open any more
        while True:
            text += os.read(fd, 4096)
    return text.decode()


def test_verify_shows_how_far_it_is(mirrors):
    """Beside a live owner, whose mirrors send their bytes. Each of their answers takes a tenth of a
    second: the whole takes longer than the half second of work for which no bar is drawn."""
    daemons = mirrors(3)
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(Store("s", mirror_list(daemons), flags=CREATE))
        store.map("quiet", QUIET)
        store.publish()
        wait_even("s", daemons)
        relays = [stack.enter_context(Relay(daemon)) for daemon in daemons]
        for relay in relays:
            relay.delay(50)
        ours, theirs = pty.openpty()
        stack.callback(os.close, ours)
        verify = stack.enter_context(subprocess.Popen(
            command_line("verify", "s", "--mirrors", mirror_list(relays)), stderr=theirs,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=die_with_parent))
        os.close(theirs)
        shown = read_terminal(ours)
        assert verify.wait(SECONDS) == OK, shown
    percents = [int(bar.partition("%")[0]) for bar in shown.split("] ")[1:]]
    assert percents and percents == sorted(percents) and "quiet [" in shown, shown


# --- busy stores ---

class Busy:
    """An owner with an unchanging segment, which runs transactions on another one."""

    def __init__(self, tellers, daemons):  # noqa: F811
        self.desk = tellers.desk()
        self.desk.open("s", daemons, "create")
        self.desk.ask("map", "quiet", QUIET)
        self.desk.ask("publish")
        self.desk.books()
        self.desk.settle()              # a mirror that lacks a segment is rightly said to be behind
        self.halted, self.count, self.most = threading.Event(), 0, ALLOWED
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        self.advances()

    def run(self):
        # One transaction at a time: mirrors that take turns on two processors can keep up. And no
        # more during a comparison than the log holds: over shm, commits do not wait for a mirror.
        while not self.halted.is_set():
            self.count = self.desk.run(1)
            wait_for(lambda: self.count < self.most or self.halted.is_set(), SECONDS, "leave")

    def advances(self):
        """Waits until it has committed more. Allows it ALLOWED transactions from now on."""
        before = self.count
        self.most = before + ALLOWED
        wait_for(lambda: self.count > before, SECONDS, "a transaction")

    def halt(self):
        """Stops it and checks its books."""
        self.halted.set()
        self.thread.join(SECONDS)
        assert self.desk.check() == self.count


def test_mirrors_of_a_busy_store_are_never_said_to_differ(tellers, mirrors, fabric):  # noqa: F811
    """Verifies three mirrors repeatedly while the owner commits."""
    daemons = mirrors(3, fabric)
    busy, moved = Busy(tellers, daemons), 0
    for _ in range(15):
        before = busy.count
        done = run_command("verify", "s", mirrors=daemons)
        assert done.status == OK and "3 of 3 mirrors hold the same" in done.out, done
        assert "while it runs" in done.out
        # On a busy machine no commit may return during a comparison, but not every time.
        moved += busy.count > before
        busy.advances()
    assert moved
    busy.halt()
    assert busy.desk.figures()["reconnects"] == 0


def test_one_flipped_byte_of_a_busy_store_is_found(tellers, mirrors, fabric):  # noqa: F811
    """In the unchanging segment, at its ends and between: the difference is named by mirror,
    segment and offset."""
    daemons = mirrors(3, fabric)
    busy = Busy(tellers, daemons)
    for number, offset in enumerate((0, 2 * MIB, 3 * MIB + 77, QUIET - 1)):
        daemon = daemons[number % 3]
        busy.advances()
        corrupt(daemon, "s", offset, QUIET)
        done = run_command("verify", "s", mirrors=daemons)
        assert done.status == NO, done
        line, = done.out.splitlines()
        assert line.startswith(daemon.address + ": segment 'quiet' differs")
        assert "first at offset %d (1 byte in 1 of 3 pieces)" % offset in line
        corrupt(daemon, "s", offset, QUIET)
        assert run_command("verify", "s", mirrors=daemons).status == OK
    busy.halt()


def test_a_mirror_that_hangs_is_left_out_of_a_busy_store(tellers, mirrors):  # noqa: F811
    """SIGSTOP: the owner continues with the other two, which are compared."""
    daemons = mirrors(3)
    busy = Busy(tellers, daemons)
    daemons[2].stop()

    def compared():
        """Returns once the other two have answered in time."""
        busy.advances()
        done = run_command("verify", "s", "--connect-timeout", "300", mirrors=daemons)
        return "2 of 3 mirrors hold the same" in done.out and done

    done = wait_for(compared, SECONDS, "two mirrors that are compared")
    assert done.status == PARTLY and daemons[2].address in done.err, done
    daemons[2].cont()
    busy.halt()


def wait_followed(daemons):
    """Waits until all mirrors of a store that runs are whole and have what its newest one had: one
    that lacks a segment, or is copied anew, is rightly not compared."""
    newest = status_of("s", daemons)["newest"]["seq"]

    def followed():
        told = status_of("s", daemons)["mirrors"]
        return all(m["state"] == "consistent" and m["slot"] and m["slot"]["seq"] >= newest
                   for m in told)

    wait_for(followed, SECONDS, "mirrors that have what was committed")


def test_what_a_crash_left_unfinished_is_no_difference(tellers, mirrors, fabric):  # noqa: F811
    """The owner is killed several times while it commits, and no recovery has run yet. The log
    holds what it commits in seconds: a mirror that lags by more cannot be compared."""
    daemons = mirrors(3, fabric)
    for number in range(5):
        made = ("create", "log=%d" % (64 * MIB)) if number == 0 else ()
        runner = tellers.run("s", daemons, *made)
        runner.advances(20 + 7 * number)
        wait_followed(daemons)
        runner.kill9()
        wait_ownerless("s", daemons)
        done = run_command("verify", "s", mirrors=daemons)
        assert done.status == OK, done


def test_a_history_of_its_own_is_not_compared(mirrors):
    """One of three mirrors took transactions that the others never had; then those continued."""
    daemons = mirrors(3)
    with Store("s", mirror_list(daemons), flags=CREATE) as store:
        store.map("accounts", 4096)
        store.publish()
        wait_even("s", daemons)
    daemons[2].kill9()
    with Store("s", mirror_list(daemons)) as store:
        store.map("accounts")
        store.write("accounts", 0, b"others")
    daemons[2].restart()
    done = run_command("verify", "s", mirrors=daemons)
    assert done.status == OK and "stands at transaction 1" in done.out, done


def test_a_scrub_goes_on_until_it_is_told_to_stop(tellers, mirrors):  # noqa: F811
    """A scrub every second; SIGTERM between two rounds, SIGINT during one. A difference found once
    counts."""
    daemons = mirrors(2)
    busy = Busy(tellers, daemons)
    for number, status in ((signal.SIGTERM, OK), (signal.SIGINT, NO)):
        scrub = subprocess.Popen(
            command_line("verify", "s", "--repeat", "1", "--mirrors", mirror_list(daemons)),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
        try:
            for _ in range(2):
                busy.advances()
                line = scrub.stdout.readline()
                assert ("hold the same" in line) == (status == OK), line
            scrub.send_signal(number)
            assert scrub.wait(SECONDS) == status, scrub.stderr.read()
        finally:
            scrub.kill()
            scrub.wait()
            scrub.stdout.close()
            scrub.stderr.close()
        corrupt(daemons[0], "s", 4711, QUIET)
    busy.halt()
