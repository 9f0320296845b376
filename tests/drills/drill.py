"""Helpers that drills share: mirrors in real processes, owners that can be killed, the command.

Everything listens on the loopback, on ports that the system picks, and is ended by its process id
after the test. PERSEAS_BUILD names the folder with the binaries, by default build/. In a machine of
tests/rdma/ the fabric is RDMA, and PERSEAS_HOSTS has the addresses of mirrors.
"""
import itertools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "bench"))

from binding import ANSWER_MS, CREATE, Store  # noqa: E402
from cluster import EMULATED, HANGING_SECONDS, PATIENCE, Cluster  # noqa: E402
from cluster import die_with_parent, stolen_seconds, tied, wait_for  # noqa: E402

BUILD = pathlib.Path(os.environ.get("PERSEAS_BUILD", TOP / "build"))
# The deploy/ folder with the scripts that drills run; tests/mutants has changed copies elsewhere.
SCRIPTS = pathlib.Path(os.environ.get("PERSEAS_SCRIPTS", TOP)) / "deploy"
HERE = pathlib.Path(__file__).resolve().parent
FABRICS = ["rdma"] if EMULATED else ["tcp", "shm"]
# Fabrics for drills that also run over TLS. Each such drill asks for them, because TLS takes time.
WITH_TLS = FABRICS if EMULATED else [*FABRICS, "tls"]
SECONDS = HANGING_SECONDS
MIB = 1 << 20

# The exit statuses of `perseas`.
OK, NO, USAGE, PARTLY, FAILURE = range(5)
# Its commands that ask mirrors.
ASKING = {"create", "status", "ls", "top", "recover", "verify", "snapshot", "restore", "history",
          "heap", "roster", "drop", "spill", "bench", "run", "move", "place", "drain", "doctor"}


class Daemon:
    """A perseasd process. It listens on every fabric; `address` is for the one requested."""

    def __init__(self, mirror, fabric):
        self.mirror, self.fabric = mirror, fabric

    @property
    def address(self):
        return {"tcp": self.mirror.tcp, "tls": self.mirror.tcp, "shm": self.mirror.unix,
                "rdma": self.mirror.rdma}[self.fabric]

    @property
    def pid(self):
        return self.mirror.process.pid

    @property
    def memory(self):
        """Returns the folder with its images."""
        return self.mirror.folder / "memory"

    def running(self):
        return self.mirror.process.poll() is None

    def kill9(self):
        self.mirror.kill()

    def terminate(self):
        """Ends perseasd with SIGTERM. Returns its exit status."""
        return self.mirror.stop()

    def restart(self):
        """Starts perseasd with the same port and memory directory, after killing it if it runs."""
        if self.running():
            self.kill9()
        self.mirror.start()

    def lose_memory(self):
        """Kills perseasd and deletes its images, as a restart of its host would. It stays down."""
        if self.running():
            self.kill9()
        self.mirror.lose_memory()

    def stop(self):
        """Stops perseasd with SIGSTOP, and waits until it is stopped."""
        os.kill(self.pid, signal.SIGSTOP)
        wait_for(lambda: process_state(self.pid) == "T", SECONDS, "a stopped mirror")

    def cont(self):
        os.kill(self.pid, signal.SIGCONT)

    def log(self):
        return self.mirror.log.read_text(errors="replace")


