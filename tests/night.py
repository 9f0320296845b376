#!/usr/bin/env python3
"""Which suites of `make check-night` passed, on which tree: the lines of tests/night.passed.

    night.py tree                   the hash of the tree, as the file has it
    night.py missing [--not-run] SUITE...
                                    what a release lacks: suites without a line of this tree, and,
                                    unless --not-run, those that a machine could not run
    night.py not-run SUITE...       suites of this tree that a machine could not run, with reasons

A line is: SUITE DATE TREE COMMIT, and "not run: REASON" where the machine cannot run the suite.
TREE is a hash of all files that git knows, except the documents (*.md) and night.passed itself, so
that a later change of these does not ask for another night. COMMIT is the commit that was checked
out: `make check` tries the edits of tests/mutants in files that differ from it.
"""
import argparse
import datetime
import hashlib
import os
import pathlib
import subprocess
import sys

PASSED = pathlib.Path("tests/night.passed")
HEADER = """\
# Suites of `make check-night` that passed: SUITE DATE TREE COMMIT, and a reason if the machine
# could not run the suite. tests/night.py writes and explains the lines.
"""

# Seconds that a suite takes on two processors.
USUALLY = {
    "litmus": 600, "unit-sanitized": 400, "crash-sanitized": 500, "tarball": 200, "no-rdma": 150,
    "clang": 100, "lint": 250, "model-whole": 600, "sim-night": 1800, "mutants-all": 3000,
    "rdma": 450, "timing": 300, "drills-night": 600, "fuzz-night": 900, "cpp-night": 120,
    "anywhere": 1500, "unstable": 60, "deb": 900, "rpm": 300, "container": 900, "cluster": 900,
    "ansible": 900, "service": 400, "peers": 120, "rdma-siw": 300,
}

# Suites that make whole systems: they need root, file systems to mount, and Debian's packages.
SYSTEMS = {"deb", "container", "cluster", "ansible", "anywhere"}


def git(*words):
    return subprocess.run(["git", *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def files():
    return sorted(name for name in git("ls-files", "-z").split("\0")
                  if name and name != str(PASSED) and not name.endswith(".md"))


def tree():
    """A hash of the names, modes and contents of all files that count."""
    whole = hashlib.sha256()
    for name in files():
        path = pathlib.Path(name)
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
        whole.update(b"%s %d %d\n" % (name.encode(), os.access(path, os.X_OK), len(content)))
        whole.update(content)
    return whole.hexdigest()[:16]


def is_committed():
    """True if the files that count are those of the commit that is checked out."""
    changed = [line[3:] for line in git("status", "--porcelain").splitlines()]
    return all(name == str(PASSED) or name.endswith(".md") for name in changed)


def lines():
    """[suite, date, tree, commit, reason or ""] of each line."""
    if not PASSED.exists():
        return []
    return [(line.split(None, 4) + [""])[:5] for line in PASSED.read_text().splitlines()
            if line and not line.startswith("#")]


def record(suite, reason=""):
    """Replaces the suite's line."""
    if not is_committed():
        return
    kept = [line for line in lines() if line[0] != suite]
    kept.append([suite, str(datetime.date.today()), tree(), git("rev-parse", "HEAD").strip(),
                 reason])
    PASSED.write_text(HEADER + "".join(" ".join(line).rstrip() + "\n" for line in sorted(kept)))


def of_this_tree():
    now = tree()
    return {line[0]: line for line in lines() if line[2] == now}


def has_passed(suite):
    line = of_this_tree().get(suite)
    return bool(line) and not line[4]


def last_commit(suite):
    """The commit that the suite last passed on; None if git does not have it."""
    for name, _, _, commit, reason in lines():
        if name == suite and not reason and subprocess.run(
                ["git", "cat-file", "-e", commit + "^{commit}"], check=False,
                stderr=subprocess.DEVNULL).returncode == 0:
            return commit
    return None


def why_not(suite):
    """Why this machine cannot run the suite, None if it can."""
    if suite not in SYSTEMS:
        return None
    if os.geteuid():
        return "only root can make a system"
    tried = subprocess.run(["unshare", "--mount", "true"], check=False, stderr=subprocess.DEVNULL)
    return "no file system can be mounted here" if tried.returncode else None


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("what", choices=["tree", "missing", "not-run"])
    parser.add_argument("--not-run", action="store_true")
    parser.add_argument("suite", nargs="*")
    args = parser.parse_intermixed_args()
    if args.what == "tree":
        print(tree())
        return 0
    found = of_this_tree()
    told = ["%s: %s" % (suite, found[suite][4]) for suite in args.suite
            if suite in found and found[suite][4]]
    if args.what == "missing":
        told = ([] if args.not_run else told) + ["%s: has not passed on this tree" % suite
                                                 for suite in args.suite if suite not in found]
    for line in told:
        print(line)
    return 1 if told and args.what == "missing" else 0


if __name__ == "__main__":
    sys.exit(main())
