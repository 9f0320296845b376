#!/usr/bin/env python3
"""Measures a warm standby inside a process (perseas_standby): an owner is killed with kill -9, and
a process that stands by opens the store, maps its segment and commits one transaction. Three
mirrors, W = 2, run on this host, over tcp and shm, with 64 MiB and with the larger size of
bench-failover; with the memory read first, and on demand. For comparison, a process of the same
kind calls perseas_open as soon as the owner is gone. Standbys with a copy of the memory
(options.warm) copy as fast as they can, from an owner that changes all of the store until it is
killed, and from one that changes a tenth of it. Prints a table in Markdown, in ms: medians of 5
runs, which take turns, with the smallest and the largest.

The parts: until the wait or the open returns, until the segment is mapped, until the commit; and
from the end of the owner until all memory has arrived. Copied: the share of the memory that the
copy had right before the owner was killed.
"""
import argparse
import pathlib
import sys
import time

from cluster import Cluster, wait_for
from failover import MIRRORS, SMALL, large, names, settle_copy, size_name, start, work
from worker import spread, table

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/drills"))
import binding  # noqa: E402

RUNS, SECONDS = 5, 60
FABRICS = ("tcp", "shm")
RECOVERIES = {"read first": binding.READ_FIRST, "on demand": binding.ON_DEMAND}
PARTS = ("all", "open", "map", "commit", "whole")
NO_LIMIT = 1 << 40  # bytes per second


def warm_up(standby):
    """Waits until the standby's copy gets no warmer. Returns the share of the memory that it
    has."""
    def share():
        stat = standby.stat()
        return stat.warm / stat.memory if stat.memory else 0
    return settle_copy(share)


def take_over(way, mirrors, recovery, worker):
    """Kills the owner and takes over. Returns in ms the whole time and its parts, and the share
    that was copied. A process that opens the store itself is told that the owner is gone."""
    standby, copied = None, 0
    if way != "open at once":
        warm = way != "standby"
        standby = binding.Standby("worker", mirrors, recovery=recovery, warm=int(warm),
                                  warm_rate=NO_LIMIT)
        wait_for(lambda: standby.state() == "owned", SECONDS, "a standby")
        copied = warm_up(standby) if warm else 0
    at = [time.monotonic_ns()]
    if standby:
        worker.process.kill()
        store = standby.become_owner()
    else:
        worker.kill()
        store = binding.Store("worker", mirrors, recovery=recovery)
    at.append(time.monotonic_ns())
    store.map("segment")
    at.append(time.monotonic_ns())
    store.write("segment", 0, store.read("segment", 0, 8))
    at.append(time.monotonic_ns())
    store.wait_whole()
    whole = time.monotonic_ns()
    store.close()
    if standby:
        standby.__exit__()
    worker.process.wait()
    told = dict(zip(PARTS, [(at[-1] - at[0]) / 1e6,
                            *((b - a) / 1e6 for a, b in zip(at, at[1:])),
                            (whole - at[0]) / 1e6]))
    return dict(told, copied=100 * copied)


# And the part of the store that the owner changes: an Nth.
WAYS = {"standby": 1, "open at once": 1, "warm standby": 1, "warm standby, a tenth changes": 10}


def measured(cluster, fabric, size):
    """Runs all ways for one size. Returns {(way, recovery): [parts of a run]}."""
    found = {(way, recovery): [] for way in WAYS for recovery in RECOVERIES}
    start(cluster, fabric, "--make", "--size", size).end()
    for number in range(RUNS):
        for way, recovery in found:
            worker = start(cluster, fabric, "--part", WAYS[way])
            work(worker)
            found[way, recovery].append(take_over(way, names(cluster, fabric),
                                                  RECOVERIES[recovery], worker))
            print("run %d of %d: %s, %s, %s, %s: %.1f ms" % (
                number + 1, RUNS, fabric, size_name(size), way, recovery,
                found[way, recovery][-1]["all"]), file=sys.stderr)
    cluster.drop("worker", names(cluster, fabric))
    return found


def cell(values):
    told = spread(values)
    return "%.1f (%.1f-%.1f)" % (told["median"], told["min"], told["max"])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    args = parser.parse_args()
    binding.use_library_timeouts()
    rows = []
    sizes = (SMALL, large())
    for size in sizes:
        with Cluster(args.build, MIRRORS, room=MIRRORS * (size + (256 << 20))) as cluster:
            for fabric in FABRICS:
                for (way, recovery), runs in measured(cluster, fabric, size).items():
                    rows.append([fabric, size_name(size), way, recovery,
                                 *(cell([run[part] for run in runs])
                                   for part in (*PARTS, "copied"))])
    print(table(["fabric", "size", "way", "memory", *("%s (ms)" % part for part in PARTS),
                 "copied (%)"], rows))


if __name__ == "__main__":
    main()
