#!/usr/bin/env python3
"""Measures the pause of a planned handover. Two programs run under `perseas run`; one owns the
store and commits as often as it can, and `perseas move` hands the store back and forth. Three
mirrors, W = 2, run on this host, over tcp and shm. Prints a table in Markdown, and saves every
figure to build/handover.json. Exit status: 1 if the target is missed, or a transaction was lost or
left in doubt; 2 when it could not run.

- The pause as the mirrors time it: from the end of one session until the next owner has the store
  open.
- The pause between two commits: from the last commit of the old owner to the first of the new one,
  by the host's clock. It includes the time in which the old owner ends its last transaction and
  closes the store, and in which the new one reads the memory.
"""
import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys

from cluster import Cluster, wait_for
from failover import FABRICS, MIRRORS, RUNS, SECONDS, Row, names, say, values, verdict
from worker import MIB, table

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/drills"))
from teller import Page  # noqa: E402

TARGET = "<= 20"
ROOM = 64 * MIB                         # on each mirror


class Node:
    """A `perseas run`, and the progress of its program."""

    def __init__(self, cluster, fabric, name):
        folder = pathlib.Path(cluster.folder)
        self.name, self.page = name, Page(folder / name)
        self.log = open(folder / (name + ".log"), "wb+")
        self.process = subprocess.Popen(
            [cluster.build / "perseas", "run", "bank", "--mirrors", names(cluster, fabric),
             "--name", name, "--", cluster.build / "tests/drills/teller", "serve", "bank",
             names(cluster, fabric), folder / name], stderr=self.log)

    def said(self, text):
        return text in pathlib.Path(self.log.name).read_text()

    def wait(self, predicate, what):
        wait_for(predicate, SECONDS, what)

    def end(self):
        self.process.terminate()
        self.process.wait(SECONDS)
        self.log.close()


def command(cluster, *words):
    done = subprocess.run([cluster.build / "perseas", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError("perseas %s: %s%s" % (words[0], done.stdout, done.stderr))
    return done.stdout


def hand_over(cluster, fabric, giver, taker):
    """Hands the store over once, while the giver commits. Returns the measured times."""
    goal = giver.page.acked + 1000
    giver.wait(lambda: giver.page.acked >= goal, "transactions")
    taker.page.forget()
    told = json.loads(command(cluster, "move", "bank", names(cluster, fabric), taker.name,
                              "--json"))
    taker.wait(lambda: taker.page.first_at, "a commit of the next owner")
    return {"pause_ms": told["pause_us"] / 1e3, "closing_ms": told["closing_us"] / 1e3,
            "between_ms": (taker.page.first_at - giver.page.last_at) / 1e6,
            "lost": told["lost"] + abs(taker.page.found - giver.page.acked),
            "in_doubt": told["in_doubt"] + giver.page.in_doubt}


def measure(build, fabric, runs):
    """Runs the handovers of one fabric. Returns a list of runs."""
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(Cluster(build, MIRRORS, room=MIRRORS * ROOM))
        command(cluster, "create", "bank", names(cluster, fabric))
        nodes = []
        for name in ("alpha", "beta"):
            nodes.append(Node(cluster, fabric, name))
            stack.callback(nodes[-1].end)
            nodes[-1].wait(lambda: nodes[0].page.first_at, "a commit")
        nodes[1].wait(lambda: nodes[1].said("its owner lives"), "a standby")
        told = []
        for _ in range(runs):
            told.append(hand_over(cluster, fabric, *nodes))
            nodes.reverse()
        return told


def rows_of(fabric, runs):
    yield Row("planned handover, pause, %s" % fabric, "ms", values(runs, "pause_ms"),
              target=TARGET)
    yield Row("planned handover, between two commits, %s" % fabric, "ms",
              values(runs, "between_ms"))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--output", type=pathlib.Path, help="build/handover.json")
    parser.add_argument("--runs", type=int, default=RUNS)
    args = parser.parse_args()
    try:
        told = {fabric: measure(args.build.resolve(), fabric, args.runs) for fabric in FABRICS}
    except (RuntimeError, OSError, TimeoutError) as error:
        say("handover: %s" % error)
        return 2
    rows = [row for fabric, runs in told.items() for row in rows_of(fabric, runs)]
    path = args.output or args.build / "handover.json"
    path.write_text(json.dumps({"mirrors": MIRRORS, "fabrics": told, "processors":
                                len(os.sched_getaffinity(0)),
                                "rows": [row.json() for row in rows]}, indent=1) + "\n")
    print("Planned handovers: median of %d (least - most)\n" % args.runs)
    print(table(["what", "value", "against", "value", "ratio", "target", "met"],
                [row.cells() for row in rows]))
    counts = {kind: sum(sum(values(runs, kind)) for runs in told.values())
              for kind in ("lost", "in_doubt")}
    print("Transactions lost: %(lost)d, in doubt: %(in_doubt)d." % counts)
    print(path)
    return verdict(rows) or int(any(counts.values()))


if __name__ == "__main__":
    sys.exit(main())
