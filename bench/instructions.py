#!/usr/bin/env python3
"""Counts the instructions of a transaction of 8 bytes on one mirror over shared memory, from
perseas_begin to the return of perseas_commit, and of the same through RVM's interface. It fails
when one takes more than its budget, in bench/instructions*.budget, by 2 %. Counts do not depend on
how busy the machine is. Needs valgrind.

Two runs differ by a known number of transactions, so that what they have in common falls away.
"""
import argparse
import pathlib
import re
import subprocess
import sys

from cluster import Cluster

HERE = pathlib.Path(__file__).resolve().parent
BUDGETS = {"perseas": HERE / "instructions.budget", "rvm": HERE / "instructions_rvm.budget"}
FEW, MANY = 2000, 12000                 # transactions, in each half of a round
HALVES = 2
SLACK = 1.02


def instructions(build, cluster, engine, transactions):
    """Of all rounds: not of the check afterwards, which does the same transactions again."""
    words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
             "--toggle-collect=measure_in_turn",
             build / "bench/compare", "--work", "synthetic", "--size", 8, "--engines", engine,
             "--mirrors", cluster.unix(), "--fabric", "shm",
             "--store", "%s%d" % (engine, transactions),
             "--warm-up", 0, "--rounds", 1, "--seconds", 3600, "--transactions", transactions]
    done = cluster.run(*words, seconds=300)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not collected:
        raise RuntimeError("status %d\n%s%s" % (done.returncode, done.stdout, done.stderr))
    return int(collected.group(1))


def judge(engine, count):
    """Whether the count is within the budget; says so."""
    budget = int(BUDGETS[engine].read_text())
    print("%s: %.0f instructions for a transaction of 8 bytes over shm; the budget is %d" %
          (engine, count, budget))
    if count > budget * SLACK:
        print("instructions: find what made it slower, or say in the commit why it is worth it "
              "and raise %s" % BUDGETS[engine].name, file=sys.stderr)
    return count <= budget * SLACK


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    build = parser.parse_args().build.resolve()
    counts = {}
    try:
        for engine in BUDGETS:
            with Cluster(build, 1) as cluster:
                few, many = (instructions(build, cluster, engine, n) for n in (FEW, MANY))
            counts[engine] = (many - few) / (HALVES * (MANY - FEW))
    except (RuntimeError, OSError, TimeoutError, subprocess.TimeoutExpired) as error:
        print("instructions: %s" % error, file=sys.stderr)
        return 1
    good = [judge(engine, count) for engine, count in counts.items()]
    print("RVM's interface has %.3f of the library's speed, by instructions" %
          (counts["perseas"] / counts["rvm"]))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
