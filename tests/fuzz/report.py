#!/usr/bin/env python3
"""Checks that every fuzz target has recorded seeds, and reports what the targets did.

    report.py FOLDER           FOLDER has the targets, fuzz_*.c, and the seeds, corpus/
    report.py FOLDER LOGS      prints a table as well, of what libFuzzer said in these logs

A target passes if its corpus has a seed that was recorded from a real session, or if EXEMPT says
why it has none. The last line is "N passed, N failed". The table has, for each target, how many
seeds encoders made and how many were recorded, executions, edges of the code that were reached,
and how many inputs libFuzzer kept because each reached more.
"""
import pathlib
import re
import sys

RECORDED = "recorded-"
# No listener's; or there is nothing to record.
EXEMPT = {
    "fuzz_access": "rules are a file of the operator's",
    "fuzz_address": "addresses are words of a command line",
    "fuzz_heap": "metadata comes as bytes of a segment, in no message of its own",
    "fuzz_rds": "heaps and load maps come as bytes of a segment, in no message of their own",
    "fuzz_rvm_table": "the table comes as bytes of a segment, in no message of its own",
    "fuzz_srv": "answers of the DNS come to the C library, and no daemon of ours sends any",
    "fuzz_text": "it writes what other targets have read",
    "fuzz_verbs_hello": "an input is xor the right hello, token included, so that what an owner "
                        "really sends is the seed 'right', on iWARP 'right_exact'",
}


def seeds(corpus, target):
    """How many were made, and how many recorded."""
    folder = corpus / target[len("fuzz_"):]
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    recorded = sum(name.startswith(RECORDED) for name in names)
    return len(names) - recorded, recorded


def check(folder):
    """Prints which targets have no recorded seeds; how many of them need some."""
    targets = sorted(path.stem for path in folder.glob("fuzz_*.c"))
    failed = 0
    for target in targets:
        if seeds(folder / "corpus", target)[1]:
            continue
        if target in EXEMPT:
            print("%s has no recorded seeds: %s" % (target, EXEMPT[target]))
        else:
            failed += 1
            print("FAILED %s has no recorded seeds: make corpus" % target)
    print("%d passed, %d failed" % (len(targets) - failed, failed))
    return failed


def row(path, corpus):
    """Of one log; question marks if libFuzzer did not end as it should."""
    text = path.read_text(errors="replace")
    reached = re.findall(r"cov: (\d+) ft: \d+ corp: (\d+)", text)
    runs = re.search(r"stat::number_of_executed_units:\s*(\d+)", text)
    did = ["{:,}".format(int(runs[1])), *reached[-1]] if reached and runs else ["?"] * 3
    return [path.stem, *map(str, seeds(corpus, path.stem)), *did]


def print_table(folder, logs):
    rows = [row(path, folder / "corpus") for path in sorted(logs.glob("fuzz_*.log"))]
    lines = [["target", "made", "recorded", "executions", "edges", "inputs"], *rows]
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        print("  ".join([line[0].ljust(widths[0])] +
                        [text.rjust(width) for text, width in zip(line[1:], widths[1:])]))


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[1])
    if len(sys.argv) == 3:
        print_table(folder, pathlib.Path(sys.argv[2]))
    return 1 if check(folder) else 0


if __name__ == "__main__":
    sys.exit(main())
