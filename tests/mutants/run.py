#!/usr/bin/env python3
"""Edits the product's code in small ways, and sees that the tests find each edit.

    run.py [--day SECONDS] [--only WORD]... [--jobs N] [--flags FILE]

The edits are in *.mutants beside this file, which README.md explains. `make check-mutants` calls it
in the top of a tree whose tests are built, with the commands that compile and link them in FILE.
Each changed file is compiled by itself, below build/mutants, and linked into the one test program
that should find it: nothing else is built, and neither the tree nor what was built is changed. An
example of doc/, or a header, is compiled with its test, which includes it.

Every run looks up the lines of all edits. Without --day it tries all edits, or those with a WORD in
their names, and first runs each test without any edit. With --day it tries the edits of files that
differ from the commit on which the night last passed (tests/night.passed), in the order of the
tables, and stops after so many seconds: what runs then is left to the night. An edit whose test is
skipped is tried again alone; if that is skipped, too, the edit is undecided, and the run fails. The
last line is "N passed, M failed".
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

import bindings

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parent))
import night  # noqa: E402

WORK = pathlib.Path("build/mutants")
# For a test: one that takes longer hangs, and has found it. A unit test has as long in make check.
SECONDS, OF_UNIT = 300, 120
FIELDS = ("rule", "file", "found by", "changes nothing", "same code")
# Every rule of proto/PROTOCOL.md must be broken by some edit that is found.
RULES = ["I%d" % n for n in range(1, 10)]
LEAST = 80                              # edits
LEFT = object()                         # the verdict of an edit that the time did not suffice for


class Mistake(Exception):
    """The table is wrong, or no longer fits the code."""


class OutOfTime(Exception):
    """The seconds of --day are over."""


class Mutant:
    """One edit: which lines of which file become which, and who should notice."""

    def __init__(self, name, where):
        self.name, self.where = name, where
        self.fields, self.old, self.new = {}, [], []

    def take(self, line):
        """A line of the table: of the edit, or a field."""
        if line[0] in "-+ ":
            if line[0] in "- ":
                self.old.append(line[1:])
            if line[0] in "+ ":
                self.new.append(line[1:])
            return
        word, colon, value = line.partition(":")
        if not colon or word not in FIELDS or word in self.fields:
            raise Mistake("%s: '%s' is no field, or is there twice" % (self.where, line))
        self.fields[word] = value.strip()

    def check(self):
        if not {"rule", "file", "found by"} <= set(self.fields) or self.old == self.new:
            raise Mistake("%s: %s lacks a field, or changes no line" % (self.where, self.name))

    @property
    def equivalent(self):
        """It is said to change nothing."""
        return "changes nothing" in self.fields or "same code" in self.fields

    @property
    def included(self):
        """Its one test compiles the file in: an example, or a header, which has no object."""
        file = self.fields["file"]
        return file.startswith("doc/examples/") or file.endswith(".h")

    @property
    def finders(self):
        return self.fields["found by"].split()

    def source(self):
        """The changed file."""
        text = pathlib.Path(self.fields["file"]).read_text()
        old, new = ("".join(line + "\n" for line in part) for part in (self.old, self.new))
        if ("\n" + text).count("\n" + old) != 1:
            raise Mistake("%s: the lines of %s are %d times in %s, and must be there once: "
                          "bring the edit up to date" % (self.where, self.name,
                          ("\n" + text).count("\n" + old), self.fields["file"]))
        return ("\n" + text).replace("\n" + old, "\n" + new)[1:]


def read_paragraph(text, where):
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    name = re.fullmatch(r"\[([\w-]+)\]", lines[0]) if lines else None
    mutant = Mutant(name and name[1], where)
    for line in lines[1:] if name else lines:
        mutant.take(line)
    return mutant


def read_table(path):
    """Its paragraphs are edits, and fields that the edits up to the next such paragraph share."""
    mutants, shared, number = [], {}, 1
    for text in path.read_text().split("\n\n"):
        part = read_paragraph(text, "%s:%d" % (path, number))
        number += text.count("\n") + 2
        if part.name:
            part.fields = {**shared, **part.fields}
            mutants.append(part)
        elif part.old or part.new:
            raise Mistake("%s: lines of an edit that has no name" % part.where)
        elif part.fields:
            shared = part.fields
    return mutants


def read_tables():
    mutants = [m for path in sorted(HERE.glob("*.mutants")) for m in read_table(path)]
    for mutant in mutants:
        mutant.check()
        mutant.source()
    names = [m.name for m in mutants]
    twice = {name for name in names if names.count(name) > 1}
    broken = {m.fields["rule"] for m in mutants if not m.equivalent}
    if twice:
        raise Mistake("two edits have the name %s" % ", ".join(sorted(twice)))
    if set(RULES) - broken:
        raise Mistake("no edit breaks " + ", ".join(sorted(set(RULES) - broken)))
    if len(mutants) < LEAST:
        raise Mistake("%d edits, %d at least" % (len(mutants), LEAST))
    return mutants


class Builder:
    """Compiles changed files, and links them into test programs."""

    def __init__(self, flags):
        lines = pathlib.Path(flags).read_text().splitlines()
        self.compiler, self.linker, self.libraries, self.wrapped, self.sim_tests = map(
            shlex.split, lines)
        self.archive = "build/libtest.a"

    def object(self, mutant, folder):
        """The object of the changed file; of an example, that of the test that includes it."""
        file = pathlib.PurePath(mutant.fields["file"])
        source = folder / file.name
        source.write_text(mutant.source())
        if mutant.included:
            test = pathlib.Path("tests/unit", mutant.finders[0]).with_suffix(".c")
            text = test.read_text().replace('"../../%s"' % file, '"%s"' % source.absolute())
            source = folder / test.name
            source.write_text(text)
        out = source.with_suffix(".o")
        beside = [word for path in (file.parent, "tests/unit") for word in ("-iquote", str(path))]
        done = subprocess.run([*self.compiler, "-w", *(beside if mutant.included else beside[:2]),
                               "-Iclient", "-o", out, source],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise Mistake("%s: %s does not compile:\n%s" % (mutant.where, mutant.name, done.stdout))
        return out

    def program(self, finder, folder, changed, whole):
        """The test program of a finder, with the changed object in place of its like; whole: of the
        test itself."""
        kind, more = finder.partition(":")[0], []
        if kind in ("sim", "crash"):
            objects = sorted(pathlib.Path("build/obj/tests", kind).glob("*.o"))
            more = self.wrapped if kind == "sim" else []
        else:
            objects = [] if whole else [pathlib.Path("build/obj/tests/unit", kind + ".o")]
        if kind in self.sim_tests:
            world = sorted(pathlib.Path("build/obj/tests/sim").glob("*.o"))
            objects += [path for path in world if path.name != "main.o"]
            more = self.wrapped
        out = folder / kind
        done = subprocess.run([*self.linker, "-o", out, *objects, changed, self.archive, *more,
                               *self.libraries],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise Mistake("%s does not link:\n%s" % (finder, done.stdout))
        return out


def code_of(path):
    """The instructions of an object, with what they refer to."""
    text = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", path], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return text.split("\n", 3)[3]


def built(finder):
    """The program of a finder as it was built."""
    kind = finder.partition(":")[0]
    return pathlib.Path("build/tests", kind if kind in ("sim", "crash") else "unit", kind)


def outcome(text, status):
    """What a test program that ended says: "passed", "skipped: why", or how it failed."""
    if status is None:
        return "no end after it was given all its time"
    if status < 0:
        return signal.Signals(-status).name
    if status == 0:
        skipped = re.search(r"# SKIP.*|^SKIP:? .*", text, re.M)
        return "skipped: " + skipped[0] if skipped else "passed"
    said = re.search(r"^not ok \d+ - (\S+)|^BAD +(.*?) *\d*$|^(seed \d+.*)$", text, re.M)
    return next((s for s in said.groups() if s), "") if said else "status %d" % status


def run(program, finder, until=float("inf")):
    """What a test program says, and all that it printed. OutOfTime: it runs beyond `until`."""
    words = [str(program.absolute())]
    if finder.startswith("sim:"):
        words += ["--seeds", finder.partition(":")[2]]
    elif ":" in finder:
        words.append(finder.partition(":")[2])
    env = {**os.environ, "CMOCKA_MESSAGE_OUTPUT": "TAP"}
    seconds = min(OF_UNIT if finder.startswith("test_") else SECONDS, until - time.monotonic())
    with tempfile.TemporaryFile("w+", dir=WORK, errors="replace") as log:
        child = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, env=env,
                                 stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            status = child.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        try:                            # whatever it left behind goes with it
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
        log.seek(0)
        text = log.read()
    if status is None and time.monotonic() > until:
        raise OutOfTime
    return outcome(text, status), text


def judge(builder, mutant, until=float("inf")):
    """(True if the tests treat the edit as the table says, None if they were skipped; words)."""
    start = time.monotonic()
    if bindings.is_ours(mutant.finders[0]):
        return judge_binding(mutant, start)
    folder = WORK / mutant.name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        changed = builder.object(mutant, folder)
        plain = pathlib.Path("build/obj", mutant.fields["file"]).with_suffix(".o")
        if "same code" in mutant.fields and code_of(changed) == code_of(plain):
            return True, "changes nothing: the same instructions"
        if "same code" in mutant.fields:
            return False, "is said to give the same instructions, and does not"
        skipped = ""
        for finder in mutant.finders:
            program = builder.program(finder, folder, changed, mutant.included)
            what, _ = run(program, finder, until)
            if what.startswith("skipped"):
                skipped = what
            elif what != "passed" and mutant.equivalent:
                return False, "is said to change nothing, and %s fails: %s" % (finder, what)
            elif what != "passed" and not sound(finder, what):
                return False, "%s fails without the edit, too" % what
            elif what != "passed":
                return True, "found by %s (%s) in %.1f s" % (finder, what[:60],
                                                             time.monotonic() - start)
        if mutant.equivalent:
            return True, "changes nothing: " + mutant.fields["changes nothing"]
        if skipped:
            return None, skipped
        return False, "SURVIVES %s" % ", ".join(mutant.finders)
    finally:
        for path in folder.glob("*"):
            path.unlink()
        folder.rmdir()


def judge_binding(mutant, start):
    for finder in mutant.finders:
        what = bindings.what_fails(finder, mutant.fields["file"], mutant.source())
        if what != "passed":
            return True, "found by %s (%s) in %.1f s" % (finder, what[:60],
                                                         time.monotonic() - start)
    return False, "SURVIVES %s" % ", ".join(mutant.finders)


def control(finder):
    """A test that fails anyway finds nothing. Of simulated schedules only those that failed are run
    without the edit; see sound()."""
    if finder.startswith("sim:"):
        return True, ""
    if bindings.is_ours(finder):
        what = bindings.what_fails(finder)
        return what == "passed", what
    what, text = run(built(finder), finder)
    if what == "passed" or what.startswith("skipped"):
        return True if what == "passed" else None, what
    return False, "\n".join([what] + text.splitlines()[-20:])


def sound(finder, what):
    """Does the schedule that failed pass without the edit?"""
    seed = re.search(r"seed (\d+)", what)
    return not (finder.startswith("sim:") and seed) or \
        run(built("sim:"), "sim:%s..%s" % (seed[1], seed[1]))[0] == "passed"


def changed_files():
    """The files that differ from the commit on which the night last passed; None means all."""
    commit = night.last_commit("mutants-all")
    return commit and set(night.git("diff", "--name-only", commit).splitlines())


def choose(mutants, args):
    """The edits to try."""
    if args.only:
        return [m for m in mutants if any(word in m.name for word in args.only)]
    changed = changed_files() if args.day else None
    return [m for m in mutants if changed is None or m.fields["file"] in changed]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--day", type=float, metavar="SECONDS")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--flags", default=str(WORK / "flags"))
    args = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    try:
        mutants = read_tables()
        run = Run(Builder(args.flags), args)
    except Mistake as mistake:
        print("%s\n0 passed, 1 failed" % mistake)
        return 1
    print("the lines of %d edits are in their files" % len(mutants))
    run.count(True)
    run.try_all(choose(mutants, args))
    return run.finish()


class Run:
    """Tries edits, prints a line of each, and counts."""

    def __init__(self, builder, args):
        self.builder, self.args = builder, args
        self.until = time.monotonic() + args.day if args.day else float("inf")
        self.passed, self.failed, self.undecided = 0, [], []

    def count(self, good, words=""):
        if good:
            self.passed += 1
        else:
            self.failed.append(words)

    def judge(self, mutant):
        if time.monotonic() > self.until:
            return LEFT, ""
        try:
            return judge(self.builder, mutant, self.until)
        except OutOfTime:
            return LEFT, ""
        except Mistake as mistake:
            return False, str(mistake)

    def control(self, mutants, pool):
        """By day the suites that ran before have shown that the tests pass without any edit."""
        finders = sorted({finder for mutant in mutants for finder in mutant.finders})
        for finder, (good, what) in zip(finders, pool.map(control, finders)):
            if not good:
                words = "%-34s without any edit: %s" % (finder, what)
                print(words, flush=True)
                if good is False:
                    self.failed.append(words)

    def note(self, mutant, good, what):
        words = "%-34s %s %s" % (mutant.name, mutant.fields["rule"], what)
        print(words, flush=True)
        self.count(good, words)

    def try_all(self, mutants):
        left = 0
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            if not self.args.day:
                self.control(mutants, pool)
            for mutant, (good, what) in zip(mutants, pool.map(self.judge, mutants)):
                if good is LEFT:
                    left += 1
                elif good is None:
                    self.undecided.append(mutant)
                else:
                    self.note(mutant, good, what)
        for mutant in self.undecided:
            good, what = judge(self.builder, mutant)
            self.note(mutant, bool(good), what if good is not None else "UNDECIDED: " + what)
        if self.args.day:
            print("%d edits are in files that changed; %d of them are left to the night" % (
                len(mutants), left))

    def finish(self):
        for words in self.failed:       # again, since a reader of long output begins at its end
            print("FAILED " + words)
        print("%d passed, %d failed" % (self.passed, len(self.failed)))
        return 1 if self.failed else 0


if __name__ == "__main__":
    sys.exit(main())
