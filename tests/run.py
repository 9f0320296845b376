#!/usr/bin/env python3
"""Runs the commands of one test suite, keeps their output, counts, and prints a line for each.

    run.py SUITE [--quiet S] [--jobs N] [--user] [--sum] [--waiting COMMAND]... COMMAND...
           [--root COMMAND]...              run; exit 1 unless everything passed
    run.py SUITE --again                    rerun the drills that failed (tests/unstable.py)

A command is a program's path, or "label: words". The runner counts, in this order: lines of TAP
(cmocka), or the last "N passed" and "N failed" (pytest, our own programs), or else the exit status
as one test. A status other than 0 is always a failure. Verdicts are: passed, failed, skipped,
undecided (a test began, and a reason that starts with UNDECIDED says why it has no verdict) and
unstable. Output goes to build/results/SUITE/, verdicts to build/results/SUITE.json.

N commands run at once. Those of --waiting run next to them, since they wait nearly all the time.
With --user, root has an ordinary user run the commands in a copy of the tree, except those that
follow --root. A command that prints nothing for S seconds (600) hangs, and is killed. With --sum
the last line is the sum, and what failed is repeated just before it.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import itertools
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import threading
import time

import ordinary
import unstable

RESULTS = pathlib.Path("build/results")

# Set by a signal that ends the run; and the children that it has to end.
STOPPED, CHILDREN = threading.Event(), set()

# The first lines to quote of a failure: as TAP, pytest and our own programs print them.
FAILED = re.compile(r"\bnot ok \d+(?!.*# SKIP)|^FAILED |^ERROR |, [1-9]\d* failed")

Verdicts = collections.namedtuple("Verdicts", "passed failed skipped undecided unstable",
                                  defaults=(0, 0, 0, 0, 0))


def add(one, other):
    return Verdicts(*(a + b for a, b in zip(one, other)))


def in_words(verdicts):
    """Passed and failed always, the others if there are any."""
    return ", ".join("%d %s" % (count, name) for name, count in verdicts._asdict().items()
                     if count or name in ("passed", "failed"))


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


# --- counting ---

def count_tap(text, lines):
    skipped = sum(1 for _, rest in lines if "# SKIP" in rest)
    # cmocka reports a skipped test as "not ok".
    failed = sum(1 for ok, rest in lines if ok == "not ok" and "# SKIP" not in rest)
    planned = re.search(r"^1\.\.(\d+)$", text, re.M)
    passed = len(lines) - skipped - failed
    if planned and int(planned.group(1)) > len(lines):
        failed = max(failed, 1)
    return Verdicts(passed, failed, skipped)


def count_words(text):
    found = {word.rstrip("s") if word.startswith("error") else word: int(n) for n, word in
             re.findall(r"(\d+) (passed|failed|errors?|skipped|undecided)\b", text)}
    # pytest has no verdict "undecided": these are skips whose reason says so.
    of_pytest = sum(int(n) for n in re.findall(r"^SKIPPED \[(\d+)\].*: UNDECIDED", text, re.M))
    return Verdicts(found.get("passed", 0), found.get("failed", 0) + found.get("error", 0),
                    found.get("skipped", 0) - of_pytest, found.get("undecided", 0) + of_pytest)


def count(text, status):
    """The verdicts that a program's output and exit status give."""
    tap = re.findall(r"^(not ok|ok) \d+(.*)$", text, re.M)
    if tap:
        verdicts = count_tap(text, tap)
    elif re.search(r"\d+ (passed|failed|skipped|errors?)\b", text):
        verdicts = count_words(text)
    else:
        verdicts = Verdicts(int(status == 0), int(status != 0))
    return verdicts._replace(failed=max(verdicts.failed, 1)) if status else verdicts


# --- running ---

def environment():
    """The environment without make's job server, and with the output and strictness we want."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    env["CMOCKA_MESSAGE_OUTPUT"] = "TAP"
    # A thread that is cancelled leaves marks of its stack frames behind. Taking down its alternate
    # signal stack would run into them.
    env.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0:strict_string_checks=1:"
                                   "use_sigaltstack=0")
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    return env


def log_of(suite, label):
    return RESULTS / suite / (re.sub(r"[^\w.-]+", "-", label) + ".log")


def stolen():
    """Seconds that the hypervisor took from this machine's processors since it booted."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK") if len(fields) > 8 else 0.0


def wait_for(child, log, quiet):
    """The exit status, or None after `quiet` seconds without any output."""
    size, since = -1, time.monotonic()
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.wait(1)
        now = log.stat().st_size
        if now != size:
            size, since = now, time.monotonic()
        elif time.monotonic() - since > quiet:
            return None


