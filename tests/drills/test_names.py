"""Mirrors given by name while the name server is silent. Processes preload host/names.c, in which
getaddrinfo then never returns: a thread that waits for it waits forever."""
import os
import subprocess
import sys

import pytest

from drill import FAILURE, HERE, SECONDS, mirror_list, tied, wait_for
from test_run import LIVES, run  # noqa: F401  # pylint: disable=unused-import
from test_run import OWNS as COMMAND_OWNS
from teller import tellers, until  # noqa: F401  # pylint: disable=unused-import

STANDS_BY = """
import sys
from binding import Standby, say
from drill import SECONDS, wait_for
with Standby("bank", sys.argv[1]) as standby:
    wait_for(lambda: standby.state() == "owned", SECONDS, "a standby that knows the owner")
    say("stands by")
    with standby.become_owner() as store:
        store.map("accounts")
        store.write("accounts", 0, b"here")
        say("took over", store.read("accounts", 100, 5))
say("closed")
"""

# For each line of input, waits until that many mirrors are live.
OWNS = """
import sys
from binding import CREATE, Store, say
from drill import SECONDS, wait_for
with Store("bank", sys.argv[1], flags=CREATE) as store:
    say("owns")
    for line in sys.stdin:
        wait_for(lambda: store.stat().live == int(line), SECONDS, "%s live mirrors" % line)
        say("live", line.strip())
say("closed")
"""

# Retries until it gets the given error, or success.
OPENS = """
import sys
from binding import PerseasError, Store, say
named, wanted = sys.argv[1:]
told = None
while told != wanted:
    try:
        with Store("bank", named, connect_timeout_ms=500, open_timeout_ms=1000) as store:
            store.map("accounts")
            told = "opened"
    except PerseasError as error:
        told = error.name
        # Where an open is wanted, a mirror may also be too slow for these timeouts.
        assert wanted == "opened" or "did not say in time" in str(error), error
say(told)
"""


class Names:
    """What the name server answers to processes that start afterward."""

    def __init__(self, folder):
        self.path, self.hosts, self.silent = folder / "names", {}, False
        self.write()

    def write(self):
        """Replaces the file in one step, because a process may read it at any time."""
        lines = ["%s %s\n" % each for each in self.hosts.items()] + ["silent\n"] * self.silent
        beside = self.path.with_suffix(".new")
        beside.write_text("".join(lines))
        beside.rename(self.path)

    def of(self, daemons):
        """Returns a list with names for these mirrors."""
        for number, daemon in enumerate(daemons, 1):
            self.hosts["m%d.drill.test" % number] = daemon.mirror.host
        self.write()
        return ",".join("%s:%d" % (host, daemon.mirror.port)
                        for host, daemon in zip(self.hosts, daemons))

    def stop(self):
        self.silent = True
        self.write()


@pytest.fixture
def names(tmp_path, monkeypatch):
    library = tmp_path / "names.so"
    subprocess.run(["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
                    str(HERE / "host" / "names.c"), "-o", str(library), "-ldl"], check=True,
                   timeout=SECONDS)
    names = Names(tmp_path)
    monkeypatch.setenv("DRILL_NAMES", str(names.path))
    monkeypatch.setenv("LD_PRELOAD", str(library))
    return names


@pytest.fixture
def python():
    """python(program, words...) starts a process that runs the program."""
    processes = []

    def start(program, *words):
        environment = {**os.environ, "PYTHONPATH": str(HERE)}
        processes.append(subprocess.Popen(**tied([sys.executable, "-c", program, *words]),
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                          text=True, env=environment))
        return processes[-1]

    yield start
    for each in processes:
        if each.poll() is None:
            each.kill()
        each.wait()
        each.stdin.close()
        each.stdout.close()


def tell(process, line):
    process.stdin.write(line + "\n")
    process.stdin.flush()


def test_a_standby_takes_over_while_the_name_server_is_silent(bank, names, owner, python):
    """It has connections to the mirrors and their addresses. Its end does not wait either."""
    daemons = bank(3)
    named = names.of(daemons)
    first = owner("bank", named, "map,accounts,4096", "write,accounts,100,words")
    standby = python(STANDS_BY, named)
    assert standby.stdout.readline() == "stands by\n"
    names.stop()
    first.kill9()
    assert standby.stdout.readline() == "took over b'words'\n"
    assert standby.stdout.readline() == "closed\n"
    assert standby.wait(SECONDS) == 0


