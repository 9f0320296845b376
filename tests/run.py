#!/usr/bin/env python3
"""Runs the commands of a test suite, keeps their output, counts, and says so in one line each.

    run.py SUITE [--timeout S] [--jobs N] [--user] [--waiting COMMAND]... COMMAND...
           [--root COMMAND]...                         run; exit 1 unless all passed
    run.py --broken SUITE                              the suite did not get as far as counting
    run.py --begin SUITE | --end SUITE                 a suite of `make check` begins, ends
    run.py --sum                                       what failed, one line a suite, the sum
    run.py SUITE --sum ...                             the same of this suite, once it was run

A command is a program's path, or "label: words". Counted are, in this order: lines of TAP
(cmocka), or the last "N passed" and "N failed" (pytest, our own programs), or else the
exit status as one test. A status other than 0 is always a failure. Output goes to
build/results/SUITE/, counts to build/results/SUITE.count. N commands run at once, and those of
--waiting beside them: they wait nearly all the time, and take no processor from anybody. With
--user root has an ordinary user do it, in a copy of the tree, but for what follows --root.

PERSEAS_SUITES has the suites of `make check`: those that run alone, "/", those after them, "/",
those beside the latter. --begin says with it which of them this is and how long the rest will
take, by what each took the last time (build/durations/SUITE), or else takes usually.
"""
import argparse
import concurrent.futures
import contextlib
import itertools
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

import ordinary

RESULTS = pathlib.Path("build/results")
DURATIONS = pathlib.Path("build/durations")

# Seconds on two processors, with what is built for the suite and what runs beside it.
USUALLY = {
    "build": 90, "headers": 2, "abi": 2, "style": 5, "unit": 170, "instructions": 15, "timing": 130,
    "drills": 600, "python": 30, "rdma": 330, "install": 90,
    "sim": 420, "clang": 60, "lint": 200, "model": 60, "crash": 60, "fuzz": 200, "cpp": 40,
    "mutants": 300,
}

# What says that something failed: of TAP, of pytest, of ours.
FAILED = re.compile(r"\bnot ok \d+(?!.*# SKIP)|^FAILED |, [1-9]\d* failed")


def split(command):
    """The label and the words of a command."""
    label, colon, rest = command.partition(": ")
    if colon:
        return label, shlex.split(rest)
    path = pathlib.PurePath(command)
    if path.is_absolute():
        return path.name, [command]
    parts = [p for p in path.parts if p not in ("build", "tests", "unit", "sim", "crash")]
    return " ".join(parts) or path.name, [command]


def count(text, status):
    """(passed, failed, skipped) of a program's output and exit status."""
    tap = re.findall(r"^(not ok|ok) \d+(.*)$", text, re.M)
    found = {word: n for n, word in re.findall(r"(\d+) (passed|failed|errors?|skipped)\b", text)}
    if tap:
        skipped = sum(1 for _, rest in tap if "# SKIP" in rest)
        # cmocka tells a skipped test as "not ok".
        failed = sum(1 for ok, rest in tap if ok == "not ok" and "# SKIP" not in rest)
        passed = len(tap) - skipped - failed
        planned = re.search(r"^1\.\.(\d+)$", text, re.M)
        if planned and int(planned.group(1)) > len(tap):
            failed = max(failed, 1)
    elif "passed" in found or "failed" in found or "skipped" in found:
        passed = int(found.get("passed", 0))
        failed = int(found.get("failed", 0)) + int(found.get("error", found.get("errors", 0)))
        skipped = int(found.get("skipped", 0))
    else:
        passed, failed, skipped = int(status == 0), int(status != 0), 0
    if status != 0:
        failed = max(failed, 1)
    return passed, failed, skipped


