#!/usr/bin/env python3
"""Runs the suites of `make check` or `make check-night`, and prints one line for each.

    check.py day --first SUITE... --waiting SUITE... --busy SUITE...
    check.py night SUITE...

By day the first suites run alone. Then those that mostly wait run next to those that compute; when
they have ended, two suites that compute run at a time.
By night the suites run one after the other; a suite that passed on this tree
is not run again (tests/night.passed), and NIGHT_SECONDS ends the run between two suites. Each suite
is `make check-SUITE`; build/results/SUITE.out has its output. The last line is
"N passed, N failed".
"""
import argparse
import collections
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import night
import run
import unstable

DURATIONS = pathlib.Path("build/durations")

# Seconds that a suite takes on two processors, next to what runs beside it.
USUALLY = {
    "build": 130, "drills": 350, "python": 55,
    "headers": 2, "abi": 2, "style": 3, "format": 8, "unit": 140, "instructions": 55, "sim": 230,
    "crash": 55, "model": 120, "fuzz": 8, "cpp": 40, "install": 30, "mutants": 60,
}
AN_HOUR = 3600


def usual(suite):
    """Seconds that the suite took the last time, or usually takes."""
    try:
        return float((DURATIONS / suite).read_text())
    except (OSError, ValueError):
        return USUALLY.get(suite) or night.USUALLY.get(suite, AN_HOUR)


def take(queue):
    """The next suite, or None. `deque` lets several threads do this at the same time."""
    try:
        return queue.popleft()
    except IndexError:
        return None


class Progress:
    """What has run, and how long the rest will take."""

    def __init__(self, lanes):
        self.lanes = lanes
        self.lock = threading.Lock()
        self.begun, self.took = {}, {}

    def speed(self):
        """How many times as long as usual suites take on this machine; by what has ended."""
        expected = sum(usual(suite) for suite in self.took)
        return sum(self.took.values()) / expected if expected else 1.0

    def left(self):
        """Seconds. By day the suites after the first have two lanes, which share those of the
        last lane, and by night there is one lane."""
        speed, now = self.speed(), time.monotonic()

        def rest(suite):
            if suite in self.took:
                return 0
            return max(0, usual(suite) * speed - (now - self.begun.get(suite, now)))

        first, *others = [sum(map(rest, lane)) for lane in self.lanes]
        return first + max(others[:1] + [sum(others) / 2], default=0)

    def in_words(self):
        count = sum(map(len, self.lanes))
        minutes = round(self.left() / 60)
        return "%d of %d suites, %s left" % (
            len(self.took), count, "about %d min" % minutes if minutes else "less than a minute")

    def begin(self, suite):
        with self.lock:
            self.begun[suite] = time.monotonic()

    def end(self, suite):
        """Seconds that the suite took."""
        with self.lock:
            self.took[suite] = time.monotonic() - self.begun[suite]
            return self.took[suite]


