"""Owners of teller.c for drills: some run by themselves, some are driven line by line. What was
acknowledged to them is in a page that outlives them.

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

from drill import BUILD, SECONDS, mirror_list, process_state, run_command, tied, wait_for

TELLER = BUILD / "tests/drills/teller"
FENCED = 3                              # exit status
ENDED = 3                               # a page's phase

# Small enough that the log on the mirrors wraps around all the time.
LOG = "log=262144"


def until(predicate, what, seconds=SECONDS):
    """Returns the first true value of predicate(). Raises TimeoutError with `what`."""
    return wait_for(predicate, seconds, what)


def random_moment(dice, most):
    """Lets up to `most` seconds pass, for a kill at a random point. It waits for nothing in
    particular, so no test depends on how long it takes."""
    end = time.monotonic() + dice.uniform(0, most)
    while time.monotonic() < end:
        pass


def seed_of(node):
    """Returns PERSEAS_SEED, or a random number if that is "random"; by default a hash of the test's
    name."""
    given = os.environ.get("PERSEAS_SEED")
    if given == "random":
        return random.SystemRandom().getrandbits(32)
    return int(given) if given else zlib.crc32(("%s::%s" % (node.path.name, node.name)).encode())


@pytest.fixture
def dice(request):
    """Random choices that are the same in every run. A test that fails shows their seed."""
    seed = seed_of(request.node)
    print("PERSEAS_SEED=%d" % seed)
    dice = random.Random(seed)
    dice.began_with = seed              # for reports
    return dice


class Page:
    """struct page of owner.h, mapped from its file."""
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
        """Resets first_at, as if the owner had not committed since it opened the store."""
        struct.pack_into("<q", self.memory, 8 * self.FIELDS.index("first_at"), 0)

    def advances(self, count, seconds=SECONDS):
        """Waits until `count` more transactions are acknowledged."""
        goal = self.acked + count
        until(lambda: self.acked >= goal, "%d more transactions" % count, seconds)


class Refused(Exception):
    """An answer that was an error; `name` is PERSEAS_E…"""

    def __init__(self, name, text):
        super().__init__("%s %s" % (name, text))
        self.name, self.text = name, text


class Process:
    """A process of teller.c."""

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
    """A teller that runs transactions by itself."""

    def __init__(self, page, store, daemons, options):
        super().__init__(page, ["run", store, mirror_list(daemons), page.path, *options],
                         stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def advances(self, count):
        """Waits until `count` more transactions are acknowledged. Raises RuntimeError if the owner
        ends."""
        goal = self.page.acked + count
        until(lambda: self.page.acked >= goal or not self.running(), "%d transactions" % count)
        if not self.running():
            raise RuntimeError("the owner ended: " + self.process.stderr.read())

    def wait(self):
        """Waits for the end. Returns the exit status and the error output."""
        status = self.process.wait(SECONDS)
        return status, self.process.stderr.read()


class Desk(Process):
    """A teller that executes the commands of desk.h."""

    def __init__(self, page, wrap=()):
        super().__init__(page, ["desk", page.path], wrap, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
        self.buffer = b""

    def send(self, *words):
        """Sends a command without waiting for its answer."""
        line = " ".join(str(w) for w in words) + "\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()

    def answers(self):
        """Returns how many answers have arrived and were not taken."""
        while select.select([self.process.stdout], [], [], 0)[0]:
            part = os.read(self.process.stdout.fileno(), 65536)
            if not part:
                break
            self.buffer += part
        return self.buffer.count(b"\n")

    def answer(self, seconds=SECONDS):
        """Returns the text after "ok" in the next answer. Raises Refused for an error."""
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
        """Runs a command that must fail. Returns its error."""
        with pytest.raises(Refused) as caught:
            self.ask(*words)
        return caught.value

    def open(self, store, daemons, *options):
        """Opens a store. Returns (epoch, seq)."""
        return tuple(map(int, self.ask("open", store, mirror_list(daemons), *options).split()))

    def books(self):
        """Maps the books. Returns the number of the last transaction in them."""
        return int(self.ask("books"))

    def run(self, count):
        return int(self.ask("run", count))

    def check(self):
        return int(self.ask("check"))

    def transaction(self, segment, offset, length, byte):
        """Runs a transaction that stores the byte in a range."""
        self.ask("begin")
        self.ask("range", segment, offset, length)
        self.ask("store", segment, offset, length, byte)
        self.ask("commit")

    def figures(self):
        return {k: int(v) for k, v in (w.split("=") for w in self.ask("stat").split())}

    def events(self):
        """Returns all events so far: [(kind, mirror)]."""
        return [tuple(word.split(":", 1)) for word in self.ask("events").split()]

    def states(self):
        """Returns the mirrors' states: [(state, seq)]."""
        pairs = (word.split(":") for word in self.ask("mirrors").split())
        return [(state, int(seq)) for state, seq in pairs]

    def settle(self):
        """Waits until all mirrors have every transaction, not only W of them."""
        until(lambda: {seq for _, seq in self.states()} == {self.figures()["seq"]},
              "mirrors that hold everything")

    def all_live(self, count):
        return self.figures()["live"] == count

    def work_until_live(self, count, transactions=200):
        """Waits until `count` mirrors are live. Runs transactions in the meantime, but at most
        `transactions`: the ring must have room for all that will be replayed."""
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
    """Starts tellers, and ends them after the test."""

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
        """Takes the store over in another process that compares every byte. Returns the number of
        transactions in the store."""
        done = subprocess.run(**tied([TELLER, "verify", store, mirror_list(daemons), page.path,
                                      *options]), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    def verify_images(self, store, daemons, page):
        """As verify, then compares the images of all mirrors. The process that took the store over
        may have ended before a mirror that lagged was up to date; perseas recover waits for it."""
        number = self.verify(store, daemons, page)
        for verb in "recover", "verify":
            done = run_command(verb, store, mirrors=daemons)
            assert done.status == 0, done
        return number

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
    """Returns every byte that the daemons store, by the path of its file."""
    return {path: path.read_bytes() for daemon in daemons
            for path in sorted(pathlib.Path(daemon.memory).rglob("*")) if path.is_file()}
