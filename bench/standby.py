#!/usr/bin/env python3
"""Measures a warm standby inside a process (perseas_standby): an owner is killed with kill -9, and
a process that waits opens the store, maps its segment and commits one transaction. Three mirrors,
W = 2, all on this host, over tcp and shm, with 64 MiB and with the larger size that bench-failover
takes; with the memory read first, and on demand. Beside it, in a process of the same kind:
perseas_open as soon as the killed one is gone. And standbys that keep a copy of the memory
(options.warm), as fast as they can, of an owner that changes all of the store until it is killed,
and of one that changes a tenth of it. Prints a table in Markdown, in ms: medians of 5 runs, which
take turns, with the smallest and the largest.

The parts: until the wait or the open returns, until the segment is mapped, until the commit; and
from the end of the owner until all memory is here. Copied: so much of the memory the copy had right
before the owner was killed.
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
NO_LIMIT = 1 << 40  # bytes a second


def warm_up(standby):
    """The share of the memory that its copy has when it gets no warmer."""
    def share():
        stat = standby.stat()
        return stat.warm / stat.memory if stat.memory else 0
    return settle_copy(share)


def take_over(way, mirrors, recovery, worker):
    """ms: all, and its parts, and which share was copied. Who opens the store itself knows by other
    means that the owner is gone."""
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
    """{(way, recovery): [parts of a run]}"""
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
