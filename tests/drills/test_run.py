"""`perseas run`: a program owns a store wherever no other owner lives, and its supervisor is told
what happened."""
import concurrent.futures
import ctypes
import hashlib
import math
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from binding import CREATE, PerseasError, Store
from drill import (BUILD, FABRICS, HERE, NO, SECONDS, TOP, USAGE, WITH_TLS, die_with_parent, fill,
                   mirror_list, status_of, wait_for)
from relay import Relay
from sentinel import attempt

PR_SET_CHILD_SUBREAPER = 36
NO_STORE, UNREACHED, CANNOT, NOT_FOUND, SIGNALLED = 123, 124, 126, 127, 128

# An application that owns the store that the environment names.
APPLICATION = ("sh", "-c", 'exec "%s" "%s" "$PERSEAS_STORE" "$PERSEAS_MIRRORS" hold'
               % (sys.executable, HERE / "binding.py"))

# An application that prints the signals that it gets, and ends with 7 at the first SIGTERM. Signals
# are blocked until it waits: with pause(), one that comes just before would be reported too late.
LISTENER = (sys.executable, "-uc", """
import signal, sys
heard = {getattr(signal, "SIG" + each) for each in ("HUP", "INT", "QUIT", "USR1", "USR2", "TERM")}
signal.pthread_sigmask(signal.SIG_BLOCK, heard)
print("ready")
while True:
    number = signal.sigwait(heard)
    print(signal.Signals(number).name)
    if number == signal.SIGTERM:
        sys.exit(7)
""")


