#!/usr/bin/env python3
"""Counts false alarms: a mirror declares its owner dead, or an owner declares a mirror dead,
although both live and only the host is busy. Runs four stores at a time on this host, each with
three mirrors (W = 2): over tcp and over shm, with the default timeouts of both sides and with 250
ms. An owner commits every 10 ms on each store, next to busy loops (--loops), by default two for
each processor and one more. Each store also has a standby (`perseas run`) that would take over.

    alarms.py --seconds 3600 --build build

Prints the counts, and the longest time for which the machine kept this process from running, one
line a minute; also what owners with the default timeouts report of their mirrors. Saves the counts
to build/alarms.json. Exit status: 1 if there was a false alarm with the default timeouts; 2 when it
could not run.
"""
import argparse
import contextlib
import ctypes
import functools
import json
import os
import pathlib
import subprocess
import sys
import time

from cluster import Cluster, die_with_parent
from report import figure
from worker import MIB, table

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/drills"))
import binding  # noqa: E402

FABRICS = ("tcp", "shm")
MIRRORS = 3
SHORT_MS = 250
LEAST = 25                              # fewest transactions of a short run
PAUSE = 0.01                            # seconds between two transactions
MINUTE = 60
LOOP = "while True: pass"


class Event(ctypes.Structure):
    """struct perseas_event"""
    _fields_ = [("kind", ctypes.c_int), ("missed", ctypes.c_uint32), ("seq", ctypes.c_uint64),
                ("mirror", ctypes.c_char * 256), ("text", ctypes.c_char * 256)]


LISTENER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Event))


class Watched:
    """One store: its mirrors, its owner, its standby, and the alarms counted."""

    def __init__(self, build, fabric, short):
        self.fabric, self.short = fabric, short
        options = ["--owner-timeout", str(SHORT_MS / 1000)] if short else []
        self.cluster = Cluster(build, MIRRORS, options, room=MIRRORS * 64 * MIB)
        self.commits = self.owners = self.mirrors = 0
        self.listener = LISTENER(self.tell)

    def __enter__(self):
        self.cluster.__enter__()
        options = {"on_event": ctypes.cast(self.listener, ctypes.c_void_p).value}
        if self.short:
            options["mirror_timeout_ms"] = SHORT_MS
        self.addresses = self.cluster.unix() if self.fabric == "shm" else self.cluster.tcp()
        self.store = binding.Store("busy", self.addresses, flags=binding.CREATE, **options)
        self.store.map("a", 4096)
        self.store.publish()
        self.open_standby()
        return self

    def __exit__(self, *_):
        self.store.close()
        self.standby.kill()
        self.cluster.__exit__()

    def open_standby(self):
        """Starts a standby. It ends as soon as the store has no living owner, which counts as an
        alarm."""
        self.standby = self.cluster.spawn(
            self.cluster.build / "perseas", "run", "busy", "--mirrors", self.addresses, "--",
            "true", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def tell(self, _, event):
        if not self.short:
            print("%s: %s: %s" % (self.name(), event[0].mirror.decode(), event[0].text.decode()),
                  flush=True)

    def commit(self, number):
        """Commits a transaction. With short timeouts, an owner that has declared two mirrors dead
        is in doubt about a transaction until one of them is back."""
        work = functools.partial(self.store.write, "a", 0, b"%08d" % number)
        while work:
            try:
                work()
                work = None
            except binding.PerseasError as error:
                if not self.short or error.name != "PERSEAS_EINDOUBT":
                    raise
                work = self.store.flush
        self.commits += 1

    def step(self, number):
        """Commits a transaction, and counts alarms since the last one. A mirror that was declared
        dead has reconnected or was copied again."""
        self.commit(number)
        stat = self.store.stat()
        self.mirrors = stat.reconnects + stat.resyncs + MIRRORS - stat.live
        if self.standby.poll() is not None:
            self.owners += 1
            self.open_standby()

    def name(self):
        return "%s, %s" % (self.fabric, "%d ms" % SHORT_MS if self.short else "default")

    def json(self):
        return {"fabric": self.fabric, "timeouts_ms": SHORT_MS if self.short else None,
                "commits": self.commits, "owners_called_dead": self.owners,
                "mirrors_called_dead": self.mirrors}


def busy_loops(count):
    return [subprocess.Popen([sys.executable, "-c", LOOP], stdin=subprocess.DEVNULL,
                             preexec_fn=die_with_parent) for _ in range(count)]


def load():
    return os.getloadavg()[0]


def watch(watched, seconds):
    """Steps all stores for `seconds`. Returns the load average of each minute."""
    loads, number, overslept = [], 0, 0
    began = told = time.monotonic()
    while time.monotonic() < began + seconds or min(each.commits for each in watched) < LEAST:
        for each in watched:
            number += 1
            each.step(number)
        if time.monotonic() > told + MINUTE:
            told += MINUTE
            loads.append(load())
            print("%3d min, load %s, overslept %d ms: %s" % (
                (told - began) / MINUTE, figure(loads[-1]), overslept * 1e3, "; ".join(
                    "%s: %d owners, %d mirrors" % (each.name(), each.owners, each.mirrors)
                    for each in watched)), flush=True)
            overslept = 0
        slept_at = time.monotonic()
        time.sleep(PAUSE)               # the owner is not busy itself
        overslept = max(overslept, time.monotonic() - slept_at - PAUSE)
    return loads


def count(build, seconds, loops):
    """Measures all stores. Returns them with their counts, and the load average of each minute."""
    watched = [Watched(build, fabric, short) for fabric in FABRICS for short in (False, True)]
    with contextlib.ExitStack() as stack:
        for each in watched:
            stack.enter_context(each)
        running = busy_loops(loops)
        try:
            loads = watch(watched, seconds)
        finally:
            for loop in running:
                loop.kill()
                loop.wait()
    return watched, loads


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--output", type=pathlib.Path, help="build/alarms.json")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--loops", type=int, default=2 * len(os.sched_getaffinity(0)) + 1)
    args = parser.parse_args()
    binding.BUILD = args.build.resolve()
    binding.use_library_timeouts()
    try:
        watched, loads = count(binding.BUILD, args.seconds, args.loops)
    except (RuntimeError, OSError, TimeoutError, binding.PerseasError) as error:
        print("alarms: %s" % error, file=sys.stderr)
        return 2
    path = args.output or args.build / "alarms.json"
    path.write_text(json.dumps({"seconds": args.seconds, "loops": args.loops, "loads": loads,
                                "stores": [each.json() for each in watched]}, indent=1) + "\n")
    print("In %s s, with %d busy loops on %d processors, false alarms:\n" %
          (figure(args.seconds), args.loops, len(os.sched_getaffinity(0))))
    print(table(["fabric, timeouts", "owners called dead", "mirrors called dead", "commits"],
                [[each.name(), each.owners, each.mirrors, each.commits] for each in watched]))
    print(path)
    return 1 if any(each.owners + each.mirrors for each in watched if not each.short) else 0


if __name__ == "__main__":
    sys.exit(main())
