#!/usr/bin/env python3
"""Measures how long a store is without an owner, and how soon the next owner is as fast as the
last. Runs three mirrors, W = 2, on this host, over tcp and shm, with 64 MiB and with as much as
three mirrors may take of a quarter of the room in /dev/shm, up to 8 GiB. Prints two tables in
Markdown, saves every figure to build/failover.json, and draws transactions a second across the kill
as build/failover-*.svg. Exit status: 1 if a target is missed, as the last lines say; 2 when it
could not run.

- An owner that has run transactions with all its memory for two seconds is killed with kill -9.
  `perseas run` stands by and starts the next owner, which opens the store and commits one
  transaction, with the memory read first or on demand. It continues until its rate is 90 % of the
  killed owner's; also with transactions over a tenth of the memory.
- A standby inside a process (perseas_standby) waits while the owner runs, with and without a copy
  of the memory (options.warm). The owner changes a tenth of the memory and is killed. No supervisor
  starts the standby or tells it about the kill.
- A program opens the store and only waits until all memory has arrived. The memory that the kernel
  gives it was in use just before, so that it does not wait for a virtual machine's host.
- A program touches missing memory at random places while the rest arrives. For comparison: two
  bare lanes that fetch memory in the same sizes, over TCP or from memory of the same host.
- An owner hangs (SIGSTOP), and `perseas run` starts the next one; the mirrors have --owner-timeout
  0.25.

Over a network, the owner's host is another than those of the mirrors and the standby. While the
kernel frees the owner's memory, it blocks that processor for milliseconds. So over tcp the killed
owner has the first processor from the kill to the next first commit, and all other processes have
the rest; over shm, where all processes share a host anyway, they share the processors.

Ways that are compared take turns. In a machine with RDMA nodes, as `make bench-failover-rdma` boots
it, the fabric is RDMA. That machine's clock counts instructions, and it has one processor: compare
its figures with each other, not with those of other fabrics.
"""
import argparse
import collections
import contextlib
import ctypes
import json
import mmap
import os
import pathlib
import shutil
import signal
import sys
import time

import faults
import plot
from cluster import EMULATED, PATIENCE, Cluster, wait_for
from report import figure, met
from worker import MIB, Worker, spread, table

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/drills"))
import binding  # noqa: E402

MIRRORS = 3
FABRICS = ("rdma",) if EMULATED else ("tcp", "shm")
NODES = ["10.5.0.%d" % (i + 1) for i in range(MIRRORS)] if EMULATED else []
SMALL, LARGEST, STEP = 64 * MIB, 8192 * MIB, 256 * MIB
RUNS = 5
ENOUGH = 1000                           # transactions before the kill
BEFORE = 2 * PATIENCE                   # how long an owner works before it is killed, seconds
DRAWN = 0.3 * PATIENCE                  # part of that which the plot shows, seconds
WINDOW = 0.05 * PATIENCE                # interval for the rate afterward, seconds
LOOK = 0.002                            # seconds between two samples
STEP_NS = int(20e6 * PATIENCE)          # interval of the drawn rate
AS_BEFORE = 0.9
SECONDS = 60 * PATIENCE                 # timeout for anything
HEADROOM = 1 << 30                      # memory left to the rest of the host
USERS = 3                               # an owner, a standby, and the standby's copy
PARTS = ("total_ms", "gone_ms", "start_ms", "open_ms", "map_ms", "commit_ms")
WAYS = {"read first": [], "on demand": ["--demand"],
        "on demand, a tenth": ["--demand", "--part", 10]}
RECOVERIES = {"read first": binding.READ_FIRST, "on demand": binding.ON_DEMAND}
# Standbys inside a process. The owner changes a tenth of the store, so that a warm copy can follow.
PARTLY = ["--demand", "--part", 10]
WAITING = {"a standby that waits": [], "a standby that waits with a copy": ["--warm"]}
TAKEN = ("total_ms", "open_ms", "map_ms", "commit_ms", "gone_ms")
STATIC = 0.89                           # of the memory: nearly all that the owner does not change
STILL = 2  # seconds without progress after which a copy is as warm as it gets
OWNER_TIMEOUT = "0.25"
COMMIT_MS, WHOLE, REGAINED, HANG_MS = "<= 50", "<= 1.1", "<= 1.2", "<= 600"
FAULT = {"p50": "<= 2", "p99": "<= 3"}  # times that of two bare lanes


