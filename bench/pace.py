#!/usr/bin/env python3
"""Measures what it costs an owner that never pauses to wait for a mirror that cannot keep up, and
what it costs not to wait. Three mirrors, W = 2, run on this host over tcp; the third one is behind
a relay that limits its bandwidth. For each way (no mirror is slow, commits wait, commits do not
wait) it reports the rate of transactions, the longest of them, how much of the time all three
mirrors were live, and how often the third one was dropped. Prints a table in Markdown, and saves
every figure to build/pace.json.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

from cluster import PATIENCE, Cluster, stolen_seconds, wait_for
from worker import MIB, Worker, spread, table

MIRRORS = 3
SECONDS = 60 * PATIENCE
ROOM = 64 << 10                         # bytes in flight through the relay
WAYS = (("no mirror is slow", False, []), ("commits wait, pace_ms 100", True, ["--pace", 100]),
        ("commits do not wait", True, ["--no-pace"]))


def through_relay(cluster, mirror, rate):
    """Returns the mirror's address behind a relay that passes about `rate` bytes a second."""
    relay = cluster.spawn(cluster.build / "bench/relay", "--port", mirror.port, "--room", ROOM,
                          "--delay-us", ROOM * 1000000 // rate, stdout=subprocess.PIPE, text=True)
    return "127.0.0.1:%s" % relay.stdout.readline().strip()


def round_of(worker, seconds):
    """Runs transactions for `seconds`. Returns their rate and the state of the mirrors."""
    first = told = worker.ask()
    looks, live, longest, stolen = 0, 0, 0, stolen_seconds()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.005)               # between two samples
        told = worker.ask()
        looks += 1
        live += told["live"] == MIRRORS
        longest = max(longest, told["longest_ns"])
    took = (told["at_ns"] - first["at_ns"]) / 1e9
    return {"rate": (told["number"] - first["number"]) / took, "longest_ms": longest / 1e6,
            "live": live / looks, "dropped": (told["dropped"] - first["dropped"]) / took,
            "waited": (told["paced_ns"] - first["paced_ns"]) / 1e9 / took,
            "stolen_ms": 1e3 * (stolen_seconds() - stolen)}


def measure(args, slow, words):
    """Runs the rounds of one way, with new mirrors."""
    with Cluster(args.build.resolve(), MIRRORS, room=MIRRORS * 128 * MIB) as cluster:
        addresses = [mirror.tcp for mirror in cluster.mirrors]
        if slow:
            addresses[-1] = through_relay(cluster, cluster.mirrors[-1], args.rate * MIB)
        worker = Worker(cluster, ",".join(addresses), "--make", "--size", args.size * MIB, "--acks",
                        2, "--bytes", args.bytes, "--ring", args.ring * MIB, *words)
        wait_for(lambda: worker.ask()["live"] == MIRRORS, SECONDS, "live mirrors")
        rounds = [round_of(worker, args.seconds) for _ in range(args.rounds)]
        worker.end()
    return {"rounds": rounds,
            **{key: spread([one[key] for one in rounds]) for key in rounds[0]}}


def row(name, result):
    """Returns a line of the table."""
    return [name, "%.0f (%.0f - %.0f)" % tuple(result["rate"][k] for k in ("median", "min", "max")),
            "%.1f (%.1f)" % (result["longest_ms"]["median"], result["longest_ms"]["max"]),
            "%.0f %%" % (100 * result["waited"]["median"]),
            "%.0f %%" % (100 * result["live"]["median"]), "%.1f" % result["dropped"]["median"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--output", type=pathlib.Path, help="build/pace.json")
    parser.add_argument("--size", type=int, default=16, help="MiB of the segment (16)")
    parser.add_argument("--ring", type=int, default=16, help="MiB of the owner's ring (16)")
    parser.add_argument("--bytes", type=int, default=4096, help="of a transaction's range (4096)")
    parser.add_argument("--rate", type=int, default=8, help="MiB/s to the slow mirror (8)")
    parser.add_argument("--rounds", type=int, default=3, help="of each way (3)")
    parser.add_argument("--seconds", type=float, default=3, help="of a round (3)")
    args = parser.parse_args()
    rows, results = [], []
    try:
        for name, slow, words in WAYS:
            results.append({"name": name, **measure(args, slow, words)})
            rows.append(row(name, results[-1]))
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    except (RuntimeError, OSError, TimeoutError) as error:
        print("pace: %s" % error, file=sys.stderr)
        return 1
    path = args.output or args.build / "pace.json"
    path.write_text(json.dumps({"mirrors": MIRRORS, "processors": len(os.sched_getaffinity(0)),
                                "ring": args.ring * MIB, "ways": results}, indent=1) + "\n")
    print("Three mirrors, W = 2, and one mirror takes %d MiB/s at most; transactions of %d bytes; "
          "a ring of %d MiB; median of %d rounds\n"
          % (args.rate, args.bytes, args.ring, args.rounds))
    print(table(["", "transactions a second (least - most)", "longest, ms (worst)",
                 "of the time, commits waited", "all mirrors were live", "dropped a second"],
                rows))
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
