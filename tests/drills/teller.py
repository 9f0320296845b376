"""Owners of teller.c for drills: some run by themselves, some are driven line by line. What they
were promised is in a page that outlives them.

Test modules import the fixtures `tellers` and `dice` from here.
"""
import itertools
import mmap
import os
import pathlib
import random
import select
import signal
import struct
import subprocess
import time
import zlib

import pytest

from drill import BUILD, SECONDS, mirror_list, process_state, tied, wait_for

TELLER = BUILD / "tests/drills/teller"
FENCED = 3                              # exit status
ENDED = 3                               # a page's phase

# Small enough that the log on the mirrors laps all the time.
LOG = "log=262144"


def until(predicate, what, seconds=SECONDS):
    """The first true value of predicate(); TimeoutError names `what`."""
    return wait_for(predicate, seconds, what)


def random_moment(dice, most):
    """Lets up to so many seconds pass: for a kill that may come at any step of what goes on. It
    waits for nothing, so no test depends on how long it is."""
    end = time.monotonic() + dice.uniform(0, most)
    while time.monotonic() < end:
        pass


def seed_of(node):
    """PERSEAS_SEED, or a drawn number if that is "random"; by default, one of the test's name."""
    given = os.environ.get("PERSEAS_SEED")
    if given == "random":
        return random.SystemRandom().getrandbits(32)
    return int(given) if given else zlib.crc32(("%s::%s" % (node.path.name, node.name)).encode())


@pytest.fixture
def dice(request):
    """Choices that are the same in every run; a test that fails shows their seed."""
    seed = seed_of(request.node)
    print("PERSEAS_SEED=%d" % seed)
    dice = random.Random(seed)
    dice.began_with = seed              # for reports
    return dice


class Page:
    """struct page of owner.h."""
    FIELDS = ("acked", "attempted", "error", "phase", "stop", "in_doubt", "slowest", "found",
              "missing", "first_at", "last_at")
    FLUSHES = 2

    def __init__(self, path):
        self.path = path
        with open(path, "wb") as file:
            file.truncate(mmap.PAGESIZE)
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def __getattr__(self, name):
        return struct.unpack_from("<q", self.memory, 8 * self.FIELDS.index(name))[0]

    def tell_to_stop(self):
        struct.pack_into("<q", self.memory, 8 * self.FIELDS.index("stop"), 1)

    def forget(self):
        """As if its owner had not committed since it was opened."""
        struct.pack_into("<q", self.memory, 8 * self.FIELDS.index("first_at"), 0)

    def advances(self, count, seconds=SECONDS):
        """Waits until so many more transactions are acknowledged."""
        goal = self.acked + count
        until(lambda: self.acked >= goal, "%d more transactions" % count, seconds)


class Refused(Exception):
    """An answer that was an error; name is PERSEAS_E…"""

    def __init__(self, name, text):
        super().__init__("%s %s" % (name, text))
        self.name, self.text = name, text


