#!/usr/bin/env python3
"""Measures how much the owner of one store notices of other stores on its mirror. A victim commits
over tcp while neighbors, one kind after another, send the same daemon the most expensive requests.
Prints the victim's rate and longest pause with each kind and without, in Markdown, and saves every
figure to build/neighbours.json. Uses the loopback only; the number and duration of requests are
bounded.

Targets: at least half of the rate, and no pause more than 20 ms longer than without neighbors. The
exit status is 1 if one is missed, except with --short. All processes share this host's processors:
with few of them, or on a busy host, the rate depends on those, too. So the first row has no
neighbors but processes that only compute: no daemon can give back what these take.
"""
import argparse
import contextlib
import json
import os
import pathlib
import select
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

from certificates import Authority
from cluster import PATIENCE, Cluster, Mirror
from worker import MIB, Delays, Worker, table

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/drills"))
import crc32c  # noqa: E402
import updates  # noqa: E402
import wire  # noqa: E402

RATE_LEAST, PAUSE_MORE_MS = 0.5, 20
GIB = 1 << 30
SECONDS = 120 * PATIENCE                # timeout for one request
ADD, DIGEST, LIST, RELEASE = 8, 16, 1, 15
RECORD_MAGIC, RING, HEAD = 0x52535031, 4096, 64
ENTRIES_ONCE = 1 << 16
HANDSHAKES = 64
FLOODS = 2
LINES = 20000                           # lines written to a log that nobody reads


class Victim(Worker):
    """An owner of a small store, whose progress is measured in intervals."""

    def __init__(self, cluster, **keywords):
        super().__init__(cluster, cluster.tcp(), "--make", "--size", MIB, "--store", "victim",
                         **keywords)
        self.pids = [self.process.pid] + [each.process.pid for each in cluster.mirrors]

    def stretch(self, seconds, going_on):
        """Returns rate and longest pause over at least `seconds` and while going_on()."""
        first, until, longest, rest = self.ask(), time.monotonic() + seconds, 0, 0
        delays, told = Delays(self.pids), first
        while time.monotonic() < until or going_on():
            time.sleep(0.01)            # between two samples
            told = self.ask()
            longest = max(longest, told["longest_ns"])
            rest = max(rest, delays.rest_of(told["longest_ns"] / 1e6))
        took = max(told["at_ns"] - first["at_ns"], 1)
        return {"rate": (told["number"] - first["number"]) * 1e9 / took,
                "longest_ms": longest / 1e6, "seconds": took / 1e9,
                "rest_ms": rest}


