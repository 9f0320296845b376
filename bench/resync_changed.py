#!/usr/bin/env python3
"""Measures what a mirror is sent that was away while some of the store changed, for longer than the
owner's ring reaches: bytes, time, and the owner's rate meanwhile, next to a whole copy. The owner
that brings the mirror back is the one that made the changes, which knows them, or the next one,
which compares digests. Granules of 64 KiB that change are drawn at random, the same in every run.
Three mirrors, W = 2, share this host with the owner. Prints a table in Markdown, and saves every
figure to build/resync_changed.json. Ends with status 1 if more than 1.3 times the changed granules
were sent.
"""
import argparse
import itertools
import json
import os
import pathlib
import sys

from cluster import Cluster, wait_for
from resync import MIRRORS, SECONDS, Measurement
from worker import MIB, Worker, table

# The ring has so many entries, so after more transactions it cannot bring a mirror up to date.
RING_ENTRIES = 65536
MOST_BYTES = 1.3        # times the changed granules
MOST_TIME = 0.1         # of a whole copy, for 1 %


OWNERS = ("same", "next")


class Absences(Measurement):
    """Measures whole copies, and what is sent after absences, by the owner that made the changes or
    by the next one."""

    def __init__(self, cluster, owner, words, seconds):
        super().__init__(cluster, Worker(cluster, *words), seconds)
        self.owner = owner
        self.words = [word for word in words if word != "--make"] + ["--lacks-mirrors"]

    def change_owner(self, permille):
        """Ends the owner, and starts the next one, which goes on to change the same granules."""
        self.worker.end()
        self.worker = Worker(self.cluster, *self.words, "--permille", permille)

    def measure(self, begin):
        """Has begin() bring the last mirror back, and returns what was sent to it."""
        before = self.look()
        begin()
        done = self.look()
        stretch = self.stretches["with"].pop()
        return {"seconds": stretch["seconds"], "rate": stretch["rate"],
                "bytes": done["resync_bytes"] - before["resync_bytes"],
                "changed_bytes": done["changed_bytes"]}

    def after_absence(self, permille):
        """Has the mirror miss transactions that change so many of the granules."""
        first = self.worker.ask(permille)["number"]
        wait_for(lambda: self.look()["number"] > first, SECONDS, "a transaction")
        self.cluster.mirrors[-1].kill()
        wait_for(lambda: self.look()["live"] == MIRRORS - 1, SECONDS, "a mirror that is missed")
        first = self.look()
        granules = first["changed_bytes"] >> 16
        wait_for(lambda: self.look()["number"] - first["number"] > max(RING_ENTRIES, granules),
                 10 * SECONDS, "an absence")
        if self.owner == "next":
            self.change_owner(permille)
        return self.measure(self.back)


def measure(args, fabric, owner):
    """Returns what each kind of resync took. `owner` is one of OWNERS."""
    size, told = args.size * MIB, []
    with Cluster(args.build.resolve(), MIRRORS, room=MIRRORS * (size + 64 * MIB)) as cluster:
        words = [cluster.unix() if fabric == "shm" else cluster.tcp(), "--make", "--size", size,
                 "--fabric", fabric]
        absences = Absences(cluster, owner, words, args.seconds)
        for _ in range(args.rounds):
            absences.quiet()
            quiet = absences.stretches["without"][-1]["rate"]
            told.append({"permille": None, **absences.measure(absences.resync)})
            for permille in args.permille:
                told.append({"permille": permille, **absences.after_absence(permille)})
            absences.worker.ask(0)
            for each in told[-1 - len(args.permille):]:
                each["rate_ratio"] = each["rate"] / quiet
        absences.worker.end()
    return {"fabric": fabric, "owner": owner, "size": size, "resyncs": told}


def median(entries, key):
    values = sorted(entry[key] for entry in entries)
    return values[len(values) // 2]


def rows(result):
    """Returns the lines of the table of one fabric, and whether the bytes are few enough."""
    lines, good, whole = [], True, None
    for permille in [None] + sorted({e["permille"] for e in result["resyncs"]} - {None}):
        entries = [e for e in result["resyncs"] if e["permille"] == permille]
        seconds, sent = median(entries, "seconds"), median(entries, "bytes")
        whole = whole or seconds
        times = max(e["bytes"] / e["changed_bytes"] for e in entries)
        good = good and (permille is None or times <= MOST_BYTES)
        lines.append([result["fabric"], result["owner"],
                      "whole copy" if permille is None else "%g %%" % (permille / 10),
                      "%.1f" % (sent / MIB), "" if permille is None else "%.2f" % times,
                      "%.3f" % seconds, "%.3f" % (seconds / whole),
                      "%.2f" % median(entries, "rate_ratio")])
    return lines, good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--output", type=pathlib.Path, help="build/resync_changed.json")
    parser.add_argument("--size", type=int, default=1024, help="MiB of the store (1024)")
    parser.add_argument("--permille", default="1,10,100",
                        help="how much of it changes, in thousandths (1,10,100)")
    parser.add_argument("--rounds", type=int, default=3, help="resyncs of each kind (3)")
    parser.add_argument("--seconds", type=float, default=2, help="of a round without (2)")
    parser.add_argument("--fabrics", default="tcp,shm", help="tcp,shm")
    args = parser.parse_args()
    args.permille = [int(word) for word in args.permille.split(",")]
    lines, results, good = [], [], True
    try:
        for fabric, owner in itertools.product(args.fabrics.split(","), OWNERS):
            results.append(measure(args, fabric, owner))
            more, enough = rows(results[-1])
            lines += more
            good = good and enough
            for line in more:
                print("  ".join(line), file=sys.stderr, flush=True)
    except (RuntimeError, OSError, TimeoutError) as error:
        print("resync_changed: %s" % error, file=sys.stderr)
        return 1
    path = args.output or args.build / "resync_changed.json"
    path.write_text(json.dumps({"mirrors": MIRRORS, "processors": len(os.sched_getaffinity(0)),
                                "results": results}, indent=1) + "\n")
    print("A mirror of %d MiB missed changes of so many granules of 64 KiB, and more than the ring "
          "holds; median of %d\n" % (args.size, args.rounds))
    print(table(["fabric", "owner", "changed", "sent, MiB", "times the changed granules",
                 "resync, s", "of a whole copy", "rate, with / without"], lines))
    print("targets: at most %g times the changed granules; 1 %% in at most %g of the time of a "
          "whole copy" % (MOST_BYTES, MOST_TIME))
    print(path)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
