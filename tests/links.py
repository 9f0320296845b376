#!/usr/bin/env python3
"""Says which files the installed documents name that are not installed.

    links.py ROOT DOCDIR        exit 1 when there are some; DOCDIR is below ROOT

tests/install.sh calls it. A link must lead to a file. A name in backquotes is one when it ends
like a file: it may also be relative to DOCDIR, or be that of any file below ROOT (a header, a
program). What is for those who work on the source names what is in the source: it is held to its
links alone. It only reads.
"""
import pathlib
import re
import sys

LINK = re.compile(r"\]\(([\w./-]+)\)")
NAME = re.compile(r"`([A-Za-z][\w./-]*\.(?:md|c|h|json|conf|in|service|socket))`")
OF_THE_SOURCE = ("CHANGELOG.md", "CONTRIBUTING.md", "doc/files.md", "doc/internals.md",
                 "proto/PROTOCOL.md")
# What a document may name that the reader makes, or finds in the source.
ELSEWHERE = ("build/", "tests/", "bench/", "upsmon.conf")


def lost(document, docs, known):
    """The names in one document that lead nowhere."""
    text = document.read_text()
    for name in LINK.findall(text):
        if not (document.parent / name).exists():
            yield name
    if str(document.relative_to(docs)) in OF_THE_SOURCE:
        return
    for name in NAME.findall(text):
        if not (name.startswith(ELSEWHERE) or (docs / name).exists() or
                (document.parent / name).exists() or
                ("/" not in name or name.startswith(("client/", "deploy/"))) and
                pathlib.PurePath(name).name in known):
            yield name


def main():
    root, docs = map(pathlib.Path, sys.argv[1:3])
    known = {path.name for path in root.rglob("*")}
    count = 0
    for document in sorted(docs.rglob("*.md")):
        for name in lost(document, docs, known):
            print("%s names %s, which is not installed" % (document.relative_to(docs), name))
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