class Run:
    """A `perseas run`, its messages, and the output of its COMMAND."""

    def __init__(self, folder, store, daemons, command, options, subreaper, environment):
        def prepare():
            die_with_parent()
            if subreaper:
                ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)

        self.log, self.output = folder / "log", folder / "output"
        with open(self.log, "wb") as log, open(self.output, "wb") as output:
            self.process = subprocess.Popen(
                [BUILD / "perseas", "run", store, "--mirrors", mirror_list(daemons), *options,
                 "--", *command], stdin=subprocess.PIPE, stdout=output, stderr=log,
                env=dict(os.environ, **environment), preexec_fn=prepare)

    def said(self):
        return self.log.read_text()

    def printed(self):
        """Returns complete lines: Python writes the end of an unbuffered line separately, and
        COMMAND may be ended before."""
        *lines, _ = self.output.read_text().split("\n")
        return lines

    def wait_said(self, text, times=1):
        wait_for(lambda: self.said().count(text) >= times, SECONDS, "'%s' of a run" % text)

    def wait_printed(self, line, times=1):
        wait_for(lambda: self.printed().count(line) >= times, SECONDS, "'%s' of COMMAND" % line)

    def command(self):
        """Returns the process id of COMMAND."""
        path = pathlib.Path("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid))
        pid, = path.read_text().split()
        return int(pid)

    def signal(self, number):
        self.process.send_signal(number)

    def ended(self):
        return self.process.wait(SECONDS)


@pytest.fixture
def run(tmp_path):
    """run(store, daemons, command=APPLICATION, options=(), subreaper=False, **environment) returns
    a Run."""
    runs = []

    def start(store, daemons, command=APPLICATION, options=(), subreaper=False, **environment):
        folder = tmp_path / ("run-%d" % len(runs))
        folder.mkdir()
        runs.append(Run(folder, store, daemons, command, options, subreaper, environment))
        return runs[-1]

    yield start
    for each in runs:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()
        each.process.stdin.close()


YIELDS = 5    # seconds for which other standbys leave the store to a named one: turn.h
LIVES, RUNS, OWNS = "standby: its owner lives", "COMMAND runs", "COMMAND runs, and owns the store"


# --- taking over ---

@pytest.mark.parametrize("fabric", FABRICS)
def test_a_standby_takes_over_at_once(fabric, bank, owner, run):
    """The mirrors notice the end of the owner's connections and tell the standbys. By its silence
    alone, they would declare the owner dead after a day."""
    daemons = bank(3, fabric, ("--owner-timeout", "86400"))
    first = owner("bank", daemons)
    standby = run("bank", daemons)
    standby.wait_said(LIVES)
    first.kill9()
    standby.wait_printed("holding")
    standby.wait_said(OWNS)


# It changes random bytes until it is killed, so few at a time that the log would take minutes to
# wrap around: a copy whose log wrapped around is abandoned.
BUSY = (sys.executable, "-uc", """
import os, random, sys, time
random.seed(1)
sys.path.insert(0, %r)
from binding import Store
with Store(os.environ["PERSEAS_STORE"], os.environ["PERSEAS_MIRRORS"]) as store:
    store.map("accounts")
    for count in range(1 << 30):
        store.write("accounts", random.randrange((8 << 20) - 100),
                    random.randbytes(random.randrange(1, 100)))
        time.sleep(0.001)
        if count == 200:
            print("busy")
""" % str(HERE))

# It prints what it has.
PRINTER = (sys.executable, "-uc", """
import hashlib, os, sys
sys.path.insert(0, %r)
from binding import Store
with Store(os.environ["PERSEAS_STORE"], os.environ["PERSEAS_MIRRORS"],
           recovery=int(sys.argv[1])) as store:
    store.map("accounts")
    print(hashlib.sha256(store.read("accounts", 0, 8 << 20)).hexdigest())
    print("copied" if "in the standby's copy" in store.report() else store.report())
""" % str(HERE))


def copied(runner):
    """Returns the bytes that a run's copy has."""
    for each in pathlib.Path("/proc/%d/fd" % runner.process.pid).iterdir():
        try:
            if "perseas-warm" in os.readlink(each):
                return 512 * os.stat(each).st_blocks
        except FileNotFoundError:
            pass
    return 0


@pytest.mark.parametrize("recovery", (0, 1))
@pytest.mark.parametrize("fabric", FABRICS)
def test_command_inherits_a_copy_of_the_memory(fabric, recovery, mirrors, run):
    """The owner is killed while it changes the store. What COMMAND got from the copy and the
    mirrors is what the mirrors have."""
    daemons = mirrors(3, fabric)
    fill("bank", daemons, {"accounts": random.Random(1).randbytes(8 << 20)})
    first = run("bank", daemons, BUSY)
    first.wait_printed("busy")
    standby = run("bank", daemons, (*PRINTER, str(recovery)), ("--warm",))
    standby.wait_said(LIVES)
    wait_for(lambda: copied(standby) > 7 << 20, SECONDS, "a copy of most of the memory")
    victim = first.command()
    first.process.kill()
    first.process.wait()
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        pass
    assert standby.process.wait(SECONDS) == 0
    digest, how = standby.printed()[:2]
    assert how == "copied"
    with Store("bank", mirror_list(daemons)) as store:
        store.map("accounts")
        assert hashlib.sha256(store.read("accounts", 0, 8 << 20)).hexdigest() == digest


def test_command_hears_of_mirrors_that_do_not_answer(bank, run):
    """COMMAND's open would wait for them again, without an owner in the meantime. It is not told
    about mirrors that answer, whatever the environment had before."""
    daemons = bank(3)
    fill("alone", daemons[:1], {"accounts": bytes(4096)})
    tell = ("sh", "-c", 'echo "$PERSEAS_INHERITED"; echo told; exec sleep 1000')
    first = run("alone", daemons[:1], tell, ("--connect-timeout", str(1000 * SECONDS)),
                PERSEAS_INHERITED="silent 1 127.0.0.1:1")
    first.wait_printed("told")
    assert not [line for line in first.printed() if line.startswith("silent")]
    daemons[1].stop()
    second = run("bank", daemons, tell, ("--connect-timeout", "1000"))
    second.wait_printed("told")
    heard, = re.findall(r"^silent \d+ (.*)$", "\n".join(second.printed()), re.M)
    # A mirror that is late on a busy machine may be named, too.
    assert daemons[1].address in heard.split(",")


@pytest.mark.parametrize("fabric", WITH_TLS)
def test_of_two_standbys_one_wins_and_the_other_waits_on(fabric, bank, owner, run):
    """Both may start COMMAND; the mirrors accept one. When its host is gone, the other one takes
    over."""
    daemons = bank(3, fabric)
    first = owner("bank", daemons)
    both = [run("bank", daemons), run("bank", daemons)]
    for each in both:
        each.wait_said(LIVES)
    first.kill9()
    wait_for(lambda: any("holding" in each.printed() for each in both), SECONDS, "an owner")
    winner, other = sorted(both, key=lambda each: "holding" not in each.printed())
    other.wait_said(LIVES, 2)
    assert "holding" not in other.printed()
    assert other.process.poll() is None
    winner.process.kill()
    other.wait_printed("holding")
    other.wait_said(OWNS)


def test_those_of_a_lower_order_come_first(bank, owner, run):
    """The second one would wait for 25 seconds, and finds an owner before."""
    daemons = bank(3)
    first = owner("bank", daemons)
    late = run("bank", daemons, options=("--order", "100"))
    soon = run("bank", daemons)
    for each in (late, soon):
        each.wait_said(LIVES)
    first.kill9()
    soon.wait_said(OWNS)
    late.wait_said(LIVES, 2)
    assert RUNS not in late.said()


def test_an_owner_that_hangs_is_replaced(bank, owner, run):
    """Its connections stay open and silent: the mirrors declare it dead, and tell the standbys."""
    daemons = bank(3, options=("--owner-timeout", "1"))
    first = owner("bank", daemons)
    standby = run("bank", daemons)
    # An owner that did not run for a second is replaced before.
    wait_for(lambda: LIVES in standby.said() or RUNS in standby.said(), SECONDS, "a standby")
    first.stop()
    standby.wait_printed("holding")
    standby.wait_said(OWNS)


def test_it_waits_for_mirrors_that_an_open_needs(bank, owner, run):
    """With one of three mirrors nobody can open the store; the standby waits until two are back."""
    daemons = bank(3)
    first = owner("bank", daemons)
    standby = run("bank", daemons)
    standby.wait_said(LIVES)
    daemons[1].kill9()
    daemons[2].kill9()
    first.kill9()
    standby.wait_said("standby: 1 of 3 mirrors answer")
    assert RUNS not in standby.said()
    daemons[2].restart()
    standby.wait_printed("holding")


def test_mirrors_that_were_restarted_tell_again(bank, owner, run):
    """Each mirror ends its connections once, while the owner continues with the others."""
    daemons = bank(3)
    first = owner("bank", daemons)
    standby = run("bank", daemons)
    standby.wait_said(LIVES)

    def whole():
        """Waits for the owner's report and each mirror's: another mirror's report about the one
        that was away may be outdated."""
        told = status_of("bank", daemons)
        owner = told.get("owner") or {}
        return [m["state"] for m in owner.get("mirrors", [])] == ["live"] * 3 and \
            all(m["live"] for m in told["mirrors"])

    for each in daemons:
        each.restart()
        wait_for(whole, SECONDS, "an owner with all its mirrors")
    assert RUNS not in standby.said()
    first.kill9()
    standby.wait_printed("holding")


def test_it_finds_mirrors_that_only_the_roster_names(bank, owner, run):
    """The list has one of three mirrors, which does not suffice but knows the others."""
    daemons = bank(3)
    first = owner("bank", daemons)
    standby = run("bank", daemons[:1])
    standby.wait_said(LIVES)
    first.kill9()
    standby.wait_printed("holding")


# --- owners that fall silent ---

BRIEF = 0.25    # seconds, for perseasd's --owner-timeout
SILENCE = 0.1   # the same, where segments take longer to create


def end(daemons):
    """Ends an attempt and frees its mirrors' memory."""
    for each in daemons:
        each.lose_memory()


@pytest.mark.parametrize("fabric", WITH_TLS)
def test_an_owner_that_hangs_is_replaced_within_twice_the_timeout(fabric, bank, owner, run):
    """Its connections stay open, so only its silence tells. Measures the time from SIGSTOP to the
    start of COMMAND."""
    def hangs(sentinel):
        daemons = bank(3, fabric, ("--owner-timeout", str(BRIEF)))
        first = owner("bank", daemons)
        standby = run("bank", daemons)
        wait_for(lambda: LIVES in standby.said() or RUNS in standby.said(), SECONDS, "a standby")
        if RUNS in standby.said():
            # The owner did not run for as long, so this attempt decides nothing.
            sentinel.longest = math.inf
            end(daemons)
            return math.inf
        sentinel.begin(standby.process.pid, *(each.pid for each in daemons))
        first.stop()
        standby.wait_said(RUNS)
        took = sentinel.passed()
        standby.wait_printed("holding")
        end(daemons)
        return took

    attempt(2 * BRIEF, hangs)


@pytest.mark.timing("heartbeats within a tenth of a second")
@pytest.mark.parametrize("fabric", WITH_TLS)
def test_an_owner_that_waits_or_works_is_not_silent(fabric, mirrors, run):
    """Its heartbeats continue when it is idle, and when it creates and publishes segments."""
    def lives(sentinel):
        daemons = mirrors(3, fabric, ("--owner-timeout", str(SILENCE)))
        sentinel.begin()
        with Store("bank", mirror_list(daemons), flags=CREATE) as store:
            standby = run("bank", daemons)
            wait_for(lambda: LIVES in standby.said() or RUNS in standby.said(), SECONDS,
                     "a standby")
            try:
                live = all(works(store, daemons, number) for number in range(2))
            except PerseasError as error:
                assert error.name == "PERSEAS_EFENCED"
                live = False
            replaced = RUNS in standby.said()
        if not replaced:
            standby.wait_printed("holding")
        end(daemons)
        return 0 if live and not replaced else math.inf

    def works(store, daemons, number):
        """Returns whether all mirrors report its owner as alive for a while afterward."""
        store.map("large-%d" % number, 64 << 20)
        store.publish()
        store.write("large-%d" % number, 0, b"here")
        live, until = True, time.monotonic() + BRIEF
        while time.monotonic() < until:
            live &= all(mirror["live"] for mirror in status_of("bank", daemons)["mirrors"])
        return live

    attempt(SILENCE, lives)


@pytest.mark.timing("heartbeats within a second")
def test_an_owner_that_opens_slowly_is_not_silent(bank):
    """One mirror's answers take 1.2 s. Mirrors that have granted the claim get heartbeats
    meanwhile, so no other owner gets the store. Between its promise and the grant a mirror rolls
    its image back, and has no session."""
    def opens(sentinel):
        daemons = bank(3, options=("--owner-timeout", "1"))
        with Relay(daemons[0]) as relay, concurrent.futures.ThreadPoolExecutor(1) as pool:
            relay.delay(600)
            addresses = ",".join([relay.address, *(each.address for each in daemons[1:])])
            sentinel.begin()
            opening = pool.submit(Store, "bank", addresses)
            live = remain_live(daemons[1:], opening)
            opening.result().close()
        end(daemons)
        return 0 if live else math.inf

    def remain_live(others, opening):
        """Returns whether each mirror that has granted the claim reports the owner as alive from
        then on."""
        before = status_of("bank", others)["newest"]["epoch"]
        live, granted = True, set()
        while not opening.done():
            told = status_of("bank", others)["mirrors"][:2]
            now = {mirror["address"] for mirror in told
                   if mirror["promised_epoch"] > before and mirror["live"]}
            live, granted = live and granted <= now, granted | now
        return live and len(granted) == 2

    attempt(1, opens)


# --- signals, exit statuses, notifications ---

def test_signals_are_passed_on(bank, run):
    """For signals that end run, COMMAND decides when and how to end."""
    daemons = bank(1)
    runner = run("bank", daemons, LISTENER)
    runner.wait_printed("ready")
    for name in ("HUP", "USR1", "USR2", "INT", "QUIT"):
        runner.signal(getattr(signal, "SIG" + name))
        runner.wait_printed("SIG" + name)
    assert runner.process.poll() is None
    runner.signal(signal.SIGTERM)
    assert runner.ended() == 7


def test_a_standby_ends_when_it_is_told_to(bank, run):
    """Other signals are for COMMAND, which does not run."""
    daemons = bank(1)
    with Store("bank", mirror_list(daemons)):
        runner = run("bank", daemons)
        runner.wait_said(LIVES)
        runner.signal(signal.SIGHUP)
        runner.signal(signal.SIGUSR1)
        runner.signal(signal.SIGTERM)
        assert runner.ended() == 0
    assert RUNS not in runner.said()


@pytest.mark.parametrize("command, status", [
    (("true",), 0),
    (("sh", "-c", "exit 9"), 9),
    (("sh", "-c", "kill -9 $$"), SIGNALLED + signal.SIGKILL),
    (("/nowhere/at-all",), NOT_FOUND),
    (("/dev/null",), CANNOT),
    (("sh", "-c", 'test -z "$NOTIFY_SOCKET" && exit 8'), 8),
    (("sh", "-c", "exec printf '%s|\\n' \"$@\"", "sh", "--order", "x y", "--"), 0),
], ids=["done", "status", "signal", "not-found", "cannot", "without-notify", "words"])
def test_its_status_is_that_of_command(command, status, bank, run, tmp_path):
    """A COMMAND that ends with 0 has completed its work."""
    daemons = bank(1)
    runner = run("bank", daemons, command, ("--restarts", "0"),
                 NOTIFY_SOCKET=str(tmp_path / "nobody"))
    assert runner.ended() == status
    if command[0].startswith("/"):
        assert "'%s' cannot be started: " % command[0] in runner.said()
    if "--" in command:
        assert runner.printed() == ["--order|", "x y|", "--|"]


def test_bad_input_has_statuses_of_its_own(mirrors, run, perseas):
    daemons = mirrors(1)
    no_store = run("bank", daemons)
    assert no_store.ended() == NO_STORE
    assert "no mirror has a store 'bank'" in no_store.said()
    fill("bank", daemons, {"accounts": bytes(4096)})
    daemons[0].kill9()
    gone = run("bank", daemons, options=("--patience", "0.3"))
    assert gone.ended() == UNREACHED
    assert "see whether the mirrors run, and whether the list is right" in gone.said()
    for words, sentence in [
            (("run", "bank", "m1:1"), "which COMMAND? give it behind --"),
            (("run", "bank", "m1:1", "--"), "which COMMAND? give it behind --"),
            (("run", "bank", "m1:1", "--order", "101", "--", "true"), "--order"),
            (("run", "bank", "m1:1", "true"), "one word too many"),
            (("run", "bank", "a:b:c", "--", "true"), "a:b:c"),
            (("status", "bank", "--restarts", "1"), "status takes no --restarts")]:
        done = perseas(*words)
        assert done.status == USAGE, done
        assert sentence in done.err


def test_a_store_that_is_dropped_ends_the_standby(bank, run, perseas):
    """There is nothing left to wait for."""
    daemons = bank(1)
    with Store("bank", mirror_list(daemons)):
        runner = run("bank", daemons, options=("--order", "100"))
        runner.wait_said(LIVES)
        assert perseas("drop", "bank", daemons[0].address, "--yes").status == NO
    assert perseas("drop", "bank", daemons[0].address, "--yes").status == 0
    assert runner.ended() == NO_STORE


def test_the_service_manager_is_told(bank, run, tmp_path):
    """A standby is ready: units that depend on the service need the store, wherever its owner
    is."""
    daemons = bank(1)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.bind(str(tmp_path / "notify"))
        notices.settimeout(SECONDS)

        def hear(state):
            while state not in notices.recv(4096).decode():
                pass

        with Store("bank", mirror_list(daemons)):
            runner = run("bank", daemons, NOTIFY_SOCKET=str(tmp_path / "notify"))
            hear("READY=1")
            hear("STATUS=standby: its owner lives")
        hear("STATUS=COMMAND runs, and owns the store")
        runner.signal(signal.SIGTERM)
        hear("STOPPING=1")
        assert runner.ended() == SIGNALLED + signal.SIGTERM


def test_who_has_a_copy_tells_how_much_it_has(mirrors, run, tmp_path):
    """Operators see it in `systemctl status`, which shows STATUS=, and in the journal."""
    daemons = mirrors(3)
    fill("bank", daemons, {"accounts": random.Random(1).randbytes(8 << 20)})
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.bind(str(tmp_path / "notify"))
        notices.settimeout(SECONDS)
        with Store("bank", mirror_list(daemons)):
            runner = run("bank", daemons, options=("--warm",),
                         NOTIFY_SOCKET=str(tmp_path / "notify"))
            told = ""
            while not told.endswith("; the copy has 100 % of its memory"):
                told = notices.recv(4096).decode()
            assert told.startswith("STATUS=standby: its owner lives")
            runner.wait_said(" % of its memory (8.0 MiB)")
            said = re.findall("store 'bank': the copy has (.*) % of its memory", runner.said())
            assert len(said) == 1 and 90 <= int(said[0]) <= 100
            runner.signal(signal.SIGTERM)
            runner.ended()


def test_the_unit_starts_what_its_file_names(bank):
    """ExecStart as systemd parses it: %i is the store, and a variable alone is split into words.
    The list of mirrors is in the environment."""
    daemons = bank(1)
    unit = (TOP / "deploy/perseas-owner@.service.in").read_text()
    line, = re.findall(r"^ExecStart=(.*)$", unit, re.M)
    named = {"$OPTIONS": ["--order", "0", "--restarts", "0"],
             "$COMMAND": ["sh", "-c", 'test "$PERSEAS_STORE" = bank && exit 9']}
    words = [part for word in line.replace("%i", "bank").split()
             for part in named.get(word, [word])]
    assert words[0] == "@BINDIR@/perseas"
    done = subprocess.run([BUILD / "perseas", *words[1:]], timeout=SECONDS, stderr=subprocess.PIPE,
                          env=dict(os.environ, PERSEAS_MIRRORS=mirror_list(daemons)))
    assert done.returncode == 9
    settled = re.findall(r"^RestartPreventExitStatus=(.*)$", unit, re.M)
    assert settled == ["%d %d %d %d" % (USAGE, NO_STORE, CANNOT, NOT_FOUND)]
    assert "\nSuccessExitStatus=%d\n" % (SIGNALLED + signal.SIGTERM) in unit