def environment():
    """Without make's job server, and with the output and the strictness that we want."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    env["CMOCKA_MESSAGE_OUTPUT"] = "TAP"
    env.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0:strict_string_checks=1")
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    return env


def give_way(pid):
    """A kernel that groups processes by session divides its time among groups, which have a
    priority of their own: one that begins here gets that of this process."""
    if os.nice(0) > 0:
        try:
            pathlib.Path("/proc/%d/autogroup" % pid).write_text(str(os.nice(0)))
        except OSError:                 # it does not group them, or the child is gone
            pass


def log_of(suite, label):
    return RESULTS / suite / (re.sub(r"[^\w.-]+", "-", label) + ".log")


def run(suite, timeout, command, keywords):
    """Runs one command in a process group of its own; (label, counts, note)."""
    label, words = split(command)
    log = log_of(suite, label)
    start = time.monotonic()
    note = ""
    with open(log, "wb") as out:
        try:
            child = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT,
                                     stdin=subprocess.DEVNULL, start_new_session=True,
                                     **keywords)
        except OSError as error:
            out.write(str(error).encode())
            return label, (0, 1, 0), str(error)
        give_way(child.pid)
        try:
            status = child.wait(timeout)
        except subprocess.TimeoutExpired:
            status, note = -1, "no end after %d s" % timeout
        try:                            # whatever it left behind goes with it
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
    counts = count(log.read_text(errors="replace"), status)
    if status < 0 and not note:
        note = "ended by signal %d" % -status
    if counts[1]:
        note = (note + ", see " if note else "see ") + str(log)
    return label, counts, "%.1f s %s" % (time.monotonic() - start, note)


def line_of(suite, label, counts, note):
    passed, failed, skipped = counts
    text = "%d passed, %d failed" % (passed, failed)
    if skipped:
        text += ", %d skipped" % skipped
    return ("%-9s %-34s %s  %s" % (suite, label, text, note)).rstrip() + "\n"


def say(text):
    print(text, end="", flush=True)


def quoted(suite, label, counts):
    """What a failed command said of what failed, however far from its end, and its end; or what
    pytest says of what it skipped: the reason is on the screen."""
    lines = log_of(suite, label).read_text(errors="replace").splitlines()
    if counts[1]:
        lines = [s for s in lines[:-30] if FAILED.search(s)][:30] + lines[-30:]
    else:
        lines = [s for s in lines if s.startswith("SKIPPED ")]
    return "".join("    | %s\n" % line for line in lines)


def run_suite(suite, args):
    (RESULTS / suite).mkdir(parents=True, exist_ok=True)
    for kind in ".count", ".failures":      # no sum is of the run before
        (RESULTS / (suite + kind)).unlink(missing_ok=True)
    total, own, failures = [0, 0, 0], {"env": environment()}, ""
    with contextlib.ExitStack() as stack:
        handed = (stack.enter_context(ordinary.hand_over(own["env"], RESULTS))
                  if args.user and os.geteuid() == 0 else own)
        def begin_all(jobs, work):
            pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(jobs))
            return pool.map(lambda each: run(suite, args.timeout, *each), work)

        waiting = begin_all(max(1, len(args.waiting)), [(c, handed) for c in args.waiting])
        others = begin_all(args.jobs, [(c, handed) for c in args.command] +
                           [(c, own) for c in args.root])
        for label, counts, note in itertools.chain(others, waiting):
            told = line_of(suite, label, counts, note) + quoted(suite, label, counts)
            say(told)
            failures += told if counts[1] else ""
            total = [a + b for a, b in zip(total, counts)]
    if total[0] + total[1] == 0:        # a suite in which nothing ran shows nothing
        print("%-9s nothing ran" % suite)
        total[1] = 1
    (RESULTS / (suite + ".count")).write_text("%d %d %d\n" % tuple(total))
    (RESULTS / (suite + ".failures")).write_text(failures)
    return sum_up(suite) if args.sum else 1 if total[1] else 0


def broken(suite):
    """Records a suite that failed before it counted: its build broke."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / (suite + ".count")
    if not path.exists():
        path.write_text("0 1 0\n")
        failures = RESULTS / (suite + ".failures")
        failures.write_text("%-9s did not get as far as counting\n" % suite)
    return 0


def noted(path):
    """The number in this file, None: there is none."""
    try:
        return float(path.read_text())
    except (OSError, ValueError):
        return None


def seconds_left(suite, now):
    """Of one that has ended: none. One that takes longer than the last time may end at once."""
    if noted(RESULTS / (suite + ".ended")) is not None:
        return 0
    begun = noted(RESULTS / (suite + ".began"))
    takes = noted(DURATIONS / suite) or USUALLY.get(suite, 60)
    return max(0, takes - (now - begun if begun else 0))


def begin(suite):
    RESULTS.mkdir(parents=True, exist_ok=True)
    now = time.time()
    (RESULTS / (suite + ".began")).write_text("%f\n" % now)
    lanes = [lane.split() for lane in os.environ.get("PERSEAS_SUITES", "").split("/")]
    if len(lanes) != 3:
        return 0
    alone, last, beside = (sum(seconds_left(each, now) for each in lane) for lane in lanes)
    minutes = round((alone + max(last, beside)) / 60)
    print("check     %s is %d of %d suites, %s left" % (
        suite, len(list(RESULTS.glob("*.began"))), sum(map(len, lanes)),
        "about %d min" % minutes if minutes else "less than a minute"), flush=True)
    return 0


def end(suite):
    """Notes how long it took, for the next time."""
    now, began = time.time(), noted(RESULTS / (suite + ".began"))
    DURATIONS.mkdir(parents=True, exist_ok=True)
    (DURATIONS / suite).write_text("%f\n" % (now - began))
    (RESULTS / (suite + ".ended")).write_text("%f\n" % now)
    return 0


def sum_up(suite):
    """What failed is told again, since whoever reads a long output begins at its end. "*": of all
    suites."""
    total = [0, 0, 0]
    for path in sorted(RESULTS.glob(suite + ".failures")):
        say(path.read_text())
    for path in sorted(RESULTS.glob(suite + ".count")):
        counts = [int(n) for n in path.read_text().split()]
        say(line_of(path.stem, "all", counts, ""))
        total = [a + b for a, b in zip(total, counts)]
    print("%d passed, %d failed" % (total[0], total[1]))
    return 0 if total[0] and not total[1] else 1


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("suite", nargs="?")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--user", action="store_true")
    parser.add_argument("--root", action="append", default=[])
    parser.add_argument("--waiting", action="append", default=[])
    parser.add_argument("--broken", action="store_true")
    parser.add_argument("--begin", action="store_true")
    parser.add_argument("--end", action="store_true")
    parser.add_argument("--sum", action="store_true")
    parser.add_argument("command", nargs="*")
    args = parser.parse_intermixed_args()
    if args.sum and not args.suite:
        return sum_up("*")
    if not args.suite:
        parser.error("no suite is named")
    for chosen, act in (args.broken, broken), (args.begin, begin), (args.end, end):
        if chosen:
            return act(args.suite)
    return run_suite(args.suite, args)


if __name__ == "__main__":
    sys.exit(main())
