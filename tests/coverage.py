#!/usr/bin/env python3
"""Prints, by folder, which part of lines and branches was reached.

    coverage.py FILE        a trace of lcov's
"""
import collections
import pathlib
import sys


def read(path):
    """{folder: [lines reached, lines, branches reached, branches]}"""
    sums, here = collections.defaultdict(lambda: [0] * 4), None
    for line in path.read_text().splitlines():
        kind, _, rest = line.partition(":")
        fields = rest.split(",")
        if kind == "SF":
            here = sums[str(pathlib.Path(rest).parent.relative_to(pathlib.Path.cwd()))]
        elif kind == "DA":
            here[0] += fields[1] != "0"
            here[1] += 1
        elif kind == "BRDA":
            here[2] += fields[3] not in ("-", "0")
            here[3] += 1
    return dict(sums)


def show(name, reached):
    lines, all_lines, branches, all_branches = reached
    print("%-16s %6d of %6d lines %5.1f %%   %6d of %6d branches %5.1f %%" % (
        name, lines, all_lines, 100 * lines / max(all_lines, 1),
        branches, all_branches, 100 * branches / max(all_branches, 1)))


def main():
    sums = read(pathlib.Path(sys.argv[1]))
    for name in sorted(sums):
        show(name, sums[name])
    show("all", [sum(column) for column in zip(*sums.values())])


if __name__ == "__main__":
    main()