# --- room ---

def memory_available():
    """Returns the bytes of memory that programs may still take."""
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 0


def large():
    """Returns the larger size, as far as this host has room for it."""
    if EMULATED:
        return 512 * MIB
    room = min(shutil.disk_usage("/dev/shm").free // 4 // MIRRORS,
               (memory_available() - HEADROOM) // (MIRRORS + USERS))
    return max(min(room, LARGEST) // STEP * STEP, 2 * SMALL)


def size_name(size):
    return "%d MiB" % (size // MIB) if size % (1 << 30) else "%d GiB" % (size >> 30)


# --- a killed owner ---

def names(cluster, fabric):
    return {"tcp": cluster.tcp, "shm": cluster.unix, "rdma": cluster.rdma}[fabric]()


def start(cluster, fabric, *words, **keywords):
    return Worker(cluster, names(cluster, fabric), "--fabric", fabric, *words, **keywords)


def work(worker):
    """Waits until the owner has committed some transactions and has all memory. Returns its
    progress."""
    goal = worker.first["found"] + ENOUGH

    def ready():
        told = worker.ask()
        return told["number"] >= goal and not told["missing"] and told["live"] == MIRRORS and told
    return wait_for(ready, SECONDS, "transactions of an owner that has all memory")


def rate_of(first, last):
    return (last["number"] - first["number"]) * 1e9 / (last["at_ns"] - first["at_ns"])


def settled_rate(worker):
    looks = [work(worker)]
    while looks[-1]["at_ns"] - looks[0]["at_ns"] < BEFORE * 1e9:
        time.sleep(LOOK)
        looks.append(worker.ask())
    return looks, rate_of(looks[0], looks[-1])


def regained(worker, rate, killed):
    """Returns when, in ms after the kill, the rate was back and when the whole memory had arrived,
    and the samples taken."""
    looks, seen = collections.deque(), []
    at = whole = None
    until = time.monotonic() + SECONDS
    while at is None or whole is None:
        if time.monotonic() > until:
            raise TimeoutError("the rate of before: not within %g s" % SECONDS)
        looks.append(worker.ask())
        seen.append(looks[-1])
        if whole is None and not looks[-1]["missing"]:
            whole = (looks[-1]["at_ns"] - killed) / 1e6
        while looks[-1]["at_ns"] - looks[0]["at_ns"] >= WINDOW * 1e9 and at is None:
            if rate_of(looks[0], looks[-1]) >= AS_BEFORE * rate:
                at = (looks[0]["at_ns"] - killed) / 1e6
            looks.popleft()
        time.sleep(LOOK)
    return seen, {"rate": rate, "regained_ms": at, "whole_ms": whole}


def across(before, after, killed, committed):
    """Returns transactions a second by ms after the kill: [ms, rate]."""
    seen = [[[look["at_ns"], look["number"]] for look in looks] for looks in (before, after)]
    then = [[committed, 0]] + plot.rates(seen[1], STEP_NS)
    return [[(ns - killed) / 1e6, rate]
            for ns, rate in [*plot.rates(seen[0], STEP_NS), [killed, 0], *then]]


def standby(cluster, fabric, *words):
    """Starts `perseas run` and waits until it stands by."""
    return start(cluster, fabric, *words, under=[
        cluster.build / "perseas", "run", "worker", "--mirrors", names(cluster, fabric),
        "--"]).await_standing_by()


def pin(pid, processors):
    """Pins all threads of a process and of its children. A thread may end in the meantime."""
    for thread in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            os.sched_setaffinity(int(thread), processors)
            children = pathlib.Path("/proc/%d/task/%s/children" % (pid, thread))
            for child in children.read_text().split():
                pin(int(child), processors)


def kill_and_await(cluster, fabric, worker, waiting):
    """Kills the owner that `waiting` stands by for. Returns when it was killed, when the kernel had
    removed it, and what the next owner reports after its first commit."""
    processors = sorted(os.sched_getaffinity(0))
    others = [waiting.process, *(mirror.process for mirror in cluster.mirrors)]
    apart = others if fabric != "shm" and len(processors) > 1 else []
    for other in apart:
        pin(other.pid, processors[1:])
    if apart:
        pin(worker.process.pid, processors[:1])
    killed = time.monotonic_ns()
    worker.kill()
    gone = time.monotonic_ns()
    first = waiting.await_first()
    for other in apart:
        pin(other.pid, processors)
    return killed, gone, first


def fail_over(cluster, fabric, words):
    """Kills an owner that has a `perseas run` standing by. Returns how long each part of the
    failover took, and the next owner's rates."""
    worker = start(cluster, fabric, *words)
    after = standby(cluster, fabric, *words)
    before, rate = settled_rate(worker)
    drawn = [look for look in before if look["at_ns"] >= before[-1]["at_ns"] - DRAWN * 1e9]
    killed, gone, first = kill_and_await(cluster, fabric, worker, after)
    second = after.ask()
    if first["found"] < before[-1]["number"]:
        raise RuntimeError("%d transactions were acknowledged, %d are there" %
                           (before[-1]["number"], first["found"]))
    at = [killed, *(first[name] for name in
                    ("began_ns", "opened_ns", "mapped_ns", "committed_ns"))]
    took = [at[-1] - at[0], gone - killed, *(b - a for a, b in zip(at, at[1:]))]
    parts = {name: ns / 1e6 for name, ns in zip(PARTS, took)}
    looks, when = regained(after, rate, killed)
    parts.update(missing=second["missing"], came_later=bool(second["missing"] + second["fetched"]),
                 **{name: first[name] for name in ("mended_delta", "mended_whole")}, **when,
                 rates=across(drawn, [second, *looks], killed, at[-1]))
    after.end()
    return parts


# --- a standby that waits ---

def settle_copy(share):
    """Waits until a standby's copy has all memory that does not change, or gets no warmer. Returns
    the share of the memory that it has."""
    best, since = 0, time.monotonic()
    while best < STATIC and time.monotonic() < since + STILL:
        now = share()
        if now > best + 0.01:
            best, since = now, time.monotonic()
        time.sleep(0.02)
    return share()


def is_ready(told):
    return told["state"] == "owned" and told["reached"] == MIRRORS


def take_over(cluster, fabric, words):
    """Kills an owner that has a standby in another process. Returns how long each part took until
    the standby's first commit, and which share of the memory its copy had."""
    worker = start(cluster, fabric, *PARTLY)
    waiting = start(cluster, fabric, "--standby", *PARTLY, *words, later=True)
    wait_for(lambda: is_ready(waiting.ask()), SECONDS, "a standby")
    settled_rate(worker)

    def share():
        told = waiting.ask()
        return told["warm"] / told["memory"] if told["memory"] else 0
    copied = settle_copy(share) if "--warm" in words else 0
    told = worker.ask()
    killed, gone, first = kill_and_await(cluster, fabric, worker, waiting)
    if first["found"] < told["number"]:
        raise RuntimeError("%d transactions were acknowledged, %d are there" %
                           (told["number"], first["found"]))
    work(waiting)
    waiting.end()
    at = [killed, *(first[name] for name in ("opened_ns", "mapped_ns", "committed_ns"))]
    took = [at[-1] - at[0], *(b - a for a, b in zip(at, at[1:])), gone - killed]
    return dict(zip(TAKEN, [ns / 1e6 for ns in took]), copied=100 * copied)


# --- a program that reads ---

def touch(size):
    """Uses free memory for a moment. The host of a virtual machine may have taken back memory that
    was free for seconds, and the next user waits for the host; after this call nobody does. Uses
    huge pages, as the measured programs do, because the kernel takes these from other parts of
    memory than small ones."""
    with mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(memory)), 1, size)


def here_after(mirrors, recovery, size):
    """Returns the ms until all memory has arrived. Touches three times as much before, because the
    kernel need not reuse what was freed last."""
    touch(min(3 * size, max(size, memory_available() - HEADROOM)))
    began = time.monotonic_ns()
    with binding.Store("worker", mirrors, recovery=recovery) as store:
        store.map("segment")
        store.wait_whole()
        return (time.monotonic_ns() - began) / 1e6


# --- an owner that hangs ---

def hang_once(cluster, fabric):
    """Stops an owner with SIGSTOP. Returns the ms until COMMAND starts, has the store open, and
    commits."""
    owner = start(cluster, fabric, "--demand")
    waiting = standby(cluster, fabric, "--demand")
    told = work(owner)
    stopped = time.monotonic_ns()
    owner.process.send_signal(signal.SIGSTOP)
    first = waiting.await_first()
    owner.kill()
    if first["found"] < told["number"]:
        raise RuntimeError("%d transactions were acknowledged, %d are there" %
                           (told["number"], first["found"]))
    waiting.end()
    return {"start_ms": (first["began_ns"] - stopped) / 1e6,
            "open_ms": (first["opened_ns"] - stopped) / 1e6,
            "total_ms": (first["committed_ns"] - stopped) / 1e6}


def hang(build, fabric, runs):
    with Cluster(build, MIRRORS, ["--owner-timeout", OWNER_TIMEOUT],
                 room=MIRRORS * (SMALL + 64 * MIB)) as cluster:
        start(cluster, fabric, "--make", "--size", SMALL).end()
        return [hang_once(cluster, fabric) for _ in range(runs)]


# --- all of a fabric ---

class Figures:
    """The results of one fabric: a list of runs for every kind and size."""

    def __init__(self, fabric, sizes):
        self.fabric, self.sizes = fabric, sizes
        self.kills = {(size, way): [] for size in sizes for way in WAYS}
        self.here = {(size, recovery): [] for size in sizes for recovery in RECOVERIES.values()}
        self.taken = {(size, way): [] for size in sizes for way in WAITING}
        self.faults, self.bare, self.hangs = [], [], []

    def measure(self, build, runs):
        with contextlib.ExitStack() as stack:
            clusters = {size: stack.enter_context(
                Cluster(build, MIRRORS, room=MIRRORS * (size + 64 * MIB), hosts=NODES))
                for size in self.sizes}
            for size, cluster in clusters.items():
                start(cluster, self.fabric, "--make", "--size", size).end()
            for number in range(runs):
                for size, cluster in clusters.items():
                    self.round(cluster, size)
                say("%s: run %d of %d" % (self.fabric, number + 1, runs))
        if not EMULATED:
            self.hangs = hang(build, self.fabric, runs)

    def round(self, cluster, size):
        mirrors = names(cluster, self.fabric)
        # Each way has its own reader: memory that came on demand leaves small pages to the kernel,
        # and the next reader would pay for merging them.
        for way, words in WAYS.items():
            self.kills[size, way].append(fail_over(cluster, self.fabric, words))
            if (recovery := RECOVERIES.get(way)) is not None:
                self.here[size, recovery].append(here_after(mirrors, recovery, size))
        if EMULATED:
            return
        for way, words in WAITING.items():
            self.taken[size, way].append(take_over(cluster, self.fabric, words))
        if size == self.sizes[-1]:
            self.faults.append(faults.fault_costs(mirrors, size))
            self.bare.append(faults.bare_lanes(cluster.build, size, self.fabric))

    def on_demand(self):
        """Returns True if memory came on demand in all runs that asked for it."""
        return all(run["came_later"] for (_, way), runs in self.kills.items()
                   if way != "read first" for run in runs)

    def json(self):
        return {"fabric": self.fabric, "on_demand": self.on_demand(),
                "kills": [{"bytes": size, "recovery": way, "runs": runs}
                          for (size, way), runs in self.kills.items()],
                "here_ms": [{"bytes": size, "recovery": list(WAYS)[recovery], "runs": runs}
                            for (size, recovery), runs in self.here.items()],
                "standbys": [{"bytes": size, "way": way, "runs": runs}
                             for (size, way), runs in self.taken.items()],
                "faults": self.faults, "bare_lanes": self.bare, "hangs": self.hangs}


def say(text):
    print(text, file=sys.stderr, flush=True)


# --- the tables ---

def values(runs, name):
    return [run[name] for run in runs]


def ranged(figures):
    return "%s (%s - %s)" % tuple(figure(figures[k]) for k in ("median", "min", "max"))


class Row:
    """A measured value and what it is compared with. The target is for the ratio if there is a
    comparison, else for the value."""

    def __init__(self, what, unit, rounds, against="", against_rounds=None, target=None,
                 of_ratio=False):
        self.what, self.unit, self.against = what, unit, against
        self.value, self.ratio, self.other = spread(rounds), None, None
        if against:
            self.other = spread(against_rounds)
            self.ratio = spread([a / b for a, b in zip(rounds, against_rounds)])
            self.ratio["median"] = self.value["median"] / self.other["median"]
        judged = self.ratio if of_ratio else self.value
        self.met = met(judged["median"], target)
        of = "" if of_ratio else " " + unit
        self.target = target and target + of
        if of_ratio:
            of = " times %s" % against
        self.says = "%s: %s%s, target %s" % (what, figure(judged["median"]), of, self.target)

    def cells(self):
        return [self.what, "%s %s" % (ranged(self.value), self.unit), self.against,
                ranged(self.other) if self.other else "",
                ranged(self.ratio) if self.ratio else "", self.target or "",
                {None: "", True: "yes", False: "**no**"}[self.met]]

    def json(self):
        return {"what": self.what, "unit": self.unit, "value": self.value,
                "against": self.against, "other": self.other, "ratio": self.ratio,
                "target": self.target, "met": self.met}


def rows_of_kills(told, target):
    """Each way kills an owner that got its own memory in the same way."""
    for size in told.sizes:
        yield Row("kill -9 of an owner that recovered on demand to first commit, %s, %s" %
                  (told.fabric, size_name(size)), "ms",
                  values(told.kills[size, "on demand"], "total_ms"), "read first",
                  values(told.kills[size, "read first"], "total_ms"), target)


def rows_of_standbys(told):
    if EMULATED:
        return
    for way in WAITING:
        taken = {size: values(told.taken[size, way], "total_ms") for size in told.sizes}
        for size in told.sizes:
            yield Row("kill -9 to first commit of %s, %s, %s" %
                      (way, told.fabric, size_name(size)), "ms", taken[size],
                      "perseas run",
                      values(told.kills[size, "on demand, a tenth"], "total_ms"), COMMIT_MS)


def rows_of_memory(told):
    for size in told.sizes:
        yield Row("all memory is here, %s, %s" % (told.fabric, size_name(size)), "ms",
                  told.here[size, 1], "read first", told.here[size, 0], WHOLE, True)
    big = told.sizes[-1]
    first = values(told.kills[big, "read first"], "regained_ms")
    for way, over in (("on demand", "all of it"), ("on demand, a tenth", "a tenth of it")):
        yield Row("kill -9 to 90 %% of the rate before, transactions over %s, %s, %s" %
                  (over, told.fabric, size_name(big)), "ms",
                  values(told.kills[big, way], "regained_ms"), "read first, over all", first,
                  REGAINED if way == "on demand" else None, True)


def rows_of_faults(told):
    pairs = [(fault, bare) for fault, bare in zip(told.faults, told.bare) if fault]
    if not pairs:
        return
    touched, bare = zip(*pairs)
    for name, target in FAULT.items():
        yield Row("a fault, %s, %s" % (name, told.fabric), "us", values(touched, name + "_us"),
                  "two bare lanes", values(bare, name + "_us"), target, True)


def rows_of_hangs(told):
    if told.hangs:
        yield Row("SIGSTOP to the start of COMMAND, %s" % told.fabric, "ms",
                  values(told.hangs, "start_ms"))
        yield Row("SIGSTOP to first commit, %s" % told.fabric, "ms",
                  values(told.hangs, "total_ms"), target=HANG_MS)


def rows_of(told):
    """Yields the rows of the second table; none if memory could not come on demand."""
    if told.on_demand():
        # In a machine whose clock counts instructions, a time means nothing by itself.
        yield from rows_of_kills(told, None if EMULATED else COMMIT_MS)
        yield from rows_of_standbys(told)
        yield from rows_of_memory(told)
        yield from rows_of_faults(told)
    yield from rows_of_hangs(told)


def parts_table(all_told):
    rows = []
    for told in all_told:
        for size in told.sizes:
            for way in ("read first", "on demand"):
                runs = told.kills[size, way]
                parts = {part: spread(values(runs, part)) for part in PARTS}
                rows.append([told.fabric, size_name(size), way, ranged(parts["total_ms"]),
                             ranged(parts["start_ms"]), ranged(parts["open_ms"]),
                             figure(parts["map_ms"]["median"]),
                             figure(parts["commit_ms"]["median"]), ranged(parts["gone_ms"])])
    return table(["fabric", "segment", "memory", "kill -9 to first commit",
                  "of it: start of COMMAND", "open", "map", "commit",
                  "end of the killed process"], rows)


def standbys_table(all_told):
    rows = []
    for told in all_told:
        for (size, way), runs in told.taken.items():
            parts = {part: spread(values(runs, part)) for part in (*TAKEN, "copied")}
            rows.append([told.fabric, size_name(size), way, ranged(parts["total_ms"]),
                         ranged(parts["open_ms"]), figure(parts["map_ms"]["median"]),
                         figure(parts["commit_ms"]["median"]), ranged(parts["gone_ms"]),
                         figure(parts["copied"]["median"]) + " %"])
    return table(["fabric", "segment", "by", "kill -9 to first commit", "of it: until it is open",
                  "map", "commit", "end of the killed process", "copied before"], rows)


def draw(told, path):
    """Draws, for each size and way, the run with the median time to regain its rate. Yields the
    files."""
    for size in told.sizes:
        lines = {}
        for way in WAYS:
            runs = sorted(told.kills[size, way], key=lambda run: run["regained_ms"])
            lines[way] = runs[len(runs) // 2]["rates"]
        to = path.with_name("%s-%s-%d.svg" % (path.stem, told.fabric, size // MIB))
        plot.draw(to, "kill -9 of an owner, %s, %s" % (told.fabric, size_name(size)),
                  "ms after the kill", "transactions a second", lines)
        yield to


def verdict(rows):
    """Prints which targets were missed. Returns the exit status."""
    missed = [row.says for row in rows if row.met is False]
    print("".join("Missed: %s\n" % line for line in missed) or "All targets are met.\n", end="")
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--output", type=pathlib.Path, help="build/failover.json")
    parser.add_argument("--quick", action="store_true",
                        help="64 and 128 MiB, once, and no target is judged")
    args = parser.parse_args()
    binding.BUILD = args.build.resolve()
    binding.use_library_timeouts()
    sizes, runs = ((SMALL, 2 * SMALL), 1) if args.quick else ((SMALL, large()), RUNS)
    try:
        all_told = [Figures(fabric, sizes) for fabric in FABRICS]
        for told in all_told:
            told.measure(binding.BUILD, runs)
    except (RuntimeError, OSError, TimeoutError, binding.PerseasError) as error:
        say("failover: %s" % error)
        return 2
    rows = [row for told in all_told for row in rows_of(told)]
    if args.quick:
        for row in rows:
            row.met = None
    path = args.output or args.build / "failover.json"
    path.write_text(json.dumps({
        "mirrors": MIRRORS, "processors": len(os.sched_getaffinity(0)), "sizes": sizes,
        "fabrics": [told.json() for told in all_told],
        "rows": [row.json() for row in rows]}, indent=1) + "\n")
    print("From kill -9 to the next owner's first commit, ms: median of %d (least - most)\n" % runs)
    print(parts_table(all_told))
    if not EMULATED:
        print("The same where a standby waits (perseas_standby); the owner changes a tenth of it\n")
        print(standbys_table(all_told))
    print("Memory that comes on demand, beside memory that is read first: median of %d (least - "
          "most); the larger size is %s\n" % (runs, size_name(sizes[-1])))
    print(table(["what", "value", "against", "value", "ratio", "target", "met"],
                [row.cells() for row in rows]))
    for told in all_told:
        if not told.on_demand():
            print("Over %s the memory was read first, also on demand: see perseas_report." %
                  told.fabric)
    print(path, *[file for told in all_told for file in draw(told, path)], sep="\n")
    if args.quick:
        print("A short run judges no target.")
        return 0
    return verdict(rows)


if __name__ == "__main__":
    sys.exit(main())
