"""Effects of libperseas on the process that uses it."""
import os
import subprocess
import sys

import pytest

from binding import CREATE, Store
from cluster import Mirror, die_with_parent
from drill import BUILD, FAILURE, HERE, OK, SECONDS, TOP, fill, mirror_list

# Runs a command without standard streams.
WITHOUT_STREAMS = ["sh", "-c", 'exec "$0" "$@" 0<&- 1>&- 2>&-']


def compiled(folder, name, *words):
    """Compiles a program of drills/host."""
    program = folder / name
    subprocess.run(["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread",
                    "-I", str(TOP / "client"), str(HERE / "host" / (name + ".c")),
                    "-o", str(program), *words], check=True, timeout=SECONDS)
    return program


def run(program, *words, **keywords):
    """Runs the program. Returns its output."""
    done = subprocess.run([str(program), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=SECONDS, preexec_fn=die_with_parent, **keywords)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


@pytest.mark.parametrize("kind", ["shm", "tls"])
def test_a_program_may_unload_the_library(mirrors, tmp_path, kind):
    """It unloads the library while a store is open, continues, closes the store, and unloads it
    again."""
    program = compiled(tmp_path, "unload", "-ldl")
    told = run(program, str(BUILD / "libperseas.so"), mirror_list(mirrors(2, kind)))
    assert told == "default\n"


@pytest.mark.parametrize("library", ["libperseas", "librvm-perseas", "librds-perseas"])
def test_no_library_is_ever_unmapped(library):
    dynamic = subprocess.run(["readelf", "-d", str(BUILD / (library + ".so"))],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "NODELETE" in dynamic


@pytest.mark.parametrize("kind", ["shm", "tcp", "tls"])
def test_the_library_keeps_away_from_closed_streams(mirrors, tmp_path, kind):
    """A program without standard streams makes all kinds of calls."""
    program = compiled(tmp_path, "closed", "-L", str(BUILD), "-lperseas",
                       "-Wl,-rpath,%s" % BUILD.resolve())
    told = subprocess.run(["sh", "-c", '%s 3>&1 0<&- 1>&- 2>&-' % 'exec "$0" "$@"', str(program),
                           mirror_list(mirrors(2, kind))], stdout=subprocess.PIPE, text=True,
                          timeout=SECONDS, preexec_fn=die_with_parent).stdout
    assert told == "closed\n"


def test_a_daemon_without_streams_opens_null_instead(mirrors, monkeypatch):
    """None of its files or connections gets the descriptor of a standard stream."""
    monkeypatch.setattr(Mirror, "wrap", WITHOUT_STREAMS)
    daemon, = mirrors(1)
    for number in range(3):
        assert os.readlink("/proc/%d/fd/%d" % (daemon.pid, number)) == "/dev/null"
    with Store("s", daemon.address, flags=CREATE) as store:
        store.map("accounts", 4096)
        store.publish()


def test_the_command_works_without_standard_input_and_error(mirrors):
    """Without standard output, its exit status says that the answer could not be written."""
    daemons = mirrors(1)
    fill("s", daemons, {"a": b"contents"})
    words = [str(BUILD / "perseas"), "status", "s", "--mirrors", mirror_list(daemons)]
    told = subprocess.run(["sh", "-c", 'exec "$0" "$@" 0<&- 2>&-', *words],
                          stdout=subprocess.PIPE, text=True, timeout=SECONDS)
    assert told.returncode == OK and "epoch" in told.stdout
    told = subprocess.run(["sh", "-c", 'exec "$0" "$@" 0<&- 1>&-', *words],
                          stderr=subprocess.PIPE, text=True, timeout=SECONDS)
    assert told.returncode == FAILURE and "the output could not be written" in told.stderr


# An owner with much memory of each kind, which prints how much of each a core dump would contain.
LARGE_OWNER = """
import re, sys
from binding import CHECK_WRITES, CREATE, Store
MIB = 1 << 20
with Store("s", sys.argv[1], flags=CREATE | CHECK_WRITES, ring_size=64 * MIB) as store:
    store.map("large", 64 * MIB)
    store.publish()
    large = omitted = 0
    size = 0
    for line in open("/proc/self/smaps"):
        head = re.match("([0-9a-f]+)-([0-9a-f]+) rw", line)
        if head:
            size = int(head[2], 16) - int(head[1], 16)
        elif line[:1] in "0123456789abcdef":
            size = 0
        elif line.startswith("VmFlags:") and size >= 32 * MIB:
            large += 1
            omitted += " dd" in line
    print(large, omitted)
"""


@pytest.mark.parametrize("wanted", [False, True])
def test_core_dumps_leave_the_memory_of_stores_out(mirrors, wanted):
    """A segment, its shadow, the ring, and a mirror's memory over shm. The environment may ask for
    them."""
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    if wanted:
        environment["PERSEAS_CORE_DUMP"] = "on"
    told = subprocess.run([sys.executable, "-c", LARGE_OWNER, mirror_list(mirrors(1, "shm"))],
                          env=environment, stdout=subprocess.PIPE, text=True, timeout=SECONDS,
                          check=True).stdout
    large, omitted = (int(word) for word in told.split())
    assert large >= 4
    assert omitted == (0 if wanted else large)


@pytest.mark.parametrize("kind", ["shm", "tcp", "tls"])
def test_a_cancelled_thread_returns_from_every_call(mirrors, tmp_path, kind):
    """A cancellation is pending when each call begins, and the next thread continues."""
    program = compiled(tmp_path, "cancel", "-L", str(BUILD), "-lperseas",
                       "-Wl,-rpath,%s" % BUILD.resolve())
    assert run(program, mirror_list(mirrors(2, kind))) == "done\n"
