"""The guides in doc/: their examples run, and their claims are true."""
import os
import re
import signal
import subprocess
import sys

import pytest

from binding import CREATE, PerseasError, Store
from drill import (MIB, OK, SECONDS, TOP, fill, mirror_list, status_of, wait_for,
                   wait_ownerless)
from guide import CODE, EXAMPLES, blocks, example_part, follow
from guide import examples, root, shell  # noqa: F401
from relay import Relay
from teller import tellers  # noqa: F401

OPERATING = TOP / "doc/operating.md"
PROGRAMMING = TOP / "doc/programming.md"
README = TOP / "README.md"
CPP = TOP / "doc/cpp.md"
RECORDS = TOP / "doc/records.md"
GUIDES = (OPERATING, PROGRAMMING, CPP, RECORDS)


def table(path, head):
    """Returns the rows of the table whose header begins with `head`, as lists of cells."""
    _, _, rest = path.read_text().partition("\n" + head)
    assert rest, "%s has no table %s" % (path.name, head)
    lines = rest.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


# --- the examples ---

@pytest.mark.needs("mounts")
@pytest.mark.root("mounts the file systems in it")
def test_the_operators_guide_shows_what_happens(shell, examples):  # noqa: F811
    """Runs every command in it, in order."""
    follow(shell(examples), OPERATING)


def test_the_programmers_guide_shows_what_happens(shell, examples):  # noqa: F811
    follow(shell(examples), PROGRAMMING)


def test_the_guide_of_cpp_shows_what_happens(shell, examples):  # noqa: F811
    follow(shell(examples), CPP)


def test_the_code_in_the_guides_is_that_of_the_examples():
    """Each example is shown, whole or in parts. `guide.py FILE` updates the code."""
    shown = set()
    for guide in (*GUIDES, README):
        for block in blocks(guide):
            if guide == README and block.kind == "c":
                continue                # test_readme.py compiles it
            assert (block.kind in CODE) == bool(block.included), block.place
            if block.included:
                file, part = block.included["file"], block.included["part"]
                assert block.text == example_part(file, part), block.place
                shown.add(file)
    assert shown == {path.name for path in EXAMPLES.iterdir() if path.suffix in (".c", ".cpp")}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.c")), ids=lambda path: path.stem)
def test_the_examples_are_c_plus_plus_too(path, root):  # noqa: F811
    """Compiles without -Wextra, with which g++ warns about C's enumerations in conditional
    expressions."""
    subprocess.run(["g++", "-x", "c++", "-std=c++17", "-fsyntax-only", "-Wall", "-Werror",
                    "-pedantic", "-I", str(root / "include"), str(path)], check=True,
                   timeout=SECONDS)


# --- messages ---

LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')


def texts():
    """Returns every string in the sources, adjacent strings joined."""
    found = []
    for path in sorted(p for folder in ("client", "server") for p in TOP.glob(folder + "/**/*.c")):
        for run in re.findall(r'(?:%s\s*)+' % LITERAL.pattern, path.read_text()):
            found.append("".join(text[1:-1] for text in LITERAL.findall(run)))
    return found


def test_the_examples_take_back_whatever_failed_before_the_commit():
    """Only a commit ends its transaction with PERSEAS_EFENCED; other calls return it and leave the
    transaction open."""
    spared = re.compile(r"(?P<before>[^\n]*)\n(\s*/\*.*\*/\n)?"
                        r"\tif \(rc != 0 [^\n]*PERSEAS_EFENCED\)\n\s*perseas_abort")
    found = [(path.name, match["before"]) for path in sorted(EXAMPLES.glob("*.c"))
             for match in spared.finditer(path.read_text(encoding="utf-8"))]
    assert len(found) > 5
    assert not [where for where in found if not where[1].startswith("\trc = perseas_commit(")]


