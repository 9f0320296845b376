#!/usr/bin/env python3
"""Checks what a machine can check of the tree's style; one line a fault, then a count.

A function is what stands between a brace alone in the first column, but for that of a namespace or
a class, and the next one that closes there. Generated and built files are not looked at.
"""
import os
import pathlib
import re
import sys

FOLDERS = ("proto", "client", "server", "tests", "bench", "deploy", "debian", "doc")
PRODUCT = ("proto", "client", "server")
COLUMNS, FUNCTION_LINES, FILE_LINES = 100, 70, 600
# A room includes what stands before it in its list, and nothing else of ours.
FORMATS = ("proto/base", "proto/image", "proto/data", "proto/control")
ROOMS = (FORMATS + ("client", "client/core", "client/host", "client/fabric", "client/demand",
                    "client/keeper", "client/open", "client/heap", "client/standby",
                    "client/cpp/perseas", "client/cpp",
                    "client/python",
                    "client/command/ui",
                    "client/command/place", "client/command/ask", "client/command/fleet",
                    "client/command/live",
                    "client/command/change", "client/command/drain",
                    "client/command/doctor", "client/command/top", "client/command/bench",
                    "client/command/run", "client/command"),
         ("client", "client/rvm", "client/rds"),
         FORMATS + ("server/host", "server/store", "server/memory", "server/loop", "server/fabric",
                    "server/watch", "server"))
# Of the product's files, by which doc/files.md names one without its suffix.
SOURCES = (".c", ".h", ".hpp", ".py", ".pyi", ".proto", ".pml", ".html", ".bash", ".zsh")
INDEX, MAP = pathlib.Path("doc/files.md"), pathlib.Path("doc/internals.md")
FILE_IN_MAP = re.compile(r"`((?:\w+/)*\w+\.(?:c|h|py))`")
# Here a function's name says what it acts on: one word is too little.
NAMED = "client/command"
ONE_WORD = re.compile(r"static [\w *]*[ *]([a-z]+)\(")
INCLUDE = re.compile(r'#\s*include "(.+)"')
GOES_ON = re.compile(r"(/\*|#) *\.\.[^.]|[^.]\.\. *\*/")
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")


def width(line):
    return len(line.expandtabs(8))


def long_functions(lines):
    """Yields (line number, length) of every function that is too long."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{" and not re.match(r"(namespace|class|struct)\b", lines[number - 2]):
            start = number
        elif start and line.startswith("}"):
            if number - start - 1 > FUNCTION_LINES:
                yield start, number - start - 1
            start = None


def opens_with_a_paragraph(path, text):
    """A comment, or a docstring; behind the line that names the interpreter, where there is one."""
    if text.startswith("#!"):
        text = text.partition("\n")[2]
    return text.startswith({".py": ('"""', 'r"""'), ".sh": "# "}.get(path.suffix, "/*"))


def wrong_way(path, included):
    """Does a file of one room include one of a room that it must not know?"""
    target = pathlib.Path(os.path.normpath(path.parent / included))
    here, there = path.parent.as_posix(), target.parent.as_posix()
    orders = [rooms for rooms in ROOMS if here in rooms]
    return target.exists() and orders and not any(
        there in rooms and rooms.index(there) <= rooms.index(here) for rooms in orders)


def faults(path):
    text = path.read_text()
    lines = text.split("\n")
    c_file = path.suffix in (".c", ".h", ".cpp", ".hpp")
    if not opens_with_a_paragraph(path, text):
        yield 1, "no opening paragraph: what it is for, who calls it, what it must never do"
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
        if GOES_ON.search(line):
            yield number, "a comment that goes on with another one"
        if c_file and path.as_posix().startswith(NAMED) and ONE_WORD.match(line):
            yield number, "%s(): of what? A name of one word" % ONE_WORD.match(line)[1]
        included = c_file and INCLUDE.match(line)
        if included and wrong_way(path, included[1]):
            yield number, "%s must not include %s: ROOMS in tests/style.py" % (path.parent,
                                                                               included[1])
    if c_file and path.parts[0] in PRODUCT and not any(
            path.parent.as_posix() in rooms for rooms in ROOMS):
        yield 1, "stands in no room: ROOMS in tests/style.py"
    if c_file:
        for number, length in long_functions(lines):
            yield number, "a function of %d lines, %d at most" % (length, FUNCTION_LINES)


def index_faults():
    """Yields a sentence for each product file without a line, and for each line without a file."""
    there = {(path.parent.as_posix(), path.stem) for folder in PRODUCT
             for path in pathlib.Path(folder).rglob("*")
             if path.suffix in SOURCES and not path.is_relative_to("client/python/build")}
    room, named = None, set()
    for line in INDEX.read_text().splitlines():
        if line.startswith("## "):
            room = line[3:]
        elif line.startswith("| `"):
            named.add((room, line.split("`")[1]))
    for room, name in sorted(there - named):
        yield "below '## %s' add the line '| `%s` | what it does |'" % (room, name)
    for room, name in sorted(named - there):
        yield "below '## %s' remove the line of `%s`: there is no such file" % (room, name)


def map_faults():
    """Yields a sentence for each file that the map names and that is not there."""
    there = ["/" + path.as_posix() for folder in FOLDERS
             for path in pathlib.Path(folder).rglob("*")]
    for number, line in enumerate(MAP.read_text().splitlines(), 1):
        for name in FILE_IN_MAP.findall(line):
            if not any(path.endswith("/" + name) for path in there):
                yield "line %d names %s, which does not exist: correct the line" % (number, name)


def main():
    bad = good = 0
    for document, found in ((INDEX, index_faults()), (MAP, map_faults())):
        for what in found:
            print("%s: %s" % (document, what))
            bad += 1
    for folder in FOLDERS:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            # setuptools builds beside what it packs.
            if (path.suffix not in (".c", ".h", ".cpp", ".hpp", ".py", ".sh") or
                    not path.is_file() or path.is_relative_to("client/python/build")):
                continue
            found = list(faults(path))
            for number, what in found:
                print("%s:%d: %s" % (path, number, what))
            bad, good = bad + bool(found), good + (not found)
    print("%d passed, %d failed" % (good, bad))
    return 1 if bad or not good else 0


if __name__ == "__main__":
    sys.exit(main())