def test_perseas_run_takes_over_while_the_name_server_is_silent(bank, names, owner,
                                                                run):  # noqa: F811
    """`perseas run` passes the addresses on to COMMAND."""
    daemons = bank(3)
    named = names.of(daemons)
    first = owner("bank", named)
    runner = run("bank", named)
    runner.wait_said(LIVES)
    names.stop()
    first.kill9()
    runner.wait_printed("holding")
    runner.wait_said(COMMAND_OWNS)


def test_an_owner_goes_on_while_the_name_server_is_silent(mirrors, names, python):
    """A mirror is restarted at its address and reconnects. Then it is gone, and while its name is
    being looked up the store is closed."""
    daemons = mirrors(3)
    process = python(OWNS, names.of(daemons))
    assert process.stdout.readline() == "owns\n"
    names.stop()
    daemons[2].kill9()
    tell(process, "2")
    assert process.stdout.readline() == "live 2\n"
    daemons[2].restart()
    tell(process, "3")
    assert process.stdout.readline() == "live 3\n"
    daemons[2].kill9()
    tell(process, "2")
    assert process.stdout.readline() == "live 2\n"
    process.stdin.close()
    assert process.stdout.readline() == "closed\n"
    assert process.wait(SECONDS) == 0


def test_events_do_not_wait_for_the_name_server(mirrors, names, tellers):  # noqa: F811
    """The lookup of the lost mirror's name never ends, and its end and return are told of."""
    daemons = mirrors(3)
    desk = tellers.desk()
    desk.ask("open", "bank", names.of(daemons), "create", "acks=2")
    until(lambda: desk.all_live(3), "three live mirrors")
    names.stop()
    before = len(desk.events())
    daemons[1].kill9()
    until(lambda: ("mirror-down", "m2.drill.test:%d" % daemons[1].mirror.port)
          in desk.events()[before:], "the end of a mirror")
    daemons[1].restart()
    until(lambda: ("mirror-live", "m2.drill.test:%d" % daemons[1].mirror.port)
          in desk.events()[before:], "its return")


def test_an_open_needs_the_names_of_r_mirrors_only(bank, names, python):
    """One of three mirrors is given by name. The open's timeout expires with only that name known,
    and other opens find the other mirrors."""
    daemons = bank(3)
    named = names.of(daemons).split(",")
    names.stop()
    process = python(OPENS, ",".join(named), "PERSEAS_EUNREACHABLE")
    assert process.stdout.readline() == "PERSEAS_EUNREACHABLE\n"
    process = python(OPENS, ",".join([mirror_list(daemons[:2]), named[2]]), "opened")
    assert process.stdout.readline() == "opened\n"
    assert process.wait(SECONDS) == 0


def test_names_are_looked_up_side_by_side(bank, names, python):
    """The first of three names is never answered for, and the other two are enough."""
    named = names.of(bank(3))
    names.hosts["m1.drill.test"] = "silent"
    names.write()
    process = python(OPENS, named, "opened")
    assert process.stdout.readline() == "opened\n"
    assert process.wait(SECONDS) == 0


def test_status_says_that_the_name_server_is_silent(bank, names, perseas):
    named = names.of(bank(3))
    names.stop()
    told = perseas("status", "bank", "--connect-timeout", "300", mirrors=named)
    assert told.status == FAILURE, told
    assert "the name service did not say in time" in told.out + told.err


def test_status_answers_though_one_name_is_not_found(bank, names, perseas):
    """Two of three mirrors are given by number. The third is asked at its address in the
    roster."""
    daemons = bank(3)
    listed = "%s,%s" % (mirror_list(daemons[:2]), names.of(daemons).split(",")[2])
    names.stop()

    def answered():
        """Returns the answer once all mirrors answered in time."""
        told = perseas("status", "bank", "--connect-timeout", "300", mirrors=listed)
        return told.out.count(" consistent ") == 3 and told

    told = wait_for(answered, SECONDS, "an answer of each mirror")
    assert told.out.startswith("can commit: yes; can open: yes;"), told
    assert "m3.drill.test" in told.err and "the name service did not say in time" in told.err
