#!/usr/bin/env python3
"""Says where debian/ and the rest of the tree contradict each other: a line a fault, then a count.

`make check-style` calls it, since it takes no time and needs nothing built. It looks at what is
forgotten by whoever raises the version, exports a function or needs another library: the version of
debian/changelog and of the RPM's spec, the list of symbols, and the packages to build with. It only
reads.
"""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
# What is there on every machine that builds packages; and tools of debhelper.
ESSENTIAL = {"gcc", "libc6-dev"}
TOOLS = {"debhelper-compat", "dh-sequence-installsysusers"}
DECLARATION = re.compile(r"^(?:const char \*|int |void \*?|uint64_t )(perseas_\w+)\(", re.M)


def read(name):
    return (TOP / name).read_text()


def field(text, name):
    """The words of a field of a control file, without what stands behind them."""
    body, = re.findall(r"^%s:((?:.*\n)(?: .*\n)*)" % name, text, re.M)
    return {re.split(r"[:\s(<]", part.strip())[0] for part in body.split(",") if part.strip()}


def check_version():
    version = read("VERSION").strip()
    said = re.match(r"perseas \((.*)-[^-]+\) ", read("debian/changelog"))
    if not said or said[1] != version:
        yield "debian/changelog: its first entry is not about %s, which VERSION says" % version
    if re.findall(r"^Version: +(\S+)$", read("deploy/perseas.spec"), re.M) != [version]:
        yield "deploy/perseas.spec: its Version is not %s, which VERSION says" % version


def check_soversion():
    number, = re.findall(r"^SOVERSION := (\d+)$", read("Makefile"), re.M)
    names = re.findall(r"^Package: (libperseas\d+)$", read("debian/control"), re.M)
    if names != ["libperseas" + number]:
        yield "debian/control: the library's package is not libperseas%s (SOVERSION)" % number
    elif not read("debian/libperseas%s.symbols" % number).startswith(
            "libperseas.so.%s libperseas%s " % (number, number)):
        yield "debian/libperseas%s.symbols: it is of another library" % number
    if "%%{_libdir}/libperseas.so.%s\n" % number not in read("deploy/perseas.spec"):
        yield "deploy/perseas.spec: it does not have libperseas.so.%s (SOVERSION)" % number


def check_symbols():
    node, = re.findall(r"^(PERSEAS_\w+) \{$", read("client/perseas.map"), re.M)
    declared = {name for path in TOP.glob("client/perseas*.h")
                for name in DECLARATION.findall(path.read_text())}
    path, = TOP.glob("debian/libperseas*.symbols")
    listed = set(re.findall(r"^ (\S+) \S+$", path.read_text(), re.M))
    wanted = {"%s@%s" % (name, node) for name in declared | {node}}
    if len(declared) < 40:
        yield "client/: only %d functions are declared in the headers" % len(declared)
    for name in sorted(wanted - listed):
        yield "%s: %s is missing; add it with this version" % (path.name, name)
    for name in sorted(listed - wanted):
        yield "%s: %s is exported no more: that is another SOVERSION" % (path.name, name)


def check_needs():
    build, = re.findall(r'^build="(.*?)"', read("deploy/deps.sh"), re.M | re.S)
    needed = set(build.split()) - ESSENTIAL
    named = field(read("debian/control"), "Build-Depends") - TOOLS - {"libcmocka-dev"}
    for name in sorted(needed ^ named):
        yield "debian/control: Build-Depends and group build of deploy/deps.sh differ by " + name


def main():
    bad = good = 0
    for check in (check_version, check_soversion, check_symbols, check_needs):
        found = list(check())
        for fault in found:
            print(fault)
        bad, good = bad + bool(found), good + (not found)
    print("%d passed, %d failed" % (good, bad))
    return 1 if bad or not good else 0


if __name__ == "__main__":
    sys.exit(main())
