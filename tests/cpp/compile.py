#!/usr/bin/env python3
"""Compiles the C++ binding as programs may: as C++17 and C++20, with and without exceptions, each
header by itself, without a warning; what must not compile (refused.cpp); and that it calls each
function of the library, or that a reason not to is below.

    compile.py            with gcc, what `make check-cpp` does not build anyway
    compile.py --all      with gcc and clang, all of it

Prints "N passed, N failed", and what the compiler said of what failed.
"""
import concurrent.futures
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
GCC, CLANG = "g++", "clang++-14"
STANDARDS = ("-std=c++17", "-std=c++20")
FLAGS = ["-I", str(TOP / "client"), "-I", str(TOP / "client/cpp"), "-Wall", "-Wextra", "-Wpedantic",
         "-Wshadow", "-Werror", "-fsyntax-only"]
HEADERS = sorted((TOP / "client/cpp").rglob("*.hpp"))
SYMBOLS = TOP / "debian/libperseas0.symbols"
NOT_CALLED = {
    "perseas_message": "perseas_error copies the sentence, which stays as it is",
    "perseas_retain": "for languages that collect garbage",
    "perseas_map_over": "for languages that collect garbage",
    "perseas_set_progress": "it takes a function of the whole process, which nobody owns",
}
REFUSED = re.compile(r"/\* says: (.*) \*/")


def compiled(compiler, *words, source=None):
    """(did it compile, what the compiler said)"""
    done = subprocess.run([compiler, *FLAGS, *map(str, words)], input=source, text=True,
                          stdin=None if source else subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120)
    return done.returncode == 0, done.stdout


def accepts(*words, source=None):
    def case():
        good, said = compiled(*words, source=source)
        return good, "%s\n%s" % (" ".join(map(str, words)), said)
    return case


def refuses(compiler):
    """Every line of refused.cpp that says so is an error, with the words that stand there."""
    lines = (HERE / "refused.cpp").read_text().split("\n")
    expected = [(number, REFUSED.search(line)[1]) for number, line in enumerate(lines, 1)
                if REFUSED.search(line)]
    assert len(expected) > 10

    def case():
        good, said = compiled(compiler, STANDARDS[0], "-DREFUSED=1", "-fmax-errors=0"
                              if compiler == GCC else "-ferror-limit=0", HERE / "refused.cpp")
        missing = [words for number, words in expected
                   if not explained(compiler, said, number, words)]
        return not good and not missing, "%s does not say: %s\n%s" % (compiler, missing, said)
    return case


def explained(compiler, said, number, words):
    """An error with these words that names this line: in itself, or, where it is in a template,
    g++ before it and clang++ after it."""
    place = re.escape("refused.cpp:%d:" % number)
    error = r"(?:error|warning): [^\n]*(?:%s)" % words
    outside = place + r"(?:(?!refused\.cpp:).)*" + error if compiler == GCC else \
        error + r"(?:(?!error: ).)*" + place
    return re.search("%s[^\n]*%s|%s" % (place, error, outside), said, re.S) is not None


def calls_every_function():
    """Not in a comment, and not as the structure of that name."""
    exported = set(re.findall(r"^ (perseas_\w+)@", SYMBOLS.read_text(), re.M))
    text = "".join(re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S) for header in HEADERS)
    called = set(re.findall(r"(?<!struct )(?<!struct ::)\b(perseas_\w+)\b", text)) & exported
    wrong = (exported - called) ^ set(NOT_CALLED)
    return len(exported) > 60 and not wrong, \
        "not called and without a reason, or the reverse: %s" % sorted(wrong)


def programs(compiler, standard):
    """All programs of this folder that must compile with exceptions."""
    for name in "binding", "misuse", "owners", "objects":
        yield accepts(compiler, standard, HERE / (name + ".cpp"))


def basics(compiler):
    """What must not compile, and each header by itself."""
    yield accepts(compiler, STANDARDS[0], HERE / "refused.cpp")
    yield refuses(compiler)
    for header in HEADERS:
        text = '#include "%s"\nint main() {}\n' % header
        yield accepts(compiler, STANDARDS[0], "-x", "c++", "-", source=text)


def cases(everything):
    """What cpp.mk builds with the same flags is not compiled again."""
    yield calls_every_function
    yield from basics(GCC)
    yield accepts(GCC, STANDARDS[0], HERE / "binding.cpp")
    yield accepts(GCC, STANDARDS[1], "-fno-exceptions", HERE / "plain.cpp")
    if everything:
        yield from basics(CLANG)
        for compiler, standard in ((GCC, STANDARDS[1]), (CLANG, STANDARDS[0]),
                                   (CLANG, STANDARDS[1])):
            yield from programs(compiler, standard)


def main():
    if sys.argv[1:] not in ([], ["--all"]):
        print(__doc__, file=sys.stderr)
        return 2
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for good, what in pool.map(lambda case: case(), cases(sys.argv[1:])):
            passed, failed = passed + good, failed + (not good)
            if not good:
                print(what)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