class Suites:
    """Runs suites, prints a line of each, and knows in the end what failed."""

    def __init__(self, progress):
        self.progress = progress
        self.printing = threading.Lock()
        self.children = set()
        self.total, self.failures = run.Verdicts(), ""

    def make(self, suite):
        """The exit status of `make check-SUITE`, and the processor seconds that it took."""
        with open(run.RESULTS / (suite + ".out"), "wb") as out:
            child = subprocess.Popen(
                [os.environ.get("MAKE", "make"), "--no-print-directory", "check-" + suite],
                stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                env={**run.environment(), "PERSEAS_CHECK": "1"}, start_new_session=True)
            self.children.add(child)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            self.children.discard(child)
        return child.returncode, usage.ru_utime + usage.ru_stime

    def one(self, suite):
        """Runs a suite; True if it passed."""
        (run.RESULTS / (suite + ".json")).unlink(missing_ok=True)
        self.progress.begin(suite)
        status, processor_seconds = self.make(suite)
        return self.count(suite, status, self.progress.end(suite), processor_seconds)

    def count(self, suite, status, seconds, processor_seconds):
        verdicts, failures, _ = run.load(suite)
        if verdicts.failed and "as far as counting" in failures:
            lines = (run.RESULTS / (suite + ".out")).read_text(errors="replace").splitlines()
            failures += "".join("    | %s\n" % line for line in lines[-30:])
        elif status and not verdicts.failed:
            verdicts = verdicts._replace(failed=1)
            failures += "%-12s make check-%s ended with status %d\n" % (suite, suite, status)
        with self.printing:
            self.total = run.add(self.total, verdicts)
            self.failures += failures
            print("%-12s %-40s %5.0f s (%.0f CPU)   %s" % (
                suite, run.in_words(verdicts), seconds, processor_seconds,
                self.progress.in_words()), flush=True)
            print(failures, end="", flush=True)
        if not verdicts.failed:
            DURATIONS.mkdir(parents=True, exist_ok=True)
            (DURATIONS / suite).write_text("%f\n" % seconds)
        return not verdicts.failed

    def lane(self, *queues):
        """Runs the suites of each queue in turn. Other lanes may take from the same queue."""
        for queue in queues:
            while suite := take(queue):
                self.one(suite)

    def rerun_drills(self):
        """Reruns the few drills that failed, now that nothing else runs."""
        verdicts, failures, drills = run.load("drills")
        if not drills:
            return
        subprocess.run([sys.executable, "tests/run.py", "drills", "--again"], check=False)
        after, failures_after, _ = run.load("drills")
        self.total = run.Verdicts(*(a - b + c for a, b, c in zip(self.total, verdicts, after)))
        self.failures = self.failures.replace(failures, failures_after)

    def stop(self, *_):
        """Ends what runs, and this process, on a signal."""
        for child in list(self.children):
            os.killpg(child.pid, signal.SIGTERM)
        os._exit(130)

    def finish(self):
        """Repeats what failed, since a reader of long output begins at its end."""
        print(self.failures, end="")
        if self.total.skipped + self.total.undecided + self.total.unstable:
            print(run.in_words(self.total))
        print("%d passed, %d failed" % self.total[:2])
        return 1 if self.total.failed else 0


def begin(lanes):
    run.RESULTS.mkdir(parents=True, exist_ok=True)
    suites = Suites(Progress(lanes))
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, suites.stop)
    return suites


def check_day(args):
    suites = begin([args.first, args.waiting, args.busy])
    print("check        %s" % suites.progress.in_words(), flush=True)
    first, waiting, busy = map(collections.deque, (args.first, args.waiting, args.busy))
    suites.lane(first)
    beside = threading.Thread(target=suites.lane, args=[busy])
    beside.start()
    suites.lane(waiting, busy)
    beside.join()
    suites.rerun_drills()
    return suites.finish()


def check_night(args):
    if not night.is_committed():
        print("night        the tree has uncommitted changes, so what passes is not recorded")
    wanted = [suite for suite in args.suites if not night.has_passed(suite)]
    until = time.monotonic() + float(os.environ.get("NIGHT_SECONDS", "inf"))
    suites = begin([wanted])
    print("night        %d of %d suites passed on this tree before; %s" % (
        len(args.suites) - len(wanted), len(args.suites), suites.progress.in_words()), flush=True)
    left = []
    for suite in wanted:
        why = night.why_not(suite)
        if why:
            print("%-12s not run: %s" % (suite, why), flush=True)
            night.record(suite, "not run: " + why)
        elif time.monotonic() + usual(suite) * suites.progress.speed() > until:
            left.append(suite)
        elif suites.one(suite):
            night.record(suite)
    if left:
        print("night        left for the next part: " + " ".join(left))
    return suites.finish()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    day = kinds.add_parser("day")
    for lane in "first", "waiting", "busy":
        day.add_argument("--" + lane, nargs="+", default=[])
    kinds.add_parser("night").add_argument("suites", nargs="+")
    args = parser.parse_args()
    assert unstable.LIST.exists()
    return check_day(args) if args.kind == "day" else check_night(args)


if __name__ == "__main__":
    sys.exit(main())
