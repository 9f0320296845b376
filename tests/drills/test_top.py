"""perseas top, and what an owner reports about itself: statistics and events."""
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
ENTER, LEAVE, DOWN = "\x1b[?1049h", "\x1b[?1049l", b"\x1bB"


def runner(tellers, store, daemons, acks=2):
    """Starts an owner that commits until the test is over."""
    owner = tellers.run(store, daemons, "create", "acks=%d" % acks)
    owner.advances(50)
    return owner


# --- what an owner tells ---

def test_an_owner_is_told_of_its_mirrors(mirrors, tellers, fabric):
    """One mirror dies and comes back, another loses its memory, another owner takes the store: a
    thread of the library tells the application."""
    daemons = mirrors(3, fabric)
    names = [daemon.address for daemon in daemons]
    desk = tellers.desk()
    desk.open("books", daemons, "create", "acks=2")
    desk.books()
    # Two of three have the publish now. A mirror without it would be copied whole.
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
    """If each commit waits for the network, all are timed; over shared memory, some."""
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
    """A running `perseas top` with its output in a pipe."""

    def __init__(self, *words):
        self.process = subprocess.Popen([str(BUILD / "perseas"), "top", *words],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True,
                                        preexec_fn=die_with_parent)

    def line(self):
        assert select.select([self.process.stdout], [], [], SECONDS)[0], "no output"
        return self.process.stdout.readline()

    def until(self, predicate):
        """Returns the first JSON object for which predicate() is true."""
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
    """Returns the mirrors that answered this query in time."""
    return [each["answers"] for each in told["addresses"]]


def the_store(told):
    """Returns the only store. It is not listed before a mirror has answered."""
    nothing = dict.fromkeys(("latency_ns", "tx_per_second", "mirrors_whole", "owner"))
    return told["stores"][0] if told["stores"] else nothing


def look(perseas, daemons):
    """Returns the result of a query that all mirrors have answered."""
    def answered():
        done = perseas("top", *SHORT, "--once", "--json", mirrors=daemons)
        return done.status == OK and done.json()

    return until(answered, "a look that is answered")


def test_top_tells_of_a_store_that_runs(perseas, mirrors, tellers, fabric):
    """Three mirrors and an owner that commits all the time."""
    daemons = mirrors(3, fabric)
    owner = runner(tellers, "books", daemons)
    # On a busy machine the owner may not run within an interval, and a mirror may answer late.
    top = Running(*SHORT, "--json", "--mirrors", mirror_list(daemons))
    told = top.until(lambda told: answering(told) == [True] * 3 and
                     the_store(told)["latency_ns"] and the_store(told)["tx_per_second"] and
                     the_store(told)["mirrors_whole"] == 3)
    assert top.end() == (OK, "")
    assert [each["address"] for each in told["addresses"]] == [d.address for d in daemons]
    store, = told["stores"]
    assert store["store"] == "books" and store["owner"]["epoch"] == store["epoch"] == 1
    assert store["owner"]["fabric"] == fabric and store["figures"]["commits"] > 0
    latency = store["latency_ns"]
    assert 0 < latency["p50"] <= latency["p99"] <= latency["p999"]
    assert store["mirrors"] == 3 and store["lag"] >= 0 and store["resync"] is None
    for words, moves in (
            ((), lambda done: re.search(r"^books +\d+ +[1-9]", done.out, re.MULTILINE)),
            (("--json",), lambda done: the_store(done.json())["tx_per_second"])):
        def shown():
            done = perseas("top", *SHORT, "--once", *words, mirrors=daemons)
            assert done.status == OK or "has not answered for" in done.err, done
            return done.status == OK and done.err == "" and moves(done)
        until(shown, "a store that moves")
    owner.page.tell_to_stop()
    owner.wait()


def test_top_of_a_store_that_rests(perseas, mirrors, tellers):
    """Its owner has closed it: there are no transactions and no latencies."""
    daemons = mirrors(1)
    owner = runner(tellers, "books", daemons, 1)
    owner.page.tell_to_stop()
    owner.wait()
    until(lambda: not status_of("books", daemons)["live"], "the end of the owner")
    store, = look(perseas, daemons)["stores"]
    assert store["owner"] is None and store["latency_ns"] is None and store["figures"] is None
    assert store["tx_per_second"] == 0
    assert store["mirrors_whole"] == 1 and store["can_open"]


def test_top_names_mirrors_that_do_not_answer(perseas, mirrors, tellers):
    """One mirror is stopped, and one is down. The third reports all of them, and a member that the
    list does not name is asked, too."""
    daemons = mirrors(3)
    runner(tellers, "books", daemons)   # commits need the two that run, so neither lags
    daemons[1].stop()
    where = mirror_list(daemons[:2]) + "," + NOBODY

    def shown():
        """Returns once the running mirrors have answered in time."""
        done = perseas("top", *SHORT, "--once", "--mirrors", where)
        assert done.status in (PARTLY, FAILURE), done
        return "2 of 4 mirrors answer" in done.out and done

    done = until(shown, "two mirrors that answer")
    assert done.status == PARTLY and daemons[2].address not in done.err, done
    assert re.search(r"^books +\d+ .* 2 of 3 .*%s" % re.escape(daemons[1].address), done.out,
                     re.MULTILINE), done
    for address in (daemons[1].address, NOBODY):
        assert re.search("^" + re.escape(address), done.out, re.MULTILINE), done
        assert address in done.err
    daemons[1].cont()
    done = perseas("top", *SHORT, "--once", "--mirrors", NOBODY)
    assert done.status == FAILURE and "no stores are seen" in done.out, done


