#!/usr/bin/env python3
"""Measures a transaction in C++ and in Python against the same transaction in C: programs of two
languages take turns on stores with one mirror. `make bench` includes the results in its table
(bench/run.py); run alone, this prints them.

    languages.py [--build DIR] [--seconds S] [--rounds N]
"""
import argparse
import os
import pathlib
import subprocess
import sys

from cluster import Cluster, die_with_parent
from report import Report

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
FIRST = 50                              # transactions to estimate how long one takes


class Turns:
    """A program that runs as many transactions as it is told to, and reports how long they took."""

    def __init__(self, build, cpu, *words):
        def prepare():
            die_with_parent()
            os.sched_setaffinity(0, {cpu})

        self.words = [str(word) for word in words]
        self.process = subprocess.Popen(
            self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            preexec_fn=prepare, env=dict(os.environ, PYTHONPATH=str(build / "python")))

    def take(self, count):
        """Runs `count` transactions. Returns the seconds that one took on average."""
        self.process.stdin.write("%d\n" % count)
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("%s ended with status %s" % (" ".join(self.words),
                                                            self.process.wait()))
        return float(answer) / count

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def in_turns(programs, seconds, rounds):
    """Returns for each program the seconds of a transaction in each round. The order of the
    programs alternates."""
    counts = []
    for each in programs:
        each.take(FIRST)                # allocates its memory
        counts.append(max(FIRST, int(seconds / each.take(FIRST))))
    took = [[] for _ in programs]
    for number in range(rounds):
        order = list(range(len(programs)))
        for index in order if number % 2 else reversed(order):
            took[index].append(programs[index].take(counts[index]))
    return took


def against(build, cpu, other, c, seconds, rounds):
    """Measures two programs in turn; the C program is the last of the results."""
    programs = []
    try:
        for words in (other, c):
            programs.append(Turns(build, cpu, *words))
        return in_turns(programs, seconds, rounds)
    finally:
        for each in programs:
            each.end()


def measure(build, cluster, report, cpu, seconds, rounds):
    """Adds all comparisons to the report. Returns the measured times by the same names."""
    found = {}

    def both(name, other, c):
        found[name] = against(build, cpu, other, c, seconds, rounds)
        return found[name]

    def turns(language, size):
        program = [sys.executable, HERE / "turns.py"] if language == "python" else [
            build / "bench/turns"]
        return [*program, cluster.unix(), "%s-%d" % (language, size), size]

    def cpp(way):
        return [build / "bench/cpp", cluster.unix(), "cpp-" + way, way, "-"]

    name = "C++: transact and set of 8 bytes, shm, 1 mirror"
    other, c = both(name, cpp("set"), cpp("c"))
    report.add(name, "us", [1e6 * s for s in other], "C", [1e6 * s for s in c], "<= 1.05")
    name = "Python: one range of 8 bytes, shm, 1 mirror"
    other, c = both(name, turns("python", 8), turns("c", 8))
    report.add(name, "/s", [1 / s for s in other], "C", [1 / s for s in c])
    name = "Python: a numpy slice of 1 MiB, shm, 1 mirror"
    other, c = both(name, turns("python", MIB), turns("c", MIB))
    report.add(name, "us", [1e6 * s for s in other], "C", [1e6 * s for s in c], "<= 1.1")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    cpus, report = sorted(os.sched_getaffinity(0)), Report()
    with Cluster(args.build.resolve(), 1, (), {0: cpus[-1]}, room=600 * MIB) as cluster:
        measure(args.build.resolve(), cluster, report, cpus[0], args.seconds, args.rounds)
    print(report.table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
