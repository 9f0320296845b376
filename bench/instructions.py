#!/usr/bin/env python3
"""Counts the instructions of a transaction of 8 bytes on one mirror over shared memory, from
perseas_begin to the return of perseas_commit, and fails when they are more than the budget in
bench/instructions.budget by 2 %. Counts do not depend on how busy the machine is. Needs valgrind.

Two runs differ by a known number of transactions, so that what they have in common falls away.
"""
import argparse
import pathlib
import re
import subprocess
import sys

from cluster import Cluster

HERE = pathlib.Path(__file__).resolve().parent
BUDGET = HERE / "instructions.budget"
FEW, MANY = 2000, 12000                 # transactions, in each half of a round
HALVES = 2
SLACK = 1.02


def instructions(build, cluster, transactions):
    """Of all rounds: not of the check afterwards, which does the same transactions again."""
    words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
             "--toggle-collect=measure_in_turn",
             build / "bench/compare", "--work", "synthetic", "--size", 8, "--engines", "perseas",
             "--mirrors", cluster.unix(), "--fabric", "shm", "--store", "count%d" % transactions,
             "--warm-up", 0, "--rounds", 1, "--seconds", 3600, "--transactions", transactions]
    done = cluster.run(*words, seconds=300)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not collected:
        raise RuntimeError("status %d\n%s%s" % (done.returncode, done.stdout, done.stderr))
    return int(collected.group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    build = parser.parse_args().build.resolve()
    budget = int(BUDGET.read_text())
    try:
        with Cluster(build, 1) as cluster:
            few, many = (instructions(build, cluster, n) for n in (FEW, MANY))
    except (RuntimeError, OSError, TimeoutError, subprocess.TimeoutExpired) as error:
        print("instructions: %s" % error, file=sys.stderr)
        return 1
    count = (many - few) / (HALVES * (MANY - FEW))
    print("%.0f instructions for a transaction of 8 bytes over shm; the budget is %d" %
          (count, budget))
    if count > budget * SLACK:
        print("instructions: find what made it slower, or say in the commit why it is worth it "
              "and raise %s" % BUDGET.name, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