class Process:
    """A teller."""

    def __init__(self, page, words, wrap=(), **pipes):
        self.page = page
        self.process = subprocess.Popen(**tied([*wrap, TELLER, *words]), **pipes)

    @property
    def pid(self):
        return self.process.pid

    def running(self):
        return self.process.poll() is None

    def kill9(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        os.kill(self.pid, signal.SIGSTOP)
        until(lambda: process_state(self.pid) == "T", "a stopped owner")

    def cont(self):
        os.kill(self.pid, signal.SIGCONT)

    def tidy_up(self):
        if self.running():
            self.kill9()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe:
                pipe.close()


class Runner(Process):
    """Runs transactions by itself."""

    def __init__(self, page, store, daemons, options):
        super().__init__(page, ["run", store, mirror_list(daemons), page.path, *options],
                         stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def advances(self, count):
        """Waits until so many more are acknowledged; an owner that ended instead is an error."""
        goal = self.page.acked + count
        until(lambda: self.page.acked >= goal or not self.running(), "%d transactions" % count)
        if not self.running():
            raise RuntimeError("the owner ended: " + self.process.stderr.read())

    def wait(self):
        """The exit status and what it said."""
        status = self.process.wait(SECONDS)
        return status, self.process.stderr.read()


class Desk(Process):
    """Obeys the commands of desk.h."""

    def __init__(self, page, wrap=()):
        super().__init__(page, ["desk", page.path], wrap, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
        self.buffer = b""

    def send(self, *words):
        """Gives a command, and does not wait for its answer."""
        line = " ".join(str(w) for w in words) + "\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()

    def answers(self):
        """How many answers are there that nobody has taken."""
        while select.select([self.process.stdout], [], [], 0)[0]:
            part = os.read(self.process.stdout.fileno(), 65536)
            if not part:
                break
            self.buffer += part
        return self.buffer.count(b"\n")

    def answer(self, seconds=SECONDS):
        """What stands after "ok" in the next answer; raises Refused."""
        while b"\n" not in self.buffer:
            if not select.select([self.process.stdout], [], [], seconds)[0]:
                raise TimeoutError("no answer within %g s" % seconds)
            part = os.read(self.process.stdout.fileno(), 65536)
            if not part:
                raise RuntimeError("the owner ended with status %d" % self.process.wait(SECONDS))
            self.buffer += part
        line, _, self.buffer = self.buffer.partition(b"\n")
        verdict, _, rest = line.decode(errors="replace").partition(" ")
        if verdict == "error":
            raise Refused(*rest.split(" ", 1))
        assert verdict == "ok"
        return rest

    def ask(self, *words, seconds=SECONDS):
        self.send(*words)
        return self.answer(seconds)

    def refused(self, *words):
        """The error that a command must give."""
        with pytest.raises(Refused) as caught:
            self.ask(*words)
        return caught.value

    def open(self, store, daemons, *options):
        """(epoch, seq)"""
        return tuple(map(int, self.ask("open", store, mirror_list(daemons), *options).split()))

    def books(self):
        """Maps the books; the transactions that they hold."""
        return int(self.ask("books"))

    def run(self, count):
        return int(self.ask("run", count))

    def check(self):
        return int(self.ask("check"))

    def transaction(self, segment, offset, length, byte):
        """One that stores the byte in a range."""
        self.ask("begin")
        self.ask("range", segment, offset, length)
        self.ask("store", segment, offset, length, byte)
        self.ask("commit")

    def figures(self):
        return {k: int(v) for k, v in (w.split("=") for w in self.ask("stat").split())}

    def events(self):
        """[(kind, mirror)], all that were told."""
        return [tuple(word.split(":", 1)) for word in self.ask("events").split()]

    def states(self):
        """[(state, seq)] of the mirrors."""
        pairs = (word.split(":") for word in self.ask("mirrors").split())
        return [(state, int(seq)) for state, seq in pairs]

    def settle(self):
        """Waits until every mirror holds every transaction, not only W of them."""
        until(lambda: {seq for _, seq in self.states()} == {self.figures()["seq"]},
              "mirrors that hold everything")

    def all_live(self, count):
        return self.figures()["live"] == count

    def work_until_live(self, count, transactions=200):
        """Waits until so many mirrors are live. Transactions go on, but no more than this: the
        ring must hold what is to be replayed."""
        batches = [20] * (transactions // 20)

        def live():
            if batches:
                self.run(batches.pop())
            return self.all_live(count)

        until(live, "%d live mirrors" % count)

    def exit(self):
        self.send("exit")
        self.process.wait(SECONDS)


class Tellers:
    """Starts tellers, and ends them when the test is over."""

    def __init__(self, folder):
        self.folder, self.processes, self.numbers = folder, [], itertools.count(1)

    def page(self):
        return Page(self.folder / ("page%d" % next(self.numbers)))

    def _keep(self, process):
        self.processes.append(process)
        return process

    def run(self, store, daemons, *options, page=None):
        return self._keep(Runner(page or self.page(), store, daemons, options))

    def desk(self, page=None, wrap=()):
        return self._keep(Desk(page or self.page(), wrap))

    def verify(self, store, daemons, page, *options):
        """Takes the store over in another process, which compares every byte; the number of
        transactions that are there."""
        done = subprocess.run(**tied([TELLER, "verify", store, mirror_list(daemons), page.path,
                                      *options]), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    def close_ended(self):
        """Closes the pipes of ended processes, so that a long drill does not run out of
        descriptors."""
        for process in self.processes:
            if not process.running():
                process.tidy_up()
        self.processes = [process for process in self.processes if process.running()]

    def tidy_up(self):
        for process in self.processes:
            process.tidy_up()


@pytest.fixture
def tellers(tmp_path):
    tellers = Tellers(tmp_path)
    yield tellers
    tellers.tidy_up()


def pieces(daemons):
    """Every byte that the daemons keep, by the path of its file."""
    return {path: path.read_bytes() for daemon in daemons
            for path in sorted(pathlib.Path(daemon.memory).rglob("*")) if path.is_file()}
