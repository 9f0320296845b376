#!/usr/bin/env python3
"""Measures what the threads of a daemon (--threads) gain. As many owners as there are processors,
each with its own store, commit over tcp to one daemon, with one thread and with the daemon's
default number; then debit-credit runs on one store with both. The two take turns, round by round.
Prints tables in Markdown, with the number of processors, which owners and daemon share. Saves every
figure to build/lanes.json.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from cluster import PATIENCE, Cluster
from worker import MIB, Worker, spread, table

THREADS_USUAL = 8                       # largest default of perseasd
SECONDS = 120 * PATIENCE                # timeout for a round


def owners(args, count, threads):
    """Returns the rate of each of `count` owners of a daemon with `threads` threads."""
    with Cluster(args.build, 1, ("--threads", str(threads))) as cluster:
        workers = [Worker(cluster, cluster.tcp(), "--make", "--size", MIB, "--fabric", "tcp",
                          "--store", "store%d" % index) for index in range(count)]
        first = [worker.ask() for worker in workers]
        time.sleep(args.seconds)        # the measured interval
        last = [worker.ask() for worker in workers]
        for worker in workers:
            worker.end()
    return [(b["number"] - a["number"]) * 1e9 / (b["at_ns"] - a["at_ns"])
            for a, b in zip(first, last)]


def debit_credit(args, threads):
    with Cluster(args.build, 1, ("--threads", str(threads))) as cluster:
        done = cluster.run(cluster.build / "bench/debit-credit", "--mirrors", cluster.tcp(),
                           "--seconds", args.seconds, "--json", seconds=SECONDS)
    if done.returncode:
        raise RuntimeError("debit-credit: " + done.stderr)
    return [json.loads(done.stdout)["rate"]]


def compare(args, measure):
    """Measures one thread and several threads in turn. Returns the rates of all rounds."""
    rates = {1: [], args.threads: []}
    for round_ in range(args.rounds):
        for threads in sorted(rates, reverse=round_ % 2):
            rates[threads].append(measure(threads))
    sums = {threads: [sum(each) for each in all_] for threads, all_ in rates.items()}
    medians = {threads: statistics.median(all_) for threads, all_ in sums.items()}
    return {"rates": rates, "one": spread(sums[1]), "threads": spread(sums[args.threads]),
            "ratio": medians[args.threads] / medians[1]}


def each_rate(result, threads):
    """Formats the rates of the round whose sum is the median."""
    rounds = sorted(result["rates"][threads], key=sum)
    return " + ".join("%.0f" % rate for rate in rounds[len(rounds) // 2])


def row(name, args, result):
    def text(of, threads):
        return "%.0f (%.0f - %.0f): %s" % (of["median"], of["min"], of["max"],
                                           each_rate(result, threads))
    return [name, text(result["one"], 1), text(result["threads"], args.threads),
            "%.2f" % result["ratio"]]


def arguments():
    processors = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--output", type=pathlib.Path, help="build/lanes.json")
    parser.add_argument("--threads", type=int, default=max(2, min(processors, THREADS_USUAL)),
                        help="beside one (the processors, 2 to 8)")
    parser.add_argument("--rounds", type=int, default=5, help="of each (5)")
    parser.add_argument("--seconds", type=float, default=2, help="of a round (2)")
    args = parser.parse_args()
    args.processors = processors
    return args


def main():
    args = arguments()
    rows, results = [], {}
    kinds = {"%d owners" % count: lambda threads, count=count: owners(args, count, threads)
             for count in range(1, min(args.processors, THREADS_USUAL) + 1)}
    kinds["debit-credit, one store"] = lambda threads: debit_credit(args, threads)
    for name, measure in kinds.items():
        try:
            results[name] = compare(args, measure)
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            print("lanes: %s: %s" % (name, error), file=sys.stderr)
            return 1
        rows.append(row(name, args, results[name]))
        print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    path = args.output or args.build / "lanes.json"
    path.write_text(json.dumps({"processors": args.processors, "threads": args.threads,
                                "results": results}, indent=1) + "\n")
    print("Transactions a second over tcp to one daemon, with one thread and with %d, on %d "
          "processors that owners and daemon share: the sum, median (least - most) of %d rounds, "
          "and each store's\n" % (args.threads, args.processors, args.rounds))
    print(table(["", "--threads 1", "--threads %d" % args.threads, "ratio"], rows))
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
