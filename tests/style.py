#!/usr/bin/env python3
"""Checks what a machine can check of the tree's style; one line a fault, then a count.

A function is what stands between a brace alone in the first column and the next one that
closes there. Generated and built files are not looked at.
"""
import pathlib
import re
import sys

FOLDERS = ("proto", "client", "server", "tests", "bench", "deploy", "doc")
COLUMNS, FUNCTION_LINES, FILE_LINES = 100, 70, 600
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")


def width(line):
    return len(line.expandtabs(8))


def long_functions(lines):
    """Yields (line number, length) of every function that is too long."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif start and line.startswith("}"):
            if number - start - 1 > FUNCTION_LINES:
                yield start, number - start - 1
            start = None


def faults(path):
    text = path.read_text()
    lines = text.split("\n")
    c_file = path.suffix in (".c", ".h")
    if text and not text.endswith("\n"):
        yield len(lines), "no newline at the end"
    if c_file and len(lines) - 1 > FILE_LINES:
        yield FILE_LINES, "%d lines, %d at most" % (len(lines) - 1, FILE_LINES)
    for number, line in enumerate(lines, 1):
        if width(line) > COLUMNS:
            yield number, "%d columns, %d at most" % (width(line), COLUMNS)
        if line != line.rstrip():
            yield number, "space at the end"
        if UNFINISHED.search(line):
            yield number, "unfinished"
    if c_file:
        for number, length in long_functions(lines):
            yield number, "a function of %d lines, %d at most" % (length, FUNCTION_LINES)


def main():
    bad = good = 0
    for folder in FOLDERS:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.suffix not in (".c", ".h", ".py", ".sh") or not path.is_file():
                continue
            found = list(faults(path))
            for number, what in found:
                print("%s:%d: %s" % (path, number, what))
            bad, good = bad + bool(found), good + (not found)
    print("%d passed, %d failed" % (good, bad))
    return 1 if bad or not good else 0


if __name__ == "__main__":
    sys.exit(main())
