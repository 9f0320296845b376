#!/usr/bin/env python3
"""Counts the instructions of a transaction of 8 bytes on one mirror over shared memory, written in
C and in each of the ways that C++ has for it (bench/cpp.cpp). Fails if a C++ way takes more than
1.05 times what C takes. Counts do not depend on how busy the machine is. Needs valgrind.
"""
import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys

from cluster import Cluster

MOST = 1.05
TRANSACTIONS = 4000
WAYS = (("c", "C: begin, set_range, commit"), ("set", "transact, tx.set"),
        ("writable", "transact, tx.writable"), ("p", "transact, perseas::p"),
        ("hand", "a transaction in a scope, commit"), ("result", "try_transact, try_set"))


def instructions(build, cluster, way):
    """Returns the instructions of one transaction, including the loop around it."""
    words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
             "--toggle-collect=perseas_counted", build / "bench/cpp", cluster.unix(), "cpp-" + way,
             way, TRANSACTIONS]
    done = cluster.run(*words, seconds=120)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not collected or not int(collected.group(1)):
        raise RuntimeError("status %d\n%s%s" % (done.returncode, done.stdout, done.stderr))
    return int(collected.group(1)) / TRANSACTIONS


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    build = parser.parse_args().build.resolve()
    try:
        with Cluster(build, 1, room=1 << 30) as cluster, \
                concurrent.futures.ThreadPoolExecutor(2) as pool:
            counts = list(pool.map(lambda way: instructions(build, cluster, way[0]), WAYS))
    except (RuntimeError, OSError, TimeoutError, subprocess.TimeoutExpired) as error:
        print("cpp: %s" % error, file=sys.stderr)
        return 1
    for (_, what), count in zip(WAYS, counts):
        print("%5.0f instructions, %.3f of C: %s" % (count, count / counts[0], what))
    worst = max(counts) / counts[0]
    print("the most is %.3f of C; the limit is %.2f" % (worst, MOST))
    return 1 if worst > MOST else 0


if __name__ == "__main__":
    sys.exit(main())
