#!/usr/bin/env python3
"""report.py FOLDER CORPUS: what the fuzz targets did, by their logs in FOLDER (build/results/fuzz):
seeds made by encoders and recorded from real sessions, as they lie in CORPUS, executions, edges of
the code that were reached, and inputs that were kept as each reached more. It fails for a target
without recorded seeds, but for those of EXEMPT."""
import pathlib
import re
import sys

RECORDED = "recorded-"
# No listener's; or there is nothing to record.
EXEMPT = {
    "fuzz_access": "rules are a file of the operator's",
    "fuzz_address": "addresses are words of a command line",
    "fuzz_etcd": "a key's value comes from etcdctl, and no daemon of ours sends any",
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


def row(path, corpus):
    """Of one log; question marks: it is not whole."""
    text = path.read_text(errors="replace")
    reached = re.findall(r"cov: (\d+) ft: \d+ corp: (\d+)", text)
    runs = re.search(r"stat::number_of_executed_units:\s*(\d+)", text)
    did = ["{:,}".format(int(runs[1])), *reached[-1]] if reached and runs else ["?"] * 3
    return [path.stem, *map(str, seeds(corpus, path.stem)), *did]


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    folder, corpus = map(pathlib.Path, sys.argv[1:])
    rows = [row(path, corpus) for path in sorted(folder.glob("*.log"))]
    lines = [["target", "made", "recorded", "executions", "edges", "inputs"], *rows]
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        print("  ".join([line[0].ljust(widths[0])] +
                        [text.rjust(width) for text, width in zip(line[1:], widths[1:])]))
    for target, why in EXEMPT.items():
        print("%s has no recorded seeds: %s" % (target, why))
    missing = [line[0] for line in rows if line[2] == "0" and line[0] not in EXEMPT]
    for target in missing:
        print("%s has no recorded seeds, and must: make corpus" % target, file=sys.stderr)
    return 0 if rows and not missing and all("?" not in line for line in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
