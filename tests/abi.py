#!/usr/bin/env python3
"""Compares the interface that the public headers have with the one that was promised.

    abi.py           fails where they differ, and says how (`make check-abi`)
    abi.py --write   makes the present interface the promised one (`make abi`)

A library is made of the headers alone: each function is there, and does nothing. So what is
compared holds public types only, is the same whatever the compiler makes of the sources, and
needs nothing built. Each constant is an enumerator there, as its value is a part of programs.
What was promised is in client/*.abi, as abidw writes it. It changes nothing but those files.
"""
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[1]
FOLDER = TOP / "build/abi"
CHANGED, BROKEN = 4, 8                  # bits of abidiff's exit status
# Each library: its header, and where the functions of its interface are declared.
LIBRARIES = {
    "libperseas": ("client/perseas.h", "client/perseas*.h", "perseas_"),
    "librvm-perseas": ("client/rvm/rvm_statistics.h", "client/rvm/rvm*.h", "rvm_"),
}
COMMENT = re.compile(r"/\*.*?\*/", re.S)
# A declaration of a function, without what stands behind its parameters.
FUNCTION = (r"^(?:extern )?((?:const )?\w+(?: \w+)?[ *]+(%s\w+)\([^;{}]*?\))"
            r"(?:\s*__attribute__\(\(.*?\)\))?;")
NUMBER = re.compile(r"^#define (\w+) (?:\(?-?\d[\dA-Fa-fxUL<> ]*\)?|U?INT\d+_MAX)$", re.M)


def preprocess(header, *how):
    return subprocess.run(["gcc", "-E", *how, TOP / header], stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def constants_of(header, prefix):
    """The names of the interface's constants, that of an enumeration or not."""
    ours = re.compile(prefix, re.I)
    names = set(NUMBER.findall(preprocess(header, "-dM")))
    for body in re.findall(r"\benum(?: \w+)? *\{(.*?)\}", preprocess(header, "-P"), re.S):
        names |= set(re.findall(r"(?:^|,)\s*(\w+)", body))
    return sorted(name for name in names if ours.match(name))


def stub_of(header, pattern, prefix):
    """The source of a library that has this interface."""
    text = "\n".join(COMMENT.sub("", path.read_text()) for path in sorted(TOP.glob(pattern)))
    functions = re.findall(FUNCTION % prefix, text, re.M | re.S)
    constants = constants_of(header, prefix)
    assert len(functions) > 20 and len(constants) > 10, header
    lines = ["#include <stdio.h>", '#include "%s"' % (TOP / header)]
    lines += ["%s { __builtin_trap(); }" % declared for declared, _ in functions]
    lines += ["enum %sconstants { %s };" % (prefix, ", ".join(
        "THE_%s = %s" % (name, name) for name in constants))]
    lines += ["enum %sconstants %sconstants;" % (prefix, prefix)]
    return "\n".join(lines) + "\n"


def library_of(name):
    """Compiles it."""
    source, library = FOLDER / (name + ".c"), FOLDER / (name + ".so")
    FOLDER.mkdir(parents=True, exist_ok=True)
    source.write_text(stub_of(*LIBRARIES[name]))
    subprocess.run(["gcc", "-std=gnu11", "-g", "-gdwarf-5", "-w", "-shared", "-fPIC",
                    "-fdebug-prefix-map=%s=." % TOP, "-Wl,-soname," + name, "-o", library, source],
                   check=True)
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
