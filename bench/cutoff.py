#!/usr/bin/env python3
"""Measures how soon `perseas run` replaces an owner that falls silent. The owner, the standby and
each of three mirrors (W = 2) run in their own network namespaces, and the mirrors have
--owner-timeout 0.25. Needs root. Prints a table in Markdown, and saves every figure to
build/cutoff.json. Exit status: 1 if a target is missed, as the last lines say; 2 when it could not
run.

- Over tcp, the link of the owner's host goes down: no connection is reset, and the owner goes on
  alone.
- Over tcp, the owner is stopped (SIGSTOP): its host answers, and the process does not.
- Over shm, the owner is stopped, too: each mirror must copy its image away from the memory that it
  shares with the owner.

Measures the time from that moment to the start of COMMAND, and to its first commit. Each run checks
that no acknowledged transaction is missing, and that an owner that was cut off acknowledges none
afterward.
"""
import argparse
import json
import os
import pathlib
import signal
import sys
import time

from cluster import Cluster, Mirror, wait_for
from report import figure, met
from worker import MIB, Worker, spread, table

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/drills"))
from netns import Network  # noqa: E402

MIRRORS = ("m0", "m1", "m2")
OWNERS = ("a", "b")
OWNER_TIMEOUT = "0.25"
SIZE = 64 * MIB
RUNS = 5
ENOUGH = 1000                           # transactions before it falls silent
SECONDS = 60
TARGET = "<= 600"                       # ms until the first commit
CUT, STOPPED = "its host is cut off", "it is stopped (SIGSTOP)"
WAYS = (("tcp", CUT), ("tcp", STOPPED), ("shm", STOPPED))
PARTS = {"start_ms": "began_ns", "open_ms": "opened_ns", "total_ms": "committed_ns"}


class Field:
    """The network with the mirrors, and a full store."""

    def __init__(self, cluster, net, fabric):
        self.cluster, self.net, self.fabric = cluster, net, fabric
        for index, name in enumerate(MIRRORS):
            mirror = Mirror(cluster.build / "perseasd", cluster.folder, index,
                            ["--owner-timeout", OWNER_TIMEOUT], net[name].address)
            cluster.mirrors.append(mirror)
            with net[name].inside():
                mirror.start()
        self.worker(OWNERS[0], "--make", "--size", SIZE).end()

    def names(self):
        return self.cluster.tcp() if self.fabric == "tcp" else self.cluster.unix()

    def worker(self, node, *words, under=()):
        with self.net[node].inside():
            return Worker(self.cluster, self.names(), "--fabric", self.fabric, "--demand", *words,
                          under=under)

    def standby(self, node):
        """Starts `perseas run` on a node and waits until it stands by."""
        return self.worker(node, under=[self.cluster.build / "perseas", "run", "worker",
                                        "--mirrors", self.names(), "--"]).await_standing_by()

    def silence_once(self, how):
        """Silences an owner in the way `how`. Returns the times from then to the next owner's first
        commit."""
        owner = self.worker(OWNERS[0])
        waiting = self.standby(OWNERS[1])
        told = work(owner)
        began = time.monotonic_ns()
        if how == CUT:
            self.net.pull(OWNERS[0])
        else:
            owner.process.send_signal(signal.SIGSTOP)
        first = waiting.await_first()
        if how == CUT:
            told = look(owner)
            check(told, first)
            time.sleep(0.1)             # in which the old owner might acknowledge more
        check(look(owner) if how == CUT else told, first)
        owner.kill()
        self.net.plug(OWNERS[0])
        waiting.end()
        return {part: (first[at] - began) / 1e6 for part, at in PARTS.items()}


def look(owner):
    """Returns the owner's progress, even if its last transaction failed."""
    owner.process.stdin.write("\n")
    owner.process.stdin.flush()
    return json.loads(owner.process.stdout.readline())


def check(told, first):
    if first["found"] < told["number"]:
        raise RuntimeError("%d transactions were acknowledged, %d are there" %
                           (told["number"], first["found"]))


def work(owner):
    """Waits until the owner has committed some transactions and has all memory. Returns its
    progress."""
    goal = owner.first["found"] + ENOUGH

    def ready():
        told = owner.ask()
        return (told["number"] >= goal and not told["missing"] and
                told["live"] == len(MIRRORS) and told)
    return wait_for(ready, SECONDS, "transactions of an owner that has all memory")


def rows_of(told):
    """Returns the table's rows: what was measured, its spread, the target, and whether it is
    met."""
    rows = []
    for (fabric, how), runs in told.items():
        parts = {part: spread([run[part] for run in runs]) for part in PARTS}
        rows.append({"what": "an owner over %s falls silent, %s: until COMMAND starts" %
                             (fabric, how),
                     "ms": parts["start_ms"], "target": None, "met": None})
        rows.append({"what": "the same: until its first commit", "ms": parts["total_ms"],
                     "target": TARGET, "met": met(parts["total_ms"]["median"], TARGET)})
    return rows


def cells(row):
    ms = row["ms"]
    verdict = {None: "", True: "yes", False: "**no**"}[row["met"]]
    return [row["what"], "%s ms (%s - %s)" % tuple(figure(ms[k]) for k in ("median", "min", "max")),
            row["target"] or "", verdict]


def measure(build, runs):
    net, told = Network((*MIRRORS, *OWNERS)), {}
    try:
        for fabric in ("tcp", "shm"):
            # Twice the size: while an image is copied away there are two.
            with Cluster(build, 0, room=2 * len(MIRRORS) * (SIZE + 64 * MIB)) as cluster:
                field = Field(cluster, net, fabric)
                told.update(((way, how), [field.silence_once(how) for _ in range(runs)])
                            for way, how in WAYS if way == fabric)
        return told
    finally:
        net.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--output", type=pathlib.Path, help="build/cutoff.json")
    parser.add_argument("--quick", action="store_true", help="once, and no target is judged")
    args = parser.parse_args()
    if os.geteuid():
        print("cutoff: only root can make network namespaces; nothing was measured")
        return 0
    try:
        told = measure(args.build.resolve(), 1 if args.quick else RUNS)
    except (RuntimeError, OSError, TimeoutError) as error:
        print("cutoff: %s" % error, file=sys.stderr)
        return 2
    rows = rows_of(told)
    for row in rows if args.quick else ():
        row["met"] = None
    path = args.output or args.build / "cutoff.json"
    runs = [{"fabric": fabric, "how": how, "runs": runs} for (fabric, how), runs in told.items()]
    path.write_text(json.dumps({"owner_timeout": float(OWNER_TIMEOUT), "runs": runs,
                                "rows": rows}, indent=1) + "\n")
    print(table(["what", "value", "target", "met"], [cells(row) for row in rows]))
    print(path)
    missed = [row["what"] for row in rows if row["met"] is False]
    print("".join("Missed: %s\n" % what for what in missed) or
          ("A short run judges no target.\n" if args.quick else "All targets are met.\n"), end="")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
