"""What drills share: mirrors in real processes, owners that can be killed, the command.

Everything listens on loopback, on ports that the system picks, and is ended by its process id when
the test is over. PERSEAS_BUILD names the folder with the binaries, build/ without it.
In a machine of tests/rdma/ the fabric is RDMA, and PERSEAS_HOSTS names the addresses of mirrors.
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
# Where deploy/ lies with the scripts that drills call: tests/mutants has changed ones elsewhere.
SCRIPTS = pathlib.Path(os.environ.get("PERSEAS_SCRIPTS", TOP)) / "deploy"
HERE = pathlib.Path(__file__).resolve().parent
FABRICS = ["rdma"] if EMULATED else ["tcp", "shm"]
# For drills that also run inside TLS: each asks for it itself, since they take their time.
WITH_TLS = FABRICS if EMULATED else [*FABRICS, "tls"]
SECONDS = HANGING_SECONDS
MIB = 1 << 20

# The exit status of `perseas`.
OK, NO, USAGE, PARTLY, FAILURE = range(5)
# Its verbs that ask mirrors.
ASKING = {"create", "status", "ls", "top", "recover", "verify", "snapshot", "restore", "history",
          "heap", "roster", "drop", "spill", "bench", "run", "move", "place", "drain", "doctor"}


class Daemon:
    """One perseasd; it can be reached over every fabric, `address` is of the one asked for."""

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
        """The folder with its images."""
        return self.mirror.folder / "memory"

    def running(self):
        return self.mirror.process.poll() is None

    def kill9(self):
        self.mirror.kill()

    def terminate(self):
        """SIGTERM, and waits; the exit status."""
        return self.mirror.stop()

    def restart(self):
        """The same port, the same memory directory; ends it first where it runs."""
        if self.running():
            self.kill9()
        self.mirror.start()

    def lose_memory(self):
        """It ends, and its images with it, as in a restart of its host. It stays down."""
        if self.running():
            self.kill9()
        self.mirror.lose_memory()

    def stop(self):
        """SIGSTOP, and waits until it is."""
        os.kill(self.pid, signal.SIGSTOP)
        wait_for(lambda: process_state(self.pid) == "T", SECONDS, "a stopped mirror")

    def cont(self):
        os.kill(self.pid, signal.SIGCONT)

    def log(self):
        return self.mirror.log.read_text(errors="replace")


def rounds(count):
    """How often a drill repeats what it usually does so often."""
    return max(2, count // 5) if EMULATED else count


def hosts(count):
    """Where so many mirrors listen: one after the other of PERSEAS_HOSTS, again and again."""
    return [each for each, _ in zip(itertools.cycle(
        os.environ.get("PERSEAS_HOSTS", "127.0.0.1").split(",")), range(count))]


def process_state(pid):
    """The letter of /proc/PID/stat."""
    return pathlib.Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[0]


class Owner:
    """A process that has a store open."""

    def __init__(self, process):
        self.process = process

    @property
    def pid(self):
        return self.process.pid

    def wait_for_line(self, text):
        """Reads its output up to the line that begins so; RuntimeError when it ends before."""
        for line in self.process.stdout:
            if line.startswith(text):
                return line.rstrip("\n")
        raise RuntimeError("the owner ended: " + self.process.stderr.read())

    def kill9(self):
        self.process.kill()
        self.process.wait()

    def last_lines(self):
        """The words of each line that it said since, once it was killed. A line without an end was
        cut short by that, and is none."""
        for line in self.process.stdout:
            if line.endswith("\n"):
                yield line.split()

    def end(self):
        """Lets go of the store in an orderly way; the exit status."""
        self.process.stdin.close()
        return self.process.wait(SECONDS)

    def stop(self):
        os.kill(self.pid, signal.SIGSTOP)
        wait_for(lambda: process_state(self.pid) == "T", SECONDS, "a stopped owner")

    def cont(self):
        os.kill(self.pid, signal.SIGCONT)


def mirror_list(daemons):
    """As --mirrors takes it."""
    return daemons if isinstance(daemons, str) else ",".join(d.address for d in daemons)


@pytest.fixture(params=FABRICS)
def fabric(request):
    return request.param


def patient_daemon(options):
    """These options of perseasd, with a long --owner-timeout unless they set it."""
    if "--owner-timeout" in options:
        return options
    return ("--owner-timeout", str(ANSWER_MS // 1000), *options)


def command_line(*words):
    """`perseas` with these words, and with long timeouts unless they set --connect-timeout."""
    program, words = str(BUILD / "perseas"), [str(word) for word in words]
    if not ASKING.intersection(words[:1]) or "--connect-timeout" in words:
        return [program, *words]
    silent = ["--mirror-timeout", str(ANSWER_MS)] if words[0] == "bench" else []
    return [program, words[0], "--connect-timeout", str(ANSWER_MS), *silent, *words[1:]]


@pytest.fixture
def mirrors(request, monkeypatch):
    """mirrors(n, fabric="tcp", options=()): n fresh mirrors that run. May be called again. With
    "tls" they take TLS only, and whatever connects from now on has a certificate."""
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
    """A mirror at each of these hosts, which are machines of their own as far as the mirrors tell:
    each has the host's name as its label, and an id of the host's boot."""
    return [mirrors(1, options=("--label", "host=" + host, "--boot-id",
                                "%032x" % (1 + hosts.index(host))))[0] for host in hosts]


@pytest.fixture
def owner():
    """owner(store, mirrors, *commands): a process of binding.py, which has done the commands and
    holds the store when it returns."""
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
    """What became of a run of the command."""

    def __init__(self, completed):
        self.status = completed.returncode
        self.out, self.err = completed.stdout, completed.stderr

    def __repr__(self):
        return "status %d\n%s%s" % (self.status, self.out or "", self.err)

    def json(self):
        return json.loads(self.out)


def run_command(*words, mirrors=None, seconds=SECONDS, before=None, stdout=subprocess.PIPE,
                **keywords):
    """Runs `perseas`; a Done. before() is called in the child."""
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
    """Until all of these mirrors are whole and hold the same last transaction: a commit waits for W
    of them, and the slowest may never get what was under way when its owner ends."""
    def even():
        told = run_command("status", store, "--json", mirrors=daemons).json()
        named = told["mirrors"][:len(daemons)]  # others of the roster are asked after them
        return all(m.get("slot") and m["slot"] == told["newest"] and m["state"] == "consistent"
                   for m in named)
    wait_for(even, SECONDS, "mirrors of store %s that stand alike" % store)


def wait_ownerless(store, daemons):
    """Until these mirrors have noticed that the owner is gone."""
    wait_for(lambda: not run_command("status", store, "--json", mirrors=daemons).json()["live"],
             SECONDS, "the end of the owner of store %s" % store)


def noise(count):
    """So many bytes that cannot be compressed, always the same."""
    return random.Random(count).randbytes(count)


def flip(path, offset, bits=0xff):
    """Changes these bits of the file's byte at the offset; done twice, it is as it was."""
    with open(path, "r+b") as file:
        file.seek(offset)
        byte, = file.read(1)
        file.seek(offset)
        file.write(bytes([byte ^ bits]))


def log_of(daemon, store):
    """The file of the log of its image of the store."""
    return max((daemon.memory / store).glob("log.*"), key=lambda path: int(path.suffix[1:]))


def fill(name, daemons, segments, **options):
    """A store with these segments: {name: bytes}; one transaction on each. Their addresses."""
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
    """bank(n, ...): fresh mirrors, as mirrors(n, ...) makes them, with a store "bank" that nobody
    owns. Its segment "accounts" is a page of zeros."""
    def make(*words, **options):
        daemons = mirrors(*words, **options)
        fill("bank", daemons, {"accounts": bytes(4096)})
        return daemons
    return make


@pytest.fixture
def perseas():
    """perseas(words..., mirrors=...): runs the command."""
    return run_command
