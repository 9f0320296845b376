"""perseas top, and what an owner tells of itself: figures and events."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from drill import (BUILD, FAILURE, OK, PARTLY, die_with_parent, mirror_list, run_command,
                   status_of)
from teller import SECONDS, tellers, until  # noqa: F401

NOBODY = "127.0.0.1:1"
SHORT = ("--interval", "0.2")
ENTER, LEAVE, HOME = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[H"


def runner(tellers, store, daemons, acks=2):
    """An owner that works until the test is over."""
    owner = tellers.run(store, daemons, "create", "acks=%d" % acks)
    owner.advances(50)
    return owner


# --- what an owner tells ---

def test_an_owner_is_told_of_its_mirrors(mirrors, tellers, fabric):
    """One dies and comes back, another loses its memory, another owner takes the store: the
    application is told, by a thread of the library's."""
    daemons = mirrors(3, fabric)
    names = [daemon.address for daemon in daemons]
    desk = tellers.desk()
    desk.open("books", daemons, "create", "acks=2")
    desk.books()
    # Two of three hold the publish now. One that ended without it would be copied whole.
    until(lambda: run_command("verify", "books", mirrors=daemons).status == OK, "all mirrors")
    assert desk.events() == []
    daemons[0].kill9()
    until(lambda: desk.events() == [("mirror-down", names[0])], "the end of a mirror")
    daemons[0].restart()
    until(lambda: desk.events()[1:] == [("mirror-live", names[0])], "its return")
    daemons[1].lose_memory()
    daemons[1].restart()
    until(lambda: desk.events()[2:] == [(each, names[1]) for each in (
        "mirror-down", "resync-begun", "resync-done", "mirror-live")], "a copy")
    other = tellers.desk()
    other.open("books", daemons, "takeover")
    until(lambda: ("fenced", "") in desk.events(), "the fence")
    assert [kind for kind, _ in desk.events()].count("fenced") == 1


def test_an_owner_knows_how_long_its_commits_take(mirrors, tellers, fabric):
    """Where each has to wait for the network all are timed, over shared memory some are."""
    desk = tellers.desk()
    desk.open("books", mirrors(1, fabric), "create")
    desk.books()
    desk.run(2000)
    figures = desk.figures()
    assert 0 < figures["latency_p50_ns"] <= figures["latency_p99_ns"] <= figures["latency_max_ns"]
    assert figures["timed"] == 2000 if fabric != "shm" else 15 <= figures["timed"] <= 200
    assert figures["doubts"] == 0


# --- top ---

