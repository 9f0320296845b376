#!/usr/bin/env python3
"""Compares the interface that the public headers have with the one that was promised.

    abi.py           fails where they differ, and says how (`make check-abi`)
    abi.py --write   makes the present interface the promised one (`make abi`)

A library is made of the headers alone: each variable is there, and each function, which does
nothing. So what is compared holds public types only, is the same whatever the compiler makes of
the sources, and needs nothing built. Each constant is an enumerator there, as its value is a part
of programs. What was promised is in client/*.abi, as abidw writes it. It changes nothing but those
files.
"""
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[1]
FOLDER = TOP / "build/abi"
CHANGED, BROKEN = 4, 8                  # bits of abidiff's exit status
# Each library, and the headers of its interface.
LIBRARIES = {
    "libperseas": "client/perseas*.h",
    "librvm-perseas": "client/rvm/rvm*.h",
    "librds-perseas": "client/rds/r*.h",
}
INCLUDE = ("-I", TOP / "client/rvm")    # of which rds.h includes rvm.h
COMMENT = re.compile(r"/\*.*?\*/", re.S)
# A declaration of a function, without what stands behind its parameters.
FUNCTION = (r"^(?:extern )?((?:const )?\w+(?: \w+)?[ *]+(?:perseas|rvm|rds)_\w+\([^;{}]*?\))"
            r"(?:\s*__attribute__\(\(.*?\)\))?;")
VARIABLE = r"^extern ([\w *]+);"
NUMBER = re.compile(r"^#define (\w+) (?:\(?-?\d[\dA-Fa-fxUL<> ]*\)?|[A-Z]\w+)$", re.M)


def preprocess(source, *how):
    return subprocess.run(["gcc", "-E", *how, *INCLUDE, "-x", "c", "-"],
                          input=source, stdout=subprocess.PIPE, text=True, check=True).stdout


def constants_of(source, text):
    """The names of the constants that stand in the headers' text, those of an enumeration or not:
    what else they include has others."""
    names = set(NUMBER.findall(preprocess(source, "-dM")))
    for body in re.findall(r"\benum(?: \w+)? *\{(.*?)\}", preprocess(source, "-P"), re.S):
        names |= set(re.findall(r"(?:^|,)\s*(\w+)", body))
    return sorted(names & set(re.findall(r"\w+", text)))


def stub_of(pattern):
    """The source of a library that has this interface."""
    headers = sorted(TOP.glob(pattern))
    text = "\n".join(COMMENT.sub("", path.read_text()) for path in headers)
    source = "".join('#include "%s"\n' % path for path in headers)
    functions = re.findall(FUNCTION, text, re.M | re.S)
    constants = constants_of(source, text)
    assert len(functions) > 20 and len(constants) > 10, pattern
    lines = ["#include <stdio.h>", source]
    lines += ["%s { __builtin_trap(); }" % declared for declared in functions]
    lines += ["%s;" % declared for declared in re.findall(VARIABLE, text, re.M)]
    lines += ["enum constants { %s };" % ", ".join("THE_%s = %s" % (name, name)
                                                   for name in constants)]
    lines += ["enum constants constants;"]
    return "\n".join(lines) + "\n"


def library_of(name):
    """Compiles it."""
    source, library = FOLDER / (name + ".c"), FOLDER / (name + ".so")
    FOLDER.mkdir(parents=True, exist_ok=True)
    source.write_text(stub_of(LIBRARIES[name]))
    subprocess.run(["gcc", "-std=gnu11", "-g", "-gdwarf-5", "-w", "-shared", "-fPIC",
                    *INCLUDE, "-fdebug-prefix-map=%s=." % TOP, "-Wl,-soname," + name, "-o",
                    library, source], check=True)
    return library


def dump(name, path):
    subprocess.run(["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs",
                    "--no-elf-needed", "--out-file", path, library_of(name)], check=True)


def compare_constants(promised, now):
    """(bits as abidiff's, words): abidiff does not look at the values."""
    before, after = (dict(re.findall(r"enumerator name='THE_(\w+)' value='(-?\d+)'",
                                     path.read_text())) for path in (promised, now))
    bits, said = 0, []
    for name in sorted(set(before) | set(after)):
        if before.get(name) != after.get(name):
            bits |= BROKEN if name in before else CHANGED
            said.append("constant %s: %s, and was %s\n" % (
                name, after.get(name, "not there"), before.get(name, "not there")))
    return bits, "".join(said)


def compare(name):
    """What differs, in words; "": nothing."""
    promised, now = TOP / "client" / (name + ".abi"), FOLDER / (name + ".abi")
    dump(name, now)
    done = subprocess.run(["abidiff", "--redundant", promised, now],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    bits, said = compare_constants(promised, now)
    bits, said = bits | done.returncode, said + (done.stdout if done.returncode else "")
    if bits & BROKEN:
        return said + (
            "%s: programs that were compiled before would break. Take it back, or raise SOVERSION "
            "in the Makefile (doc/promises.md), and then: make abi\n" % name)
    if bits & CHANGED:
        return said + (
            "%s: the interface is another one. If all of this is an addition that programs "
            "compiled before do not notice: make abi\n" % name)
    return said


def main():
    if sys.argv[1:] == ["--write"]:
        for name in LIBRARIES:
            dump(name, TOP / "client" / (name + ".abi"))
        return 0
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    failed = 0
    for name in LIBRARIES:
        said = compare(name)
        sys.stdout.write(said)
        failed += bool(said)
    print("%d passed, %d failed" % (len(LIBRARIES) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
