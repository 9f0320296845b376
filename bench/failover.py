#!/usr/bin/env python3
"""Measures how long a store is without an owner: from kill -9 of one that runs transactions to the
first commit of the next one, which is started as soon as the killed one is gone, as a supervisor
does it. Three mirrors, W = 2, all on this host. Prints a table in Markdown, and keeps every figure
in build/failover.json.

The next owner is a new process that opens the store without --takeover, has the state chosen and
the mirrors mended, reads the whole segment from a mirror, and commits one transaction.

In a machine with RDMA nodes, as `make bench-failover-rdma` boots it, the fabric is RDMA. That
machine's clock counts instructions, and it has one processor: its figures are to be compared with
each other, not with those of other fabrics.
"""
import argparse
import json
import os
import pathlib
import sys
import time

from cluster import EMULATED, Cluster
from worker import MIB, Worker, spread, table

MIRRORS = 3
FABRICS = ("rdma",) if EMULATED else ("tcp", "shm")
NODES = ["10.5.0.%d" % (i + 1) for i in range(MIRRORS)] if EMULATED else []
SIZES = (64 * MIB, 512 * MIB, 2048 * MIB)
RUNS = 5
ENOUGH = 1000                           # transactions before the kill
HEADROOM = 1 << 30                      # memory that is left to the rest of the host
PARTS = ("total_ms", "gone_ms", "start_ms", "open_ms", "map_ms", "commit_ms")


def memory_available():
    """Bytes."""
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 0


def memory_needed(size):
    return (MIRRORS + 1) * size + HEADROOM


def names(cluster, fabric):
    return {"tcp": cluster.tcp, "shm": cluster.unix, "rdma": cluster.rdma}[fabric]()


def work(worker):
    """Waits for some transactions; the number of the last that was acknowledged."""
    goal = worker.first["found"] + ENOUGH
    while (told := worker.ask())["number"] < goal:
        pass
    return told["number"]


def fail_over(cluster, fabric, worker):
    """Kills the owner; the next one, and what each part took."""
    acknowledged = work(worker)
    killed = time.monotonic_ns()
    worker.kill()
    gone = time.monotonic_ns()
    after = Worker(cluster, names(cluster, fabric), "--fabric", fabric)
    first = after.first
    if first["found"] < acknowledged:
        raise RuntimeError("%d transactions were acknowledged, %d are there" %
                           (acknowledged, first["found"]))
    at = [killed, gone, *(first[name] for name in
                          ("began_ns", "opened_ns", "mapped_ns", "committed_ns"))]
    took = [at[-1] - at[0], *(b - a for a, b in zip(at, at[1:]))]
    parts = {name: ns / 1e6 for name, ns in zip(PARTS, took)}
    return after, {**parts, **{name: first[name] for name in ("mended_delta", "mended_whole")}}


def measure(build, fabric, size, runs):
    """The runs of one size; None where this host has too little memory."""
    if memory_available() < memory_needed(size):
        return None
    with Cluster(build, MIRRORS, room=MIRRORS * (size + 64 * MIB), hosts=NODES) as cluster:
        worker = Worker(cluster, names(cluster, fabric), "--make", "--size", size,
                        "--fabric", fabric)
        taken = []
        for _ in range(runs):
            worker, parts = fail_over(cluster, fabric, worker)
            taken.append(parts)
        worker.end()
    return taken


def row(fabric, size, taken):
    """A line of the table."""
    name = "%d MiB" % (size // MIB) if size < 1 << 30 else "%d GiB" % (size >> 30)
    if taken is None:
        why = "takes %.1f GiB of memory, %.1f are free" % (
            memory_needed(size) / (1 << 30), memory_available() / (1 << 30))
        return [fabric, name, "not measured: " + why] + [""] * 3
    figures = {part: spread([run[part] for run in taken]) for part in PARTS}

    def ranged(part):
        return "%.0f (%.0f - %.0f)" % tuple(figures[part][k] for k in ("median", "min", "max"))

    return [fabric, name, ranged("total_ms"), "%.0f" % figures["gone_ms"]["median"],
            ranged("open_ms"), "%.0f" % figures["map_ms"]["median"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--output", type=pathlib.Path, help="build/failover.json")
    parser.add_argument("--quick", action="store_true", help="the smallest size, once")
    args = parser.parse_args()
    sizes, runs = (SIZES[:1], 1) if args.quick else (SIZES, RUNS)
    rows, results = [], []
    try:
        for fabric in FABRICS:
            for size in sizes:
                taken = measure(args.build.resolve(), fabric, size, runs)
                rows.append(row(fabric, size, taken))
                results.append({"fabric": fabric, "bytes": size, "runs": taken})
                print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    except (RuntimeError, OSError, TimeoutError) as error:
        print("failover: %s" % error, file=sys.stderr)
        return 1
    path = args.output or args.build / "failover.json"
    path.write_text(json.dumps({"mirrors": MIRRORS, "processors": len(os.sched_getaffinity(0)),
                                "failovers": results}, indent=1) + "\n")
    print("From kill -9 to the next owner's first commit, ms: median of %d (least - most)\n" % runs)
    print(table(["fabric", "segment", "kill -9 to first commit", "of it: end of the process",
                 "open", "read the segment"], rows))
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
