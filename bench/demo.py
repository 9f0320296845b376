#!/usr/bin/env python3
"""The demo: a bank keeps its memory on three mirrors. While it commits, one mirror and then the
bank itself are killed. Another process recovers the bank and checks every byte.

Exit status 0 if every check passed.
"""
import argparse
import json
import mmap
import os
import pathlib
import signal
import struct
import sys
import time

from cluster import Cluster, wait_for

STORE = "bank"
LIMIT_SECONDS = 180                     # for the whole demo, on any machine
WAIT_SECONDS = 60                       # for one step of it
RUN_SECONDS = 2.5                       # of each phase

start = time.monotonic()


class Failure(Exception):
    """A check that failed."""


def say(text):
    print("%6.2f s  %s" % (time.monotonic() - start, text), flush=True)


class Oracle:
    """The file, outside of the system, that counts the transactions acknowledged to the bank."""

    def __init__(self, path):
        self.path = path
        with open(path, "wb") as file:
            file.truncate(mmap.PAGESIZE)
        with open(path, "rb") as file:
            self.page = mmap.mmap(file.fileno(), mmap.PAGESIZE, prot=mmap.PROT_READ)

    def acked(self):
        return struct.unpack_from("<Q", self.page)[0]

    def rate(self, seconds):
        """Lets the bank work for `seconds`. Returns the number of acknowledged transactions, and
        the rate."""
        first, begin = self.acked(), time.monotonic()
        time.sleep(seconds)
        last, end = self.acked(), time.monotonic()
        if last == first:
            raise Failure("the bank stands still at %d transactions" % last)
        return last, (last - first) / (end - begin)


def bank_words(build, cluster, oracle, *more):
    return [build / "bench/debit-credit", "--store", STORE, "--mirrors", cluster.tcp(),
            "--oracle", oracle.path, *more]


def alive(process, log):
    if process.poll() is not None:
        raise Failure("the bank ended: " + log.read_text(errors="replace"))
    return True


def start_bank(build, cluster, oracle, *more):
    """Starts the bank as a process, and returns it once it commits."""
    log = cluster.folder / "bank.log"
    before = oracle.acked()
    with open(log, "ab") as out:
        bank = cluster.spawn(*bank_words(build, cluster, oracle, *more), stdout=out, stderr=out)
    wait_for(lambda: alive(bank, log) and oracle.acked() > before + 10, WAIT_SECONDS,
             "the first commits")
    return bank


def check(build, cluster, oracle):
    """Opens the store in another process and compares every byte."""
    words = bank_words(build, cluster, oracle, "--verify", "--takeover", "--json")
    done = cluster.run(*words, seconds=WAIT_SECONDS)
    if done.returncode:
        raise Failure("the check failed:\n" + done.stdout + done.stderr)
    return json.loads(done.stdout), done.stderr


def indent(text):
    return "\n".join("            | " + line for line in text.strip().splitlines())


def demo(build, cluster):
    oracle = Oracle(cluster.folder / "oracle")
    say("three mirrors: " + ", ".join("%s (pid %d)" % (m.tcp, m.process.pid)
                                      for m in cluster.mirrors))
    say("they run on this one machine, whose loss would be the loss of all three: a store that is "
        "to survive it has its mirrors on several")
    bank = start_bank(build, cluster, oracle)
    say("a bank with 409,600 accounts (52 MiB) runs on them, pid %d; a commit returns when 2 of "
        "the 3 hold it" % bank.pid)
    acked, rate = oracle.rate(RUN_SECONDS)
    say("{:,} transactions acknowledged, {:,.0f} a second".format(acked, rate))

    cluster.mirrors[1].kill()
    say("kill -9 of the mirror %s, while the bank commits" % cluster.mirrors[1].tcp)
    acked, rate = oracle.rate(RUN_SECONDS)
    say("{:,} acknowledged, {:,.0f} a second with two mirrors".format(acked, rate))

    os.kill(bank.pid, signal.SIGKILL)
    bank.wait()
    acked = oracle.acked()
    say("kill -9 of the bank, while it commits: {:,} acknowledged".format(acked))

    result, report = check(build, cluster, oracle)
    say("another process took the store over from the two mirrors that are left, and read it, "
        "in {:,.0f} ms:".format(result["opened_ms"]))
    print(indent(report), flush=True)
    say("{:,} transactions are there: none that was acknowledged is lost, {}".format(
        result["transactions"], "and the last, which was under way, is whole"
        if result["transactions"] > acked else "and of the one under way nothing is left"))
    say("all {:,} bytes are what these transactions make: right".format(result["bytes"]))

    cluster.mirrors[1].start()
    say("the mirror %s starts again, with what it had when it was killed" %
        cluster.mirrors[1].tcp)
    bank = start_bank(build, cluster, oracle, "--continue")
    acked, rate = oracle.rate(RUN_SECONDS / 2)
    say("the bank goes on, pid {}: {:,} acknowledged, {:,.0f} a second".format(
        bank.pid, acked, rate))
    bank.terminate()
    if bank.wait(WAIT_SECONDS):
        raise Failure("the bank did not end well: " +
                      (cluster.folder / "bank.log").read_text(errors="replace"))
    cluster.mirrors[0].kill()
    say("the bank ends; kill -9 of another mirror, %s" % cluster.mirrors[0].tcp)
    result, _ = check(build, cluster, oracle)
    say("from the mirror that came back and the third: {:,} transactions, all {:,} bytes "
        "right".format(result["transactions"], result["bytes"]))


def interrupted(number, _):
    raise Failure("no end within %d s" % LIMIT_SECONDS if number == signal.SIGALRM else
                  "interrupted")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    build = parser.parse_args().build.resolve()
    for number in (signal.SIGALRM, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    signal.alarm(LIMIT_SECONDS)
    try:
        with Cluster(build, 3) as cluster:
            demo(build, cluster)
    except (Failure, OSError, RuntimeError, TimeoutError, ValueError) as failure:
        say("FAILED: %s" % failure)
        return 1
    say("all held; every process and file of the demo is gone")
    return 0


if __name__ == "__main__":
    sys.exit(main())