def kill_group(child):
    """Ends the command and whatever it left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def stop(*_):
    """A signal ends the commands that run; no other begins, and the copy of the tree is removed."""
    STOPPED.set()
    for child in list(CHILDREN):
        kill_group(child)


def execute(words, log, quiet, keywords):
    """Runs a command in a process group of its own; (exit status, note)."""
    if STOPPED.is_set():
        return 1, "stopped, "
    with open(log, "wb") as out:
        try:
            child = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT,
                                     stdin=subprocess.DEVNULL, start_new_session=True,
                                     **keywords)
        except OSError as error:
            out.write(str(error).encode())
            return 1, "%s, " % error
    CHILDREN.add(child)
    status = wait_for(child, log, quiet)
    kill_group(child)
    child.wait()
    CHILDREN.discard(child)
    if status is None:
        return -1, "killed after %d s without output, " % quiet
    return status, "ended by signal %d, " % -status if status < 0 else ""


def run(suite, quiet, command, keywords):
    """Runs one command; (label, verdicts, note)."""
    label, words = split(command)
    log = log_of(suite, label)
    log.write_bytes(b"")
    start, steal = time.monotonic(), stolen()
    status, note = execute(words, log, quiet, keywords)
    verdicts = count(log.read_text(errors="replace"), status)
    if verdicts.failed:
        note += "load %.1f, %.1f s stolen, see %s" % (os.getloadavg()[0], stolen() - steal, log)
    return label, verdicts, "%.1f s %s" % (time.monotonic() - start, note)


def line_of(suite, label, verdicts, note):
    return ("%-12s %-34s %s  %s" % (suite, label, in_words(verdicts), note)).rstrip() + "\n"


def quoted(suite, label, verdicts):
    """Of a failed command the lines that say what failed and its last lines; of pytest's skips the
    reasons."""
    lines = log_of(suite, label).read_text(errors="replace").splitlines()
    if verdicts.failed:
        lines = [s for s in lines[:-30] if FAILED.search(s)][:30] + lines[-30:]
    else:
        lines = [s for s in lines if s.startswith("SKIPPED ")]
    return "".join("    | %s\n" % line for line in lines)


@contextlib.contextmanager
def runners(args):
    """Yields the keywords for Popen of an ordinary user's commands, and of root's."""
    own = {"env": environment()}
    if args.user and os.geteuid() == 0:
        with ordinary.hand_over(own["env"], RESULTS) as handed:
            yield handed, own
    else:
        yield own, own


def run_all(suite, args):
    """Yields (label, verdicts, note) of each command, in the order in which they are given."""
    with runners(args) as (handed, own), contextlib.ExitStack() as stack:
        def begin(jobs, work):
            pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(jobs))
            return pool.map(lambda each: run(suite, args.quiet, *each), work)

        waiting = begin(max(1, len(args.waiting)), [(c, handed) for c in args.waiting])
        others = begin(args.jobs, [(c, handed) for c in args.command] +
                       [(c, own) for c in args.root])
        yield from itertools.chain(others, waiting)


def run_suite(suite, args):
    (RESULTS / suite).mkdir(parents=True, exist_ok=True)
    (RESULTS / (suite + ".json")).unlink(missing_ok=True)
    total, failures, drills = Verdicts(), "", []
    for label, verdicts, note in run_all(suite, args):
        told = line_of(suite, label, verdicts, note) + quoted(suite, label, verdicts)
        print(told, end="", flush=True)
        if verdicts.failed:
            failures += told
            roots = not args.user or label in [split(each)[0] for each in args.root]
            drills += unstable.failed_drills(log_of(suite, label), roots)
        total = add(total, verdicts)
    if not total.passed + total.failed:         # a suite in which nothing ran shows nothing
        print("%-12s nothing ran" % suite)
        total = total._replace(failed=1)
    save(suite, total, failures, drills)
    return finish(suite, args.sum)


def save(suite, verdicts, failures, drills):
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / (suite + ".json")).write_text(json.dumps(
        {"verdicts": verdicts, "failures": failures, "drills": drills}))


def load(suite):
    """(verdicts, what failed, failed drills), or one failure if the suite did not count."""
    try:
        saved = json.loads((RESULTS / (suite + ".json")).read_text())
        return Verdicts(*saved["verdicts"]), saved["failures"], saved["drills"]
    except (OSError, ValueError):
        return Verdicts(failed=1), "%-12s did not get as far as counting\n" % suite, []


def finish(suite, in_sum):
    verdicts, failures, _ = load(suite)
    if in_sum:
        print(failures + "%d passed, %d failed" % verdicts[:2])
    return 1 if verdicts.failed else 0


def run_again(suite, args):
    """Reruns the failed drills one after the other, and saves the verdicts that follow from it."""
    verdicts, failures, drills = load(suite)
    if not drills or verdicts.failed != len(drills):
        return 1                        # something else failed, too
    args.user = not all(each["root"] for each in drills)
    with runners(args) as (handed, own):
        stable = [each for each in drills if not unstable.passes(
            each, own if each["root"] else handed, log_of(suite, "again"))]
    told, red = unstable.judge([each for each in drills if each not in stable])
    print(told, end="", flush=True)
    failed = len(stable) + red
    save(suite, verdicts._replace(failed=failed, unstable=len(drills) - failed),
         failures + told if failed else told, [])
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("suite")
    parser.add_argument("--quiet", type=float, default=600)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--user", action="store_true")
    parser.add_argument("--root", action="append", default=[])
    parser.add_argument("--waiting", action="append", default=[])
    parser.add_argument("--sum", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("command", nargs="*")
    args = parser.parse_intermixed_args()
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, stop)
    return (run_again if args.again else run_suite)(args.suite, args)


if __name__ == "__main__":
    sys.exit(main())
