"""The only place where a test runs again. A drill that waited in vain for real processes runs five
times more, alone. If it passes all five it is unstable: green if tests/unstable lists it, and green
once in a run if it does not, with the line to add. A drill that failed in any other way is red,
since that may show lost or halved data, and so is a run in which many drills fail.

A line of tests/unstable is: NAME DATE SUSPECTED CAUSE. The file has five entries at most;
`make check-unstable` runs each of them under load, and a release needs the file empty.
"""
import datetime
import pathlib
import re
import subprocess
import sys

LIST = pathlib.Path("tests/unstable")
TIMES = 5
ENTRIES = 5
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
