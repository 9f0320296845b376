#!/usr/bin/env python3
"""Says where debian/ and the rest of the tree contradict each other: a line a fault, then a count.

`make check-style` calls it, since it takes no time and needs nothing built. It looks at what is
easily forgotten when the version is raised, a function exported or another library needed: the
version of debian/changelog and of the RPM's spec, the list of symbols, and the packages to build
with. It only reads.
"""
import fnmatch
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
# What is there on every machine that builds packages; and tools of debhelper, with the packages of
# group deb of deploy/deps.sh that have them.
ESSENTIAL = {"gcc", "libc6-dev"}
TOOLS = {"debhelper-compat": "debhelper", "dh-sequence-installsysusers": "debhelper",
         "dh-sequence-python3": "dh-python"}
# Each library: its headers, what says what it exports, what declares a function or variable in a
# header, and how many there are at least.
LIBRARIES = {
    "libperseas": ("client/perseas*.h", "client/perseas.map", re.compile(
        r"^(?:const char \*|int |void \*?|uint64_t )(perseas_\w+)\(", re.M), 40),
    "librvm-perseas": ("client/rvm/rvm*.h", "client/rvm/rvm.map", re.compile(
        r"^extern [\w ]+[ *](rvm_\w+)\(", re.M), 40),
    "librds-perseas": ("client/rds/r*.h", "client/rds/rds.map", re.compile(
        r"^extern [\w ]+[ *](?:(?=r(?:vm|ds)_\w+\()|(?=\w+;))(\w+)", re.M), 20),
}


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
    for library in LIBRARIES:
        package, name = library + number, "%s.so.%s" % (library, number)
        if re.findall(r"^Package: (%s\d+)$" % library, read("debian/control"), re.M) != [package]:
            yield "debian/control: the library's package is not %s (SOVERSION)" % package
        elif not read("debian/%s.symbols" % package).startswith("%s %s " % (name, package)):
            yield "debian/%s.symbols: it is of another library" % package
        if "%%{_libdir}/%s\n" % name not in read("deploy/perseas.spec"):
            yield "deploy/perseas.spec: it does not have %s (SOVERSION)" % name


def check_symbols():
    for library, (headers, exports, declaration, least) in LIBRARIES.items():
        node, = re.findall(r"^([A-Z]\w+) \{$", read(exports), re.M)
        names, = re.findall(r"^\tglobal: (.+);$", read(exports), re.M)
        patterns = names.split("; ")
        declared = {name for path in TOP.glob(headers)
                    for name in declaration.findall(path.read_text())}
        path, = TOP.glob("debian/%s[0-9]*.symbols" % library)
        listed = set(re.findall(r"^ (\S+) \S+$", path.read_text(), re.M))
        wanted = {"%s@%s" % (name, node) for name in declared | {node}}
        if len(declared) < least:
            yield "%s: only %d names are declared" % (headers, len(declared))
        for name in sorted(name for name in declared
                           if not any(fnmatch.fnmatchcase(name, each) for each in patterns)):
            yield "%s: it does not export %s" % (exports, name)
        for name in sorted(wanted - listed):
            yield "%s: %s is missing; add it with this version" % (path.name, name)
        for name in sorted(listed - wanted):
            yield "%s: %s is exported no more: that is another SOVERSION" % (path.name, name)


def group(name):
    """The packages of a group of deploy/deps.sh."""
    packages, = re.findall(r'^%s="(.*?)"' % name, read("deploy/deps.sh"), re.M | re.S)
    return set(packages.split())


def check_needs():
    asked = field(read("debian/control"), "Build-Depends")
    named = asked - TOOLS.keys() - {"libcmocka-dev"}
    for name in sorted((group("build") - ESSENTIAL) ^ named):
        yield "debian/control: Build-Depends and group build of deploy/deps.sh differ by " + name
    for tool in sorted(asked & TOOLS.keys()):
        if TOOLS[tool] not in group("deb"):
            yield "deploy/deps.sh: group deb lacks %s, which has %s" % (TOOLS[tool], tool)


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