def rounds(count):
    """Returns how often a drill repeats something: `count`, or less in an emulated machine."""
    return max(2, count // 5) if EMULATED else count


def hosts(count):
    """Returns the addresses for `count` mirrors, cycling through PERSEAS_HOSTS."""
    return [each for each, _ in zip(itertools.cycle(
        os.environ.get("PERSEAS_HOSTS", "127.0.0.1").split(",")), range(count))]


def process_state(pid):
    """Returns the state letter of /proc/PID/stat."""
    return pathlib.Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[0]


class Owner:
    """A process that has a store open."""

    def __init__(self, process):
        self.process = process

    @property
    def pid(self):
        return self.process.pid

    def wait_for_line(self, text):
        """Reads output up to a line that begins with `text`. Raises RuntimeError if the process
        ends before."""
        for line in self.process.stdout:
            if line.startswith(text):
                return line.rstrip("\n")
        raise RuntimeError("the owner ended: " + self.process.stderr.read())

    def kill9(self):
        self.process.kill()
        self.process.wait()

    def last_lines(self):
        """Yields the words of each further line of a killed process. Skips a line that the kill cut
        short."""
        for line in self.process.stdout:
            if line.endswith("\n"):
                yield line.split()

    def end(self):
        """Has the owner close the store. Returns its exit status."""
        self.process.stdin.close()
        return self.process.wait(SECONDS)

    def stop(self):
        os.kill(self.pid, signal.SIGSTOP)
        wait_for(lambda: process_state(self.pid) == "T", SECONDS, "a stopped owner")

    def cont(self):
        os.kill(self.pid, signal.SIGCONT)


def mirror_list(daemons):
    """Returns a list as --mirrors takes it."""
    return daemons if isinstance(daemons, str) else ",".join(d.address for d in daemons)


@pytest.fixture(params=FABRICS)
def fabric(request):
    return request.param


def patient_daemon(options):
    """Adds a long --owner-timeout to options of perseasd unless they have one."""
    if "--owner-timeout" in options:
        return options
    return ("--owner-timeout", str(ANSWER_MS // 1000), *options)


def command_line(*words):
    """Returns a `perseas` command line, with long timeouts unless `words` has --connect-timeout."""
    program, words = str(BUILD / "perseas"), [str(word) for word in words]
    if not ASKING.intersection(words[:1]) or "--connect-timeout" in words:
        return [program, *words]
    silent = ["--mirror-timeout", str(ANSWER_MS)] if words[0] == "bench" else []
    return [program, words[0], "--connect-timeout", str(ANSWER_MS), *silent, *words[1:]]


@pytest.fixture
def mirrors(request, monkeypatch):
    """mirrors(n, fabric="tcp", options=()) starts n new mirrors. It may be called again. With "tls"
    the mirrors accept only TLS, and processes started afterward have a certificate."""
    clusters = []

    def start(count, fabric="tcp", options=()):
        if fabric == "tls":
            authority = request.getfixturevalue("authority")
            options = (*authority.options("mirror"), *options)
            for name, value in authority.environment("owner").items():
                monkeypatch.setenv(name, value)
        cluster = Cluster(BUILD, count, patient_daemon(options), hosts=hosts(count))
        clusters.append(cluster)
        cluster.__enter__()
        return [Daemon(mirror, fabric) for mirror in cluster.mirrors]

    yield start
    for cluster in clusters:
        cluster.__exit__()


def at_hosts(mirrors, *hosts):
    """Starts a mirror for each host. The mirrors pass for different machines: each has the host's
    name as its label and its own boot id."""
    return [mirrors(1, options=("--label", "host=" + host, "--boot-id",
                                "%032x" % (1 + hosts.index(host))))[0] for host in hosts]


@pytest.fixture
def owner():
    """owner(store, mirrors, *commands) starts binding.py, and returns once it has run the commands
    and holds the store."""
    owners = []

    def start(store, daemons, *commands):
        process = subprocess.Popen(
            **tied([sys.executable, HERE / "binding.py", store, mirror_list(daemons), *commands,
                    "hold"]), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        owners.append(Owner(process))
        owners[-1].wait_for_line("holding")
        return owners[-1]

    yield start
    for each in owners:
        if each.process.poll() is None:
            each.kill9()
        for pipe in (each.process.stdin, each.process.stdout, each.process.stderr):
            pipe.close()


class Done:
    """The result of a run of the command."""

    def __init__(self, completed):
        self.status = completed.returncode
        self.out, self.err = completed.stdout, completed.stderr

    def __repr__(self):
        return "status %d\n%s%s" % (self.status, self.out or "", self.err)

    def json(self):
        return json.loads(self.out)


def run_command(*words, mirrors=None, seconds=SECONDS, before=None, stdout=subprocess.PIPE,
                **keywords):
    """Runs `perseas`. Calls before() in the child. Returns a Done."""
    line = command_line(*words)
    if mirrors is not None:
        line += ["--mirrors", mirror_list(mirrors)]

    if before:
        keywords["preexec_fn"] = before
    return Done(subprocess.run(**{**tied(line), **keywords}, stdin=subprocess.DEVNULL,
                               stdout=stdout, stderr=subprocess.PIPE, encoding="utf-8",
                               errors="surrogateescape", timeout=seconds))


def status_of(name, daemons):
    return run_command("status", name, "--json", mirrors=daemons).json()


def wait_even(store, daemons):
    """Waits until all of these mirrors are consistent and have the same last transaction. A commit
    waits for W mirrors only, so the slowest may never get the transactions in flight when its owner
    ends."""
    def even():
        told = run_command("status", store, "--json", mirrors=daemons).json()
        named = told["mirrors"][:len(daemons)]  # other mirrors of the roster are asked after them
        return all(m.get("slot") and m["slot"] == told["newest"] and m["state"] == "consistent"
                   for m in named)
    wait_for(even, SECONDS, "mirrors of store %s that stand alike" % store)


def wait_ownerless(store, daemons):
    """Waits until these mirrors have noticed that the owner is gone."""
    wait_for(lambda: not run_command("status", store, "--json", mirrors=daemons).json()["live"],
             SECONDS, "the end of the owner of store %s" % store)


def noise(count):
    """Returns `count` incompressible bytes, always the same."""
    return random.Random(count).randbytes(count)


def flip(path, offset, bits=0xff):
    """Flips these bits of the file's byte at `offset`. A second call restores it."""
    with open(path, "r+b") as file:
        file.seek(offset)
        byte, = file.read(1)
        file.seek(offset)
        file.write(bytes([byte ^ bits]))


def log_of(daemon, store):
    """The file of the log of its image of the store."""
    return max((daemon.memory / store).glob("log.*"), key=lambda path: int(path.suffix[1:]))


def fill(name, daemons, segments, **options):
    """Creates a store with these segments, {name: bytes}, and runs a transaction on each. Returns
    their addresses."""
    with Store(name, mirror_list(daemons), flags=CREATE, **options) as store:
        addresses = {each: store.map(each, len(data)) for each, data in segments.items()}
        for each, data in segments.items():
            store.poke(each, 0, data)
        store.publish()
        for each, data in segments.items():
            store.write(each, 0, data[:8])
        wait_even(name, [d for d in daemons if d.running()])
    return addresses


@pytest.fixture
def bank(mirrors):
    """bank(n, ...) starts mirrors, as mirrors(n, ...) does, with a store "bank" without an owner.
    Its segment "accounts" is a page of zeros."""
    def make(*words, **options):
        daemons = mirrors(*words, **options)
        fill("bank", daemons, {"accounts": bytes(4096)})
        return daemons
    return make


@pytest.fixture
def perseas():
    """perseas(words..., mirrors=...) runs the command."""
    return run_command