def test_messages_in_the_guides_are_those_of_the_sources():
    """Messages that the examples do not print are in blocks of the kind `message`."""
    sources = texts()
    for guide in GUIDES:
        for block in blocks(guide):
            for line in block.text.splitlines() if block.kind == "message" else ():
                words = [word.strip() for word in line.split("…") if word.strip()]
                pattern = re.compile(".*".join(map(re.escape, words)))
                assert any(pattern.search(each) for each in sources), (block.place, line)


def test_the_programmers_guide_names_every_error():
    """In the header's order, each once."""
    header = (TOP / "client/perseas.h").read_text()
    names = re.findall(r"^\tX\((PERSEAS_E\w+), -", header, re.M)
    assert [row[0].strip("`") for row in table(PROGRAMMING, "| error |")] == names


def test_the_programmers_guide_names_the_defaults():
    """The defaults of all options that have one."""
    told = dict(re.findall(r"`(\w+)` \((\d+)", " ".join(
        row[0] for row in table(PROGRAMMING, "| option |"))))
    source = (TOP / "client/core/handle.c").read_text()
    assert {name: re.search(r"o->%s = (?:\(uint64_t\))?(\d+)" % name, source)[1]
            for name in told} == told
    header = (TOP / "client/perseas.h").read_text()
    options = header.partition("struct perseas_options {")[2].partition("};")[0]
    for name in re.findall(r"^\t(?:uint\d+_t|size_t) (\w+);", options, re.M):
        assert name in ("size", "accept_epoch", "accept_seq") or \
            "`%s`" % name in PROGRAMMING.read_text(), name


# --- how many mirrors, and W ---

def rows():
    """Returns (n, W, [R, down and goes on, down and opens, lost and mended, lost and saved])."""
    return [(int(n), int(w), list(map(int, rest)))
            for n, w, *rest in table(OPERATING, "| n | W | R |")]


def commits(store, byte):
    """Returns whether a commit succeeds in time. If not, it is in doubt and the store is
    blocked."""
    try:
        store.flush()
        store.write("a", 0, byte)
        return True
    except PerseasError as error:
        assert error.name in ("PERSEAS_EINDOUBT", "PERSEAS_EBLOCKED"), error
        return False


@pytest.mark.parametrize("n, w, row", rows(), ids=lambda v: str(v) if isinstance(v, int) else "")
def test_as_many_mirrors_may_fail_as_the_table_says(mirrors, perseas, n, w, row):
    """Mirrors are down while the owner commits, down when the next owner opens the store, or lost
    together with the owner. One more than in the table is too many."""
    claims, down_commit, down_open, lost_mended, lost_saved = row
    assert claims == n - w + 1
    daemons = mirrors(n)
    fill("s", daemons, {"a": b"contents"}, acks=w, log_size=4096)
    with Store("s", mirror_list(daemons), commit_timeout_ms=100) as store:
        store.map("a")
        for count, daemon in enumerate(daemons[:down_commit + 1], 1):
            daemon.kill9()
            if count <= down_commit:
                wait_for(lambda: commits(store, b"x"), SECONDS, "a commit")
            else:
                assert not commits(store, b"y"), count
    for daemon in daemons:
        daemon.restart()
    assert perseas("recover", "s", mirrors=daemons).status == OK
    for count, daemon in enumerate(daemons[:down_open + 1], 1):
        daemon.kill9()
        assert (perseas("recover", "s", mirrors=daemons).status == OK) == (count <= down_open)
    for daemon in daemons:
        daemon.restart()
    assert perseas("recover", "s", mirrors=daemons).status == OK
    check_losses(perseas, mirrors, daemons, lost_mended, lost_saved)


def check_losses(perseas, mirrors, daemons, mended, saved):
    """All mirrors run, but some have lost their memory."""
    beside = mirrors(1)
    for count in range(1, saved + 2):
        for daemon in daemons[:count]:
            daemon.lose_memory()
            daemon.restart()
        done = perseas("recover", "s", mirrors=daemons)
        assert (done.status == OK) == (count <= mended), (count, done)
        done = perseas("recover", "s", "--onto", mirror_list(beside), "--as", "n%d" % count,
                       mirrors=daemons)
        assert (done.status == OK) == (count <= saved), (count, done)


