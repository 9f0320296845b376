#!/usr/bin/env python3
"""Measures what the transactions of a running owner notice while a mirror that lost its memory is
copied whole: their rate and the longest of them, compared with the same owner before, with all
mirrors live. Three mirrors, W = 2, share this host with the owner. Prints a table in Markdown, and
saves every figure to build/resync.json.
"""
import argparse
import json
import os
import pathlib
import sys
import time

from cluster import PATIENCE, Cluster, wait_for
from worker import MIB, Delays, Worker, spread, table

MIRRORS = 3
SECONDS = 60 * PATIENCE


class Measurement:
    """Intervals with and without a resync, of one owner."""

    def __init__(self, cluster, worker, seconds):
        self.cluster, self.worker, self.seconds = cluster, worker, seconds
        self.stretches = {"without": [], "with": []}
        self.longest, self.rest, self.delays = 0, 0, None

    def look(self):
        told = self.worker.ask()
        self.longest = max(self.longest, told["longest_ns"])
        if self.delays:
            self.rest = max(self.rest, self.delays.rest_of(told["longest_ns"] / 1e6))
        return told

    def stretch(self, kind, first, going_on):
        """Measures transactions from the sample `first` on, while going_on(sample) returns True."""
        told = self.look()
        while going_on(told):
            time.sleep(0.01)            # between two samples
            told = self.look()
        took = (told["at_ns"] - first["at_ns"]) / 1e9
        self.stretches[kind].append({"seconds": took, "longest_ms": self.longest / 1e6,
                                     "rest_ms": self.rest,
                                     "rate": (told["number"] - first["number"]) / took})

    def begin(self):
        """Begins an interval: discards pauses of the time before. Returns a sample."""
        told = self.look()
        self.longest = self.rest = 0
        self.delays = Delays([self.worker.process.pid] +
                             [each.process.pid for each in self.cluster.mirrors])
        return told

    def quiet(self):
        """Measures an interval without a resync, until there was a transaction."""
        first, until = self.begin(), time.monotonic() + self.seconds
        self.stretch("without", first, lambda told: time.monotonic() < until or
                     told["number"] == first["number"])

    def resync(self):
        """Restarts the last mirror without its memory, and measures its resync."""
        self.cluster.mirrors[-1].kill()
        self.cluster.mirrors[-1].lose_memory()
        wait_for(lambda: self.look()["live"] == MIRRORS - 1, SECONDS, "a mirror that is missed")
        self.back()

    def back(self):
        """Starts the last mirror, which is down, and measures its resync."""
        before = self.look()["resyncs"]
        # A resync is noticed only after it began, so the interval starts at the sample before.
        seen = [self.begin()]
        self.cluster.mirrors[-1].start()

        def begun():
            seen.append(self.look())
            return seen[-1]["mirrors"][-1]["state"] in ("resyncing", "live")
        wait_for(begun, SECONDS, "a resync")
        until = time.monotonic() + SECONDS

        def going_on(told):
            if time.monotonic() > until:
                raise TimeoutError("a resync: not within %d s" % SECONDS)
            return told["resyncs"] == before
        self.stretch("with", seen[-2], going_on)
        wait_for(lambda: self.look()["live"] == MIRRORS, SECONDS, "live mirrors")

    def result(self):
        pairs = list(zip(self.stretches["with"], self.stretches["without"]))
        return {"stretches": self.stretches,
                "rate_ratio": spread([a["rate"] / b["rate"] for a, b in pairs]),
                "rate_with": spread([a["rate"] for a, _ in pairs]),
                "rate_without": spread([b["rate"] for _, b in pairs]),
                "seconds": spread([a["seconds"] for a, _ in pairs]),
                "longest_ms_with": spread([a["longest_ms"] for a, _ in pairs]),
                "longest_ms_without": spread([b["longest_ms"] for _, b in pairs])}


def measure(args, fabric, rate):
    size = args.size * MIB
    with Cluster(args.build.resolve(), MIRRORS, room=MIRRORS * (size + 64 * MIB)) as cluster:
        worker = Worker(cluster, cluster.unix() if fabric == "shm" else cluster.tcp(), "--make",
                        "--size", size, "--fabric", fabric, "--resync-rate", rate)
        measurement = Measurement(cluster, worker, args.seconds)
        for _ in range(args.rounds):
            measurement.quiet()
            measurement.resync()
        worker.end()
    return {"fabric": fabric, "bytes": size, "resync_rate": rate, **measurement.result()}


def row(result):
    """Returns a line of the table."""
    rate = result["resync_rate"]
    return [result["fabric"], "%d MiB/s" % (rate // MIB) if rate else "none",
            "%.2f" % result["seconds"]["median"],
            "%.0f" % result["rate_without"]["median"], "%.0f" % result["rate_with"]["median"],
            "%.2f (%.2f - %.2f)" % tuple(result["rate_ratio"][k] for k in
                                         ("median", "min", "max")),
            "%.2f (%.2f)" % (result["longest_ms_without"]["median"],
                             result["longest_ms_without"]["max"]),
            "%.2f (%.2f)" % (result["longest_ms_with"]["median"],
                             result["longest_ms_with"]["max"])]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--output", type=pathlib.Path, help="build/resync.json")
    parser.add_argument("--size", type=int, default=256, help="MiB that are copied (256)")
    parser.add_argument("--rate", type=int, default=128, help="MiB/s, the limit (128)")
    parser.add_argument("--rounds", type=int, default=5, help="resyncs of each kind (5)")
    parser.add_argument("--seconds", type=float, default=2, help="of a round without (2)")
    parser.add_argument("--fabrics", default="tcp,shm", help="tcp,shm")
    args = parser.parse_args()
    rows, results = [], []
    try:
        for fabric in args.fabrics.split(","):
            for rate in (0, args.rate * MIB):
                results.append(measure(args, fabric, rate))
                rows.append(row(results[-1]))
                print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    except (RuntimeError, OSError, TimeoutError) as error:
        print("resync: %s" % error, file=sys.stderr)
        return 1
    path = args.output or args.build / "resync.json"
    path.write_text(json.dumps({"mirrors": MIRRORS, "processors": len(os.sched_getaffinity(0)),
                                "resyncs": results}, indent=1) + "\n")
    print("A mirror of %d MiB is copied whole while transactions go on, median of %d\n" %
          (args.size, args.rounds))
    print(table(["fabric", "limit", "resync, s", "per second without", "with",
                 "ratio (least - most)", "longest without, ms (worst)",
                 "longest with, ms (worst)"], rows))
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
