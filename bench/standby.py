#!/usr/bin/env python3
"""Measures a warm standby inside a process (perseas_standby): an owner is killed with kill -9, and
a process that waits opens the store, maps its segment and commits one transaction. Three mirrors,
W = 2, all on this host, over tcp and shm, with 64 MiB and with the larger size that bench-failover
takes; with the memory read first, and on demand. Beside it, in a process of the same kind:
perseas_open as soon as the killed one is gone. Prints a table in Markdown, in ms: medians of 5
runs, which take turns, with the smallest and the largest.

The parts: until the wait or the open returns, until the segment is mapped, until the commit.
"""
import argparse
import pathlib
import sys
import time

from cluster import Cluster, wait_for
from failover import MIRRORS, SMALL, large, names, size_name, start, work
from worker import spread, table

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/drills"))
import binding  # noqa: E402

RUNS, SECONDS = 5, 60
FABRICS = ("tcp", "shm")
RECOVERIES = {"read first": binding.READ_FIRST, "on demand": binding.ON_DEMAND}
PARTS = ("all", "open", "map", "commit")


def take_over(way, mirrors, recovery, worker):
    """ms: all, and its parts. Who opens the store itself knows by other means that the owner is
    gone."""
    standby = None
    if way == "standby":
        standby = binding.Standby("worker", mirrors, recovery=recovery)
        wait_for(lambda: standby.state() == "owned", SECONDS, "a standby")
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
    store.close()
    if standby:
        standby.__exit__()
    worker.process.wait()
    return dict(zip(PARTS, [(at[-1] - at[0]) / 1e6,
                            *((b - a) / 1e6 for a, b in zip(at, at[1:]))]))


WAYS = ("standby", "open at once")


def measured(cluster, fabric, size):
    """{(way, recovery): [parts of a run]}"""
    found = {(way, recovery): [] for way in WAYS for recovery in RECOVERIES}
    start(cluster, fabric, "--make", "--size", size).end()
    for number in range(RUNS):
        for way, recovery in found:
            worker = start(cluster, fabric)
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
    rows = []
    sizes = (SMALL, large())
    for size in sizes:
        with Cluster(args.build, MIRRORS, room=MIRRORS * (size + (256 << 20))) as cluster:
            for fabric in FABRICS:
                for (way, recovery), runs in measured(cluster, fabric, size).items():
                    rows.append([fabric, size_name(size), way, recovery,
                                 *(cell([run[part] for run in runs]) for part in PARTS)])
    print(table(["fabric", "size", "way", "memory", *("%s (ms)" % part for part in PARTS)], rows))


if __name__ == "__main__":
    main()