def test_top_tells_stores_of_one_name_apart(perseas, mirrors):
    """Two mirrors, each with its own store."""
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
              the_store(told)["mirrors_whole"] == 2 and
              the_store(told)["tx_per_second"])
    assert top.end() == (OK, "")


def test_top_prints_tables_where_there_is_no_terminal(mirrors, tellers):
    """Without control characters; SIGINT ends it."""
    daemons = mirrors(1)
    runner(tellers, "books", daemons, 1)
    top = Running(*SHORT, "--mirrors", mirror_list(daemons))
    tables = 0
    while tables < 2:
        line = top.line()
        assert "\x1b" not in line
        tables += line.startswith("STORE  SEQ")
    assert top.end(signal.SIGINT) == (OK, "")


class Terminal:
    """`perseas top` on a terminal of a given size and type. A VT52 has few escape sequences, which
    this class interprets: `shows` waits for text on its screen."""

    def __init__(self, kind, rows, columns, *words):
        self.ours, theirs = pty.openpty()
        self.rows, self.columns = rows, columns
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(theirs)
        self.output = ""
        self.theirs = theirs

        def prepare():
            os.setsid()
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
            die_with_parent()

        self.process = subprocess.Popen([str(BUILD / "perseas"), "top", *words], stdin=theirs,
                                        stdout=theirs, stderr=theirs, preexec_fn=prepare,
                                        env={**os.environ, "TERM": kind})

    def read(self):
        while select.select([self.ours], [], [], 0)[0]:
            self.output += os.read(self.ours, 1 << 16).decode()
        return self.output

    def lines(self):
        """Returns the lines on the screen of a VT52."""
        screen = [[" "] * self.columns for _ in range(self.rows)]
        row = column = 0
        for to, command, letter in re.findall("\x1b(?:Y(..)|(.))|(.)", self.read(), re.DOTALL):
            if to:
                row, column = ord(to[0]) - 32, ord(to[1]) - 32
            elif command in "ABCD" and command:
                row += (command == "B") - (command == "A")
                column += (command == "C") - (command == "D")
            elif command == "H":
                row = column = 0
            elif command in "JK" and command:
                screen[row][column:] = [" "] * (self.columns - column)
                for below in screen[row + 1:] if command == "J" else ():
                    below[:] = [" "] * self.columns
            elif command == "I":
                screen = [[" "] * self.columns] + screen[:-1]
            elif letter == "\r":
                column = 0
            elif letter == "\b":
                column -= 1
            elif letter == "\t":
                column += 8 - column % 8
            elif letter == "\n":
                if row == self.rows - 1:
                    screen = screen[1:] + [[" "] * self.columns]
                row = min(row + 1, self.rows - 1)
            elif letter:
                screen[row][column] = letter
                column = min(column + 1, self.columns - 1)
        return ["".join(line).rstrip() for line in screen]

    def shows(self, what):
        return until(lambda: re.search(what, "\n".join(self.lines())), what)

    def attributes(self):
        return termios.tcgetattr(self.theirs)

    def press(self, keys):
        os.write(self.ours, keys)

    def wait(self):
        """Waits for its end. Returns all of its output."""
        status = self.process.wait(SECONDS)
        self.read()
        assert self.attributes() == self.before
        os.close(self.ours)
        os.close(self.theirs)
        return status, self.output


def test_top_redraws_in_place_and_scrolls(mirrors, tellers):
    """The terminal has 3 lines, and the output needs four; q ends it."""
    daemons = mirrors(3)
    runner(tellers, "books", daemons)
    terminal = Terminal("vt52", 3, 80, *SHORT, "--mirrors", mirror_list(daemons))
    terminal.shows(r"\Aperseas top: 3 of 3 mirrors answer, 1 store;.*\n\nSTORE +SEQ")
    assert not terminal.attributes()[3] & (termios.ECHO | termios.ICANON)
    terminal.press(b"x" + DOWN)
    terminal.shows(r"\A\nSTORE +SEQ.*\nbooks +\d+ +[\d.]+ +[\d.]+ [num]?s")
    terminal.press(b"g")
    terminal.shows(r"\Aperseas top:")
    terminal.press(b"G")
    terminal.shows(r"\A\nSTORE +SEQ.*\nbooks ")
    terminal.press(b"q")
    assert terminal.wait()[0] == OK


def test_top_leaves_the_terminal_as_it_was(mirrors):
    """SIGTERM ends it."""
    terminal = Terminal("xterm", 24, 80, *SHORT, "--mirrors", mirror_list(mirrors(1)))
    until(lambda: "no stores are seen" in terminal.read(), "a screen")
    terminal.process.send_signal(signal.SIGTERM)
    status, output = terminal.wait()
    assert status == OK and output.count(ENTER) == output.count(LEAVE) == 1


def test_top_prints_tables_where_the_terminal_cannot_be_drawn_on(mirrors):
    terminal = Terminal("dumb", 24, 80, *SHORT, "--mirrors", mirror_list(mirrors(1)))
    until(lambda: terminal.read().count("no stores are seen") > 1, "two tables")
    terminal.process.send_signal(signal.SIGINT)
    status, output = terminal.wait()
    assert status == OK and "\x1b" not in output
