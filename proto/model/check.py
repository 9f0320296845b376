#!/usr/bin/env python3
"""Runs the models: check.py [--quick | --mistakes] [--jobs N] [--trace] [MODEL[:WORD]...]

What is to be run stands in each model, in lines of the form

     * quick|full holds|found|hunted|event OPTIONS: words

quick runs are also part of --quick; they have at most half a million states, but for one of each
model that holds. holds: no state breaks a property, and all states were looked at. found: the
mistake that is seeded breaks one. hunted: the same, where there are too many states to look at all:
some, by chance, with fixed seeds. event: what is asserted never to happen does happen. Below each
mistake stands where the same one is seeded in the code and found:

     *   in the code: sim WORD | unit PROGRAM TEST

which must be there (a mistake of the simulator, a unit test); --mistakes shows all of them.
MODEL:WORD takes only the runs with WORD in their line. --trace prints the way to the first error
of each run, and --jobs says how many run at the same time. Needs spin and gcc.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
RUN = re.compile(r"^ \* (quick|full) (holds|found|hunted|event) ([^:]*): (.*)$", re.M)
FOUND = re.compile(r"^ \* (?:quick|full) (?:found|hunted) ([^:]*): (.*)\n"
                   r"(?: \*   in the code: (.*))?", re.M)
TESTS = HERE.parent.parent / "tests"
MEMORY_MB, DEPTH, SECONDS = 5000, 400000, int(os.environ.get("SECONDS_A_RUN", "900"))
SAFETY = ["-w", "-DSAFETY", "-DVECTORSZ=2048"]
# A verifier of a quick run is done sooner than it could be optimised.
OPTIMISED = {"quick": "-O0", "full": "-O2"}
EVERY_STATE = ["-DCOLLAPSE", "-DMEMLIM=%d" % MEMORY_MB]
BY_CHANCE = ["-DBITSTATE", "-DT_RAND", "-DP_RAND"]


class Broken(Exception):
    """A run that says nothing about the model."""


def call(words, folder, seconds):
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=seconds)
    return done.returncode, done.stdout


def build(model, options, folder, how):
    for words in (["spin", *options, "-a", str(model)],
                  ["gcc", *SAFETY, *how, "-o", "pan", "pan.c"]):
        code, text = call(words, folder, SECONDS)
        if code or not (folder / "pan.c").exists() or "Error" in text:
            raise Broken(text.strip() or "spin wrote no verifier")


def hunt(folder):
    """As explore, by chance: None is no proof that there is no error."""
    total = 0
    for seed in range(1, 9):
        violated, states = explore(folder, "-m50", "-w27", "-RS%d" % seed)
        total += states
        if violated:
            return violated, total
    return None, total


def explore(folder, *how):
    """(first violated assertion or None, states) of a verifier."""
    code, text = call(["./pan", "-E", *(how or ("-m%d" % DEPTH, "-w24"))], folder, SECONDS)
    states = re.search(r"([\d.e+]+) states, stored", text)
    errors = re.search(r"errors: (\d+)", text)
    if code or not states or not errors:
        raise Broken("the verifier ended with %d: %s" % (code, text.strip()[-300:]))
    violated = re.search(r"assertion violated (.*) \(at depth", text)
    if violated:
        return violated.group(1), int(float(states.group(1)))
    if errors.group(1) != "0":
        raise Broken("an error that is no assertion: " + text.strip()[-300:])
    limits = ("max search depth too small", "out of memory", "not completed", "VECTORSZ")
    for limit in () if how else limits:
        if limit in text:
            raise Broken("not all states were looked at: " + limit)
    return None, int(float(states.group(1)))


def verdict(kind, violated):
    """None: as it must be; else what is wrong."""
    event = bool(violated) and re.fullmatch(r"\(?\((\d+)!=\1\)\)?", violated.strip())
    if kind == "holds":
        return "violated: " + violated if violated else None
    if kind in ("found", "hunted"):
        return None if violated and not event else "the mistake was not found"
    return None if event else "it cannot happen"


def one(model, length, kind, options, words, trace):
    start = time.monotonic()
    states, wrong = 0, None
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            hunted = kind == "hunted"
            how = BY_CHANCE if hunted else EVERY_STATE
            build(model, options, folder, [OPTIMISED[length], *how])
            violated, states = hunt(folder) if hunted else explore(folder)
            wrong = verdict(kind, violated)
            if trace and violated:
                words += "\n" + call(["spin", *options, "-t", "-k", next(
                    folder.glob("*.trail")).name, str(model)], folder, 120)[1]
        except (Broken, subprocess.TimeoutExpired) as error:
            wrong = str(error)
    line = "%-6s %-7s %-36s %10d states %5.0f s  %s" % (
        "BROKEN" if wrong else kind, model.stem, " ".join(options), states,
        time.monotonic() - start, words)
    return wrong, line + ("\n       " + wrong if wrong else "")


def chosen(models, quick):
    """(model, quick or full, kind, options, words) of every run that was asked for."""
    for wanted in models or sorted(p.stem for p in HERE.glob("*.pml")):
        stem, _, word = wanted.partition(":")
        model = HERE / (stem + ".pml")
        for match in RUN.finditer(model.read_text()):
            if (not quick or match[1] == "quick") and word in match[0]:
                yield model, match[1], match[2], match[3].split(), match[4]


def is_there(place):
    """Is that mistake seeded in the code, or that test there?"""
    kind, *names = place.split()
    if kind == "sim" and len(names) == 1:
        words = (TESTS / "sim" / "mistakes.h").read_text()
        return re.search(r'^\tX\(\w+, "%s", ' % re.escape(names[0]), words, re.M) is not None
    if kind == "unit" and len(names) == 2:
        program = TESTS / "unit" / (names[0] + ".c")
        return program.exists() and re.search(
            r"^TEST\w*\(%s\b" % re.escape(names[1]), program.read_text(), re.M) is not None
    return False


def check_table(shown):
    """How many of the models' mistakes are nowhere in the code."""
    missing = 0
    for model in sorted(HERE.glob("*.pml")):
        for options, words, place in FOUND.findall(model.read_text()):
            there = bool(place) and is_there(place)
            missing += not there
            if shown or not there:
                print("%-7s %-44s %s: %s" % (model.stem, options, words, place or "NOWHERE")
                      + ("" if there or not place else ", WHICH IS NOT THERE"))
    return missing


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--mistakes", action="store_true")
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("models", nargs="*")
    args = parser.parse_args()
    missing = check_table(args.mistakes)
    if args.mistakes:
        return 1 if missing else 0
    start, bad, count = time.monotonic(), 0, 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = [pool.submit(one, *run, args.trace) for run in chosen(args.models, args.quick)]
        for run in runs:
            wrong, line = run.result()
            print(line, flush=True)
            bad, count = bad + bool(wrong), count + 1
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print("%.0f s, %d MiB in the largest run" % (time.monotonic() - start, most))
    print("%d passed, %d failed" % (count - bad, bad + missing))
    return 1 if bad or missing or not count else 0


if __name__ == "__main__":
    sys.exit(main())
