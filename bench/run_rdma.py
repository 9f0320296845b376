#!/usr/bin/env python3
"""Measures Perseas over RDMA against the bare fabric, as ratios of one run.

It runs in a machine with RDMA nodes 10.5.0.1 … 10.5.0.4, such as the one that `make bench-rdma`
boots: the mirrors are on the first three, the owner and the bare fabric's near end on the fourth.
Compared programs take turns, round by round.

That machine's clock counts instructions, and it has one processor, so the work of both ends and of
the emulated device adds up. Times therefore mean nothing by themselves, but ratios do not depend on
other load on the host. The work of three mirrors is done one after the other there.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from cluster import Cluster

HOSTS = ["10.5.0.1", "10.5.0.2", "10.5.0.3"]
ACKS = 2
BYTES = 64
SPIN_US = 50
READ_SIZES, READ_DEPTHS = "64K,256K,1M", "4,16"
MOST_CHAIN, LEAST_RECOVERY = 1.25, 0.9
LEAST_FLYING, LEAST_OF_RAW = 3, 0.9
FLYING = "flying-32"
LIMIT_SECONDS = 300


class Failure(Exception):
    """A program that failed."""


class Samples:
    """The values of one measurement in each round."""

    def __init__(self, name):
        self.name, self.rounds = name, []

    def add(self, value):
        self.rounds.append(value)

    @property
    def median(self):
        return statistics.median(self.rounds)


class Bench:
    def __init__(self, cluster, args):
        self.cluster, self.args, self.rows = cluster, args, []

    def program(self, name, *words):
        """Runs a benchmark for one round. Returns its JSON."""
        line = [self.cluster.build / "bench" / name, "--rounds", 1, "--json", *words]
        done = self.cluster.run(*line, seconds=LIMIT_SECONDS)
        if done.returncode:
            raise Failure("%s: status %d\n%s" % (name, done.returncode, done.stderr))
        return json.loads(done.stdout)

    def commit(self, store, mirrors):
        """Returns the median latency of a commit in microseconds. Every mirror must be on rdma."""
        result = self.program("compare", "--work", "synthetic", "--engines", "perseas", "--store",
                              store, "--mirrors", mirrors, "--fabric", "rdma", "--size", BYTES,
                              "--acks", min(ACKS, mirrors.count(",") + 1), "--spin-us",
                              self.args.spin_us, "--seconds", self.args.seconds)
        self.cluster.drop(store, mirrors)
        return result["engines"]["perseas"]["p50_ns"] / 1e3

    def raw(self, what, hosts, *more):
        return self.program("limits", "--to", ",".join(hosts), "--bytes", BYTES, "--measure", what,
                            "--spin-us", self.args.spin_us, "--seconds", self.args.seconds, *more)

    def commits(self):
        one, three = Samples("commit, 1 mirror"), Samples("commit, 3 mirrors, W = 2")
        write, chain = Samples("a raw write"), Samples("a raw chain")
        chains = Samples("raw chains to 3 targets, 2 awaited")
        for number in range(self.args.rounds):
            result = self.raw("write,chain,chains", HOSTS, "--acks", ACKS)
            write.add(result["write"]["p50_ns"] / 1e3)
            one.add(self.commit("one", self.cluster.rdma(1)))
            chain.add(result["chain"]["p50_ns"] / 1e3)
            three.add(self.commit("three", self.cluster.rdma()))
            chains.add(result["chains"]["p50_ns"] / 1e3)
            progress("commits of %d bytes, round %d: " % (BYTES, number + 1),
                     (one, chain, write, three, chains), "us")
        self.row(one, chain, "us", most=MOST_CHAIN)
        self.row(one, write, "us")
        self.row(chain, write, "us")
        self.row(three, chains, "us")
        self.row(chains, chain, "us")
        self.row(three, one, "us")

    def contest(self, mirrors, acks):
        """Returns the transactions a second of commits that wait and of commits that do not,
        measured in turn."""
        engines = ["perseas", FLYING]
        result = self.program("compare", "--work", "synthetic", "--engines", ",".join(engines),
                              "--mirrors", mirrors, "--fabric", "rdma", "--size", BYTES, "--acks",
                              acks, "--spin-us", self.args.spin_us, "--seconds", self.args.seconds)
        for store in ("compare", "compare-flying"):
            self.cluster.drop(store, mirrors)
        return [result["engines"][each]["rate"]["median"] for each in engines]

    def unwaited(self):
        """Compares commits that do not wait with commits that do, and with as many bare writes in
        flight. On one processor the work of near end, far end and devices adds up, so the bare
        fabric gains little by not waiting; on two processors it gains more."""
        one = os.cpu_count() == 1
        apart, raw = Samples("raw chains, each waited for"), Samples("32 raw chains on their way")
        for _ in range(self.args.rounds):
            result = self.raw("chain,flying", HOSTS[:1])
            apart.add(result["chain"]["rate"]["median"])
            raw.add(result["flying"]["rate"]["median"])
        self.row(raw, apart, "/s")
        for count, acks in (1, 1), (len(HOSTS), ACKS):
            where = "%d mirror%s, W = %d" % (count, "s" if count > 1 else "", acks)
            flying = Samples("32 commits on their way, %s" % where)
            waiting = Samples("each waited for")
            for number in range(self.args.rounds):
                for samples, rate in zip((waiting, flying),
                                         self.contest(self.cluster.rdma(count), acks)):
                    samples.add(rate)
                progress("commits of %d bytes, round %d: " % (BYTES, number + 1),
                         (waiting, flying), "/s")
            self.row(flying, waiting, "/s", least=None if one else LEAST_FLYING)
            if count == 1:
                self.row(flying, raw, "/s", least=LEAST_OF_RAW if one else None)

    def recovery(self):
        mapped, opened = Samples("segment read by map"), Samples("store opened and segment read")
        shapes = {}
        for number in range(self.args.rounds):
            raw = self.raw("read", HOSTS[:1], "--read-sizes", READ_SIZES, "--read-depths",
                           READ_DEPTHS, "--segment", self.args.segment)
            for shape in raw["reads"]:
                key = shape["size"], shape["depth"]
                name = "raw reads of %d KiB, %d at a time" % (key[0] >> 10, key[1])
                shapes.setdefault(key, Samples(name)).add(shape["bytes_s"]["median"] / 1e6)
            made = ["--make"] if number == 0 else []
            result = self.program("reopen", "--mirrors", self.cluster.rdma(1), "--fabric",
                                  "rdma", "--size", self.args.segment, *made)
            mapped.add(result["bytes_s"]["median"] / 1e6)
            opened.add(result["bytes"] / 1e3 /
                       (result["open_ms"]["median"] + result["map_ms"]["median"]))
            progress("recovery of %s, round %d: " % (self.args.segment, number + 1),
                     (mapped, opened, max(shapes.values(), key=lambda s: s.rounds[-1])), "MB/s")
        best = max(shapes.values(), key=lambda samples: samples.median)
        self.row(mapped, best, "MB/s", least=LEAST_RECOVERY)
        self.row(opened, best, "MB/s")

    def row(self, samples, against, unit, most=None, least=None):
        """Adds a row that compares round by round, because the machine changes from one minute to
        the next."""
        ratios = [a / b for a, b in zip(samples.rounds, against.rounds)]
        ratio, target = statistics.median(ratios), most if least is None else least
        met = None if target is None else ratio <= most if least is None else ratio >= least
        self.rows.append({
            "name": samples.name, "value": samples.median, "unit": unit, "against": against.name,
            "against_value": against.median, "ratio": ratio, "target": target, "met": met,
            "bound": "least" if most is None else "most",
            "ratio_least": min(ratios), "ratio_most": max(ratios), "values": samples.rounds,
            "against_values": against.rounds})

    def table(self):
        for row in self.rows:
            print("%s: %.1f %s\n    against %s: %.1f %s" % (
                row["name"], row["value"], row["unit"], row["against"], row["against_value"],
                row["unit"]))
            told = "" if row["met"] is None else "; at %s %.2f: %s" % (
                row["bound"], row["target"],
                "met" if row["met"] else "MISSED")
            print("    ratio %.3f (rounds %.3f - %.3f)%s" % (
                row["ratio"], row["ratio_least"], row["ratio_most"], told))


def progress(title, samples, unit):
    print(title + ", ".join("%s %.1f %s" % (s.name, s.rounds[-1], unit) for s in samples),
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--output", type=pathlib.Path, help="a file for all figures, as JSON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each measurement in a round")
    parser.add_argument("--segment", default="128M", help="what is recovered (128M)")
    parser.add_argument("--spin-us", type=int, default=SPIN_US, help="to poll before sleeping")
    parser.add_argument("--only", choices=("commits", "unwaited", "recovery"))
    parser.add_argument("--strict", action="store_true", help="a missed target is a failure")
    args = parser.parse_args()
    try:
        with Cluster(args.build, len(HOSTS), hosts=HOSTS) as cluster:
            bench = Bench(cluster, args)
            for part in (args.only,) if args.only else ("commits", "unwaited", "recovery"):
                getattr(bench, part)()
    except (Failure, RuntimeError, OSError, TimeoutError, subprocess.TimeoutExpired) as error:
        print("run_rdma: %s" % error, file=sys.stderr)
        return 1
    bench.table()
    if args.output:
        args.output.write_text(json.dumps(bench.rows, indent=1) + "\n")
    return 1 if args.strict and any(row["met"] is False for row in bench.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