class Neighbours:
    """What neighbors do. Each kind is a function that runs until it is done or is told to stop."""

    def __init__(self, args, cluster, environment):
        self.args, self.cluster, self.environment = args, cluster, environment
        self.stop = threading.Event()
        self.address = cluster.mirrors[0].tcp
        self.epochs = 0

    # --- their own stores ---

    def command(self, *words):
        """Runs a perseas command with a timeout that a busy machine meets."""
        done = self.cluster.run(self.cluster.build / "perseas", *words, "--connect-timeout",
                                60000, seconds=SECONDS, env=self.environment)
        if done.returncode:
            raise RuntimeError("perseas %s: %s" % (words[0], done.stderr))

    def store(self, name, size):
        """Creates a store with a full segment and no owner."""
        worker = Worker(self.cluster, self.cluster.tcp(), "--make", "--size", size, "--store", name)
        worker.end()

    def claim(self, store):
        """Claims a store by hand. Returns the control connection of the session."""
        control = wire.Control(self.address)
        control.peer.settimeout(SECONDS)
        self.epochs += 1
        control.token = control.claim(store, self.epochs)
        return control

    def segment(self, control, size):
        """Allocates and maps a segment at the mirror."""
        fields = wire.field(1, 0) + wire.field(2, "large") + wire.field(3, size) + \
            wire.field(4, GIB)
        reply = control.ask(wire.field(ADD, wire.field(1, fields)))
        if reply.get(1, wire.STATUS_OK) != wire.STATUS_OK:
            raise RuntimeError("a segment of %d bytes: %s" % (size, reply.get(2)))

    def claim_again(self):
        """Claims the store that a command or worker had. Returns the session, and the fields of its
        commit slot."""
        control, epoch = wire.Control(self.address), 1
        control.peer.settimeout(SECONDS)
        while True:
            reply = control.ask(wire.field(wire.CLAIM, wire.field(1, "claimed") +
                                           wire.field(2, epoch) + wire.field(3, os.urandom(16)) +
                                           wire.field(4, 1)))
            if reply.get(1, wire.STATUS_OK) == wire.STATUS_OK:
                break
            epoch += 1
        self.epochs = epoch
        claim = wire.fields(reply[wire.CLAIM_REPLY])
        control.token = wire.fields(claim[wire.GRANT])[wire.TOKEN]
        return control, wire.fields(claim[2])

    # --- the kinds ---

    def prepare_map(self):
        self.command("create", "mapped", "--mirrors", self.address)

    def map(self):
        control = self.claim("mapped")
        self.segment(control, self.args.map)
        control.ask(wire.field(9, wire.field(1, b"\0")))       # frees it
        control.peer.close()

    def prepare_verify(self):
        self.store("large", self.args.size)

    def verify(self):
        self.command("verify", "large", "--mirrors", self.address)

    def snapshot(self):
        with tempfile.TemporaryDirectory(dir=self.cluster.folder) as folder:
            self.command("snapshot", "large", "--to", pathlib.Path(folder) / "file",
                         "--from", self.address)

    def prepare_claim(self):
        """Leaves the state of an owner that died with a transaction of as many small ranges as its
        log has room for."""
        self.command("create", "claimed", "--mirrors", self.address, "--log-size",
                     str(2 * self.args.record))
        self.store("claimed", MIB)
        control, slot = self.claim_again()
        data = wire.connect(self.address)
        data.sendall(wire.data_hello(control.token))
        assert wire.answer(wire.receive(data, 16))[1] == wire.OK
        count = (self.args.record - 2 * HEAD) // 24
        entry, length = wire.struct.pack("<IIQQ", 0, 8, 0, 0), HEAD + 24 * count
        room = 2 * self.args.record - RING
        place = slot[3] if length <= room - slot[3] % room else (slot[3] // room + 1) * room
        head = [RECORD_MAGIC, 1, 0, slot[1], slot[2] + 1, place, slot.get(4, 0), length, count,
                0, 0, 0]
        layout = "<IHHQQQQIIQII"
        head[10] = crc32c.combine(crc32c.of(wire.struct.pack(layout, *head)),
                                  crc32c.repeated(entry, count), 24 * count)
        begin = RING + place % room
        self.write(data, begin, wire.struct.pack(layout, *head))
        for at in range(0, count, ENTRIES_ONCE):
            self.write(data, begin + HEAD + 24 * at, entry * min(ENTRIES_ONCE, count - at))
        data.close()
        control.peer.close()

    @staticmethod
    def write(data, offset, content):
        data.sendall(wire.frame(wire.WRITE, (wire.LOG, len(content), offset),
                                flags=wire.SIGNALLED, cookie=1) + content)
        assert wire.answer(wire.receive(data, 16))[1] == wire.OK

    def claimed(self):
        self.claim("claimed").peer.close()

    def handshakes(self):
        """Does many TLS handshakes at a time, each with a valid certificate."""
        context = ssl.create_default_context(cafile=self.environment["PERSEAS_TLS_CA"])
        context.load_cert_chain(self.environment["PERSEAS_TLS_CERT"],
                                self.environment["PERSEAS_TLS_KEY"])
        peers = []
        for _ in range(HANDSHAKES):
            peer = context.wrap_socket(wire.connect(self.address), do_handshake_on_connect=False,
                                       server_hostname="127.0.0.1")
            peer.setblocking(False)
            peers.append(peer)
        left, ready = set(peers), peers
        while left and not self.stop.is_set():
            for peer in ready:
                with contextlib.suppress(ssl.SSLWantReadError):
                    peer.do_handshake()
                    left = left - {peer}
            ready = select.select(left, [], [], 0.1)[0]
        for peer in peers:
            peer.close()

    def updates(self):
        """Floods the daemon with TLS key updates. The daemon ends each connection, because it
        accepts only so many."""
        with wire.connect(self.address) as peer:
            peer.setblocking(True)
            updates.flood(peer, self.environment["PERSEAS_TLS_CERT"],
                          self.environment["PERSEAS_TLS_KEY"], lambda: not self.stop.is_set())

    def flood(self, control):
        """Sends requests endlessly and discards the answers. The connection belongs to the caller.
        Sleeps while the daemon accepts no more, because a client on another host would not compute
        on this one either."""
        control.peer.setblocking(False)
        request = wire.message(wire.field(LIST, b"")) * 64
        while not self.stop.is_set():
            readable, writable, _ = select.select([control.peer], [control.peer], [], 0.1)
            with contextlib.suppress(BlockingIOError):
                if writable:
                    control.peer.send(request)
                if readable:
                    control.peer.recv(1 << 16)

    def floods(self, controls):
        threads = [threading.Thread(target=self.flood, args=(control,)) for control in controls]
        for thread in threads:
            thread.start()
        self.stop.wait(SECONDS)
        for thread, control in zip(threads, controls):
            thread.join()
            control.peer.close()

    def prepare_owners(self):
        for number in range(FLOODS):
            self.command("create", "flood%d" % number, "--mirrors", self.address)

    def owners(self):
        self.floods([self.claim("flood%d" % number) for number in range(FLOODS)])

    def strangers(self):
        self.floods([wire.Control(self.address) for _ in range(FLOODS)])

    def processors(self):
        """Runs processes that only compute, one for each processor, which any load on this host
        would cost."""
        with contextlib.ExitStack() as stack:
            for _ in os.sched_getaffinity(0):
                busy = self.cluster.spawn(sys.executable, "-c", "while True: pass")
                stack.callback(busy.wait)
                stack.callback(busy.kill)
            self.stop.wait(SECONDS)

    def log(self):
        """Causes log lines: claims and a connection that the daemon refuses."""
        control = wire.Control(self.address)
        for _ in range(LINES):
            if self.stop.is_set():
                break
            control.ask(wire.field(wire.CLAIM, wire.field(1, "none") + wire.field(2, 1) +
                                   wire.field(3, os.urandom(16))))
        control.peer.close()


KINDS = {
    "processors": "nobody, but processes that only compute, one for each processor: the limit",
    "map": "a segment of %(map)s is made",
    "verify": "perseas verify of %(size)s",
    "claimed": "claims that roll a record of %(record)s back, of ranges of 8 bytes",
    "snapshot": "perseas snapshot of %(size)s",
    "handshakes": "%d handshakes of TLS at a time" % HANDSHAKES,
    "updates": "key updates of TLS without an end",
    "owners": "%d owners that ask without an end" % FLOODS,
    "strangers": "%d others that ask without an end" % FLOODS,
    "log": "a log that nobody reads, and refusals",
}
PREPARE = {"map": "prepare_map", "verify": "prepare_verify", "snapshot": "prepare_verify",
           "claimed": "prepare_claim", "owners": "prepare_owners"}


def measure(args, kind, cluster, environment):
    neighbours = Neighbours(args, cluster, environment)
    if kind in PREPARE:
        getattr(neighbours, PREPARE[kind])()
    victim = Victim(cluster)
    quiet = victim.stretch(args.seconds, lambda: False)
    failures = []

    def disturb():
        try:
            while not neighbours.stop.is_set():
                getattr(neighbours, kind)()
        except (OSError, EOFError, RuntimeError, AssertionError,
                subprocess.SubprocessError) as error:
            failures.append(error)

    thread = threading.Thread(target=disturb)
    thread.start()
    loud = victim.stretch(args.seconds, lambda: False)
    neighbours.stop.set()
    # An interval that has begun is measured to its end.
    rest = victim.stretch(0, thread.is_alive)
    thread.join()
    victim.end()
    if failures:
        raise RuntimeError("%s: %r" % (kind, failures[0]))
    ratio = loud["rate"] / quiet["rate"]
    longest = max(loud["longest_ms"], rest["longest_ms"])
    return {"kind": kind, "without": quiet, "with": loud, "rest": rest, "rate_ratio": ratio,
            "longest_ms": longest, "rate_met": ratio >= RATE_LEAST,
            "pause_met": longest <= quiet["longest_ms"] + PAUSE_MORE_MS}


@contextlib.contextmanager
def stalled_log():
    """Redirects the standard error of daemons to a pipe that nobody reads."""
    folder = tempfile.mkdtemp(prefix="perseas-log-")
    pipe = pathlib.Path(folder) / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    Mirror.wrap = ["sh", "-c", 'exec "$@" 2>"%s"' % pipe, "-"]
    try:
        yield
    finally:
        Mirror.wrap = []
        os.close(reader)
        shutil.rmtree(folder, ignore_errors=True)


def with_daemon(args, kind, authority):
    """Runs a kind with its daemon. Handshakes need a daemon with TLS and a victim that uses it."""
    options, environment, log = [], {**os.environ}, contextlib.nullcontext()
    if kind in ("handshakes", "updates"):
        options = authority.options("mirror")
        environment.update(authority.environment("owner"))
    if kind == "log":
        log = stalled_log()
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        with log, Cluster(args.build.resolve(), 1, options, room=args.map + 2 * args.record +
                          2 * args.size + 256 * MIB) as cluster:
            return measure(args, kind, cluster, environment)
    finally:
        os.environ.clear()
        os.environ.update(before)


def text(size):
    return "%d GiB" % (size // GIB) if size % GIB == 0 else "%d MiB" % (size // MIB)


def row(args, result):
    sizes = {name: text(getattr(args, name)) for name in ("map", "size", "record")}
    return [KINDS[result["kind"]] % sizes, "%.0f" % result["without"]["rate"],
            "%.2f" % result["rate_ratio"], "yes" if result["rate_met"] else "**no**",
            "%.1f" % result["without"]["longest_ms"], "%.1f" % result["longest_ms"],
            "yes" if result["pause_met"] else "**no**"]


def misses(results):
    """Returns the kinds that miss a target. If processes that only compute take more than half of
    the rate, the target is what they leave."""
    limit = min([r["rate_ratio"] for r in results if r["kind"] == "processors"] + [RATE_LEAST])
    return [r["kind"] for r in results if r["kind"] != "processors" and
            (r["rate_ratio"] < limit or not r["pause_met"])]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--output", type=pathlib.Path, help="build/neighbours.json")
    parser.add_argument("--only", action="append", choices=KINDS, help="may be repeated")
    parser.add_argument("--short", action="store_true", help="smaller, for a first look")
    parser.add_argument("--seconds", type=float, help="of a stretch (3; short: 0.5)")
    args = parser.parse_args()
    free = shutil.disk_usage("/dev/shm").free
    args.free = free
    args.seconds = args.seconds or (0.5 if args.short else 3)
    # The rest of the host needs memory, too.
    args.map = 64 * MIB if args.short else min(8 * GIB, free // 4 // MIB * MIB)
    args.size = 32 * MIB if args.short else min(512 * MIB, free // 16 // MIB * MIB)
    args.record = 16 * MIB if args.short else min(512 * MIB, free // 16 // MIB * MIB)
    return args


def main():
    args = arguments()
    rows, results = [], []
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority(pathlib.Path(folder) / "ca")
        authority.issue("mirror", "IP:127.0.0.1")
        authority.issue("owner")
        for kind in args.only or KINDS:
            try:
                results.append(with_daemon(args, kind, authority))
            except (RuntimeError, OSError, TimeoutError, socket.timeout) as error:
                print("neighbours: %s: %s" % (kind, error), file=sys.stderr)
                return 1
            rows.append(row(args, results[-1]))
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    path = args.output or args.build / "neighbours.json"
    path.write_text(json.dumps({"processors": len(os.sched_getaffinity(0)), "free": args.free,
                                "map": args.map, "neighbours": results}, indent=1) + "\n")
    print("A store's commits over tcp beside others of the same daemon, on %d processors\n" %
          len(os.sched_getaffinity(0)))
    print(table(["neighbours", "per second without", "rate with", ">= %g" % RATE_LEAST,
                 "longest pause without, ms", "with, ms", "at most %d ms more" % PAUSE_MORE_MS],
                rows))
    missed = [] if args.short else misses(results)
    for kind in missed:
        print("neighbours: the target is missed, and not by what processors cost: " +
              KINDS[kind].split(" %")[0], file=sys.stderr)
    print("A spill ends all sessions, by what it is for: it is no neighbour. Of /dev/shm %s were "
          "free. %s" % (text(args.free), path))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
