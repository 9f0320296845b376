#!/usr/bin/env python3
"""The only place where a test runs again. A drill that waited in vain for real processes runs five
times more, alone. If it passes all five it is unstable: green if tests/unstable lists it, and green
once in a run if it does not, with the line to add. A drill that failed in any other way is red,
since that may show lost or halved data, and so is a run in which many drills fail.

A line of tests/unstable is: NAME DATE SUSPECTED CAUSE. The file has five entries at most, and a
release needs it empty.

    unstable.py [--minutes N]   runs each entry for N minutes (30) next to two busy loops; fails if
                                it fails once, or if an entry is older than 14 days
"""
import argparse
import contextlib
import datetime
import pathlib
import re
import subprocess
import sys
import time

LIST = pathlib.Path("tests/unstable")
TIMES = 5
ENTRIES = 5
DAYS = 14                               # that an entry may stay
FEW = 3                                 # more failures in one run have one cause
DRILL = re.compile(r"^(?:FAILED|ERROR) (tests/drills/\S+::.+?)(?: - (.*))?$", re.M)
# How drills report that they waited in vain.
WAITED = re.compile(r"Timeout(Error|Expired)\b")
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]


def entries():
    """{name: (the day it was first seen, suspected cause)}"""
    listed = {}
    for line in LIST.read_text().splitlines():
        if line and not line.startswith("#"):
            name, day, cause = line.split(None, 2)
            listed[name] = (datetime.date.fromisoformat(day), cause)
    return listed


def failed_drills(log, as_root):
    """The drills that failed by this log, [] if they must not run again."""
    text = log.read_text(errors="replace")
    found = DRILL.findall(text)
    if not found or len(found) > FEW or not all(WAITED.search(why) for _, why in found):
        return []
    return [{"name": name, "root": as_root} for name, _ in found]


def passes(drill, keywords, log):
    """True if the drill passes each time that it runs again."""
    with open(log, "ab") as out:
        return all(subprocess.run([*PYTEST, drill["name"]], stdout=out, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, **keywords).returncode == 0
                   for _ in range(TIMES))


def judge(drills):
    """(what to say of these unstable drills, how many of them are red)."""
    listed = entries()
    new = [each["name"] for each in drills if each["name"] not in listed]
    told = "".join("unstable     %s passed %d times alone: %s\n" % (
        each["name"], TIMES, listed[each["name"]][1] if each["name"] in listed else
        "add to tests/unstable the line '%s %s SUSPECTED CAUSE'" % (
            each["name"], datetime.date.today())) for each in drills)
    if len(listed) + len(new) > ENTRIES:
        return told + "unstable     more than %d entries\n" % ENTRIES, len(new)
    return told, max(0, len(new) - 1)


@contextlib.contextmanager
def busy(loops):
    """Keeps so many processors busy."""
    children = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(loops)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def run_for(name, seconds):
    """(how often the drill ran, True if it passed each time)."""
    until, count = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        count += 1
        if subprocess.run([*PYTEST, name], stdin=subprocess.DEVNULL, check=False).returncode:
            return count, False
    return count, True


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    args = parser.parse_args()
    failed, listed = 0, entries()
    for name, (day, _) in listed.items():
        with busy(2):
            count, passes_all = run_for(name, 60 * args.minutes)
        age = (datetime.date.today() - day).days
        print("%s %s in run %d; it is listed since %d days" % (
            name, "passed" if passes_all else "FAILED", count, age), flush=True)
        failed += not passes_all or age > DAYS
    print("%d passed, %d failed" % (len(listed) - failed or not listed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