# --- sizing ---

def test_a_mirror_uses_as_much_memory_as_the_guide_says(mirrors, perseas):
    """Segments, log, two pages, the header, and as much room for the next header."""
    daemon, = mirrors(1)
    fill("s", [daemon], {"a": b"x" * 4096, "b": b"y" * 12345}, log_size=65536)
    header = (daemon.memory / "s/header").stat().st_size
    used = perseas("ls", "--json", mirrors=[daemon]).json()["mirrors"][0]["memory_used"]
    assert used == 4096 + 12345 + 65536 + 2 * 4096 + 2 * header and header == 32768


def test_a_transaction_sends_as_much_as_the_guide_says(mirrors, tellers):  # noqa: F811
    """Three ranges of 8, 20 and 3 bytes over TCP. Heartbeats are sent in addition, twice a
    second."""
    daemon, = mirrors(1)
    record = (64 + 16 * 3 + (8 + 24 + 8) + 63) // 64 * 64
    payload = record + 64 + (8 + 20 + 3) + 40
    with Relay(daemon) as relay:
        desk = tellers.desk()
        desk.open("s", relay.address, "create")
        desk.ask("map", "a", 4096)
        desk.ask("publish")

        def sent():
            before = relay.passed()
            desk.ask("begin")
            for offset, length in ((0, 8), (100, 20), (200, 3)):
                desk.ask("range", "a", offset, length)
            desk.ask("commit")
            return tuple(now - then for now, then in zip(relay.passed(), before))

        wait_for(lambda: sent() == (payload + 48 + 16 * 3, 16), SECONDS, "bytes on the wire")


def test_a_transaction_may_change_as_much_as_the_guide_says(mirrors):
    """With the default log and ring: a little less than 8 MiB."""
    daemon, = mirrors(1)
    with Store("s", daemon.address, flags=CREATE) as store:
        store.map("a", 9 * MIB)
        store.publish()
        store.write("a", 0, b"x" * (8 * MIB - 4096))
        with pytest.raises(PerseasError, match="PERSEAS_ETOOBIG"):
            store.write("a", 0, b"x" * 8 * MIB)


FORKS = """
import ctypes, os, signal, sys
from binding import CREATE, Store
store = Store("s", sys.argv[1], flags=CREATE)
store.map("a", 4096)
store.publish()
waits = os.fork() or (os.close(1), signal.pause())
touches = os.fork() or ctypes.string_at(store.segments["a"], 1)
print(waits, os.WTERMSIG(os.waitpid(touches, 0)[1]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_child_has_no_segments_and_holds_the_connections(mirrors, perseas):
    """One child accesses a segment. While the other one runs, the owner's death goes unnoticed.
    Lifelines are off: an owner takes one only a tenth of a second after it has opened its store."""
    daemon, = mirrors(1)
    done = subprocess.run([sys.executable, "-c", FORKS, daemon.address], stdout=subprocess.PIPE,
                          env=dict(os.environ, PYTHONPATH=str(TOP / "tests/drills"),
                                   PERSEAS_LIFELINES="off"), text=True, timeout=SECONDS)
    assert done.returncode == -signal.SIGKILL
    waits, touched = map(int, done.stdout.split())
    try:
        assert touched == signal.SIGSEGV
        assert status_of("s", [daemon])["live"]
    finally:
        os.kill(waits, signal.SIGKILL)
    wait_ownerless("s", [daemon])


def test_the_guides_link_to_what_is_there():
    """Checks files of the tree in backquotes; internals.md omits `client/`."""
    for path in (*TOP.glob("doc/*.md"), TOP / "README.md", TOP / "CONTRIBUTING.md"):
        for name in re.findall(r"`((?!build/)[a-z]+/[\w./-]+\.\w+)`", path.read_text()):
            if "NAME" not in name:
                assert (TOP / name).exists() or (TOP / "client" / name).exists(), (path.name, name)
        for name in re.findall(r"\]\(([\w./-]+)\)", path.read_text()):
            assert (path.parent / name).exists(), (path.name, name)
