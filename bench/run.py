#!/usr/bin/env python3
"""Runs the measurements one after the other, each over mirrors of its own, and keeps every
figure in build/bench/results.json.

On a host with few processors mirrors and owner share them: figures over tcp are then those of
this host, not of a network.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

from cluster import Cluster

SPIN_US = 50


class Bench:
    def __init__(self, build, quick):
        self.build, self.results = build, {}
        self.seconds, self.rounds = (0.3, 3) if quick else (1, 7)
        self.sizes = "64,4K,1M" if quick else "8,64,256,1K,4K,16K,64K,256K,1M"
        cpus = sorted(os.sched_getaffinity(0))
        self.near, self.far = cpus[0], cpus[-1]

    def program(self, cluster, name, mirrors, *more):
        """Runs a benchmark; its JSON."""
        words = [self.build / "bench" / name, "--mirrors", mirrors, "--seconds", self.seconds,
                 "--rounds", self.rounds, "--cpu", self.near, "--json", *more]
        done = cluster.run(*words, seconds=600)
        if done.returncode:
            raise RuntimeError("%s: status %d\n%s" % (name, done.returncode, done.stderr))
        return json.loads(done.stdout)

    def cluster(self, mirrors, *options):
        return Cluster(self.build, mirrors, options, {i: self.far for i in range(mirrors)})

    def keep(self, name, result):
        self.results[name] = result

    def debit_credit(self, mirrors, fabric):
        title = "debit-credit, %s, %d mirror%s" % (fabric, mirrors, "s" if mirrors > 1 else "")
        with self.cluster(mirrors) as cluster:
            names = cluster.unix() if fabric == "shm" else cluster.tcp()
            result = self.program(cluster, "debit-credit", names, "--against", "local")
            self.keep(title, result)
            heading(title + ", W = %d" % result["acks"])
            line("perseas", result["perseas"])
            line("local", result["local"])
            ratio("rate, perseas / local", result["rate_ratio"])
            self.recovery(cluster, names, title)

    def recovery(self, cluster, names, title):
        done = cluster.run(self.build / "bench/debit-credit", "--mirrors", names, "--verify",
                           "--json", seconds=600)
        if done.returncode:
            raise RuntimeError("verify: %s%s" % (done.stdout, done.stderr))
        result = json.loads(done.stdout)
        self.keep(title + ", opened again", result)
        print("    opened again and read, 52 MiB: %.0f ms; every byte is right" %
              result["opened_ms"])

    def synthetic(self, fabric):
        title = "synthetic, %s, 3 mirrors" % fabric
        with self.cluster(3) as cluster:
            names = cluster.unix() if fabric == "shm" else cluster.tcp()
            result = self.program(cluster, "synthetic", names, "--against", "local",
                                  "--sizes", self.sizes)
        self.keep(title, result)
        heading(title)
        for entry in result["sizes"]:
            line("%d bytes" % entry["size"], entry["perseas"])

    def tcp_ratio(self):
        """A commit of 64 bytes against the bare round trip, both ends waiting alike."""
        title = "64-byte commit over tcp against a ping-pong of 256 bytes"
        with self.cluster(1, "--spin-us", str(SPIN_US)) as cluster:
            result = self.program(cluster, "synthetic", cluster.tcp(), "--against", "pingpong",
                                  "--sizes", "64", "--spin-us", SPIN_US,
                                  "--far-spin-us", SPIN_US)
        self.keep(title, result)
        entry = result["sizes"][0]
        heading(title)
        line("commit", entry["perseas"])
        line("ping-pong", entry["pingpong"])
        ratio("median latency, commit / ping-pong", entry["p50_ratio_pingpong"])


def heading(text):
    print("\n%s\n    %-14s %12s %12s %12s %12s" % (text, "", "rate/s", "p50 us", "p99 us",
                                                 "p99.9 us"), flush=True)


def line(name, entry):
    print("    %-14s %12.0f %12.2f %12.2f %12.2f" % (
        name, entry["rate"]["median"], entry["p50_ns"] / 1e3, entry["p99_ns"] / 1e3,
        entry["p99_9_ns"] / 1e3), flush=True)


def ratio(name, entry):
    print("    %s: %.3f (rounds %.3f - %.3f)" % (name, entry["median"], entry["min"],
                                               entry["max"]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--quick", action="store_true", help="shorter, for a first look")
    args = parser.parse_args()
    bench = Bench(args.build.resolve(), args.quick)
    try:
        bench.tcp_ratio()
        for mirrors in (1, 3):
            bench.debit_credit(mirrors, "shm")
        bench.debit_credit(3, "tcp")
        bench.synthetic("shm")
        bench.synthetic("tcp")
    except (RuntimeError, OSError, TimeoutError, subprocess.TimeoutExpired) as error:
        print("bench: %s" % error, file=sys.stderr)
        return 1
    path = args.build / "bench/results.json"
    path.write_text(json.dumps(bench.results, indent=1) + "\n")
    print("\n%s" % path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