class Running:
    """`perseas top` that goes on, its output through a pipe."""

    def __init__(self, *words):
        self.process = subprocess.Popen([str(BUILD / "perseas"), "top", *words],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True,
                                        preexec_fn=die_with_parent)

    def line(self):
        assert select.select([self.process.stdout], [], [], SECONDS)[0], "no output"
        return self.process.stdout.readline()

    def until(self, predicate):
        """The first JSON object for which it is true."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            told = json.loads(self.line())
            if predicate(told):
                return told
        raise TimeoutError

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        status = self.process.wait(SECONDS)
        said = self.process.stderr.read()
        for pipe in (self.process.stdout, self.process.stderr):
            pipe.close()
        return status, said


def answering(told):
    """Which mirrors have answered this look in time."""
    return [each["answers"] for each in told["addresses"]]


def the_store(told):
    """The only one. Nothing is told of it before a mirror has answered."""
    nothing = dict.fromkeys(("latency_ns", "tx_per_second", "mirrors", "owner"))
    return told["stores"][0] if told["stores"] else {**nothing, "mirrors": []}


def look(perseas, daemons):
    """What a look at the mirrors tells, all of which have answered it."""
    def answered():
        done = perseas("top", *SHORT, "--once", "--json", mirrors=daemons)
        return done.status == OK and done.json()

    return until(answered, "a look that is answered")


def test_top_tells_of_a_store_that_runs(perseas, mirrors, tellers, fabric):
    """Three mirrors, an owner that commits all the time."""
    daemons = mirrors(3, fabric)
    owner = runner(tellers, "books", daemons)
    # On a busy machine the owner may have no turn within an interval, and a mirror answer late.
    live = [(daemon.address, "live") for daemon in daemons]
    top = Running(*SHORT, "--json", "--mirrors", mirror_list(daemons))
    told = top.until(lambda told: answering(told) == [True] * 3 and
                     the_store(told)["latency_ns"] and the_store(told)["tx_per_second"] and
                     [(m["address"], m["state"]) for m in the_store(told)["mirrors"]] == live)
    assert top.end() == (OK, "")
    assert [each["address"] for each in told["addresses"]] == [d.address for d in daemons]
    store, = told["stores"]
    assert store["store"] == "books" and store["owner"]["epoch"] == store["epoch"] == 1
    assert store["figures"]["commits"] > 0
    latency = store["latency_ns"]
    assert 0 < latency["p50"] <= latency["p99"] <= latency["p999"]
    for mirror in store["mirrors"]:
        assert mirror["fabric"] == fabric
        assert mirror["lag"] >= 0 and mirror["resync"] is None
    for words, moves in (
            ((), lambda done: re.search(r"^books +1 +\d+ +[1-9]", done.out, re.MULTILINE)),
            (("--json",), lambda done: the_store(done.json())["tx_per_second"])):
        def shown():
            done = perseas("top", *SHORT, "--once", *words, mirrors=daemons)
            assert done.status == OK or "has not answered for" in done.err, done
            return done.status == OK and done.err == "" and moves(done)
        until(shown, "a store that moves")
    owner.page.tell_to_stop()
    owner.wait()


def test_top_of_a_store_that_rests(perseas, mirrors, tellers):
    """Its owner let go of it: no transactions, nobody to time them."""
    daemons = mirrors(1)
    owner = runner(tellers, "books", daemons, 1)
    owner.page.tell_to_stop()
    owner.wait()
    until(lambda: not status_of("books", daemons)["live"], "the end of the owner")
    store, = look(perseas, daemons)["stores"]
    assert store["owner"] is None and store["latency_ns"] is None and store["figures"] is None
    assert store["tx_per_second"] == 0
    assert store["mirrors"][0]["state"] == "consistent" and not store["mirrors"][0]["reported"]


def test_top_names_mirrors_that_do_not_answer(perseas, mirrors, tellers):
    """One is stopped, one is not there: the third tells of all, and what its owner sees of them."""
    daemons = mirrors(3)
    runner(tellers, "books", daemons, 1)
    daemons[1].stop()
    where = mirror_list(daemons[:2]) + "," + NOBODY

    def shown():
        """Once the first one has answered in time, and told of what its owner sees."""
        done = perseas("top", *SHORT, "--once", "--mirrors", where)
        assert done.status in (PARTLY, FAILURE), done
        return "1 of 3 mirrors answer" in done.out and \
            re.search("^books +%s " % re.escape(daemons[2].address), done.out, re.M) and done

    done = until(shown, "a mirror that answers")
    assert done.status == PARTLY, done
    for address in (daemons[1].address, NOBODY):
        assert re.search("^" + re.escape(address), done.out, re.MULTILINE), done
        assert address in done.err
    daemons[1].cont()
    done = perseas("top", *SHORT, "--once", "--mirrors", NOBODY)
    assert done.status == FAILURE and "no stores are seen" in done.out, done


def test_top_tells_stores_of_one_name_apart(perseas, mirrors):
    """Two mirrors, each with a store of its own."""
    daemons = mirrors(2)
    for daemon in daemons:
        assert perseas("create", "books", mirrors=[daemon]).status == OK
    stores = look(perseas, daemons)["stores"]
    assert [store["store"] for store in stores] == ["books", "books"]
    assert stores[0]["store_id"] != stores[1]["store_id"]


def test_top_goes_on_and_asks_again(mirrors, tellers):
    """A mirror dies, and comes back on its port; each interval is a line."""
    daemons = mirrors(2)
    runner(tellers, "books", daemons, 1)
    top = Running(*SHORT, "--json", "--mirrors", mirror_list(daemons))
    top.until(lambda told: answering(told) == [True, True] and the_store(told)["latency_ns"])
    daemons[1].kill9()
    told = top.until(lambda told: answering(told) == [True, False])
    assert daemons[1].address in told["addresses"][1]["error"]
    daemons[1].restart()
    top.until(lambda told: answering(told) == [True, True] and
              [m["state"] for m in the_store(told)["mirrors"]] == ["live", "live"] and
              the_store(told)["tx_per_second"])
    assert top.end() == (OK, "")


def test_top_prints_tables_where_there_is_no_terminal(mirrors, tellers):
    """Without a control character; SIGINT ends it."""
    daemons = mirrors(1)
    runner(tellers, "books", daemons, 1)
    top = Running(*SHORT, "--mirrors", mirror_list(daemons))
    tables = 0
    while tables < 2:
        line = top.line()
        assert "\x1b" not in line
        tables += line.startswith("STORE  EPOCH")
    assert top.end(signal.SIGINT) == (OK, "")


class Terminal:
    """`perseas top` on a terminal of a given size; frames are what it drew, one after the other."""

    def __init__(self, rows, columns, *words):
        self.ours, theirs = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(theirs)
        self.output = b""
        self.theirs = theirs

        def prepare():
            os.setsid()
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
            die_with_parent()

        self.process = subprocess.Popen([str(BUILD / "perseas"), "top", *words], stdin=theirs,
                                        stdout=theirs, stderr=theirs, preexec_fn=prepare,
                                        env={**os.environ, "TERM": "xterm"})

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def frames(self):
        """Lists of lines without what moves the cursor; only those that are complete."""
        while select.select([self.ours], [], [], 0)[0]:
            self.output += os.read(self.ours, 1 << 16)
        drawn = self.output.split(HOME)[1:-1]
        return [[line.rstrip("\r") for line in
                 re.sub(r"\x1b\[[?0-9]*[a-zA-Z]", "", each.decode()).rstrip("\r\n").split("\n")]
                for each in drawn]

    def shows(self, what):
        """Waits for a frame with this in it."""
        return until(lambda: next((frame for frame in self.frames()
                                   if re.search(what, "\n".join(frame))), None), what)

    def attributes(self):
        return termios.tcgetattr(self.theirs)

    def press(self, keys):
        os.write(self.ours, keys)

    def wait(self):
        """Its end; what it wrote in all."""
        status = self.process.wait(SECONDS)
        self.frames()
        assert self.attributes() == self.before
        os.close(self.ours)
        os.close(self.theirs)
        return status, self.output


def fits(frame, rows, columns):
    return len(frame) <= rows and all(len(line) <= columns for line in frame)


def test_top_redraws_in_place_and_leaves_the_terminal_as_it_was(mirrors, tellers):
    """24 lines of 80; it is made smaller, and q ends it."""
    daemons = mirrors(3)
    runner(tellers, "books", daemons)
    terminal = Terminal(24, 80, *SHORT, "--mirrors", mirror_list(daemons))
    frame = terminal.shows(r"\Aperseas top: 3 of 3 mirrors answer, 1 store;(?s:.*)"
                           r"\nbooks +1 +\d+ +[\d.]+ +[\d.]+ [num]?s")
    assert fits(frame, 24, 80) and len(frame) == 9
    assert not terminal.attributes()[3] & (termios.ECHO | termios.ICANON)
    terminal.resize(6, 30)

    # Those that were drawn before it heard of it are larger, however many they are.
    def smaller():
        frames = terminal.frames()
        return next((frames[i:] for i in range(len(frames)) if "lines more" in frames[i][-1]), [])

    until(lambda: len(smaller()) > 2, "smaller frames")
    assert all(fits(frame, 6, 30) for frame in smaller())
    terminal.press(b"x")
    terminal.press(b"q")
    status, output = terminal.wait()
    assert status == OK
    assert output.count(ENTER) == output.count(LEAVE) == 1 and output.startswith(ENTER)
    assert output.endswith(LEAVE)


def test_top_gives_the_terminal_back_when_it_is_ended_or_stopped(mirrors):
    """Control-Z stops it; it goes on when it is told to, and SIGTERM ends it."""
    terminal = Terminal(24, 80, *SHORT, "--mirrors", mirror_list(mirrors(1)))
    terminal.shows("no stores are seen")
    # A session's leader has no shell that could continue it, so the kernel does not stop it.
    terminal.process.send_signal(signal.SIGTSTP)
    until(lambda: terminal.frames() and LEAVE in terminal.output, "the terminal back")
    until(lambda: os.waitid(os.P_PID, terminal.process.pid, os.WSTOPPED | os.WNOWAIT | os.WNOHANG),
          "a stopped process")
    assert terminal.attributes() == terminal.before
    terminal.process.send_signal(signal.SIGCONT)
    until(lambda: terminal.frames() and terminal.output.count(ENTER) == 2, "it to go on")
    terminal.process.send_signal(signal.SIGTERM)
    status, output = terminal.wait()
    assert status == OK and output.count(LEAVE) == 2 and output.endswith(LEAVE)
